/* SPDX-License-Identifier: MIT */

/*
 * A spill file with whatever an earlier process, or somebody else, left in it: what is counted when it
 * is opened comes out, and what is pushed behind that as well.
 */

#include <errno.h>
#include <string.h>

#include "archive/record.h"
#include "archive/spill.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    FILE_BYTES_MAX = 1 << 18,
    MAGIC_BYTES = 8,
    RECORDS = 16,
    NUMBER = 3
};

/* The one file there is. */
static struct {
    uint8_t bytes[FILE_BYTES_MAX];
    size_t size;
} file;

static int open_file(const char *path, int flags)
{
    (void)path;
    (void)flags;
    return NUMBER;
}

static ssize_t write_file(int fd, const struct iovec *parts, int count, off_t offset)
{
    size_t at = (size_t)offset;
    (void)fd;
    for (int i = 0; i < count; i++) {
        if (at > FILE_BYTES_MAX || parts[i].iov_len > FILE_BYTES_MAX - at) {
            return -ENOSPC;
        }
        if (at > file.size) {
            memset(file.bytes + file.size, 0, at - file.size);
        }
        if (parts[i].iov_len > 0) {
            memcpy(file.bytes + at, parts[i].iov_base, parts[i].iov_len);
        }
        at += parts[i].iov_len;
        file.size = at > file.size ? at : file.size;
    }
    return (ssize_t)(at - (size_t)offset);
}

static ssize_t read_file(int fd, void *to, size_t length, off_t offset)
{
    size_t at = (size_t)offset;
    (void)fd;
    if (at >= file.size) {
        return 0;
    }
    size_t count = length < file.size - at ? length : file.size - at;
    memcpy(to, file.bytes + at, count);
    return (ssize_t)count;
}

static int do_nothing(int fd)
{
    (void)fd;
    return 0;
}

static int truncate_file(int fd, off_t length)
{
    (void)fd;
    REQUIRE(length >= 0 && (size_t)length <= FILE_BYTES_MAX);
    if ((size_t)length > file.size) {
        memset(file.bytes + file.size, 0, (size_t)length - file.size);
    }
    file.size = (size_t)length;
    return 0;
}

static int punch_file(int fd, off_t offset, off_t length)
{
    (void)fd;
    (void)offset;
    (void)length;
    return 0;
}

static off_t size_of_file(int fd)
{
    (void)fd;
    return (off_t)file.size;
}

static const struct file_ops files = {.open = open_file,
        .write = write_file,
        .read = read_file,
        .lock = do_nothing,
        .sync = do_nothing,
        .truncate = truncate_file,
        .punch = punch_file,
        .size = size_of_file,
        .close = do_nothing};

static void push(struct spill *spill)
{
    static const uint8_t message[] = {0x0a, 0x01, 'x', 0x12, 0x02, '/', 'a'};
    struct archive_record record = {.pubsub_topic = span_of_text("topic"),
            .message = span_of(message, sizeof(message)),
            .content_topic = span_of(message + 5, 2),
            .timestamp_ns = 1};
    size_t before = spill_count(spill);
    enum status status = spill_push(spill, &record);
    REQUIRE(status == STATUS_OK || status == STATUS_DISK_FULL || status == STATUS_LIMIT_REACHED);
    REQUIRE(spill_count(spill) == before + (status == STATUS_OK));
}

/* step: how many are taken at a time. */
static void empty(struct spill *spill, size_t step)
{
    struct archive_record records[RECORDS];
    while (spill_count(spill) > 0) {
        size_t shown = 0;
        REQUIRE(spill_peek(spill, records, step, 1, &shown) == STATUS_OK);
        REQUIRE(shown > 0 && shown <= step);
        for (size_t i = 0; i < shown; i++) {
            REQUIRE(record_check(&records[i]) == STATUS_OK);
        }
        spill_discard(spill, shown);
        struct spill_hole hole;
        if (spill_take_hole(spill, &hole)) {
            REQUIRE(hole.from < hole.to);
            spill_punch(spill, &hole);
        }
    }
    REQUIRE(spill_bytes(spill) == 0);
}

static void use(size_t step)
{
    struct spill_options options = {
            .path = "spill", .limit_bytes = FILE_BYTES_MAX, .files = &files};
    struct spill *spill = NULL;
    enum status status = spill_open(&spill, &options);
    REQUIRE(status == STATUS_OK || status == STATUS_NOT_A_DATABASE || status == STATUS_DISK_FULL);
    if (status != STATUS_OK) {
        return;
    }
    size_t count = spill_count(spill);
    push(spill);
    push(spill);
    size_t pushed = spill_count(spill) - count;
    spill_close(&spill);
    REQUIRE(spill_open(&spill, &options) == STATUS_OK);
    REQUIRE(spill_count(spill) == count + pushed);
    empty(spill, step);
    spill_close(&spill);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t magic[MAGIC_BYTES] = {'S', 'l', 'u', 'S', 'p', 'i', 'l', '1'};
    if (size == 0 || size > FILE_BYTES_MAX / 2) {
        return 0;
    }
    for (int has_magic = 0; has_magic < 2; has_magic++) {
        file.size = size - 1;
        memcpy(file.bytes, data + 1, size - 1);
        if (has_magic && file.size >= MAGIC_BYTES) {
            memcpy(file.bytes, magic, MAGIC_BYTES);
        }
        use(1 + data[0] % RECORDS);
    }
    return 0;
}
