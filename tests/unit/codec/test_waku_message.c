/* SPDX-License-Identifier: MIT */
#include "codec/waku_message.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/metrics.h"
#include "codec/waku_message.pb-c.h"
#include "tests/support/hex.h"

#define VECTORS "tests/vectors/message_hash.json"

/* A serialised message, its view, and the bytes it points into. */
struct decoded {
    struct span bytes;
    struct waku_message_view view;
    enum status status;
};

static struct decoded decode_hex(const char *hex)
{
    struct decoded decoded = {.bytes = hex_decode(hex)};
    decoded.status = waku_message_decode(&decoded.view, decoded.bytes);
    return decoded;
}

static enum status status_of_hex(const char *hex)
{
    struct decoded decoded = decode_hex(hex);
    hex_free(decoded.bytes);
    return decoded.status;
}

static enum status check_hex(const char *hex)
{
    struct decoded decoded = decode_hex(hex);
    assert_int_equal(decoded.status, STATUS_OK);
    enum status status = waku_message_check(&decoded.view, &waku_message_limits_default);
    hex_free(decoded.bytes);
    return status;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static void assert_view_is(const struct waku_message_view *view, const json_t *vector)
{
    char timestamp[32];
    struct span payload = hex_decode(text_of(vector, "payloadHex"));
    struct span meta = hex_decode(text_of(vector, "metaHex"));
    snprintf(timestamp, sizeof(timestamp), "%" PRId64, view->timestamp_ns);
    assert_true(span_equal(view->payload, payload));
    assert_true(span_equal(view->content_topic, span_of_text(text_of(vector, "contentTopic"))));
    assert_true(span_equal(view->meta, meta));
    if (json_is_string(json_object_get(vector, "timestamp"))) {
        assert_string_equal(timestamp, text_of(vector, "timestamp"));
        assert_true(view->has_timestamp);
    } else {
        assert_false(view->has_timestamp);
        assert_true(view->timestamp_ns == 0);
    }
    hex_free(payload);
    hex_free(meta);
}

/* One vector writes an empty meta, which this encoder leaves out. */
static void assert_encodes_to(const struct waku_message_view *view, struct span wire)
{
    uint8_t out[512];
    bool has_empty_meta = wire.length >= 2 && memcmp(wire.bytes + wire.length - 2, "\x5a", 2) == 0;
    struct span expected = span_of(wire.bytes, wire.length - (has_empty_meta ? 2 : 0));
    assert_int_equal(waku_message_size(view), expected.length);
    assert_int_equal(waku_message_encode(out, expected.length - 1, view), 0);
    assert_int_equal(waku_message_encode(out, sizeof(out), view), expected.length);
    assert_memory_equal(out, expected.bytes, expected.length);
}

static void decodes_and_encodes_the_messages_of_foreign_encoders(void **state)
{
    (void)state;
    json_error_t error;
    json_t *vectors = json_load_file(VECTORS, 0, &error);
    assert_non_null(vectors);
    size_t seen = 0;
    size_t index;
    json_t *vector;
    json_array_foreach(vectors, index, vector)
    {
        if (json_is_string(json_object_get(vector, "wire"))) {
            struct decoded decoded = decode_hex(text_of(vector, "wire"));
            assert_int_equal(decoded.status, STATUS_OK);
            assert_view_is(&decoded.view, vector);
            assert_encodes_to(&decoded.view, decoded.bytes);
            hex_free(decoded.bytes);
            seen++;
        }
    }
    json_decref(vectors);
    assert_int_equal(seen, 7);
}

static void views_lie_inside_the_received_bytes(void **state)
{
    (void)state;
    struct decoded decoded = decode_hex("0a03010203 120161 5a02aabb aa0101cc");
    assert_int_equal(decoded.status, STATUS_OK);
    assert_ptr_equal(decoded.view.payload.bytes, decoded.bytes.bytes + 2);
    assert_ptr_equal(decoded.view.content_topic.bytes, decoded.bytes.bytes + 7);
    assert_ptr_equal(decoded.view.meta.bytes, decoded.bytes.bytes + 10);
    assert_ptr_equal(decoded.view.rate_limit_proof.bytes, decoded.bytes.bytes + 15);
    hex_free(decoded.bytes);
}

static void absent_fields_have_their_defaults(void **state)
{
    (void)state;
    struct decoded decoded = decode_hex("");
    assert_int_equal(decoded.status, STATUS_OK);
    assert_false(decoded.view.has_payload);
    assert_false(decoded.view.has_content_topic);
    assert_false(decoded.view.has_timestamp);
    assert_false(decoded.view.ephemeral);
    assert_int_equal(decoded.view.version, 0);
    assert_true(decoded.view.timestamp_ns == 0);
    hex_free(decoded.bytes);
}

static void the_last_of_a_repeated_field_wins(void **state)
{
    (void)state;
    struct decoded decoded =
            decode_hex("0a0101 0a020304 120161 120162 1801 1802 5002 5004 f80101 f80100");
    assert_int_equal(decoded.status, STATUS_OK);
    assert_int_equal(decoded.view.payload.length, 2);
    assert_true(span_equal(decoded.view.content_topic, span_of_text("b")));
    assert_int_equal(decoded.view.version, 2);
    assert_true(decoded.view.timestamp_ns == 2);
    assert_false(decoded.view.ephemeral);
    assert_int_equal(decoded.view.unknown_field_count, 0);
    hex_free(decoded.bytes);
}

static void skips_and_counts_unknown_fields_and_known_ones_of_another_wire_type(void **state)
{
    (void)state;
    struct decoded decoded = decode_hex("a00601 b2060168 0805 0d00000000 0a0101 120161");
    assert_int_equal(decoded.status, STATUS_OK);
    assert_int_equal(decoded.view.unknown_field_count, 4);
    assert_int_equal(decoded.view.payload.length, 1);
    hex_free(decoded.bytes);
}

static void a_version_wider_than_32_bits_loses_its_upper_bits(void **state)
{
    (void)state;
    struct decoded decoded = decode_hex("188780808010");
    assert_int_equal(decoded.status, STATUS_OK);
    assert_int_equal(decoded.view.version, 7);
    hex_free(decoded.bytes);
}

static void timestamps_reach_both_ends_of_their_range(void **state)
{
    (void)state;
    struct decoded lowest = decode_hex("50ffffffffffffffffff01");
    struct decoded highest = decode_hex("50feffffffffffffffff01");
    assert_true(lowest.view.timestamp_ns == INT64_MIN);
    assert_true(highest.view.timestamp_ns == INT64_MAX);
    hex_free(lowest.bytes);
    hex_free(highest.bytes);
}

static void refuses_malformed_messages(void **state)
{
    (void)state;
    assert_int_equal(status_of_hex("0a05010203"), STATUS_TRUNCATED);
    assert_int_equal(status_of_hex("0a0101 12"), STATUS_TRUNCATED);
    assert_int_equal(status_of_hex("0a0101 50ffff"), STATUS_TRUNCATED);
    assert_int_equal(status_of_hex("0affffffff07"), STATUS_TRUNCATED);
    assert_int_equal(status_of_hex("0a8080808008"), STATUS_TRUNCATED);
    assert_int_equal(status_of_hex("0a80808080808080808001"), STATUS_BAD_VARINT);
    assert_int_equal(status_of_hex("50ffffffffffffffffff02"), STATUS_BAD_VARINT);
    assert_int_equal(status_of_hex("0b 0c"), STATUS_BAD_FIELD);
}

static void wants_a_payload_which_may_be_empty(void **state)
{
    (void)state;
    assert_int_equal(check_hex("120161"), STATUS_PAYLOAD_MISSING);
    assert_int_equal(check_hex("0a00 120161"), STATUS_OK);
}

static void wants_a_content_topic_that_is_not_empty_and_utf8(void **state)
{
    (void)state;
    assert_int_equal(check_hex("0a0101"), STATUS_CONTENT_TOPIC_MISSING);
    assert_int_equal(check_hex("0a0101 1200"), STATUS_CONTENT_TOPIC_MISSING);
    assert_int_equal(check_hex("0a0101 120161"), STATUS_OK);
    assert_int_equal(check_hex("0a0101 1201ff"), STATUS_BAD_TOPIC);
    assert_int_equal(check_hex("0a0101 1203e697a5"), STATUS_OK);
}

static void takes_a_very_long_content_topic(void **state)
{
    (void)state;
    static uint8_t topic[100000];
    memset(topic, 'x', sizeof(topic));
    struct waku_message_view view = {.has_payload = true,
            .has_content_topic = true,
            .content_topic = span_of(topic, sizeof(topic))};
    assert_int_equal(waku_message_check(&view, &waku_message_limits_default), STATUS_OK);
}

static void wants_a_meta_of_at_most_64_bytes(void **state)
{
    (void)state;
    uint8_t meta[65] = {0};
    struct waku_message_view view = {.has_payload = true,
            .has_content_topic = true,
            .content_topic = span_of_text("/a/1/b/proto")};
    const size_t lengths[] = {0, 64, 65};
    const enum status expected[] = {STATUS_OK, STATUS_OK, STATUS_META_TOO_LONG};
    for (size_t i = 0; i < 3; i++) {
        view.meta = span_of(meta, lengths[i]);
        assert_int_equal(waku_message_check(&view, &waku_message_limits_default), expected[i]);
    }
}

static void counts_decodes_and_their_bytes(void **state)
{
    (void)state;
    uint64_t decodes = metrics_sum(NULL, METRIC_DECODES);
    uint64_t bytes = metrics_sum(NULL, METRIC_DECODED_BYTES);
    uint64_t copies = metrics_sum(NULL, METRIC_COPIES);
    assert_int_equal(status_of_hex("0a0101 120161"), STATUS_OK);
    assert_int_equal(status_of_hex("0a"), STATUS_TRUNCATED);
    assert_int_equal(metrics_sum(NULL, METRIC_DECODES) - decodes, 2);
    assert_int_equal(metrics_sum(NULL, METRIC_DECODED_BYTES) - bytes, 7);
    assert_int_equal(metrics_sum(NULL, METRIC_COPIES), copies);
}

static void what_it_encodes_another_implementation_reads(void **state)
{
    (void)state;
    uint8_t out[256];
    struct waku_message_view view = {.payload = span_of("pay", 3),
            .has_payload = true,
            .content_topic = span_of_text("/a/1/b/proto"),
            .has_content_topic = true,
            .version = UINT32_MAX,
            .timestamp_ns = INT64_MIN,
            .has_timestamp = true,
            .meta = span_of("m", 1),
            .rate_limit_proof = span_of("proof", 5),
            .ephemeral = true};
    size_t length = waku_message_encode(out, sizeof(out), &view);
    assert_int_equal(length, waku_message_size(&view));
    Wire__WakuMessage *message = wire__waku_message__unpack(NULL, length, out);
    assert_non_null(message);
    assert_true(span_equal(view.payload, span_of(message->payload.data, message->payload.len)));
    assert_string_equal(message->content_topic, "/a/1/b/proto");
    assert_true(message->version == UINT32_MAX);
    assert_true(message->timestamp == INT64_MIN);
    assert_true(span_equal(view.meta, span_of(message->meta.data, message->meta.len)));
    assert_int_equal(message->rate_limit_proof.len, 5);
    assert_true(message->ephemeral);
    wire__waku_message__free_unpacked(message, NULL);
}

static void writes_an_empty_payload_since_decoders_want_the_field(void **state)
{
    (void)state;
    uint8_t out[8];
    struct waku_message_view view = {.has_payload = true};
    assert_int_equal(waku_message_encode(out, sizeof(out), &view), 2);
    assert_memory_equal(out, "\x0a\x00", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(decodes_and_encodes_the_messages_of_foreign_encoders),
            cmocka_unit_test(views_lie_inside_the_received_bytes),
            cmocka_unit_test(absent_fields_have_their_defaults),
            cmocka_unit_test(the_last_of_a_repeated_field_wins),
            cmocka_unit_test(skips_and_counts_unknown_fields_and_known_ones_of_another_wire_type),
            cmocka_unit_test(a_version_wider_than_32_bits_loses_its_upper_bits),
            cmocka_unit_test(timestamps_reach_both_ends_of_their_range),
            cmocka_unit_test(refuses_malformed_messages),
            cmocka_unit_test(wants_a_payload_which_may_be_empty),
            cmocka_unit_test(wants_a_content_topic_that_is_not_empty_and_utf8),
            cmocka_unit_test(takes_a_very_long_content_topic),
            cmocka_unit_test(wants_a_meta_of_at_most_64_bytes),
            cmocka_unit_test(counts_decodes_and_their_bytes),
            cmocka_unit_test(what_it_encodes_another_implementation_reads),
            cmocka_unit_test(writes_an_empty_payload_since_decoders_want_the_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
