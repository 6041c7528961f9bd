/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - how far the training is.
 *
 * On a terminal one line that is written over; elsewhere a plain line an
 * epoch.
 */
#ifndef FASHION_PROGRESS_H
#define FASHION_PROGRESS_H

#include <stdint.h>

struct progress {
    int is_terminal;
    int epochs;
    int64_t images_total; /* of all epochs */
    double start_s;       /* monotonic */
    double shown_s;
};

/* Seconds of the monotonic clock. */
double progress_now(void);

void progress_begin(struct progress *progress, int epochs,
                    int64_t images_total);

/* Nonzero if it is time for progress_show: computing a loss has its price. */
int progress_due(const struct progress *progress);

void progress_show(struct progress *progress, int epoch, int64_t images_done,
                   double loss);

/* EPOCH (from 0) is over with this mean LOSS. */
void progress_epoch(struct progress *progress, int epoch, int64_t images_done,
                    double loss);

/* Leave the line as it is and begin a new one. */
void progress_end(const struct progress *progress);

#endif
