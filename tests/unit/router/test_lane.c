/* SPDX-License-Identifier: MIT */
#include "router/lane.h"

#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "hash/message_id.h"
#include "tests/support/cmocka.h"
#include "tests/support/parts.h"

static const struct topic topic_a = {.index = 0, .name = {(const uint8_t *)"/waku/2/rs/16/0", 15}};
static const struct topic topic_b = {.index = 1, .name = {(const uint8_t *)"/waku/2/rs/16/1", 15}};
static const struct test_message plain = {
        .payload = "hello", .content_topic = "/a/1/b/proto", .timestamp_ns = TEST_RECEIVED_NS};

static struct metrics *metrics;
static struct lane *lane;

static struct lane_options usual(void)
{
    return (struct lane_options){.max_message_bytes = 153600,
            .recent_limit_bytes = 1 << 20,
            .seen_limit_bytes = 1 << 20,
            .seen_window_ns = 120ULL * NANOSECONDS_PER_SECOND,
            .timestamp_tolerance_ns = 20ULL * NANOSECONDS_PER_SECOND,
            .has_message_ids = true};
}

static void make_lane(const struct lane_options *options)
{
    assert_int_equal(metrics_create(&metrics), STATUS_OK);
    assert_int_equal(metrics_attach_thread(metrics), STATUS_OK);
    assert_int_equal(lane_create(&lane, options), STATUS_OK);
}

static int set_up(void **state)
{
    struct lane_options options = usual();
    (void)state;
    make_lane(&options);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    lane_destroy(&lane);
    rcu_drain();
    metrics_detach_thread();
    metrics_destroy(&metrics);
    return 0;
}

static uint64_t counted(enum metric metric)
{
    return metrics_sum(metrics, metric);
}

/* Takes and drops the part; what is new is given back in *envelope or dropped too. */
static enum metric outcome(struct frame_part *part, struct envelope **envelope)
{
    struct lane_decision decision = lane_take(lane, part);
    frame_part_destroy(part);
    assert_int_equal(decision.verdict == LANE_NEW, decision.envelope != NULL);
    if (envelope != NULL) {
        *envelope = decision.envelope;
    } else if (decision.envelope != NULL) {
        envelope_unref(decision.envelope);
    }
    return decision.reason;
}

static enum metric outcome_of(const struct test_message *message)
{
    return outcome(test_part(&topic_a, message), NULL);
}

/* RFC 14's vector: tests/vectors/message_hash.json, "A". */
static void names_a_message_as_other_implementations_do(void **state)
{
    static const char wire[] =
            "0a0c010203045445535405060708121d2f77616b752f322f64656661756c742d636f"
            "6e74656e742f70726f746f508090fca3f4efc4d72e5a0c73757065722d7365637265"
            "74";
    static const struct topic topic = {
            .index = 7, .name = {(const uint8_t *)"/waku/2/default-waku/proto", 26}};
    uint8_t bytes[(sizeof(wire) - 1) / 2];
    char text[65];
    struct envelope *envelope;
    (void)state;
    assert_int_equal(hex_decode(bytes, sizeof(bytes), wire), STATUS_OK);
    enum metric reason =
            outcome(test_part_of_bytes(&topic, span_of(bytes, sizeof(bytes))), &envelope);
    assert_int_equal(reason, LEDGER_INTAKE_DELIVERED);
    hex_encode(text, span_of(envelope->hash, sizeof(envelope->hash)));
    assert_string_equal(text, "64cce733fed134e83da02b02c6f689814872b1a0ac97ea56b76095c3c72bfe05");
    hex_encode(text, span_of(envelope->id, sizeof(envelope->id)));
    assert_string_equal(text, "ce571a2092b1c046d6ed3c476b55d64db1d93bc76348d343e832399326adbea6");
    assert_int_equal(envelope->timestamp_ns, 1681964442000000000);
    assert_false(envelope->is_timestamp_in_range);
    assert_int_equal(envelope->payload.length, 12);
    assert_ptr_equal(envelope->message.bytes, frame_bytes(envelope->frame));
    envelope_unref(envelope);
}

