/* SPDX-License-Identifier: MIT */
#include "tools/sluice/message_printer.h"

#include <inttypes.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "base/hex.h"
#include "base/memory.h"
#include "codec/waku_message.h"
#include "queues/envelope.h"

enum {
    HEX_BYTES = MESSAGE_HASH_BYTES * 2 + 1
};

void message_printer_init(struct message_printer *printer, bool is_json)
{
    *printer = (struct message_printer){.messages = is_json ? json_array() : NULL};
}

void message_printer_init_lines(struct message_printer *printer, bool is_json)
{
    *printer = (struct message_printer){.is_lines = is_json};
}

void message_printer_fini(struct message_printer *printer)
{
    json_decref(printer->messages);
    printer->messages = NULL;
}

static json_t *span_json(struct span text)
{
    return json_stringn((const char *)text.bytes, text.length);
}

static json_t *make_object(
        const char *hash, struct span pubsub_topic, const struct waku_message_view *view)
{
    char timestamp[32];
    snprintf(timestamp, sizeof(timestamp), "%" PRId64, view->timestamp_ns);
    json_t *object = json_object();
    json_object_set_new(object, "timestamp", json_string(timestamp));
    json_object_set_new(object, "hash", json_string(hash));
    json_object_set_new(object, "pubsub_topic", span_json(pubsub_topic));
    json_object_set_new(object, "content_topic", span_json(view->content_topic));
    json_object_set_new(object, "payload_bytes", json_integer((json_int_t)view->payload.length));
    return object;
}

/* False: no memory. */
static bool add_payload(json_t *object, struct span payload)
{
    size_t size = (payload.length + 2) / 3 * 4 + 1;
    char *text = memory_allocate(size);
    if (text == NULL || payload.length > INT_MAX / 2) {
        memory_free(text);
        return false;
    }
    text[EVP_EncodeBlock((unsigned char *)text, payload.bytes, (int)payload.length)] = '\0';
    json_object_set_new(object, "payload", json_string(text));
    memory_free(text);
    return true;
}

static enum status print_line(
        const char *hash, struct span pubsub_topic, const struct waku_message_view *view)
{
    json_t *object = make_object(hash, pubsub_topic, view);
    bool is_whole = add_payload(object, view->payload);
    if (is_whole) {
        json_dumpf(object, stdout, JSON_COMPACT);
        printf("\n");
    }
    json_decref(object);
    return is_whole ? STATUS_OK : STATUS_NO_MEMORY;
}

enum status message_printer_add(struct message_printer *printer, struct span hash,
        struct span pubsub_topic, struct span message)
{
    struct waku_message_view view;
    char hex[HEX_BYTES];
    if (hash.length != MESSAGE_HASH_BYTES || waku_message_decode(&view, message) != STATUS_OK) {
        return STATUS_DAMAGED;
    }
    hex_encode(hex, hash);
    if (printer->is_lines) {
        return print_line(hex, pubsub_topic, &view);
    }
    if (printer->messages != NULL) {
        json_array_append_new(printer->messages, make_object(hex, pubsub_topic, &view));
        return STATUS_OK;
    }
    printf("%" PRId64 " %s %.*s %.*s %zu bytes\n", view.timestamp_ns, hex, (int)pubsub_topic.length,
            (const char *)pubsub_topic.bytes, (int)view.content_topic.length,
            (const char *)view.content_topic.bytes, view.payload.length);
    return STATUS_OK;
}

void message_printer_end(const struct message_printer *printer, uint64_t count, struct span cursor)
{
    char hex[HEX_BYTES] = "";
    bool has_cursor = cursor.length == MESSAGE_HASH_BYTES;
    if (has_cursor) {
        hex_encode(hex, cursor);
    }
    if (printer->messages == NULL) {
        printf("%" PRIu64 " messages%s%s\n", count, has_cursor ? ", cursor " : "", hex);
        return;
    }
    json_t *result = json_object();
    json_object_set(result, "messages", printer->messages);
    json_object_set_new(result, "count", json_integer((json_int_t)count));
    if (has_cursor) {
        json_object_set_new(result, "cursor", json_string(hex));
    }
    json_dumpf(result, stdout, JSON_INDENT(2));
    printf("\n");
    json_decref(result);
}
