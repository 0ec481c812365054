/* SPDX-License-Identifier: MIT */

/*
 * Whole sessions between two sets, in memory. What each side finds is compared with the plain
 * difference of the two; every payload is also read by the rules that the reference's decoder has.
 */

#include <stdlib.h>
#include <string.h>

#include "router/reconciliation.h"
#include "router/sync_payload.h"
#include "tests/support/cmocka.h"
#include "tests/support/sync_ids.h"
#include "tests/support/sync_side.h"

static void assert_same_ids(struct sync_ids *found, struct sync_ids *expected)
{
    assert_int_equal(found->count, expected->count);
    if (found->count == 0) {
        return;
    }
    qsort(found->ids, found->count, sizeof(found->ids[0]), compare_plainly);
    qsort(expected->ids, expected->count, sizeof(expected->ids[0]), compare_plainly);
    for (size_t i = 0; i < found->count; i++) {
        assert_int_equal(compare_plainly(&found->ids[i], &expected->ids[i]), 0);
    }
}

/* Ids that only one side gets, spread over the hour, half of them here and half there. */
static void converge(size_t shared, size_t differences, struct sync_talk_size *session)
{
    struct sync_side a;
    struct sync_side b;
    struct sync_ids only_a = {.count = 0};
    struct sync_ids only_b = {.count = 0};
    uint64_t random = 1;
    sync_side_init(&a);
    sync_side_init(&b);
    only_a.ids = calloc(differences + 1, sizeof(only_a.ids[0]));
    only_b.ids = calloc(differences + 1, sizeof(only_b.ids[0]));
    assert_true(only_a.ids != NULL && only_b.ids != NULL);
    for (size_t i = 0; i < shared + differences; i++) {
        int64_t timestamp_ns = START_NS + (int64_t)(next_random(&random) % (uint64_t)HOUR_NS);
        struct id_record record =
                make_record(timestamp_ns, i, &sync_side_topics[i % 2], "/a/1/x/proto");
        if (i < shared) {
            sync_side_insert(&a, timestamp_ns, i);
            sync_side_insert(&b, timestamp_ns, i);
        } else if (i % 2 == 0) {
            sync_side_insert(&a, timestamp_ns, i);
            only_a.ids[only_a.count++] = key_of(&record);
        } else {
            sync_side_insert(&b, timestamp_ns, i);
            only_b.ids[only_b.count++] = key_of(&record);
        }
    }
    struct sync_gap window = {.from_ns = START_NS, .to_ns = START_NS + HOUR_NS};
    *session = sync_talk(&a, &b, window, &reconciliation_defaults);
    assert_same_ids(&a.they_lack, &only_a);
    assert_same_ids(&b.they_lack, &only_b);
    assert_false(a.is_incomplete || b.is_incomplete);
    free(only_a.ids);
    free(only_b.ids);
    sync_side_fini(&a);
    sync_side_fini(&b);
}

static void equal_sets_need_two_payloads(void **state)
{
    (void)state;
    struct sync_talk_size session;
    converge(100000, 0, &session);
    sync_talk_report("0 of 100,000 differ", &session);
    assert_int_equal(session.payloads, 2);
    assert_true(session.bytes < 100);
}

static void one_difference_is_found(void **state)
{
    (void)state;
    struct sync_talk_size session;
    converge(99999, 1, &session);
    sync_talk_report("1 of 100,000 differs", &session);
    /* 100,000 / 8^4 is below 100: four splits; the item set, its answer and the end follow */
    assert_true(session.payloads <= 8);
    assert_true(session.bytes < 20000);
}

static void a_hundred_differences_are_found(void **state)
{
    (void)state;
    struct sync_talk_size session;
    converge(99900, 100, &session);
    sync_talk_report("100 of 100,000 differ", &session);
    assert_true(session.payloads <= 8);
}

