/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A subscriber's queue and its push stream: opened with the subscription, so that the first message
 * need not wait for it, and kept open; opened again, when there is something to send, after the client
 * has ended it. Never more than one at a time.
 *
 * Thread: the io thread of the peer's connection.
 */

#include "net/protocols/filter_private.h"

/* The peer is new on this connection. */
void filter_stream_begin(struct filter_peer *peer);

/* Sends it, or lets it wait within the queue's limits. */
void filter_stream_take(struct filter_peer *peer, struct relay_ticket *CONSUMED ticket);

/* Each second: what has waited too long goes, and so does a peer that takes nothing. */
void filter_stream_tick(struct filter_peer *peer, uint64_t now_ms);

/* The peer is no subscriber any more. */
void filter_stream_end(struct filter_peer *peer);

/* Brings what others read of the subscriber up to date. */
void filter_stream_tell(struct filter_peer *peer);
