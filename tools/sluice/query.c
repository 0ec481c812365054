/* SPDX-License-Identifier: MIT */

/* sluice query: one page of an archive, with the meaning of store v3. */

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/archive.h"
#include "base/hex.h"
#include "base/options.h"
#include "codec/waku_message.h"
#include "tools/sluice/commands.h"

enum {
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    LISTED_MAX = 4096,
    HEX_BYTES = MESSAGE_HASH_BYTES * 2 + 1
};

static const struct option_spec query_options[] = {
        {"archive", OPTION_TEXT, "", 0, 0, "Query", "sqlite://PATH; it is only read"},
        {"pubsub-topic", OPTION_TEXT, "", 0, 0, "Query", "messages of this pubsub topic"},
        {"content-topic", OPTION_LIST, "", 0, 0, "Query",
                "messages of one of these content topics"},
        {"start", OPTION_TEXT, "", 0, 0, "Query", "from this timestamp on, ns since 1970"},
        {"end", OPTION_TEXT, "", 0, 0, "Query", "up to and including this timestamp"},
        {"hash", OPTION_LIST, "", 0, 0, "Query", "the messages with these hashes, 64 hex digits"},
        {"cursor", OPTION_TEXT, "", 0, 0, "Query", "the page behind this message hash"},
        {"limit", OPTION_NUMBER, "20", 1, 1000000, "Query", "messages in the page at most"},
        {"backward", OPTION_BOOL, "false", 0, 0, "Query", "the newest page first"},
        {"json", OPTION_BOOL, "false", 0, 0, "Query", "print one JSON object"},
        {"help", OPTION_BOOL, "false", 0, 0, "Query", "print this help"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

/* The spans of a query and the bytes behind them. */
struct parsed_query {
    struct archive_query query;
    struct span topics[LISTED_MAX];
    struct span hashes[LISTED_MAX];
    uint8_t hash_bytes[LISTED_MAX][MESSAGE_HASH_BYTES];
    uint8_t cursor[MESSAGE_HASH_BYTES];
};

struct printer {
    json_t *messages; /* NULL: text */
};

static bool parse_time(int64_t *out, bool *has, const struct options *options, const char *name)
{
    const char *text = options_text(options, name);
    char *end;
    *has = text[0] != '\0';
    *out = strtoll(text, &end, 10);
    if (*end != '\0') {
        fprintf(stderr, "query: --%s=%s is no number of nanoseconds\n", name, text);
        return false;
    }
    return true;
}

static bool parse_hash(uint8_t out[MESSAGE_HASH_BYTES], const char *name, const char *text)
{
    if (hex_decode(out, MESSAGE_HASH_BYTES, text) != STATUS_OK) {
        fprintf(stderr, "query: --%s=%s is not 64 hexadecimal digits\n", name, text);
        return false;
    }
    return true;
}

static bool parse_lists(struct parsed_query *parsed, const struct options *options)
{
    size_t topics = options_list_count(options, "content-topic");
    size_t hashes = options_list_count(options, "hash");
    if (topics > LISTED_MAX || hashes > LISTED_MAX) {
        fprintf(stderr, "query: at most %d content topics and hashes\n", LISTED_MAX);
        return false;
    }
    for (size_t i = 0; i < topics; i++) {
        parsed->topics[i] = span_of_text(options_list_item(options, "content-topic", i));
    }
    for (size_t i = 0; i < hashes; i++) {
        if (!parse_hash(parsed->hash_bytes[i], "hash", options_list_item(options, "hash", i))) {
            return false;
        }
        parsed->hashes[i] = span_of(parsed->hash_bytes[i], MESSAGE_HASH_BYTES);
    }
    parsed->query.content_topics = parsed->topics;
    parsed->query.content_topic_count = topics;
    parsed->query.hashes = parsed->hashes;
    parsed->query.hash_count = hashes;
    return true;
}

static bool parse_query(struct parsed_query *parsed, const struct options *options)
{
    struct archive_query *query = &parsed->query;
    const char *cursor = options_text(options, "cursor");
    query->pubsub_topic = span_of_text(options_text(options, "pubsub-topic"));
    query->limit = options_number(options, "limit");
    query->max_limit = query->limit;
    query->is_backward = options_flag(options, "backward");
    query->include_data = true;
    query->has_cursor = cursor[0] != '\0';
    if (query->has_cursor && !parse_hash(parsed->cursor, "cursor", cursor)) {
        return false;
    }
    query->cursor = span_of(parsed->cursor, sizeof(parsed->cursor));
    return parse_time(&query->time_start_ns, &query->has_time_start, options, "start") &&
           parse_time(&query->time_end_ns, &query->has_time_end, options, "end") &&
           parse_lists(parsed, options);
}

static void print_row(const struct archive_row *row, const struct waku_message_view *view)
{
    char hash[HEX_BYTES];
    hex_encode(hash, row->hash);
    printf("%" PRId64 " %s %.*s %.*s %zu bytes\n", row->timestamp_ns, hash,
            (int)row->pubsub_topic.length, (const char *)row->pubsub_topic.bytes,
            (int)view->content_topic.length, (const char *)view->content_topic.bytes,
            view->payload.length);
}

static json_t *span_json(struct span text)
{
    return json_stringn((const char *)text.bytes, text.length);
}

static void add_row(
        json_t *messages, const struct archive_row *row, const struct waku_message_view *view)
{
    char hash[HEX_BYTES];
    char timestamp[32];
    hex_encode(hash, row->hash);
    snprintf(timestamp, sizeof(timestamp), "%" PRId64, row->timestamp_ns);
    json_t *object = json_object();
    json_object_set_new(object, "timestamp", json_string(timestamp));
    json_object_set_new(object, "hash", json_string(hash));
    json_object_set_new(object, "pubsub_topic", span_json(row->pubsub_topic));
    json_object_set_new(object, "content_topic", span_json(view->content_topic));
    json_object_set_new(object, "payload_bytes", json_integer((json_int_t)view->payload.length));
    json_array_append_new(messages, object);
}

static enum status take_row(void *context, const struct archive_row *row)
{
    struct printer *printer = context;
    struct waku_message_view view;
    enum status status = waku_message_decode(&view, row->message);
    if (status != STATUS_OK) {
        return STATUS_DAMAGED;
    }
    if (printer->messages != NULL) {
        add_row(printer->messages, row, &view);
    } else {
        print_row(row, &view);
    }
    return STATUS_OK;
}

static void print_end(const struct printer *printer, const struct archive_page *page)
{
    char cursor[HEX_BYTES] = "";
    if (page->has_cursor) {
        hex_encode(cursor, span_of(page->cursor, sizeof(page->cursor)));
    }
    if (printer->messages == NULL) {
        printf("%zu messages%s%s\n", page->count, page->has_cursor ? ", cursor " : "", cursor);
        return;
    }
    json_t *result = json_object();
    json_object_set(result, "messages", printer->messages);
    json_object_set_new(result, "count", json_integer((json_int_t)page->count));
    if (page->has_cursor) {
        json_object_set_new(result, "cursor", json_string(cursor));
    }
    json_dumpf(result, stdout, JSON_INDENT(2));
    printf("\n");
    json_decref(result);
}

static int run_query(const struct options *options, const struct parsed_query *parsed)
{
    struct archive *archive = NULL;
    struct archive_reader *reader = NULL;
    struct archive_error error;
    struct archive_options read_only = {.is_read_only = true};
    struct printer printer = {.messages = options_flag(options, "json") ? json_array() : NULL};
    struct archive_page page;
    enum status status =
            archive_open(&archive, options_text(options, "archive"), &read_only, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "query: %s\n", error.text);
        json_decref(printer.messages);
        return EXIT_FAILED;
    }
    status = archive_reader_open(&reader, archive);
    if (status == STATUS_OK) {
        status = archive_query(reader, &parsed->query, take_row, &printer, &page);
    }
    if (status == STATUS_OK) {
        print_end(&printer, &page);
    } else {
        fprintf(stderr, "query: %s\n", status_text(status));
    }
    json_decref(printer.messages);
    archive_reader_close(&reader);
    archive_close(&archive);
    return status == STATUS_OK ? 0 : EXIT_FAILED;
}

int command_query(int argc, char **argv)
{
    static struct parsed_query parsed;
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
    } else if (options_text(options, "archive")[0] == '\0') {
        fprintf(stderr, "query: --archive=sqlite://PATH is needed\n");
    } else if (parse_query(&parsed, options)) {
        exit_status = run_query(options, &parsed);
    }
    options_destroy(&options);
    return exit_status;
}
