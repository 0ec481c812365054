/* SPDX-License-Identifier: MIT */
#include "router/recent.h"

#include "queues/frame.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/cmocka.h"

static const struct topic other_topic = {.index = 9, .name = {(const uint8_t *)"/other", 6}};

static struct envelope *message(unsigned number)
{
    struct fixture_message fields = {.number = number, .timestamp_ns = 1000, .payload_bytes = 300};
    return fixture_envelope(&fields);
}

/* Adds it under the key and drops the test's own reference. */
static struct span add(struct recent *recent, unsigned number, uint64_t key)
{
    struct envelope *envelope = message(number);
    struct span bytes = envelope->message;
    recent_add(recent, envelope, key);
    envelope_unref(envelope);
    return bytes;
}

static void finds_a_held_message_by_its_bytes(void **state)
{
    struct recent *recent;
    struct envelope *copy = message(1);
    (void)state;
    assert_int_equal(recent_create(&recent, 1 << 20), STATUS_OK);
    add(recent, 1, 77);
    struct envelope *held = recent_find(recent, copy->topic, copy->message, 77);
    assert_non_null(held);
    assert_ptr_not_equal(held, copy);
    assert_memory_equal(held->hash, copy->hash, MESSAGE_HASH_BYTES);
    assert_null(recent_find(recent, copy->topic, copy->message, 78));
    envelope_unref(copy);
    recent_destroy(&recent);
    assert_null(recent);
}

static void the_same_bytes_on_another_topic_are_another_message(void **state)
{
    struct recent *recent;
    struct envelope *copy = message(1);
    (void)state;
    assert_int_equal(recent_create(&recent, 1 << 20), STATUS_OK);
    add(recent, 1, 77);
    assert_null(recent_find(recent, &other_topic, copy->message, 77));
    envelope_unref(copy);
    recent_destroy(&recent);
}

static void tells_messages_with_one_key_apart_by_their_bytes(void **state)
{
    struct recent *recent;
    struct envelope *third = message(3);
    struct envelope *fourth = message(4);
    (void)state;
    assert_int_equal(recent_create(&recent, 1 << 20), STATUS_OK);
    for (unsigned i = 1; i <= 3; i++) {
        add(recent, i, 77);
    }
    struct envelope *held = recent_find(recent, third->topic, third->message, 77);
    assert_non_null(held);
    assert_memory_equal(held->hash, third->hash, MESSAGE_HASH_BYTES);
    assert_null(recent_find(recent, fourth->topic, fourth->message, 77));
    envelope_unref(third);
    envelope_unref(fourth);
    recent_destroy(&recent);
}

/* Many messages crafted to have one key must not cost a comparison each. */
static void gives_up_after_a_few_comparisons(void **state)
{
    struct recent *recent;
    struct envelope *last = message(20);
    (void)state;
    assert_int_equal(recent_create(&recent, 1 << 20), STATUS_OK);
    for (unsigned i = 1; i <= 20; i++) {
        add(recent, i, 77);
    }
    assert_null(recent_find(recent, last->topic, last->message, 77));
    assert_int_equal(recent_count(recent), 20);
    envelope_unref(last);
    recent_destroy(&recent);
}

static void holds_no_more_bytes_than_its_limit_and_drops_the_oldest(void **state)
{
    enum {
        LIMIT = 64 * 1024,
        COUNT = 1000
    };
    struct recent *recent;
    (void)state;
    assert_int_equal(recent_create(&recent, LIMIT), STATUS_OK);
    for (unsigned i = 0; i < COUNT; i++) {
        add(recent, i, i * 0x9e3779b97f4a7c15ULL);
        assert_true(recent_bytes(recent) <= LIMIT);
    }
    size_t held = recent_count(recent);
    assert_in_range(held, 10, COUNT - 1);
    for (unsigned i = 0; i < COUNT; i++) {
        struct envelope *copy = message(i);
        bool is_held =
                recent_find(recent, copy->topic, copy->message, i * 0x9e3779b97f4a7c15ULL) != NULL;
        assert_int_equal(is_held, i >= COUNT - held);
        envelope_unref(copy);
    }
    recent_destroy(&recent);
}

static void growth_loses_nothing(void **state)
{
    enum {
        COUNT = 3000
    };
    struct recent *recent;
    (void)state;
    assert_int_equal(recent_create(&recent, (size_t)COUNT * 2000), STATUS_OK);
    for (unsigned i = 0; i < COUNT; i++) {
        (void)add(recent, i, i);
        assert_int_equal(recent_count(recent), i + 1);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        struct envelope *copy = message(i);
        assert_non_null(recent_find(recent, copy->topic, copy->message, i));
        envelope_unref(copy);
    }
    recent_destroy(&recent);
}

/* Deletion moves slots; with keys that share their homes every one must still be found. */
static void finds_everything_after_growth_and_deletion_among_crowded_keys(void **state)
{
    enum {
        COUNT = 4000,
        HOMES = 1024
    };
    struct recent *recent;
    (void)state;
    assert_int_equal(recent_create(&recent, (size_t)COUNT / 2 * 700), STATUS_OK);
    for (unsigned i = 0; i < COUNT; i++) {
        add(recent, i, (uint64_t)(i % 400) | (uint64_t)i << 40);
    }
    size_t held = recent_count(recent);
    assert_in_range(held, HOMES, COUNT - 1);
    size_t found = 0;
    for (unsigned i = (unsigned)(COUNT - held); i < COUNT; i++) {
        struct envelope *copy = message(i);
        found += recent_find(recent, copy->topic, copy->message,
                         (uint64_t)(i % 400) | (uint64_t)i << 40) != NULL;
        envelope_unref(copy);
    }
    /* Probes are bounded, so a few may be missed, which costs one message id each. */
    assert_in_range(found, 1, held);
    recent_destroy(&recent);
}

static void pins_a_whole_frame_when_the_message_is_the_smaller_part_of_it(void **state)
{
    struct recent *small;
    struct recent *large;
    struct envelope *envelope = message(1);
    (void)state;
    assert_int_equal(recent_create(&small, 1 << 20), STATUS_OK);
    assert_int_equal(recent_create(&large, 1 << 20), STATUS_OK);
    recent_add(large, envelope, 1);
    assert_true(recent_bytes(large) >= frame_charge(frame_length(envelope->frame)));
    envelope->message.length /= 4;
    recent_add(small, envelope, 1);
    assert_int_equal(recent_bytes(small), recent_bytes(large));
    recent_destroy(&small);
    recent_destroy(&large);
    envelope_unref(envelope);
}

static void without_a_limit_it_holds_nothing(void **state)
{
    struct recent *recent;
    (void)state;
    assert_int_equal(recent_create(&recent, 0), STATUS_OK);
    add(recent, 1, 1);
    assert_int_equal(recent_count(recent), 0);
    assert_int_equal(recent_bytes(recent), 0);
    recent_destroy(&recent);
    recent_destroy(&recent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(finds_a_held_message_by_its_bytes),
            cmocka_unit_test(the_same_bytes_on_another_topic_are_another_message),
            cmocka_unit_test(tells_messages_with_one_key_apart_by_their_bytes),
            cmocka_unit_test(gives_up_after_a_few_comparisons),
            cmocka_unit_test(holds_no_more_bytes_than_its_limit_and_drops_the_oldest),
            cmocka_unit_test(growth_loses_nothing),
            cmocka_unit_test(finds_everything_after_growth_and_deletion_among_crowded_keys),
            cmocka_unit_test(pins_a_whole_frame_when_the_message_is_the_smaller_part_of_it),
            cmocka_unit_test(without_a_limit_it_holds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
