/* SPDX-License-Identifier: MIT */

/* sluice query: one page of an archive, with the meaning of store v3. */

#include <stdio.h>

#include "archive/archive.h"
#include "base/options.h"
#include "tools/sluice/commands.h"
#include "tools/sluice/message_printer.h"
#include "tools/sluice/query_options.h"

enum {
    EXIT_FAILED = 1,
    EXIT_USAGE = 2
};

static const struct option_spec query_options[] = {
        {"archive", OPTION_TEXT, "", 0, 0, "Query", "sqlite://PATH; it is only read"},
        QUERY_OPTIONS,
        {"limit", OPTION_NUMBER, "20", 1, 1000000, "Query", "messages in the page at most"},
        {"help", OPTION_BOOL, "false", 0, 0, "Query", "print this help"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

static enum status take_row(void *context, const struct archive_row *row)
{
    return message_printer_add(context, row->hash, row->pubsub_topic, row->message);
}

static struct span cursor_of(const struct archive_page *page)
{
    return span_of(page->cursor, page->has_cursor ? sizeof(page->cursor) : 0);
}

static int run_query(const struct options *options, const struct archive_query *query)
{
    struct archive *archive = NULL;
    struct archive_reader *reader = NULL;
    struct archive_error error;
    struct archive_options read_only = {.is_read_only = true};
    struct message_printer printer;
    struct archive_page page;
    enum status status =
            archive_open(&archive, options_text(options, "archive"), &read_only, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "query: %s\n", error.text);
        return EXIT_FAILED;
    }
    message_printer_init(&printer, options_flag(options, "json"));
    status = archive_reader_open(&reader, archive);
    if (status == STATUS_OK) {
        status = archive_query(reader, query, take_row, &printer, &page);
    }
    if (status == STATUS_OK) {
        message_printer_end(&printer, page.count, cursor_of(&page));
    } else {
        fprintf(stderr, "query: %s\n", status_text(status));
    }
    message_printer_fini(&printer);
    archive_reader_close(&reader);
    archive_close(&archive);
    return status == STATUS_OK ? 0 : EXIT_FAILED;
}

int command_query(int argc, char **argv)
{
    static struct query_arguments arguments;
    const struct option_spec *const tables[] = {query_options, NULL};
    struct options *options = NULL;
    struct options_error error;
    if (options_create(&options, tables) != STATUS_OK) {
        return EXIT_FAILED;
    }
    int exit_status = EXIT_USAGE;
    if (options_parse_arguments(options, argc, argv, &error) != STATUS_OK) {
        fprintf(stderr, "query: %s\n", error.text);
    } else if (options_flag(options, "help")) {
        printf("usage: sluice query --archive=sqlite://PATH [OPTIONS]\n");
        options_print_help(options, stdout);
        exit_status = 0;
    } else if (options_positional_count(options) > 0) {
        fprintf(stderr, "query: unexpected argument \"%s\"\n", options_positional(options, 0));
    } else if (options_text(options, "archive")[0] == '\0') {
        fprintf(stderr, "query: --archive=sqlite://PATH is needed\n");
    } else if (query_arguments_read(&arguments, options, "query")) {
        arguments.query.limit = options_number(options, "limit");
        arguments.query.max_limit = arguments.query.limit;
        exit_status = run_query(options, &arguments.query);
    }
    options_destroy(&options);
    return exit_status;
}
