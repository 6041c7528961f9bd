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
extern const char cube_text_matrix[];
extern const char cube_text_maths[];
extern const char cube_text_circular[];
extern const char cube_text_special[];
extern const char cube_text_maths64[];
extern const char cube_text_circular64[];
extern const char cube_text_special64[];
extern const char cube_text_space[];
extern const char cube_text_functions[];
extern const char cube_text_fuse_rows[];
extern const char cube_text_pairs[];
extern const char cube_text_quick[];

/* Kernels. */
extern const char cube_text_adam[];
extern const char cube_text_arange[];
extern const char cube_text_arrange[];
extern const char cube_text_attention[];
extern const char cube_text_attention_delta[];
extern const char cube_text_batch_norm[];
extern const char cube_text_batch_norm_backward[];
extern const char cube_text_cat[];
extern const char cube_text_circular[];
extern const char cube_text_circular64[];
extern const char cube_text_column_sums[];
extern const char cube_text_columns[];
extern const char cube_text_conv[];
extern const char cube_text_conv_direct[];
extern const char cube_text_conv_few[];
extern const char cube_text_conv_windows[];
extern const char cube_text_cross_entropy[];
extern const char cube_text_fft[];
extern const char cube_text_fft_roots[];
extern const char cube_text_fill[];
extern const char cube_text_group_norm[];
extern const char cube_text_list[];
extern const char cube_text_map[];
extern const char cube_text_mask[];
extern const char cube_text_matmul[];
extern const char cube_text_matmul_matrix[];
extern const char cube_text_matmul_rows[];
extern const char cube_text_matmul_sum[];
extern const char cube_text_move[];
extern const char cube_text_norm_backward[];
extern const char cube_text_not_finite[];
extern const char cube_text_outside[];
extern const char cube_text_pick[];
extern const char cube_text_pool[];
extern const char cube_text_pool_add[];
extern const char cube_text_quant_check[];
extern const char cube_text_quant_decode[];
extern const char cube_text_quant_encode[];
extern const char cube_text_random[];
extern const char cube_text_reduce[];
extern const char cube_text_resize[];
extern const char cube_text_rows[];
extern const char cube_text_sample[];
extern const char cube_text_scan[];
extern const char cube_text_scatter_add[];
extern const char cube_text_sgd[];
extern const char cube_text_sort_finish[];
extern const char cube_text_sort_merge[];
extern const char cube_text_sort_tile[];
extern const char cube_text_special[];
extern const char cube_text_special64[];
extern const char cube_text_transpose[];

#endif
