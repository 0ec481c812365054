/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A filter service with two clients on loopback; the test's thread is all their io threads and the
 * filter thread. Requests are written and answers read by protobuf-c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/filter.pb-c.h"
#include "net/protocols/filter.h"
#include "net/protocols/filter_client.h"
#include "net/protocols/relay_queue.h"
#include "router/topic_registry.h"
#include "tests/unit/net/switch/test_node.h"

#define FIXTURE_PUBSUB  "/waku/2/rs/16/5" /* the shard of FIXTURE_CONTENT, of 8 */
#define FIXTURE_CONTENT "/light-test/1/chat/proto"

enum {
    FIXTURE_CLIENTS = 2,
    FIXTURE_PEERS_MAX = 2,
    FIXTURE_CRITERIA_MAX = 150,
    FIXTURE_TOPICS_MAX = 100,
    FIXTURE_REQUESTS_MAX = 4,
    FIXTURE_QUEUE_BYTES = 64 * 1024,
    FIXTURE_STUCK_MS = 1000
};

struct fixture_client {
    struct test_node node;
    struct filter_client *filter; /* NULL: the test handles pushes itself */
    size_t received;              /* messages that came in the order of their numbers */
    uint64_t next_number;
    struct span expected; /* the next message's bytes when not empty */
};

struct filter_fixture {
    struct test_node server;
    struct fixture_client clients[FIXTURE_CLIENTS];
    struct test_node *nodes[FIXTURE_CLIENTS + 1];
    struct topic_registry *topics;
    struct intake intake;
    struct filter_link filter_link;
    struct subscriptions *subscriptions;
    struct relay_budget outbound;
    struct filter *filter;
    struct filter_port port;
    struct filter_client *returns; /* what comes back on the service's push streams; it goes to: */
    struct fixture_client returned;
    bool is_stalled; /* the filter thread does nothing */
};

/* What may differ; zero is what the fixture has by default. */
struct fixture_choice {
    uint16_t network_shards;
    struct rate_limit rate;
    uint64_t expiry_ns;
    bool has_own_pushes; /* the clients get no filter_client */
    bool takes_returns;  /* the service is a client too, of whoever is subscribed */
};

void fixture_init(struct filter_fixture *fixture, const struct fixture_choice *choice);
void fixture_connect(struct filter_fixture *fixture, size_t client);
void fixture_fini(struct filter_fixture *fixture);

/* Turns everything, the filter thread too, until condition holds. */
void fixture_run(struct filter_fixture *fixture, bool (*condition)(void *context), void *context);
void fixture_turn(struct filter_fixture *fixture, size_t turns);

struct fixture_answer {
    size_t done;
    enum status status;
    uint32_t code;
    char id[64];
    char description[300];
};

/* Sends it; the answer is in *answer when done is 1. */
void fixture_ask(struct filter_fixture *fixture, size_t client, struct fixture_answer *answer,
        struct span request);

/* A request of those fields, and its answer. */
struct fixture_answer fixture_request(struct filter_fixture *fixture, size_t client,
        Wire__FilterSubscribeType type, const char *pubsub_topic, const char *content_topic);
struct fixture_answer fixture_request_packed(
        struct filter_fixture *fixture, size_t client, const Wire__FilterSubscribeRequest *request);

/* The filter thread gets a message with that number, of about length bytes. */
void fixture_publish(
        struct filter_fixture *fixture, const char *content_topic, uint64_t number, size_t length);

/* Waits until the client has received that many. */
void fixture_wait_received(struct filter_fixture *fixture, size_t client, size_t count);

/* The number in a serialised message. */
uint64_t fixture_number_of(struct span message);
