/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>

#include "base/clock.h"
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

/* A peer's share of a limit that all share. */
enum {
    SHARE_OF = 3,
    SHARE_IN = 4
};

struct account {
    _Atomic uint64_t key; /* 0: never used */
    _Atomic uint64_t paid_until_ns;
};

struct rate_limiter {
    uint64_t window_ns; /* for which requests may be paid in advance */
    uint64_t step_ns;   /* what a request costs a peer */
    uint64_t step_of_all_ns;
    bool is_shared;
    uint64_t light_ns;   /* who has paid for no longer in advance may have all that is left */
    uint64_t reserve_ns; /* of the window; others leave that much */
    _Atomic uint64_t all_paid_until_ns; /* 0: there was no request */
    struct account accounts[RATE_LIMITER_PEERS];
};

static uint64_t step_of(uint64_t window_ns, uint64_t volume)
{
    uint64_t step_ns = window_ns / volume;
    return step_ns + (step_ns == 0);
}

/* For how many periods the reference lets a shared limit save up. */
static uint64_t periods_of(uint64_t period_ns)
{
    if (period_ns <= NANOSECONDS_PER_SECOND) {
        return 10;
    }
    return period_ns <= 60ULL * NANOSECONDS_PER_SECOND ? 3 : 2;
}

static void init_shared(struct rate_limiter *limiter, struct rate_limit limit)
{
    uint64_t periods = periods_of(limit.period_ns);
    limiter->is_shared = true;
    limiter->window_ns = limit.period_ns * periods;
    limiter->light_ns = limit.period_ns;
    limiter->reserve_ns = limit.period_ns / SHARE_IN;
    limiter->step_of_all_ns = step_of(limit.period_ns, limit.volume);
    limiter->step_ns = step_of(limiter->window_ns, limit.volume * periods * SHARE_OF / SHARE_IN);
}

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
    if (limit.is_shared) {
        init_shared(*out, limit);
    } else {
        (*out)->window_ns = limit.period_ns;
        (*out)->step_ns = step_of(limit.period_ns, limit.volume);
    }
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

/* *in_advance_ns: for how long from now requests are paid then. */
static bool try_pay(_Atomic uint64_t *paid_until_ns, uint64_t step_ns, uint64_t window_ns,
        uint64_t now_ns, uint64_t *in_advance_ns)
{
    uint64_t until_ns = atomic_load_explicit(paid_until_ns, memory_order_relaxed);
    uint64_t next_ns;
    /* Ends: whoever fails has seen another thread's request go through. */
    do {
        next_ns = (until_ns > now_ns ? until_ns : now_ns) + step_ns;
        if (next_ns > now_ns + window_ns) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(
            paid_until_ns, &until_ns, next_ns, memory_order_relaxed, memory_order_relaxed));
    *in_advance_ns = next_ns - now_ns;
    return true;
}

/* Saving up begins with the first request, which finds one period's number and the reserve. */
static void begin_saving(struct rate_limiter *limiter, uint64_t now_ns)
{
    uint64_t never = 0;
    uint64_t missing_ns = limiter->window_ns - limiter->light_ns - limiter->reserve_ns;
    if (atomic_load_explicit(&limiter->all_paid_until_ns, memory_order_relaxed) == never) {
        (void)atomic_compare_exchange_strong_explicit(&limiter->all_paid_until_ns, &never,
                now_ns + missing_ns, memory_order_relaxed, memory_order_relaxed);
    }
}

/* A peer that asks for much finds the reserve gone, so that the others always find some. */
static bool try_pay_for_all(struct rate_limiter *limiter, uint64_t in_advance_ns, uint64_t now_ns)
{
    uint64_t reserve_ns = in_advance_ns > limiter->light_ns ? limiter->reserve_ns : 0;
    uint64_t unused;
    begin_saving(limiter, now_ns);
    return try_pay(&limiter->all_paid_until_ns, limiter->step_of_all_ns,
            limiter->window_ns - reserve_ns, now_ns, &unused);
}

bool rate_limiter_admit(struct rate_limiter *limiter, struct span peer, uint64_t now_ns)
{
    uint64_t in_advance_ns;
    if (limiter == NULL) {
        return true;
    }
    struct account *account = find_account(limiter, fast_key_of_bytes(peer) | 1);
    if (!try_pay(&account->paid_until_ns, limiter->step_ns, limiter->window_ns, now_ns,
                &in_advance_ns)) {
        return false;
    }
    if (limiter->is_shared && !try_pay_for_all(limiter, in_advance_ns, now_ns)) {
        /* relaxed: as all here */
        atomic_fetch_sub_explicit(&account->paid_until_ns, limiter->step_ns, memory_order_relaxed);
        return false;
    }
    return true;
}
