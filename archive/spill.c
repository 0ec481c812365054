/* SPDX-License-Identifier: MIT */
#include "archive/spill.h"

#include <assert.h>
#include <endian.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>

#include "archive/record.h"
#include "base/memory.h"

/*
 * The file: 8 bytes that name its kind, 8 bytes little-endian with the offset of the first waiting
 * record, then records. That offset may be behind the truth after a crash, never ahead of it.
 */
enum {
    FILE_HEADER_BYTES = 16,
    PUNCH_BYTES = 16 << 20, /* of discarded records, before their disk space is given back */
    SCAN_RECORDS = 64,
    SCAN_BYTES = 1 << 20
};

static const char file_magic[8] = {'S', 'l', 'u', 'S', 'p', 'i', 'l', '1'};

struct spill {
    const struct file_ops *files;
    uint64_t limit_bytes;
    uint64_t head;    /* offset of the first waiting record */
    uint64_t tail;    /* offset behind the last one */
    uint64_t punched; /* before it the disk space is given back */
    size_t count;     /* of waiting records */
    int fd;
    atomic_bool can_punch;
    bool is_head_written; /* the last one */

    uint8_t *buffer; /* what peek has read, from head on */
    size_t buffer_capacity;
    uint64_t *ends; /* of the records in it, as offsets in the file */
    size_t ends_capacity;
    size_t peeked;
};

static enum status write_header(struct spill *spill)
{
    uint8_t header[FILE_HEADER_BYTES];
    uint64_t head = htole64(spill->head);
    memcpy(header, file_magic, sizeof(file_magic));
    memcpy(header + sizeof(file_magic), &head, sizeof(head));
    struct iovec all = {header, sizeof(header)};
    return file_write_all(spill->files, spill->fd, &all, 1, 0);
}

/* A file too short for a header is new. */
static enum status read_header(struct spill *spill)
{
    uint8_t header[FILE_HEADER_BYTES];
    struct iovec all = {header, sizeof(header)};
    size_t count = 0;
    enum status status = file_read_at(spill->files, spill->fd, all, 0, &count);
    if (status != STATUS_OK) {
        return status;
    }
    size_t known = count < sizeof(file_magic) ? count : sizeof(file_magic);
    if (memcmp(header, file_magic, known) != 0) {
        return STATUS_NOT_A_DATABASE;
    }
    spill->head = FILE_HEADER_BYTES;
    if (count < sizeof(header)) {
        return write_header(spill);
    }
    uint64_t head = 0;
    memcpy(&head, header + sizeof(file_magic), sizeof(head));
    head = le64toh(head);
    off_t size = spill->files->size(spill->fd);
    if (size < 0) {
        return file_status_of((int)-size);
    }
    /* Behind the end nothing waits. */
    head = head <= (uint64_t)size ? head : (uint64_t)size;
    spill->head = head < FILE_HEADER_BYTES ? FILE_HEADER_BYTES : head;
    return STATUS_OK;
}

static enum status reserve(struct spill *spill, size_t bytes)
{
    if (spill->buffer_capacity >= bytes) {
        return STATUS_OK;
    }
    uint8_t *grown = memory_resize(spill->buffer, bytes);
    if (grown == NULL) {
        return STATUS_NO_MEMORY;
    }
    spill->buffer = grown;
    spill->buffer_capacity = bytes;
    return STATUS_OK;
}

/* Bytes of the file from offset on; *length says how many there were. */
static enum status fill(struct spill *spill, uint64_t offset, size_t bytes, size_t *length)
{
    enum status status = reserve(spill, bytes);
    if (status != STATUS_OK) {
        return status;
    }
    struct iovec to = {spill->buffer, bytes};
    return file_read_at(spill->files, spill->fd, to, offset, length);
}

struct chunk {
    struct archive_record *records;
    size_t capacity;
    size_t count;
    uint64_t end; /* in the file, of the last record */
};

