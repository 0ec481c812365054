/* SPDX-License-Identifier: MIT */
#pragma once

/* A store query as a range of the order (timestamp, hash) and a filter; private to archive/. */

#include <stdbool.h>
#include <stddef.h>

#include "archive/archive_query.h"
#include "base/attributes.h"
#include "base/status.h"
#include "hash/id_tree.h"

enum {
    SELECTION_MAX_LIMIT = 1000000 /* rows of a page, whatever a query's max_limit says */
};

struct archive_selection {
    const struct archive_query *query;
    struct id_key lower; /* inclusive */
    struct id_key upper; /* exclusive, unless it is open */
    bool is_upper_open;
    size_t limit;
};

/* Checks all that can be said without looking into the archive. */
MUST_USE enum status selection_init(
        struct archive_selection *selection, const struct archive_query *query);

/* Narrows the range to what lies behind key in paging direction. */
void selection_start_behind(struct archive_selection *selection, const struct id_key *key);

bool selection_has(const struct archive_selection *selection, const struct id_key *key);
bool selection_is_late(const struct archive_selection *selection);
