#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# automake's test driver, which is $1; the rest are its arguments. Adds how
# long the test took to the .trs file, whose other readers pass over it:
#   :seconds: WALL PROCESSOR
driver=$1
shift
trs=
last=
for argument in "$@"; do
    [ "$last" = --trs-file ] && trs=$argument
    last=$argument
done

begun=$(date +%s.%N)
"${SHELL-/bin/sh}" "$driver" "$@"
status=$?
ended=$(date +%s.%N)
[ -f "$trs" ] || exit $status

# Not through a pipe: the shell at its end has no children to tell of. The
# second line is theirs, as in "0m1.20s 0m0.05s".
times >"$trs.times"
awk -v begun="$begun" -v ended="$ended" '
    NR == 2 {
        gsub("s", "")
        split($1, user, "m")
        split($2, kernel, "m")
        printf ":seconds: %.2f %.2f\n", ended - begun,
            60 * (user[1] + kernel[1]) + user[2] + kernel[2]
    }' "$trs.times" >>"$trs"
rm -f "$trs.times"
exit $status
