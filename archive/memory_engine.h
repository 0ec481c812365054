/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The memory engine's insides: references to envelopes, found by hash and in store order.
 *
 * Thread: lock guards table, tree and totals. The archive worker, who alone writes them, has it to
 *         itself for one message or one slice of an eviction; readers share it for one slice of a scan.
 */

#include <pthread.h>

#include "archive/engine.h"
#include "archive/message_table.h"
#include "base/span.h"
#include "hash/id_tree.h"
#include "queues/topic.h"

enum {
    MEMORY_SLICE_ROWS = 256 /* looked at while the lock is held */
};

struct memory_topic;

struct memory_archive {
    struct archive base;
    uint64_t limit_bytes; /* 0: none */
    pthread_rwlock_t lock;
    struct message_table table;
    struct id_tree *tree;   /* value: the envelope; scope: see memory_content_tag */
    uint64_t charged_bytes; /* of what is held: frames and envelopes */
    bool *is_new;           /* of the records of a batch; the worker's, kept from one to the next */
    size_t is_new_capacity;
    struct memory_topic *topics; /* of records that came without an envelope; the worker's */
};

struct memory_reader {
    struct archive_reader base;
};

struct id_key memory_key_of(const struct envelope *envelope);

/* A few bits of a content topic, to pass over others without touching their envelopes. */
uint32_t memory_content_tag(struct span content_topic);

MUST_USE enum status memory_archive_select(struct archive_reader *reader,
        struct archive_selection *selection, struct page_builder *builder);
MUST_USE enum status memory_archive_deliver(struct archive_reader *reader,
        const struct archive_query *query, struct page_builder *builder, archive_sink *sink,
        void *context);
