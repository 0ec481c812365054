/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Sluice as a library: a node of the Waku network inside a program of yours. Several may live in one
 * process; they share nothing.
 *
 * The library belongs to its host: it brings no allocator, installs no signal handler, writes nowhere
 * (see sluice_log_set_sink), and its threads take no signals.
 *
 * Lifetime:  options -> node: create, start, stop, destroy. A node starts once.
 * Thread:    create, start, stop and destroy on one thread at a time; all else on any thread, callbacks
 *            of the library included, unless its comment says otherwise.
 * Ownership: what a function returns by its first parameter is yours to give back; what an accessor
 *            returns is borrowed from its argument. Texts are UTF-8, end with NUL and are copied.
 * Callbacks: all of a node come from one thread of it, one after the other. One that blocks holds up
 *            the other callbacks of that node, and in time costs it messages (counted); it holds up
 *            nothing else. None comes before start or after stop has returned.
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
    SLUICE_FAILED /* the operating system or the network refused; the error says what */
};

/* A few words, for logs. */
SLUICE_API const char *sluice_result_text(enum sluice_result result);

/* Why a call failed, in one line; every pointer to one may be NULL. */
struct sluice_error {
    char text[640];
};

/* Options, by the names of the flags of `sluice run --help`, without dashes. */
struct sluice_options;

SLUICE_API enum sluice_result sluice_options_create(struct sluice_options **out);
SLUICE_API void sluice_options_destroy(struct sluice_options **options);

/* Of a list the items add up; of anything else the last prevails. */
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
 * The i-th address that the node can be dialled by, with its peer id; the text is NUL-terminated.
 * SLUICE_NOT_FOUND behind the last, SLUICE_LIMIT_REACHED when it does not fit.
 */
SLUICE_API enum sluice_result sluice_node_address(
        const struct sluice_node *node, size_t i, char *out, size_t size);

/* Bytes that belong to somebody else; not NUL-terminated. data may be NULL when size is 0. */
struct sluice_bytes {
    const uint8_t *data;
    size_t size;
};

/*
 * A received message, immutable. The one that a callback gets is borrowed until the callback returns;
 * its address means nothing after that.
 */
struct sluice_envelope;

/*
 * What to hold on to instead: a counted reference, to be given back with unref before the node is
 * destroyed. Of a borrowed envelope this is another pointer, of a kept one the same. NULL, counted as
 * sluice_event_hold_refused_total, when the node's kept envelopes would exceed event-hold-limit.
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

/* The deterministic message hash, 32 bytes. */
SLUICE_API struct sluice_bytes sluice_envelope_hash(const struct sluice_envelope *envelope);

/* Nanoseconds since 1970: the sender's clock (0: it said none), and ours at receipt. */
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
 * SLUICE_LIMIT_REACHED: memory-budget or publish-limit is used up for the moment. Never blocks.
 */
SLUICE_API enum sluice_result sluice_node_publish(struct sluice_node *node,
        const struct sluice_message *message, sluice_publish_callback *done, void *context);

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
