/* SPDX-License-Identifier: MIT */
#include "admin/log_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/log_ring.h"
#include "base/clock.h"
#include "queues/parking.h"

enum {
    POLL_MS = 100, /* how often a writer that waits for its output looks whether it is to stop */
    FILE_MODE = 0640
};

/*
 * Ordering:
 *
 *   STOP    release store of is_stopping -> acquire load by the thread. Lines that were pushed before
 *           are seen, and written before it ends.
 *   REOPEN  release exchange of wants_reopen -> acquire exchange by the thread. A file that was moved
 *           away before has moved.
 */
struct log_writer {
    struct parking parking; /* first: it asks for a whole cache line */
    struct log_ring *ring;
    pthread_t thread;
    enum log_format format;
    char *path;
    int fd;
    atomic_bool is_stopping;
    atomic_bool wants_reopen;
    _Atomic uint64_t refused; /* no room in the ring; written by those who log */
    _Atomic uint64_t failed;  /* not written; written by the thread */

    /* the thread's alone */
    uint64_t reported; /* of refused and failed together */
    uint64_t deadline_ns;
    char line[LOG_LINE_MAX_BYTES];
};

/* Never waits for a reader of a pipe: open fails, and write says that there is no room. */
static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, FILE_MODE);
}

static bool is_stopping(const struct log_writer *writer)
{
    return atomic_load_explicit(&writer->is_stopping, memory_order_acquire); /* STOP */
}

static bool is_late(struct log_writer *writer)
{
    if (!is_stopping(writer)) {
        return false;
    }
    uint64_t now = clock_monotonic_ns();
    if (writer->deadline_ns == 0) {
        writer->deadline_ns = now + (uint64_t)LOG_WRITER_FLUSH_MS * NANOSECONDS_PER_MILLISECOND;
    }
    return now >= writer->deadline_ns;
}

/* False when it takes nothing more before the time to stop has passed. */
static bool wait_for_room(struct log_writer *writer)
{
    for (;;) {
        struct pollfd poll_fd = {.fd = writer->fd, .events = POLLOUT};
        bool is_last = is_late(writer);
        int ready = poll(&poll_fd, 1, is_last ? 0 : POLL_MS);
        if (ready > 0) {
            return true;
        }
        if ((ready < 0 && errno != EINTR) || is_last) {
            return false;
        }
    }
}

/* A pipe with room takes PIPE_BUF bytes whole, so that a blocking descriptor does not block either. */
static bool write_line(struct log_writer *writer, size_t length)
{
    size_t done = 0;
    while (done < length) {
        size_t part = length - done < PIPE_BUF ? length - done : PIPE_BUF;
        if (!wait_for_room(writer)) {
            return false;
        }
        ssize_t written = write(writer->fd, writer->line + done, part);
        if (written > 0) {
            done += (size_t)written;
        } else if (errno != EINTR && errno != EAGAIN) {
            return false;
        }
    }
    return true;
}

static void write_record(struct log_writer *writer, const struct log_record *record)
{
    if (!write_line(writer, log_record_format(writer->line, record, writer->format))) {
        /* relaxed: a count orders nothing */
        atomic_fetch_add_explicit(&writer->failed, 1, memory_order_relaxed);
    }
}

static void write_own(struct log_writer *writer, enum log_level level, const char *text)
{
    struct log_record record;
    log_record_fill(&record, level, "log", text);
    write_record(writer, &record);
}

/* Counts as reported once the line was written; a failure of that line is reported with the next. */
static void report_dropped(struct log_writer *writer)
{
    char text[96];
    uint64_t dropped = log_writer_dropped(writer);
    if (dropped == writer->reported) {
        return;
    }
    snprintf(text, sizeof(text), "%" PRIu64 " log lines were lost: the output did not take them",
            dropped - writer->reported);
    write_own(writer, LOG_WARN, text);
    if (log_writer_dropped(writer) == dropped) {
        writer->reported = dropped;
    }
}

static void reopen_when_asked(struct log_writer *writer)
{
    if (!atomic_exchange_explicit(
                &writer->wants_reopen, false, memory_order_acquire) /* REOPEN */) {
        return;
    }
    int fd = open_file(writer->path);
    if (fd < 0) {
        char text[LOG_TEXT_MAX_BYTES];
        snprintf(text, sizeof(text), "%.512s: %s; the old file stays in use", writer->path,
                strerror(errno));
        write_own(writer, LOG_ERROR, text);
        return;
    }
    (void)close(writer->fd);
    writer->fd = fd;
}

