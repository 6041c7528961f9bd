#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every sub-command of hob: tables and JSON, exit codes, messages.
set -u

hob=$HOB_TEST_BUILDDIR/../tools/hob
sdk=$HOB_TEST_BUILDDIR/../ext-sdk/hob-sdk
mock=$HOB_TEST_BUILDDIR/mock/.libs/mock_extension.so
# Out of reach of other users, or the loader would not trust it.
work=$(mktemp -d) || exit 99
trap 'chmod -R u+w "$work"; rm -r -f "$work"' EXIT
HOME=$work/home
XDG_DATA_HOME=$HOME/data
XDG_CONFIG_HOME=$HOME/config
XDG_DATA_DIRS=$work/none
XDG_CONFIG_DIRS=$work/none
export HOME XDG_DATA_HOME XDG_CONFIG_HOME XDG_DATA_DIRS XDG_CONFIG_DIRS
mkdir -p "$XDG_DATA_HOME/hob/plugins.d" "$XDG_CONFIG_HOME/hob" "$work/ext"
# As on a machine without a GPU: which drivers this one has must not matter.
CUDA_VISIBLE_DEVICES=
VK_DRIVER_FILES=/nonexistent
VK_ICD_FILENAMES=/nonexistent
export CUDA_VISIBLE_DEVICES VK_DRIVER_FILES VK_ICD_FILENAMES
gpus=
for id in cube-cuda cube-vulkan; do
    [ ! -e "$HOB_TEST_PLUGIN_DIR/$id.json" ] || gpus="$gpus $id"
done

passed=0
failed=0
skipped=0

pass()
{
    passed=$((passed + 1))
    echo "PASS: $*"
}

fail()
{
    failed=$((failed + 1))
    echo "FAIL: $*"
    sed 's/^/    /' "$work/out" "$work/err" | head -n 20
}

# try CODE ARGUMENT...: hob must end with CODE, and say something.
try()
{
    what="hob $(shift; echo "$*" | cut -c 1-70) ends with $1"
    code=$1
    shift
    "$hob" "$@" >"$work/out" 2>"$work/err"
    got=$?
    if [ $got -ne "$code" ]; then
        fail "$what, not $got"
    elif ! [ -s "$work/out" ] && ! [ -s "$work/err" ]; then
        fail "$what, and says something"
    else
        pass "$what"
    fi
}

# Of the last call: standard output, error or a place in the JSON is so.
out_has()
{
    if grep -q -- "$1" "$work/out"; then pass "  prints $1"
    else fail "  prints $1"; fi
}

out_lacks()
{
    if grep -q -- "$1" "$work/out"; then fail "  prints no $1"
    else pass "  prints no $1"; fi
}

err_has()
{
    if grep -q -- "$1" "$work/err"; then pass "  says $1"
    else fail "  says $1"; fi
}

json_is()
{
    if ! [ -x "$work/json_check" ]; then
        skipped=$((skipped + 1))
        return
    fi
    value=$("$work/json_check" "$1" <"$work/out")
    if [ "$value" = "$2" ]; then pass "  $1 is $2"
    else fail "  $1 is \"$2\", not \"$value\""; fi
}

# shellcheck disable=SC2046,SC2086
${CC:-cc} ${HOB_TEST_CFLAGS-} $(pkg-config --cflags libcjson) \
    -o "$work/json_check" "$HOB_TEST_SRCDIR/cli/json_check.c" \
    $(pkg-config --libs libcjson) ||
    echo "no C compiler or cJSON: JSON is not looked into"

# ---- calls ----

try 2
err_has "usage: hob COMMAND"
try 0 --help
out_has "install "
try 0 --version
out_has "^hob [0-9]"
try 2 fly
err_has 'no command "fly"'
for command in doctor plugins why devices ops config eval install remove \
    enable disable; do
    try 0 $command --help
    out_has "usage: hob $command"
done
for command in "doctor x" "plugins x" "why" "why a b" "devices x" "ops a b" "ops --x" \
    "config x" "eval" "eval a b" "eval --device" "eval --cases" \
    "eval --x" "eval --stats --cases a" "eval --cases a --device flex --device flex" "install" \
    "install a b" "install --user --system a" "remove" "remove a b" \
    "enable" "enable a b" "disable --user --system a" "disable --off a"; do
    # shellcheck disable=SC2086
    try 2 $command
    err_has "^usage: hob "
done
# The word that is not understood is named.
for command in "doctor x" "plugins --json x" "why a x" "devices x" "ops a x" \
    "config x" "eval a x" "eval --stats x --cases a" "install a x" \
    "remove x --user b" "enable a x" "disable x a"; do
    # shellcheck disable=SC2086
    try 2 $(echo "$command" | sed 's/x/--wrong/')
    err_has '^hob [a-z]*: "--wrong" is not understood'
done
try 2 enable a x
err_has '^hob enable: "x" is not understood'

