#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# hob-sdk new as an outside author has it: every combination of its flags, in
# C and in C++, is made, built without a warning, tested, packed, installed
# and used, with an installed Hob and nothing of its source. And what it
# refuses, and that nothing is left then.
set -u
# What is built here, a compiler builds: test_extensions.sh does so with
# sanitizers, and the units of hob-sdk have tests of their own.
if [ -n "${HOB_TEST_CFLAGS-}" ]; then
    echo "skipped: it runs without sanitizers"
    exit 77
fi
. "$HOB_TEST_SRCDIR/examples/stage.sh"
# The checker tries each device that opens: with drivers of GPUs that would take
# minutes, and differ from machine to machine.
CUDA_VISIBLE_DEVICES=
VK_DRIVER_FILES=/nonexistent
VK_ICD_FILENAMES=/nonexistent
export CUDA_VISIBLE_DEVICES VK_DRIVER_FILES VK_ICD_FILENAMES

sdk=$($PKG_CONFIG --variable=hob_sdk hob-sdk)
hob=$($PKG_CONFIG --variable=hob hob-sdk)
HOME=$work/home
export HOME
unset XDG_DATA_HOME XDG_CONFIG_HOME
mkdir "$HOME" "$work/projects"
cd "$work/projects" || exit 99
passed=0
failed=0

pass()
{
    passed=$((passed + 1))
    echo "PASS: $*"
}

fail()
{
    failed=$((failed + 1))
    echo "FAIL: $*"
    tail -n 30 "$work/log"
}

# try WHAT COMMAND...
try()
{
    what=$1
    shift
    if "$@" >"$work/log" 2>&1; then pass "$what"
    else fail "$what"; fi
}

# ---- every combination ----

# Where the compiler says which files it has read, in .d files.
warnings="-O1 -Wall -Wextra -Wshadow -Werror -MD ${HOB_TEST_CFLAGS-}"
strict="-Wstrict-prototypes -Wmissing-prototypes"
cxx=${CXX:-g++}
command -v "${cxx%% *}" >/dev/null 2>&1 || cxx=

