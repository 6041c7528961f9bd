#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# hob-abi refuses what may not cross the plugin ABI, at its line and column.
set -u
build=${HOB_TEST_BUILDDIR:-.}
abi=${HOB_ABI:-$build/../ext-sdk/hob-abi}
dir=$build/abi.tmp
failed=0

fail()
{
    echo "FAIL: $*"
    failed=1
}

# refuses PLACE MESSAGE TEXT: a header of TEXT; "\n" is a new line.
refuses()
{
    printf "$3\n" >"$dir/bad.h"
    "$abi" "$dir/bad.h" >"$dir/out" 2>&1
    got=$?
    [ "$got" -eq 1 ] || fail "exit status $got, not 1: $3"
    grep -F -q "bad.h:$1: " "$dir/out" || fail "not at $1: $(cat "$dir/out")"
    grep -F -q "$2" "$dir/out" || fail "not \"$2\": $(cat "$dir/out")"
}

# takes TEXT: it is fine.
takes()
{
    printf "$1\n" >"$dir/good.h"
    "$abi" --output "$dir/good_layout.h" "$dir/good.h" >"$dir/out" 2>&1 ||
        fail "$1: $(cat "$dir/out")"
}

rm -r -f "$dir"
mkdir -p "$dir" || exit 99

# What differs between machines and compilers.
refuses 2:1 "bool is not the same on every machine: write uint32_t" \
    'struct a {\nbool b;\n};'
refuses 2:3 "_Bool is not the same" 'struct a {\n  _Bool b;\n};'
refuses 2:3 "long is not the same on every machine: write int64_t" \
    'struct a {\n  long b;\n};'
refuses 2:9 "unsigned is not the same" 'struct a {\n  const unsigned *b;\n};'
refuses 2:3 "int is not the same on every machine: write int32_t" \
    'struct a {\n  int b;\n};'
refuses 2:3 "short is not the same" 'struct a {\n  short b;\n};'
refuses 1:12 "size_t is not the same on every machine: write uint64_t" \
    'struct a { size_t b; };'
refuses 1:12 "ptrdiff_t is not the same" 'struct a { ptrdiff_t b; };'
refuses 1:12 "volatile is not the same" 'struct a { volatile uint32_t b; };'
refuses 1:12 "_Atomic is not the same" 'struct a { _Atomic uint32_t b; };'
refuses 1:22 "size_t is not the same" 'struct a { void (*b)(size_t count); };'
refuses 1:12 "bool is not the same" 'struct a { bool (*b)(void); };'
refuses 1:17 "char: the sign of a char is the compiler" 'struct a { char b; };'
refuses 2:12 "the size of an enum is the compiler" \
    'enum e { E_A };\nstruct a { enum e b; };'
refuses 2:14 "e: the size of an enum is the compiler" \
    'typedef enum e { E_A } e;\nstruct a { e b; };'
refuses 1:22 "the place of a bit-field is the compiler" \
    'struct a { uint32_t b: 3; };'
refuses 1:23 "an array without a size" 'struct a { uint32_t b[]; };'

# Holes are bytes that nobody sets.
refuses 1:32 "7 bytes of padding before this member" \
    'struct a { uint8_t b; uint64_t c; };'
refuses 1:33 "4 bytes of padding at the end" \
    'struct a { void *b; uint32_t c; };'
refuses 2:33 "4 bytes of padding before this member" \
    'struct a { uint64_t b; };\nstruct c { uint32_t d; struct a e; };'

# Growing.
refuses 1:8 "struct_size is a uint32_t and comes first" \
    'struct a { uint64_t b; uint64_t struct_size; };'
refuses 1:8 "struct_size is a uint32_t and comes first" \
    'struct a { void *b; uint32_t struct_size; uint32_t c; };'
refuses 5:1 'expected members in the order of "Since"' \
    'struct a {\n/* Since 0.3. */\nuint64_t b;\n/* Since 0.2. */\nuint64_t c;\n};'

# What it does not understand.
refuses 1:12 "the type other is not known here" 'struct a { other b; };'
refuses 2:21 "struct b: its size is not known here: use a pointer" \
    'struct b;\nstruct a { struct b c; };'
refuses 1:12 "a union stands without a name" 'struct a { union u b; };'
refuses 1:18 "a member is a number or a pointer" 'struct a { void b(void); };'
refuses 1:23 "expected a number or a known enumerator" \
    'struct a { uint32_t b[N]; };'
refuses 1:24 'expected "]"' 'struct a { uint32_t b[2+2]; };'
refuses 1:23 "expected a size from 1 to 65535" 'struct a { uint32_t b[0]; };'
refuses 3:1 "a # line inside a struct" 'struct a {\n#if X\nuint32_t b;\n};'
refuses 1:1 "expected a struct, an enum, a typedef or a function" 'int x;'
refuses 1:12 "expected a member" 'struct a { };'
refuses 2:1 "not the end of the file" 'struct a { uint32_t b;'
refuses 1:20 'expected ";"' 'enum e { E_A = 1 } x;'
refuses 1:16 "expected a number or a known enumerator" 'enum e { E_A = sizeof };'

# What it does understand, with compilers.
takes '#define A(x) \\\\\n  struct x {\n/* Required. */\nenum { N = 2, M };
typedef struct o o;\ntypedef void (*fn)(o *p, const char *s, ...);
static inline int f(void) { return "};{"[0]; }
struct t { uint32_t struct_size; /* required */ uint32_t b;
  int64_t x, y[M];\n  const uint8_t (*pairs)[2]; fn f; o *const *list;
  /* Required. */\n  fn (*g)(fn f, void *(*make)(void));
  union { double d; int64_t i; } u; /* Since 0.3. */
  void *late; };'
cat >"$dir/use.c" <<'END'
#include <stdint.h>
#include "good.h"
#include "good_layout.h"
int main(void)
{
    const struct abi_struct *t = &abi_structs[0];

    if (sizeof(void *) != 8)
        return 0;
    return !(t->count == 11 && t->is_table && t->size == 88 &&
             t->newer_size == 104 && abi_members[0].is_required &&
             !abi_members[1].is_required && abi_members[3].offset == 16 &&
             abi_members[3].size == 24 && abi_members[7].is_required &&
             abi_members[7].is_pointer && !abi_members[6].is_required &&
             abi_members[9].offset == 72 && abi_members[9].since == 0 &&
             abi_members[10].since == 3 && abi_constants[1].value == 3);
}
END
${CC:-cc} -std=c11 -Wall -Wextra -Werror -I"$dir" "$dir/use.c" -o "$dir/use" &&
    "$dir/use" || fail "the list of good.h is not as it should be"

# Names only: its structs are not ours.
printf 'enum { N = 3 };\nstruct x { long y; };\n' >"$dir/names.h"
printf 'struct a { uint32_t b[N]; struct x *c; };\n' >"$dir/uses.h"
"$abi" --names "$dir/names.h" "$dir/uses.h" 2>"$dir/out" &&
    fail "an array of three before a pointer leaves a hole"
grep -F -q "uses.h:1:36: 4 bytes of padding" "$dir/out" ||
    fail "$(cat "$dir/out")"

"$abi" >/dev/null 2>&1
[ $? -eq 2 ] || fail "no header is a wrong command line"
"$abi" --more x >/dev/null 2>&1
[ $? -eq 2 ] || fail "an unknown option is a wrong command line"
"$abi" "$dir/none.h" >"$dir/out" 2>&1
[ $? -eq 1 ] && grep -q "none.h: No such file" "$dir/out" ||
    fail "a header that is not there"

[ "$failed" -eq 0 ] && rm -r -f "$dir"
exit "$failed"
