/* SPDX-License-Identifier: MIT */
#include "tools/common/program_log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "admin/log_writer.h"
#include "base/log.h"

static struct log_writer *writer;

static bool read_options(const struct options *options, struct log_writer_options *out)
{
    enum log_level level;
    const char *level_name = options_text(options, "log-level");
    const char *format_name = options_text(options, "log-format");
    const char *path = options_text(options, "log-file");
    if (!log_level_from_name(&level, level_name)) {
        fprintf(stderr,
                "--log-level=%s is none of TRACE, DEBUG, INFO, NOTICE, WARN, ERROR, FATAL\n",
                level_name);
        return false;
    }
    if (!log_format_from_name(&out->format, format_name)) {
        fprintf(stderr, "--log-format=%s is none of TEXT, JSON\n", format_name);
        return false;
    }
    log_set_level(level);
    out->path = path[0] != '\0' ? path : NULL;
    out->fd = STDERR_FILENO;
    return true;
}

bool program_log_start(const struct options *options)
{
    struct log_writer_options writer_options;
    if (!read_options(options, &writer_options)) {
        return false;
    }
    enum status status = log_writer_create(&writer, &writer_options);
    if (status != STATUS_OK) {
        fprintf(stderr, "--log-file=%s: %s\n", options_text(options, "log-file"),
                status == STATUS_SYSTEM ? strerror(errno) : status_text(status));
        return false;
    }
    log_set_sink(log_writer_sink, writer);
    return true;
}

bool program_log_start_on_request(const struct options *options)
{
    bool is_wanted = options_is_set(options, "log-level") || options_is_set(options, "log-file");
    if (!program_log_start(options)) {
        return false;
    }
    if (!is_wanted) {
        log_set_level(LOG_FATAL);
    }
    return true;
}

void program_log_reopen(void)
{
    if (writer != NULL) {
        log_writer_reopen(writer);
    }
}

void program_log_stop(void)
{
    log_set_sink(NULL, NULL);
    log_writer_destroy(&writer);
}
