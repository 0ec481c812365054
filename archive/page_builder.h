/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Collects the rows of one page: of all that are added, the first `limit` in paging direction, each
 * once, and whether there are more. Private to archive/.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/archive_query.h"
#include "base/attributes.h"
#include "base/status.h"
#include "hash/id_tree.h"

struct page_row {
    struct id_key key;
    int64_t segment; /* where a file engine finds the message */
    int64_t offset;
    int64_t length;
    int64_t pubsub; /* likewise, its topics */
    int64_t content;
};

struct page_builder {
    struct page_row *rows;
    size_t count;
    size_t capacity;
    size_t limit;
    bool is_backward;
    bool is_stale; /* a row has gone since it was found: select again */
};

void page_builder_init(struct page_builder *builder, size_t limit, bool is_backward);
void page_builder_fini(struct page_builder *builder);
void page_builder_clear(struct page_builder *builder);

MUST_USE enum status page_builder_add(struct page_builder *builder, const struct page_row *row);

/* Chronological order, limit rows at most, and the page's cursor. */
void page_builder_finish(struct page_builder *builder, struct archive_page *page);
