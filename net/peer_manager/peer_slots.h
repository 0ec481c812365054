/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How many peers of which kind a node keeps: connections are divided between relay peers and
 * clients of its services by a ratio, and the relay's share between those that dialled us and those
 * that we dialled.
 *
 * Thread: one.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/attributes.h"
#include "base/status.h"

struct peer_slots {
    size_t total;
    size_t relay;          /* of total; the rest is for services */
    size_t relay_outbound; /* of relay: a third, which is what we dial for */
    size_t relay_inbound;  /* the rest of relay */
};

enum peer_kind {
    PEER_UNKNOWN, /* before identify: an inbound one may become either */
    PEER_RELAY,
    PEER_SERVICE
};

/* How many there are, by kind and direction. */
struct peer_counts {
    size_t of[3][2]; /* [kind][is_outbound] */
};

/* ratio: "RELAY:SERVICE" such as "50:50" or "13.33:86.67", not both 0. */
MUST_USE enum status peer_slots_init(struct peer_slots *out, size_t total, const char *ratio);

void peer_counts_add(struct peer_counts *counts, enum peer_kind kind, bool is_outbound);
void peer_counts_remove(struct peer_counts *counts, enum peer_kind kind, bool is_outbound);

/* Whether one more inbound peer may come in before its kind is known. */
bool peer_slots_have_room(const struct peer_slots *slots, const struct peer_counts *counts);

/* Whether there are now too many of the kind and direction; counts include the one in question. */
bool peer_slots_exceeded(const struct peer_slots *slots, const struct peer_counts *counts,
        enum peer_kind kind, bool is_outbound);

/* Whether we should dial for more relay peers; dialling: attempts under way. */
bool peer_slots_want_more(
        const struct peer_slots *slots, const struct peer_counts *counts, size_t dialling);
