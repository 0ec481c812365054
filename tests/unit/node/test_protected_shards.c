/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/options.h"
#include "node/node.h"
#include "node/protected_shards.h"
#include "queues/topic.h"
#include "tests/support/cmocka.h"
#include "tests/support/hex.h"

/*
 * Key, payload and time are those of the reference's own test vector, whose topic is no shard's: the
 * signature, over shard 7 of cluster 0, was made with @noble/curves, which makes that vector's too.
 */
#define KEY                                                                                        \
    "049c5fac802da41e07e6cdf51c3b9a6351ad5e65921527f2df5b7d59fd9b56ab02bab736cdcfc37f25095e781275" \
    "00da371947217a8cd5186ab890ea866211c3f6"
#define PAYLOAD                                                                                    \
    "1a12e077d0e89f9cac11fbbb6a676c86120b5ad3e248b1f180e98f15ee43d2dfcf62f00c92737b2ff6f59b3aba02" \
    "773314b991c41dc19adb0ad8c17c8e26757b"
#define SIGNATURE                                                                                  \
    "e41b458df51c9616f322038441c4ccb7f87fa474728958c5a6618124260b40e7"                             \
    "6757550dc3df385777bae7f19cfe32f0f2421e77b992a466f33759f8d8f4940b"

static const int64_t timestamp_ns = INT64_C(1683208172339052800);

struct fixture {
    struct protected_shards *shards;
    struct topic topic;
    struct frame_part part;
    struct waku_message_view view;
    struct span payload;
    struct span signature;
};

static enum status create(struct protected_shards **out, const char *text, struct node_error *error)
{
    static const struct option_spec *const tables[] = {options_of_node, NULL};
    struct options *options;
    struct options_error option_error;
    assert_int_equal(options_create(&options, tables), STATUS_OK);
    if (text != NULL) {
        assert_int_equal(options_set(options, "protected-shard", text, &option_error), STATUS_OK);
    }
    enum status status = protected_shards_create(out, options, error);
    options_destroy(&options);
    return status;
}

static int set_up(void **state)
{
    static struct fixture fixture;
    struct node_error error;
    memset(&fixture, 0, sizeof(fixture));
    assert_int_equal(create(&fixture.shards, "7:" KEY, &error), STATUS_OK);
    fixture.payload = hex_decode(PAYLOAD);
    fixture.signature = hex_decode(SIGNATURE);
    fixture.topic.name = span_of_text("/waku/2/rs/0/7");
    fixture.part.topic = &fixture.topic;
    fixture.part.received_ns = timestamp_ns;
    fixture.view = (struct waku_message_view){.payload = fixture.payload,
            .content_topic = span_of_text("content-topic"),
            .meta = fixture.signature,
            .timestamp_ns = timestamp_ns,
            .ephemeral = true};
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    hex_free(fixture->payload);
    hex_free(fixture->signature);
    protected_shards_destroy(&fixture->shards);
    return 0;
}

static bool is_accepted(struct fixture *fixture)
{
    return protected_shards_accept(fixture->shards, &fixture->part, &fixture->view);
}

static void takes_what_the_owner_signed(void **state)
{
    assert_true(is_accepted(*state));
}

static void refuses_what_differs_in_anything_that_is_signed(void **state)
{
    struct fixture *fixture = *state;
    const struct waku_message_view good = fixture->view;
    fixture->view.ephemeral = false;
    assert_false(is_accepted(fixture));
    fixture->view = good;
    fixture->view.content_topic = span_of_text("content-topik");
    assert_false(is_accepted(fixture));
    fixture->view = good;
    fixture->view.payload.length--;
    assert_false(is_accepted(fixture));
    fixture->view = good;
    fixture->view.timestamp_ns++;
    assert_false(is_accepted(fixture));
    fixture->view = good;
    fixture->view.meta.length--;
    assert_false(is_accepted(fixture));
    fixture->view.meta = span_of(NULL, 0);
    assert_false(is_accepted(fixture));
}

static void refuses_the_other_signature_with_the_larger_s(void **state)
{
    static const uint8_t order[32] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
            0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b,
            0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41};
    struct fixture *fixture = *state;
    uint8_t other[64];
    int borrow = 0;
    memcpy(other, fixture->signature.bytes, sizeof(other));
    for (size_t i = 32; i > 0; i--) {
        int digit = order[i - 1] - other[32 + i - 1] - borrow;
        borrow = digit < 0;
        other[32 + i - 1] = (uint8_t)(digit + (borrow ? 256 : 0));
    }
    fixture->view.meta = span_of(other, sizeof(other));
    assert_false(is_accepted(fixture));
}

static void refuses_what_is_five_minutes_old_or_has_no_time(void **state)
{
    struct fixture *fixture = *state;
    const int64_t minute_ns = INT64_C(60000000000);
    fixture->part.received_ns = timestamp_ns + 5 * minute_ns - 1;
    assert_true(is_accepted(fixture));
    fixture->part.received_ns = timestamp_ns + 5 * minute_ns;
    assert_false(is_accepted(fixture));
    fixture->part.received_ns = timestamp_ns - 5 * minute_ns;
    assert_false(is_accepted(fixture));
    fixture->part.received_ns = 1;
    fixture->view.timestamp_ns = 0;
    assert_false(is_accepted(fixture));
}

static void what_others_have_archived_is_signed_and_as_old_as_it_is(void **state)
{
    struct fixture *fixture = *state;
    static const enum message_origin origins[] = {ORIGIN_SYNC, ORIGIN_RESUME};
    for (size_t i = 0; i < 2; i++) {
        const struct waku_message_view good = fixture->view;
        fixture->part.origin = origins[i];
        fixture->part.received_ns = timestamp_ns + INT64_C(3600000000000);
        assert_true(is_accepted(fixture));
        fixture->view.payload.length--;
        assert_false(is_accepted(fixture));
        fixture->view = good;
    }
    fixture->part.origin = ORIGIN_MESH;
    assert_false(is_accepted(fixture));
}

static void other_topics_are_free(void **state)
{
    struct fixture *fixture = *state;
    fixture->topic.name = span_of_text("/waku/2/rs/0/70");
    fixture->view.meta = span_of(NULL, 0);
    assert_true(is_accepted(fixture));
}

static void only_shards_with_keys_of_the_curve_are_taken(void **state)
{
    (void)state;
    static const char *const bad[] = {"7", "7:", ":" KEY, "65536:" KEY, "-1:" KEY, "7:" KEY "00",
            "7:0g", "7:020000000000000000000000000000000000000000000000000000000000000005"};
    struct protected_shards *shards;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct node_error error = {.text = ""};
        assert_int_equal(create(&shards, bad[i], &error), STATUS_BAD_ARGUMENT);
        assert_non_null(strstr(error.text, "--protected-shard="));
    }
    struct node_error error;
    assert_int_equal(create(&shards, NULL, &error), STATUS_OK);
    assert_null(shards);
    static const char compressed[] =
            "7:0x029c5fac802da41e07e6cdf51c3b9a6351ad5e65921527f2df5b7d59fd9b56ab02";
    assert_int_equal(create(&shards, compressed, &error), STATUS_OK);
    protected_shards_destroy(&shards);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(takes_what_the_owner_signed),
            CASE(refuses_what_differs_in_anything_that_is_signed),
            CASE(refuses_the_other_signature_with_the_larger_s),
            CASE(refuses_what_is_five_minutes_old_or_has_no_time),
            CASE(what_others_have_archived_is_signed_and_as_old_as_it_is),
            CASE(other_topics_are_free),
            cmocka_unit_test(only_shards_with_keys_of_the_curve_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
