#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# "hob-sdk check" itself: for each code of its findings there is a mutant, an
# extension with one fault, for which it reports that code and nothing else.
# The good one and the examples of the SDK are clean.
set -u

here=$HOB_TEST_SRCDIR/mutants
top=$HOB_TEST_SRCDIR/..
check=$HOB_TEST_BUILDDIR/../ext-sdk/check/hob-sdk-check
sdk=$HOB_TEST_BUILDDIR/../ext-sdk/hob-sdk
if [ ! -x "$check" ]; then
    echo "skipped: no $check"
    exit 77
fi
# Five minutes there, for what the examples' test has shown already.
if [ -n "${HOB_TEST_CFLAGS-}" ]; then
    echo "skipped: the mutants run without sanitizers"
    exit 77
fi
# The checker tries each device that opens: with drivers of GPUs that would take
# minutes, and differ from machine to machine.
CUDA_VISIBLE_DEVICES=
VK_DRIVER_FILES=/nonexistent
VK_ICD_FILENAMES=/nonexistent
export CUDA_VISIBLE_DEVICES VK_DRIVER_FILES VK_ICD_FILENAMES
work=$(mktemp -d) || exit 99
trap 'rm -r -f "$work"' EXIT

includes="-I$top/core/include -I$HOB_TEST_BUILDDIR/../core/include
    -I$top/ext-sdk/include"
# Not HOB_TEST_CFLAGS: a sanitizer would end the process where the checker is
# to find the fault.
cflags="-std=c11 -O1 -D_GNU_SOURCE -fPIC -fvisibility=hidden -shared
    -Wall -Wextra -Werror"
minor=$(sed -n 's/.*HOB_ABI_MINOR = \([0-9]*\).*/\1/p' \
    "$top/core/include/hob/host.h")
passed=0
failed=0

pass()
{
    passed=$((passed + 1))
}

fail()
{
    echo "FAIL: $*"
    failed=$((failed + 1))
}

# Build mutant $1 with the flags that follow into $work/$1.
# shellcheck disable=SC2086
build()
{
    name=$1
    shift
    manifest=$here/$name.json
    [ -e "$manifest" ] || manifest=$here/mutant.json
    mkdir -p "$work/$name" &&
        sed "s/@minor@/$minor/g" "$manifest" >"$work/$name/mutant.json" &&
        ${CC:-cc} $cflags $includes -o "$work/$name/mutant.so" \
            "$here/$name.c" "$@"
}

# The codes that the checker finds in folder $1, one a line.
codes()
{
    "$check" "$1" --json --plugins "$HOB_TEST_PLUGIN_DIR" --timeout 4000 \
        >"$1/report.json" 2>"$1/errors"
    echo $? >"$1/status"
    sed -n 's/^ *{"code": "\([A-Z_]*\)".*/\1/p' "$1/report.json" | sort -u
}

# Folder $2, called $1, has just the codes $3.
expect()
{
    found=$(codes "$2" | tr '\n' ' ')
    status=$(cat "$2/status")
    if [ -z "$3" ] && [ "$status" -eq 0 ] && [ -z "$found" ]; then
        pass
    elif [ -n "$3" ] && [ "$status" -eq 1 ] && [ "$found" = "$3 " ]; then
        pass
    else
        fail "$1: found \"$found\" (exit $status), not \"$3\""
        cat "$2/errors"
        "$check" "$2" --plugins "$HOB_TEST_PLUGIN_DIR" --timeout 4000
    fi
}

while read -r name code flags; do
    case $name in
    '' | '#'*) continue ;;
    fast_math)
        case $(uname -m) in
        x86_64) ;;
        *) continue ;;
        esac
        ;;
    sanitizer) # a sanitized checker takes it
        case ${HOB_TEST_CFLAGS-} in
        *address*) continue ;;
        esac
        ;;
    esac
    [ "$code" = - ] && code=
    # shellcheck disable=SC2086
    if build "$name" $flags; then
        expect "$name" "$work/$name" "$code"
    else
        fail "$name: does not compile"
    fi
done <"$here/list.txt"

# Every code has a mutant.
for code in $(sed -n 's/^CHECK_CODE(\([A-Z_]*\),.*/\1/p' \
    "$top/ext-sdk/check/codes.def"); do
    if grep -q "^[a-z_]* $code" "$here/list.txt"; then
        pass
    else
        fail "no mutant for $code"
    fi
    if grep -q "^| \`$code\` |" "$top/docs/CHECK.md"; then
        pass
    else
        fail "docs/CHECK.md does not explain $code"
    fi