/* Whole records in the first length bytes of the buffer, which stand at chunk->end in the file. */
static void decode_chunk(struct spill *spill, struct chunk *chunk, size_t length)
{
    size_t at = 0;
    while (chunk->count < chunk->capacity && length - at >= RECORD_HEADER_BYTES) {
        size_t size = 0;
        if (record_peek_size(&size, spill->buffer + at) != STATUS_OK || size > length - at ||
                record_decode(&chunk->records[chunk->count], span_of(spill->buffer + at, size)) !=
                        STATUS_OK) {
            return;
        }
        at += size;
        chunk->end += size;
        spill->ends[chunk->count++] = chunk->end;
    }
}

/* Records from chunk->end on; none (and STATUS_OK) where there is no whole one. */
static enum status read_chunk(struct spill *spill, struct chunk *chunk, size_t max_bytes)
{
    if (spill->ends_capacity < chunk->capacity) {
        uint64_t *grown = memory_resize(spill->ends, chunk->capacity * sizeof(*grown));
        if (grown == NULL) {
            return STATUS_NO_MEMORY;
        }
        spill->ends = grown;
        spill->ends_capacity = chunk->capacity;
    }
    size_t length = 0;
    uint64_t start = chunk->end;
    size_t bytes = max_bytes < RECORD_HEADER_BYTES ? RECORD_HEADER_BYTES : max_bytes;
    enum status status = fill(spill, start, bytes, &length);
    if (status != STATUS_OK) {
        return status;
    }
    size_t first = 0;
    if (length >= RECORD_HEADER_BYTES && record_peek_size(&first, spill->buffer) == STATUS_OK &&
            first > bytes) {
        status = fill(spill, start, first, &length);
    }
    if (status == STATUS_OK) {
        decode_chunk(spill, chunk, length);
    }
    return status;
}

/* Counts the records from head on and makes what is behind the last good one go. */
static enum status recover(struct spill *spill)
{
    struct archive_record records[SCAN_RECORDS];
    struct chunk chunk = {.records = records, .capacity = SCAN_RECORDS, .end = spill->head};
    do {
        chunk.count = 0;
        enum status status = read_chunk(spill, &chunk, SCAN_BYTES);
        if (status != STATUS_OK) {
            return status;
        }
        spill->count += chunk.count;
    } while (chunk.count > 0);
    spill->tail = chunk.end;
    if (spill->count == 0) {
        spill->head = FILE_HEADER_BYTES;
        spill->tail = FILE_HEADER_BYTES;
    }
    spill->punched = FILE_HEADER_BYTES;
    int error = spill->files->truncate(spill->fd, (off_t)spill->tail);
    return error < 0 ? file_status_of(-error) : write_header(spill);
}

static enum status set_up(struct spill *spill, const char *path)
{
    spill->fd = spill->files->open(path, O_RDWR | O_CREAT);
    if (spill->fd < 0) {
        return file_status_of(-spill->fd);
    }
    int error = spill->files->lock(spill->fd);
    if (error < 0) {
        return file_status_of(-error);
    }
    enum status status = read_header(spill);
    return status == STATUS_OK ? recover(spill) : status;
}

enum status spill_open(struct spill **out, const struct spill_options *options)
{
    struct spill *spill = memory_allocate_zeroed(sizeof(*spill));
    if (spill == NULL) {
        return STATUS_NO_MEMORY;
    }
    spill->files = options->files != NULL ? options->files : &file_ops_of_system;
    spill->limit_bytes = options->limit_bytes;
    atomic_init(&spill->can_punch, true);
    enum status status = set_up(spill, options->path);
    if (status != STATUS_OK) {
        spill_close(&spill);
        return status;
    }
    *out = spill;
    return STATUS_OK;
}

void spill_close(struct spill **spill_to_close)
{
    struct spill *spill = *spill_to_close;
    if (spill == NULL) {
        return;
    }
    if (spill->fd >= 0) {
        spill->files->close(spill->fd);
    }
    memory_free(spill->buffer);
    memory_free(spill->ends);
    memory_free(spill);
    *spill_to_close = NULL;
}

/* Where disk space cannot be given back in part, the discarded records count as well. */
static uint64_t bytes_in_use(const struct spill *spill)
{
    bool can_punch = atomic_load_explicit(&spill->can_punch, memory_order_relaxed);
    return spill->tail - (can_punch ? spill->head : FILE_HEADER_BYTES);
}

