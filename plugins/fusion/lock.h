/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - the lock of a layer.
 *
 * It is taken twice for each op that is recorded, by one thread nearly always,
 * and held for some 50 ns then: an exchange and a store, where a mutex takes
 * two exchanges and two calls. Who finds it held looks again, lets others run,
 * and sleeps where a plan is being made meanwhile. Threads that wait for a node
 * to run sleep on a condition of its own.
 */
#ifndef HOB_FUSION_LOCK_H
#define HOB_FUSION_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct fu_lock {
    atomic_uint is_held;
    uint32_t waiters;      /* that sleep: guarded by the lock */
    pthread_mutex_t sleep; /* taken with the lock held, never before it */
    pthread_cond_t woken;
};

void fu_lock_init(struct fu_lock *lock);
void fu_lock_release(struct fu_lock *lock);

void fu_lock_slowly(struct fu_lock *lock);

static inline void fu_lock(struct fu_lock *lock)
{
    if (atomic_exchange_explicit(&lock->is_held, 1, memory_order_acquire))
        fu_lock_slowly(lock);
}

static inline void fu_unlock(struct fu_lock *lock)
{
    atomic_store_explicit(&lock->is_held, 0, memory_order_release);
}

/* Let LOCK, which is held, go until another thread wakes this one. */
void fu_sleep_locked(struct fu_lock *lock);
void fu_wake_locked(struct fu_lock *lock);

#endif
