/* SPDX-License-Identifier: MIT */
#pragma once

/* What can be asked of an archive, with the meaning of store v3, and what comes back. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/status.h"
#include "queues/envelope.h"

enum {
    ARCHIVE_PAGE_DEFAULT = 20, /* rows, when a query names no limit */
    ARCHIVE_PAGE_MAX = 100     /* rows, whatever a peer asks for */
};

/*
 * All zero is the first page of everything, oldest first, hashes only. The order is (timestamp,
 * hash). hashes excludes pubsub_topic and content_topics (STATUS_BAD_QUERY); times restrict both.
 * A hash that is unknown is no error, one that is not 32 bytes long is STATUS_BAD_QUERY.
 */
struct archive_query {
    struct span pubsub_topic; /* length 0: any */
    const struct span *content_topics;
    size_t content_topic_count; /* 0: any; else one of them */
    const struct span *hashes;
    size_t hash_count;
    int64_t time_start_ns; /* inclusive */
    int64_t time_end_ns;   /* inclusive */
    struct span cursor;    /* a message hash: the page begins behind it, in paging direction */
    uint64_t limit;        /* rows; 0: ARCHIVE_PAGE_DEFAULT */
    uint64_t max_limit;    /* a larger limit is cut to it; 0: ARCHIVE_PAGE_MAX */
    uint64_t deadline_ns;  /* clock_monotonic_ns() at which to give up; 0: never */
    const atomic_bool
            *abandoned; /* once true, by any thread: the deadline has passed; may be NULL */
    bool has_time_start;
    bool has_time_end;
    bool has_cursor; /* STATUS_BAD_CURSOR unless it is 32 bytes, not all zero, and in the archive */
    bool include_data;
    bool include_topics; /* the topics of each row also without its message */
    bool is_backward;
};

/* One message of a page. Valid during the sink's call only, the envelope as long as it is held. */
struct archive_row {
    struct span hash;
    int64_t timestamp_ns;
    struct span pubsub_topic;           /* with include_data or include_topics, else empty */
    struct span content_topic;          /* with include_topics, else empty */
    struct span message;                /* with include_data: the serialised bytes as received */
    struct envelope *BORROWED envelope; /* memory engine; NULL where there is none */
};

/* Anything but STATUS_OK ends the query with that status. Must not block. */
typedef enum status archive_sink(void *context, const struct archive_row *row);

struct archive_page {
    size_t count;
    bool has_cursor; /* false on the last page */
    uint8_t cursor[MESSAGE_HASH_BYTES];
};
