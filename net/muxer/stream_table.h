/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Streams of one connection by key: open addressing, linear probing, no memory while empty.
 * Keys come from the peer, so they are mixed with a seed that it does not know.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"

struct muxer_stream;

struct stream_table {
    struct muxer_stream **slots;
    size_t capacity; /* 0 or a power of two */
    size_t count;
};

struct muxer_stream *stream_table_find(const struct stream_table *table, uint64_t key);

/* Any stream; NULL when there is none. */
struct muxer_stream *stream_table_find_any(const struct stream_table *table);

/* By stream->key, which is not in the table yet. STATUS_NO_MEMORY. */
MUST_USE enum status stream_table_add(struct stream_table *table, struct muxer_stream *stream);

/* The stream is in the table. */
void stream_table_remove(struct stream_table *table, const struct muxer_stream *stream);

void stream_table_fini(struct stream_table *table);
