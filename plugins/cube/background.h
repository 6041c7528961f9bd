/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background.h - threads of the plugin at work in a compiler while the process
 * ends. A compiler's library frees what it has when exit() runs, and a thread
 * inside it would then crash. So exit() waits until all are out, which takes as
 * long as one kernel, and none goes in again.
 */
#ifndef CUBE_BACKGROUND_H
#define CUBE_BACKGROUND_H

/* Called on a thread that is about to leave work to another: if it is the
 * process's first and calls exit(), that waits before anything else. */
void cube_background_watch(void);

/* Nonzero if the caller may go into a compiler, or open its library, until it
 * calls cube_background_end(); 0 where the process is about to end. */
int cube_background_begin(void);
void cube_background_end(void);

#endif
