# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced: run_programs NAME... runs test programs of ops on $HOB_TEST_DEVICE
# and ends the script. $tests and $work are as in cube/device.sh. The last line is "N passed, N
# failed"; what a program leaves out it says itself.
passed=0
failed=0

# add WHAT PASSED FAILED: show the log of what has failures.
add()
{
    echo "$1 on $HOB_TEST_DEVICE: $2 passed, $3 failed"
    passed=$((passed + $2))
    failed=$((failed + $3))
    grep '^skipped' "$work/log"
    [ "$3" -eq 0 ] || grep -v '^skipped' "$work/log" | tail -n 40
}

run_program()
{
    "$tests/unit/$1" >"$work/log" 2>&1
    code=$?
    line=$(sed -n 's/^[0-9]*%: Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\)$/\1 \2 \3/p' "$work/log")
    # shellcheck disable=SC2086
    set -- "$1" ${line:-1 0 1}
    if [ "$code" -gt 1 ] && [ $(($3 + $4)) -eq 0 ]; then
        echo "$1 ended with code $code" >>"$work/log"
        set -- "$1" "$2" 1 0
    fi
    add "$1" $(($2 - $3 - $4)) $(($3 + $4))
}

run_programs()
{
    for program in "$@"; do
        run_program "$program"
    done
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
