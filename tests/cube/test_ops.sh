#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests of ops on HOB_TEST_DEVICE, or else on the first Vulkan device; with
# --all those too that take long. The last line is "N passed, N failed, N
# skipped". Exit code 77: nothing could be tried. test_cases.sh has the
# conformance cases.
set -u

. "$HOB_TEST_SRCDIR/cube/device.sh"
passed=0
failed=0
skipped=0

# add WHAT PASSED FAILED SKIPPED: show the log of what has failures.
add()
{
    echo "$1 on $HOB_TEST_DEVICE: $2 passed, $3 failed, $4 skipped"
    passed=$((passed + $2))
    failed=$((failed + $3))
    skipped=$((skipped + $4))
    grep '^skipped' "$work/log"
    [ "$3" -eq 0 ] || grep -v '^skipped' "$work/log" | tail -n 40
}

run_program()
{
    "$tests/unit/$1" >"$work/log" 2>&1
    line=$(sed -n 's/^[0-9]*%: Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\)$/\1 \2 \3/p' "$work/log")
    # shellcheck disable=SC2086
    set -- "$1" ${line:-1 0 1}
    add "$1" $(($2 - $3 - $4)) $(($3 + $4)) 0
}

programs="test_bodies_nn test_bodies_nd test_traps test_quant_products
    test_differential test_long_rows"
# These make more launches, or ask for more kernels, than there is time for.
longer="test_bodies test_bodies_decompose test_quant test_autodiff
    test_autodiff_rules test_bodies_attention test_conv_halves test_scan"
if [ "${1-}" != --all ]; then # each round asks for more kernels
    HOB_TEST_ROUNDS=${HOB_TEST_ROUNDS-4}
    export HOB_TEST_ROUNDS
fi
for program in $programs; do
    run_program "$program"
done
for program in $longer; do
    if [ "${1-}" = --all ]; then
        run_program "$program"
    else
        echo "skipped $program on $HOB_TEST_DEVICE: only with --all"
        skipped=$((skipped + 1))
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
