/* SPDX-License-Identifier: MIT */
#include "admin/rest_query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hex.h"

enum {
    PAGE_DEFAULT = ARCHIVE_PAGE_DEFAULT,
    PAGE_MAX = ARCHIVE_PAGE_MAX,
    HASHES_MAX = 1000
};

static enum status refuse(struct rest_error *error, const char *what, const char *text)
{
    snprintf(error->text, sizeof(error->text), "%s: %.100s", what, text);
    return STATUS_BAD_FIELD;
}

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

bool rest_is_encoded_twice(const char *topic)
{
    return strchr(topic, '/') == NULL && strcasestr(topic, "%2f") != NULL;
}

static enum status parse_bool(
        bool *out, const char *text, const char *what, struct rest_error *error)
{
    static const char *const yes[] = {"true", "1", "yes", "y", "on"};
    static const char *const no[] = {"false", "0", "no", "n", "off"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
            *out = strcasecmp(text, yes[i]) == 0;
            return STATUS_OK;
        }
    }
    return refuse(error, what, text);
}

static enum status parse_integer(
        int64_t *out, const char *text, const char *what, struct rest_error *error)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (*end != '\0' || errno != 0 || strchr("-+0123456789", text[0]) == NULL) {
        return refuse(error, what, text);
    }
    *out = value;
    return STATUS_OK;
}

static enum status parse_time(bool *has, int64_t *out, const char *text, struct rest_error *error)
{
    if (!is_given(text)) {
        return STATUS_OK;
    }
    enum status status = parse_integer(out, text, "time parsing error: invalid integer", error);
    *has = status == STATUS_OK && *out > 0;
    return status;
}

static enum status parse_page_size(uint64_t *out, const char *text, struct rest_error *error)
{
    int64_t size = PAGE_DEFAULT;
    if (is_given(text)) {
        enum status status =
                parse_integer(&size, text, "page size parsing error: invalid integer", error);
        if (status != STATUS_OK) {
            return status;
        }
    }
    size = size < 0 || size > PAGE_MAX ? PAGE_MAX : size;
    *out = size == 0 ? PAGE_DEFAULT : (uint64_t)size;
    return STATUS_OK;
}

static enum status parse_hash(uint8_t *out, const char *text, struct rest_error *error)
{
    const char *digits = strncasecmp(text, "0x", 2) == 0 ? text + 2 : text;
    size_t length = strlen(digits);
    for (size_t i = 0; i < length; i++) {
        if (hex_digit(digits[i]) < 0) {
            snprintf(error->text, sizeof(error->text),
                    "Exception converting hex string to bytes: %c is not a hexadecimal character",
                    digits[i] >= ' ' && digits[i] < 0x7F ? digits[i] : '?');
            return STATUS_BAD_FIELD;
        }
    }
    if (length != (size_t)MESSAGE_HASH_BYTES * 2) {
        snprintf(error->text, sizeof(error->text),
                "waku message hash parsing error: invalid hash length: %zu", (length + 1) / 2);
        return STATUS_BAD_FIELD;
    }
    for (size_t i = 0; i < MESSAGE_HASH_BYTES; i++) {
        out[i] = (uint8_t)(hex_digit(digits[2 * i]) << 4 | hex_digit(digits[2 * i + 1]));
    }
    return STATUS_OK;
}

static size_t count_items(const char *list)
{
    size_t count = 1;
    for (; *list != '\0'; list++) {
        count += *list == ',';
    }
    return count;
}

