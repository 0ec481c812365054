/* SPDX-License-Identifier: MIT */
#include "router/backoffs.h"

#include "base/clock.h"

/* Never 0, which would be no backoff at all. */
static uint64_t to_ms(uint64_t ns)
{
    return ns / NANOSECONDS_PER_MILLISECOND + 1;
}

void backoffs_fini(struct backoffs *backoffs)
{
    peer_map_fini(&backoffs->until_ms);
}

uint64_t backoffs_until(const struct backoffs *backoffs, uint64_t peer)
{
    return (uint64_t)(uintptr_t)peer_map_find(&backoffs->until_ms, peer) *
           NANOSECONDS_PER_MILLISECOND;
}

void backoffs_add(struct backoffs *backoffs, uint64_t peer, uint64_t until_ns)
{
    uint64_t old_ns = backoffs_until(backoffs, peer);
    bool has_room = old_ns > 0 || backoffs->until_ms.count < BACKOFFS_MAX;
    if (old_ns < until_ns && has_room) {
        /* Without memory the peer gets away with it. */
        bool is_put = peer_map_put(&backoffs->until_ms, peer, (void *)(uintptr_t)to_ms(until_ns));
        (void)is_put;
    }
}

void backoffs_shorten(struct backoffs *backoffs, uint64_t peer, uint64_t until_ns)
{
    if (backoffs_until(backoffs, peer) > until_ns) {
        (void)peer_map_take(&backoffs->until_ms, peer);
        backoffs_add(backoffs, peer, until_ns);
    }
}

void backoffs_expire(struct backoffs *backoffs, uint64_t now_ns)
{
    size_t position = 0;
    struct peer_slot *slot;
    while ((slot = peer_map_next(&backoffs->until_ms, &position)) != NULL) {
        if ((uint64_t)(uintptr_t)slot->value * NANOSECONDS_PER_MILLISECOND <= now_ns) {
            (void)peer_map_take(&backoffs->until_ms, slot->key);
            peer_map_step_back(&position);
        }
    }
}
