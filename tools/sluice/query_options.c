/* SPDX-License-Identifier: MIT */
#include "tools/sluice/query_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"

static bool parse_time(int64_t *out, bool *has, const struct options *options, const char *name,
        const char *command)
{
    const char *text = options_text(options, name);
    char *end;
    *has = text[0] != '\0';
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (*end != '\0' || errno != 0) {
        fprintf(stderr, "%s: --%s=%s is no number of nanoseconds\n", command, name, text);
        return false;
    }
    return true;
}

static bool parse_hash(
        uint8_t out[MESSAGE_HASH_BYTES], const char *name, const char *text, const char *command)
{
    if (hex_decode(out, MESSAGE_HASH_BYTES, text) != STATUS_OK) {
        fprintf(stderr, "%s: --%s=%s is not 64 hexadecimal digits\n", command, name, text);
        return false;
    }
    return true;
}

static bool parse_lists(
        struct query_arguments *out, const struct options *options, const char *command)
{
    size_t topics = options_list_count(options, "content-topic");
    size_t hashes = options_list_count(options, "hash");
    if (topics > QUERY_LISTED_MAX || hashes > QUERY_LISTED_MAX) {
        fprintf(stderr, "%s: at most %d content topics and hashes\n", command, QUERY_LISTED_MAX);
        return false;
    }
    for (size_t i = 0; i < topics; i++) {
        out->topics[i] = span_of_text(options_list_item(options, "content-topic", i));
    }
    for (size_t i = 0; i < hashes; i++) {
        const char *text = options_list_item(options, "hash", i);
        if (!parse_hash(out->hash_bytes[i], "hash", text, command)) {
            return false;
        }
        out->hashes[i] = span_of(out->hash_bytes[i], MESSAGE_HASH_BYTES);
    }
    out->query.content_topics = out->topics;
    out->query.content_topic_count = topics;
    out->query.hashes = out->hashes;
    out->query.hash_count = hashes;
    return true;
}

bool query_arguments_read(
        struct query_arguments *out, const struct options *options, const char *command)
{
    struct archive_query *query = &out->query;
    const char *cursor = options_text(options, "cursor");
    query->pubsub_topic = span_of_text(options_text(options, "pubsub-topic"));
    query->is_backward = options_flag(options, "backward");
    query->include_data = true;
    query->has_cursor = cursor[0] != '\0';
    if (query->has_cursor && !parse_hash(out->cursor, "cursor", cursor, command)) {
        return false;
    }
    query->cursor = span_of(out->cursor, sizeof(out->cursor));
    return parse_time(&query->time_start_ns, &query->has_time_start, options, "start", command) &&
           parse_time(&query->time_end_ns, &query->has_time_end, options, "end", command) &&
           parse_lists(out, options, command);
}
