#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests of ops and the conformance cases on HOB_TEST_DEVICE, or else on the
# first Vulkan device, each case once. With --all the cases in all layouts,
# recorded and not, and the tests that take long. The last line is "N passed, N
# failed, N skipped". Exit code 77: nothing could be tried.
set -u

tests=${HOB_TEST_BUILDDIR:-.}
hob=$tests/../tools/hob
HOB_TEST_DEVICE=${HOB_TEST_DEVICE:-cube-vulkan:0}
export HOB_TEST_DEVICE
work=$(mktemp -d) || exit 99
trap 'rm -r -f "$work"' EXIT
passed=0
failed=0
skipped=0

if [ -n "${HOB_TEST_CFLAGS-}" ]; then
    echo "skipped: drivers are not run in a sanitized process"
    exit 77
fi
cat >"$work/one.json" <<'END'
{"inputs": [], "program": [["x", "full", [], {"shape": [2], "value": 1}]]}
END
if ! "$hob" eval "$work/one.json" --device "$HOB_TEST_DEVICE" \
    >"$work/log" 2>&1; then
    tail -n 3 "$work/log"
    echo "skipped: $HOB_TEST_DEVICE does not open"
    exit 77
fi

# What takes longest on a driver for processors is to compile kernels: one
# process for all tests of a program compiles each once, and Mesa keeps what it
# made in XDG_CACHE_HOME for the next. A few threads more do not help kernels
# of a dozen elements. NVIDIA's driver opens about thirty times a process, so
# there CK_FORK=yes is needed.
CK_FORK=${CK_FORK-no}
LP_NUM_THREADS=${LP_NUM_THREADS-1}
export CK_FORK LP_NUM_THREADS
cases=--once
[ "${1-}" != --all ] || cases=

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

# shellcheck disable=SC2086
"$HOB_TEST_SRCDIR/conformance/test_conformance.sh" $cases >"$work/log" 2>&1
line=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$work/log")
# shellcheck disable=SC2086
add conformance ${line:-0 1 0}

programs="test_bodies_nn"
# These make more launches, or ask for more kernels, than there is time for.
longer="test_bodies test_bodies_nd test_bodies_decompose test_quant
    test_quant_products test_traps test_autodiff test_autodiff_rules
    test_bodies_attention test_conv_halves test_differential"
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
