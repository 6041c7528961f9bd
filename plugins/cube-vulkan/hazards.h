/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hazards.h - which work must wait for which: what was touched since the last
 * barrier.
 *
 * Commands of one queue begin in order and may overlap. A barrier is needed
 * where one reads what another has written since the last barrier, or writes
 * what another has read or written since then.
 */
#ifndef CVK_HAZARDS_H
#define CVK_HAZARDS_H

#include <stdint.h>

enum { CVK_HAZARDS = 96 };

struct cvk_span {
    uint64_t begin, end; /* addresses; the end is one past the last byte */
    uint32_t is_written;
    uint32_t reserved;
};

struct cvk_hazards {
    uint32_t count;
    uint32_t reserved;
    struct cvk_span spans[CVK_HAZARDS];
};

/*
 * Say that the next command touches COUNT spans, at most CVK_HAZARDS. Returns
 * 1 if there must be a barrier before it, after which nothing older counts.
 */
int cvk_hazards_add(struct cvk_hazards *hazards, const struct cvk_span *spans,
                    uint32_t count);
/* There was a barrier, or all work is done. */
void cvk_hazards_clear(struct cvk_hazards *hazards);

#endif
