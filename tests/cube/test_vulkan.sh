#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The backend cube-vulkan on the first device of Vulkan: what hob says of it
# with and without a driver, and kernels under the validation layer and
# spirv-val. The last line is "N passed, N failed, N skipped". test_ops.sh has
# the tests of ops.
set -u

tests=${HOB_TEST_BUILDDIR:-.}
hob=$tests/../tools/hob
device=${HOB_TEST_DEVICE:-cube-vulkan:0}
work=$(mktemp -d) || exit 99
trap 'rm -r -f "$work"' EXIT
passed=0
failed=0
skipped=0

pass()
{
    passed=$((passed + 1))
}

fail()
{
    echo "FAILED $1"
    sed 's/^/    /' "$work/log" | tail -n 25
    failed=$((failed + 1))
}

skip()
{
    echo "skipped $1: $2"
    skipped=$((skipped + 1))
}

finish()
{
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}

# expect NAME PATTERN: the last command's output has it.
expect()
{
    if grep -q -e "$2" "$work/log"; then pass; else fail "$1: no $2"; fi
}

# ---- no driver, no library -------------------------------------------------

none="VK_DRIVER_FILES=/nonexistent VK_ICD_FILENAMES=/nonexistent"
# shellcheck disable=SC2086
env $none "$hob" devices >"$work/log" 2>&1
expect "devices without a driver" "^cube-vulkan .*install"
# shellcheck disable=SC2086
env $none "$hob" doctor >"$work/log" 2>&1
expect "doctor without a driver" "^note  *cube-vulkan  *cannot be opened: .*install"
expect "doctor goes on" "^no problems"

cat >"$work/add.json" <<'END'
{"inputs": [
   {"name": "x", "shape": [3], "dtype": "f32", "data": [1, 2, 3]},
   {"name": "y", "shape": [3], "dtype": "f32", "data": [10, 20, 30]}],
 "program": [["z", "add", ["x", "y"], {}]]}
END
# shellcheck disable=SC2086
env $none "$hob" eval "$work/add.json" --device "$device" >"$work/log" 2>&1
expect "eval without a driver" "device cube-vulkan cannot be opened: .*install"

# ---- is there a device? ----------------------------------------------------

if [ -n "${HOB_TEST_CFLAGS-}" ]; then
    skip "the device" "drivers are not run in a sanitized process"
    finish
fi
"$hob" devices >"$work/log" 2>&1
if grep -q "^cube-vulkan.*install" "$work/log"; then
    skip "the device" "$(sed -n 's/^cube-vulkan  *cube-vulkan  *-  *//p' "$work/log")"
    finish
fi
grep "^cube-vulkan" "$work/log"

# ---- kernels ---------------------------------------------------------------

# A part of the conformance cases: with the layer, which has its say on the
# standard output, and with a folder for their kernels.
cases=$HOB_TEST_SRCDIR/conformance
awk 'NR % 60 == 1' "$cases/tensor.jsonl" >"$work/cases.jsonl"
mkdir "$work/dump"

# run_cases OPTIONS
run_cases()
{
    "$hob" eval --cases "$work/cases.jsonl" --names "$cases/names.json" \
        --device "cube-vulkan{$1}:${device##*:}" >"$work/log" 2>&1
}

run_cases "dump_dir=$work/dump,validation=yes"
if grep -q "KHRONOS_validation is not installed" "$work/log"; then
    skip "validation" "the layer is not installed"
    run_cases "dump_dir=$work/dump"
else
    HOB_TEST_OPTIONS='{"validation": "yes"}' CK_TIMEOUT_MULTIPLIER=20 \
        "$tests/cube/test_vulkan_runtime" >"$work/runtime" 2>&1 ||
        fail "test_vulkan_runtime with validation: $(cat "$work/runtime")"
    cat "$work/runtime" >>"$work/log"
    if grep -q "VUID\|Validation" "$work/log"; then
        fail "validation"
    else
        pass
    fi
fi
expect "cases" "^[1-9][0-9]* passed, 0 failed, 0 skipped$"

# What was asked for and cannot be is said once, and work goes on.
none=/nonexistent
"$hob" eval "$work/add.json" \
    --device "cube-vulkan{cache_dir=$none,dump_dir=$none}:${device##*:}" \
    >"$work/log" 2>&1
expect "work without folders" "z: f32\[3\] = \[11,22,33\]"
for what in "kernels are not kept.*$none cannot be used" "$none/.* cannot be written"; do
    if [ "$(grep -c "$what" "$work/log")" -eq 1 ]; then
        pass
    else
        fail "not once: $what"
    fi
done

if command -v spirv-val >/dev/null; then
    before=$failed
    count=0
    for file in "$work"/dump/*.spv; do
        spirv-val --target-env vulkan1.2 "$file" >"$work/log" 2>&1 ||
            fail "spirv-val ${file##*/}"
        count=$((count + 1))
    done
    [ "$count" -gt 10 ] || fail "only $count kernels were dumped"
    [ "$failed" -gt "$before" ] || pass
else
    skip "spirv-val" "it is not installed"
fi

finish
