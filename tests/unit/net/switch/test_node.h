/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Nodes for tests, all run by the test's own thread: what happens does not depend on how threads are
 * scheduled. Besides them raw sockets, for peers that do not keep to the protocol.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/metrics.h"
#include "net/protocols/identify.h"
#include "net/switch/switch.h"

struct test_node {
    struct io_loop *loop;
    struct identity *identity; /* NULL when the options brought one */
    struct net_switch *net_switch;
    struct identify *identify;
    struct multiaddr address; /* of its listener, with /p2p */

    /* What its observers and dials have seen. */
    size_t connected;
    size_t disconnected;
    size_t identified;
    enum close_reason last_reason;
    struct connection *last_connection; /* NULL once that one is gone */
    uint64_t last_id;
    size_t dials_done;
    enum status dial_status;
    uint64_t dial_connection;
};

/* Listens on listen (a multiaddr; NULL: on nothing) with ping, echo and identify. */
void test_node_init(
        struct test_node *node, const struct switch_options *limits, const char *listen);

/* Stops and frees both; they must have been the only users of each other. */
void test_nodes_fini(struct test_node *nodes[], size_t count);

/* The first half of it, for what has to be destroyed before the loops. */
void test_nodes_stop(struct test_node *nodes[], size_t count);

/*
 * Turns all loops until condition holds. Fails the test after so many seconds that no slow machine
 * needs them.
 */
void test_nodes_run(
        struct test_node *nodes[], size_t count, bool (*condition)(void *context), void *context);

/* Turns all loops so many times, for what must not happen. */
void test_nodes_turn(struct test_node *nodes[], size_t count, size_t turns);

/* from dials to; the result is in from. */
void test_node_dial(struct test_node *from, const struct multiaddr *address);

/* Connects two nodes and waits until both have identified each other. */
void test_nodes_connect(struct test_node *from, struct test_node *to);

/* A connected, non-blocking socket to the node's listener. */
int raw_connect(const struct test_node *node);
void raw_send(int descriptor, const void *bytes, size_t length);

/* True when the other side has closed; what it sent before is thrown away. */
bool raw_is_closed(int descriptor);

/* How often it was counted on this thread since the process began. */
uint64_t count_of(enum metric metric);
