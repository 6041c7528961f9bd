/* SPDX-License-Identifier: Apache-2.0 */
/* texts.h - the files of kernels/, embedded by the build. */
#ifndef CCU_TEXTS_H
#define CCU_TEXTS_H

extern const char cube_text_attention_batch[];
extern const char cube_text_attention_keys_sm90[];
extern const char cube_text_attention_known_sm90[];
extern const char cube_text_attention_params[];
extern const char cube_text_attention_queries_sm90[];
extern const char cube_text_attention_slopes[];
extern const char cube_text_attention_sm90[];
extern const char cube_text_conv_finish[];
extern const char cube_text_conv_pack[];
extern const char cube_text_conv_pairs_sm90[];
extern const char cube_text_conv_params[];
extern const char cube_text_conv_places[];
extern const char cube_text_conv_sm90[];
extern const char cube_text_conv_tile[];
extern const char cube_text_conv_weight_sm90[];
extern const char cube_text_sm90[];

#endif
