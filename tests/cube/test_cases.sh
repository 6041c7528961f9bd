#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance cases on HOB_TEST_DEVICE, or else on the first Vulkan device,
# each once as it is and once fused; with --all in all layouts, recorded and
# not. The last line is "N passed, N failed, N skipped". Exit code 77: nothing
# could be tried.
set -u

. "$HOB_TEST_SRCDIR/cube/device.sh"
once=--once
[ "${1-}" != --all ] || once=
# shellcheck disable=SC2086
"$HOB_TEST_SRCDIR/conformance/test_conformance.sh" $once