static void ten_thousand_differences_are_found(void **state)
{
    (void)state;
    struct sync_talk_size session;
    converge(90000, 10000, &session);
    sync_talk_report("10,000 of 100,000 differ", &session);
    assert_true(session.payloads <= 10);
}

static void an_empty_set_is_filled_without_listing_the_full_one(void **state)
{
    (void)state;
    struct sync_side full;
    struct sync_side empty;
    uint64_t random = 3;
    sync_side_init(&full);
    sync_side_init(&empty);
    for (uint64_t i = 0; i < 20000; i++) {
        sync_side_insert(&full, START_NS + (int64_t)(next_random(&random) % (uint64_t)HOUR_NS), i);
    }
    struct sync_gap window = {.from_ns = START_NS, .to_ns = START_NS + HOUR_NS};
    struct sync_talk_size session = sync_talk(&full, &empty, window, &reconciliation_defaults);
    assert_int_equal(full.they_lack.count, 20000);
    assert_int_equal(empty.they_lack.count, 0);
    assert_true(session.bytes < 200);
    sync_side_fini(&full);
    sync_side_fini(&empty);
}

static void ids_of_one_moment_cannot_be_split_and_are_listed(void **state)
{
    (void)state;
    struct sync_side a;
    struct sync_side b;
    sync_side_init(&a);
    sync_side_init(&b);
    for (uint64_t i = 0; i < 500; i++) {
        /* one moment, and the one before it, which share a span below 8 ns to the end */
        int64_t timestamp_ns = START_NS + HOUR_NS / 3 + (int64_t)(i % 2);
        if (i % 10 != 1) {
            sync_side_insert(&a, timestamp_ns, i);
        }
        if (i % 10 != 2) {
            sync_side_insert(&b, timestamp_ns, i);
        }
    }
    struct sync_gap window = {.from_ns = START_NS, .to_ns = START_NS + HOUR_NS};
    struct sync_talk_size session = sync_talk(&a, &b, window, &reconciliation_defaults);
    sync_talk_report("500 ids in two nanoseconds", &session);
    assert_int_equal(a.they_lack.count, 50);
    assert_int_equal(b.they_lack.count, 50);
    sync_side_fini(&a);
    sync_side_fini(&b);
}

/* Reads the only payload of an answer. */
static size_t parse(const struct sync_bytes *payload, struct sync_payload_range *out, size_t max)
{
    struct sync_payload_reader reader = {.bytes = span_of(payload->bytes, payload->length)};
    struct span names[4];
    size_t count = 0;
    assert_int_equal(sync_payload_read_topics(&reader, names, 4, &count, 64), STATUS_OK);
    assert_int_equal(sync_payload_read_topics(&reader, names, 4, &count, 64), STATUS_OK);
    assert_int_equal(sync_payload_read_start(&reader), STATUS_OK);
    for (count = 0; sync_payload_has_range(&reader); count++) {
        assert_true(count < max);
        assert_int_equal(sync_payload_read_range(&reader, &out[count]), STATUS_OK);
    }
    return count;
}

/* A payload of one range with a fingerprint that nobody has. */
static void put_wrong_fingerprint(struct sync_bytes *out, int64_t from_ns, int64_t to_ns)
{
    uint8_t fingerprint[ID_HASH_BYTES];
    struct sync_payload_writer writer;
    struct id_key to = {.timestamp_ns = to_ns};
    memset(fingerprint, 0x5A, sizeof(fingerprint));
    sync_payload_begin(&writer, out, &sync_side_everything, from_ns);
    sync_payload_fingerprint(&writer, &to, fingerprint);
    assert_int_equal(sync_payload_finish(&writer), STATUS_OK);
}

static enum status answer(struct sync_side *side, const struct sync_bytes *payload)
{
    return reconciliation_answer(&side->answer, side->set, &side->scope,
            span_of(payload->bytes, payload->length), &reconciliation_defaults);
}

