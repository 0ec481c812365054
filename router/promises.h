/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What peers said they have and were asked for: one message of each IWANT is expected within a time,
 * from whomever; when it does not come, the peer that offered it broke a promise.
 *
 * Thread: one (the lane's).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "queues/envelope.h"
#include "router/peer_map.h"

struct promise;

struct promises {
    struct peer_map by_id; /* by key of the id: the first of a chain */
    struct promise *oldest;
    struct promise *newest;
    size_t count;
};

/* All zero is empty. */
void promises_fini(struct promises *promises);

/* Deadlines must not decrease from call to call. Without memory the peer is trusted. */
void promises_add(struct promises *promises, uint64_t peer, const uint8_t id[MESSAGE_ID_BYTES],
        uint64_t deadline_ns);

/* The message came. */
void promises_keep(struct promises *promises, const uint8_t id[MESSAGE_ID_BYTES]);

/* Takes one that was broken: true and who broke it. False: no more up to now. */
MUST_USE bool promises_take_broken(struct promises *promises, uint64_t now_ns, uint64_t *peer);
