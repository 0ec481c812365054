/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reads and writes reconciliation payloads, range by range. Part of router/reconciliation.
 *
 * A reader yields views into the payload and allocates nothing; whatever the bytes are, it ends with
 * a status. A writer keeps the rules that the reference's decoder needs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "router/reconciliation.h"
#include "router/sync_set.h"

enum sync_range_type {
    SYNC_RANGE_SKIP = 0,
    SYNC_RANGE_FINGERPRINT = 1,
    SYNC_RANGE_ITEM_SET = 2
};

struct sync_payload_range {
    struct sync_range bounds;
    enum sync_range_type type;
    const uint8_t *fingerprint; /* ID_HASH_BYTES */
    struct span items;          /* item_count of them, strictly ascending: see sync_item_next */
    size_t item_count;
    bool is_reconciled;
};

struct sync_payload_reader {
    struct span bytes;
    size_t position;
    int64_t last_ns; /* the upper bound of the range before */
};

/* 0 or 1 bytes: the session is over. */
bool sync_payload_is_end(struct span payload);

/* One of the two topic lists, into topics (room for max); *count is how many. */
MUST_USE enum status sync_payload_read_topics(struct sync_payload_reader *reader,
        struct span *topics, size_t max, size_t *count, size_t topic_bytes_max);

/* After both topic lists, before the ranges. */
MUST_USE enum status sync_payload_read_start(struct sync_payload_reader *reader);

bool sync_payload_has_range(const struct sync_payload_reader *reader);
MUST_USE enum status sync_payload_read_range(
        struct sync_payload_reader *reader, struct sync_payload_range *out);

/* Walks the items of a range that was read: start zeroed, false after the last. */
struct sync_item_walk {
    size_t position;
    struct id_key key;
};
MUST_USE bool sync_item_next(struct sync_item_walk *walk, const struct sync_payload_range *range);

/* What of a payload is there when the writer fails for want of memory is of no use. */
struct sync_payload_writer {
    struct sync_bytes *out;
    enum status status;
    int64_t last_ns;       /* the upper bound written last */
    int64_t item_ns;       /* of the item written last */
    struct id_key skip_to; /* of a skip not yet written: neighbouring ones are one */
    bool has_skip;
    bool has_ranges; /* other than skips */
};

enum {
    SYNC_BOUND_MAX_BYTES = 10 + 1 + ID_HASH_BYTES + 1, /* with the type */
    SYNC_ITEM_MAX_BYTES = 10 + ID_HASH_BYTES
};

void sync_payload_begin(struct sync_payload_writer *writer, struct sync_bytes *out,
        const struct sync_scope *scope, int64_t first_ns);
void sync_payload_skip(struct sync_payload_writer *writer, const struct id_key *to);
void sync_payload_fingerprint(struct sync_payload_writer *writer, const struct id_key *to,
        const uint8_t fingerprint[ID_HASH_BYTES]);

/* Followed by exactly count items in order and the end of the item set. */
void sync_payload_item_set(
        struct sync_payload_writer *writer, const struct id_key *to, size_t count);
void sync_payload_item(struct sync_payload_writer *writer, const struct id_key *item);
void sync_payload_item_set_end(struct sync_payload_writer *writer, bool is_reconciled);

/* Nothing but skips becomes the end payload. Returns the writer's status. */
MUST_USE enum status sync_payload_finish(struct sync_payload_writer *writer);