# What cannot be written is no success.
if [ -c /dev/full ]; then
    for command in "$hob --help" "$hob config" "$hob plugins --json" \
        "$sdk --version" "$sdk check --version" "$sdk gen --help"; do
        if $command >/dev/full 2>"$work/err"; then
            fail "  $command to a full disk"
        fi
        : >"$work/out"
        err_has "cannot write all of the output"
    done
else
    skipped=$((skipped + 1))
    echo "skipped: there is no /dev/full"
fi

# ---- plugins and why ----

cat >"$work/ext/mock.json" <<END
{"manifest_version": 1, "id": "mock", "version": "1.0.0",
 "kind": "extension", "abi": ABI, "library": "mock_extension.so",
 "namespace": "demo",
 "ops": [{"op": "square", "signature": "(x: Float) -> x",
          "infer": "same", "doc": "x * x.",
          "backends": ["*"], "body": true}]}
END
abi=$(sed -n 's/^ *"abi": *\({[^}]*}\),*$/\1/p' \
    "$HOB_TEST_PLUGIN_DIR/flex.json")
sed "s/ABI/$abi/" "$work/ext/mock.json" >"$work/ext/m" &&
    mv "$work/ext/m" "$work/ext/mock.json"
cp "$mock" "$work/ext/" || exit 99
echo '{"id": 7' >"$XDG_DATA_HOME/hob/plugins.d/broken.json"
sed -e 's/"mock"/"far"/' -e 's/"mock_extension.so"/{"windows-x86_64": "x"}/' \
    "$work/ext/mock.json" >"$XDG_DATA_HOME/hob/plugins.d/far.json"

try 0 plugins
out_has "^ID  *VERSION  *KIND  *STATE"
out_has "^flex .*backend .*DISC-4"
out_has "^autodiff .*decorator"
out_has "^cube-cuda .*backend .*DISC-4"
for id in $gpus; do out_has "^$id .*DISCOVERED"; done
out_has "REFUSED .*broken.json:2:1"
out_lacks "^far "
out_has "\-\-all shows them"
try 0 plugins --all
out_has "^far .*NOT_FOR_THIS_PLATFORM"
try 0 plugins --json
json_is /0/id autodiff
json_is /0/selector autodiff
json_is /0/state DISCOVERED
try 0 why flex
out_has "flex"
try 1 why ghost
out_has "no manifest names it"
out_has "broken.json"
out_has "DISC-7"
out_lacks "did you mean"
try 1 why flx
out_has 'flx: no manifest names it; did you mean "flex"?'
try 0 why flex --json
json_is /records/0/id flex
json_is /records/0/rule DISC-4
HOB_PLUGINS_DISABLE=flex
export HOB_PLUGINS_DISABLE
try 0 why flex
out_has "DISABLED"
unset HOB_PLUGINS_DISABLE

# ---- doctor ----

