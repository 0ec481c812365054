/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A list of peers under construction, with the memory that it points into.
 *
 * Thread: one at a time.
 */

#include "node/peers.h"

struct peer_report_block;

struct peer_report {
    struct node_peer_list list; /* first: who has it has the whole */
    struct peer_report_block *blocks;
    uint64_t *connections; /* of each peer; 0: none */
    size_t peer_capacity;
    size_t connection_capacity;
};

/* NULL: no memory. */
MUST_USE struct peer_report *peer_report_create(void);
void peer_report_destroy(struct peer_report *list);

/* A copy of all that the view shows. False: no memory. */
MUST_USE bool peer_report_add(struct peer_report *list, const struct peer_view *view);

/* Memory that goes with the list; NULL: there is none. */
MUST_USE void *BORROWED peer_report_take(struct peer_report *list, size_t size);

/* Makes room for one more behind count items of size bytes each. False: no memory. */
MUST_USE bool peer_report_grow(void **items, size_t *capacity, size_t count, size_t size);
