/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The messages of store v3, read where they lie.
 *
 * Lifetime: what is read points into the bytes that it was read from.
 * Thread:   any; no state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/archive_query.h"
#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

#define STORE_PROTOCOL_ID "/vac/waku/store-query/3.0.0"

enum {
    STORE_REQUEST_MAX = 1024 * 1024,
    STORE_REQUEST_ID_MAX = 1024,
    STORE_CONTENT_TOPICS_MAX = 10000,
    STORE_ENTRY_HEAD_MAX = 64, /* of what stands before a message in an answer */
    STORE_ANSWER_HEAD_MAX = STORE_REQUEST_ID_MAX + 64
};

struct store_request {
    struct span request_id; /* empty: there is none */
    struct archive_query query;
    struct span *lists; /* what the query's lists point to */
};

/*
 * STATUS_TRUNCATED, STATUS_BAD_VARINT, STATUS_BAD_FIELD: no protobuf message; STATUS_LIMIT_REACHED:
 * longer than the limits above; STATUS_NO_MEMORY. To be given to store_request_fini even then.
 * Whether the query makes sense is for the archive to say.
 */
MUST_USE enum status store_request_read(struct store_request *out, struct span message);
void store_request_fini(struct store_request *request);

/* The request id in the bytes that a request begins with; empty when it is not among them. */
struct span store_request_id_of(struct span beginning);

/* *out is the caller's, from base/memory.h. */
MUST_USE enum status store_request_write(
        uint8_t **out, size_t *length, const struct store_request *request);

/* What is written of an answer around the messages. Each returns the place behind what it wrote. */
uint8_t *store_write_head(
        uint8_t *to, struct span request_id, uint32_t code, struct span description);
uint8_t *store_write_entry_head(uint8_t *to, const struct archive_row *row, bool has_data);
size_t store_entry_tail_size(const struct archive_row *row);
uint8_t *store_write_entry_tail(uint8_t *to, const struct archive_row *row);
uint8_t *store_write_cursor(uint8_t *to, const uint8_t cursor[MESSAGE_HASH_BYTES]);

struct store_entry {
    struct span hash;
    struct span message;
    struct span pubsub_topic;
};

struct store_answer_view {
    struct span request_id;
    uint32_t code;
    struct span description;
    struct span cursor; /* empty on the last page */
    struct span rest;   /* for store_answer_next */
};

MUST_USE enum status store_answer_read(struct store_answer_view *out, struct span message);

/* The entries in turn; false after the last one. An entry that is malformed is STATUS_BAD_FIELD. */
MUST_USE bool store_answer_next(
        struct store_answer_view *view, struct store_entry *out, enum status *status);
