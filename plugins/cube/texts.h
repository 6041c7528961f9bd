/* SPDX-License-Identifier: Apache-2.0 */
/*
 * texts.h - the .cube files, embedded by the build. A kernel's file is named
 * in its struct cube_program; libraries are added by the prelude.
 */
#ifndef CUBE_TEXTS_H
#define CUBE_TEXTS_H

/* Preludes and libraries. */
extern const char cube_text_prelude_cuda[];
extern const char cube_text_prelude_glsl[];
extern const char cube_text_bits[];
extern const char cube_text_group[];
extern const char cube_text_maths[];
extern const char cube_text_circular[];
extern const char cube_text_special[];
extern const char cube_text_maths64[];
extern const char cube_text_circular64[];
extern const char cube_text_special64[];
extern const char cube_text_space[];

/* Kernels. */
extern const char cube_text_adam[];
extern const char cube_text_map[];
extern const char cube_text_reduce[];
extern const char cube_text_transpose[];

#endif
