/* SPDX-License-Identifier: MIT */
#include "archive/import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "archive/backup.h"
#include "archive/reference_database.h"
#include "archive/sqlite_engine.h"
#include "base/log.h"
#include "base/memory.h"
#include "codec/waku_message.h"

static const char module[] = "archive";

enum {
    BATCH_RECORDS = 256,
    BATCH_BYTES = 8 << 20,
    MESSAGES_PER_LINE = 100000 /* of the log */
};

/* Records with copies of their bytes, until there are enough of them. */
struct importer {
    struct archive *to;
    struct archive_import_result *result;
    struct archive_record records[BATCH_RECORDS];
    uint8_t *copies[BATCH_RECORDS];
    size_t count;
    size_t bytes;
};

static void clear(struct importer *importer)
{
    for (size_t i = 0; i < importer->count; i++) {
        memory_free(importer->copies[i]);
    }
    importer->count = 0;
    importer->bytes = 0;
}

static enum status flush(struct importer *importer)
{
    struct archive_put_result put;
    enum status status =
            archive_put_records(importer->to, importer->records, importer->count, &put);
    if (status == STATUS_OK) {
        uint64_t before = importer->result->read;
        importer->result->read += importer->count;
        importer->result->stored += put.stored;
        importer->result->duplicates += put.duplicates;
        if (before / MESSAGES_PER_LINE != importer->result->read / MESSAGES_PER_LINE) {
            log_write(LOG_NOTICE, module, "%" PRIu64 " messages imported so far",
                    importer->result->read);
        }
    }
    clear(importer);
    return status;
}

static enum status add(struct importer *importer, const struct archive_record *record)
{
    size_t topic = record->pubsub_topic.length;
    size_t size = topic + record->message.length;
    uint8_t *copy = memory_allocate(size + 1);
    if (copy == NULL) {
        return STATUS_NO_MEMORY;
    }
    memcpy(copy, record->pubsub_topic.bytes, topic);
    memcpy(copy + topic, record->message.bytes, record->message.length);
    struct archive_record *kept = &importer->records[importer->count];
    *kept = *record;
    kept->pubsub_topic = span_of(copy, topic);
    kept->message = span_of(copy + topic, record->message.length);
    if (record->content_topic.length > 0) {
        kept->content_topic.bytes =
                kept->message.bytes + (record->content_topic.bytes - record->message.bytes);
    }
    importer->copies[importer->count++] = copy;
    importer->bytes += size;
    bool is_full = importer->count == BATCH_RECORDS || importer->bytes >= BATCH_BYTES;
    return is_full ? flush(importer) : STATUS_OK;
}

static enum status import_reference(struct importer *importer, const char *path)
{
    struct reference_database *database = NULL;
    struct reference_row row;
    bool has_row = true;
    enum status status = reference_database_open(&database, path);
    while (status == STATUS_OK) {
        status = reference_database_next(database, &row, &has_row);
        if (status == STATUS_BAD_FIELD) {
            importer->result->bad++;
            status = STATUS_OK;
            continue;
        }
        if (status != STATUS_OK || !has_row) {
            break;
        }
        importer->result->other_hashes += row.had_other_hash;
        status = add(importer, &row.record);
    }
    reference_database_close(&database);
    return status;
}

static enum status add_row(void *context, const struct archive_row *row)
{
    struct importer *importer = context;
    struct waku_message_view view;
    if (waku_message_decode(&view, row->message) != STATUS_OK) {
        importer->result->bad++;
        return STATUS_OK;
    }
    struct archive_record record = {.pubsub_topic = row->pubsub_topic,
            .content_topic = view.content_topic,
            .message = row->message,
            .timestamp_ns = row->timestamp_ns,
            .received_ns = row->timestamp_ns,
            .origin = ORIGIN_RESUME};
    memcpy(record.hash, row->hash.bytes, MESSAGE_HASH_BYTES);
    return add(importer, &record);
}

/* Hashes of a page; the messages are asked for one by one, so that one that is damaged is left out. */
struct page_of_hashes {
    uint8_t hashes[BATCH_RECORDS][MESSAGE_HASH_BYTES];
    size_t count;
};

static enum status keep_hash(void *context, const struct archive_row *row)
{
    struct page_of_hashes *page = context;
    memcpy(page->hashes[page->count++], row->hash.bytes, MESSAGE_HASH_BYTES);
    return STATUS_OK;
}

static enum status add_page(struct importer *importer, struct archive_reader *reader,
        const struct page_of_hashes *hashes)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < hashes->count && status == STATUS_OK; i++) {
        struct span hash = span_of(hashes->hashes[i], MESSAGE_HASH_BYTES);
        struct archive_query query = {
                .hashes = &hash, .hash_count = 1, .include_data = true, .limit = 1};
        struct archive_page page;
        status = archive_query(reader, &query, add_row, importer, &page);
        if (status == STATUS_DAMAGED) {
            importer->result->bad++;
            status = STATUS_OK;
        }
    }
    return status;
}

