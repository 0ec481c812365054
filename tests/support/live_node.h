/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A whole node on loopback for tests: what its application gets is kept, so that it can be waited for
 * and compared.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ledger.h"
#include "base/metrics.h"
#include "base/options.h"
#include "base/span.h"
#include "net/identity/multiaddr.h"
#include "node/node.h"
#include "queues/topic.h"

#define LIVE_NODE_TOPIC "/waku/2/rs/16/0"

enum {
    LIVE_NODE_WAIT_S = 60
};

struct live_node {
    struct node *node;
    struct options *options;
    char address[MULTIADDR_TEXT_SIZE]; /* with /p2p */
    const struct topic *topic;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint8_t (*digests)[32]; /* SHA-256 of each message received, in order */
    size_t count;
    size_t capacity;
};

/*
 * settings: name, value, name, value, ..., NULL; they come after those of a node in cluster 16,
 * shard 0, on a free port of 127.0.0.1, without archive and colocation limit. Fails the test when
 * it does not start.
 */
void live_node_start(struct live_node *live, const char *const settings[]);

/* Stops it; every ledger must be closed then. */
void live_node_stop(struct live_node *live);

/* On live->topic, as the application does. */
void live_node_publish(struct live_node *live, struct span message);

/* Fails the test when there are not count received messages in LIVE_NODE_WAIT_S. */
void live_node_wait(struct live_node *live, size_t count);
size_t live_node_received(struct live_node *live);

/* Fails the test when the message with that SHA-256 has not come in LIVE_NODE_WAIT_S. */
void live_node_wait_for(struct live_node *live, const uint8_t digest[32]);

/* Messages that came more than once. */
size_t live_node_copies(struct live_node *live);

/* Publishes messages of from until to has got one: from then on there is a way. */
void live_node_wait_for_way(struct live_node *from, struct live_node *to);

/* Waits until the sum is at least value. */
void live_node_wait_metric(struct live_node *live, enum metric metric, uint64_t value);
uint64_t live_node_metric(const struct live_node *live, enum metric metric);

/*
 * A WakuMessage with that number and an unknown field, of about payload_length bytes. out has room for
 * payload_length + 128. Returns its length.
 */
size_t live_message(uint8_t *out, uint64_t number, size_t payload_length);
