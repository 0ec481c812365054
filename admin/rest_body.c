/* SPDX-License-Identifier: MIT */
#include "admin/rest_body.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/base64.h"

static enum status refuse(struct rest_error *error, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static enum status refuse(struct rest_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    error->is_base64 = false;
    return STATUS_BAD_FIELD;
}

/* A byte of JSON becomes up to a hundred bytes of tree: so values are counted before it is made. */
static bool has_too_many_values(struct span body)
{
    enum {
        VALUES_MAX = 4 * REST_LIST_MAX
    };
    size_t count = 0;
    bool is_in_text = false;
    for (size_t i = 0; i < body.length && count <= VALUES_MAX; i++) {
        uint8_t byte = body.bytes[i];
        if (is_in_text && byte == '\\') {
            i++;
        } else if (byte == '"') {
            is_in_text = !is_in_text;
        } else if (!is_in_text && (byte == ',' || byte == '[' || byte == '{')) {
            count++;
        }
    }
    return count > VALUES_MAX;
}

static enum status load(json_t **out, struct span body, struct rest_error *error)
{
    json_error_t why;
    if (body.length == 0) {
        return refuse(error, "Missing content body");
    }
    if (has_too_many_values(body)) {
        return refuse(error, "too many values");
    }
    *out = json_loadb((const char *)body.bytes, body.length, JSON_REJECT_DUPLICATES, &why);
    if (*out == NULL) {
        return refuse(error, "not JSON: %.150s (line %d)", why.text, why.line);
    }
    return STATUS_OK;
}

/* The objects' fields by name; a field of another type than that of the table is refused. */
enum field_type {
    FIELD_TEXT,
    FIELD_INTEGER,
    FIELD_BOOL,
    FIELD_LIST,
    FIELD_OBJECT
};

struct field {
    const char *name;
    enum field_type type;
    bool is_required;
};

static bool has_type(const json_t *value, enum field_type type)
{
    switch (type) {
    case FIELD_TEXT:
        return json_is_string(value);
    case FIELD_INTEGER:
        return json_is_integer(value);
    case FIELD_BOOL:
        return json_is_boolean(value);
    case FIELD_LIST:
        return json_is_array(value);
    case FIELD_OBJECT:
        break;
    }
    return json_is_object(value);
}

static const struct field *find_field(const struct field *fields, const char *name)
{
    while (fields->name != NULL && strcmp(fields->name, name) != 0) {
        fields++;
    }
    return fields->name != NULL ? fields : NULL;
}

static enum status check_fields(
        json_t *object, const struct field *fields, bool is_strict, struct rest_error *error)
{
    static const char *const types[] = {
            "a text", "an integer of 64 bits", "true or false", "a list", "an object"};
    const char *name;
    json_t *value;
    if (!json_is_object(object)) {
        return refuse(error, "an object is expected");
    }
    json_object_foreach(object, name, value)
    {
        const struct field *field = find_field(fields, name);
        if (field == NULL && is_strict) {
            return refuse(error, "Field `%.100s` is not known", name);
        }
        if (field != NULL && !has_type(value, field->type)) {
            return refuse(error, "Field `%s` is not %s", name, types[field->type]);
        }
    }
    for (; fields->name != NULL; fields++) {
        if (fields->is_required && json_object_get(object, fields->name) == NULL) {
            return refuse(error, "Field `%s` is missing", fields->name);
        }
    }
    return STATUS_OK;
}

static struct span text_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return value == NULL ? span_of(NULL, 0)
                         : span_of(json_string_value(value), json_string_length(value));
}