# Whatever an installed configuration says: no device is named.
no_device='{"device": []}'
echo "$no_device" >"$XDG_CONFIG_HOME/hob/hob.json"
try 1 doctor
out_has "^ok  *hob  *[0-9]"
out_has "^ok  *flex  *.*first result after"
out_has "^ok  *autodiff(flex)  *computes"
for id in $gpus; do out_has "^note  *$id  *cannot be opened: "; done
out_has "^note  *default device  *none is named"
out_has "do: Set \"device\" in hob.json, or HOB_DEVICE=flex"
out_has "^problem  .*JSON_SYNTAX: .*broken.json:2:1"
out_has "^ok  *memory  *flex counts: [1-9]"
out_has "^ok  *threads  *[1-9]"
out_has "^1 problem$"
HOB_PLUGIN_PATH=$HOB_TEST_PLUGIN_DIR
HOB_DEVICE="autodiff(flex)"
export HOB_PLUGIN_PATH HOB_DEVICE
(cd "$work/ext" && try 0 doctor)
out_has "^ok  *HOB_DEVICE  *is set to"
out_has "^ok  *default device  *autodiff(flex)"
out_has "^no problems$"
try 0 doctor --json
json_is /0/about hob
json_is /0/standing ok
if [ "$(ls "$work/ext")" = "mock.json
mock_extension.so" ]; then pass "  writes nothing"
else fail "  writes nothing"; fi
HOB_DEVICE=ghost
try 1 doctor
out_has "^problem  *default device  *no backend plugin serves \"ghost\""
unset HOB_DEVICE
HOB_PLUGINS_DISABLE=autodiff
export HOB_PLUGINS_DISABLE
try 0 doctor
out_has "^note  *autodiff  *DISABLED"
out_has "do: Take it out of HOB_PLUGINS_DISABLE"
unset HOB_PLUGINS_DISABLE
HOB_PLUGIN_PATH=$work/ext
try 1 doctor
out_has "^problem  *devices  *no device computes"
HOB_PLUGIN_PATH=$HOB_TEST_PLUGIN_DIR:folder:$work/none
try 1 doctor
out_has "^problem  *HOB_PLUGIN_PATH  *\"folder\" is a relative path"
out_has "^problem  *HOB_PLUGIN_PATH  *\".*none\" is not there"
out_has "^2 problems$"
HOB_PLUGIN_PATH=$HOB_TEST_PLUGIN_DIR
echo '{"plugins": {"flex": {"options": {"isa": "v9"}}}}' \
    >"$XDG_CONFIG_HOME/hob/hob.json"
try 1 doctor
out_has "^problem  *flex  *does not compute: .*option \"isa\" is \"v9\""
out_has "^1 problem$"
# The example of the man page is all right where it is the whole configuration.
sed -n '/^\.SH EXAMPLE/,/^\.fi/{/^\./d;p;}' \
    "$HOB_TEST_SRCDIR/../docs/man/hob-config.5" >"$XDG_CONFIG_HOME/hob/hob.json"
try 0 doctor
out_has '^ok  *default device  *autodiff{checkpoint=balanced}(flex)'
out_has '^note  *plugins.disabled  *PATTERN_UNUSED: "demo.\*"'
out_has "^no problems$"
unset HOB_PLUGIN_PATH
echo '{"device": 3}' >"$XDG_CONFIG_HOME/hob/hob.json"
try 1 doctor
out_has "^problem  .*hob.json  *CONFIG_SYNTAX: .*:1:12: /device: array"
try 0 config
out_has "^note: .*hob.json: .*hob.json:1:12: /device: array expected"
echo "$no_device" >"$XDG_CONFIG_HOME/hob/hob.json"

# Listing opens no library; opening a device does, as the check of the check.
LD_DEBUG=files
export LD_DEBUG
for command in plugins ops config "why flex"; do
    # shellcheck disable=SC2086
    try 0 $command
    cat "$work/err" >>"$work/opened"
done
try 0 devices
unset LD_DEBUG
if ! grep -q "flex\.so" "$work/err"; then
    skipped=$((skipped + 1))
    echo "skipped: this system's LD_DEBUG tells no files"
elif grep -q "flex\.so\|cube-\|libcuda\|libvulkan" "$work/opened"; then
    fail "lists plugins without opening one"
else
    pass "lists plugins without opening one"
fi

# ---- devices and config ----

try 0 devices
out_has "^flex "
out_has "^default: none (no device is named"
out_has "^cube-cuda .*CUDA_VISIBLE_DEVICES is empty"
for id in $gpus; do out_has "^$id  *$id  *-  "; done
try 0 devices --json
json_is /0/device flex
json_is /0/problem null
json_is /1/device cube-cuda
json_is /1/hardware null
echo '{"device": ["moon", "autodiff(flex)"]}' >"$XDG_CONFIG_HOME/hob/hob.json"
try 0 devices
out_has "^default: autodiff(flex)"
try 0 config
out_has "hob/hob.json"
out_has "^  moon"
try 0 config --json
json_is /device/1 "autodiff(flex)"
echo '{"devcie": "flex"}' >"$XDG_CONFIG_HOME/hob/hob.json"
try 0 config
out_has "devcie"
out_has "device"
echo '{"plugins": {"disabled": ["moon.*"], "autodiff":
    {"options": {"checkpoint": "balanced"}}}}' >"$XDG_CONFIG_HOME/hob/hob.json"
try 0 config
out_has '^  autodiff: {"options":{"checkpoint":"balanced"}}$'
out_has '^note: plugins.disabled: PATTERN_UNUSED: "moon.\*": hob plugins lists'
try 2 eval "$work/none.json" --layout sideways
err_has "layout must be contiguous"
echo '{"device": ["autodiff(flex)"]}' >"$XDG_CONFIG_HOME/hob/hob.json"

# ---- ops ----

try 0 ops
out_has "^matmul "
try 0 ops matmul
out_has "(lhs: Num, rhs: Num) -> lhs"
try 0 ops matmul --json
json_is /0/op matmul
try 0 ops relu
out_has "^fusion *puts off"
try 0 ops argwhere
out_has "^fusion *runs at once"
try 1 ops matmull
err_has 'did you mean "matmul"?'

# ---- install and remove ----

if [ "$(id -u)" -eq 0 ]; then
    try 2 install "$work/ext"
    err_has "root has to choose"
fi
try 0 install --user "$work/ext"
out_has "^installed mock 1.0.0"
out_has "$XDG_DATA_HOME/hob/plugins.d/mock.json"
try 0 plugins
out_has "^mock .*DISC-7"
try 0 ops demo.square
out_has "family *mock"
try 0 install --user "$work/ext" --json
json_is /id mock
json_is /library "$XDG_DATA_HOME/hob/lib/mock/mock_extension.so"
try 0 remove --user mock
out_has "^removed mock"
try 1 ops demo.square
if [ -e "$XDG_DATA_HOME/hob/lib/mock" ]; then fail "  leaves no folder"
else pass "  leaves no folder"; fi
try 1 remove --user mock
err_has "mock is not installed"
try 1 install --user "$work/nowhere"
err_has "$work/nowhere"
mkdir "$work/bad"
sed 's/mock_extension.so/gone.so/' "$work/ext/mock.json" >"$work/bad/mock.json"
try 1 install --user "$work/bad"
err_has "gone.so"
if [ -e "$XDG_DATA_HOME/hob/plugins.d/mock.json" ]; then
    fail "  installs nothing"
