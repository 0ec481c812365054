/* SPDX-License-Identifier: MIT */
#include "admin/log_writer.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cmocka.h"

struct folder {
    char path[64];
    char file[96];
    char moved[80];
};

static void make_folder(struct folder *folder)
{
    strcpy(folder->path, "/tmp/sluice-log-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->file, sizeof(folder->file), "%s/log", folder->path);
    snprintf(folder->moved, sizeof(folder->moved), "%s/log.1", folder->path);
}

static void remove_folder(const struct folder *folder)
{
    (void)unlink(folder->file);
    (void)unlink(folder->moved);
    assert_int_equal(rmdir(folder->path), 0);
}

/* Of the whole file; the caller frees it. */
static char *contents(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) < (1 << 20) - 1);
    assert_int_equal(fclose(file), 0);
    return text;
}

static size_t count_lines(const char *text, const char *with)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, with)) != NULL; at += strlen(with)) {
        count++;
    }
    return count;
}

static struct log_writer *made(const char *path, int fd)
{
    struct log_writer_options options = {.format = LOG_FORMAT_TEXT, .path = path, .fd = fd};
    struct log_writer *writer = NULL;
    assert_int_equal(log_writer_create(&writer, &options), STATUS_OK);
    return writer;
}

static void destroy_writes_what_is_queued(void **state)
{
    struct folder folder;
    (void)state;
    make_folder(&folder);
    struct log_writer *writer = made(folder.file, -1);
    for (int i = 0; i < 500; i++) {
        log_writer_sink(writer, LOG_INFO, "test", "one of five hundred");
    }
    log_writer_destroy(&writer);
    assert_null(writer);
    char *text = contents(folder.file);
    assert_int_equal(count_lines(text, "INF "), 500);
    free(text);
    remove_folder(&folder);
}

/*
 * The pipe holds 64 KiB and nobody reads it: the thread that logs gets through all the same, and every
 * line is either in the pipe, or counted.
 */
static void a_pipe_that_nobody_reads_stalls_nobody(void **state)
{
    enum {
        LINES = 20000
    };
    int ends[2];
    char text[1 << 16];
    size_t in_pipe = 0;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    struct log_writer *writer = made(NULL, ends[1]);
    for (int i = 0; i < LINES; i++) {
        log_writer_sink(writer, LOG_INFO, "test", "a line of moderate length for a narrow pipe");
    }
    uint64_t dropped_before_end = log_writer_dropped(writer);
    assert_true(dropped_before_end > 0);
    assert_true(dropped_before_end <= LINES);
    log_writer_destroy(&writer);
    assert_int_equal(close(ends[1]), 0);
    ssize_t got;
    while ((got = read(ends[0], text, sizeof(text) - 1)) > 0) {
        text[got] = '\0';
        in_pipe += count_lines(text, "\n");
    }
    /* Beside the pipe's there were at most the ring's lines, and the one that was being written. */
    assert_true(in_pipe + dropped_before_end + LOG_WRITER_LINES + 1 >= LINES);
    assert_true(in_pipe + dropped_before_end <= LINES + 1);
    assert_int_equal(close(ends[0]), 0);
}

static void says_how_many_lines_were_lost_once_it_can(void **state)
{
    int ends[2];
    char text[1 << 16];
    bool is_told = false;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    struct log_writer *writer = made(NULL, ends[1]);
    while (log_writer_dropped(writer) == 0) {
        log_writer_sink(writer, LOG_INFO, "test", "fill");
    }
    while (!is_told) {
        ssize_t got = read(ends[0], text, sizeof(text) - 1);
        assert_true(got > 0);
        text[got] = '\0';
        is_told = strstr(text, "log lines were lost") != NULL;
    }
    log_writer_destroy(&writer);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
}