/* A text that is there and not empty; NULL otherwise. */
static const char *find_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static enum status list_items(struct rest_list *out, json_t *array, struct rest_error *error)
{
    size_t count = json_array_size(array);
    if (count > REST_LIST_MAX) {
        (void)refuse(error, "more than %d items", REST_LIST_MAX);
        return STATUS_LIMIT_REACHED;
    }
    out->items = calloc(count + 1, sizeof(*out->items));
    if (out->items == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        const char *item = json_string_value(json_array_get(array, i));
        if (item == NULL) {
            return refuse(error, "a list of texts is expected, item %zu is none", i);
        }
        out->items[out->count++] = item;
    }
    return STATUS_OK;
}

enum status rest_list_parse(struct rest_list *out, struct span body, struct rest_error *error)
{
    json_t *array = NULL;
    memset(out, 0, sizeof(*out));
    enum status status = load(&array, body, error);
    out->json = array;
    if (status == STATUS_OK && !json_is_array(array)) {
        status = refuse(error, "a list of texts is expected");
    }
    if (status == STATUS_OK) {
        status = list_items(out, array, error);
    }
    if (status != STATUS_OK) {
        rest_list_fini(out);
    }
    return status;
}

void rest_list_fini(struct rest_list *list)
{
    json_decref(list->json);
    free(list->items);
    memset(list, 0, sizeof(*list));
}

/* Decodes to *to, which is moved behind it. */
static enum status take_base64(struct span *out, uint8_t **to, const json_t *object,
        const char *name, struct rest_error *error)
{
    size_t length;
    enum status status = base64_decode(*to, &length, text_of(object, name));
    if (status != STATUS_OK) {
        status = refuse(error, "Incorrect base64 string: field `%s`", name);
        error->is_base64 = true;
        return status;
    }
    *out = span_of(*to, length);
    *to += length;
    return STATUS_OK;
}

static bool is_blank(struct span text)
{
    for (size_t i = 0; i < text.length; i++) {
        if (strchr(" \t\v\r\n\f", text.bytes[i]) == NULL || text.bytes[i] == 0) {
            return false;
        }
    }
    return true;
}

static enum status take_numbers(struct waku_message_view *out, const json_t *object, int64_t now_ns,
        struct rest_error *error)
{
    json_int_t version = json_integer_value(json_object_get(object, "version"));
    json_int_t timestamp = json_integer_value(json_object_get(object, "timestamp"));
    if (version < 0 || version > UINT32_MAX) {
        return refuse(error, "Field `version` is not from 0 to %u", UINT32_MAX);
    }
    out->version = (uint32_t)version;
    out->timestamp_ns = timestamp != 0 ? timestamp : now_ns;
    out->has_timestamp = true;
    out->ephemeral = json_is_true(json_object_get(object, "ephemeral"));
    return STATUS_OK;
}

