/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Where a program's log lines go: a queue of LOG_WRITER_LINES lines, and a thread of its own that
 * writes them to a file or to standard error. Whoever logs never waits for the output: what finds no
 * room, or cannot be written, is dropped and counted, and the next line that is written says how many.
 *
 * Lifetime:  create, log_set_sink(log_writer_sink, writer), ... log_set_sink(NULL, NULL), destroy when
 *            no thread that logs is left.
 * Thread:    create and destroy on one thread, the rest on any.
 */

#include <stdint.h>

#include "admin/log_record.h"
#include "base/attributes.h"
#include "base/log.h"
#include "base/status.h"

enum {
    LOG_WRITER_LINES = 1024,
    LOG_WRITER_FLUSH_MS = 1000 /* how long destroy waits for an output that takes nothing */
};

struct log_writer_options {
    enum log_format format;
    const char *path; /* appended to, made when missing; NULL: fd */
    int fd;           /* stays the caller's */
};

struct log_writer;

/* STATUS_SYSTEM: the file cannot be opened (errno says why) or there is no thread. */
MUST_USE enum status log_writer_create(
        struct log_writer **out, const struct log_writer_options *options);

/* Writes what is queued first. */
void log_writer_destroy(struct log_writer **writer);

/* The sink; its context is the writer. */
log_sink log_writer_sink;

/* Opens the path again: the file may have been moved away. When that fails, the old one stays. */
void log_writer_reopen(struct log_writer *writer);

/* Lines that were lost, those of a full queue and those that could not be written together. */
uint64_t log_writer_dropped(const struct log_writer *writer);