static void a_full_disk_loses_lines_and_counts_them(void **state)
{
    struct log_writer_options options = {.format = LOG_FORMAT_JSON, .path = "/dev/full"};
    struct log_writer *writer = NULL;
    (void)state;
    if (access("/dev/full", W_OK) != 0) {
        skip();
    }
    assert_int_equal(log_writer_create(&writer, &options), STATUS_OK);
    for (int i = 0; i < 10; i++) {
        log_writer_sink(writer, LOG_INFO, "test", "nowhere to go");
    }
    while (log_writer_dropped(writer) < 10) {
        (void)sched_yield();
    }
    log_writer_destroy(&writer);
}

static void a_reader_that_has_gone_is_no_signal(void **state)
{
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(close(ends[0]), 0);
    struct log_writer *writer = made(NULL, ends[1]);
    log_writer_sink(writer, LOG_INFO, "test", "to nobody");
    while (log_writer_dropped(writer) == 0) {
        (void)sched_yield();
    }
    log_writer_destroy(&writer);
    assert_int_equal(close(ends[1]), 0);
}

static void wait_for_file(const char *path)
{
    struct stat seen;
    while (stat(path, &seen) != 0) {
        (void)sched_yield();
    }
}

static void wait_for_text(const char *path, const char *wanted)
{
    bool is_there = false;
    while (!is_there) {
        char *text = contents(path);
        is_there = strstr(text, wanted) != NULL;
        free(text);
        (void)sched_yield();
    }
}

static void reopen_makes_a_new_file_after_the_old_one_moved_away(void **state)
{
    struct folder folder;
    (void)state;
    make_folder(&folder);
    struct log_writer *writer = made(folder.file, -1);
    log_writer_sink(writer, LOG_INFO, "test", "before");
    wait_for_text(folder.file, "before");
    assert_int_equal(rename(folder.file, folder.moved), 0);
    log_writer_reopen(writer);
    wait_for_file(folder.file);
    log_writer_sink(writer, LOG_INFO, "test", "after");
    log_writer_destroy(&writer);
    char *old_text = contents(folder.moved);
    char *new_text = contents(folder.file);
    assert_null(strstr(old_text, "after"));
    assert_non_null(strstr(new_text, "after"));
    assert_null(strstr(new_text, "before"));
    free(old_text);
    free(new_text);
    remove_folder(&folder);
}

static void a_reopen_that_fails_keeps_the_old_file(void **state)
{
    struct folder folder;
    struct folder inner;
    (void)state;
    make_folder(&folder);
    snprintf(inner.path, sizeof(inner.path), "%.32s/d", folder.path);
    snprintf(inner.file, sizeof(inner.file), "%s/log", inner.path);
    assert_int_equal(mkdir(inner.path, 0700), 0);
    struct log_writer *writer = made(inner.file, -1);
    snprintf(inner.moved, sizeof(inner.moved), "%.32s/e", folder.path);
    assert_int_equal(rename(inner.path, inner.moved), 0);
    snprintf(inner.file, sizeof(inner.file), "%s/log", inner.moved);
    log_writer_reopen(writer);
    wait_for_text(inner.file, "the old file stays in use");
    log_writer_destroy(&writer);
    assert_int_equal(unlink(inner.file), 0);
    assert_int_equal(rmdir(inner.moved), 0);
    remove_folder(&folder);
}

static void a_path_that_cannot_be_opened_is_an_error_of_create(void **state)
{
    struct log_writer_options options = {.path = "/nonexistent/log"};
    struct log_writer *writer = NULL;
    (void)state;
    assert_int_equal(log_writer_create(&writer, &options), STATUS_SYSTEM);
    assert_null(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(destroy_writes_what_is_queued),
            cmocka_unit_test(a_pipe_that_nobody_reads_stalls_nobody),
            cmocka_unit_test(says_how_many_lines_were_lost_once_it_can),
            cmocka_unit_test(a_full_disk_loses_lines_and_counts_them),
            cmocka_unit_test(a_reader_that_has_gone_is_no_signal),
            cmocka_unit_test(reopen_makes_a_new_file_after_the_old_one_moved_away),
            cmocka_unit_test(a_reopen_that_fails_keeps_the_old_file),
            cmocka_unit_test(a_path_that_cannot_be_opened_is_an_error_of_create),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
