# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by the tests of this folder: Hob is installed into $stage, a folder
# that it was not configured for, as a package of a distribution would be.
# PKG_CONFIG and PKG_CONFIG_PATH point there; $work is a scratch folder.
top=$HOB_TEST_BUILDDIR/..
prefix=$(sed -n 's/^prefix=//p' "$top/core/hob.pc")
# Out of reach of other users, or the loader would not trust it.
work=$(mktemp -d) || exit 99
trap 'rm -r -f "$work"' EXIT
stage=$work/stage$prefix

# The flags of the make that runs the tests are not meant for these.
unset MAKEFLAGS MFLAGS MAKELEVEL
# libtool links anew while it installs, in the folder that others may install
# from at this moment.
one_by_one=
if command -v flock >/dev/null; then
    one_by_one="flock $HOB_TEST_BUILDDIR"
fi
if ! $one_by_one make -s -C "$top" install DESTDIR="$work/stage" \
    >"$work/log" 2>&1; then
    tail -n 40 "$work/log"
    echo "FAIL: make install DESTDIR"
    exit 1
fi

PKG_CONFIG="pkg-config --define-variable=prefix=$stage"
pc=$(find "$stage" -name hob-sdk.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG PKG_CONFIG_PATH
if [ "$($PKG_CONFIG --variable=libdir hob)" = \
    "$(sed -n 's/^libdir=//p' "$top/core/hob.pc")" ]; then
    echo "skipped: libdir is not below prefix"
    exit 77
fi

# The programs have the path of the prefix in them, where there is no Hob or
# another one.
LD_LIBRARY_PATH=$($PKG_CONFIG --variable=libdir hob)${LD_LIBRARY_PATH+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
