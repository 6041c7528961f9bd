#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# As test_ops.sh: the tests of products, attention, convolutions and quantized
# tensors, and random programs against flex; with --all with every dtype, and as
# many programs as on flex.
set -u

. "$HOB_TEST_SRCDIR/cube/device.sh"
. "$HOB_TEST_SRCDIR/support/run_programs.sh"
if [ "${1-}" != --all ]; then
    HOB_TEST_FEW=${HOB_TEST_FEW-1}
    HOB_TEST_ROUNDS=${HOB_TEST_ROUNDS-4}
    export HOB_TEST_FEW HOB_TEST_ROUNDS
fi
run_programs test_bodies_attention test_conv_halves test_quant \
    test_quant_products test_differential
