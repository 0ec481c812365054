/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The SQLite engine's insides: messages in segment files, the index of them in SQLite.
 *
 * A put is durable with one sync, that of the segment file: the index is in WAL mode and not synced
 * at every commit, so a power cut may take its last commits back, but never leaves half of one. What
 * the index then lacks is read again from the segment when the archive is opened (sqlite_recovery.c).
 */

#include <sys/uio.h>

#include "archive/engine.h"
#include "archive/record.h"
#include "archive/segments.h"
#include "archive/sqlite_connection.h"
#include "archive/sqlite_journal.h"
#include "archive/sqlite_reserve.h"
#include "archive/topic_cache.h"

#define SQLITE_SEGMENTS_SUFFIX "-segments"

struct sqlite_archive {
    struct archive base;
    struct sqlite_target target;
    char *name; /* target.name */
    struct sqlite_connection connection;
    struct segments *segments;
    struct sqlite_tending tending;
    struct sqlite_reserve reserve;
    struct topic_cache pubsub_topics;
    struct topic_cache content_topics;

    uint8_t *headers; /* of the records of the batch being put */
    struct iovec *parts;
    size_t batch_capacity;

    int64_t trimmed_content; /* content topics up to this id were looked at for being unused */
    bool may_have_unused_content;
    int64_t moving_segment; /* the sparse segment that is being emptied, or was last */
    uint64_t moving_offset; /* how far */
    bool is_moving;
};

struct sqlite_reader {
    struct archive_reader base;
    struct sqlite_connection connection;
    int64_t segment; /* the file that is open; 0: none */
    int fd;
    uint8_t *buffer; /* of the record shown last */
    size_t capacity;
};

/* One batch on its way into a segment. */
struct sqlite_batch {
    int64_t segment;
    uint64_t offset; /* of the next record */
    size_t stored;
    int64_t bytes; /* of the stored records */
};

/* Inside a transaction; *is_new false when the hash was there. */
MUST_USE enum status sqlite_index_record(struct sqlite_archive *archive, struct sqlite_batch *batch,
        const struct archive_record *record, bool *is_new);
MUST_USE enum status sqlite_save_batch(
        struct sqlite_archive *archive, const struct sqlite_batch *batch);

/* Room for count records in headers and parts. */
MUST_USE enum status sqlite_reserve_batch(struct sqlite_archive *archive, size_t count);

/* Puts the record, which is new, into place number i of headers and parts. */
void sqlite_stage_record(
        struct sqlite_archive *archive, size_t i, const struct archive_record *record);

/* What is no longer wanted of a segment; inside a transaction. */
MUST_USE enum status sqlite_shrink_segment(
        struct sqlite_archive *archive, int64_t segment, int64_t count, int64_t bytes);

/* Ends a failed transaction with all that belongs to it. */
void sqlite_give_up(struct sqlite_archive *archive);

MUST_USE enum status sqlite_archive_put(struct archive *archive,
        const struct archive_record records[], size_t count, struct archive_put_result *result);
MUST_USE enum status sqlite_archive_prune(struct archive *archive,
        const struct archive_prune_limits *limits, size_t max_rows,
        struct archive_prune_result *result);

/* How much is to be done at once: rows, records, pages, and the time it may take. */
struct sqlite_step {
    size_t max_rows;
    size_t least_rows;
    uint64_t until_ns; /* monotonic; UINT64_MAX: no bound */
};

/* Whether a step that has done so many is to end. */
bool sqlite_step_is_over(const struct sqlite_step *step, size_t done);

/*
 * Empties a segment of which little is still wanted by putting that into the current one; with
 * is_pressed the one that has most that is not, however much is. Looks at a step's records; *has_more
 * when there may be more to move.
 */
MUST_USE enum status sqlite_compact(struct sqlite_archive *archive, const struct sqlite_step *step,
        bool is_pressed, bool *has_more);

/*
 * Gives back what pruning has left behind, a step of it; *has_more when there is more to do.
 * is_pressed: there is more than the operator allows.
 */
MUST_USE enum status sqlite_give_back(struct sqlite_archive *archive,
        const struct sqlite_step *step, bool is_pressed, bool *has_more);

/* What is in the segments and what the index takes, in bytes but for count. */
struct sqlite_extent {
    int64_t count;
    int64_t live;     /* of the messages that are wanted */
    int64_t segments; /* of the segment files */
    int64_t index;    /* of the index file */
    int64_t free;     /* of its pages that are not used */
    int64_t doomed;   /* of segment files that are about to go; segments has none of them */
};

MUST_USE enum status sqlite_read_extent(struct sqlite_archive *archive, struct sqlite_extent *out);

/* Forgets that segment existed. Its file goes soon, or now if there is no tender. */
MUST_USE enum status sqlite_drop_segment(
        struct sqlite_archive *archive, const struct sqlite_doomed *segment);

/*
 * The files of the doomed, by who has connection. STATUS_BUSY while a backup copies files: it may still
 * want these.
 */
MUST_USE enum status sqlite_remove_doomed(
        struct sqlite_archive *archive, struct sqlite_connection *connection);

/* sqlite_tender.c */
MUST_USE enum status sqlite_tender_open(struct archive_tender **out, struct archive *archive);
void sqlite_tender_close(struct archive_tender *tender);
bool sqlite_archive_wants_tending(const struct archive *archive);
uint64_t sqlite_tender_due_ns(const struct archive_tender *tender);
MUST_USE enum status sqlite_tend(struct archive_tender *tender);

/* STATUS_NOT_A_DATABASE, STATUS_NEWER_SCHEMA; *is_new when there is nothing in it yet. */
MUST_USE enum status sqlite_check_schema(struct sqlite_connection *connection, bool *is_new);

/*
 * Whose the file at path is, without changing anything beside it or in it: STATUS_OK (ours, or there
 * is none), STATUS_REFERENCE_DATABASE, STATUS_NOT_A_DATABASE, STATUS_NEWER_SCHEMA, STATUS_DAMAGED (ours
 * once: there are segments beside it).
 */
MUST_USE enum status sqlite_recognise(const char *path, const char *vfs);

/* Fills target for reading a database at path that may be somebody else's. */
void sqlite_foreign_target(struct sqlite_target *target, const char *path, const char *vfs);

/* Whether it has the table that the reference keeps messages in. */
bool sqlite_has_reference_table(struct sqlite_connection *connection);

/* A damaged index is renamed, if nobody writes it. An error was met: it is to be done at the next start. */
bool sqlite_set_index_aside(const char *path);
void sqlite_note_damage(const struct sqlite_archive *archive);

/* Brings the index up to date with the segment files. */
MUST_USE enum status sqlite_recover(struct sqlite_archive *archive);

MUST_USE enum status sqlite_archive_reader_open(
        struct archive_reader **out, struct archive *archive);
void sqlite_archive_reader_close(struct archive_reader *reader);
MUST_USE enum status sqlite_archive_select(struct archive_reader *reader,
        struct archive_selection *selection, struct page_builder *builder);
MUST_USE enum status sqlite_archive_deliver(struct archive_reader *reader,
        const struct archive_query *query, struct page_builder *builder, archive_sink *sink,
        void *context);
