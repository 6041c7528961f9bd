#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What hob-sdk writes: equal to the golden files, and compilers take it.
# HOB_TEST_UPDATE=1 writes the golden files anew.
set -u
src=${HOB_TEST_SRCDIR:-$(dirname "$0")/..}
build=${HOB_TEST_BUILDDIR:-.}
sdk=${HOB_SDK:-$build/../ext-sdk/hob-sdk}
dir=$build/gen.tmp
failed=0

fail()
{
    echo "FAIL: $*"
    failed=1
}

# same NAME: the file NAME in $dir equals the golden one.
same()
{
    if [ -n "${HOB_TEST_UPDATE:-}" ]; then
        cp "$dir/$1" "$src/gen/golden/$1"
    fi
    diff -u "$src/gen/golden/$1" "$dir/$1" || fail "$1 is not as it was"
}

# compiles LANGUAGE STANDARD COMPILER FILE: alone, without a warning.
compiles()
{
    command -v "${3%% *}" >/dev/null 2>&1 || {
        echo "skipped: no $3"
        return
    }
    $3 -x "$1" "-std=$2" -pedantic -Wall -Wextra -Wshadow -Werror -fPIC \
        -I"$dir" -I"$src/../core/include" -I"$src/../ext-sdk/include" \
        -I"$dir/include" -c "$4" -o "$dir/out.o" ||
        fail "$3 -std=$2 $4"
}

# runs LANGUAGE STANDARD COMPILER: run_types.c, with sanitizers if it has them.
runs()
{
    command -v "${3%% *}" >/dev/null 2>&1 || {
        echo "skipped: no $3"
        return
    }
    set -- "$1" "$2" "$3" -fsanitize=address,undefined
    echo 'int main(void) { return 0; }' >"$dir/probe.c"
    $3 -x "$1" $4 "$dir/probe.c" -o "$dir/probe" >/dev/null 2>&1 &&
        "$dir/probe" >/dev/null 2>&1 || set -- "$1" "$2" "$3" -g
    $3 -x "$1" "-std=$2" -pedantic -Wall -Wextra -Werror $4 \
        -I"$dir" -I"$src/../core/include" -I"$src/../ext-sdk/include" \
        -I"$dir/include" "$src/gen/run_types.c" -o "$dir/run_types" &&
        "$dir/run_types" || fail "run_types.c as $1"
}

# status WANTED COMMAND..: its exit status; output is kept in $dir/text.
status()
{
    wanted=$1
    shift
    "$@" >"$dir/text" 2>&1
    got=$?
    [ "$got" -eq "$wanted" ] || fail "exit status $got, not $wanted: $*"
}

rm -r -f "$dir"
mkdir -p "$dir/include/hob" || exit 99

status 0 "$sdk" gen builtin --ops-dir "$src/gen/builtin" \
    --header "$dir/ops.h" --table "$dir/ops_table.c" \
    --bodies "$dir/bodies.h" --infer "$dir/infer.h" --markdown "$dir/ops.md"
cat "$dir/text"
for name in ops.h ops_table.c bodies.h infer.h ops.md; do
    same $name
done
status 0 "$sdk" gen extension "$src/gen/extension.json" \
    --header "$dir/demo.h" --glue "$dir/demo_glue.h"
cat "$dir/text"
same demo.h
same demo_glue.h

cp "$dir/ops.h" "$dir/include/hob/ops.h"
echo '#include <hob/ops.h>' >"$dir/ops.c"
echo '#include "demo.h"' >"$dir/demo.c"
for unit in ops demo; do
    compiles c c99 "${CC:-cc}" "$dir/$unit.c"
    compiles c c99 clang "$dir/$unit.c"
    compiles c++ c++11 "${CXX:-c++}" "$dir/$unit.c"
    compiles c++ c++11 clang++ "$dir/$unit.c"
done

