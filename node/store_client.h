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
    STORE_CLIENT_TIMEOUT_MS = 5000,
    STORE_CLIENT_ID_SIZE = 32,

    /* codes that only the asking side has, as the reference numbers them */
    STORE_CLIENT_BAD_RESPONSE = 300,
    STORE_CLIENT_UNREACHABLE = 504
};

/*
 * What came of it.
 *
 * status:      STATUS_OK: the rows of the page have been given. STATUS_UNREACHABLE or
 *              STATUS_NO_COMMON_PROTOCOL; STATUS_LIMIT_REACHED: the peer's code 429; STATUS_CLOSED:
 *              another code of the peer's; STATUS_TIMED_OUT, STATUS_NO_MEMORY; what the sink returned;
 *              or how the answer is malformed.
 * code:        the peer's or one of the above; 0: unknown to the specification, or it is this node
 *              (time, memory, the sink) that ended it.
 * description: with a failure, why: the name of the code and the peer's words.
 * page:        NULL with a failure.
 */
struct store_client_outcome {
    enum status status;
    uint32_t code;
    const char *description;
    const struct archive_page *page;
};

/* The outcome is valid in the call. Thread: an io thread; must not block. */
typedef void store_client_answered(void *context, const struct store_client_outcome *outcome);

struct store_client_ask {
    const struct archive_query *query; /* read in the call */
    const struct multiaddr *peer;      /* with /p2p; copied */
    const char *request_id;            /* copied; NULL: one that store_client_make_id gives */
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

/* A request id that this process has not used. Thread: any. */
void store_client_make_id(char id[STORE_CLIENT_ID_SIZE]);

/* A multiaddr that names its peer, in text. STATUS_BAD_ADDRESS: it is none, or cannot be dialled. */
MUST_USE enum status store_client_read_address(struct multiaddr *out, const char *text);
