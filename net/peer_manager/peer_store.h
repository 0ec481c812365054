/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Peers we know, with their addresses and when each may be dialled again. Bounded: when it is full
 * the least promising peer that is neither static nor connected gives way.
 *
 * Thread: one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/identity/multiaddr.h"
#include "net/identity/peer_id.h"
#include "net/switch/hash_table.h"

enum {
    PEER_ADDRESSES_MAX = 8,
    PEER_STORE_CAPACITY = 1000,
    PEER_SHORT_MS = 60 * 1000 /* a connection that did not last so long was a failure, too */
};

/* How we came to know of a peer. */
enum peer_origin {
    PEER_ORIGIN_INBOUND,   /* it dialled us */
    PEER_ORIGIN_STATIC,    /* an option names it */
    PEER_ORIGIN_REQUESTED, /* somebody asked us to dial it */
    PEER_ORIGIN_FILE       /* of an earlier run */
};

struct peer_record {
    struct hash_link by_id;
    struct peer_id id;
    struct multiaddr addresses[PEER_ADDRESSES_MAX]; /* with /p2p */
    size_t address_count;
    size_t next_address; /* of the next attempt */
    uint64_t due_ms;     /* not dialled before */
    uint64_t heard_ms;   /* last connected, or added */
    unsigned failures;   /* since the last connection that was not short */
    uint64_t connection; /* 0: none */
    enum peer_origin origin;
    bool was_connected;
    bool is_static;   /* always wanted, never forgotten */
    bool is_outbound; /* of the connection */
    bool is_dialling;
};

struct peer_store_options {
    size_t capacity;           /* 0: PEER_STORE_CAPACITY */
    uint64_t backoff_first_ms; /* after the first failure */
    uint64_t backoff_max_ms;
    uint64_t static_backoff_max_ms; /* of static peers */
    uint64_t seed;                  /* of the jitter and of the table: drawn at random */
};

struct peer_store;

MUST_USE enum status peer_store_create(
        struct peer_store **out, const struct peer_store_options *options);
void peer_store_destroy(struct peer_store **store);

/*
 * Adds an address, which ends in /p2p, and its peer if that is new. STATUS_LIMIT_REACHED when the
 * store is full of static and connected peers. A full list of addresses loses its oldest. A peer that
 * is known stays of its origin, unless the new one says more (static, then requested).
 */
MUST_USE enum status peer_store_add(struct peer_store *store, const struct multiaddr *address,
        enum peer_origin origin, uint64_t now_ms);
MUST_USE enum status peer_store_remove(struct peer_store *store, const struct peer_id *id);

struct peer_record *BORROWED peer_store_find(
        const struct peer_store *store, const struct peer_id *id);
size_t peer_store_count(const struct peer_store *store);
struct peer_record *BORROWED peer_store_at(const struct peer_store *store, size_t i);

/* An attempt failed: the next one comes after a jittered backoff. */
void peer_store_failed(struct peer_store *store, struct peer_record *peer, uint64_t now_ms);

/* A connection was lost. A peer that always lets us in and throws us out is dialled ever less. */
void peer_store_lost(struct peer_store *store, struct peer_record *peer, uint64_t now_ms);

/* It is not to be dialled for so long, whatever else is said. */
void peer_store_avoid(struct peer_record *peer, uint64_t until_ms);
void peer_store_succeeded(struct peer_record *peer, uint64_t now_ms);

/*
 * The next one to dial: due, not connected, not being dialled; static ones first, the others only
 * when wants_more. NULL: none now.
 */
struct peer_record *BORROWED peer_store_next(
        const struct peer_store *store, bool wants_more, uint64_t now_ms);

/* When the next one is due, UINT64_MAX: never. */
uint64_t peer_store_next_due_ms(const struct peer_store *store, bool wants_more);
