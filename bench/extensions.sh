#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# extensions.sh BUILD WORK - build the example extensions that cases call.
#
# As their authors would: BUILD is installed into WORK/stage, a folder that it
# was not configured for, and they are built against that. Prints the value for
# HOB_ADD_PLUGIN_PATH.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
work=$(cd "$2" && pwd)

# The flags of a make that runs this are not meant for these.
unset MAKEFLAGS MFLAGS MAKELEVEL
fail()
{
    cat "$work/log" >&2
    echo "extensions.sh: $1 failed" >&2
    exit 1
}

make -s -C "$build" install DESTDIR="$work/stage" >"$work/log" 2>&1 ||
    fail "make install DESTDIR=$work/stage"
pc=$(find "$work/stage" -name hob-sdk.pc)
prefix=$work/stage$(sed -n 's/^prefix=//p' "$pc")
PKG_CONFIG="pkg-config --define-variable=prefix=$prefix"
PKG_CONFIG_PATH=$(dirname "$pc")
LD_LIBRARY_PATH=$($PKG_CONFIG --variable=libdir "$pc")${LD_LIBRARY_PATH+:$LD_LIBRARY_PATH}
export PKG_CONFIG PKG_CONFIG_PATH LD_LIBRARY_PATH

path=
for name in flash_attention linear_relu vision; do
    make -s -C "$root/ext-sdk/examples/$name" O="$work/$name" \
        ${HOB_TEST_CFLAGS+CFLAGS="$HOB_TEST_CFLAGS"} >"$work/log" 2>&1 ||
        fail "building $name"
    path=$path${path:+:}$work/$name
done
echo "$path"
