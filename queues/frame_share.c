/* SPDX-License-Identifier: MIT */
#include "queues/frame_share.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/memory.h"

/*
 * charge holds the bytes, one more while the owner has not dropped the share, and in its top bit that
 * a charge was refused and nobody has been woken since. As it is one word, a release either sees the
 * refusal or is seen by it. Nobody touches the share after the exchange that took out its part, unless
 * that left nothing: then nobody else does.
 *
 * Ordering:
 *
 *   LAST  release half of an exchange -> acquire half of the one that leaves 0, before the share is
 *         freed. For the bytes themselves no order is needed.
 */
#define WAITING (SIZE_MAX ^ (SIZE_MAX >> 1))

enum {
    OWNER = 1
};

struct frame_share {
    atomic_size_t charge;
    size_t limit; /* these are constant */
    void (*wake)(void *context);
    void *context;
};

enum status frame_share_create(
        struct frame_share **out, size_t limit_bytes, void (*wake)(void *context), void *context)
{
    struct frame_share *share = memory_allocate(sizeof(*share));
    if (share == NULL) {
        return STATUS_NO_MEMORY;
    }
    atomic_init(&share->charge, OWNER);
    share->limit = limit_bytes;
    share->wake = wake;
    share->context = context;
    *out = share;
    return STATUS_OK;
}

bool frame_share_try_charge(struct frame_share *share, size_t bytes)
{
    bool has_room;
    size_t next;
    /* relaxed: see top */
    size_t now = atomic_load_explicit(&share->charge, memory_order_relaxed);
    /* Ends because a failure means that another thread released. */
    do {
        size_t used = (now & ~WAITING) - OWNER;
        has_room = used == 0 || (used <= share->limit && bytes <= share->limit - used);
        next = has_room ? now + bytes : now | WAITING;
    } while (!atomic_compare_exchange_weak_explicit(
            &share->charge, &now, next, memory_order_relaxed, memory_order_relaxed));
    return has_room;
}

void frame_share_release(struct frame_share *share, size_t bytes)
{
    void (*wake)(void *context) = share->wake;
    void *context = share->context;
    bool has_to_wake;
    size_t next;
    /* relaxed: the exchange orders */
    size_t now = atomic_load_explicit(&share->charge, memory_order_relaxed);
    /* Ends because a failure means that another thread charged, released or was refused. */
    do {
        assert((now & ~WAITING) >= bytes);
        next = now - bytes;
        has_to_wake = (now & WAITING) != 0 && (next & ~WAITING) - OWNER <= share->limit / 2;
        next = has_to_wake ? next & ~WAITING : next;
    } while (!atomic_compare_exchange_weak_explicit(
            &share->charge, &now, next, memory_order_acq_rel, memory_order_relaxed)); /* LAST */
    if (next == 0) {
        memory_free(share);
    } else if (has_to_wake) {
        wake(context);
    }
}

void frame_share_drop(struct frame_share **share_pointer)
{
    struct frame_share *share = *share_pointer;
    *share_pointer = NULL;
    if (share == NULL) {
        return;
    }
    /* WAITING goes first: without an owner nobody waits. */
    atomic_fetch_and_explicit(&share->charge, ~WAITING, memory_order_relaxed);
    /* LAST */
    if (atomic_fetch_sub_explicit(&share->charge, OWNER, memory_order_acq_rel) == OWNER) {
        memory_free(share);
    }
}

size_t frame_share_used(const struct frame_share *share)
{
    /* relaxed: a reading */
    return (atomic_load_explicit(&share->charge, memory_order_relaxed) & ~WAITING) - OWNER;
}
