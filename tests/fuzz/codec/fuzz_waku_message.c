/* SPDX-License-Identifier: MIT */

/*
 * The WakuMessage decoder against protobuf-c: the same bytes are taken and refused, with the same
 * fields. tests/support/protobuf_oracle.h says where the two differ; here this is checked exactly.
 */

#include "codec/waku_message.h"

#include <string.h>

#include "codec/waku_message.pb-c.h"
#include "tests/support/protobuf_oracle.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool equals(struct span span, protobuf_c_boolean is_present, ProtobufCBinaryData expected)
{
    return is_present ? span_equal(span, span_of(expected.data, expected.len)) : span.length == 0;
}

/* protobuf-c ends strings with a NUL and does not tell their length. */
static bool equals_text(struct span span, const char *expected)
{
    return expected != NULL &&
           (span.length == 0 || memcmp(span.bytes, expected, span.length) == 0) &&
           expected[span.length] == '\0';
}

static void compare(const struct waku_message_view *view, const Wire__WakuMessage *expected)
{
    REQUIRE(view->has_payload == (expected->has_payload != 0));
    REQUIRE(equals(view->payload, expected->has_payload, expected->payload));
    REQUIRE(view->has_content_topic == (expected->content_topic != NULL));
    REQUIRE(!view->has_content_topic || equals_text(view->content_topic, expected->content_topic));
    REQUIRE(equals(view->meta, expected->has_meta, expected->meta));
    REQUIRE(equals(
            view->rate_limit_proof, expected->has_rate_limit_proof, expected->rate_limit_proof));
    REQUIRE(view->version == (expected->has_version ? expected->version : 0));
    REQUIRE(view->has_timestamp == (expected->has_timestamp != 0));
    REQUIRE(view->timestamp_ns == (expected->has_timestamp ? expected->timestamp : 0));
    REQUIRE(view->ephemeral == (expected->has_ephemeral && expected->ephemeral));
}

static bool is_inside(struct span span, struct span whole)
{
    return span.length == 0 ||
           (span.bytes >= whole.bytes && span.bytes + span.length <= whole.bytes + whole.length);
}

/* What is encoded from a view decodes to the same view. */
static void check_round_trip(const struct waku_message_view *view)
{
    struct waku_message_view again;
    size_t length = waku_message_size(view);
    uint8_t *bytes = malloc(length + 1);
    REQUIRE(bytes != NULL);
    REQUIRE(length == 0 || waku_message_encode(bytes, length - 1, view) == 0);
    REQUIRE(waku_message_encode(bytes, length, view) == length);
    REQUIRE(waku_message_decode(&again, span_of(bytes, length)) == STATUS_OK);
    REQUIRE(again.has_payload == view->has_payload);
    REQUIRE(again.has_content_topic == view->has_content_topic);
    REQUIRE(again.has_timestamp == view->has_timestamp);
    REQUIRE(again.timestamp_ns == view->timestamp_ns);
    REQUIRE(again.version == view->version && again.ephemeral == view->ephemeral);
    REQUIRE(span_equal(again.payload, view->payload));
    REQUIRE(span_equal(again.content_topic, view->content_topic));
    REQUIRE(span_equal(again.meta, view->meta));
    REQUIRE(span_equal(again.rate_limit_proof, view->rate_limit_proof));
    REQUIRE(again.unknown_field_count == 0);
    enum status verdict = waku_message_check(view, &waku_message_limits_default);
    REQUIRE(waku_message_check(&again, &waku_message_limits_default) == verdict);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct waku_message_view view;
    uint8_t *cleaned = NULL;
    size_t length = 0;
    size_t dropped = 0;
    struct span bytes = span_of(data, size);
    enum status status = waku_message_decode(&view, bytes);
    enum oracle_verdict verdict =
            oracle_clean(&wire__waku_message__descriptor, bytes, &cleaned, &length, &dropped);
    REQUIRE((status == STATUS_OK) == (verdict == ORACLE_GOOD));
    if (verdict == ORACLE_GOOD) {
        Wire__WakuMessage *expected = wire__waku_message__unpack(NULL, length, cleaned);
        REQUIRE(expected != NULL);
        compare(&view, expected);
        REQUIRE(view.unknown_field_count == expected->base.n_unknown_fields + dropped);
        REQUIRE(is_inside(view.payload, bytes) && is_inside(view.content_topic, bytes));
        REQUIRE(is_inside(view.meta, bytes) && is_inside(view.rate_limit_proof, bytes));
        check_round_trip(&view);
        wire__waku_message__free_unpacked(expected, NULL);
    }
    free(cleaned);
    return 0;
}
