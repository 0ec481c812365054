/* SPDX-License-Identifier: MIT */
#include "tests/support/archived_ids.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "archive/archive.h"
#include "base/clock.h"
#include "tests/support/cmocka.h"

enum {
    PAGE_ROWS = 10000,
    PATIENCE_S = 60
};

struct hashes {
    uint8_t *bytes;
    size_t count;
    size_t capacity;
};

static enum status keep(void *context, const struct archive_row *row)
{
    struct hashes *hashes = context;
    if (hashes->count == hashes->capacity) {
        hashes->capacity = hashes->capacity == 0 ? 1024 : hashes->capacity * 2;
        hashes->bytes = realloc(hashes->bytes, hashes->capacity * MESSAGE_HASH_BYTES);
    }
    memcpy(hashes->bytes + hashes->count++ * MESSAGE_HASH_BYTES, row->hash.bytes,
            MESSAGE_HASH_BYTES);
    return STATUS_OK;
}

struct archived_ids archived_ids(struct node *node)
{
    struct archive_reader *reader = NULL;
    struct archive_query query = {.limit = PAGE_ROWS, .max_limit = PAGE_ROWS};
    struct archive_page page = {0};
    struct hashes hashes = {.count = 0};
    struct archived_ids ids = {.count = 0};
    assert_int_equal(archive_reader_open(&reader, node_archive(node)), STATUS_OK);
    do {
        assert_int_equal(archive_query(reader, &query, keep, &hashes, &page), STATUS_OK);
        query.has_cursor = true;
        query.cursor = span_of(page.cursor, sizeof(page.cursor));
    } while (page.has_cursor);
    archive_reader_close(&reader);
    struct span all = span_of(hashes.bytes, hashes.count * MESSAGE_HASH_BYTES);
    ids.count = hashes.count;
    sha256(ids.digest, (struct sha256_pieces){&all, 1});
    free(hashes.bytes);
    return ids;
}

static void rest(void)
{
    struct timespec slice = {.tv_nsec = (long)20 * NANOSECONDS_PER_MILLISECOND};
    nanosleep(&slice, NULL);
}

static uint64_t end_of_patience(void)
{
    return clock_monotonic_ns() + (uint64_t)PATIENCE_S * NANOSECONDS_PER_SECOND;
}

void wait_archived(struct node *node, size_t count)
{
    uint64_t end_ns = end_of_patience();
    while (archived_ids(node).count < count && clock_monotonic_ns() < end_ns) {
        rest();
    }
    assert_int_equal(archived_ids(node).count, count);
}

void wait_same_archive(struct node *a, struct node *b)
{
    uint64_t end_ns = end_of_patience();
    struct archived_ids of_a = archived_ids(a);
    struct archived_ids of_b = archived_ids(b);
    while (memcmp(of_a.digest, of_b.digest, sizeof(of_a.digest)) != 0 &&
            clock_monotonic_ns() < end_ns) {
        rest();
        of_a = archived_ids(a);
        of_b = archived_ids(b);
    }
    assert_int_equal(of_a.count, of_b.count);
    assert_memory_equal(of_a.digest, of_b.digest, sizeof(of_a.digest));
}
