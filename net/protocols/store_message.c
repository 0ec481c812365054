/* SPDX-License-Identifier: MIT */
#include "net/protocols/store_message.h"

#include "base/memory.h"
#include "codec/wire.h"

#define REQUEST_ID    WIRE_TAG(1, WIRE_LENGTH)
#define INCLUDE_DATA  WIRE_TAG(2, WIRE_VARINT)
#define PUBSUB_TOPIC  WIRE_TAG(10, WIRE_LENGTH)
#define CONTENT_TOPIC WIRE_TAG(11, WIRE_LENGTH)
#define TIME_START    WIRE_TAG(12, WIRE_VARINT)
#define TIME_END      WIRE_TAG(13, WIRE_VARINT)
#define MESSAGE_HASH  WIRE_TAG(20, WIRE_LENGTH)
#define CURSOR        WIRE_TAG(51, WIRE_LENGTH)
#define FORWARD       WIRE_TAG(52, WIRE_VARINT)
#define LIMIT         WIRE_TAG(53, WIRE_VARINT)
#define STATUS_CODE   WIRE_TAG(10, WIRE_VARINT)
#define DESCRIPTION   WIRE_TAG(11, WIRE_LENGTH)
#define ENTRY         WIRE_TAG(20, WIRE_LENGTH)
#define ENTRY_HASH    WIRE_TAG(1, WIRE_LENGTH)
#define ENTRY_MESSAGE WIRE_TAG(2, WIRE_LENGTH)
#define ENTRY_TOPIC   WIRE_TAG(3, WIRE_LENGTH)

static enum status count_lists(struct archive_query *query, struct span message)
{
    while (message.length > 0) {
        struct wire_field field;
        enum status status = wire_next(&field, &message);
        if (status != STATUS_OK) {
            return status;
        }
        query->content_topic_count += field.tag == CONTENT_TOPIC;
        query->hash_count += field.tag == MESSAGE_HASH;
    }
    return query->content_topic_count <= STORE_CONTENT_TOPICS_MAX ? STATUS_OK
                                                                  : STATUS_LIMIT_REACHED;
}

struct list_ends {
    struct span *topic;
    struct span *hash;
};

static void take_field(
        struct store_request *out, const struct wire_field *field, struct list_ends *ends)
{
    struct archive_query *query = &out->query;
    switch (field->tag) {
    case REQUEST_ID:
        out->request_id = field->bytes;
        break;
    case INCLUDE_DATA:
        query->include_data = field->number != 0;
        break;
    case PUBSUB_TOPIC:
        query->pubsub_topic = field->bytes;
        break;
    case CONTENT_TOPIC:
        *ends->topic++ = field->bytes;
        break;
    case MESSAGE_HASH:
        *ends->hash++ = field->bytes;
        break;
    case TIME_START:
        query->has_time_start = true;
        query->time_start_ns = varint_unzigzag(field->number);
        break;
    case TIME_END:
        query->has_time_end = true;
        query->time_end_ns = varint_unzigzag(field->number);
        break;
    case CURSOR:
        query->has_cursor = true;
        query->cursor = field->bytes;
        break;
    case FORWARD:
        query->is_backward = field->number == 0;
        break;
    case LIMIT:
        query->limit = field->number;
        break;
    default:
        break;
    }
}

enum status store_request_read(struct store_request *out, struct span message)
{
    /* Absent is false on the wire: backward. */
    *out = (struct store_request){.query.is_backward = true};
    struct archive_query *query = &out->query;
    enum status status = count_lists(query, message);
    if (status != STATUS_OK) {
        return status;
    }
    size_t count = query->content_topic_count + query->hash_count;
    if (count > 0) {
        out->lists = memory_allocate(count * sizeof(*out->lists));
        if (out->lists == NULL) {
            return STATUS_NO_MEMORY;
        }
        query->content_topics = out->lists;
        query->hashes = out->lists + query->content_topic_count;
    }
    struct list_ends ends = {.topic = out->lists};
    ends.hash = count > 0 ? out->lists + query->content_topic_count : NULL;
    while (status == STATUS_OK && message.length > 0) {
        struct wire_field field;
        status = wire_next(&field, &message);
        if (status == STATUS_OK) {
            take_field(out, &field, &ends);
        }
    }
    return out->request_id.length <= STORE_REQUEST_ID_MAX ? status : STATUS_LIMIT_REACHED;
}

struct span store_request_id_of(struct span beginning)
{
    struct span request_id = span_of(NULL, 0);
    struct wire_field field;
    while (beginning.length > 0 && wire_next(&field, &beginning) == STATUS_OK) {
        if (field.tag == REQUEST_ID) {
            request_id = field.bytes;
        }
    }
    return request_id;
}

void store_request_fini(struct store_request *request)
{
    memory_free(request->lists);
    request->lists = NULL;
}

static size_t request_size_max(const struct store_request *request)
{
    const struct archive_query *query = &request->query;
    size_t head = 16; /* above a tag with a length, and above a tag with a number */
    size_t size = 12 * head + request->request_id.length + query->pubsub_topic.length +
                  query->cursor.length;
    for (size_t i = 0; i < query->content_topic_count; i++) {
        size += head + query->content_topics[i].length;
    }
    for (size_t i = 0; i < query->hash_count; i++) {
        size += head + query->hashes[i].length;
    }
    return size;
}

