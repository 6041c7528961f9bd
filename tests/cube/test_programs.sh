#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs of this folder on HOB_TEST_DEVICE, or else on the first Vulkan
# device, against flex: sizes at which kernels take other ways than in the
# small cases of conformance. What flex refuses is refused in the same words.
# The last line is "N passed, N failed, N skipped".
set -u

. "$HOB_TEST_SRCDIR/cube/device.sh"
here=$HOB_TEST_SRCDIR/cube
device=$HOB_TEST_DEVICE
passed=0
failed=0

# program OP INPUTS ATTRIBUTES: one call, of x of 3 by 4 and i = [1, 2, 9].
program()
{
    cat <<EOF
{"inputs": [{"name": "x", "dtype": "f32", "shape": [3, 4],
             "data": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]},
            {"name": "i", "dtype": "i32", "shape": [3], "data": [1, 2, 9]},
            {"name": "g", "dtype": "i64", "shape": [1, 4],
             "data": [0, 1, -2, 7]},
            {"name": "v", "dtype": "f32", "shape": [1, 4],
             "data": [1, 2, 3, 4]}],
 "program": [["y", "$1", [$2], {$3}]],
 "outputs": [{"value": "y"}]}
EOF
}

# What DEVICE says of a program, without its name.
refusal()
{
    "$hob" eval "$work/bad.json" --device "$1" 2>&1 |
        grep -o 'indices\[.*' | head -n 1
}

check_refusal()
{
    program "$@" >"$work/bad.json"
    ours=$(refusal "$device")
    if [ -n "$ours" ] && [ "$ours" = "$(refusal flex)" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $1 refuses with \"$ours\", flex with \"$(refusal flex)\""
    fi
}

for file in "$here"/programs/*.json; do
    if "$hob" eval "$file" --device flex --device "$device" \
        --tolerance 2e-5 >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $(basename "$file")"
        grep -v '= \[' "$work/log" | tail -n 20
    fi
done
check_refusal select '"x", "i"' '"dim": 0'
check_refusal gather '"x", "g"' '"dim": 0'
check_refusal scatter_add '"x", "g", "v"' '"dim": 0'
check_refusal select_add '"x", "i", "x"' '"dim": 0'
check_refusal embedding '"x", "g"' ''
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
