/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A bounded ring of message ids by value, from a lane to the sync worker: what store-sync needs of a
 * message without holding its bytes. Same contract as spmc_ring with one consumer; all slots are used.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "queues/envelope.h"
#include "queues/parking.h"

struct id_record {
    int64_t timestamp_ns;
    const struct topic *topic;
    uint64_t content_topic_key; /* XXH3 of the content topic, to scope a reconciliation */
    uint8_t hash[MESSAGE_HASH_BYTES];
    bool is_transferred; /* a peer has sent it by store-sync */
};

struct id_ring;

MUST_USE enum status id_ring_create(
        struct id_ring **out, size_t capacity, struct parking *BORROWED parking);
void id_ring_destroy(struct id_ring **ring);
MUST_USE bool id_ring_try_push(struct id_ring *ring, const struct id_record *record);
void id_ring_wake(struct id_ring *ring);
MUST_USE bool id_ring_try_pop(struct id_ring *ring, struct id_record *out);
size_t id_ring_depth_estimate(const struct id_ring *ring);
size_t id_ring_high_water(const struct id_ring *ring);
size_t id_ring_capacity(const struct id_ring *ring);
