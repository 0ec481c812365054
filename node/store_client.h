/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Store queries put to another node (13/WAKU2-STORE v3): dialled where there is no connection yet,
 * asked, and its answer handed on row by row.
 *
 * Lifetime: create before the loops run; outlives the switch. Destroyed when nothing is pending.
 */

#include <stddef.h>
#include <stdint.h>

#include "archive/archive_query.h"
#include "base/attributes.h"
#include "base/status.h"
#include "net/identity/multiaddr.h"
#include "net/switch/switch.h"

struct store_client;

enum {
    STORE_CLIENT_TIMEOUT_MS = 5000
};

/*
 * What came of it. STATUS_OK: the rows of the page have been given. Else page is NULL, and description
 * says why: STATUS_UNREACHABLE, STATUS_NO_COMMON_PROTOCOL, STATUS_TIMED_OUT, STATUS_LIMIT_REACHED (the
 * peer's code 429, description empty), STATUS_CLOSED (another code, with the peer's words), what the
 * sink returned, or how the answer is malformed. Thread: an io thread; must not block.
 */
typedef void store_client_answered(void *context, enum status status,
        const struct archive_page *page, const char *description);

struct store_client_ask {
    const struct archive_query *query; /* read in the call */
    const struct multiaddr *peer;      /* with /p2p; copied */
    uint64_t timeout_ms;               /* for all of it; 0: STORE_CLIENT_TIMEOUT_MS */
    archive_sink *row;                 /* on an io thread, before answered; must not block */
    store_client_answered *answered;
    void *context;
};

MUST_USE enum status store_client_create(
        struct store_client **out, struct net_switch *BORROWED net_switch);
void store_client_destroy(struct store_client **client);

/*
 * answered comes exactly once, unless the call itself fails: STATUS_NO_MEMORY. Thread: any, while the
 * loops run.
 */
MUST_USE enum status store_client_ask(
        struct store_client *client, const struct store_client_ask *ask);

/* Queries that are not over. Thread: any. */
size_t store_client_pending(struct store_client *client);

/* A multiaddr that names its peer, in text. STATUS_BAD_ADDRESS: it is none, or cannot be dialled. */
MUST_USE enum status store_client_read_address(struct multiaddr *out, const char *text);