static void a_hundred_ids_are_an_item_set_and_one_more_are_eight_parts(void **state)
{
    (void)state;
    struct sync_side side;
    struct sync_bytes incoming = {.length = 0};
    struct sync_payload_range ranges[8];
    sync_side_init(&side);
    for (uint64_t i = 0; i < 100; i++) {
        sync_side_insert(&side, START_NS + (int64_t)i, i);
    }
    /* 803 ns: three parts of 101 and five of 100 */
    put_wrong_fingerprint(&incoming, START_NS, START_NS + 803);
    assert_int_equal(answer(&side, &incoming), STATUS_OK);
    assert_int_equal(parse(&side.answer.payload, ranges, 8), 1);
    assert_int_equal(ranges[0].type, SYNC_RANGE_ITEM_SET);
    assert_int_equal(ranges[0].item_count, 100);
    assert_false(ranges[0].is_reconciled);

    sync_side_insert(&side, START_NS + 150, 1000);
    assert_int_equal(answer(&side, &incoming), STATUS_OK);
    assert_int_equal(parse(&side.answer.payload, ranges, 8), 8);
    int64_t expected_ns = START_NS;
    for (int i = 0; i < 8; i++) {
        expected_ns += i < 3 ? 101 : 100;
        assert_int_equal(ranges[i].bounds.to.timestamp_ns, expected_ns);
        /* more than four ids: first it is found out whether they differ */
        assert_int_equal(ranges[i].type, i == 0 ? SYNC_RANGE_FINGERPRINT : SYNC_RANGE_ITEM_SET);
        /* an empty part asks for nothing: the peer sends all it has there */
        assert_int_equal(ranges[i].is_reconciled, i > 0 && ranges[i].item_count == 0);
    }
    assert_int_equal(ranges[1].item_count, 1);
    sync_side_fini(&side);
    free(incoming.bytes);
}

static void a_span_below_eight_nanoseconds_is_an_item_set_however_many(void **state)
{
    (void)state;
    struct sync_side side;
    struct sync_bytes incoming = {.length = 0};
    struct sync_payload_range ranges[8];
    sync_side_init(&side);
    for (uint64_t i = 0; i < 300; i++) {
        sync_side_insert(&side, START_NS + (int64_t)(i % 7), i);
    }
    put_wrong_fingerprint(&incoming, START_NS, START_NS + 7);
    assert_int_equal(answer(&side, &incoming), STATUS_OK);
    assert_int_equal(parse(&side.answer.payload, ranges, 8), 1);
    assert_int_equal(ranges[0].type, SYNC_RANGE_ITEM_SET);
    assert_int_equal(ranges[0].item_count, 300);
    put_wrong_fingerprint(&incoming, START_NS, START_NS + 8);
    assert_int_equal(answer(&side, &incoming), STATUS_OK);
    assert_int_equal(parse(&side.answer.payload, ranges, 8), 8);
    sync_side_fini(&side);
    free(incoming.bytes);
}

static void an_item_set_is_answered_with_ours_and_that_with_a_skip(void **state)
{
    (void)state;
    struct sync_side side;
    struct sync_bytes incoming = {.length = 0};
    struct sync_payload_range ranges[8];
    struct sync_payload_writer writer;
    struct id_key to = {.timestamp_ns = START_NS + 100};
    struct id_record theirs = make_record(START_NS + 7, 77, &sync_side_topics[0], "/a/1/x/proto");
    struct id_key their_key = key_of(&theirs);
    sync_side_init(&side);
    sync_side_insert(&side, START_NS + 5, 1);
    sync_side_insert(&side, START_NS + 200, 2); /* outside */

    for (int reconciled = 0; reconciled < 2; reconciled++) {
        sync_payload_begin(&writer, &incoming, &sync_side_everything, START_NS);
        sync_payload_item_set(&writer, &to, 1);
        sync_payload_item(&writer, &their_key);
        sync_payload_item_set_end(&writer, reconciled == 1);
        assert_int_equal(sync_payload_finish(&writer), STATUS_OK);
        assert_int_equal(answer(&side, &incoming), STATUS_OK);
        assert_int_equal(side.answer.they_lack.count, 1);
        assert_int_equal(side.answer.they_lack.ids[0].timestamp_ns, START_NS + 5);
        assert_int_equal(side.answer.we_lack.count, 1);
        assert_int_equal(compare_plainly(&side.answer.we_lack.ids[0], &their_key), 0);
        if (reconciled == 0) {
            assert_int_equal(parse(&side.answer.payload, ranges, 8), 1);
            assert_int_equal(ranges[0].item_count, 1);
            assert_true(ranges[0].is_reconciled);
            assert_false(side.answer.is_end);
        } else {
            assert_int_equal(side.answer.payload.length, 1);
            assert_int_equal(side.answer.payload.bytes[0], 0);
            assert_true(side.answer.is_end);
        }
    }
    sync_side_fini(&side);
    free(incoming.bytes);
}

