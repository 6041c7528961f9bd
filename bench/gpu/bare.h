/* SPDX-License-Identifier: Apache-2.0 */
/* bare.h - what CUDA's driver takes by itself for kernels that do nothing to
 * speak of: the limit of what Hob can. */
#ifndef BARE_H
#define BARE_H

enum { BARE_KERNELS = 1000 };

/* Seconds of BARE_KERNELS kernels that depend on one another, once through:
 * asked for one by one, of which the host is busy for *OUT_HOST; and as one
 * graph. Negative where there is no driver. */
double bare_launches(double *out_host);
double bare_graph(void);

#endif
