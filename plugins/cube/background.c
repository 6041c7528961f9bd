/* SPDX-License-Identifier: Apache-2.0 */
#include "background.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* exit() runs the newest handler first, and compilers register theirs when they
 * are opened and when a part of them is used for the first time. So ours is
 * registered anew, but not forever: later there is nothing left to be used for
 * the first time. */
enum { MOST_HANDLERS = 16 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t left;
    unsigned inside;
    unsigned handlers;
    int is_over;
    pid_t process; /* whose threads are inside: not a forked child's */
} background = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, 0};

static void wait_for_all(void)
{
    /* In a child the lock may be a lost thread's. */
    if (background.process != getpid())
        return;
    pthread_mutex_lock(&background.lock);
    background.is_over = 1;
    while (background.inside)
        pthread_cond_wait(&background.left, &background.lock);
    pthread_mutex_unlock(&background.lock);
}

static void register_locked(void)
{
    if (background.is_over || background.handlers == MOST_HANDLERS)
        return;
    if (!atexit(wait_for_all))
        background.handlers++;
}

int cube_background_begin(void)
{
    int may_begin;

    pthread_mutex_lock(&background.lock);
    background.process = getpid();
    if (!background.handlers)
        register_locked();
    may_begin = !background.is_over;
    background.inside += (unsigned)may_begin;
    pthread_mutex_unlock(&background.lock);
    return may_begin;
}

void cube_background_end(void)
{
    pthread_mutex_lock(&background.lock);
    background.inside--;
    register_locked();
    pthread_cond_broadcast(&background.left);
    pthread_mutex_unlock(&background.lock);
}
