/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>

#include "base/memory.h"
#include "hash/fast_key.h"
#include "router/rate_limit.h"

/*
 * A peer's state is one number: the time until which its requests are paid for. A time that has
 * passed is as good as no entry, so an entry never has to be removed: its slot is simply taken.
 *
 * A peer is looked for in a few slots from where its key points. Two threads that enter one peer at
 * the same time, or one that pays into a slot just taken by another peer, move a request from one
 * account to another; nothing else depends on the slots.
 */

enum {
    PROBES = 16
};

struct account {
    _Atomic uint64_t key; /* 0: never used */
    _Atomic uint64_t paid_until_ns;
};

struct rate_limiter {
    uint64_t period_ns;
    uint64_t step_ns; /* what a request costs */
    struct account accounts[RATE_LIMITER_PEERS];
};

enum status rate_limiter_create(struct rate_limiter **out, struct rate_limit limit)
{
    *out = NULL;
    if (limit.volume == 0 || limit.period_ns == 0) {
        return STATUS_OK;
    }
    *out = memory_allocate_zeroed(sizeof(**out));
    if (*out == NULL) {
        return STATUS_NO_MEMORY;
    }
    (*out)->period_ns = limit.period_ns;
    (*out)->step_ns = limit.period_ns / limit.volume;
    (*out)->step_ns += (*out)->step_ns == 0;
    return STATUS_OK;
}

void rate_limiter_destroy(struct rate_limiter **limiter)
{
    memory_free(*limiter);
    *limiter = NULL;
}

/* The peer's slot, or the one of its slots whose time has passed longest ago, made the peer's. */
static struct account *find_account(struct rate_limiter *limiter, uint64_t key)
{
    struct account *oldest = NULL;
    uint64_t oldest_ns = UINT64_MAX;
    for (size_t i = 0; i < PROBES; i++) {
        struct account *account = &limiter->accounts[(key + i) % RATE_LIMITER_PEERS];
        /* relaxed, as all here: each number stands for itself */
        if (atomic_load_explicit(&account->key, memory_order_relaxed) == key) {
            return account;
        }
        uint64_t until_ns = atomic_load_explicit(&account->paid_until_ns, memory_order_relaxed);
        if (until_ns < oldest_ns) {
            oldest_ns = until_ns;
            oldest = account;
        }
    }
    atomic_store_explicit(&oldest->paid_until_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&oldest->key, key, memory_order_relaxed);
    return oldest;
}

bool rate_limiter_admit(struct rate_limiter *limiter, struct span peer, uint64_t now_ns)
{
    if (limiter == NULL) {
        return true;
    }
    struct account *account = find_account(limiter, fast_key_of_bytes(peer) | 1);
    uint64_t until_ns = atomic_load_explicit(&account->paid_until_ns, memory_order_relaxed);
    uint64_t next_ns;
    /* Ends: whoever fails has seen another thread's request go through. */
    do {
        next_ns = (until_ns > now_ns ? until_ns : now_ns) + limiter->step_ns;
        if (next_ns > now_ns + limiter->period_ns) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&account->paid_until_ns, &until_ns, next_ns,
            memory_order_relaxed, memory_order_relaxed));
    return true;
}