static void ends_without_an_answer_when_nothing_is_asked(void **state)
{
    (void)state;
    struct sync_side side;
    sync_side_init(&side);
    sync_side_insert(&side, START_NS, 1);
    struct sync_bytes nothing = {.length = 0};
    assert_int_equal(answer(&side, &nothing), STATUS_OK);
    assert_true(side.answer.is_end);
    assert_int_equal(side.answer.payload.length, 0);
    uint8_t skips[] = {0x00, 0x00, 0x80, 0x80, 0xA8, 0xB1, 0xE3, 0x9F, 0xE7, 0xCB, 0x17, 0x05, 0x00,
            0x05, 0x00};
    struct sync_bytes payload = {.bytes = skips, .length = sizeof(skips)};
    assert_int_equal(answer(&side, &payload), STATUS_OK);
    assert_true(side.answer.is_end);
    assert_int_equal(side.answer.payload.length, 0);
    sync_side_fini(&side);
}

static void scopes_without_a_common_topic_end_at_once(void **state)
{
    (void)state;
    struct sync_side a;
    struct sync_side b;
    sync_side_init(&a);
    sync_side_init(&b);
    sync_side_insert(&a, START_NS + 1, 0);
    sync_side_insert(&b, START_NS + 2, 1);
    a.scope = (struct sync_scope){
            .pubsub_topics = &sync_side_topics[0].name, .pubsub_topic_count = 1};
    b.scope = (struct sync_scope){
            .pubsub_topics = &sync_side_topics[1].name, .pubsub_topic_count = 1};
    struct sync_gap window = {.from_ns = START_NS, .to_ns = START_NS + HOUR_NS};
    struct sync_talk_size session = sync_talk(&a, &b, window, &reconciliation_defaults);
    assert_int_equal(session.payloads, 2);
    assert_int_equal(b.answer.payload.length, 1);
    assert_int_equal(a.they_lack.count + b.they_lack.count, 0);
    sync_side_fini(&a);
    sync_side_fini(&b);
}

static void only_what_both_scopes_name_is_exchanged(void **state)
{
    (void)state;
    struct sync_side a;
    struct sync_side b;
    struct span both[] = {sync_side_topics[0].name, sync_side_topics[1].name};
    sync_side_init(&a);
    sync_side_init(&b);
    for (uint64_t i = 0; i < 400; i++) {
        sync_side_insert(i % 4 < 2 ? &a : &b, START_NS + (int64_t)i * SECOND_NS, i);
    }
    a.scope = (struct sync_scope){
            .pubsub_topics = &sync_side_topics[0].name, .pubsub_topic_count = 1};
    b.scope = (struct sync_scope){.pubsub_topics = both, .pubsub_topic_count = 2};
    struct sync_gap window = {.from_ns = START_NS, .to_ns = START_NS + HOUR_NS};
    (void)sync_talk(&a, &b, window, &reconciliation_defaults);
    assert_int_equal(a.they_lack.count, 100);
    assert_int_equal(b.they_lack.count, 100);
    sync_side_fini(&a);
    sync_side_fini(&b);
}

