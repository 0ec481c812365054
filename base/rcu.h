/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The one place that chooses the RCU flavour and tells TSan what RCU guarantees.
 *
 * QSBR: reading costs nothing, because every worker loop announces a quiescent state per turn and
 * goes offline before it waits. workers/ does both; nobody else may (tests and benchmarks that run
 * threads of their own excepted).
 *
 * To TSan a published object is handed over twice: from its writer to the readers (named where it
 * is used) and, when the last reader is gone, to the reclaimer. What the reclaimer did is handed over to
 * whoever waits for it in rcu_drain.
 */

#include <urcu/urcu-qsbr.h>

#include "base/tsan.h"

extern char rcu_readers_gone; /* only its address is used */

/* Thread: the sole writer of *shared. Returns the replaced object, to be given to rcu_retire. */
#define rcu_publish(shared, next) (TSAN_HAND_OVER(shared), rcu_xchg_pointer((shared), (next)))

/* Thread: any registered reader that is online. */
#define rcu_read(shared)                                                                           \
    ((__typeof__(*(shared)))rcu_taken_over((shared), rcu_dereference(*(shared))))

/*
 * The object is taken over after its pointer was loaded (arguments come first): the other way round,
 * what is published between the two would look unordered.
 */
static inline void *rcu_taken_over(const void *shared, const void *object)
{
    TSAN_TAKE_OVER(shared);
    return (void *)object;
}

static inline void rcu_register(void)
{
    urcu_qsbr_register_thread();
}

static inline void rcu_unregister(void)
{
    TSAN_HAND_OVER(&rcu_readers_gone);
    urcu_qsbr_unregister_thread();
}

/* Once per turn of a loop; no RCU pointer may be held across it. */
static inline void rcu_turn_over(void)
{
    TSAN_HAND_OVER(&rcu_readers_gone);
    urcu_qsbr_quiescent_state();
}

/* Before anything that can block: until rcu_online only counted references may be held. */
static inline void rcu_offline(void)
{
    TSAN_HAND_OVER(&rcu_readers_gone);
    urcu_qsbr_thread_offline();
}

static inline void rcu_online(void)
{
    urcu_qsbr_thread_online();
}

/* free_object runs on the reclaimer thread after every reader of now has turned over. */
static inline void rcu_retire(struct rcu_head *head, void (*free_object)(struct rcu_head *head))
{
    TSAN_HAND_OVER(&rcu_readers_gone);
    urcu_qsbr_call_rcu(head, free_object);
}

/* First line of every free_object function. */
static inline void rcu_reclaim_begin(void)
{
    TSAN_TAKE_OVER(&rcu_readers_gone);
}

/* Waits until all objects retired so far are freed. Thread: registered and online, or neither. */
void rcu_drain(void);
