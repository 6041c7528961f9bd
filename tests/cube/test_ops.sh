#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests of ops on HOB_TEST_DEVICE, or else on the first Vulkan device; with
# --all with every dtype where the others leave some out, as test_device.h says.
# Exit code 77: nothing could be tried. test_products.sh has those of products,
# test_cases.sh the conformance cases.
set -u

. "$HOB_TEST_SRCDIR/cube/device.sh"
. "$HOB_TEST_SRCDIR/support/run_programs.sh"
if [ "${1-}" != --all ]; then
    HOB_TEST_FEW=${HOB_TEST_FEW-1}
    export HOB_TEST_FEW
fi
run_programs test_bodies test_bodies_nn test_bodies_nd test_bodies_decompose \
    test_traps test_autodiff test_autodiff_rules test_long_rows test_places \
    test_relay test_rounding test_scan test_fusion_lists