static void decodes_and_hashes_a_new_message_once_and_copies_nothing(void **state)
{
    (void)state;
    assert_int_equal(outcome_of(&plain), LEDGER_INTAKE_DELIVERED);
    uint64_t copies_of_the_test = 1; /* test_part encodes the message */
    assert_int_equal(counted(METRIC_DECODES), 1);
    assert_int_equal(counted(METRIC_MESSAGE_HASHES), 1);
    assert_int_equal(counted(METRIC_ID_HASHES), 1);
    assert_int_equal(counted(METRIC_COPIES), copies_of_the_test);
}

static void recognises_a_held_copy_without_any_hash(void **state)
{
    (void)state;
    assert_int_equal(outcome_of(&plain), LEDGER_INTAKE_DELIVERED);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(outcome_of(&plain), LEDGER_INTAKE_DUPLICATE);
    }
    assert_int_equal(counted(METRIC_DECODES), 1);
    assert_int_equal(counted(METRIC_ID_HASHES), 1);
    assert_int_equal(counted(METRIC_MESSAGE_HASHES), 1);
}

static void recognises_a_copy_that_is_no_longer_held_by_one_id_pass(void **state)
{
    struct lane_options options = usual();
    (void)state;
    lane_destroy(&lane);
    options.recent_limit_bytes = 0;
    assert_int_equal(lane_create(&lane, &options), STATUS_OK);
    assert_int_equal(outcome_of(&plain), LEDGER_INTAKE_DELIVERED);
    assert_int_equal(outcome_of(&plain), LEDGER_INTAKE_DUPLICATE);
    assert_int_equal(counted(METRIC_DECODES), 1);
    assert_int_equal(counted(METRIC_MESSAGE_HASHES), 1);
    assert_int_equal(counted(METRIC_ID_HASHES), 2);
}

static void takes_the_same_bytes_on_two_topics_as_two_messages(void **state)
{
    struct envelope *a;
    struct envelope *b;
    (void)state;
    assert_int_equal(outcome(test_part(&topic_a, &plain), &a), LEDGER_INTAKE_DELIVERED);
    assert_int_equal(outcome(test_part(&topic_b, &plain), &b), LEDGER_INTAKE_DELIVERED);
    assert_memory_equal(a->id, b->id, sizeof(a->id));
    assert_memory_not_equal(a->hash, b->hash, sizeof(a->hash));
    envelope_unref(a);
    envelope_unref(b);
}

static struct lane_options without_held_copies(void)
{
    struct lane_options options = usual();
    options.recent_limit_bytes = 0;
    return options;
}

static void lets_a_message_through_again_after_the_window(void **state)
{
    struct lane_options options = without_held_copies();
    (void)state;
    lane_destroy(&lane);
    assert_int_equal(lane_create(&lane, &options), STATUS_OK);
    uint64_t start = (uint64_t)TEST_RECEIVED_NS;
    assert_int_equal(outcome_of(&plain), LEDGER_INTAKE_DELIVERED);
    lane_expire(lane, start + options.seen_window_ns - NANOSECONDS_PER_SECOND);
    assert_int_equal(lane_seen_count(lane), 1);
    lane_expire(lane, start + options.seen_window_ns + NANOSECONDS_PER_SECOND);
    assert_int_equal(lane_seen_count(lane), 0);
    assert_int_equal(outcome_of(&plain), LEDGER_INTAKE_DELIVERED);
}

static void keeps_a_message_that_is_repeated_for_another_window(void **state)
{
    struct lane_options options = without_held_copies();
    (void)state;
    lane_destroy(&lane);
    assert_int_equal(lane_create(&lane, &options), STATUS_OK);
    uint64_t start = (uint64_t)TEST_RECEIVED_NS;
    assert_int_equal(outcome_of(&plain), LEDGER_INTAKE_DELIVERED);
    assert_int_equal(outcome_of(&plain), LEDGER_INTAKE_DUPLICATE);
    lane_expire(lane, start + options.seen_window_ns + NANOSECONDS_PER_SECOND);
    assert_int_equal(outcome_of(&plain), LEDGER_INTAKE_DUPLICATE);
}