static enum status take_bytes(
        struct rest_message *out, const json_t *object, struct rest_error *error)
{
    struct waku_message_view *fields = &out->fields;
    size_t room = text_of(object, "payload").length + text_of(object, "meta").length +
                  text_of(object, "proof").length + 16;
    uint8_t *to = out->bytes = malloc(room);
    if (to == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = take_base64(&fields->payload, &to, object, "payload", error);
    if (status == STATUS_OK) {
        status = take_base64(&fields->meta, &to, object, "meta", error);
    }
    if (status == STATUS_OK) {
        status = take_base64(&fields->rate_limit_proof, &to, object, "proof", error);
    }
    return status;
}

/* object stays the caller's and has to outlive the message. */
static enum status read_message(struct rest_message *out, json_t *object, int64_t now_ns,
        bool is_strict, struct rest_error *error)
{
    static const struct field fields[] = {{"payload", FIELD_TEXT, true},
            {"contentTopic", FIELD_TEXT, true}, {"version", FIELD_INTEGER, false},
            {"timestamp", FIELD_INTEGER, false}, {"meta", FIELD_TEXT, false},
            {"ephemeral", FIELD_BOOL, false}, {"proof", FIELD_TEXT, false}, {NULL, 0, false}};
    enum status status = check_fields(object, fields, is_strict, error);
    if (status == STATUS_OK && is_blank(text_of(object, "payload"))) {
        status = refuse(error, "Field `payload` is missing or empty");
    }
    if (status == STATUS_OK && is_blank(text_of(object, "contentTopic"))) {
        status = refuse(error, "Field `contentTopic` is missing or empty");
    }
    if (status == STATUS_OK) {
        status = take_numbers(&out->fields, object, now_ns, error);
    }
    if (status == STATUS_OK) {
        status = take_bytes(out, object, error);
    }
    if (status == STATUS_OK) {
        out->fields.content_topic = text_of(object, "contentTopic");
        out->fields.has_content_topic = out->fields.has_payload = true;
    }
    return status;
}

enum status rest_message_parse(struct rest_message *out, struct span body, int64_t now_ns,
        bool is_strict, struct rest_error *error)
{
    json_t *object = NULL;
    memset(out, 0, sizeof(*out));
    enum status status = load(&object, body, error);
    out->json = object;
    if (status == STATUS_OK) {
        status = read_message(out, object, now_ns, is_strict, error);
    }
    if (status != STATUS_OK) {
        rest_message_fini(out);
    }
    return status;
}

void rest_message_fini(struct rest_message *message)
{
    json_decref(message->json);
    free(message->bytes);
    memset(message, 0, sizeof(*message));
}

enum status rest_push_parse(struct rest_push *out, struct span body, int64_t now_ns, bool is_strict,
        struct rest_error *error)
{
    static const struct field fields[] = {
            {"message", FIELD_OBJECT, true}, {"pubsubTopic", FIELD_TEXT, false}, {NULL, 0, false}};
    json_t *object = NULL;
    memset(out, 0, sizeof(*out));
    enum status status = load(&object, body, error);
    out->message.json = object;
    if (status == STATUS_OK) {
        status = check_fields(object, fields, is_strict, error);
    }
    if (status == STATUS_OK) {
        status = read_message(
                &out->message, json_object_get(object, "message"), now_ns, is_strict, error);
    }
    if (status != STATUS_OK) {
        rest_push_fini(out);
        return status;
    }
    out->pubsub_topic = find_text(object, "pubsubTopic");
    return STATUS_OK;
}

void rest_push_fini(struct rest_push *push)
{
    rest_message_fini(&push->message);
    push->pubsub_topic = NULL;
}

static enum status read_filter(
        struct rest_filter *out, json_t *object, bool is_all, struct rest_error *error)
{
    out->request_id = json_string_value(json_object_get(object, "requestId"));
    if (is_all) {
        return STATUS_OK;
    }
    out->pubsub_topic = find_text(object, "pubsubTopic");
    enum status status =
            list_items(&out->content_topics, json_object_get(object, "contentFilters"), error);
    return status == STATUS_OK && out->content_topics.count == 0
                   ? refuse(error, "Field `contentFilters` is empty")
                   : status;
}

enum status rest_filter_parse(struct rest_filter *out, struct span body, bool is_all,
        bool is_strict, struct rest_error *error)
{
    static const struct field some[] = {{"requestId", FIELD_TEXT, true},
            {"contentFilters", FIELD_LIST, true}, {"pubsubTopic", FIELD_TEXT, false},
            {NULL, 0, false}};
    static const struct field all[] = {{"requestId", FIELD_TEXT, true}, {NULL, 0, false}};
    json_t *object = NULL;
    memset(out, 0, sizeof(*out));
    enum status status = load(&object, body, error);
    out->content_topics.json = object;
    if (status == STATUS_OK) {
        status = check_fields(object, is_all ? all : some, is_strict, error);
    }
    if (status == STATUS_OK) {
        status = read_filter(out, object, is_all, error);
    }
    if (status != STATUS_OK) {
        rest_filter_fini(out);
    }
    return status;
}

void rest_filter_fini(struct rest_filter *filter)
{
    rest_list_fini(&filter->content_topics);
    filter->request_id = filter->pubsub_topic = NULL;
}
