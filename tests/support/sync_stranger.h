/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A libp2p peer that says on store-sync's protocols whatever bytes a test gives it. Its payloads are
 * written here, from the specification, and not by the product's own writer.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "net/identity/identity.h"
#include "tools/sluice/net_host.h"

enum {
    SYNC_STRANGER_BYTES = 1024 * 1024
};

/* A stream of ours, or one that the node opened (transfer). */
struct stranger_stream {
    struct sync_stranger *stranger;
    struct stream_address address; /* stream 0: not agreed */
    bool is_closed;
    size_t length;
    uint8_t *bytes;         /* received, SYNC_STRANGER_BYTES at most */
    uint8_t arriving[4096]; /* the io thread's */
    bool is_stuck;          /* nothing more is read of it */
};

struct sync_stranger {
    struct identity *identity;
    struct net_host *host;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t connection;
    struct stranger_stream session;
    struct stranger_stream sending;   /* transfer, ours */
    struct stranger_stream receiving; /* transfer, the node's; all streams one after the other */
};

/* Dials; fails the test when there is no connection within a minute. */
void sync_stranger_start(struct sync_stranger *stranger, const char *address);
void sync_stranger_stop(struct sync_stranger *stranger);

/* Opens a stream and waits until it is agreed or refused. */
void sync_stranger_open_session(struct sync_stranger *stranger);
void sync_stranger_open_transfer(struct sync_stranger *stranger);

/* The bytes with their length before them. */
void sync_stranger_say(struct stranger_stream *stream, struct span message);
void sync_stranger_say_raw(struct stranger_stream *stream, struct span bytes);
void sync_stranger_end(struct stranger_stream *stream);
/* What is read afterwards is of the next one. */
void sync_stranger_reset(struct stranger_stream *stream);
void sync_stranger_wait_closed(struct stranger_stream *stream);
bool sync_stranger_is_closed(struct stranger_stream *stream);

/* Waits for count more messages and throws them away; how many came before the stream was closed. */
size_t sync_stranger_hear(struct stranger_stream *stream, size_t count);

/* Waits for so many bytes in all. */
void sync_stranger_wait_bytes(struct stranger_stream *stream, size_t length);

/* Payloads. All: the place behind what was written. */
uint8_t *sync_wire_number(uint8_t *to, uint64_t number);
/* One pubsub topic, no content topics, and the first timestamp. */
uint8_t *sync_wire_begin(uint8_t *to, const char *topic, int64_t from_ns);
uint8_t *sync_wire_fingerprint(uint8_t *to, uint64_t after_ns, uint8_t fill);
uint8_t *sync_wire_transfer(uint8_t *to, const char *topic, struct span message);