static bool lacks(const struct sync_ids *ids, int64_t timestamp_ns)
{
    for (size_t i = 0; i < ids->count; i++) {
        if (ids->ids[i].timestamp_ns == timestamp_ns) {
            return true;
        }
    }
    return false;
}

/* Of six ids around the edges of the window, which only a has, the three inside are found. */
static void check_edges(int64_t skew_ns, bool is_started_by_a)
{
    const int64_t jitter_ns = 20 * SECOND_NS;
    const int64_t now_ns = START_NS + 2 * HOUR_NS;
    struct sync_gap window = reconciliation_window(now_ns, HOUR_NS, jitter_ns);
    struct sync_gap other = reconciliation_window(now_ns + skew_ns, HOUR_NS, jitter_ns);
    int64_t edges[] = {window.from_ns - 1, window.from_ns, window.from_ns + 1, window.to_ns - 1,
            window.to_ns, window.to_ns + 1};
    struct sync_side a;
    struct sync_side b;
    sync_side_init(&a);
    sync_side_init(&b);
    for (uint64_t i = 0; i < 6; i++) {
        sync_side_insert(&a, edges[i], i);
    }
    for (uint64_t i = 10; i < 400; i++) {
        sync_side_insert(&a, window.from_ns + (int64_t)i * SECOND_NS, i);
        sync_side_insert(&b, window.from_ns + (int64_t)i * SECOND_NS, i);
    }
    /* each prunes by its own clock, two jitters behind its own window */
    (void)sync_set_prune(a.set, window.from_ns - 2 * jitter_ns, SIZE_MAX);
    (void)sync_set_prune(b.set, other.from_ns - 2 * jitter_ns, SIZE_MAX);
    (void)(is_started_by_a ? sync_talk(&a, &b, window, &reconciliation_defaults)
                           : sync_talk(&b, &a, window, &reconciliation_defaults));
    assert_int_equal(a.they_lack.count, 3);
    for (size_t i = 1; i <= 3; i++) {
        assert_true(lacks(&a.they_lack, edges[i]));
    }
    assert_int_equal(b.they_lack.count, 0);
    sync_side_fini(&a);
    sync_side_fini(&b);
}

static void both_sides_see_the_same_window_though_their_clocks_differ(void **state)
{
    (void)state;
    struct sync_gap window = reconciliation_window(START_NS + HOUR_NS, HOUR_NS, 20 * SECOND_NS);
    assert_int_equal(window.from_ns, START_NS - 20 * SECOND_NS);
    assert_int_equal(window.to_ns, START_NS + HOUR_NS - 20 * SECOND_NS);
    for (int64_t skew_ns = -5 * SECOND_NS; skew_ns <= 5 * SECOND_NS; skew_ns += 5 * SECOND_NS) {
        check_edges(skew_ns, true);
        check_edges(skew_ns, false);
    }
}

static void what_was_pruned_is_not_asked_for_again(void **state)
{
    (void)state;
    struct sync_side a;
    struct sync_side b;
    sync_side_init(&a);
    sync_side_init(&b);
    for (uint64_t i = 0; i < 1000; i++) {
        sync_side_insert(&a, START_NS + (int64_t)i * SECOND_NS, i);
        sync_side_insert(&b, START_NS + (int64_t)i * SECOND_NS, i);
    }
    (void)sync_set_prune(b.set, START_NS + 500 * SECOND_NS, SIZE_MAX);
    struct sync_gap window = {.from_ns = START_NS, .to_ns = START_NS + HOUR_NS};
    (void)sync_talk(&a, &b, window, &reconciliation_defaults);
    assert_int_equal(b.we_lack.count, 0);
    assert_int_equal(a.they_lack.count, 0); /* or it would be sent all the same */
    sync_side_fini(&a);
    sync_side_fini(&b);
}