static uint8_t *write_times(uint8_t *to, const struct archive_query *query)
{
    if (query->has_time_start) {
        to = wire_write_number(to, TIME_START, varint_zigzag(query->time_start_ns));
    }
    if (query->has_time_end) {
        to = wire_write_number(to, TIME_END, varint_zigzag(query->time_end_ns));
    }
    return to;
}

enum status store_request_write(uint8_t **out, size_t *length, const struct store_request *request)
{
    const struct archive_query *query = &request->query;
    *out = memory_allocate(request_size_max(request));
    if (*out == NULL) {
        return STATUS_NO_MEMORY;
    }
    uint8_t *to = wire_write_bytes(*out, REQUEST_ID, request->request_id);
    to = wire_write_number(to, INCLUDE_DATA, query->include_data);
    if (query->pubsub_topic.length > 0) {
        to = wire_write_bytes(to, PUBSUB_TOPIC, query->pubsub_topic);
    }
    for (size_t i = 0; i < query->content_topic_count; i++) {
        to = wire_write_bytes(to, CONTENT_TOPIC, query->content_topics[i]);
    }
    to = write_times(to, query);
    for (size_t i = 0; i < query->hash_count; i++) {
        to = wire_write_bytes(to, MESSAGE_HASH, query->hashes[i]);
    }
    if (query->has_cursor) {
        to = wire_write_bytes(to, CURSOR, query->cursor);
    }
    to = wire_write_number(to, FORWARD, !query->is_backward);
    if (query->limit > 0) {
        to = wire_write_number(to, LIMIT, query->limit);
    }
    *length = (size_t)(to - *out);
    return STATUS_OK;
}

uint8_t *store_write_head(
        uint8_t *to, struct span request_id, uint32_t code, struct span description)
{
    to = wire_write_bytes(to, REQUEST_ID, request_id);
    to = wire_write_number(to, STATUS_CODE, code);
    return wire_write_bytes(to, DESCRIPTION, description);
}

static size_t entry_size(const struct archive_row *row, bool has_data)
{
    size_t size = wire_bytes_size(ENTRY_HASH, row->hash.length);
    if (has_data) {
        size += wire_bytes_size(ENTRY_MESSAGE, row->message.length);
        size += wire_bytes_size(ENTRY_TOPIC, row->pubsub_topic.length);
    }
    return size;
}

uint8_t *store_write_entry_head(uint8_t *to, const struct archive_row *row, bool has_data)
{
    to = wire_write_head(to, ENTRY, entry_size(row, has_data));
    to = wire_write_bytes(to, ENTRY_HASH, row->hash);
    return has_data ? wire_write_head(to, ENTRY_MESSAGE, row->message.length) : to;
}

size_t store_entry_tail_size(const struct archive_row *row)
{
    return wire_bytes_size(ENTRY_TOPIC, row->pubsub_topic.length);
}

uint8_t *store_write_entry_tail(uint8_t *to, const struct archive_row *row)
{
    return wire_write_bytes(to, ENTRY_TOPIC, row->pubsub_topic);
}

uint8_t *store_write_cursor(uint8_t *to, const uint8_t cursor[MESSAGE_HASH_BYTES])
{
    return wire_write_bytes(to, CURSOR, span_of(cursor, MESSAGE_HASH_BYTES));
}

enum status store_answer_read(struct store_answer_view *out, struct span message)
{
    *out = (struct store_answer_view){.rest = message};
    enum status status = STATUS_OK;
    while (status == STATUS_OK && message.length > 0) {
        struct wire_field field;
        status = wire_next(&field, &message);
        if (status != STATUS_OK) {
            break;
        }
        switch (field.tag) {
        case REQUEST_ID:
            out->request_id = field.bytes;
            break;
        case STATUS_CODE:
            status = wire_number32(&out->code, &field);
            break;
        case DESCRIPTION:
            out->description = field.bytes;
            break;
        case CURSOR:
            out->cursor = field.bytes;
            break;
        default:
            break;
        }
    }
    return status;
}

static enum status read_entry(struct store_entry *out, struct span bytes)
{
    *out = (struct store_entry){.hash = span_of(NULL, 0)};
    while (bytes.length > 0) {
        struct wire_field field;
        enum status status = wire_next(&field, &bytes);
        if (status != STATUS_OK) {
            return status;
        }
        switch (field.tag) {
        case ENTRY_HASH:
            out->hash = field.bytes;
            break;
        case ENTRY_MESSAGE:
            out->message = field.bytes;
            break;
        case ENTRY_TOPIC:
            out->pubsub_topic = field.bytes;
            break;
        default:
            break;
        }
    }
    return out->hash.length == MESSAGE_HASH_BYTES ? STATUS_OK : STATUS_BAD_FIELD;
}

bool store_answer_next(struct store_answer_view *view, struct store_entry *out, enum status *status)
{
    *status = STATUS_OK;
    while (view->rest.length > 0) {
        struct wire_field field;
        *status = wire_next(&field, &view->rest);
        if (*status != STATUS_OK) {
            return false;
        }
        if (field.tag == ENTRY) {
            *status = read_entry(out, field.bytes);
            return *status == STATUS_OK;
        }
    }
    return false;
}
