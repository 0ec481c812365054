/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "hash/message_hash.h"
#include "hash/message_id.h"

/* The vectors come from the reference, js-waku's own library and the specification. */

enum {
    LARGE_PAYLOAD = 150000
};

static uint8_t large_payload[LARGE_PAYLOAD];

static uint8_t *from_hex(const char *hex, size_t *length)
{
    *length = strlen(hex) / 2;
    uint8_t *bytes = malloc(*length + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < *length; i++) {
        unsigned value;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &value), 1);
        bytes[i] = (uint8_t)value;
    }
    return bytes;
}

static const char *text_of(const json_t *vector, const char *name)
{
    return json_string_value(json_object_get(vector, name));
}

static void assert_hex(const uint8_t digest[SHA256_BYTES], const char *hex)
{
    char text[2 * SHA256_BYTES + 1];
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    }
    assert_string_equal(text, hex);
}

static uint8_t *bytes_of(const json_t *vector, const char *name, struct span *span)
{
    const char *hex = text_of(vector, name);
    uint8_t *bytes = hex == NULL ? NULL : from_hex(hex, &span->length);
    span->bytes = bytes;
    return bytes;
}

static void assert_vector(const json_t *vector)
{
    const char *timestamp = text_of(vector, "timestamp");
    struct message_hash_input input = {
            .pubsub_topic = span_of_text(text_of(vector, "pubsubTopic")),
            .content_topic = span_of_text(text_of(vector, "contentTopic")),
            .timestamp_ns = timestamp == NULL ? 0 : strtoll(timestamp, NULL, 10),
    };
    struct span wire = {.length = 0};
    uint8_t *payload = bytes_of(vector, "payloadHex", &input.payload);
    uint8_t *meta = bytes_of(vector, "metaHex", &input.meta);
    uint8_t *wire_bytes = bytes_of(vector, "wire", &wire);
    if (payload == NULL) {
        assert_non_null(text_of(vector, "payloadRule"));
        input.payload = span_of(large_payload, LARGE_PAYLOAD);
    }
    const char *here = text_of(vector, "expectedHere");
    const char *right = here != NULL ? here : text_of(vector, "messageHash");
    uint8_t hash[SHA256_BYTES];
    uint8_t id[SHA256_BYTES];
    message_hash(hash, &input);
    assert_hex(hash, right);
    message_hash_and_id(hash, id, &input, wire);
    assert_hex(hash, right);
    if (wire_bytes != NULL) {
        assert_hex(id, text_of(vector, "gossipsubMessageId"));
        message_id(id, wire);
        assert_hex(id, text_of(vector, "gossipsubMessageId"));
    }
    free(payload);
    free(meta);
    free(wire_bytes);
}

static void equals_the_vectors_of_other_implementations(void **state)
{
    (void)state;
    for (size_t i = 0; i < LARGE_PAYLOAD; i++) {
        large_payload[i] = (uint8_t)(i * 31 + (i >> 8));
    }
    json_error_t error;
    json_t *vectors = json_load_file("tests/vectors/message_hash.json", 0, &error);
    assert_non_null(vectors);
    assert_true(json_array_size(vectors) >= 16);
    size_t index;
    json_t *vector;
    json_array_foreach(vectors, index, vector)
    {
        assert_vector(vector);
    }
    json_decref(vectors);
}

static void counts_each_hash_and_the_bytes_it_covers(void **state)
{
    (void)state;
    struct metrics *metrics = NULL;
    assert_int_equal(metrics_create(&metrics), STATUS_OK);
    assert_int_equal(metrics_attach_thread(metrics), STATUS_OK);
    struct message_hash_input input = {
            .pubsub_topic = span_of("123", 3),
            .payload = span_of("12345", 5),
            .content_topic = span_of("1234567", 7),
            .meta = span_of("12", 2),
    };
    uint8_t hash[SHA256_BYTES];
    uint8_t id[SHA256_BYTES];
    message_hash(hash, &input);
    message_id(id, span_of("1234567890", 10));
    message_hash_and_id(hash, id, &input, span_of("1234567890", 10));
    assert_int_equal(metrics_sum(metrics, METRIC_MESSAGE_HASHES), 2);
    assert_int_equal(metrics_sum(metrics, METRIC_HASHED_BYTES), 2 * (3 + 5 + 7 + 2 + 8));
    assert_int_equal(metrics_sum(metrics, METRIC_ID_HASHES), 2);
    assert_int_equal(metrics_sum(metrics, METRIC_ID_HASHED_BYTES), 20);
    metrics_detach_thread();
    metrics_destroy(&metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(equals_the_vectors_of_other_implementations),
            cmocka_unit_test(counts_each_hash_and_the_bytes_it_covers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
