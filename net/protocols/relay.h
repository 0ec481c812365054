/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The network side of relay: /vac/waku/relay/2.0.0 on the switch. Frames of peers go to the lanes by
 * router/intake, everything else of their RPCs as lane events; what lanes send comes back as tickets
 * and leaves on one stream a peer, which only we write.
 *
 * A connection is announced to every lane (PEER_JOINED) when a relay stream of it is agreed in either
 * direction, and taken back (PEER_LEFT) when it has ended, exactly once each. A frame that breaks a
 * limit or is malformed ends the connection, so that neither side goes on with half a peer.
 *
 * Lifetime:  create after the switch and before the loops run; destroy when the switch has stopped
 *            and no thread runs any more that posts, runs a loop or releases frames, before the
 *            switch and the loops.
 * Thread:    create and destroy as above; the rest, and the port, on any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/switch/switch.h"
#include "queues/frame_budget.h"
#include "queues/inbox.h"
#include "queues/topic.h"
#include "router/intake.h"
#include "router/relay_link.h"

#define RELAY_PROTOCOL_ID "/vac/waku/relay/2.0.0"

enum {
    /* An RPC may be so much longer than the largest message. */
    RELAY_FRAME_SLACK = 64 * 1024,
    RELAY_FRAME_TIMEOUT_MS = 30 * 1000, /* for the rest of a frame that has begun */
    /*
     * Bytes handed to a stream; what waits behind them can be dropped. They are the switch's by then
     * and count in its buffered_bytes_max, not in outbound_bytes_max.
     */
    RELAY_LOW_WATER = 64 * 1024,
    RELAY_QUEUE_BYTES = 4 * 1024 * 1024,
    RELAY_CONTROL_BYTES = 256 * 1024,
    RELAY_MESSAGE_AGE_MS = 5 * 1000,
    RELAY_OUTBOUND_BYTES = 256 * 1024 * 1024,
    /* In a lane's inbox: entries that a mesh can do without, and those that say who is where. */
    RELAY_EVENTS_MAX = 16 * 1024,
    RELAY_TOPIC_EVENTS_MAX = 64 * 1024,
    /* Of these, of one peer in all lanes: always taken; at most, the latter two by kind. */
    RELAY_PEER_EVENTS_SURE = 32,
    RELAY_PEER_EVENTS_MAX = 1024,
    RELAY_PEER_TOPIC_EVENTS_MAX = 4 * 1024
};

struct relay_budget;

/* What is 0 has the default named above, but graylist_threshold. */
struct relay_options {
    struct net_switch *BORROWED net_switch;
    struct io_loop *const *loops; /* the switch's; the array is copied */
    size_t loop_count;
    const struct intake *BORROWED intake; /* complete before the loops run */
    struct frame_budget *BORROWED budget;
    size_t max_message_bytes;  /* the whole RPC that carries a message is sent only below this */
    size_t queue_bytes_max;    /* messages that wait for one peer */
    size_t outbound_bytes_max; /* messages that wait for all peers */
    struct relay_budget *BORROWED outbound; /* shared with others, instead of outbound_bytes_max */
    size_t peer_bytes_max;  /* a peer's frames on their way to the lanes; an eighth of budget */
    size_t peer_events_max; /* IHAVE, IWANT and IDONTWANT of a peer on their way to the lanes */
    uint64_t message_age_max_ms;
    double graylist_threshold; /* a peer with a score below is closed with the next RPC that it sends */
};

struct relay;

/* STATUS_BAD_ARGUMENT: the frame budget has no room for a few of the longest frames. */
MUST_USE enum status relay_create(struct relay **out, const struct relay_options *options);
void relay_destroy(struct relay **relay);

/* What the lanes are given; good as long as relay. */
struct relay_port relay_port(struct relay *relay);

/*
 * The registry's mark of topic has changed: peers are told, and when it is subscribed now, its lane
 * hears (SUBSCRIBE) which peers had announced it before.
 */
void relay_topic_changed(struct relay *relay, const struct topic *topic);

/* Messages between the lanes and the peers' streams: held of the ledger RELAY_OUT. */
uint64_t relay_held(const struct relay *relay);

/* What waits for peers; the bytes are those of the budget, which filter's queues share. */
struct relay_outbound {
    uint64_t messages;
    uint64_t bytes;
    uint64_t bytes_max;
};
struct relay_outbound relay_outbound(const struct relay *relay);

/* What relay knows of a connection's peer. */
struct relay_standing {
    uint64_t peer; /* the number that lanes know it by */
    double score;
};

/* False: it does not speak relay with us. Thread: the connection's io thread. */
MUST_USE bool relay_standing_of(
        struct relay *relay, const struct connection *connection, struct relay_standing *out);

/* Connections that speak relay. */
size_t relay_peer_count(const struct relay *relay);
