/* SPDX-License-Identifier: MIT */
#include "archive/archive.h"

#include <stdio.h>
#include <string.h>

#include "archive/engine.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/memory.h"

static const char sqlite_scheme[] = "sqlite://";

enum {
    /* Retention may take rows away between finding and reading them, but hardly this often. */
    MAX_SELECT_ROUNDS = 8
};

const struct archive_prune_limits archive_prune_nothing = {
        .oldest_ns = INT64_MIN,
        .max_count = UINT64_MAX,
        .max_bytes = UINT64_MAX,
        .max_size_bytes = UINT64_MAX,
        .until_ns = UINT64_MAX,
};

static enum status open_engine(struct archive **out, const char *address,
        const struct archive_options *options, struct archive_error *error)
{
    if (strcmp(address, "memory") == 0) {
        return memory_archive_open(out, options, error);
    }
    size_t length = sizeof(sqlite_scheme) - 1;
    if (strncmp(address, sqlite_scheme, length) == 0 && address[length] != '\0') {
        return sqlite_archive_open(out, address + length, options, error);
    }
    snprintf(error->text, sizeof(error->text),
            "archive '%s': not memory, sqlite://PATH or sqlite://:memory:", address);
    return STATUS_BAD_ARGUMENT;
}

bool archive_takes_address(const char *address)
{
    size_t length = sizeof(sqlite_scheme) - 1;
    return strcmp(address, "memory") == 0 ||
           (strncmp(address, sqlite_scheme, length) == 0 && address[length] != '\0');
}

enum status archive_open(struct archive **out, const char *address,
        const struct archive_options *options, struct archive_error *error)
{
    static const struct archive_options none;
    options = options != NULL ? options : &none;
    enum status status = open_engine(out, address, options, error);
    if (status == STATUS_OK) {
        (*out)->max_age_ns = options->max_age_ns;
    }
    return status;
}

void archive_close(struct archive **archive)
{
    if (*archive == NULL) {
        return;
    }
    memory_free((*archive)->scratch);
    (*archive)->engine->close(*archive);
    *archive = NULL;
}

const char *archive_engine_name(const struct archive *archive)
{
    return archive->engine->name;
}

struct archive_record archive_record_of(struct envelope *envelope)
{
    struct archive_record record = {
            .envelope = envelope,
            .pubsub_topic = envelope->topic->name,
            .content_topic = envelope->content_topic,
            .message = envelope->message,
            .timestamp_ns = envelope->timestamp_ns,
            .received_ns = envelope->received_ns,
            .origin = envelope->origin,
    };
    memcpy(record.hash, envelope->hash, MESSAGE_HASH_BYTES);
    return record;
}

enum status archive_put(struct archive *archive, struct envelope *const envelopes[], size_t count,
        struct archive_put_result *result)
{
    if (archive->scratch_count < count) {
        struct archive_record *grown =
                memory_resize(archive->scratch, count * sizeof(*archive->scratch));
        if (grown == NULL) {
            return STATUS_NO_MEMORY;
        }
        archive->scratch = grown;
        archive->scratch_count = count;
    }
    for (size_t i = 0; i < count; i++) {
        archive->scratch[i] = archive_record_of(envelopes[i]);
    }
    return archive_put_records(archive, archive->scratch, count, result);
}

enum status archive_put_records(struct archive *archive, const struct archive_record records[],
        size_t count, struct archive_put_result *result)
{
    *result = (struct archive_put_result){0};
    if (count == 0) {
        return STATUS_OK;
    }
    uint64_t began = clock_monotonic_ns();
    enum status status = archive->engine->put(archive, records, count, result);
    duration_observe(METRIC_ARCHIVE_INSERT_LE_5MS, clock_monotonic_ns() - began, 1);
    return status;
}

enum status archive_totals(struct archive *archive, struct archive_totals *out)
{
    *out = (struct archive_totals){0};
    return archive->engine->totals(archive, out);
}

enum status archive_prune(struct archive *archive, const struct archive_prune_limits *limits,
        size_t max_rows, struct archive_prune_result *result)
{
    *result = (struct archive_prune_result){0};
    return archive->engine->prune(archive, limits, max_rows, result);
}

enum status archive_reader_open(struct archive_reader **out, struct archive *archive)
{
    return archive->engine->reader_open(out, archive);
}

void archive_reader_close(struct archive_reader **reader)
{
    if (*reader != NULL) {
        (*reader)->archive->engine->reader_close(*reader);
        *reader = NULL;
    }
}

/* What retention will remove is not shown in the moment before it does. */
static void hide_expired(struct archive_selection *selection, uint64_t max_age_ns)
{
    int64_t now = clock_wall_ns();
    if (max_age_ns == 0 || now <= 0 || (uint64_t)now <= max_age_ns) {
        return;
    }
    struct id_key oldest = {.timestamp_ns = now - (int64_t)max_age_ns};
    if (id_key_compare(&oldest, &selection->lower) > 0) {
        selection->lower = oldest;
    }
}

enum status archive_query(struct archive_reader *reader, const struct archive_query *query,
        archive_sink *sink, void *context, struct archive_page *page)
{
    const struct archive_engine *engine = reader->archive->engine;
    struct archive_selection selection;
    enum status status = selection_init(&selection, query);
    if (status != STATUS_OK) {
        return status;
    }
    hide_expired(&selection, reader->archive->max_age_ns);
    struct page_builder builder;
    page_builder_init(&builder, selection.limit, query->is_backward);
    for (unsigned round = 0; round < MAX_SELECT_ROUNDS; round++) {
        struct archive_selection fresh = selection;
        page_builder_clear(&builder);
        status = engine->select(reader, &fresh, &builder);
        if (status != STATUS_OK) {
            break;
        }
        page_builder_finish(&builder, page);
        status = engine->deliver(reader, query, &builder, sink, context);
        if (!builder.is_stale) {
            break;
        }
        status = STATUS_BUSY;
    }
    page_builder_fini(&builder);
    return status;
}