/* list is cut at its commas. */
static enum status take_hashes(struct rest_query *out, char *list, struct rest_error *error)
{
    size_t count = count_items(list);
    if (count > HASHES_MAX) {
        return refuse(error, "too many hashes, more than", "1000");
    }
    out->hashes = calloc(count, sizeof(*out->hashes));
    out->hash_bytes = calloc(count, MESSAGE_HASH_BYTES);
    if (out->hashes == NULL || out->hash_bytes == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (char *item; (item = strsep(&list, ",")) != NULL;) {
        uint8_t *bytes = out->hash_bytes + out->query.hash_count * MESSAGE_HASH_BYTES;
        if (item[0] == '\0') {
            continue;
        }
        enum status status = parse_hash(bytes, item, error);
        if (status != STATUS_OK) {
            return status;
        }
        out->hashes[out->query.hash_count++] = span_of(bytes, MESSAGE_HASH_BYTES);
    }
    out->query.hashes = out->hashes;
    return STATUS_OK;
}

static enum status take_content_topics(struct rest_query *out, char *list, struct rest_error *error)
{
    size_t count = count_items(list);
    if (count > REST_LIST_MAX) {
        return refuse(error, "too many content topics, more than", "10000");
    }
    out->content_topics = calloc(count, sizeof(*out->content_topics));
    if (out->content_topics == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (char *item; (item = strsep(&list, ",")) != NULL;) {
        if (rest_is_encoded_twice(item)) {
            return refuse(error, "content topic is URL-encoded twice", item);
        }
        out->content_topics[out->query.content_topic_count++] = span_of_text(item);
    }
    out->query.content_topics = out->content_topics;
    return STATUS_OK;
}

/* A copy of the text in *room, which is moved behind it. */
static char *copy_text(char **room, const char *text)
{
    char *copy = *room;
    size_t size = text != NULL ? strlen(text) + 1 : 1;
    memcpy(copy, text != NULL ? text : "", size);
    *room += size;
    return copy;
}

static size_t size_of(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 1;
}

static enum status take_texts(struct rest_query *out,
        const struct rest_query_parameters *parameters, struct rest_error *error)
{
    enum status status = STATUS_OK;
    char *room = out->texts =
            malloc(size_of(parameters->pubsub_topic) + size_of(parameters->content_topics) +
                    size_of(parameters->hashes) + MESSAGE_HASH_BYTES);
    if (room == NULL) {
        return STATUS_NO_MEMORY;
    }
    uint8_t *cursor = (uint8_t *)room;
    room += MESSAGE_HASH_BYTES;
    if (is_given(parameters->pubsub_topic)) {
        out->query.pubsub_topic = span_of_text(copy_text(&room, parameters->pubsub_topic));
        if (rest_is_encoded_twice(parameters->pubsub_topic)) {
            return refuse(error, "pubsub topic is URL-encoded twice", parameters->pubsub_topic);
        }
    }
    if (is_given(parameters->content_topics)) {
        status = take_content_topics(out, copy_text(&room, parameters->content_topics), error);
    }
    if (status == STATUS_OK && is_given(parameters->hashes)) {
        status = take_hashes(out, copy_text(&room, parameters->hashes), error);
    }
    if (status == STATUS_OK && is_given(parameters->cursor)) {
        status = parse_hash(cursor, parameters->cursor, error);
        out->query.has_cursor = true;
        out->query.cursor = span_of(cursor, MESSAGE_HASH_BYTES);
    }
    return status;
}

static enum status take_values(struct archive_query *out,
        const struct rest_query_parameters *parameters, struct rest_error *error)
{
    bool is_ascending = true;
    enum status status = STATUS_OK;
    if (is_given(parameters->include_data)) {
        status = parse_bool(&out->include_data, parameters->include_data,
                "include data parsing error: cannot interpret as a bool", error);
    }
    if (status == STATUS_OK) {
        status = parse_time(
                &out->has_time_start, &out->time_start_ns, parameters->start_time, error);
    }
    if (status == STATUS_OK) {
        status = parse_time(&out->has_time_end, &out->time_end_ns, parameters->end_time, error);
    }
    if (status == STATUS_OK && is_given(parameters->ascending)) {
        status = parse_bool(&is_ascending, parameters->ascending,
                "ascending parsing error: cannot interpret as a bool", error);
    }
    out->is_backward = !is_ascending;
    return status == STATUS_OK ? parse_page_size(&out->limit, parameters->page_size, error)
                               : status;
}

enum status rest_query_parse(struct rest_query *out, const struct rest_query_parameters *parameters,
        struct rest_error *error)
{
    memset(out, 0, sizeof(*out));
    enum status status = take_values(&out->query, parameters, error);
    if (status == STATUS_OK) {
        status = take_texts(out, parameters, error);
    }
    /* A hash is of a message on a pubsub topic: beside it topics say nothing, and archives refuse both. */
    if (status == STATUS_OK && out->query.hash_count > 0) {
        out->query.pubsub_topic = span_of(NULL, 0);
        out->query.content_topic_count = 0;
    }
    if (status != STATUS_OK) {
        if (status == STATUS_NO_MEMORY) {
            (void)refuse(error, "query", status_text(status));
        }
        rest_query_fini(out);
    }
    return status;
}

void rest_query_fini(struct rest_query *query)
{
    free(query->texts);
    free(query->content_topics);
    free(query->hashes);
    free(query->hash_bytes);
    memset(query, 0, sizeof(*query));
}
