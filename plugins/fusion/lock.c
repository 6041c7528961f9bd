/* SPDX-License-Identifier: Apache-2.0 */
#include "lock.h"

#include <sched.h>
#include <time.h>

enum {
    LOOKS = 100,  /* then let others run */
    YIELDS = 100, /* then sleep */
    SLEEP_NS = 50000
};

void fu_lock_init(struct fu_lock *lock)
{
    atomic_init(&lock->is_held, 0);
    lock->waiters = 0;
    pthread_mutex_init(&lock->sleep, NULL);
    pthread_cond_init(&lock->woken, NULL);
}

void fu_lock_release(struct fu_lock *lock)
{
    pthread_cond_destroy(&lock->woken);
    pthread_mutex_destroy(&lock->sleep);
}

void fu_lock_slowly(struct fu_lock *lock)
{
    const struct timespec nap = {.tv_nsec = SLEEP_NS};

    for (uint32_t looks = 1;; looks++) {
        /* A load, so that the line of the cache stays with who holds it. */
        if (!atomic_load_explicit(&lock->is_held, memory_order_relaxed) &&
            !atomic_exchange_explicit(&lock->is_held, 1, memory_order_acquire))
            return;
        if (looks > LOOKS + YIELDS)
            (void)nanosleep(&nap, NULL);
        else if (looks > LOOKS)
            (void)sched_yield();
    }
}

/* Who wakes needs the lock first, so that it comes after the wait's begin. */
void fu_sleep_locked(struct fu_lock *lock)
{
    lock->waiters++;
    pthread_mutex_lock(&lock->sleep);
    fu_unlock(lock);
    pthread_cond_wait(&lock->woken, &lock->sleep);
    pthread_mutex_unlock(&lock->sleep);
    fu_lock(lock);
    lock->waiters--;
}

void fu_wake_locked(struct fu_lock *lock)
{
    if (!lock->waiters)
        return;
    pthread_mutex_lock(&lock->sleep);
    pthread_cond_broadcast(&lock->woken);
    pthread_mutex_unlock(&lock->sleep);
}
