#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests of ops below fusion: on HOB_TEST_DEVICE, or else on fusion(flex).
# What they do with autodiff is on autodiff(fusion(flex)). The last line is "N
# passed, N failed".
set -u

if [ -n "${HOB_TEST_CFLAGS-}" ]; then
    echo "skipped: sanitized, these run op by op, and the tests of fusion"
    exit 77
fi
tests=${HOB_TEST_BUILDDIR:-.}
HOB_TEST_DEVICE=${HOB_TEST_DEVICE:-fusion(flex)}
CK_FORK=${CK_FORK-no}
export HOB_TEST_DEVICE CK_FORK
work=$(mktemp -d) || exit 99
trap 'rm -r -f "$work"' EXIT

. "$HOB_TEST_SRCDIR/support/run_programs.sh"
run_programs test_bodies test_bodies_nn test_bodies_nd test_bodies_decompose \
    test_bodies_attention test_attention_halves test_conv_halves \
    test_matmul_halves test_traps test_quant test_quant_products \
    test_autodiff test_autodiff_rules test_checkpoint test_differential \
    test_long_rows test_places test_rounding test_scan