# project NAME FLAG...
project()
{
    name=$1
    shift
    try "$name: hob-sdk new $*" "$sdk" new "$name" "$@"
    try "$name: make check" make -s -C "$name" check \
        ${CC:+CC="$CC"} CFLAGS="$warnings $strict" \
        ${cxx:+CXX="$cxx"} CXXFLAGS="$warnings"
    grep -q "$name: passed" "$work/log" || fail "$name: its test has run"
    if [ -x "$stage/libexec/hob/hob-sdk-check" ] &&
        ! grep -q "^0 findings" "$work/log"; then
        fail "$name: the checker has run"
    fi
    so=$(echo "$name"/build/*.so)
    if [ "$(nm -D --defined-only "$so" | wc -l)" -ne 1 ]; then
        fail "$name: exports one symbol"
    fi
}

count=0
for language in c cxx; do
    if [ "$language" = cxx ] && [ -z "$cxx" ]; then
        echo "skipped: no C++ compiler"
        continue
    fi
    for kernel in "" --with-kernel; do
        for backward in "" --with-backward; do
            for types in "" --with-types; do
                count=$((count + 1))
                set -- $kernel $backward $types
                [ "$language" = c ] || set -- "$@" --cxx
                project "acme.op$count" "$@"
            done
        done
    done
    set -- --with-kernel --with-cube-kernel --with-backward
    [ "$language" = c ] || set -- "$@" --cxx
    project "acme.gpu_$language" "$@"
    # A device that does not open is told of, one that does is checked.
    grep -q "acme.gpu_$language on cube-\|: cube is not checked: " \
        "$work/log" || fail "acme.gpu_$language: what became of cube is told"
done

if python3 -c 'import jsonschema; jsonschema.Draft202012Validator' \
    2>/dev/null; then
    try "the manifests are valid" python3 - "$stage" acme.*/*.json <<'END'
import json, sys, jsonschema
with open(sys.argv[1] + "/share/hob/schema/plugin.schema.json") as file:
    schema = jsonschema.Draft202012Validator(json.load(file))
for path in sys.argv[2:]:
    with open(path) as file:
        schema.validate(json.load(file))
END
else
    echo "skipped: no python3 with jsonschema"
fi

# ---- nothing of the source was read ----

# Hob may be installed within its own source, as by ./quickstart.
source=$(cd "$HOB_TEST_SRCDIR/.." && pwd)
build=$(cd "$HOB_TEST_BUILDDIR/.." && pwd)
outside()
{
    sed -e "s#$stage/#STAGE/#g" -e "s#$prefix/#PREFIX/#g" \
        -e "s#$prefix\$#PREFIX#" | grep -o -E "(^|[ =:,\"]|-[IL])($source|$build)/[^ ]*"
}

find . -name '*.d' -exec cat {} + >"$work/read"
find "$stage/share/hob" "$stage/lib/pkgconfig" -type f -exec cat {} + \
    >"$work/installed"
if ! grep -q "$stage/include/hob/hob.h" "$work/read"; then
    fail "the compiler tells which headers it has read"
elif outside <"$work/read" >"$work/log"; then
    fail "no header of Hob's source is read"
else
    pass "no header of Hob's source is read"
fi
if outside <"$work/installed" >"$work/log"; then
    fail "no installed file names Hob's source"
else
    pass "no installed file names Hob's source"
fi
(unset LD_LIBRARY_PATH && ldd acme.op1/build/test) >"$work/log" 2>/dev/null
if grep -q "libhob.*$stage/lib" "$work/log"; then
    pass "the test uses the installed libhob"
elif grep -q libhob "$work/log"; then
    fail "the test uses the installed libhob"
fi

# ---- shipped ----

try "make pack" make -s -C acme.op7 pack
package=$(echo acme.op7/*.hobx)
try "make install" make -s -C acme.op7 install
try "hob ops knows it" "$hob" ops acme.op7
try "hob remove" "$hob" remove --user acme.op7
try "hob install of the package" "$hob" install --user "$package"
try "hob ops knows it again" "$hob" ops acme.op7
try "hob disable" "$hob" disable --user acme.op7
if "$hob" ops acme.op7 >"$work/log" 2>&1; then
    fail "a disabled op is not there"
else
    pass "a disabled op is not there"
fi
try "hob enable" "$hob" enable --user acme.op7
try "hob ops knows it once more" "$hob" ops acme.op7
try "hob remove" "$hob" remove --user acme.op7
try "make clean" make -s -C acme.op7 clean
if [ -e acme.op7/build ]; then fail "make clean leaves no build folder"; fi

# ---- refused ----

# refuse STATUS MESSAGE ARGUMENT...
refuse()
{
    status=$1
    message=$2
    shift 2
    ls -a >"$work/before"
    "$sdk" new "$@" >"$work/log" 2>&1
    got=$?
    ls -a >"$work/after"
    if [ $got -ne "$status" ]; then
        fail "hob-sdk new $* ends with $status, not $got"
    elif ! grep -q "$message" "$work/log"; then
        fail "hob-sdk new $* says $message"
    elif ! cmp -s "$work/before" "$work/after"; then
        fail "hob-sdk new $* leaves nothing"
    else
        pass "hob-sdk new $* is refused"
    fi
}

refuse 1 "acme.op1 is there already and is not empty" acme.op1
: >a.file
refuse 1 "a.file is there already and is no folder" a.file
for name in scale acme. .scale Acme.scale acme.my-op acme.a.b 1.2 a/b.c; do
    refuse 1 "is no name of an extension" "$name"
done
refuse 2 "which name"
refuse 2 "unknown argument --with-wings" acme.x --with-wings
refuse 2 "unknown argument acme.y" acme.x acme.y
mkdir acme.empty
try "an empty folder is taken" "$sdk" new acme.empty
[ -f acme.empty/Makefile ] || fail "an empty folder is filled"
if [ "$(id -u)" -ne 0 ]; then
    mkdir locked && chmod a-w locked
    (cd locked && refuse 1 "locked\|ermission" acme.x)
fi
# Without its templates it says where they should be.
cp "$sdk" "$work/hob-sdk"
mv "$stage/share/hob/sdk/template" "$work/template"
if [ -e "$prefix/share/hob/sdk/template" ]; then
    echo "skipped: this Hob is installed, so its templates are found"
else
    refuse 1 "the templates are not installed" acme.x
fi
mv "$work/template" "$stage/share/hob/sdk/template"
# A broken template is an error with its line, and no project.
chmod u+w "$stage/share/hob/sdk/template/README.md"
echo '@NOTHING@' >"$stage/share/hob/sdk/template/README.md"
refuse 1 "README.md:1: there is no value NOTHING" acme.x

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