# The glue is C11 or C++17 and needs the real hob/ops.h for nothing but bodies.
echo '#include "demo_glue.h"' >"$dir/glue.c"
compiles c c11 "${CC:-cc}" "$dir/glue.c"
compiles c c11 clang "$dir/glue.c"
compiles c++ c++17 "${CXX:-c++}" "$dir/glue.c"
compiles c++ c++17 clang++ "$dir/glue.c"
{
    echo '#define DEMO_PROTOTYPES_ONLY'
    echo '#include "demo_glue.h"'
} >"$dir/glue.c"
compiles c c11 "${CC:-cc}" "$dir/glue.c"

# The built-in ops of this tree: the header alone, in C and C++.
status 0 "$sdk" gen builtin --ops-dir "$src/../core/ops" \
    --header "$dir/include/hob/ops.h"
cat "$dir/text"
compiles c c99 "${CC:-cc}" "$dir/ops.c"
compiles c++ c++11 "${CXX:-c++}" "$dir/ops.c"

# The manifest that docs/SCHEMA.md shows, which uses everything.
sed -n '/^## A full manifest$/,/^## /{/^```json$/,/^```$/{/^```/!p}}' \
    "$src/../docs/SCHEMA.md" >"$dir/doc.json"
status 0 "$sdk" gen extension "$dir/doc.json" --header "$dir/doc.h" \
    --glue "$dir/doc_glue.h"
cat "$dir/text"
grep -q acme_linear_relu "$dir/doc.h" || fail "the manifest of SCHEMA.md"
echo '#include "doc.h"' >"$dir/doc.c"
echo '#include "doc_glue.h"' >"$dir/doc_glue.c"
compiles c c99 "${CC:-cc}" "$dir/doc.c"
compiles c++ c++11 "${CXX:-c++}" "$dir/doc.c"
compiles c c11 "${CC:-cc}" "$dir/doc_glue.c"
compiles c c11 clang "$dir/doc_glue.c"
compiles c++ c++17 "${CXX:-c++}" "$dir/doc_glue.c"
compiles c++ c++17 clang++ "$dir/doc_glue.c"
# Without the header the glue has the types itself.
status 0 "$sdk" gen extension "$dir/doc.json" --glue "$dir/doc_glue.h"
rm "$dir/doc.h"
compiles c c11 "${CC:-cc}" "$dir/doc_glue.c"
# Every op, type and key of it is one that the document explains.
for word in consumes aliases keep instance random capture dynamic let where; do
    grep -q "\"$word\"" "$dir/doc.json" || fail "SCHEMA.md shows no $word"
done

# Names that are keywords, macros or types: what is accepted compiles, in the
# GNU dialects too.
status 0 "$sdk" gen extension "$src/gen/names.json" \
    --header "$dir/names.h" --glue "$dir/names_glue.h"
cat "$dir/text"
echo '#include "names.h"' >"$dir/names.c"
echo '#include "names_glue.h"' >"$dir/names_glue.c"
compiles c c99 "${CC:-cc}" "$dir/names.c"
compiles c++ c++20 "${CXX:-c++}" "$dir/names.c"
compiles c gnu17 "${CC:-cc}" "$dir/names_glue.c"
compiles c gnu17 clang "$dir/names_glue.c"
compiles c++ gnu++20 "${CXX:-c++}" "$dir/names_glue.c"

# What is generated from types.json, run over a host made for the purpose.
status 0 "$sdk" gen extension "$src/gen/types.json" \
    --header "$dir/types.h" --glue "$dir/types_glue.h"
cat "$dir/text"
runs c c11 "${CC:-cc}"
runs c++ c++17 "${CXX:-c++}"
# The helpers for kernels: C and C++.
for header in infer kernel; do
    echo "#include <hob/ext/$header.h>" >"$dir/$header.c"
    compiles c c99 "${CC:-cc}" "$dir/$header.c"
    compiles c++ c++11 "${CXX:-c++}" "$dir/$header.c"
done