static bool has_work(struct log_writer *writer)
{
    /* relaxed: only whether to sleep; the exchange that follows orders */
    return log_ring_has_next(writer->ring) || is_stopping(writer) ||
           atomic_load_explicit(&writer->wants_reopen, memory_order_relaxed);
}

static void sleep_until_woken(struct log_writer *writer)
{
    uint32_t ticket = parking_prepare(&writer->parking);
    if (has_work(writer)) {
        parking_cancel(&writer->parking, ticket);
    } else {
        parking_wait(&writer->parking, ticket, UINT64_MAX);
    }
}

static void *run(void *context)
{
    struct log_writer *writer = context;
    struct log_record record;
    for (;;) {
        bool stops = is_stopping(writer);
        reopen_when_asked(writer);
        while (log_ring_try_pop(writer->ring, &record)) {
            write_record(writer, &record);
        }
        report_dropped(writer);
        if (stops) {
            return NULL;
        }
        sleep_until_woken(writer);
    }
}

/* Signals belong to the program's other threads; a closed pipe is an error of write, no signal. */
static enum status start_thread(struct log_writer *writer)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) {
        return STATUS_SYSTEM;
    }
    int result = pthread_create(&writer->thread, NULL, run, writer);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result == 0) {
        (void)pthread_setname_np(writer->thread, "log");
    }
    return result == 0 ? STATUS_OK : STATUS_SYSTEM;
}

static void free_writer(struct log_writer *writer)
{
    if (writer->path != NULL && writer->fd >= 0) {
        (void)close(writer->fd);
    }
    log_ring_destroy(&writer->ring);
    free(writer->path);
    free(writer);
}

static enum status open_output(struct log_writer *writer, const struct log_writer_options *options)
{
    writer->fd = options->fd;
    if (options->path == NULL) {
        return STATUS_OK;
    }
    writer->fd = -1;
    writer->path = strdup(options->path);
    if (writer->path == NULL) {
        return STATUS_NO_MEMORY;
    }
    writer->fd = open_file(writer->path);
    return writer->fd >= 0 ? STATUS_OK : STATUS_SYSTEM;
}

enum status log_writer_create(struct log_writer **out, const struct log_writer_options *options)
{
    size_t size = (sizeof(struct log_writer) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct log_writer *writer = aligned_alloc(CACHE_LINE, size);
    if (writer == NULL) {
        return STATUS_NO_MEMORY;
    }
    memset(writer, 0, size);
    writer->format = options->format;
    parking_init(&writer->parking);
    enum status status = open_output(writer, options);
    if (status == STATUS_OK) {
        status = log_ring_create(&writer->ring, LOG_WRITER_LINES);
    }
    if (status == STATUS_OK) {
        status = start_thread(writer);
    }
    if (status != STATUS_OK) {
        int error = errno;
        free_writer(writer);
        errno = error;
        return status;
    }
    *out = writer;
    return STATUS_OK;
}

void log_writer_destroy(struct log_writer **writer_pointer)
{
    struct log_writer *writer = *writer_pointer;
    if (writer == NULL) {
        return;
    }
    atomic_store_explicit(&writer->is_stopping, true, memory_order_release); /* STOP */
    parking_wake(&writer->parking);
    (void)pthread_join(writer->thread, NULL);
    free_writer(writer);
    *writer_pointer = NULL;
}

void log_writer_sink(void *context, enum log_level level, const char *module, const char *line)
{
    struct log_writer *writer = context;
    struct log_record record;
    log_record_fill(&record, level, module, line);
    if (!log_ring_try_push(writer->ring, &record)) {
        /* relaxed: a count orders nothing */
        atomic_fetch_add_explicit(&writer->refused, 1, memory_order_relaxed);
        return;
    }
    parking_wake(&writer->parking);
}

void log_writer_reopen(struct log_writer *writer)
{
    if (writer->path == NULL) {
        return;
    }
    (void)atomic_exchange_explicit(&writer->wants_reopen, true, memory_order_release); /* REOPEN */
    parking_wake(&writer->parking);
}

uint64_t log_writer_dropped(const struct log_writer *writer)
{
    /* relaxed: counts order nothing */
    return atomic_load_explicit(&writer->refused, memory_order_relaxed) +
           atomic_load_explicit(&writer->failed, memory_order_relaxed);
}
