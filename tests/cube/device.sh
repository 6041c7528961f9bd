# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by the scripts of this folder that try ops on $HOB_TEST_DEVICE, by
# default the first Vulkan device. $hob is the program, $work a scratch folder.
# Ends with exit code 77 where that device does not open.
tests=${HOB_TEST_BUILDDIR:-.}
hob=$tests/../tools/hob
HOB_TEST_DEVICE=${HOB_TEST_DEVICE:-cube-vulkan:0}
export HOB_TEST_DEVICE

if [ -n "${HOB_TEST_CFLAGS-}" ]; then
    echo "skipped: drivers are not run in a sanitized process"
    exit 77
fi

# One process for all tests of a program compiles each kernel once, and Mesa
# keeps what it made in XDG_CACHE_HOME for the next.
CK_FORK=${CK_FORK-no}
export CK_FORK

work=$(mktemp -d) || exit 99
trap 'rm -r -f "$work"' EXIT
cat >"$work/one.json" <<'END'
{"inputs": [], "program": [["x", "full", [], {"shape": [2], "value": 1}]],
 "outputs": [{"value": "x"}]}
END
if ! "$hob" eval "$work/one.json" --device "$HOB_TEST_DEVICE" \
    >"$work/log" 2>&1; then
    tail -n 3 "$work/log"
    echo "skipped: $HOB_TEST_DEVICE does not open"
    exit 77
fi