static void refuses_with_the_reason_and_without_a_second_decode(void **state)
{
    char long_meta[66];
    struct test_message without_payload = {.content_topic = "/a/1/b/proto"};
    struct test_message without_topic = {.payload = "x", .content_topic = ""};
    struct test_message meta_65 = plain;
    struct test_message meta_64 = plain;
    (void)state;
    memset(long_meta, 'm', sizeof(long_meta));
    long_meta[65] = '\0';
    meta_65.meta = long_meta;
    meta_64.meta = long_meta + 1;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(outcome_of(&without_payload), LEDGER_INTAKE_PAYLOAD_MISSING);
        assert_int_equal(outcome_of(&without_topic), LEDGER_INTAKE_CONTENT_TOPIC_MISSING);
        assert_int_equal(outcome_of(&meta_65), LEDGER_INTAKE_META_TOO_LONG);
        assert_int_equal(outcome(test_part_of_bytes(&topic_a, span_of("\x0a\x7f\x01", 3)), NULL),
                LEDGER_INTAKE_NOT_DECODABLE);
    }
    assert_int_equal(counted(METRIC_DECODES), 4);
    assert_int_equal(lane_seen_count(lane), 0);
    assert_int_equal(outcome_of(&meta_64), LEDGER_INTAKE_DELIVERED);
}

static void refuses_signed_fields_before_it_decodes(void **state)
{
    struct frame_part *part = test_part(&topic_a, &plain);
    (void)state;
    part->has_signed_fields = true;
    assert_int_equal(outcome(part, NULL), LEDGER_INTAKE_SIGNED_FIELDS_PRESENT);
    assert_int_equal(counted(METRIC_DECODES), 0);
    /* The message itself is not tainted by the peer that signed it. */
    assert_int_equal(outcome_of(&plain), LEDGER_INTAKE_DELIVERED);
}

static void holds_the_size_limit_to_the_byte(void **state)
{
    struct lane_options options = usual();
    struct frame_part *part = test_part(&topic_a, &plain);
    (void)state;
    lane_destroy(&lane);
    options.max_message_bytes = part->message.length;
    assert_int_equal(lane_create(&lane, &options), STATUS_OK);
    assert_int_equal(outcome(part, NULL), LEDGER_INTAKE_DELIVERED);
    struct test_message longer = plain;
    longer.payload = "hello!";
    assert_int_equal(outcome_of(&longer), LEDGER_INTAKE_TOO_LARGE);
}

static bool in_range(int64_t timestamp_ns)
{
    struct envelope *envelope;
    struct test_message message = plain;
    message.timestamp_ns = timestamp_ns;
    assert_int_equal(outcome(test_part(&topic_a, &message), &envelope), LEDGER_INTAKE_DELIVERED);
    bool verdict = envelope->is_timestamp_in_range;
    envelope_unref(envelope);
    return verdict;
}

static void takes_the_timestamp_verdict_at_receipt(void **state)
{
    const int64_t limit = 20LL * NANOSECONDS_PER_SECOND;
    (void)state;
    assert_true(in_range(TEST_RECEIVED_NS - limit));
    assert_true(in_range(TEST_RECEIVED_NS + limit));
    assert_false(in_range(TEST_RECEIVED_NS - limit - 1));
    assert_false(in_range(TEST_RECEIVED_NS + limit + 1));
    assert_false(in_range(0));
    assert_false(in_range(INT64_MIN));
    assert_false(in_range(INT64_MAX));
}

