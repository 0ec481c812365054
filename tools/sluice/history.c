/* SPDX-License-Identifier: MIT */

/* sluice history MULTIADDR: asks a node for stored messages, page after page (store v3). */

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "net/protocols/service_code.h"
#include "net/protocols/store_message.h"
#include "tools/sluice/command_options.h"
#include "tools/sluice/commands.h"
#include "tools/sluice/message_printer.h"
#include "tools/sluice/query_options.h"
#include "tools/sluice/service_client.h"

static const char usage[] = "history MULTIADDR [OPTIONS]";

enum {
    ANSWER_MAX = 64 * 1024 * 1024
};

static const struct option_spec specs[] = {
        QUERY_OPTIONS,
        {"page-size", OPTION_NUMBER, "100", 1, 100, "Query", "messages asked for at a time"},
        {"limit", OPTION_NUMBER, "0", 0, 1000000000, "Query", "messages in all; 0: no limit"},
        {"progress", OPTION_BOOL, "false", 0, 0, "Query", "a line on standard error for each page"},
        SERVICE_CLIENT_OPTIONS,
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

struct history {
    struct service_client *client;
    struct message_printer printer;
    struct store_request request;
    uint8_t cursor[MESSAGE_HASH_BYTES];
    uint64_t page_size;
    uint64_t limit; /* UINT64_MAX: none */
    uint64_t count;
    uint64_t pages;
    bool has_progress;
    bool is_refused; /* and said so */
};

static struct service_answer ask(struct history *history)
{
    static const char *const ids[] = {STORE_PROTOCOL_ID};
    uint8_t *request;
    size_t length;
    uint64_t left = history->limit - history->count;
    history->request.query.limit = left < history->page_size ? left : history->page_size;
    enum status status = store_request_write(&request, &length, &history->request);
    if (status != STATUS_OK) {
        return (struct service_answer){.status = status};
    }
    struct service_answer answer =
            service_client_ask(history->client, ids, 1, span_of(request, length), ANSWER_MAX);
    memory_free(request);
    return answer;
}

static enum status print_page(struct history *history, struct store_answer_view *view)
{
    struct store_entry entry;
    enum status status;
    while (store_answer_next(view, &entry, &status)) {
        status = message_printer_add(
                &history->printer, entry.hash, entry.pubsub_topic, entry.message);
        if (status != STATUS_OK) {
            return status;
        }
        history->count++;
    }
    return status;
}

/* The next page begins behind the last one's end in paging direction. */
static enum status take_cursor(struct history *history, struct span cursor, bool *is_last)
{
    *is_last = cursor.length == 0 || history->count >= history->limit;
    if (*is_last) {
        return STATUS_OK;
    }
    if (cursor.length != MESSAGE_HASH_BYTES ||
            (history->request.query.has_cursor &&
                    memcmp(cursor.bytes, history->cursor, MESSAGE_HASH_BYTES) == 0)) {
        return STATUS_BAD_CURSOR;
    }
    memcpy(history->cursor, cursor.bytes, MESSAGE_HASH_BYTES);
    history->request.query.has_cursor = true;
    history->request.query.cursor = span_of(history->cursor, MESSAGE_HASH_BYTES);
    return STATUS_OK;
}

static enum status take_page(struct history *history, struct span message, bool *is_last)
{
    struct store_answer_view view;
    enum status status = store_answer_read(&view, message);
    if (status != STATUS_OK) {
        return status;
    }
    if (view.code != SERVICE_OK) {
        fprintf(stderr, "sluice history: refused with %" PRIu32 ": %.*s\n", view.code,
                (int)view.description.length, (const char *)view.description.bytes);
        history->is_refused = true;
        return STATUS_BAD_QUERY;
    }
    status = print_page(history, &view);
    history->pages++;
    if (history->has_progress) {
        fprintf(stderr, "page %" PRIu64 ", %" PRIu64 " messages\n", history->pages, history->count);
    }
    return status == STATUS_OK ? take_cursor(history, view.cursor, is_last) : status;
}

static int read_all(struct history *history)
{
    enum status status = STATUS_OK;
    bool is_last = false;
    while (status == STATUS_OK && !is_last) {
        struct service_answer answer = ask(history);
        status = answer.status;
        if (status == STATUS_OK) {
            status = take_page(history, span_of(answer.bytes, answer.length), &is_last);
        }
        memory_free(answer.bytes);
    }
    if (status != STATUS_OK) {
        if (!history->is_refused) {
            fprintf(stderr, "sluice history: %s\n", status_text(status));
        }
        return 1;
    }
    message_printer_end(&history->printer, history->count, span_of(NULL, 0));
    return 0;
}

static int run_history(const struct options *options)
{
    static struct query_arguments arguments;
    struct history history = {.request.request_id = span_of_text("sluice-history"),
            .page_size = options_number(options, "page-size"),
            .limit = options_number(options, "limit"),
            .has_progress = options_flag(options, "progress")};
    if (options_positional_count(options) != 1) {
        fprintf(stderr, "usage: sluice %s\n", usage);
        return 2;
    }
    if (!command_start_log(options_text(options, "log-level")) ||
            !query_arguments_read(&arguments, options, "sluice history")) {
        return 2;
    }
    history.limit = history.limit == 0 ? UINT64_MAX : history.limit;
    history.request.query = arguments.query;
    int result = 1;
    if (service_client_open(&history.client, options, "history", options_positional(options, 0)) ==
            STATUS_OK) {
        message_printer_init(&history.printer, options_flag(options, "json"));
        result = read_all(&history);
        message_printer_fini(&history.printer);
    }
    service_client_close(&history.client);
    return result;
}

int command_history(int argc, char **argv)
{
    int exit_status;
    struct options *options = command_parse(usage, specs, argc, argv, &exit_status);
    if (options == NULL) {
        return exit_status;
    }
    exit_status = run_history(options);
    options_destroy(&options);
    return exit_status;
}
