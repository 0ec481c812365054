/* SPDX-License-Identifier: MIT */
#include "archive/file_ops.h"

#include <errno.h>
#include <string.h>

#include "tests/support/cmocka.h"

enum {
    DISK_BYTES = 64,
    AT = 5, /* where the writing begins */
    A_CALL = 3
};

/* A disk that takes and gives three bytes a call, and is interrupted before each. */
static char disk[DISK_BYTES];
static size_t disk_length;
static size_t calls;
static ssize_t answer; /* of all calls, when it is not 1 */

static size_t most(size_t bytes)
{
    return bytes < A_CALL ? bytes : A_CALL;
}

static ssize_t write_some(int fd, const struct iovec *parts, int count, off_t offset)
{
    ssize_t written = 0;
    (void)fd;
    if (answer != 1 || calls++ % 2 == 0) {
        return answer != 1 ? answer : -EINTR;
    }
    for (int i = 0; i < count && written < A_CALL; i++) {
        size_t bytes = most(parts[i].iov_len);
        bytes = bytes < (size_t)(A_CALL - written) ? bytes : (size_t)(A_CALL - written);
        memcpy(disk + offset + written, parts[i].iov_base, bytes);
        written += (ssize_t)bytes;
    }
    disk_length = (size_t)(offset + written);
    return written;
}

static ssize_t read_some(int fd, void *to, size_t length, off_t offset)
{
    size_t left = disk_length - (size_t)offset;
    (void)fd;
    if (answer != 1 || calls++ % 2 == 0) {
        return answer != 1 ? answer : -EINTR;
    }
    size_t bytes = most(length < left ? length : left);
    memcpy(to, disk + offset, bytes);
    return (ssize_t)bytes;
}

static const struct file_ops slow = {.write = write_some, .read = read_some};

static enum status write_text(void)
{
    static char text[] = "onetwo, threefour";
    struct iovec parts[] = {{text, 0}, {text, 3}, {text + 3, 10}, {text, 0}, {text + 13, 4}};
    return file_write_all(&slow, 7, parts, sizeof(parts) / sizeof(parts[0]), AT);
}

static void writes_and_reads_everything_though_little_at_a_time(void **state)
{
    char text[DISK_BYTES];
    size_t count = 0;
    (void)state;
    answer = 1;
    calls = 0;
    memset(disk, '.', sizeof(disk));
    assert_int_equal(write_text(), STATUS_OK);
    assert_int_equal(disk_length, AT + 17);
    assert_memory_equal(disk, ".....onetwo, threefour.....", AT + 17 + 5);
    struct iovec to = {text, 11};
    assert_int_equal(file_read_at(&slow, 7, to, AT + 3, &count), STATUS_OK);
    assert_int_equal(count, 11);
    assert_memory_equal(text, "two, threef", 11);
    /* less at the end of the file only */
    to.iov_len = sizeof(text);
    assert_int_equal(file_read_at(&slow, 7, to, AT, &count), STATUS_OK);
    assert_int_equal(count, 17);
    assert_memory_equal(text, "onetwo, threefour", 17);
}

static void says_why_it_could_not(void **state)
{
    static const struct {
        ssize_t answer;
        enum status status;
    } cases[] = {{0, STATUS_DISK_FULL}, {-ENOSPC, STATUS_DISK_FULL}, {-EROFS, STATUS_READ_ONLY},
            {-EIO, STATUS_SYSTEM}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        answer = cases[i].answer;
        assert_int_equal(write_text(), cases[i].status);
    }
    char text[4];
    size_t count = 0;
    assert_int_equal(
            file_read_at(&slow, 7, (struct iovec){text, sizeof(text)}, 0, &count), STATUS_SYSTEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(writes_and_reads_everything_though_little_at_a_time),
            cmocka_unit_test(says_why_it_could_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
