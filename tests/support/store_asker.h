/* SPDX-License-Identifier: MIT */
#pragma once

/* Store queries of a live node to the one node that it has dialled. Thread: any, several at a time. */

#include "archive/archive_query.h"
#include "tests/support/live_node.h"

struct store_asker_page {
    uint32_t code; /* 0: there was no answer */
    size_t count;
    uint8_t (*hashes)[MESSAGE_HASH_BYTES]; /* freed by the caller, with free */
    bool has_cursor;
    uint8_t cursor[MESSAGE_HASH_BYTES];
};

/* Its number among the node's. */
uint64_t store_asker_connection(struct live_node *live);

/* Waits for the answer, LIVE_NODE_WAIT_S at most. */
void store_asker_ask(
        struct live_node *live, const struct archive_query *query, struct store_asker_page *page);