/* One whose range is shorter is sent nothing older, however the longer range is cut. */
static void what_is_older_than_the_range_of_one_side_is_left_alone(void **state)
{
    (void)state;
    static const uint64_t counts[] = {3, 60, 1000};
    struct sync_gap window = {.from_ns = START_NS, .to_ns = START_NS + HOUR_NS};
    for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
        struct reconciliation_limits limits = reconciliation_defaults;
        struct sync_side a;
        struct sync_side b;
        sync_side_init(&a);
        sync_side_init(&b);
        for (uint64_t i = 0; i < counts[n]; i++) {
            sync_side_insert(&a, START_NS + (int64_t)i * SECOND_NS, 3 * i);
            sync_side_insert(&b, START_NS + (int64_t)i * SECOND_NS, 3 * i + 1);
            sync_side_insert(
                    i % 2 == 0 ? &a : &b, START_NS + (2000 + (int64_t)i) * SECOND_NS, 3 * i + 2);
        }
        limits.earliest_ns = START_NS + 2000 * SECOND_NS;
        (void)sync_talk(&a, &b, window, &limits);
        assert_int_equal(a.they_lack.count, (counts[n] + 1) / 2);
        assert_int_equal(b.we_lack.count, (counts[n] + 1) / 2);
        assert_int_equal(b.they_lack.count, counts[n] / 2);
        assert_int_equal(a.we_lack.count, counts[n] / 2);
        assert_true(lacks(&a.they_lack, limits.earliest_ns)); /* the border itself is inside */
        sync_side_fini(&a);
        sync_side_fini(&b);
    }
}

static void limits_delay_what_they_cut_but_lose_nothing_unseen(void **state)
{
    (void)state;
    struct sync_side a;
    struct sync_side b;
    uint64_t random = 11;
    sync_side_init(&a);
    sync_side_init(&b);
    for (uint64_t i = 0; i < 20000; i++) {
        sync_side_insert(i % 2 == 0 ? &a : &b,
                START_NS + (int64_t)(next_random(&random) % (uint64_t)HOUR_NS), i);
    }
    struct reconciliation_limits limits = reconciliation_defaults;
    struct sync_gap window = {.from_ns = START_NS, .to_ns = START_NS + HOUR_NS};
    limits.outgoing_bytes_aim = 65536;
    struct sync_talk_size session = sync_talk(&a, &b, window, &limits);
    sync_talk_report("20,000 differences within 64 KiB payloads", &session);
    assert_false(a.is_incomplete || b.is_incomplete);
    assert_int_equal(a.they_lack.count, 10000);
    assert_int_equal(b.they_lack.count, 10000);
    assert_true(session.largest <= 3 * limits.outgoing_bytes_aim);

    a.they_lack.count = 0;
    b.they_lack.count = 0;
    limits = reconciliation_defaults;
    limits.differences_max = 100;
    (void)sync_talk(&a, &b, window, &limits);
    assert_true(a.is_incomplete && b.is_incomplete);
    assert_true(a.they_lack.count > 0);

    a.is_incomplete = b.is_incomplete = false;
    limits = reconciliation_defaults;
    limits.work_max = 50;
    (void)sync_talk(&a, &b, window, &limits);
    assert_true(a.is_incomplete || b.is_incomplete);
    sync_side_fini(&a);
    sync_side_fini(&b);
}

static void a_list_of_ours_that_would_be_too_long_names_what_is_common(void **state)
{
    (void)state;
    struct sync_side side;
    struct sync_bytes incoming = {.length = 0};
    struct sync_payload_range ranges[8];
    struct sync_payload_writer writer;
    struct id_key to = {.timestamp_ns = START_NS + HOUR_NS};
    sync_side_init(&side);
    for (uint64_t i = 0; i < 5000; i++) {
        sync_side_insert(&side, START_NS + (int64_t)i, i);
    }
    struct id_record shared = make_record(START_NS + 8, 8, &sync_side_topics[0], "/a/1/x/proto");
    struct id_key shared_key = key_of(&shared);
    sync_payload_begin(&writer, &incoming, &sync_side_everything, START_NS);
    sync_payload_item_set(&writer, &to, 1);
    sync_payload_item(&writer, &shared_key);
    sync_payload_item_set_end(&writer, false);
    assert_int_equal(sync_payload_finish(&writer), STATUS_OK);
    assert_int_equal(answer(&side, &incoming), STATUS_OK);
    assert_int_equal(side.answer.they_lack.count, 4999);
    assert_int_equal(parse(&side.answer.payload, ranges, 8), 1);
    assert_int_equal(ranges[0].item_count, 1);
    assert_true(ranges[0].is_reconciled);
    sync_side_fini(&side);
    free(incoming.bytes);
}