else
    pass "  installs nothing"
fi
# Root writes everywhere, so its folder is one that cannot be: in a file.
: >"$work/file"
mkdir "$work/locked"
chmod a-w "$work/locked"
for place in "$work/file/data" "$work/locked/data"; do
    [ "$(id -u)" -ne 0 ] || [ "$place" = "$work/file/data" ] || continue
    old=$XDG_DATA_HOME
    XDG_DATA_HOME=$place
    try 1 install --user "$work/ext"
    err_has "$place"
    XDG_DATA_HOME=$old
done

# Installing and removing at the same moment ends in one or the other: a
# manifest never stays without its library.
halves=0
for round in 1 2 3 4 5 6 7 8 9 10 11 12; do
    "$hob" install --user "$work/ext" >"$work/racing" 2>&1 &
    "$hob" remove mock --user >"$work/racing2" 2>&1
    wait
    there=0
    [ ! -e "$XDG_DATA_HOME/hob/plugins.d/mock.json" ] || there=$((there + 1))
    [ ! -e "$XDG_DATA_HOME/hob/lib/mock/mock_extension.so" ] ||
        there=$((there + 1))
    [ "$there" -ne 1 ] || halves=$((halves + 1))
done
if [ "$halves" -eq 0 ]; then
    pass "install and remove at once"
else
    fail "install and remove at once: $halves of $round are half done"
fi
"$hob" remove mock --user >"$work/racing" 2>&1

# ---- packages ----

pack()
{
    "$sdk" pack "$@" >"$work/out" 2>"$work/err"
}

package=$work/mock.hobx
if pack "$work/ext" -o "$package"; then pass "hob-sdk pack"
else fail "hob-sdk pack"; fi
out_has "^$package$"
cp "$package" "$work/first.hobx"
touch -d '2001-01-01' "$work/ext/mock_extension.so" "$work/ext/mock.json"
pack "$work/ext/mock.json" -o "$package"
if cmp -s "$package" "$work/first.hobx"; then pass "  the same bytes again"
else fail "  the same bytes again"; fi
if [ "$(tar tf "$package" | tr '\n' ' ')" = \
    "hob-package.json manifest.json mock_extension.so " ]; then
    pass "  tar lists it"
else
    fail "  tar lists it"
fi
mkdir "$work/unpacked"
if tar --version 2>/dev/null | grep -q GNU && (
    cd "$work/unpacked" && tar xf "$package" &&
        tar cf again.hobx --format=ustar --mode=644 --mtime=@0 --owner=0 \
            --group=0 --numeric-owner -b 1 \
            hob-package.json manifest.json mock_extension.so
); then
    if cmp -s "$package" "$work/unpacked/again.hobx"; then
        pass "  GNU tar writes the same bytes"
    else
        fail "  GNU tar writes the same bytes"
    fi
else
    skipped=$((skipped + 1))
