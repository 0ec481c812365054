/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Where messages are kept and found again: one interface, an engine behind it (memory or SQLite).
 *
 * Ownership:  the archive takes references of its own to envelopes that it keeps.
 * Lifetime:   readers are closed, and rows given back, before archive_close.
 * Thread:     a struct archive belongs to one thread, the archive worker. Readers are opened and
 *             used on other threads, each by one at a time. What is marked "any thread" may be
 *             called on all.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/archive_query.h"
#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "queues/envelope.h"

/* Behind the path of a database of the reference: where its messages are imported to. */
#define ARCHIVE_IMPORTED_SUFFIX ".sluice"

struct archive;
struct archive_reader;
struct archive_tender;
struct file_ops;

struct archive_options {
    uint64_t memory_limit_bytes;  /* of messages in the memory engine; 0: no limit */
    bool is_read_only;            /* nothing is created or changed; only for existing files */
    uint64_t segment_bytes;       /* size at which a segment file is full; 0: 64 MiB */
    bool gives_back_free_space;   /* of the index, all of it before archive_open returns */
    uint64_t max_age_ns;          /* queries show no older timestamps, pruned or not; 0: all */
    const char *vfs;              /* the SQLite VFS to use; NULL: the default one */
    const struct file_ops *files; /* how segment files are written; NULL: by the system */
};

/* Why it could not be opened, in one line that names the thing. */
struct archive_error {
    char text[1024];
};

/*
 * address: "memory", "sqlite://PATH" or "sqlite://:memory:". STATUS_BAD_ARGUMENT (no such engine),
 * STATUS_NOT_FOUND (the folder, or with is_read_only the file), STATUS_NOT_A_DATABASE,
 * STATUS_REFERENCE_DATABASE (nwaku's; nothing of it is touched), STATUS_NEWER_SCHEMA, STATUS_READ_ONLY, STATUS_DISK_FULL, STATUS_DAMAGED, STATUS_BUSY (another
 * process writes it), STATUS_SYSTEM. options NULL: all zero. A damaged index is set aside and made
 * again from the segments, unless is_read_only.
 */
MUST_USE enum status archive_open(struct archive **out, const char *address,
        const struct archive_options *options, struct archive_error *error);
/* Whether archive_open knows an engine for it. */
bool archive_takes_address(const char *address);
void archive_close(struct archive **archive);

/* "memory" or "sqlite". Any thread. */
const char *BORROWED archive_engine_name(const struct archive *archive);

/* A message to be stored that need not have an envelope (it comes out of the spill file). */
struct archive_record {
    struct envelope *BORROWED envelope; /* NULL: there is none */
    struct span pubsub_topic;
    struct span content_topic; /* inside message */
    struct span message;       /* serialised, as received */
    int64_t timestamp_ns;
    int64_t received_ns;
    enum message_origin origin;
    uint8_t hash[MESSAGE_HASH_BYTES];
};

struct archive_record archive_record_of(struct envelope *BORROWED envelope);

struct archive_put_result {
    size_t stored;     /* new */
    size_t duplicates; /* were there before, or twice in the batch */
};

/*
 * All of them in one transaction; what is there already is counted and left as it is. After
 * STATUS_OK the batch is on disk (SQLite engine with a file). After anything else nothing of it is
 * stored, and the same batch may be put again: STATUS_DISK_FULL, STATUS_READ_ONLY, STATUS_BUSY,
 * STATUS_DAMAGED, STATUS_NO_MEMORY, STATUS_SYSTEM; STATUS_TOO_LARGE for a message above 256 MiB.
 */
MUST_USE enum status archive_put(struct archive *archive, struct envelope *const envelopes[],
        size_t count, struct archive_put_result *result);
MUST_USE enum status archive_put_records(struct archive *archive,
        const struct archive_record records[], size_t count, struct archive_put_result *result);

struct archive_totals {
    uint64_t count;
    uint64_t message_bytes; /* of the messages as they are kept, without the index */
    uint64_t size_bytes;    /* memory or disk taken by everything */
    int64_t oldest_ns;      /* timestamps; both 0 when there is none */
    int64_t newest_ns;
};

MUST_USE enum status archive_totals(struct archive *archive, struct archive_totals *out);

struct archive_prune_limits {
    int64_t oldest_ns;       /* messages with an earlier timestamp go; INT64_MIN: none */
    uint64_t max_count;      /* the oldest beyond it go; UINT64_MAX: no bound */
    uint64_t max_bytes;      /* of message_bytes, likewise; UINT64_MAX: no bound */
    uint64_t max_size_bytes; /* of size_bytes, likewise (memory engine: of message_bytes) */
    uint64_t until_ns; /* monotonic: a step ends then, once least_rows went; UINT64_MAX: none */
    size_t least_rows;
};

extern const struct archive_prune_limits archive_prune_nothing;

struct archive_prune_result {
    size_t removed;
    bool has_more; /* call again: more is to be removed or given back */
};

/*
 * One step: at most max_rows of what the limits exclude go, the oldest first. When that is less than
 * max_rows, disk space goes back to the system besides: one segment file whose messages are all gone
 * is removed, or some of the few that are left in one are moved, or the index gives up free pages.
 *
 * Under max_size_bytes an eighth of the bound is kept for what is dead but not given back yet, so that
 * what segments and index take on disk stays below the bound once has_more is false.
 */
MUST_USE enum status archive_prune(struct archive *archive,
        const struct archive_prune_limits *limits, size_t max_rows,
        struct archive_prune_result *result);

/* Thread: any, while the archive is open. */
MUST_USE enum status archive_reader_open(struct archive_reader **out, struct archive *archive);
void archive_reader_close(struct archive_reader **reader);

/*
 * One page, given row by row to sink in chronological order (also when paging backward). Takes no
 * lock while the sink runs. STATUS_BAD_CURSOR, STATUS_BAD_QUERY, STATUS_TIMED_OUT (the query's
 * deadline passed), what the sink returned, or the engine's failure: the page is then void.
 */
MUST_USE enum status archive_query(struct archive_reader *reader, const struct archive_query *query,
        archive_sink *sink, void *context, struct archive_page *page);
