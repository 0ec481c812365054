/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a lane knows of the peers' conduct in its topics: time in the mesh, first deliveries, invalid
 * messages. The weighted sum of a peer is published on its score card at every change.
 *
 * Peers are named by what stays the same when they reconnect, so that leaving does not wash a bad
 * score off. Thread: one (the lane's).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "router/scores.h"

struct topic_scores;

MUST_USE enum status topic_scores_create(
        struct topic_scores **out, const struct score_options *options, uint32_t lane);
void topic_scores_destroy(struct topic_scores **scores);

/* card stays the caller's and must live until the peer has left. */
MUST_USE enum status topic_scores_connect(struct topic_scores *scores, uint64_t peer,
        struct score_card *BORROWED card, uint64_t now_ns);
void topic_scores_disconnect(struct topic_scores *scores, uint64_t peer, uint64_t now_ns);

/* All of these ignore peers that are not connected. topic is the index of a topic. */
void topic_scores_grafted(
        struct topic_scores *scores, uint64_t peer, uint32_t topic, uint64_t now_ns);
void topic_scores_pruned(
        struct topic_scores *scores, uint64_t peer, uint32_t topic, uint64_t now_ns);
void topic_scores_delivered_first(
        struct topic_scores *scores, uint64_t peer, uint32_t topic, uint64_t now_ns);
void topic_scores_delivered_invalid(
        struct topic_scores *scores, uint64_t peer, uint32_t topic, uint64_t now_ns);

/* Once a heartbeat: decay when it is due, P1 as time goes by, and who left long ago is forgotten. */
void topic_scores_tick(struct topic_scores *scores, uint64_t now_ns);

/* Connected and retained ones. */
size_t topic_scores_peer_count(const struct topic_scores *scores);
