/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/metrics.h"
#include "queues/envelope.h"

static uint64_t freed(void)
{
    return metrics_sum(NULL, METRIC_ENVELOPES_FREED);
}

/* An envelope whose message is the first message_length bytes of a frame of frame_length. */
static struct envelope *envelope_of(size_t frame_length, size_t message_length)
{
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, frame_length);
    assert_non_null(frame);
    for (size_t i = 0; i < frame_length; i++) {
        frame_bytes(frame)[i] = (uint8_t)i;
    }
    struct envelope *envelope = envelope_create(frame);
    assert_non_null(envelope);
    envelope->message = span_of(frame_bytes(frame), message_length);
    return envelope;
}

static void starts_with_one_reference_and_empty_fields(void **state)
{
    (void)state;
    uint64_t before = freed();
    struct envelope *envelope = envelope_of(8, 8);
    assert_null(envelope->topic);
    assert_int_equal(envelope->payload.length, 0);
    assert_int_equal(envelope->timestamp_ns, 0);
    assert_false(envelope->is_ephemeral);
    envelope_unref(envelope);
    assert_int_equal(freed() - before, 1);
}

static void costs_one_allocation(void **state)
{
    (void)state;
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, 8);
    assert_non_null(frame);
    uint64_t before = metrics_sum(NULL, METRIC_ALLOCATIONS);
    struct envelope *envelope = envelope_create(frame);
    assert_non_null(envelope);
    assert_int_equal(metrics_sum(NULL, METRIC_ALLOCATIONS) - before, 1);
    envelope_unref(envelope);
}

/* Its memory is the frame's: it costs none, and the frame is whole until both are gone. */
static void lives_inside_its_frame(void **state)
{
    (void)state;
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, 8);
    assert_non_null(frame);
    frame_ref(frame);
    memset(frame_bytes(frame), 7, 8);
    uint64_t allocations = metrics_sum(NULL, METRIC_ALLOCATIONS);
    uint64_t before = freed();
    struct envelope *envelope = envelope_create_inside(frame);
    assert_int_equal(metrics_sum(NULL, METRIC_ALLOCATIONS), allocations);
    assert_ptr_equal(envelope->frame, frame);
    assert_int_equal(envelope_own_bytes(envelope), 0);
    assert_null(envelope->topic);
    envelope->message = span_of(frame_bytes(frame), 8);
    assert_int_equal(envelope_pinned_bytes(envelope), frame_charge(8));
    envelope_ref(envelope);
    envelope_unref(envelope);
    assert_int_equal(freed(), before);
    envelope_unref(envelope);
    assert_int_equal(freed() - before, 1);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(frame_bytes(frame)[i], 7);
    }
    frame_unref(frame);
}

static void lives_until_the_last_of_many_references(void **state)
{
    (void)state;
    uint64_t before = freed();
    struct envelope *envelope = envelope_of(8, 8);
    envelope_ref_many(envelope, 3);
    envelope_ref(envelope);
    for (int i = 0; i < 4; i++) {
        envelope_unref(envelope);
        assert_int_equal(freed(), before);
    }
    envelope_unref(envelope);
    assert_int_equal(freed() - before, 1);
}

static void try_ref_finds_nothing_once_the_last_reference_is_gone(void **state)
{
    (void)state;
    rcu_register();
    uint64_t before = freed();
    struct envelope *envelope = envelope_of(8, 8);
    envelope_mark_shared(envelope);
    assert_true(envelope_try_ref(envelope));
    envelope_unref(envelope);
    envelope_unref(envelope);
    /* This thread is inside a read-side section, so the envelope may still be looked at. */
    assert_false(envelope_try_ref(envelope));
    assert_int_equal(freed(), before);
    rcu_turn_over();
    rcu_drain();
    assert_int_equal(freed() - before, 1);
    rcu_unregister();
}

static void is_archivable_unless_ephemeral_or_out_of_time(void **state)
{
    (void)state;
    struct envelope envelope = {.is_timestamp_in_range = true};
    assert_true(envelope_is_archivable(&envelope));
    envelope.is_ephemeral = true;
    assert_false(envelope_is_archivable(&envelope));
    envelope.is_ephemeral = false;
    envelope.is_timestamp_in_range = false;
    assert_false(envelope_is_archivable(&envelope));
}

static void compaction_leaves_a_well_filled_frame_alone(void **state)
{
    (void)state;
    uint64_t copies = metrics_sum(NULL, METRIC_COPIES);
    struct envelope *envelope = envelope_of(100, 50);
    assert_ptr_equal(envelope_compact(envelope), envelope);
    assert_int_equal(metrics_sum(NULL, METRIC_COPIES), copies);
    envelope_unref(envelope);
}

static void compaction_moves_every_field_into_a_frame_of_its_own(void **state)
{
    (void)state;
    uint64_t before = freed();
    uint64_t copied = metrics_sum(NULL, METRIC_COPIED_BYTES);
    struct topic topic = {.index = 3};
    struct envelope *envelope = envelope_of(200, 0);
    envelope->message = span_of(frame_bytes(envelope->frame) + 100, 40);
    envelope->payload = span_of(envelope->message.bytes + 2, 10);
    envelope->content_topic = span_of(envelope->message.bytes + 15, 5);
    envelope->topic = &topic;
    envelope->timestamp_ns = 12345;
    envelope->hash[31] = 9;
    envelope->is_ephemeral = true;

    struct envelope *compacted = envelope_compact(envelope);
    assert_int_equal(freed() - before, 1);
    assert_int_equal(metrics_sum(NULL, METRIC_COPIED_BYTES) - copied, 40);
    assert_int_equal(frame_length(compacted->frame), 40);
    assert_int_equal(compacted->message.length, 40);
    assert_int_equal(compacted->message.bytes[0], 100);
    assert_int_equal(compacted->message.bytes[39], 139);
    assert_int_equal(compacted->payload.bytes[0], 102);
    assert_int_equal(compacted->payload.length, 10);
    assert_int_equal(compacted->content_topic.bytes[0], 115);
    assert_int_equal(compacted->content_topic.length, 5);
    assert_int_equal(compacted->meta.length, 0);
    assert_ptr_equal(compacted->topic, &topic);
    assert_int_equal(compacted->timestamp_ns, 12345);
    assert_int_equal(compacted->hash[31], 9);
    assert_true(compacted->is_ephemeral);
    envelope_unref(compacted);
    assert_int_equal(freed() - before, 2);
}

static void compaction_of_an_envelope_others_hold_leaves_theirs(void **state)
{
    (void)state;
    struct envelope *envelope = envelope_of(200, 40);
    envelope_ref(envelope);
    struct envelope *compacted = envelope_compact(envelope);
    assert_ptr_not_equal(compacted, envelope);
    envelope_unref(compacted);
    assert_int_equal(envelope->message.bytes[39], 39);
    envelope_unref(envelope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(starts_with_one_reference_and_empty_fields),
            cmocka_unit_test(costs_one_allocation),
            cmocka_unit_test(lives_inside_its_frame),
            cmocka_unit_test(lives_until_the_last_of_many_references),
            cmocka_unit_test(try_ref_finds_nothing_once_the_last_reference_is_gone),
            cmocka_unit_test(is_archivable_unless_ephemeral_or_out_of_time),
            cmocka_unit_test(compaction_leaves_a_well_filled_frame_alone),
            cmocka_unit_test(compaction_moves_every_field_into_a_frame_of_its_own),
            cmocka_unit_test(compaction_of_an_envelope_others_hold_leaves_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
