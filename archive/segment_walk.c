/* SPDX-License-Identifier: MIT */
#include "archive/segments.h"

#include "base/memory.h"

enum status segment_walk_init(
        struct segment_walk *walk, struct segments *segments, int64_t id, uint64_t offset)
{
    *walk = (struct segment_walk){.segments = segments, .fd = -1, .offset = offset};
    return segments_open_reading(segments, id, &walk->fd);
}

void segment_walk_fini(struct segment_walk *walk)
{
    if (walk->fd >= 0) {
        segments_close_reading(walk->segments, walk->fd);
    }
    memory_free(walk->buffer);
}

static enum status reserve(struct segment_walk *walk, size_t size)
{
    if (walk->capacity >= size) {
        return STATUS_OK;
    }
    uint8_t *grown = memory_resize(walk->buffer, size);
    if (grown == NULL) {
        return STATUS_NO_MEMORY;
    }
    walk->buffer = grown;
    walk->capacity = size;
    return STATUS_OK;
}

enum status segment_walk_next(struct segment_walk *walk, struct archive_record *record)
{
    enum status status = reserve(walk, RECORD_HEADER_BYTES);
    if (status != STATUS_OK) {
        return status;
    }
    struct iovec header = {walk->buffer, RECORD_HEADER_BYTES};
    status = segments_read(walk->segments, walk->fd, header, walk->offset);
    if (status != STATUS_OK) {
        return status;
    }
    size_t size = 0;
    status = record_peek_size(&size, walk->buffer);
    if (status == STATUS_OK) {
        status = reserve(walk, size);
    }
    if (status != STATUS_OK) {
        return status;
    }
    struct iovec body = {walk->buffer + RECORD_HEADER_BYTES, size - RECORD_HEADER_BYTES};
    status = segments_read(walk->segments, walk->fd, body, walk->offset + RECORD_HEADER_BYTES);
    if (status == STATUS_OK) {
        status = record_decode(record, span_of(walk->buffer, size));
    }
    if (status == STATUS_OK) {
        walk->offset += size;
    }
    return status;
}
