/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the REST API needs of a node, as functions that node/ fills in: the API parses and formats, the
 * node acts.
 *
 * Thread:    all are called on the REST thread and must not block. What takes time ends with a call of
 *            the function that was given, exactly once and in bounded time, on any thread, unless the
 *            call itself returned another status than STATUS_OK.
 * Ownership: what is passed is borrowed in the call, unless a comment says otherwise.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/archive_query.h"
#include "base/attributes.h"
#include "base/metrics.h"
#include "base/span.h"
#include "base/status.h"
#include "codec/waku_message.h"

enum {
    REST_REQUEST_ID_SIZE = 32
};

/* What became of a publish. reason: LEDGER_INTAKE_... */
enum rest_verdict {
    REST_ACCEPTED,
    REST_DUPLICATE,
    REST_REFUSED
};

typedef void rest_published(
        void *context, enum rest_verdict verdict, enum metric reason, size_t peer_count);

/* What became of a push through a service peer, in the codes of lightpush v3. */
struct rest_push_outcome {
    uint32_t code;
    bool has_relay_peer_count;
    uint32_t relay_peer_count;
    const char *description;
};

struct rest_peer_push {
    bool is_legacy;           /* lightpush 2.0.0-beta1 */
    const char *pubsub_topic; /* NULL: by the content topic's shard */
    const struct waku_message_view *fields;
};

typedef void rest_pushed(void *context, const struct rest_push_outcome *outcome);

/* What a filter service peer said: code as HTTP's, 300 for an answer that makes no sense. */
typedef void rest_filter_answered(void *context, uint32_t code, const char *description);

enum rest_filter_verb {
    REST_FILTER_PING,
    REST_FILTER_SUBSCRIBE,
    REST_FILTER_UNSUBSCRIBE,
    REST_FILTER_UNSUBSCRIBE_ALL
};

struct rest_filter_ask {
    enum rest_filter_verb verb;
    const char *pubsub_topic; /* NULL: by the content topics' shards */
    const char *const *content_topics;
    size_t content_topic_count;
};

/* A query of this node's archive or, with a peer, of another node's; lives until end is called. */
struct rest_store_call {
    struct archive_query query;
    const char *peer; /* multiaddr with /p2p; NULL: the own archive, else --storenode */
    archive_sink *row;
    char request_id[REST_REQUEST_ID_SIZE]; /* under which a peer was asked; "": none was */
    /*
     * Of a peer that did not give what it was asked for, in the codes of the reference's client: what
     * it answered, 300 for an answer of no use, 504 when it cannot be asked, 0 for a code that is not known.
     */
    bool has_peer_code;
    uint32_t peer_code;
    /*
     * STATUS_OK with a page. STATUS_CLOSED with has_peer_code; STATUS_BAD_CURSOR, STATUS_BAD_QUERY,
     * STATUS_TIMED_OUT, STATUS_LIMIT_REACHED (429), STATUS_NOT_FOUND (no peer to ask), ...;
     * description: what a peer said, or "".
     */
    void (*end)(struct rest_store_call *call, enum status status, const struct archive_page *page,
            const char *description);
    void *context;
};

/* As struct node_peer (node/peers.h), in texts. */
struct rest_peer {
    const char *multiaddr;
    const char *id;
    const char *const *protocols;
    size_t protocol_count;
    const uint16_t *shards;
    size_t shard_count;
    const char *connected; /* Connected, CanConnect, CannotConnect, NotConnected */
    const char *agent;
    const char *origin;
    bool is_relay; /* has a relay stream with us */
    double score;
    const char *const *mesh_topics;
    size_t mesh_topic_count;
};

typedef void rest_peers_listed(
        void *context, enum status status, const struct rest_peer *peers, size_t count);

struct rest_criterion {
    struct span pubsub_topic;
    struct span content_topic;
};

/* A filter subscriber of ours. Times are milliseconds ago. */
struct rest_subscriber {
    const char *id;
    const struct rest_criterion *criteria;
    size_t criterion_count;
    bool is_connected;
    uint64_t age_ms;    /* since it has subscribed */
    uint64_t silent_ms; /* since it was heard of */
    uint64_t queue_bytes;
    uint64_t queue_messages;
    uint64_t sent;
    uint64_t dropped;
    const char *last_push;
    uint64_t last_push_ms; /* 0: there was none */
};

/* One subscriber a call; NULL: the end, with what the walk came to. */
typedef void rest_subscriber_listed(
        void *context, enum status status, const struct rest_subscriber *subscriber);

typedef void rest_dialed(void *context, enum status status);

struct rest_services {
    void *context;

    /* Facts. False behind the last. */
    bool (*address_at)(void *context, size_t i, char *out, size_t size);
    bool (*enr)(void *context, char *out, size_t size);
    /* JSON, from malloc; NULL: no memory. */
    char *(*health)(void *context);

    /* Topics of relay. */
    enum status (*join)(void *context, struct span pubsub_topic);
    enum status (*leave)(void *context, struct span pubsub_topic);
    bool (*is_joined)(void *context, struct span pubsub_topic);
    /* The i-th that the node takes part in; false behind the last. Valid as long as the node. */
    bool (*joined_at)(void *context, size_t i, struct span *pubsub_topic);

    /*
     * STATUS_NOT_FOUND: the node does not take part in the topic; STATUS_LIMIT_REACHED: no credit.
     */
    enum status (*publish)(void *context, struct span pubsub_topic,
            const struct waku_message_view *fields, rest_published *done, void *done_context);

    /* NULL: only through the node itself. */
    enum status (*push)(void *context, const struct rest_peer_push *push, rest_pushed *done,
            void *done_context);

    /* NULL: there is no filter client. */
    enum status (*filter)(void *context, const struct rest_filter_ask *ask,
            rest_filter_answered *done, void *done_context);

    /* STATUS_NOT_FOUND: no archive and no peer. STATUS_BAD_ADDRESS: the peer's. */
    enum status (*query)(void *context, struct rest_store_call *call);

    /* NULL: there is no network. */
    enum status (*peers)(void *context, rest_peers_listed *done, void *done_context);
    enum status (*dial)(void *context, const char *address, rest_dialed *done, void *done_context);
    bool (*is_peer_id)(void *context, const char *text);
    /* Closes the connection and forgets the peer, a little later. Thread: any. */
    enum status (*disconnect)(void *context, const char *peer_id);

    /* A store-sync session now, with whoever has it. STATUS_NOT_FOUND: there is no store-sync. */
    enum status (*sync_now)(void *context);

    /* NULL: filter is not served. */
    enum status (*subscribers)(void *context, rest_subscriber_listed *each, void *each_context);
};