done

# What the SDK shows to authors is clean, and so are signatures of all sorts.
for name in square linear_relu wide; do
    mkdir "$work/$name"
    source=$top/ext-sdk/examples/$name
    [ -d "$source" ] || source=$here
    # Kernels for GPUs are included as text, as their Makefiles make it.
    for kernel in "$source"/*.cube; do
        [ ! -e "$kernel" ] ||
            sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/.*/"&\\n"/' "$kernel" \
                >"$work/$name/${kernel##*/}.inc"
    done
    # shellcheck disable=SC2086
    if sed "s/@minor@/$minor/g" "$source/$name.json" \
        >"$work/$name/$name.json" &&
        "$sdk" gen extension "$work/$name/$name.json" \
            --header "$work/$name/$name.h" \
            --glue "$work/$name/${name}_glue.h" &&
        ${CC:-cc} $cflags $includes -I"$work/$name" \
            -Wl,--version-script="$top/ext-sdk/plugin.syms" \
            -o "$work/$name/$name.so" "$source/$name.c" -lm
    then
        expect "$name" "$work/$name" ""
    else
        fail "$name: does not compile"
    fi
done

# A kernel that flex's own hides is not silent about it.
"$check" "$work/foreign" --plugins "$HOB_TEST_PLUGIN_DIR" >"$work/out" 2>&1
if grep -q '^note: relu: flex has a kernel of its own.*"priority"' "$work/out"
then
    pass
else
    fail "a note about a hidden kernel"
fi
"$check" "$work/foreign_signature" --plugins "$HOB_TEST_PLUGIN_DIR" \
    >"$work/out" 2>&1
if grep -q 'SIGNATURE.*relu.*: input stands where x is declared' "$work/out"
then
    pass
else
    fail "the parameter that differs"
fi
# What the loader refuses comes with its reason's code and hint.
sed 's/"required_minor": [0-9]*/"required_minor": 99/
    s/"built_minor": [0-9]*/"built_minor": 99/' "$work/good/mutant.json" \
    >"$work/load/mutant.json"
"$check" "$work/load" --plugins "$HOB_TEST_PLUGIN_DIR" >"$work/out" 2>&1
grep -q "found  MINOR: .*: Use the plugin's version for this Hob" "$work/out" &&
    pass || fail "the hint of MINOR"
cp "$work/good/mutant.json" "$work/load" && rm -f "$work/load/mutant.so"
"$check" "$work/load" --plugins "$HOB_TEST_PLUGIN_DIR" >"$work/out" 2>&1
grep -q "found  LIBRARY_MISSING: .*: Build it" "$work/out" &&
    pass || fail "the hint of LIBRARY_MISSING"
# What a decorator writes by default does not stay.
(mkdir "$work/empty" && cd "$work/empty" &&
    "$check" "$HOB_TEST_PLUGIN_DIR/record.json" --op add \
        --plugins "$HOB_TEST_PLUGIN_DIR" >"$work/out" 2>&1) &&
    grep -q "^add on record(flex)" "$work/out" && rmdir "$work/empty" &&
    pass || fail "record"

# The command line.
for arguments in "" "$work/none.json" "--seed x $work/good" \
    "$work/good $work/good" "--nonsense" "$work/good --op none" \
    "$work/good --plugins near" \
    "$work/good --device none"; do
    # shellcheck disable=SC2086
    "$check" $arguments >"$work/out" 2>&1
    [ $? -eq 2 ] && pass || fail "\"$arguments\" is not a wrong call"
done

if ! "$check" "$work/good" --plugins near 2>&1 |
    grep -q "needs an absolute path, not near"; then
    fail "a relative --plugins is not named"
else
    pass
fi

"$check" "$work/wide" --plugins "$HOB_TEST_PLUGIN_DIR" --op w.logs --cases \
    >"$work/out" 2>&1
if grep -q "^case: w.logs on flex: x=f32" "$work/out" &&
    ! grep -q "w.pick" "$work/out"; then
    pass
else
    fail "--op and --cases"
fi

# A finding comes with a program that hob eval runs.
hob=$HOB_TEST_BUILDDIR/../tools/hob
sed -n 's/^ *"program": \({.*}\),$/\1/p' "$work/disagrees/report.json" \
    >"$work/program.json"
if HOB_ADD_PLUGIN_PATH=$work/disagrees "$hob" eval "$work/program.json" \
    --device flex >"$work/out" 2>&1 && grep -q "result_0" "$work/out"; then
    pass
else
    fail "the program of a finding"
    cat "$work/out"
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