fi
(cd "$work/ext" && "$sdk" pack >"$work/out" 2>"$work/err")
out_has "^mock-1.0.0-[a-z0-9_]*-[a-z0-9_-]*\.hobx$"
rm -f "$work"/ext/*.hobx

try 0 install --user "$package"
out_has "^installed mock 1.0.0"
try 0 ops demo.square
try 0 install --user "$package" --json
json_is /library "$XDG_DATA_HOME/hob/lib/mock/mock_extension.so"
if cmp -s "$mock" "$XDG_DATA_HOME/hob/lib/mock/mock_extension.so"; then
    pass "  the library is what was packed"
else
    fail "  the library is what was packed"
fi
try 0 remove --user mock

# All builds for this platform go along, and one of them is installed.
mkdir "$work/builds" "$work/builds/fast"
cp "$mock" "$work/builds/fast/m.so"
cp "$mock" "$work/builds/m.so"
builds='{"windows-x86_64": "m.dll", "linux": [{"path": "m.so"},'
builds="$builds"' {"path": "fast/m.so", "cpu": ["no_such_feature"]},'
builds="$builds"' {"path": "m.so", "cpu": ["nor_such_a_one"]}]}'
sed "s#\"mock_extension.so\"#$builds#" "$work/ext/mock.json" \
    >"$work/builds/mock.json"
pack "$work/builds" -o "$work/builds.hobx"
if [ "$(tar tf "$work/builds.hobx" | tr '\n' ' ')" = \
    "hob-package.json manifest.json fast/m.so m.so " ]; then
    pass "  packs every build"
else
    fail "  packs every build"
fi
try 0 install --user "$work/builds.hobx"
out_has "$XDG_DATA_HOME/hob/lib/mock/m.so"
try 0 ops demo.square
try 0 remove --user mock

# A package of which one byte is other, is missing, or is too many.
size=$(wc -c <"$package")
for at in 100 600 1100 1700 9000 $((size - 1)); do
    cp "$package" "$work/bad.hobx"
    printf '\377' | dd of="$work/bad.hobx" bs=1 seek="$at" conv=notrunc 2>/dev/null
    try 1 install --user "$work/bad.hobx"
    err_has "bad.hobx"
    head -c "$at" "$package" >"$work/bad.hobx"
    try 1 install --user "$work/bad.hobx"
    err_has "it ends inside of"
done
{ cat "$package"; echo; } >"$work/bad.hobx"
try 1 install --user "$work/bad.hobx"
err_has "1 bytes follow its end"
if [ -e "$XDG_DATA_HOME/hob/plugins.d/mock.json" ] ||
    [ -e "$XDG_DATA_HOME/hob/lib/mock" ]; then
    fail "  installs nothing"
else
    pass "  installs nothing"
fi

# What cannot be packed.
# bad_pack FILE MESSAGE
bad_pack()
{
    if pack "$1" -o "$work/none.hobx"; then fail "hob-sdk pack $1 is refused"
    elif [ -e "$work/none.hobx" ]; then fail "hob-sdk pack $1 writes nothing"
    else pass "hob-sdk pack $1 is refused"; fi
    err_has "$2"
}

bad_pack "$work/nowhere" "nowhere: no such file"
bad_pack "$work/bad" "gone.so: no such file"
mkdir "$work/two" && cp "$work/ext/mock.json" "$work/two/a.json" &&
    cp "$work/ext/mock.json" "$work/two/b.json"
bad_pack "$work/two" "more than one"
bad_pack "$work/ext/mock_extension.so" "mock_extension.so"
change()
{
    sed "s#\"mock_extension.so\"#$2#" "$work/ext/mock.json" >"$work/$1"
}
change up.json '"../ext/mock_extension.so"'
bad_pack "$work/up.json" 'leads out of its folder'
change abs.json "\"$work/ext/mock_extension.so\""
bad_pack "$work/abs.json" 'is absolute'
change system.json '"system:libc.so.6"'
bad_pack "$work/system.json" 'has a character that is none of'
change far.json '{"windows-x86_64": "x.dll"}'
bad_pack "$work/far.json" '/library: nothing for linux'
change text.json '"up.json"'
bad_pack "$work/text.json" 'up.json: '
zeros=0000000000000000000000000000000000000000000000000000000000000000
change hash.json \
    "{\"linux\": [{\"path\": \"ext/mock_extension.so\", \"sha256\": \"$zeros\"}]}"
bad_pack "$work/hash.json" 'the manifest says 0000'
sed 's/"square"/"Square"/' "$work/ext/mock.json" >"$work/name.json"
bad_pack "$work/name.json" 'name.json:4:'
cp "$HOB_TEST_BUILDDIR/mock/.libs/mock_no_entry.so" "$work/plain.so"
change entry.json '"plain.so"'
bad_pack "$work/entry.json" 'does not export hob_plugin_entry'
mkdir "$work/locked2" && chmod a-w "$work/locked2"
if [ "$(id -u)" -ne 0 ]; then
    if pack "$work/ext" -o "$work/locked2/x.hobx"; then
        fail "hob-sdk pack into a folder that is not ours"
    fi
    err_has "locked2/x.hobx: cannot write"
fi

# ---- enable and disable ----

try 0 ops
out_has "^OP  *FAMILY  *BODY  *SIGNATURE$"

"$hob" install --user "$work/ext" >/dev/null
config=$XDG_CONFIG_HOME/hob/hob.json
kept=$(cat "$config")
rm "$config"
if [ "$(id -u)" -eq 0 ]; then
    try 2 disable mock
    err_has "root has to choose"
    try 2 remove mock
    err_has "root has to choose"
fi
try 0 disable --user mock
out_has "^disabled mock"
out_has "$config"
try 0 why mock
out_has DISABLED_CONFIG
try 0 disable --user mock
out_has "mock is disabled already"
"$hob" remove --user mock >/dev/null
try 0 install --user "$work/ext"
out_has "^but .*hob.json disables it: hob enable mock$"
try 0 install --user "$work/ext" --json
out_has '"disabled_by":.*hob.json'
HOB_PLUGIN_PATH=$work/ext
export HOB_PLUGIN_PATH
try 0 install --user "$work/ext"
out_has "^but HOB_PLUGIN_PATH names other folders to look in: unset it"
try 0 install --user "$work/ext" --json
out_has '"hidden_by":.*HOB_PLUGIN_PATH'
HOB_PLUGIN_PATH=$work/ext:$XDG_DATA_HOME/hob/plugins.d/
try 0 install --user "$work/ext"
out_lacks "HOB_PLUGIN_PATH"
HOB_PLUGIN_PATH=$work/ext
HOB_ADD_PLUGIN_PATH=$XDG_DATA_HOME/hob/plugins.d
export HOB_ADD_PLUGIN_PATH
try 0 install --user "$work/ext"
out_lacks "HOB_PLUGIN_PATH"
unset HOB_ADD_PLUGIN_PATH
HOB_PLUGIN_PATH=$work/nowhere
try 0 install --user "$work/ext"
out_lacks "HOB_PLUGIN_PATH"
unset HOB_PLUGIN_PATH
cp "$work/ext"/*.so "$work/plain.so"
try 2 install --user "$work/plain.so"
err_has "plain.so: this is a library: give its folder, or its manifest"
mkdir "$work/gone"
(
    cd "$work/gone" && rmdir "$work/gone" &&
        "$hob" install --user ../ext >"$work/out" 2>"$work/err"
)
err_has "../ext/mock.json: its full path cannot be found out"
try 0 plugins --json
out_has '"time_ns":[[:space:]]*1[0-9]\{18\}'
try 0 disable --user mock --json
json_is /changed false
json_is /enabled false
try 0 enable --user mock --json
json_is /changed true
json_is /file "$config"
json_is /overridden_by null
try 0 why mock
out_has DISCOVERED
HOB_PLUGINS_DISABLE=mock
export HOB_PLUGINS_DISABLE
try 0 enable --user mock
out_has "mock is enabled already"
out_has "but HOB_PLUGINS_DISABLE has it the other way"
unset HOB_PLUGINS_DISABLE
try 1 disable --user mocc
err_has 'did you mean "mock"?'
cat >"$config" <<'END'
{
    "x-mine":   [1,2,  3],
    "plugins": {
        "disabled": [ "mo*" ]
    }
}
END
try 0 enable --user mock
cat >"$work/wanted" <<'END'
{
    "x-mine":   [1,2,  3],
    "plugins": {
        "disabled": [ "mo*" ],
        "mock": {"enabled": true}
    }
}
END
if cmp -s "$config" "$work/wanted"; then pass "  keeps the rest of the file"
else fail "  keeps the rest of the file"; cat "$config"; fi
printf '{"plugins":\n  {"mock": oops}}' >"$config"
try 1 disable --user mock
err_has "hob.json:2:12: "
if [ "$(cat "$config")" = '{"plugins":
  {"mock": oops}}' ]; then
    pass "  leaves a broken file alone"
else
    fail "  leaves a broken file alone"
fi
echo "$kept" >"$config"
"$hob" remove --user mock >/dev/null

# ---- eval ----

cat >"$work/program.json" <<'END'
{"inputs": [{"name": "x", "dtype": "f32", "shape": [2, 2],
             "data": [1, 2, 3, 0.1], "requires_grad": true}],
 "program": [["y", "mul", ["x", "x"], {}], ["z", "sum", ["y"], {}]],
 "outputs": [{"value": "z", "dtype": "f32", "shape": [], "data": [14.01]}],
 "backward": {"of": "z"},
 "grads": [{"of": "x", "shape": [2, 2], "data": [2, 4, 6, 0.2]}],
 "tolerance": {"kind": "approx", "rel": 1e-6, "abs": 0}}
END
sed -e '/"backward"/d' -e '/"grads"/d' "$work/program.json" >"$work/plain.json"
sed 's/, 0.1\]/]/' "$work/plain.json" >"$work/short.json"
try 1 eval "$work/short.json"
err_has '"data" has 3 elements, its "shape" 4$'
sed 's/"mul"/"acme.mul"/' "$work/plain.json" >"$work/missing.json"
try 1 eval "$work/missing.json"
err_has 'no op "acme.mul", for no extension "acme" was found: hob install '
try 0 eval "$work/program.json"
out_has "^z: f32\[\] = \[14.01"
out_has "^grad(x): f32\[2,2\] = \[2,4,6,0.2\]"
try 0 eval "$work/program.json" --device "autodiff(flex)" --json
json_is "/autodiff(flex)/grad(x)/data/1" 4
try 1 eval "$work/program.json" --device flex
err_has "autodiff"
try 0 eval "$work/plain.json" --device flex --device "autodiff(flex)"
out_has "^flex$"
out_has "^autodiff(flex)$"
"$hob" eval - <"$work/plain.json" >"$work/out" 2>"$work/err" &&
    pass "hob eval - reads standard input" ||
    fail "hob eval - reads standard input"
# The second reader of standard input finds nothing there, and says so.
"$hob" eval - --names - <"$work/plain.json" >"$work/out" 2>"$work/err"
[ $? -eq 1 ] && grep -q "not JSON" "$work/err" &&
    pass "hob eval - twice is a clear failure" ||
    fail "hob eval - twice is a clear failure"
sed 's/14.01/15/' "$work/plain.json" >"$work/wrong.json"
try 1 eval "$work/wrong.json"
err_has "z\[0\] is 14.01.*expected 15"
out_has "^z: f32"
try 1 eval "$work/plain.json" --device moon
err_has "moon"
try 0 eval "$work/plain.json" --device flex --stats
out_has "^memory of flex: at most [0-9]* bytes, [0-9]* blocks, [0-9]* of them"
try 0 eval "$work/plain.json" --device flex --stats --json
out_has "\"block_count\":"
try 1 eval "$work/plain.json" --device flex --explain
err_has "there is no fusion in flex"
out_lacks "^on flex"

# Which ops ran in which kernel, and what was stored.
cat >"$work/fused.json" <<'END'
{"inputs": [{"name": "x", "dtype": "f32", "shape": [4], "data": [1, 2, 3, 4]}],
 "program": [["h", "exp", ["x"], {}], ["y", "neg", ["h"], {}],
             ["m", "cumsum", ["y"], {"dim": 0}]],
 "outputs": [{"value": "m"}]}
END
try 0 eval "$work/fused.json" --device "fusion(flex)" --explain
out_has "^  kernel  cast+exp+neg: 3 ops, 1 inputs; read 32, written 16, saved 64"
out_has "^          stores neg (16 bytes): read outside the group"
out_has "^  op      cumsum"
try 0 eval "$work/fused.json" --device "fusion(flex)" --explain --json
out_has "\"saved_bytes\":.*64"
# A sum of columns and a range are in the kernels beside them.
cat >"$work/columns.json" <<'END'
{"inputs": [{"name": "x", "dtype": "f32", "shape": [2, 3],
             "data": [1, 2, 3, 4, 5, 6]}],
 "program": [["h", "square", ["x"], {}], ["c", "sum_dim", ["h"], {"dim": 0}],
             ["n", "neg", ["x"], {}],
             ["s", "slice", ["n"], {"starts": [0, 1], "ends": [2, 3],
                                    "steps": []}],
             ["y", "relu", ["s"], {}]],
 "outputs": [{"value": "c", "data": [17, 29, 45]},
             {"value": "y", "data": [0, 0, 0, 0]}]}
END
try 0 eval "$work/columns.json" --device "fusion(flex)" --explain
out_has "^  kernel  cast+square+sum_dim: 3 ops, 1 inputs; read 48, written 36"
out_has "^  kernel  neg+relu: 3 ops, 1 inputs; read 16, written 16"

cat >"$work/unsigned.json" <<'END'
{"inputs": [{"name": "x", "dtype": "u64", "shape": [3],
             "data": [5, "9223372036854775808", "18446744073709551615"]}],
 "program": [["y", "bitwise_not", ["x"], {}]],
 "outputs": [{"value": "x", "dtype": "u64",
              "data": [5, "9223372036854775808", "18446744073709551615"]},
             {"value": "y", "data": ["18446744073709551610",
                                     "9223372036854775807", 0]}]}
END
try 0 eval "$work/unsigned.json" --device flex
out_has '^x: u64\[3\] = \[5,"9223372036854775808","18446744073709551615"\]'

# bad NAME TEXT MESSAGE: a program that is wrong.
bad()
{
    printf '%s' "$2" >"$work/$1.json"
    try 1 eval "$work/$1.json" --device flex
    err_has "$3"
}

x='"inputs": [{"name": "x", "dtype": "f32", "shape": [2], "data": [1, 2]}]'
bad not_json "{$x,
  oops}" "not_json.json:2:3: "
bad truncated "{$x, \"program\": [" "truncated.json:1:"
bad no_program "{$x}" '"program" must be an array'
bad not_object '[1]' "one JSON object"
bad no_op "{$x, \"program\": [[\"y\", \"multiply\", [\"x\"], {}]]}" \
    'step 1 (multiply): there is no op "multiply"'
bad attribute "{$x, \"program\": [[\"y\", \"relu\", [\"x\"], {\"slope\": 1}]]}" \
    'no attribute "slope"'
bad attribute_type \
    "{$x, \"program\": [[\"y\", \"sum_dim\", [\"x\"], {\"dim\": \"a\"}]]}" \
    'attribute "dim" must be an integer'
bad no_value "{$x, \"program\": [[\"y\", \"relu\", [\"q\"], {}]]}" \
    'there is no value "q"'
bad too_many "{$x, \"program\": [[\"y\", \"relu\", [\"x\", \"x\"], {}]]}" \
    "2 tensors are given, the op takes 1"
bad step "{$x, \"program\": [7]}" "step 1"
bad dtype "{\"inputs\": [{\"name\": \"x\", \"dtype\": \"f31\",
  \"shape\": [1], \"data\": [1]}], \"program\": []}" "input 1 (x): .*dtype"
bad data_size "{\"inputs\": [{\"name\": \"x\", \"dtype\": \"f32\",
  \"shape\": [3], \"data\": [1]}], \"program\": []}" "has 1 elements"
bad data_type "{\"inputs\": [{\"name\": \"x\", \"dtype\": \"i32\",
  \"shape\": [1], \"data\": [1.5]}], \"program\": []}" "element 0"
bad data_range "{\"inputs\": [{\"name\": \"x\", \"dtype\": \"u8\",
  \"shape\": [1], \"data\": [256]}], \"program\": []}" "no u8"
bad data_sign "{\"inputs\": [{\"name\": \"x\", \"dtype\": \"u64\",
  \"shape\": [1], \"data\": [-1]}], \"program\": []}" "no u64"
bad data_wraps "{\"inputs\": [{\"name\": \"x\", \"dtype\": \"i64\",
  \"shape\": [1], \"data\": [\"18446744073709551615\"]}], \"program\": []}" \
    "no i64"
bad huge_shape "{\"inputs\": [{\"name\": \"x\", \"dtype\": \"u8\",
  \"shape\": [4294967296, 4294967296, 4294967296], \"data\": [2]}],
  \"program\": []}" "has 1 elements"
bad out_dtype "{$x, \"program\": [[\"y\", \"neg\", [\"x\"], {}]],
  \"outputs\": [{\"value\": \"y\", \"dtype\": \"i32\"}]}" "y is f32, expected i32"
bad out_index "{$x, \"program\": [[\"y\", \"neg\", [\"x\"], {}]],
  \"outputs\": [{\"value\": \"y\", \"index\": 900000000000, \"data\": [1]}]}" \
    '"index" must be one of the 2 elements of y'
bad out_index_sign "{$x, \"program\": [[\"y\", \"neg\", [\"x\"], {}]],
  \"outputs\": [{\"value\": \"y\", \"index\": -1, \"data\": [1]}]}" \
    '"index" must be one of the 2 elements of y'
bad out_shape "{$x, \"program\": [[\"y\", \"neg\", [\"x\"], {}]],
  \"outputs\": [{\"value\": \"y\", \"shape\": [3]}]}" \
    "y has the shape \[2\], expected \[3\]"
bad panicked "{$x, \"program\": [[\"y\", \"neg\", [\"x\"], {}]],
  \"expect\": \"panic\"}" "a failure was expected"
bad kind "{$x, \"program\": [[\"y\", \"argmax\", [\"x\"], {\"dim\": 7}]]}" \
    "dim 7 is out of range"
bad too_big '{"program": [["y", "zeros", [], {"shape": [70368744177664]}]]}' \
    "no memory on flex for the result f32\[70368744177664\]"
bad too_long '{"program": [["y", "zeros", [], {"shape": [
  "9223372036854775807", 2]}]]}' "has more than 2^63 bytes"
# A sanitizer needs more addresses than any limit leaves.
if [ -z "${HOB_TEST_CFLAGS-}" ]; then
    (
        ulimit -v 3000000 || exit
        bad 4_gib '{"program": [["y", "zeros", [], {"shape": [1073741824]}]]}' \
            "(4294967296 bytes)"
        [ $failed -eq 0 ]
    ) || failed=$((failed + 1))
fi
try 1 eval "$work/gone.json"
err_has "gone.json: No such file"
cat >"$work/panic.json" <<END
{$x, "program": [["y", "reshape", ["x"], {"shape": [7]}]], "expect": "panic"}
END
try 0 eval "$work/panic.json" --device flex
out_has "failed, as expected"
cat >"$work/mismatch.json" <<END
{$x, "program": [["y", "neg", ["x"], {}]], "expect": "mismatch",
 "outputs": [{"value": "y", "data": [1, 2]}]}
END
try 0 eval "$work/mismatch.json" --device flex
out_has "differs, as expected"

# The example of the documentation.
awk '/^```json$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' \
    "$HOB_TEST_SRCDIR/../docs/EVAL.md" >"$work/example.json"
try 0 eval "$work/example.json" --device "autodiff(flex)"
out_has "^y: f32\[2,2\] = \[7,10,15,22\]"

# Cases: one a line; one passes, one fails, one waits for an op, one is bad.
{
    tr '\n' ' ' <"$work/plain.json"
    echo
    tr '\n' ' ' <"$work/wrong.json" | sed 's/^{/{"id": "second", /'
    echo
    echo "{\"id\": \"third\", $x, \"program\": [[\"y\", \"fly\", [\"x\"], {}]]}"
    echo '{"id": }'
} >"$work/cases.jsonl"
try 1 eval --cases "$work/cases.jsonl" --device flex
out_has "^FAILED second: z"
out_has "^FAILED line 4: .*cases.jsonl:4:8: "
out_has "^not there yet: fly (1 cases)"
out_has "^1 passed, 2 failed, 1 skipped$"
try 1 eval --cases "$work/cases.jsonl" --device flex --json
json_is /passed 1
json_is /failures/0/id second
json_is /missing/fly 1
try 0 eval --cases "$work/cases.jsonl" --device flex --only third
out_has "^0 passed, 0 failed, 1 skipped$"
echo '{"fly": {"op": "neg"}}' >"$work/names.json"
try 0 eval --cases "$work/cases.jsonl" --device flex --only third \
    --names "$work/names.json"
out_has "^1 passed, 0 failed, 0 skipped$"
echo '{"fly": {"op": 3}}' >"$work/names.json"
try 1 eval --cases "$work/cases.jsonl" --device flex --only third \
    --names "$work/names.json"
out_has 'rule for "fly" needs "op"'
echo '[]' >"$work/names.json"
try 1 eval --cases "$work/cases.jsonl" --names "$work/names.json"
err_has "one JSON object"

# ---- no plugin at all ----

HOB_PLUGIN_PATH=$work/ext
export HOB_PLUGIN_PATH
rm "$work/ext/mock.json"
try 0 plugins
out_has "No plugin was found"
try 1 eval "$work/plain.json" --device flex
err_has "flex"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
