/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optim.h - an optimizer's steps: alone (optim.c), and several (updates.c).
 */
#ifndef CUBE_OPS_OPTIM_H
#define CUBE_OPS_OPTIM_H

#include "../cube.h"

#include <hob/ext/fusion.h>

/* The buffer NOW of adam.cube; NOW may be NULL. */
void cube_adam_now(struct cube_job *job, const struct hob_view *now);
/* Its numbers, from keep_or_decay to now_at. ARGS are the op's. */
void cube_adam_rates(struct cube_job *job, const hob_value *args,
                     const struct hob_view *now);

/* As run_updates of struct hob_fused_compute. */
hob_status cube_updates_run(void *device,
                            const struct hob_fused_update *const *updates,
                            uint32_t count);

#endif
