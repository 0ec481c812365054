/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which connection a peer has, and which peer a connection: two sorted arrays, since a node has some
 * hundreds of peers at most and looks up a few for each message.
 *
 * Thread: one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct relay_peer {
    uint64_t key;       /* what the array is sorted by */
    uint64_t value;     /* the other one */
    uint64_t admission; /* by_peer: of the connection */
};

struct relay_peers {
    struct relay_peer *by_peer;
    struct relay_peer *by_connection;
    size_t count;
    size_t capacity;
};

/* False when there is no memory. A peer that is there already gets the new connection. */
bool relay_peers_add(
        struct relay_peers *peers, uint64_t peer, uint64_t connection, uint64_t admission);
void relay_peers_remove(struct relay_peers *peers, uint64_t peer);
void relay_peers_fini(struct relay_peers *peers);

/* 0 when there is none. */
uint64_t relay_peers_connection_of(const struct relay_peers *peers, uint64_t peer);
uint64_t relay_peers_admission_of(const struct relay_peers *peers, uint64_t peer);
uint64_t relay_peers_peer_of(const struct relay_peers *peers, uint64_t connection);
