/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Sluice as a library: a node of the Waku network inside a program of yours. Several may live in one
 * process; they share nothing.
 *
 * The library belongs to its host: it brings no allocator, installs no signal handler, writes nowhere
 * (see sluice_log_set_sink) but to the files that options name, and its threads take no signals.
 *
 * Lifetime:  options -> node: create, start, stop, destroy. A node starts once.
 * Thread:    create, start, stop and destroy on one thread at a time; all else on any thread, callbacks
 *            of the library included, unless its comment says otherwise.
 * Ownership: what a function returns by its first parameter is yours to give back; what an accessor
 *            returns is borrowed from its argument. Texts are UTF-8, end with NUL and are copied.
 * Callbacks: all of a node come from one thread of it, one after the other, unless a comment says
 *            otherwise. One that blocks holds up the other callbacks of that node, and in time costs it
 *            messages (counted); it holds up nothing else. None comes before start or after stop has
 *            returned.
 * Calls that take time (publish, push, filter, query, dial) return at once. SLUICE_OK: what came of it
 *            is told exactly once, by the callback, which may be NULL (but not query's). Any other result: nothing was
 *            begun, and nothing is told. SLUICE_LIMIT_REACHED: as many are under way as call-limit
 *            allows (of publishes: publish-limit).
 *
 * docs/embedding.md has whole programs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_API __attribute__((visibility("default")))

enum sluice_result {
    SLUICE_OK,
    SLUICE_BAD_ARGUMENT, /* a value out of range, or a text that is malformed */
    SLUICE_NOT_FOUND,    /* no option, topic, counter or file of that name */
    SLUICE_NO_MEMORY,
    SLUICE_LIMIT_REACHED, /* one of the node's limits: try again later, or raise it */
    SLUICE_NOT_RUNNING,   /* not started yet, or stopped */
    SLUICE_HELD,          /* envelopes are still kept, see sluice_node_destroy */
    SLUICE_WRONG_THREAD,  /* not from a callback */
    SLUICE_UNSUPPORTED,
    SLUICE_FAILED, /* the operating system or the network refused; the error says what */
    SLUICE_TIMED_OUT
};

/* A few words, for logs. */
SLUICE_API const char *sluice_result_text(enum sluice_result result);

/* "0.1.0" */
SLUICE_API const char *sluice_version(void);

/* Why a call failed, in one line that names the option; every pointer to one may be NULL. */
struct sluice_error {
    char text[640];
};

/* Options, by the names of the flags of `sluice run --help`, without dashes. */
struct sluice_options;

SLUICE_API enum sluice_result sluice_options_create(struct sluice_options **out);
SLUICE_API void sluice_options_destroy(struct sluice_options **options);

/*
 * Of a list the items add up; of anything else the last prevails. "config-file" names a TOML file that
 * sluice_node_create reads (`sluice config check FILE` judges one); what is set here prevails over it.
 */
SLUICE_API enum sluice_result sluice_options_set(struct sluice_options *options, const char *name,
        const char *value, struct sluice_error *error);

/* A node. */
struct sluice_node;

/*
 * Opens the archive and binds the ports. Takes the options over when it succeeds, and destroys them
 * with the node; when it fails they are good for nothing but sluice_options_destroy.
 */
SLUICE_API enum sluice_result sluice_node_create(
        struct sluice_node **out, struct sluice_options *options, struct sluice_error *error);
SLUICE_API enum sluice_result sluice_node_start(
        struct sluice_node *node, struct sluice_error *error);

/*
 * Returns when everything that was accepted has gone through every stage, and the last callback has
 * returned. SLUICE_WRONG_THREAD in a callback. A node that does not run: nothing happens.
 */
SLUICE_API enum sluice_result sluice_node_stop(struct sluice_node *node);

/* Stops it first. SLUICE_HELD, and the node stays, while envelopes of it are kept. */
SLUICE_API enum sluice_result sluice_node_destroy(struct sluice_node **node);

/*
 * The i-th address that the node can be dialled by, with the ports it got and its peer id; the text is
 * NUL-terminated. SLUICE_NOT_FOUND behind the last, SLUICE_LIMIT_REACHED when it does not fit.
 */
SLUICE_API enum sluice_result sluice_node_address(
        const struct sluice_node *node, size_t i, char *out, size_t size);

/* The node's peer id, as in its addresses, at most 64 bytes with its NUL. Errors as above. */
SLUICE_API enum sluice_result sluice_node_peer_id(
        const struct sluice_node *node, char *out, size_t size);

/* Bytes that belong to somebody else; not NUL-terminated. data may be NULL when size is 0. */
struct sluice_bytes {
    const uint8_t *data;
    size_t size;
};

/*
 * A message, immutable. The one that a callback gets is borrowed until the callback returns; its
 * address means nothing after that.
 */
struct sluice_envelope;

/*
 * What to hold on to instead: a counted reference, to be given back with unref before the node is
 * destroyed. Of a borrowed envelope this may be another pointer, of a kept one it is the same. NULL,
 * counted as sluice_event_hold_refused_total, when the node's kept envelopes would exceed event-hold-limit.
 */
SLUICE_API struct sluice_envelope *sluice_envelope_ref(struct sluice_envelope *envelope);

/* Of a kept one, on any thread; NULL is accepted. */
SLUICE_API void sluice_envelope_unref(struct sluice_envelope *envelope);

SLUICE_API struct sluice_bytes sluice_envelope_payload(const struct sluice_envelope *envelope);
SLUICE_API struct sluice_bytes sluice_envelope_content_topic(
        const struct sluice_envelope *envelope);
SLUICE_API struct sluice_bytes sluice_envelope_pubsub_topic(const struct sluice_envelope *envelope);
SLUICE_API struct sluice_bytes sluice_envelope_meta(const struct sluice_envelope *envelope);

/* The serialised WakuMessage as it was received, unknown fields included. */
SLUICE_API struct sluice_bytes sluice_envelope_message(const struct sluice_envelope *envelope);

/* The deterministic message hash (14/WAKU2-MESSAGE), 32 bytes: the message's name in every archive. */
SLUICE_API struct sluice_bytes sluice_envelope_hash(const struct sluice_envelope *envelope);

enum {
    SLUICE_HASH_BYTES = 32,
    SLUICE_HASH_TEXT_SIZE = 67
};

/* "0x" and 64 hexadecimal digits, as REST clients and logs have it; returns out. */
SLUICE_API const char *sluice_hash_text(
        char out[SLUICE_HASH_TEXT_SIZE], const uint8_t hash[SLUICE_HASH_BYTES]);

/*
 * Nanoseconds since 1970: the sender's clock (0: it said none), and ours at receipt (0: not known, it
 * comes out of an archive).
 */
SLUICE_API int64_t sluice_envelope_timestamp(const struct sluice_envelope *envelope);
SLUICE_API int64_t sluice_envelope_received(const struct sluice_envelope *envelope);
SLUICE_API uint32_t sluice_envelope_version(const struct sluice_envelope *envelope);
SLUICE_API bool sluice_envelope_is_ephemeral(const struct sluice_envelope *envelope);

struct sluice_subscription;

typedef void sluice_message_callback(void *context, struct sluice_envelope *envelope);

/*
 * Calls back for every new valid message of the pubsub topic, those of this node's own publishers
 * included, and makes the node take part in that topic; NULL: of all topics that it takes part in.
 * Before start too. At most 64 at a time (SLUICE_LIMIT_REACHED).
 */
SLUICE_API enum sluice_result sluice_node_subscribe(struct sluice_node *node,
        const char *pubsub_topic, sluice_message_callback *callback, void *context,
        struct sluice_subscription **out);

/* Which messages; zero what you do not need. All of it is copied. */
struct sluice_interest {
    const char *
            pubsub_topic; /* NULL: the content topic's shard, with num-shards-in-network; else all */
    const char *content_topic; /* NULL: all; compared byte for byte */
    bool is_pushed; /* what filter services push (sluice_node_filter), not what relay brings */
};

/*
 * As sluice_node_subscribe, for the messages of the interest. With is_pushed it joins no topic, and a
 * message that two services push comes twice. SLUICE_BAD_ARGUMENT: with num-shards-in-network, no
 * pubsub topic, and a content topic of another form than /application/version/name/encoding.
 */
SLUICE_API enum sluice_result sluice_node_subscribe_to(struct sluice_node *node,
        const struct sluice_interest *interest, sluice_message_callback *callback, void *context,
        struct sluice_subscription **out);

/*
 * The node takes part in the topic no more; its subscriptions stay, and get nothing until somebody
 * joins it again. SLUICE_NOT_FOUND: it took no part.
 */
SLUICE_API enum sluice_result sluice_node_leave(struct sluice_node *node, const char *pubsub_topic);

/*
 * When it returns, no callback of the subscription runs or comes any more; inside one of them: after
 * this one. The node goes on taking part in the topic. Subscriptions also end with their node.
 */
SLUICE_API void sluice_subscription_end(struct sluice_subscription **subscription);

/* A message to be sent; zero what you do not need. All of it is copied. */
struct sluice_message {
    const char *pubsub_topic; /* NULL: found by the content topic, with num-shards-in-network */
    const char *content_topic;
    struct sluice_bytes payload;
    struct sluice_bytes meta; /* at most 64 bytes */
    int64_t timestamp_ns;     /* since 1970; 0: now */
    uint32_t version;
    bool is_ephemeral; /* no archive keeps it */
};

enum sluice_outcome {
    SLUICE_SENT,      /* accepted, and on its way to peer_count peers, which may be none */
    SLUICE_DUPLICATE, /* the very same message was accepted before */
    SLUICE_REFUSED    /* reason says why */
};

/* reason: as the reasons of sluice_stage_messages_total{stage="intake"}; valid during the call. */
typedef void sluice_publish_callback(
        void *context, enum sluice_outcome outcome, size_t peer_count, const char *reason);

/*
 * SLUICE_OK: queued, and done (which may be NULL) is called exactly once with what became of it. Any
 * other result: it was not taken, and done is not called. SLUICE_NOT_FOUND: the node does not take
 * part in the topic, and with autosharding it is no shard of the network either (to such a shard the
 * message goes by fanout: to peers that take part, not to our own archive and subscribers).
 * SLUICE_LIMIT_REACHED: memory-budget or publish-limit is used up for the moment, or so much of what was
 * published waits for most of the peers (half of relay-queue-limit). Never blocks.
 */
SLUICE_API enum sluice_result sluice_node_publish(struct sluice_node *node,
        const struct sluice_message *message, sluice_publish_callback *done, void *context);

/*
 * The hash that the message gets; its timestamp must not be 0, and without a pubsub topic the node's
 * num-shards-in-network decides (SLUICE_BAD_ARGUMENT).
 */
SLUICE_API enum sluice_result sluice_message_hash(const struct sluice_node *node,
        const struct sluice_message *message, uint8_t out[SLUICE_HASH_BYTES]);

/* What other nodes do for this one (light clients). */

/* Whom to ask, and for how long. */
struct sluice_service {
    const char *peer;    /* multiaddr with /p2p, dialled where there is no connection yet */
    uint32_t timeout_ms; /* for connecting and the answer; 0: 5 s */
};

/* What came of a push, a filter request or a dial. Valid during the call. */
struct sluice_answer {
    enum sluice_result
            result;      /* SLUICE_OK: done, of a service: with code 200; SLUICE_TIMED_OUT, ... */
    uint32_t code;       /* of a service: as below; of a dial 0 */
    uint32_t peer_count; /* of a push: peers that the service relayed it to */
    const char *text;    /* the service's words, or why; may be empty */
};
typedef void sluice_answer_callback(void *context, const struct sluice_answer *answer);

/*
 * Has a service publish the message (19/WAKU2-LIGHTPUSH v3). service NULL, or without peer: the option
 * lightpushnode, else a connected peer that serves. code, besides the service's own: 420 no pubsub
 * topic, 500 the answer makes no sense, 503 no service peer or no answer in time, 505 it cannot be
 * reached or had nobody to relay to. SLUICE_NOT_FOUND: the node has no network; SLUICE_BAD_ARGUMENT:
 * as of publish, or peer is no such address. At most lightpush-limit at a time.
 */
SLUICE_API enum sluice_result sluice_node_push(struct sluice_node *node,
        const struct sluice_message *message, const struct sluice_service *service,
        sluice_answer_callback *done, void *context);

enum sluice_filter_verb {
    SLUICE_FILTER_PING, /* are we subscribed: 200 or 404; keeps the subscription alive */
    SLUICE_FILTER_SUBSCRIBE,
    SLUICE_FILTER_UNSUBSCRIBE,
    SLUICE_FILTER_UNSUBSCRIBE_ALL
};

/* The topics are for SUBSCRIBE and UNSUBSCRIBE. All is copied. */
struct sluice_filter_request {
    enum sluice_filter_verb verb;
    const char *
            pubsub_topic; /* NULL: that of each content topic's shard, with num-shards-in-network */
    const char *const *content_topics;
    size_t content_topic_count; /* 1 to 1000 */
};

/*
 * Asks a filter service (12/WAKU2-FILTER); messages come to subscriptions with is_pushed. service NULL,
 * or without peer: the option filternode, else a connected peer that serves. A service forgets who was
 * silent for minutes or lost its connection: ping once a minute, and subscribe again at 404 or when it
 * cannot be reached. code, besides the service's own: 300 an answer that makes no sense or none in
 * time, 400 no service would take it, 503 no service peer, 504 it cannot be reached. Errors as of push.
 */
SLUICE_API enum sluice_result sluice_node_filter(struct sluice_node *node,
        const struct sluice_filter_request *request, const struct sluice_service *service,
        sluice_answer_callback *done, void *context);

/* Archives. */

enum {
    SLUICE_PAGE_MAX = 100
};

/* What to look for (13/WAKU2-STORE v3); all zero is the first page of everything. All is copied. */
struct sluice_query {
    const char *pubsub_topic;          /* NULL: any */
    const char *const *content_topics; /* any of them */
    size_t content_topic_count;        /* 0: any; at most 1000 */
    const uint8_t
            *hashes;   /* these messages, hash after hash; then topics and cursor are not allowed */
    size_t hash_count; /* at most 1000 */
    int64_t time_start_ns;    /* inclusive; 0: from the first */
    int64_t time_end_ns;      /* inclusive; 0: to the last */
    const uint8_t *cursor;    /* that of the page before; NULL: the first page */
    uint32_t limit;           /* 0: 20; more than SLUICE_PAGE_MAX is that many */
    bool is_backward;         /* the last page first; within a page always the oldest first */
    bool is_without_messages; /* hashes only */
};

/* Valid during the call; an envelope can be kept as always. */
struct sluice_page {
    enum sluice_result result; /* if not SLUICE_OK, text says why and the rest is 0 */
    const char *text;
    size_t count;
    const uint8_t *hashes;                    /* count * SLUICE_HASH_BYTES */
    struct sluice_envelope *const *envelopes; /* count of them; NULL: hashes only */
    const uint8_t *cursor;                    /* for the next page; NULL: this is the last */
};
typedef void sluice_page_callback(void *context, const struct sluice_page *page);

/*
 * One page of this node's archive (service NULL), or of the store node that service names. A page
 * counts in event-hold-limit from when it is read until it has been called back (SLUICE_LIMIT_REACHED
 * beyond it, or when the store node says 429). The messages of a store node are checked against their
 * hashes. result may be SLUICE_BAD_ARGUMENT (the query or the cursor), SLUICE_TIMED_OUT
 * (store-query-timeout or the service's), SLUICE_NOT_RUNNING (the node stops), SLUICE_FAILED.
 * The call itself: SLUICE_NOT_FOUND: the node has no archive, or no network; SLUICE_BAD_ARGUMENT.
 */
SLUICE_API enum sluice_result sluice_node_query(struct sluice_node *node,
        const struct sluice_query *query, const struct sluice_service *service,
        sluice_page_callback *done, void *context);

/* Peers. */

/* Texts are never NULL, but may be empty. Valid during the call. */
struct sluice_peer {
    const char *id;
    const char *address; /* multiaddr with /p2p, the best to dial */
    const char *agent;
    const char *const *protocols;
    size_t protocol_count;
    const char *const *mesh_topics; /* pubsub topics in whose mesh of ours it is */
    size_t mesh_topic_count;
    double score;        /* gossip score; 0 without relay */
    uint64_t latency_ns; /* of the last ping; 0: not measured */
    bool is_connected;
    bool is_outbound; /* we dialled */
};
typedef void sluice_peer_visitor(void *context, const struct sluice_peer *peer);

/*
 * Visits the peers that the node knows, connected ones first, on the calling thread, before it returns.
 * Waits for the node's threads, a moment as a rule. SLUICE_NOT_FOUND: no network; SLUICE_TIMED_OUT:
 * after 5 s.
 */
SLUICE_API enum sluice_result sluice_node_peers(
        struct sluice_node *node, sluice_peer_visitor *visit, void *context);

/*
 * address ends in /p2p. The peer is connected to whatever max-connections says, and kept as one to be
 * dialled again. SLUICE_OK also when it is connected already. SLUICE_NOT_FOUND: no network.
 */
SLUICE_API enum sluice_result sluice_node_dial(
        struct sluice_node *node, const char *address, sluice_answer_callback *done, void *context);

/* Closes the connection and forgets the peer, a little later. */
SLUICE_API enum sluice_result sluice_node_disconnect(struct sluice_node *node, const char *peer_id);

/* reason: "" when it has connected. A peer may have two connections for a moment. */
typedef void sluice_peer_callback(
        void *context, const char *peer_id, bool is_connected, const char *reason);

/*
 * Calls back for each connection that is made, in either direction, and for its end. Once, and before
 * start (SLUICE_BAD_ARGUMENT); SLUICE_NOT_FOUND: no network. While 4096 wait for the callback more are
 * dropped, counted as sluice_event_peers_dropped_total: sluice_node_peers has the truth.
 */
SLUICE_API enum sluice_result sluice_node_set_peer_callback(
        struct sluice_node *node, sluice_peer_callback *callback, void *context);

/* What an operator wants to see. From create on, after stop too. */

/*
 * The metrics in Prometheus' text format, as GET /metrics?zeros=true shows them; and health as JSON, as
 * GET /health shows it. *out is yours, for sluice_text_destroy. SLUICE_NO_MEMORY.
 */
SLUICE_API enum sluice_result sluice_node_metrics(char **out, struct sluice_node *node);
SLUICE_API enum sluice_result sluice_node_health(char **out, const struct sluice_node *node);
SLUICE_API void sluice_text_destroy(char **text);

/*
 * A number the node counts, by its exported name: "sluice_decodes_total", with labels in their order
 * as in "sluice_net_bytes_total{direction=\"in\"}"; without labels, the sum over all of them. What
 * publish does on your threads (copies, allocations) is counted for no node.
 */
SLUICE_API enum sluice_result sluice_node_counter(
        const struct sluice_node *node, const char *name, uint64_t *out);

/* The names there are, with labels; NULL behind the last. */
SLUICE_API const char *sluice_counter_name(size_t i);

enum sluice_log_level {
    SLUICE_LOG_TRACE,
    SLUICE_LOG_DEBUG,
    SLUICE_LOG_INFO,
    SLUICE_LOG_NOTICE,
    SLUICE_LOG_WARN,
    SLUICE_LOG_ERROR,
    SLUICE_LOG_FATAL
};

/* On whatever thread has something to say, several at once; must not block. line has no newline. */
typedef void sluice_log_sink(
        void *context, enum sluice_log_level level, const char *module, const char *line);

/*
 * Where the lines of all nodes of the process go; NULL, as at first: nowhere. Lines below the level
 * are left out. Call it while no node runs.
 */
SLUICE_API void sluice_log_set_sink(
        sluice_log_sink *sink, void *context, enum sluice_log_level level);

#ifdef __cplusplus
}
#endif
