/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The parts of a peer's score that belong to no topic: what the application says of it (P5), how many
 * share its address (P6), and penalties for breaking the protocol's rules (P7).
 *
 * Thread: one (lane 0's). Peers as in router/topic_scores.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "router/scores.h"

struct peer_scores;

MUST_USE enum status peer_scores_create(
        struct peer_scores **out, const struct score_options *options);
void peer_scores_destroy(struct peer_scores **scores);

/* address: equal for peers that count as one place (IPv6: one for a /64); 0: unknown, a place of its own. */
MUST_USE enum status peer_scores_connect(struct peer_scores *scores, uint64_t peer,
        uint64_t address, struct score_card *BORROWED card);
void peer_scores_disconnect(struct peer_scores *scores, uint64_t peer, uint64_t now_ns);

/* Both ignore peers that are not connected. */
void peer_scores_penalise(struct peer_scores *scores, uint64_t peer, double amount);
void peer_scores_set_application(struct peer_scores *scores, uint64_t peer, double value);

/* Once a heartbeat. */
void peer_scores_tick(struct peer_scores *scores, uint64_t now_ns);

size_t peer_scores_peer_count(const struct peer_scores *scores);
size_t peer_scores_address_count(const struct peer_scores *scores);
