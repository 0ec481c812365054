/* SPDX-License-Identifier: MIT */
#pragma once

/* What an engine of the archive provides; private to archive/. */

#include "archive/archive.h"
#include "archive/page_builder.h"
#include "archive/selection.h"

struct archive_engine {
    const char *name;
    void (*close)(struct archive *archive);
    enum status (*put)(struct archive *archive, const struct archive_record records[], size_t count,
            struct archive_put_result *result);
    enum status (*totals)(struct archive *archive, struct archive_totals *out);
    enum status (*prune)(struct archive *archive, const struct archive_prune_limits *limits,
            size_t max_rows, struct archive_prune_result *result);
    /* All NULL where there is nothing to tend. */
    enum status (*tender_open)(struct archive_tender **out, struct archive *archive);
    void (*tender_close)(struct archive_tender *tender);
    bool (*wants_tending)(const struct archive *archive);
    uint64_t (*tender_due_ns)(const struct archive_tender *tender);
    enum status (*tend)(struct archive_tender *tender);

    enum status (*reader_open)(struct archive_reader **out, struct archive *archive);
    void (*reader_close)(struct archive_reader *reader);

    /* The page's rows into builder; selection without its cursor applied. */
    enum status (*select)(struct archive_reader *reader, struct archive_selection *selection,
            struct page_builder *builder);

    /* Gives what select found to the sink, or nothing and sets is_stale of builder. */
    enum status (*deliver)(struct archive_reader *reader, const struct archive_query *query,
            struct page_builder *builder, archive_sink *sink, void *context);
};

/* First member of every engine's own struct. */
struct archive {
    const struct archive_engine *engine;
    struct archive_record *scratch; /* the records of the envelopes being put */
    size_t scratch_count;
    uint64_t max_age_ns; /* constant once open */
};

struct archive_reader {
    struct archive *archive;
};

struct archive_tender {
    struct archive *archive;
};

MUST_USE enum status memory_archive_open(
        struct archive **out, const struct archive_options *options, struct archive_error *error);

/* path ":memory:" keeps everything in memory. */
MUST_USE enum status sqlite_archive_open(struct archive **out, const char *path,
        const struct archive_options *options, struct archive_error *error);