static void notes_how_far_ahead_of_ours_the_senders_clock_is(void **state)
{
    struct traffic *traffic = lane_traffic(lane);
    struct test_message message = plain;
    size_t samples = 7;
    (void)state;
    message.timestamp_ns = 0; /* none */
    assert_int_equal(outcome_of(&message), LEDGER_INTAKE_DELIVERED);
    struct frame_part *part = test_part(&topic_a, &plain);
    part->origin = ORIGIN_REST; /* by our own clock */
    assert_int_equal(outcome(part, NULL), LEDGER_INTAKE_DELIVERED);
    assert_int_equal(traffic_median_offset(&traffic, 1, &samples), 0);
    assert_int_equal(samples, 0);
    message.timestamp_ns = TEST_RECEIVED_NS - 5;
    assert_int_equal(outcome_of(&message), LEDGER_INTAKE_DELIVERED);
    assert_int_equal(traffic_median_offset(&traffic, 1, &samples), -5);
    assert_int_equal(samples, 1);
}

static void refuses_the_timestamp_where_the_network_says_so(void **state)
{
    struct lane_options options = usual();
    struct test_message old = plain;
    (void)state;
    lane_destroy(&lane);
    options.refuses_timestamps = true;
    assert_int_equal(lane_create(&lane, &options), STATUS_OK);
    old.timestamp_ns = TEST_RECEIVED_NS - 21LL * NANOSECONDS_PER_SECOND;
    assert_int_equal(outcome_of(&old), LEDGER_INTAKE_TIMESTAMP_OUT_OF_RANGE);
    assert_int_equal(outcome_of(&plain), LEDGER_INTAKE_DELIVERED);
}

static void gives_synced_messages_no_timestamp_verdict_and_keeps_them_out_of_the_seen_set(
        void **state)
{
    struct test_message old = plain;
    struct envelope *envelope;
    (void)state;
    old.timestamp_ns = TEST_RECEIVED_NS - 3600LL * NANOSECONDS_PER_SECOND;
    struct frame_part *part = test_part(&topic_a, &old);
    part->origin = ORIGIN_SYNC;
    assert_int_equal(outcome(part, &envelope), LEDGER_INTAKE_DELIVERED);
    assert_true(envelope->is_timestamp_in_range);
    envelope_unref(envelope);
    assert_int_equal(lane_seen_count(lane), 0);
    assert_int_equal(counted(METRIC_ID_HASHES), 0);
}

/* For some seconds: the archive may have had no room for it the first time. */
static void takes_what_a_transfer_repeats_for_a_copy_without_decode_or_hash(void **state)
{
    (void)state;
    uint64_t seconds[] = {0, 1, 9, 11};
    for (size_t i = 0; i < 4; i++) {
        struct frame_part *part = test_part(&topic_a, &plain);
        struct envelope *envelope = NULL;
        part->origin = ORIGIN_SYNC;
        part->received_monotonic_ns += seconds[i] * NANOSECONDS_PER_SECOND;
        bool is_taken = i == 0 || i == 3;
        assert_int_equal(outcome(part, &envelope),
                is_taken ? LEDGER_INTAKE_DELIVERED : LEDGER_INTAKE_DUPLICATE);
        assert_int_equal(counted(METRIC_MESSAGE_HASHES), i == 3 ? 2 : 1);
        assert_int_equal(counted(METRIC_DECODES), i == 3 ? 2 : 1);
        if (envelope != NULL) {
            envelope_unref(envelope);
        }
    }
    assert_int_equal(counted(METRIC_SYNC_REPEATED), 2);
    /* What is live is none of that. */
    assert_int_equal(outcome_of(&plain), LEDGER_INTAKE_DELIVERED);
}

static void keeps_the_far_future_out_of_archive_and_sync_set_also_by_sync(void **state)
{
    struct test_message future = plain;
    struct envelope *envelope;
    (void)state;
    future.timestamp_ns = TEST_RECEIVED_NS + 3600LL * NANOSECONDS_PER_SECOND;
    struct frame_part *part = test_part(&topic_a, &future);
    part->origin = ORIGIN_SYNC;
    assert_int_equal(outcome(part, &envelope), LEDGER_INTAKE_DELIVERED);
    assert_false(envelope->is_timestamp_in_range);
    envelope_unref(envelope);
}

