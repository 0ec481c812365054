/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How io threads and lanes speak about relay, both ways, without knowing each other: events about
 * peers go to a lane's inbox, parcels for peers go to the io threads that own their connections.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "codec/gossip_rpc.h"
#include "codec/gossip_writer.h"
#include "queues/envelope.h"
#include "queues/frame.h"
#include "queues/inbox.h"
#include "queues/topic.h"
struct score_card;

/*
 * What a lane is told. A peer keeps its number when it reconnects; connections are never used again.
 *
 * Events of one connection come in order, those of two connections of one peer in any: for a moment
 * both may stand, and the JOINED and LEFT of the older one may come last. What a lane knows of a peer
 * belongs to the connection that was admitted last and has not left; events of another one are passed
 * over.
 */
enum lane_event_kind {
    LANE_EVENT_PEER_JOINED, /* to every lane: peer, connection, card, is_outbound */
    LANE_EVENT_PEER_LEFT,   /* to every lane, the last event of that connection */
    LANE_EVENT_SUBSCRIBE,   /* the peer takes part in topic */
    LANE_EVENT_UNSUBSCRIBE,
    LANE_EVENT_GRAFT,
    LANE_EVENT_PRUNE, /* backoff_s */
    LANE_EVENT_IHAVE, /* topic, items */
    LANE_EVENT_IWANT, /* items; to every lane, as it names no topic */
    LANE_EVENT_IDONTWANT,
    LANE_EVENT_PENALISE,   /* from another lane to lane 0: penalty (P7) */
    LANE_EVENT_JOIN_TOPIC, /* from the node: we take part in topic from now on */
    LANE_EVENT_LEAVE_TOPIC,
    LANE_EVENT_LIST_MESH /* from the node: visit is called with owner for each peer in a mesh */
};

struct lane_event {
    struct inbox_link link;
    enum lane_event_kind kind;
    uint64_t peer;
    uint64_t connection;
    const struct topic *topic;
    struct gossip_items items; /* point into frame */
    struct frame *frame;       /* one carried reference, or NULL */
    uint64_t backoff_s;
    struct score_card *card; /* JOINED: valid until the LEFT of that connection is destroyed */
    uint64_t admission;      /* JOINED: of two connections of a peer the higher one stays */
    uint64_t address;        /* JOINED: equal for peers of one place (P6), 0: unknown */
    double penalty;
    bool is_outbound;

    /* LIST_MESH */
    void (*visit)(void *owner, const struct topic *topic, uint64_t peer);

    /* Called when the event is destroyed; NULL: nothing. */
    void (*release)(void *owner);
    void *owner;
};

/* All zero but kind and peer; NULL: no memory. frame may be NULL, otherwise a reference is taken. */
MUST_USE struct lane_event *lane_event_create(
        enum lane_event_kind kind, uint64_t peer, struct frame *frame);
void lane_event_destroy(struct lane_event *CONSUMED event);

static inline struct lane_event *lane_event_of(struct inbox_link *link)
{
    return link == NULL ? NULL
                        : (struct lane_event *)((char *)link - offsetof(struct lane_event, link));
}

/*
 * What publishers of this node have on its way, from their posting until half of the peers that it goes
 * to have taken it: so much waits for a peer at most on their account, and a publisher that is faster
 * than most peers has to wait or is told. A peer that takes nothing holds up nobody. Thread: any.
 */
struct relay_pace {
    _Atomic size_t bytes;
    size_t bytes_max; /* 0: no limit */
};

/* A message of so many bytes begins, ends. */
void relay_pace_add(struct relay_pace *pace, size_t message_bytes);
void relay_pace_remove(struct relay_pace *pace, size_t message_bytes);
bool relay_pace_is_full(const struct relay_pace *pace);

struct relay_paced;
struct relay_parcel;

/* A parcel's copy for one connection, on its way to the io thread that owns it. */
struct relay_ticket {
    struct inbox_link link;
    struct relay_parcel *parcel; /* one reference */
    struct relay_ticket *next;   /* of whoever has it */
    uint64_t connection;
};

/*
 * What is sent to one or several peers: a small header and, for a message, its bytes as received; one
 * allocation for all of them. Counted: each ticket holds a reference, and whoever queues its bytes.
 * Immutable once posted, but for compact.
 */
struct relay_parcel {
    atomic_uint references;
    bool is_control; /* goes before messages */
    uint32_t header_length;
    uint8_t *header;           /* control: the whole frame, length prefix included */
    struct envelope *envelope; /* one reference; NULL for control */
    _Atomic(struct envelope *)
            compact;           /* one reference; of the message, made when one has to wait */
    struct relay_paced *paced; /* shared by all tickets of a publisher's message, or NULL */
    uint64_t made_ns;          /* monotonic: a message that waited too long is dropped */
    size_t ticket_count;
    struct relay_ticket tickets[];
};

/* A message for count connections. References: one for each ticket. NULL: no memory. */
MUST_USE struct relay_parcel *relay_parcel_of_message(struct envelope *BORROWED envelope,
        const uint64_t connections[], size_t count, uint64_t now_ns);

/*
 * The same with a header of the caller's, which is to be written to ->header before it is posted.
 * connections NULL: the tickets' connections are the caller's to fill, too.
 */
MUST_USE struct relay_parcel *relay_parcel_behind_header(struct envelope *BORROWED envelope,
        size_t header_bytes, const uint64_t connections[], size_t count, uint64_t now_ns);

/*
 * Before it is posted: the message ends in pace once half of the tickets are gone. pace was added to
 * before.
 */
void relay_parcel_set_pace(struct relay_parcel *parcel, struct relay_pace *BORROWED pace);

/* A control RPC, which is encoded here. NULL: no memory or nothing to say. */
MUST_USE struct relay_parcel *relay_parcel_of_control(const struct gossip_outgoing *rpc,
        const uint64_t connections[], size_t count, uint64_t now_ns);

/*
 * For a ticket that has to wait under a cap of its owner's: its frame is charged to the frame budget no
 * longer, and where the message is less than half of it, the ticket gets a parcel of its own with the
 * message copied out, once for all that wait. Returns the same ticket where that is not needed or there
 * is no memory. Thread: any.
 */
MUST_USE struct relay_ticket *relay_ticket_settle(struct relay_ticket *CONSUMED ticket);

/* Another ticket for what the parcel carries, a message; NULL: no memory. */
MUST_USE struct relay_ticket *relay_parcel_ticket_again(
        const struct relay_parcel *parcel, uint64_t connection);

void relay_parcel_ref(struct relay_parcel *parcel);
void relay_parcel_unref(struct relay_parcel *CONSUMED parcel);

/* Bytes on the wire, header and message. */
size_t relay_parcel_bytes(const struct relay_parcel *parcel);

enum {
    RELAY_TICKET_BYTES = sizeof(struct relay_parcel) + sizeof(struct relay_ticket) +
                         sizeof(struct envelope) +
                         128 /* what a waiting message costs beside them */
};

static inline struct relay_ticket *relay_ticket_of(struct inbox_link *link)
{
    return link == NULL
                   ? NULL
                   : (struct relay_ticket *)((char *)link - offsetof(struct relay_ticket, link));
}

/*
 * Where lanes post tickets; node/ gives it to them. post hands one ticket to the io thread of its
 * connection (a connection that is gone: the io thread drops it, counted); flush wakes the io threads
 * that got something, once a turn. disconnect: the peer's score fell below the graylist.
 */
struct relay_port {
    void (*post)(void *context, struct relay_ticket *CONSUMED ticket);
    void (*flush)(void *context);
    void (*disconnect)(void *context, uint64_t connection);
    void *context;
};
