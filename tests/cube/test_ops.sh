#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests of ops on HOB_TEST_DEVICE, or else on the first Vulkan device; with
# --all those too that take long. Exit code 77: nothing could be tried.
# test_products.sh has those of products, test_cases.sh the conformance cases.
set -u

. "$HOB_TEST_SRCDIR/cube/device.sh"
. "$HOB_TEST_SRCDIR/support/run_programs.sh"
longer="test_scan test_places"
if [ "${1-}" != --all ]; then
    echo "skipped $longer on $HOB_TEST_DEVICE: only with --all"
    longer=
fi
# shellcheck disable=SC2086
run_programs test_bodies test_bodies_nn test_bodies_nd test_bodies_decompose \
    test_traps test_autodiff test_autodiff_rules test_long_rows test_rounding \
    $longer
