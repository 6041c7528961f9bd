#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/BURN.md names every operation of Burn's backend layer once, and every
# op and function that it names beside them exists. The last line is
# "N passed, N failed, N skipped".
set -u

top=${HOB_TEST_SRCDIR:-$(dirname "$0")/..}/..
hob=${HOB_TEST_BUILDDIR:+$HOB_TEST_BUILDDIR/../tools/hob}
hob=${hob:-hob}
work=$(mktemp -d) || exit 99
trap 'rm -r -f "$work"' EXIT
failed=0

# The names in backticks of the lines on stdin, one a line.
names()
{
    # shellcheck disable=SC2016
    grep -o '`[a-z0-9_]*\(()\)\{0,1\}`' | tr -d '`'
}

fail()
{
    echo "FAILED docs/BURN.md: $1"
    failed=$((failed + 1))
}

awk -F '|' '/^\| `/ { print $2 } /^## Distributed/ { alone = 1 }
    alone && /`/ { print }' "$top/docs/BURN.md" | names | sort >"$work/burn"
count=$(wc -l <"$work/burn")
[ "$count" -eq 439 ] || fail "$count operations of Burn's, not 439"
twice=$(uniq -d "$work/burn" | tr '\n' ' ')
[ -z "$twice" ] || fail "named twice: $twice"

awk -F '|' '/^\| `/ { print $3 }' "$top/docs/BURN.md" | names | sort -u \
    >"$work/ours"
"$hob" ops | awk '{ print $1 }' | sort -u >"$work/ops"
grep -h -o 'hob_[a-z0-9_]*(' "$top"/core/include/hob/*.h | sed 's/$/)/' |
    sort -u >"$work/functions"
for name in $(sort -u "$work/ops" "$work/functions" | comm -23 "$work/ours" -)
do
    fail "there is no $name"
done

checked=$((count + $(wc -l <"$work/ours")))
echo "$((checked - failed)) passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