# Editors are told of the schema.
sed '1s#{#{"$schema": "plugin.schema.json",#' "$src/gen/extension.json" \
    >"$dir/schema.json"
grep -q schema "$dir/schema.json" || fail "no \$schema to test with"
status 0 "$sdk" gen extension "$dir/schema.json"
cat "$dir/text"

# The command line.
status 2 "$sdk"
status 2 "$sdk" gen
status 2 "$sdk" gen builtin
status 2 "$sdk" gen extension
status 2 "$sdk" gen builtin --ops-dir
status 2 "$sdk" gen builtin --glue x
status 2 "$sdk" frobnicate
status 0 "$sdk" --help
grep -q 'hob-sdk gen extension' "$dir/text" || fail "--help"
status 0 "$sdk" --version
status 0 "$sdk" new --help
status 0 "$sdk" pack --help
status 2 "$sdk" pack -o
status 2 "$sdk" pack a b
status 2 "$sdk" pack --deep
status 2 "$sdk" new

# The checker is another program: that beside this one, else in libexec/hob.
mkdir -p "$dir/tree/bin" "$dir/tree/libexec/hob"
cp "$sdk" "$dir/tree/bin/hob-sdk"
if "$dir/tree/bin/hob-sdk" check --version >/dev/null 2>&1; then
    echo "skipped: this Hob is installed, so its checker is found"
else
    status 1 "$dir/tree/bin/hob-sdk" check x.so
    grep -q "hob-sdk-check is not installed" "$dir/text" || fail "no checker"
fi
checker="$dir/tree/libexec/hob/hob-sdk-check"
{
    echo '#!/bin/sh'
    echo 'echo "$# $*"; exit 7'
} >"$checker"
chmod +x "$checker"
status 7 "$dir/tree/bin/hob-sdk" check "a b" --json
grep -q "^2 a b --json" "$dir/text" || fail "what the checker is given"
status 7 "$dir/tree/bin/hob-sdk" check --help
sed 's/ 7/ 8/' "$checker" >"$dir/tree/bin/hob-sdk-check"
chmod +x "$dir/tree/bin/hob-sdk-check"
status 8 "$dir/tree/bin/hob-sdk" check

status 1 "$sdk" gen builtin --ops-dir "$dir/none"
grep -q "$dir/none: No such file" "$dir/text" || fail "missing folder"
mkdir "$dir/empty"
status 1 "$sdk" gen builtin --ops-dir "$dir/empty"
grep -q "no \*.json in it" "$dir/text" || fail "empty folder"
status 1 "$sdk" gen extension "$dir"
grep -q "not a regular file" "$dir/text" || fail "folder as manifest"
status 1 "$sdk" gen extension "$src/gen/extension.json" \
    --header "$dir/none/demo.h"
grep -q "$dir/none/demo.h.tmp: No such file" "$dir/text" || fail "no folder"

# What has not changed is not written, so that make rebuilds nothing.
touch -d '2001-01-01' "$dir/demo.h"
status 0 "$sdk" gen extension "$src/gen/extension.json" --header "$dir/demo.h"
[ -z "$(find "$dir/demo.h" -newer "$src/gen/extension.json")" ] ||
    fail "written for nothing"
echo >>"$dir/demo.h"
status 0 "$sdk" gen extension "$src/gen/extension.json" --header "$dir/demo.h"
same demo.h

# A failure leaves the old output and nothing else.
echo '{"family": "x", "ops": [{}]}' >"$dir/bad.json"
mkdir "$dir/bad" && mv "$dir/bad.json" "$dir/bad"
echo old >"$dir/kept.h"
status 1 "$sdk" gen builtin --ops-dir "$dir/bad" --header "$dir/kept.h"
[ "$(cat "$dir/kept.h")" = old ] || fail "a failure overwrote the output"
[ ! -e "$dir/kept.h.tmp" ] || fail "a failure left a file"

[ $failed -ne 0 ] || rm -r -f "$dir"
exit $failed
