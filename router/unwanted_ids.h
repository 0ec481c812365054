/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Messages that a peer said it does not want (IDONTWANT): forgotten after some heartbeats, and no more
 * than so many a heartbeat, so that saying it endlessly costs bounded memory.
 *
 * Thread: one (the lane's).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queues/envelope.h"
#include "router/peer_map.h"

struct unwanted_ids {
    struct peer_map by_key; /* to the heartbeat in which it came, plus one */
    uint64_t heartbeat;
    size_t in_heartbeat; /* taken in this one */
};

/* All zero is empty. */
void unwanted_ids_fini(struct unwanted_ids *ids);

/* False when there are max in this heartbeat already, or there is no memory. */
bool unwanted_ids_add(struct unwanted_ids *ids, const uint8_t id[MESSAGE_ID_BYTES], size_t max);

bool unwanted_ids_contain(const struct unwanted_ids *ids, const uint8_t id[MESSAGE_ID_BYTES]);

/* A heartbeat has passed: what is history heartbeats old is forgotten. */
void unwanted_ids_shift(struct unwanted_ids *ids, unsigned history);
