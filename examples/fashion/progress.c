/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR_CELLS = 24 };

double progress_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_begin(struct progress *progress, int epochs, int64_t images_total)
{
    progress->is_terminal = isatty(STDOUT_FILENO);
    progress->epochs = epochs;
    progress->images_total = images_total;
    progress->start_s = progress_now();
    progress->shown_s = 0;
}

int progress_due(const struct progress *progress)
{
    /* Ten times a second looks smooth and costs nothing. */
    return progress->is_terminal && progress_now() - progress->shown_s > 0.1;
}

void progress_show(struct progress *progress, int epoch, int64_t images_done,
                   double loss)
{
    double now = progress_now();
    double elapsed = now - progress->start_s;
    double per_second = elapsed > 0 ? (double)images_done / elapsed : 0;
    double part = (double)images_done / (double)progress->images_total;
    double left =
        per_second > 0
            ? (double)(progress->images_total - images_done) / per_second
            : 0;
    int cells = (int)(part * BAR_CELLS);
    char bar[BAR_CELLS + 1];

    memset(bar, '.', BAR_CELLS);
    memset(bar, '#', (size_t)cells);
    bar[BAR_CELLS] = '\0';
    /* The last code clears what a longer line left behind. */
    printf("\r[%s] epoch %d/%d  loss %.4f  %.0f images/s  %.0f s left\033[K",
           bar, epoch + 1, progress->epochs, loss, per_second, left);
    fflush(stdout);
    progress->shown_s = now;
}

void progress_epoch(struct progress *progress, int epoch, int64_t images_done,
                    double loss)
{
    double elapsed = progress_now() - progress->start_s;

    if (progress->is_terminal) {
        progress_show(progress, epoch, images_done, loss);
        return;
    }
    printf("epoch %d/%d  loss %.4f  %.0f images/s\n", epoch + 1,
           progress->epochs, loss,
           elapsed > 0 ? (double)images_done / elapsed : 0);
    fflush(stdout);
}

void progress_end(const struct progress *progress)
{
    if (progress->is_terminal)
        putchar('\n');
}
