/* SPDX-License-Identifier: MIT */
#include "archive/page_builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
    FIRST_CAPACITY = 64
};

void page_builder_init(struct page_builder *builder, size_t limit, bool is_backward)
{
    *builder = (struct page_builder){.limit = limit, .is_backward = is_backward};
}

void page_builder_fini(struct page_builder *builder)
{
    memory_free(builder->rows);
    builder->rows = NULL;
}

void page_builder_clear(struct page_builder *builder)
{
    builder->count = 0;
    builder->is_stale = false;
}

static int compare_forward(const void *a, const void *b)
{
    return id_key_compare(&((const struct page_row *)a)->key, &((const struct page_row *)b)->key);
}

static int compare_backward(const void *a, const void *b)
{
    return compare_forward(b, a);
}

/* Sorted in paging direction, each once, and no more than limit and the one beyond. */
static void tidy(struct page_builder *builder)
{
    struct page_row *rows = builder->rows;
    if (builder->count == 0) {
        return;
    }
    qsort(rows, builder->count, sizeof(*rows),
            builder->is_backward ? compare_backward : compare_forward);
    size_t kept = 1;
    for (size_t i = 1; i < builder->count && kept <= builder->limit; i++) {
        if (id_key_compare(&rows[i].key, &rows[kept - 1].key) != 0) {
            rows[kept++] = rows[i];
        }
    }
    builder->count = kept;
}

/* Room up to twice the page, so that tidying is paid for by as many additions. */
static enum status make_room(struct page_builder *builder)
{
    size_t most = 2 * (builder->limit + 1);
    if (builder->capacity >= most) {
        tidy(builder);
        return STATUS_OK;
    }
    size_t capacity = builder->capacity == 0 ? FIRST_CAPACITY : 2 * builder->capacity;
    capacity = capacity < most ? capacity : most;
    struct page_row *rows = memory_resize(builder->rows, capacity * sizeof(*rows));
    if (rows == NULL) {
        return STATUS_NO_MEMORY;
    }
    builder->rows = rows;
    builder->capacity = capacity;
    return STATUS_OK;
}

enum status page_builder_add(struct page_builder *builder, const struct page_row *row)
{
    if (builder->count == builder->capacity) {
        enum status status = make_room(builder);
        if (status != STATUS_OK) {
            return status;
        }
    }
    builder->rows[builder->count++] = *row;
    return STATUS_OK;
}

void page_builder_finish(struct page_builder *builder, struct archive_page *page)
{
    tidy(builder);
    *page = (struct archive_page){.has_cursor = builder->count > builder->limit};
    if (page->has_cursor) {
        builder->count = builder->limit;
    }
    page->count = builder->count;
    if (builder->count == 0) {
        return;
    }
    memcpy(page->cursor, builder->rows[builder->count - 1].key.hash, MESSAGE_HASH_BYTES);
    for (size_t i = 0, j = builder->count - 1; builder->is_backward && i < j; i++, j--) {
        struct page_row row = builder->rows[i];
        builder->rows[i] = builder->rows[j];
        builder->rows[j] = row;
    }
}