static enum metric outcome_after(const struct test_message *message, uint64_t seconds)
{
    struct frame_part *part = test_part(&topic_a, message);
    struct envelope *envelope = NULL;
    part->received_monotonic_ns += seconds * NANOSECONDS_PER_SECOND;
    (void)lane_expire(lane, part->received_monotonic_ns);
    enum metric reason = outcome(part, &envelope);
    if (envelope != NULL) {
        envelope_unref(envelope);
    }
    return reason;
}

static void accepts_a_held_message_again_once_it_has_left_the_window(void **state)
{
    (void)state;
    assert_int_equal(outcome_after(&plain, 0), LEDGER_INTAKE_DELIVERED);
    assert_int_equal(outcome_after(&plain, 119), LEDGER_INTAKE_DUPLICATE);
    assert_int_equal(outcome_after(&plain, 121), LEDGER_INTAKE_DUPLICATE); /* renewed */
    assert_int_equal(outcome_after(&plain, 600), LEDGER_INTAKE_DELIVERED);
    assert_int_equal(outcome_after(&plain, 601), LEDGER_INTAKE_DUPLICATE);
}

static void takes_by_sync_what_relay_refused_for_its_time(void **state)
{
    struct lane_options options = usual();
    struct test_message old = plain;
    struct envelope *envelope;
    (void)state;
    lane_destroy(&lane);
    options.refuses_timestamps = true;
    assert_int_equal(lane_create(&lane, &options), STATUS_OK);
    old.timestamp_ns = TEST_RECEIVED_NS - 3600LL * NANOSECONDS_PER_SECOND;
    assert_int_equal(outcome_of(&old), LEDGER_INTAKE_TIMESTAMP_OUT_OF_RANGE);
    struct frame_part *part = test_part(&topic_a, &old);
    part->origin = ORIGIN_SYNC;
    assert_int_equal(outcome(part, &envelope), LEDGER_INTAKE_DELIVERED);
    envelope_unref(envelope);
    assert_int_equal(outcome_of(&old), LEDGER_INTAKE_TIMESTAMP_OUT_OF_RANGE);
}

/* As a signature with a time in it would be judged. */
static bool accepts_signed(
        void *context, const struct frame_part *part, const struct waku_message_view *view)
{
    (void)context;
    bool is_of_now = part->origin == ORIGIN_SYNC || view->timestamp_ns == TEST_RECEIVED_NS;
    return is_of_now && view->meta.length > 0;
}

static enum metric outcome_by_sync(const struct test_message *message)
{
    struct frame_part *part = test_part(&topic_a, message);
    part->origin = ORIGIN_SYNC;
    return outcome(part, NULL);
}

static void what_may_not_be_on_a_topic_comes_by_no_way(void **state)
{
    struct lane_options options = usual();
    struct test_message unsigned_one = plain;
    struct test_message old = plain;
    (void)state;
    lane_destroy(&lane);
    options.accepts = accepts_signed;
    assert_int_equal(lane_create(&lane, &options), STATUS_OK);
    unsigned_one.timestamp_ns = TEST_RECEIVED_NS;
    assert_int_equal(outcome_of(&unsigned_one), LEDGER_INTAKE_NOT_SIGNED);
    assert_int_equal(outcome_by_sync(&unsigned_one), LEDGER_INTAKE_NOT_SIGNED);
    old.meta = "signed";
    old.timestamp_ns = TEST_RECEIVED_NS - NANOSECONDS_PER_SECOND;
    assert_int_equal(outcome_of(&old), LEDGER_INTAKE_NOT_SIGNED);
    assert_int_equal(outcome_by_sync(&old), LEDGER_INTAKE_DELIVERED);
    assert_int_equal(outcome_of(&old), LEDGER_INTAKE_NOT_SIGNED);
}

