/* SPDX-License-Identifier: Apache-2.0 */
#include "background.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* exit() runs the newest handler first, and compilers register theirs when they
 * are opened and when a part of them is used for the first time. So ours is
 * registered anew, but not forever: later there is nothing left to be used for
 * the first time. */
enum { MOST_HANDLERS = 1024 };

/* Of the process, as exit() is: its handlers are given nothing. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t left;
    unsigned inside;
    unsigned handlers;
    int is_over;    /* for good: exit() runs its handlers */
    int is_leaving; /* while the first thread ends */
} background = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, 0};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
    pthread_mutex_lock(&background.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&background.lock);
}

/* A child has none of the threads that are inside. */
static void in_child(void)
{
    background.inside = 0;
    background.is_leaving = 0;
    pthread_cond_init(&background.left, NULL);
    pthread_mutex_unlock(&background.lock);
}

static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, in_child);
}

static void wait_locked(void)
{
    while (background.inside)
        pthread_cond_wait(&background.left, &background.lock);
}

static void wait_for_all(void)
{
    pthread_mutex_lock(&background.lock);
    background.is_over = 1;
    wait_locked();
    pthread_mutex_unlock(&background.lock);
}

#ifdef __GLIBC__
/* What C++ has for thread_local objects (glibc 2.18). exit() runs those of its
 * thread before any handler: also before the handlers that a library registers
 * while a thread of ours is still opening it, which are newer than ours. */
extern int __cxa_thread_atexit_impl(void (*run)(void *), void *context,
                                    void *library);
extern void *__dso_handle;

static _Thread_local int is_watched;

/* The first thread seldom ends but with the process; if it does, others may go
 * in again. */
static void thread_ends(void *unused)
{
    (void)unused;
    if (gettid() != getpid())
        return;
    pthread_mutex_lock(&background.lock);
    background.is_leaving = 1;
    wait_locked();
    background.is_leaving = 0;
    pthread_mutex_unlock(&background.lock);
}

void cube_background_watch(void)
{
    if (!is_watched)
        is_watched =
            !__cxa_thread_atexit_impl(thread_ends, NULL, &__dso_handle);
}
#else
void cube_background_watch(void)
{
}
#endif

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

    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&background.lock);
    register_locked();
    may_begin = !background.is_over && !background.is_leaving;
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
