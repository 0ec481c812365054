/* SPDX-License-Identifier: MIT */
#include "router/intake.h"

#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "router/lane.h"
#include "tests/support/cmocka.h"

/* RFC 14's vector: tests/vectors/message_hash.json, "A". */
static const struct topic topic = {
        .index = 7, .name = {(const uint8_t *)"/waku/2/default-waku/proto", 26}};
static const uint8_t payload[] = {1, 2, 3, 4, 84, 69, 83, 84, 5, 6, 7, 8};
static const char wire_hash[] = "64cce733fed134e83da02b02c6f689814872b1a0ac97ea56b76095c3c72bfe05";
static const char wire_id[] = "ce571a2092b1c046d6ed3c476b55d64db1d93bc76348d343e832399326adbea6";

static struct metrics *metrics;
static struct lane *lane;
static struct intake intake;

static int set_up(void **state)
{
    struct lane_options options = {.max_message_bytes = 1000,
            .recent_limit_bytes = 1 << 20,
            .seen_limit_bytes = 1 << 20,
            .seen_window_ns = 120ULL * NANOSECONDS_PER_SECOND,
            .timestamp_tolerance_ns = 20ULL * NANOSECONDS_PER_SECOND,
            .has_message_ids = true};
    (void)state;
    assert_int_equal(metrics_create(&metrics), STATUS_OK);
    assert_int_equal(metrics_attach_thread(metrics), STATUS_OK);
    assert_int_equal(lane_create(&lane, &options), STATUS_OK);
    intake = (struct intake){.lane_count = 1};
    assert_int_equal(inbox_create(&intake.lanes[0]), STATUS_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    inbox_destroy(&intake.lanes[0]);
    lane_destroy(&lane);
    rcu_drain();
    metrics_detach_thread();
    metrics_destroy(&metrics);
    return 0;
}

static struct waku_message_view usual(void)
{
    return (struct waku_message_view){.payload = span_of(payload, sizeof(payload)),
            .content_topic = span_of_text("/waku/2/default-content/proto"),
            .meta = span_of_text("super-secret"),
            .timestamp_ns = 1681964442000000000,
            .has_payload = true,
            .has_content_topic = true,
            .has_timestamp = true};
}

static struct lane_decision publish(const struct waku_message_view *fields)
{
    struct intake_source source = {.received_ns = 1681964442000000000, .origin = ORIGIN_API};
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, waku_message_size(fields));
    assert_non_null(frame);
    struct local_message message = {.topic = &topic, .fields = fields};
    assert_int_equal(intake_post_fields(&intake, frame, &message, &source), STATUS_OK);
    struct frame_part *part = frame_part_of(inbox_try_pop(intake.lanes[0]));
    assert_non_null(part);
    struct lane_decision decision = lane_take(lane, part);
    frame_part_destroy(part);
    return decision;
}

static void fields_are_named_as_other_implementations_name_the_message(void **state)
{
    struct waku_message_view fields = usual();
    char text[65];
    (void)state;
    struct lane_decision decision = publish(&fields);
    assert_int_equal(decision.verdict, LANE_NEW);
    struct envelope *envelope = decision.envelope;
    hex_encode(text, span_of(envelope->hash, sizeof(envelope->hash)));
    assert_string_equal(text, wire_hash);
    hex_encode(text, span_of(envelope->id, sizeof(envelope->id)));
    assert_string_equal(text, wire_id);
    assert_true(span_equal(envelope->payload, fields.payload));
    assert_true(span_equal(envelope->content_topic, fields.content_topic));
    assert_true(span_equal(envelope->meta, fields.meta));
    assert_true(envelope->payload.bytes > envelope->message.bytes);
    assert_true(envelope->meta.bytes > envelope->message.bytes);
    assert_true(envelope->meta.bytes < envelope->message.bytes + envelope->message.length);
    assert_true(envelope->is_timestamp_in_range);
    envelope_unref(envelope);
}

static void nothing_is_decoded_for_fields_and_each_hash_is_computed_once(void **state)
{
    struct waku_message_view fields = usual();
    (void)state;
    struct lane_decision decision = publish(&fields);
    assert_int_equal(decision.verdict, LANE_NEW);
    envelope_unref(decision.envelope);
    assert_int_equal(metrics_sum(metrics, METRIC_DECODES), 0);
    assert_int_equal(metrics_sum(metrics, METRIC_MESSAGE_HASHES), 1);
    assert_int_equal(metrics_sum(metrics, METRIC_ID_HASHES), 1);
    assert_int_equal(metrics_sum(metrics, METRIC_COPIES), 1); /* the encoder's */
}

static void fields_are_checked_as_a_received_message_is(void **state)
{
    struct waku_message_view fields = usual();
    char meta[65];
    (void)state;
    memset(meta, 'm', sizeof(meta));
    fields.meta = span_of((const uint8_t *)meta, sizeof(meta));
    assert_int_equal(publish(&fields).reason, LEDGER_INTAKE_META_TOO_LONG);
    fields = usual();
    fields.has_content_topic = false;
    fields.content_topic = span_of(NULL, 0);
    assert_int_equal(publish(&fields).reason, LEDGER_INTAKE_CONTENT_TOPIC_MISSING);
    assert_int_equal(metrics_sum(metrics, METRIC_DECODES), 0);
}

static void the_same_fields_again_are_a_copy(void **state)
{
    struct waku_message_view fields = usual();
    (void)state;
    envelope_unref(publish(&fields).envelope);
    assert_int_equal(publish(&fields).verdict, LANE_DUPLICATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(
                    fields_are_named_as_other_implementations_name_the_message, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    nothing_is_decoded_for_fields_and_each_hash_is_computed_once, set_up,
                    tear_down),
            cmocka_unit_test_setup_teardown(
                    fields_are_checked_as_a_received_message_is, set_up, tear_down),
            cmocka_unit_test_setup_teardown(the_same_fields_again_are_a_copy, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