static enum status import_pages(struct importer *importer, struct archive_reader *reader)
{
    struct archive_page page = {.has_cursor = false};
    struct page_of_hashes *hashes = memory_allocate(sizeof(*hashes));
    if (hashes == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = STATUS_OK;
    do {
        uint8_t cursor[MESSAGE_HASH_BYTES];
        memcpy(cursor, page.cursor, sizeof(cursor));
        struct archive_query query = {.limit = BATCH_RECORDS,
                .max_limit = BATCH_RECORDS,
                .has_cursor = page.has_cursor,
                .cursor = span_of(cursor, sizeof(cursor))};
        hashes->count = 0;
        status = archive_query(reader, &query, keep_hash, hashes, &page);
        if (status == STATUS_OK) {
            status = add_page(importer, reader, hashes);
        }
    } while (status == STATUS_OK && page.has_cursor);
    memory_free(hashes);
    return status;
}

static enum status import_archive(
        struct importer *importer, const char *from, struct archive_error *error)
{
    static const struct archive_options read_only = {.is_read_only = true};
    struct archive *archive = NULL;
    struct archive_reader *reader = NULL;
    enum status status = archive_open(&archive, from, &read_only, error);
    if (status == STATUS_OK) {
        status = archive_reader_open(&reader, archive);
    }
    if (status == STATUS_OK) {
        status = import_pages(importer, reader);
    }
    archive_reader_close(&reader);
    archive_close(&archive);
    return status;
}

enum status archive_import(struct archive *to, const char *from,
        struct archive_import_result *result, struct archive_error *error)
{
    const char *path = archive_path_of(from);
    *result = (struct archive_import_result){0};
    if (path == NULL) {
        snprintf(error->text, sizeof(error->text), "'%.400s': not sqlite://PATH", from);
        return STATUS_BAD_ARGUMENT;
    }
    struct importer *importer = memory_allocate_zeroed(sizeof(*importer));
    if (importer == NULL) {
        snprintf(error->text, sizeof(error->text), "%s", status_text(STATUS_NO_MEMORY));
        return STATUS_NO_MEMORY;
    }
    importer->to = to;
    importer->result = result;
    enum status status = sqlite_recognise(path, NULL);
    status = status == STATUS_REFERENCE_DATABASE ? import_reference(importer, path)
                                                 : import_archive(importer, from, error);
    if (status == STATUS_OK) {
        status = flush(importer);
    }
    clear(importer);
    memory_free(importer);
    if (status != STATUS_OK) {
        snprintf(error->text, sizeof(error->text), "import from %.900s: %s", path,
                status_text(status));
    }
    return status;
}

/* The mark of an import that is not complete is made before the archive is. */
static void write_mark_path(char out[PATH_MAX], const char *path)
{
    snprintf(out, PATH_MAX, "%s" ARCHIVE_IMPORTED_SUFFIX ".import-is-unfinished", path);
}

static enum status make_mark(const char *mark)
{
    int fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        return file_status_of(errno);
    }
    int result = fsync(fd);
    close(fd);
    return result < 0 ? file_status_of(errno) : STATUS_OK;
}

static enum status import_beside(
        struct archive *archive, const char *path, const char *mark, struct archive_error *error)
{
    char from[PATH_MAX + 16];
    struct archive_import_result result;
    snprintf(from, sizeof(from), "sqlite://%s", path);
    log_write(LOG_NOTICE, module, "%s is a database of nwaku: its messages are imported into %s%s",
            path, path, ARCHIVE_IMPORTED_SUFFIX);
    enum status status = archive_import(archive, from, &result, error);
    if (status == STATUS_OK && unlink(mark) < 0) {
        status = file_status_of(errno);
        snprintf(error->text, sizeof(error->text), "%.900s: %s", mark, status_text(status));
    }
    if (status == STATUS_OK) {
        log_write(LOG_NOTICE, module,
                "%" PRIu64 " messages imported, %" PRIu64 " were there, %" PRIu64
                " rows were no messages",
                result.stored, result.duplicates, result.bad);
    }
    return status;
}

enum status archive_open_imported(struct archive **out, const char *path,
        const struct archive_options *options, struct archive_error *error)
{
    char mark[PATH_MAX];
    char index[PATH_MAX];
    char address[PATH_MAX + 16];
    write_mark_path(mark, path);
    snprintf(index, sizeof(index), "%s" ARCHIVE_IMPORTED_SUFFIX, path);
    snprintf(address, sizeof(address), "sqlite://%s", index);
    enum status status = access(index, F_OK) == 0 ? STATUS_OK : make_mark(mark);
    if (status != STATUS_OK) {
        snprintf(error->text, sizeof(error->text), "%.900s: %s", mark, status_text(status));
        return status;
    }
    status = archive_open(out, address, options, error);
    if (status == STATUS_OK && access(mark, F_OK) == 0) {
        status = import_beside(*out, path, mark, error);
    }
    if (status != STATUS_OK) {
        archive_close(out);
    }
    return status;
}
