#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every public header compiles alone, as C99 and as C++, without a warning.
set -u

failed=0
checked=0
work=$(mktemp -d) || exit 99
trap 'rm -r -f "$work"' EXIT

# try COMPILER SUFFIX FLAG HEADER
try()
{
    printf '#include <%s>\n#include <%s>\nint nothing_else;\n' "$4" "$4" \
        >"$work/alone.$2"
    checked=$((checked + 1))
    # shellcheck disable=SC2086
    if ! $1 $3 -pedantic -Wall -Wextra -Wshadow -Werror -fsyntax-only \
        -I"$HOB_TEST_BUILDDIR/../core/include" \
        -I"$HOB_TEST_SRCDIR/../core/include" \
        -I"$HOB_TEST_SRCDIR/../ext-sdk/include" \
        "$work/alone.$2"; then
        echo "FAIL: <$4> with $1 $3"
        failed=$((failed + 1))
    fi
}

cxx=$(command -v g++ || command -v clang++ || true)
[ -n "$cxx" ] || echo "no C++ compiler: headers are checked as C only"
for header in \
    "$HOB_TEST_SRCDIR"/../core/include/hob/*.h \
    "$HOB_TEST_BUILDDIR"/../core/include/hob/ops.h \
    "$HOB_TEST_SRCDIR"/../ext-sdk/include/hob/ext/*.h; do
    [ -f "$header" ] || continue
    name=hob/${header##*/hob/}
    try "${CC:-cc}" c -std=c99 "$name"
    [ -z "$cxx" ] || try "$cxx" cc -std=c++11 "$name"
done
echo "$checked compilations, $failed failed"
[ "$checked" -gt 0 ] && [ "$failed" -eq 0 ]
