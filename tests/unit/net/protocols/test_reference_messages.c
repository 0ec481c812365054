/* SPDX-License-Identifier: MIT */

/*
 * Messages that the reference sent, from tests/vectors/reference_messages.json: they say what an
 * independent decoder read from them.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/waku_message.h"
#include "hash/message_hash.h"
#include "net/protocols/filter_message.h"
#include "net/protocols/lightpush_message.h"
#include "net/protocols/store_message.h"
#include "net/protocols/transfer_message.h"
#include "tests/support/vectors.h"

static json_t *root;

static int load(void **state)
{
    (void)state;
    root = vectors_load("reference_messages.json");
    return 0;
}

static int unload(void **state)
{
    (void)state;
    json_decref(root);
    return 0;
}

static void assert_text(struct span bytes, const char *text)
{
    assert_int_equal(bytes.length, strlen(text));
    assert_memory_equal(bytes.bytes, text, bytes.length);
}

/* The serialised message and its hash. */
static void assert_message(struct span topic, struct span message, const json_t *published)
{
    struct waku_message_view view;
    assert_int_equal(waku_message_decode(&view, message), STATUS_OK);
    assert_int_equal(waku_message_check(&view, &waku_message_limits_default), STATUS_OK);
    struct span payload = vectors_bytes(published, "payload");
    struct span meta = vectors_bytes(published, "meta");
    struct span hash = vectors_bytes(published, "hash");
    assert_true(span_equal(view.payload, payload));
    assert_true(span_equal(view.meta, meta));
    assert_text(view.content_topic, vectors_text(published, "content_topic"));
    assert_int_equal(view.timestamp_ns, strtoll(vectors_text(published, "timestamp"), NULL, 10));
    assert_int_equal(view.version, json_integer_value(json_object_get(published, "version")));
    struct message_hash_input input = {.pubsub_topic = topic,
            .payload = view.payload,
            .content_topic = view.content_topic,
            .meta = view.meta,
            .timestamp_ns = view.timestamp_ns};
    uint8_t ours[SHA256_BYTES];
    message_hash(ours, &input);
    assert_int_equal(hash.length, SHA256_BYTES);
    assert_memory_equal(ours, hash.bytes, SHA256_BYTES);
    hex_free(payload);
    hex_free(meta);
    hex_free(hash);
}

typedef void check(const json_t *record, struct span bytes);

static void for_each(const char *kind, check *check_one)
{
    const json_t *records = json_object_get(root, kind);
    assert_true(json_array_size(records) > 0);
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *record = json_array_get(records, i);
        struct span bytes = vectors_bytes(record, "bytes");
        check_one(record, bytes);
        hex_free(bytes);
    }
}

static const json_t *only_message(const json_t *record)
{
    return json_array_get(json_object_get(record, "messages"), 0);
}

static void check_push(const json_t *record, struct span bytes)
{
    struct filter_push_view push;
    assert_int_equal(filter_push_read(&push, bytes), STATUS_OK);
    assert_text(push.pubsub_topic, vectors_text(record, "pubsub_topic"));
    assert_message(push.pubsub_topic, push.message, only_message(record));
}

static void check_transfer(const json_t *record, struct span bytes)
{
    struct transfer_message transfer;
    assert_int_equal(transfer_message_read(&transfer, bytes), STATUS_OK);
    assert_text(transfer.pubsub_topic, vectors_text(record, "pubsub_topic"));
    assert_message(transfer.pubsub_topic, transfer.message, only_message(record));
}

static void check_filter_answer(const json_t *record, struct span bytes)
{
    struct filter_answer answer;
    assert_int_equal(filter_answer_read(&answer, bytes), STATUS_OK);
    assert_text(answer.request_id, vectors_text(record, "request_id"));
    assert_int_equal(answer.code, json_integer_value(json_object_get(record, "code")));
}

static void check_store_answer(const json_t *record, struct span bytes)
{
    struct store_answer_view answer;
    struct store_entry entry;
    enum status status = STATUS_OK;
    const json_t *messages = json_object_get(record, "messages");
    size_t count = 0;
    assert_int_equal(store_answer_read(&answer, bytes), STATUS_OK);
    assert_int_equal(answer.code, 200);
    while (store_answer_next(&answer, &entry, &status)) {
        const json_t *published = json_array_get(messages, count++);
        struct span hash = vectors_bytes(published, "hash");
        assert_true(span_equal(entry.hash, hash));
        hex_free(hash);
        if (entry.message.length > 0) {
            assert_message(entry.pubsub_topic, entry.message, published);
        }
    }
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(count, json_array_size(messages));
    struct span cursor = vectors_bytes(record, "cursor");
    assert_true(span_equal(answer.cursor, cursor));
    hex_free(cursor);
}

static void check_lightpush_answer(const json_t *record, struct span bytes)
{
    bool is_legacy = json_is_true(json_object_get(record, "legacy"));
    struct lightpush_answer answer;
    assert_int_equal(
            lightpush_answer_read(&answer, bytes, is_legacy ? LIGHTPUSH_LEGACY : LIGHTPUSH_V3),
            STATUS_OK);
    assert_int_equal(answer.code, json_integer_value(json_object_get(record, "code")));
    assert_int_equal(answer.relay_peer_count,
            json_integer_value(json_object_get(record, "relay_peer_count")));
}

static void reads_filter_pushes(void **state)
{
    (void)state;
    for_each("filter_push", check_push);
}

static void reads_transferred_messages(void **state)
{
    (void)state;
    for_each("transfer", check_transfer);
}

static void reads_filter_answers(void **state)
{
    (void)state;
    for_each("filter_answer", check_filter_answer);
}

static void reads_store_answers(void **state)
{
    (void)state;
    for_each("store_answer", check_store_answer);
}

static void reads_lightpush_answers(void **state)
{
    (void)state;
    for_each("lightpush_answer", check_lightpush_answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(reads_filter_pushes),
            cmocka_unit_test(reads_transferred_messages),
            cmocka_unit_test(reads_filter_answers),
            cmocka_unit_test(reads_store_answers),
            cmocka_unit_test(reads_lightpush_answers),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
