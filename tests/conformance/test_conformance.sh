#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the cases of this folder by "hob eval --cases". Every case whose ops
# exist must pass, but for those that exceptions.txt lists with the reason;
# they and those whose ops are not there yet are counted as skipped. README.md
# lists the latter: after a new op, "test_conformance.sh --list" prints
# the list as it should be. The last line is "N passed, N failed, N skipped".
# HOB_TEST_DEVICE is what they run on, if it is not flex. With --once each case
# runs once there, and once fused.
set -u

here=${HOB_TEST_SRCDIR:-$(dirname "$0")/..}/conformance
hob=${HOB_TEST_BUILDDIR:+$HOB_TEST_BUILDDIR/../tools/hob}
hob=${hob:-hob}
work=$(mktemp -d) || exit 99
trap 'rm -r -f "$work"' EXIT

device=${HOB_TEST_DEVICE:-flex}
passed=0
failed=0
skipped=0

# run_cases FILE DEVICE [LAYOUT]: print what fails, and add up the closing line.
run_cases()
{
    names="--names $here/names.json"
    [ "$1" != own.jsonl ] || names= # its names are Hob's
    # shellcheck disable=SC2086
    "$hob" eval --cases "$here/$1" $names --device "$2" \
        --layout "${3-contiguous}" >"$work/log" 2>&1
    grep '^not there yet: ' "$work/log" >>"$work/missing"
    line=$(grep '^[0-9]* passed, [0-9]* failed, [0-9]* skipped$' "$work/log")
    if [ -z "$line" ]; then
        line="0 passed, 1 failed, 0 skipped"
        tail -n 20 "$work/log"
    fi
    # What is answered otherwise on purpose fails, and must.
    grep '^FAILED ' "$work/log" >"$work/failed"
    grep "^${1%.jsonl}/" "$here/exceptions.txt" >"$work/expected"
    meant=0
    while IFS='	' read -r id why; do
        if grep -q -F "FAILED $id: " "$work/failed"; then
            meant=$((meant + 1))
            grep -v -F "FAILED $id: " "$work/failed" >"$work/others"
            mv "$work/others" "$work/failed"
            echo "skipped $id: $why"
        else
            failed=$((failed + 1))
            echo "FAILED exceptions.txt: $id passes on $2${3:+, $3}"
        fi
    done <"$work/expected"
    cat "$work/failed"
    echo "$1 on $2${3:+, $3}: $line, $meant of them on purpose"
    # shellcheck disable=SC2086
    set -- $line
    passed=$((passed + $1))
    failed=$((failed + $3 - meant))
    skipped=$((skipped + $5 + meant))
}

# The lines of README.md: each op that a case needs and nobody knows.
print_list()
{
    for file in tensor autodiff quant; do
        : >"$work/missing"
        run_cases $file.jsonl "autodiff($device)" >/dev/null
        [ ! -s "$work/missing" ] || echo
        sed -n 's/^not there yet: \([^ ]*\) (\([0-9]*\) cases)$/\1 \2/p' \
            "$work/missing" | LC_ALL=C sort |
            awk -v file=$file '
                { text = text (NR > 1 ? ", " : "") $1 " (" $2 ")"; n += $2 }
                END { if (NR) print "**" file "**, " n " cases: " text "." }' |
            fold -s -w 100 | sed 's/ *$//'
    done
}

finish()
{
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}

if [ "${1-}" = --list ]; then
    print_list
    exit
fi

if [ "${1-}" != --once ]; then
    print_list >"$work/list"
fi
sed '1,/^<!-- list -->$/d' "$here/README.md" >"$work/readme"
passed=0
failed=0
skipped=0
if [ "${1-}" = --once ]; then
    run_cases tensor.jsonl "$device"
    run_cases autodiff.jsonl "autodiff($device)"
    run_cases quant.jsonl "$device"
    run_cases own.jsonl "autodiff($device)"
    run_cases tensor.jsonl "fusion($device)"
    run_cases autodiff.jsonl "autodiff(fusion($device))"
    run_cases quant.jsonl "fusion($device)"
    run_cases own.jsonl "autodiff(fusion($device))"
    finish
fi
run_cases tensor.jsonl "$device"
run_cases tensor.jsonl "autodiff($device)"
run_cases tensor.jsonl "autodiff{checkpoint=balanced}($device)"
run_cases autodiff.jsonl "autodiff($device)"
run_cases autodiff.jsonl "autodiff{checkpoint=balanced}($device)"
run_cases quant.jsonl "$device"
run_cases quant.jsonl "autodiff($device)"
run_cases own.jsonl "autodiff($device)"
run_cases own.jsonl "autodiff{checkpoint=balanced}($device)"
run_cases tensor.jsonl "fusion($device)"
run_cases autodiff.jsonl "autodiff(fusion($device))"
run_cases quant.jsonl "fusion($device)"
run_cases own.jsonl "autodiff(fusion($device))"
# How the inputs lie in memory must not matter.
for layout in reversed transposed gaps offset; do
    run_cases tensor.jsonl "$device" $layout
    run_cases autodiff.jsonl "autodiff($device)" $layout
    run_cases quant.jsonl "$device" $layout
    run_cases own.jsonl "autodiff($device)" $layout
done
run_cases tensor.jsonl "fusion($device)" transposed
run_cases own.jsonl "autodiff(fusion($device))" reversed

if cmp -s "$work/list" "$work/readme"; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    echo "FAILED README.md: its list of what is not there yet is old:"
    diff "$work/readme" "$work/list"
fi
finish