static void goes_by_message_hash_where_nobody_relays(void **state)
{
    struct lane_options options = usual();
    (void)state;
    lane_destroy(&lane);
    options.has_message_ids = false;
    options.recent_limit_bytes = 0;
    assert_int_equal(lane_create(&lane, &options), STATUS_OK);
    assert_int_equal(outcome_of(&plain), LEDGER_INTAKE_DELIVERED);
    assert_int_equal(outcome_of(&plain), LEDGER_INTAKE_DUPLICATE);
    assert_int_equal(counted(METRIC_ID_HASHES), 0);
}

static void hashes_two_waiting_messages_as_one_alone(void **state)
{
    struct lane_options options = usual();
    struct test_message other = plain;
    struct lane_pending pending[2];
    struct lane_decision decision;
    struct envelope *alone;
    (void)state;
    lane_destroy(&lane);
    options.has_message_ids = false;
    assert_int_equal(lane_create(&lane, &options), STATUS_OK);
    other.payload = "a longer payload than the first one";
    struct frame_part *a = test_part(&topic_a, &plain);
    struct frame_part *b = test_part(&topic_a, &other);
    assert_false(lane_begin(lane, a, &decision, &pending[0]));
    assert_false(lane_begin(lane, b, &decision, &pending[1]));
    assert_true(lane_can_wait(&pending[0]));
    lane_hash_start(lane, &pending[0]);
    lane_hash_start(lane, &pending[1]);
    lane_hash_end(lane, &pending[0]);
    lane_hash_end(lane, &pending[1]);
    struct envelope *first = lane_finish(lane, &pending[0]).envelope;
    struct envelope *second = lane_finish(lane, &pending[1]).envelope;
    frame_part_destroy(a);
    frame_part_destroy(b);
    lane_destroy(&lane);
    assert_int_equal(lane_create(&lane, &options), STATUS_OK);
    assert_int_equal(outcome(test_part(&topic_a, &plain), &alone), LEDGER_INTAKE_DELIVERED);
    assert_memory_equal(first->hash, alone->hash, sizeof(alone->hash));
    envelope_unref(alone);
    assert_int_equal(outcome(test_part(&topic_a, &other), &alone), LEDGER_INTAKE_DELIVERED);
    assert_memory_equal(second->hash, alone->hash, sizeof(alone->hash));
    envelope_unref(alone);
    envelope_unref(first);
    envelope_unref(second);
}

#define LANE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            LANE_TEST(names_a_message_as_other_implementations_do),
            LANE_TEST(decodes_and_hashes_a_new_message_once_and_copies_nothing),
            LANE_TEST(recognises_a_held_copy_without_any_hash),
            LANE_TEST(recognises_a_copy_that_is_no_longer_held_by_one_id_pass),
            LANE_TEST(takes_the_same_bytes_on_two_topics_as_two_messages),
            LANE_TEST(lets_a_message_through_again_after_the_window),
            LANE_TEST(keeps_a_message_that_is_repeated_for_another_window),
            LANE_TEST(refuses_with_the_reason_and_without_a_second_decode),
            LANE_TEST(refuses_signed_fields_before_it_decodes),
            LANE_TEST(holds_the_size_limit_to_the_byte),
            LANE_TEST(takes_the_timestamp_verdict_at_receipt),
            LANE_TEST(notes_how_far_ahead_of_ours_the_senders_clock_is),
            LANE_TEST(refuses_the_timestamp_where_the_network_says_so),
            LANE_TEST(
                    gives_synced_messages_no_timestamp_verdict_and_keeps_them_out_of_the_seen_set),
            LANE_TEST(accepts_a_held_message_again_once_it_has_left_the_window),
            LANE_TEST(takes_by_sync_what_relay_refused_for_its_time),
            LANE_TEST(takes_what_a_transfer_repeats_for_a_copy_without_decode_or_hash),
            LANE_TEST(keeps_the_far_future_out_of_archive_and_sync_set_also_by_sync),
            LANE_TEST(what_may_not_be_on_a_topic_comes_by_no_way),
            LANE_TEST(goes_by_message_hash_where_nobody_relays),
            LANE_TEST(hashes_two_waiting_messages_as_one_alone),
    };
    rcu_register();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rcu_unregister();
    return failed;
}
