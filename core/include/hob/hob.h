/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/hob.h - all of Hob that a program needs.
 *
 *   runtime.h   open Hob, ask what was found, open devices
 *   scope.h     scopes own tensors and keep the first error
 *   tensor.h    tensors from and to host memory
 *   ops.h       the operations, generated from core/ops/
 *   autodiff.h  gradients
 *   capture.h   steps that are recorded once and replayed
 *   fusion.h    results that are put off
 *   random.h    generators
 *   io.h        NPY, safetensors, DLPack
 */
#ifndef HOB_HOB_H
#define HOB_HOB_H

#include <hob/autodiff.h>
#include <hob/capture.h>
#include <hob/fusion.h>
#include <hob/io.h>
#include <hob/ops.h>
#include <hob/random.h>
#include <hob/runtime.h>
#include <hob/scope.h>
#include <hob/tensor.h>

#endif