static void refuses_payloads_over_the_limits(void **state)
{
    (void)state;
    struct sync_side side;
    struct sync_bytes incoming = {.length = 0};
    struct sync_payload_writer writer;
    uint8_t fingerprint[ID_HASH_BYTES] = {1};
    struct reconciliation_limits limits = reconciliation_defaults;
    sync_side_init(&side);
    sync_payload_begin(&writer, &incoming, &sync_side_everything, START_NS);
    for (int64_t i = 1; i <= 9; i++) {
        struct id_key to = {.timestamp_ns = START_NS + i};
        sync_payload_fingerprint(&writer, &to, fingerprint);
    }
    assert_int_equal(sync_payload_finish(&writer), STATUS_OK);
    struct span payload = span_of(incoming.bytes, incoming.length);
    limits.ranges_max = 8;
    assert_int_equal(
            reconciliation_answer(&side.answer, side.set, &sync_side_everything, payload, &limits),
            STATUS_TOO_LARGE);
    limits.ranges_max = 9;
    assert_int_equal(
            reconciliation_answer(&side.answer, side.set, &sync_side_everything, payload, &limits),
            STATUS_OK);
    limits.incoming_bytes_max = incoming.length - 1;
    assert_int_equal(
            reconciliation_answer(&side.answer, side.set, &sync_side_everything, payload, &limits),
            STATUS_TOO_LARGE);
    struct sync_gap empty = {.from_ns = START_NS, .to_ns = START_NS};
    assert_int_equal(reconciliation_start(&side.answer, side.set, &sync_side_everything, empty),
            STATUS_BAD_ARGUMENT);
    sync_side_fini(&side);
    free(incoming.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(equal_sets_need_two_payloads),
            cmocka_unit_test(one_difference_is_found),
            cmocka_unit_test(a_hundred_differences_are_found),
            cmocka_unit_test(ten_thousand_differences_are_found),
            cmocka_unit_test(an_empty_set_is_filled_without_listing_the_full_one),
            cmocka_unit_test(ids_of_one_moment_cannot_be_split_and_are_listed),
            cmocka_unit_test(a_hundred_ids_are_an_item_set_and_one_more_are_eight_parts),
            cmocka_unit_test(a_span_below_eight_nanoseconds_is_an_item_set_however_many),
            cmocka_unit_test(an_item_set_is_answered_with_ours_and_that_with_a_skip),
            cmocka_unit_test(ends_without_an_answer_when_nothing_is_asked),
            cmocka_unit_test(scopes_without_a_common_topic_end_at_once),
            cmocka_unit_test(only_what_both_scopes_name_is_exchanged),
            cmocka_unit_test(both_sides_see_the_same_window_though_their_clocks_differ),
            cmocka_unit_test(what_was_pruned_is_not_asked_for_again),
            cmocka_unit_test(what_is_older_than_the_range_of_one_side_is_left_alone),
            cmocka_unit_test(limits_delay_what_they_cut_but_lose_nothing_unseen),
            cmocka_unit_test(a_list_of_ours_that_would_be_too_long_names_what_is_common),
            cmocka_unit_test(refuses_payloads_over_the_limits),
    };
    return cmocka_run_group_tests(tests, sync_side_name_topics, NULL);
}