enum status spill_push(struct spill *spill, const struct archive_record *record)
{
    enum status status = record_check(record);
    if (status != STATUS_OK) {
        return status;
    }
    uint64_t size = record_size(record);
    uint64_t used = bytes_in_use(spill);
    if (used > spill->limit_bytes || size > spill->limit_bytes - used) {
        return STATUS_LIMIT_REACHED;
    }
    uint8_t header[RECORD_HEADER_BYTES];
    record_encode_header(header, record);
    struct iovec parts[] = {{header, sizeof(header)},
            {(void *)record->pubsub_topic.bytes, record->pubsub_topic.length},
            {(void *)record->message.bytes, record->message.length}};
    status = file_write_all(
            spill->files, spill->fd, parts, sizeof(parts) / sizeof(parts[0]), spill->tail);
    if (status != STATUS_OK) {
        /* Half a record behind the tail is written over by the next one or cut off at the start. */
        return status;
    }
    spill->tail += size;
    spill->count++;
    return STATUS_OK;
}

size_t spill_count(const struct spill *spill)
{
    return spill->count;
}

uint64_t spill_bytes(const struct spill *spill)
{
    return spill->tail - spill->head;
}

enum status spill_peek(struct spill *spill, struct archive_record records[], size_t capacity,
        size_t max_bytes, size_t *count)
{
    *count = 0;
    spill->peeked = 0;
    size_t most = capacity < spill->count ? capacity : spill->count;
    if (most == 0) {
        return STATUS_OK;
    }
    struct chunk chunk = {.records = records, .capacity = most, .end = spill->head};
    enum status status = read_chunk(spill, &chunk, max_bytes);
    if (status != STATUS_OK) {
        return status;
    }
    spill->peeked = chunk.count;
    *count = chunk.count;
    return chunk.count == 0 ? STATUS_DAMAGED : STATUS_OK;
}

/* Nothing waits: the file begins again. */
static void empty(struct spill *spill)
{
    spill->head = FILE_HEADER_BYTES;
    spill->tail = FILE_HEADER_BYTES;
    spill->punched = FILE_HEADER_BYTES;
    spill->count = 0;
    spill->peeked = 0;
    /* The header first: a head beyond the end would hide what is written next. */
    enum status status = write_header(spill);
    int error = spill->files->truncate(spill->fd, FILE_HEADER_BYTES);
    /* Old records that stay are known to the archive by their hashes. */
    (void)status;
    (void)error;
}

void spill_discard(struct spill *spill, size_t count)
{
    assert(count <= spill->peeked);
    if (count == 0) {
        return;
    }
    if (count == spill->count) {
        empty(spill);
        return;
    }
    spill->head = spill->ends[count - 1];
    spill->count -= count;
    spill->peeked = 0;
    /* Without a header an older head stays: what it leads to must not become a hole. */
    spill->is_head_written = write_header(spill) == STATUS_OK;
}

bool spill_take_hole(struct spill *spill, struct spill_hole *out)
{
    if (!atomic_load_explicit(&spill->can_punch, memory_order_relaxed) || !spill->is_head_written ||
            spill->head - spill->punched < PUNCH_BYTES) {
        return false;
    }
    *out = (struct spill_hole){.from = spill->punched, .to = spill->head};
    spill->punched = spill->head;
    return true;
}

void spill_punch(struct spill *spill, const struct spill_hole *hole)
{
    /* Synced, since after a power cut an older head would stand before a hole. */
    if (spill_sync(spill) != STATUS_OK) {
        return;
    }
    int error = spill->files->punch(spill->fd, (off_t)hole->from, (off_t)(hole->to - hole->from));
    if (error < 0) {
        /* relaxed, as where it is read: a push that comes a little later counts by it */
        atomic_store_explicit(&spill->can_punch, false, memory_order_relaxed);
    }
}

size_t spill_abandon(struct spill *spill)
{
    size_t lost = spill->count;
    empty(spill);
    return lost;
}

enum status spill_sync(struct spill *spill)
{
    int error = spill->files->sync(spill->fd);
    return error < 0 ? file_status_of(-error) : STATUS_OK;
}
