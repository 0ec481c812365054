/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "router/sync_set.h"
#include "tests/support/sync_ids.h"

static struct topic topics[3];

static int name_topics(void **state)
{
    static const char *const names[] = {"/waku/2/rs/1/0", "/waku/2/rs/1/1", "/waku/2/rs/1/2"};
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        topics[i] = (struct topic){.index = i, .name = span_of_text(names[i])};
    }
    return 0;
}

static struct sync_set *create(size_t limit)
{
    struct sync_set *set = NULL;
    assert_int_equal(sync_set_create(&set, limit), STATUS_OK);
    return set;
}

static struct sync_view *view_of(
        const struct sync_set *set, const struct sync_scope *ours, const struct sync_scope *theirs)
{
    struct sync_view *view = NULL;
    assert_int_equal(sync_view_create(&view, set, ours, theirs), STATUS_OK);
    return view;
}

static struct sync_range range_of(struct id_key from, struct id_key to)
{
    return (struct sync_range){.from = from, .to = to};
}

/* Count and XOR by looking at every record; the answer that the set must give. */
struct plain_scope {
    int topic; /* -1: all */
    const char *content_topic;
};

static struct id_summary summarise_plainly(const struct id_record *records, size_t count,
        const struct sync_range *range, struct plain_scope scope)
{
    struct id_summary sum = {.count = 0};
    for (size_t i = 0; i < count; i++) {
        struct id_key key = key_of(&records[i]);
        bool is_counted =
                compare_plainly(&key, &range->from) >= 0 && compare_plainly(&key, &range->to) <= 0;
        is_counted = is_counted && (scope.topic < 0 || records[i].topic == &topics[scope.topic]);
        is_counted =
                is_counted && (scope.content_topic == NULL ||
                                      records[i].content_topic_key ==
                                              fast_key_of_bytes(span_of_text(scope.content_topic)));
        sum.count += is_counted;
        for (size_t b = 0; b < ID_HASH_BYTES; b++) {
            sum.fingerprint[b] ^= is_counted ? key.hash[b] : 0;
        }
    }
    return sum;
}

enum {
    RECORDS = 3000
};
static struct id_record records[RECORDS];

static struct sync_set *fill(void)
{
    static const char *const contents[] = {"/a/1/x/proto", "/b/1/x/proto"};
    struct sync_set *set = create(RECORDS);
    uint64_t random = 7;
    for (size_t i = 0; i < RECORDS; i++) {
        /* few enough timestamps that many are equal */
        int64_t timestamp_ns = (int64_t)(1000 + next_random(&random) % 500);
        records[i] = make_record(timestamp_ns, i, &topics[next_random(&random) % 3],
                contents[next_random(&random) % 2]);
        assert_int_equal(sync_set_insert(set, &records[i]), SYNC_INSERTED);
    }
    return set;
}

static void check_scope(const struct sync_set *set, struct plain_scope plain)
{
    struct span pubsub;
    struct span content;
    struct sync_scope scope = {.pubsub_topic_count = 0};
    if (plain.topic >= 0) {
        pubsub = topics[plain.topic].name;
        scope.pubsub_topics = &pubsub;
        scope.pubsub_topic_count = 1;
    }
    if (plain.content_topic != NULL) {
        content = span_of_text(plain.content_topic);
        scope.content_topics = &content;
        scope.content_topic_count = 1;
    }
    struct sync_view *view = view_of(set, NULL, &scope);
    uint64_t random = 99;
    for (int i = 0; i < 60; i++) {
        int64_t from_ns = (int64_t)(990 + next_random(&random) % 520);
        int64_t to_ns = from_ns + (int64_t)(next_random(&random) % 200);
        /* between ids, exactly on ids, and on the same timestamp */
        struct sync_range range = range_of(bound_at(from_ns, 0), bound_at(to_ns, 0xFF));
        if (i % 3 == 0) {
            range = range_of(key_of(&records[next_random(&random) % RECORDS]),
                    key_of(&records[next_random(&random) % RECORDS]));
        }
        struct id_summary expected = summarise_plainly(records, RECORDS, &range, plain);
        struct id_summary found;
        sync_view_summarise(view, &range, &found);
        assert_int_equal(found.count, expected.count);
        assert_memory_equal(found.fingerprint, expected.fingerprint, ID_HASH_BYTES);

        struct id_key previous = bound_at(0, 0);
        struct id_key key;
        size_t walked = 0;
        sync_view_seek(view, &range);
        while (sync_view_next(view, &key)) {
            assert_true(compare_plainly(&previous, &key) < 0);
            previous = key;
            walked++;
        }
        assert_int_equal(walked, expected.count);
    }
    sync_view_destroy(&view);
}

static void agrees_with_a_plain_scan_in_every_scope(void **state)
{
    (void)state;
    struct sync_set *set = fill();
    assert_int_equal(sync_set_count(set), RECORDS);
    check_scope(set, (struct plain_scope){.topic = -1});
    check_scope(set, (struct plain_scope){.topic = 1});
    check_scope(set, (struct plain_scope){.topic = -1, .content_topic = "/a/1/x/proto"});
    check_scope(set, (struct plain_scope){.topic = 2, .content_topic = "/b/1/x/proto"});
    sync_set_destroy(&set);
}

static void shows_the_ids_of_all_topics_in_one_order(void **state)
{
    (void)state;
    struct sync_set *set = fill();
    struct sync_view *view = view_of(set, NULL, NULL);
    struct sync_range all =
            range_of((struct id_key){.timestamp_ns = 0}, (struct id_key){.timestamp_ns = 1000000});
    struct id_key before = {.timestamp_ns = 0};
    struct id_key key;
    size_t count = 0;
    sync_view_seek(view, &all);
    for (; sync_view_next(view, &key); count++) {
        assert_true(compare_plainly(&before, &key) < 0);
        before = key;
    }
    assert_int_equal(count, RECORDS);
    sync_view_destroy(&view);
    sync_set_destroy(&set);
}

static void takes_an_id_once(void **state)
{
    (void)state;
    struct sync_set *set = create(10);
    struct id_record record = make_record(5, 1, &topics[0], "/a/1/x/proto");
    struct id_key key = key_of(&record);
    assert_false(sync_set_contains(set, &key));
    assert_int_equal(sync_set_insert(set, &record), SYNC_INSERTED);
    assert_int_equal(sync_set_insert(set, &record), SYNC_DUPLICATE);
    assert_int_equal(sync_set_count(set), 1);
    assert_true(sync_set_contains(set, &key));
    sync_set_destroy(&set);
}

static void the_scope_of_a_view_is_what_both_scopes_name(void **state)
{
    (void)state;
    struct sync_set *set = fill();
    struct span first_two[] = {topics[0].name, topics[1].name};
    struct span last_two[] = {topics[1].name, topics[2].name};
    struct sync_scope ours = {.pubsub_topics = first_two, .pubsub_topic_count = 2};
    struct sync_scope theirs = {.pubsub_topics = last_two, .pubsub_topic_count = 2};
    struct sync_range all = range_of(bound_at(0, 0), bound_at(INT64_MAX, 0xFF));
    struct id_summary expected =
            summarise_plainly(records, RECORDS, &all, (struct plain_scope){.topic = 1});
    struct id_summary found;

    struct sync_view *view = view_of(set, &ours, &theirs);
    assert_false(sync_view_is_disjoint(view));
    sync_view_summarise(view, &all, &found);
    assert_int_equal(found.count, expected.count);
    assert_memory_equal(found.fingerprint, expected.fingerprint, ID_HASH_BYTES);
    sync_view_destroy(&view);

    theirs.pubsub_topics = &last_two[1];
    theirs.pubsub_topic_count = 1;
    view = view_of(set, &ours, &theirs);
    assert_true(sync_view_is_disjoint(view));
    sync_view_summarise(view, &all, &found);
    assert_int_equal(found.count, 0);
    sync_view_destroy(&view);

    /* a topic that nobody here has heard of is not "all topics" */
    struct span unknown = span_of_text("/waku/2/rs/9/9");
    theirs = (struct sync_scope){.pubsub_topics = &unknown, .pubsub_topic_count = 1};
    view = view_of(set, NULL, &theirs);
    sync_view_summarise(view, &all, &found);
    assert_int_equal(found.count, 0);
    sync_view_destroy(&view);
    sync_set_destroy(&set);
}

static void pruning_in_steps_shows_readers_the_pruned_set_at_once(void **state)
{
    (void)state;
    struct sync_set *set = fill();
    struct sync_range all = range_of(bound_at(0, 0), bound_at(INT64_MAX, 0xFF));
    struct sync_range rest = range_of(bound_at(1250, 0), all.to);
    struct id_summary expected =
            summarise_plainly(records, RECORDS, &rest, (struct plain_scope){.topic = -1});
    size_t pruned = 0;
    size_t step;
    do {
        step = sync_set_prune(set, 1250, 100);
        assert_true(step <= 100);
        pruned += step;
        struct sync_view *view = view_of(set, NULL, NULL);
        struct id_summary found;
        sync_view_summarise(view, &all, &found);
        assert_int_equal(found.count, expected.count);
        assert_memory_equal(found.fingerprint, expected.fingerprint, ID_HASH_BYTES);
        sync_view_destroy(&view);
    } while (step == 100);
    assert_int_equal(pruned, RECORDS - expected.count);
    assert_int_equal(sync_set_count(set), expected.count);
    assert_int_equal(sync_set_covered_from(set), 1250);
    assert_int_equal(sync_set_prune(set, 1250, 100), 0);
    assert_int_equal(sync_set_prune(set, 1, 100), 0);
    assert_int_equal(sync_set_covered_from(set), 1250);

    struct id_record late = make_record(1249, 1, &topics[0], "/a/1/x/proto");
    assert_int_equal(sync_set_insert(set, &late), SYNC_TOO_OLD);
    late.timestamp_ns = 1250;
    assert_int_equal(sync_set_insert(set, &late), SYNC_INSERTED);
    sync_set_destroy(&set);
}

static void when_full_the_oldest_moment_makes_room(void **state)
{
    (void)state;
    struct sync_set *set = create(3);
    struct id_record record[5];
    int64_t times[] = {10, 10, 20, 30, 5};
    for (size_t i = 0; i < 5; i++) {
        record[i] = make_record(times[i], i, &topics[i % 2], "/a/1/x/proto");
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(sync_set_insert(set, &record[i]), SYNC_INSERTED);
    }
    assert_int_equal(sync_set_count(set), 2);
    assert_int_equal(sync_set_evicted(set), 2);
    assert_int_equal(sync_set_covered_from(set), 11);
    struct id_key key = key_of(&record[1]);
    assert_false(sync_set_contains(set, &key));
    key = key_of(&record[2]);
    assert_true(sync_set_contains(set, &key));
    assert_int_equal(sync_set_insert(set, &record[4]), SYNC_TOO_OLD);
    /* of whichever topic: it is the last of these now */
    record[0] = make_record(15, 6, &topics[2], "/a/1/x/proto");
    record[1] = make_record(40, 7, &topics[2], "/a/1/x/proto");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(sync_set_insert(set, &record[i]), SYNC_INSERTED);
    }
    assert_int_equal(sync_set_count(set), 3);
    assert_int_equal(sync_set_covered_from(set), 16);
    sync_set_destroy(&set);
}

static void refuses_times_that_have_no_place_on_the_wire(void **state)
{
    (void)state;
    struct sync_set *set = create(3);
    struct id_record record = make_record(-1, 1, &topics[0], "/a/1/x/proto");
    assert_int_equal(sync_set_insert(set, &record), SYNC_TOO_OLD);
    record.timestamp_ns = INT64_MIN;
    assert_int_equal(sync_set_insert(set, &record), SYNC_TOO_OLD);
    record.timestamp_ns = INT64_MAX;
    assert_int_equal(sync_set_insert(set, &record), SYNC_TOO_OLD);
    record.timestamp_ns = 0;
    assert_int_equal(sync_set_insert(set, &record), SYNC_INSERTED);
    assert_int_equal(sync_set_count(set), 1);
    sync_set_destroy(&set);
}

static void an_id_taken_back_is_gone_and_may_come_again(void **state)
{
    (void)state;
    struct sync_set *set = create(100);
    struct id_record record = make_record(500, 1, &topics[1], "c");
    struct id_record other = make_record(500, 2, &topics[0], "c");
    struct id_key key = key_of(&record);
    assert_false(sync_set_remove(set, &key));
    assert_int_equal(sync_set_insert(set, &record), SYNC_INSERTED);
    assert_int_equal(sync_set_insert(set, &other), SYNC_INSERTED);
    assert_true(sync_set_remove(set, &key));
    assert_false(sync_set_contains(set, &key));
    assert_int_equal(sync_set_count(set), 1);
    assert_false(sync_set_remove(set, &key));
    assert_int_equal(sync_set_insert(set, &record), SYNC_INSERTED);
    assert_int_equal(sync_set_count(set), 2);
    sync_set_destroy(&set);
}

static void assert_gap(const struct sync_set *set, size_t i, int64_t from_ns, int64_t to_ns)
{
    assert_true(i < sync_set_gap_count(set));
    assert_int_equal(sync_set_gap_at(set, i).from_ns, from_ns);
    assert_int_equal(sync_set_gap_at(set, i).to_ns, to_ns);
}

static void joins_and_cuts_the_times_it_may_be_missing_something_of(void **state)
{
    (void)state;
    struct sync_set *set = create(3);
    sync_set_mark_incomplete(set, 100, 200);
    sync_set_mark_incomplete(set, 300, 400);
    sync_set_mark_incomplete(set, 5, 4); /* none */
    assert_int_equal(sync_set_gap_count(set), 2);
    sync_set_mark_incomplete(set, 201, 250);
    assert_int_equal(sync_set_gap_count(set), 2);
    assert_gap(set, 0, 100, 250);
    sync_set_mark_incomplete(set, 240, 310);
    assert_int_equal(sync_set_gap_count(set), 1);
    assert_gap(set, 0, 100, 400);
    sync_set_mark_complete(set, 150, 160);
    assert_gap(set, 0, 100, 149);
    assert_gap(set, 1, 161, 400);
    sync_set_mark_complete(set, 0, 161);
    assert_int_equal(sync_set_gap_count(set), 1);
    assert_gap(set, 0, 162, 400);
    (void)sync_set_prune(set, 200, 10);
    assert_gap(set, 0, 200, 400);
    sync_set_mark_complete(set, INT64_MIN, INT64_MAX);
    assert_int_equal(sync_set_gap_count(set), 0);
    sync_set_destroy(&set);
}

/* The clock was ahead for a while. */
static void covers_again_what_was_pruned_too_early_and_knows_that_it_is_missing(void **state)
{
    (void)state;
    struct sync_set *set = create(100);
    struct id_record record = make_record(5000, 1, &topics[0], "c");
    sync_set_prune(set, 1000000, SIZE_MAX);
    assert_int_equal(sync_set_insert(set, &record), SYNC_TOO_OLD);
    sync_set_uncover(set, 4000);
    assert_int_equal(sync_set_covered_from(set), 4000);
    assert_gap(set, 0, 4000, 999999);
    assert_int_equal(sync_set_insert(set, &record), SYNC_INSERTED);
    sync_set_uncover(set, 4500); /* it is covered */
    assert_int_equal(sync_set_covered_from(set), 4000);
    sync_set_destroy(&set);
}

static void joins_the_two_closest_gaps_when_there_are_too_many(void **state)
{
    (void)state;
    struct sync_set *set = create(3);
    for (int64_t i = 0; i < 64; i++) {
        /* the last two are the closest */
        sync_set_mark_incomplete(set, i * 100 - (i == 63), i * 100);
    }
    assert_int_equal(sync_set_gap_count(set), 64);
    sync_set_mark_incomplete(set, 10000, 10000);
    assert_int_equal(sync_set_gap_count(set), 64);
    assert_gap(set, 61, 6100, 6100);
    assert_gap(set, 62, 6200, 6300);
    assert_gap(set, 63, 10000, 10000);
    sync_set_mark_incomplete(set, INT64_MAX - 5, INT64_MAX);
    sync_set_mark_incomplete(set, INT64_MIN, INT64_MAX);
    assert_int_equal(sync_set_gap_count(set), 1);
    sync_set_destroy(&set);
}

static void never_forgets_a_gap_however_many_there_are(void **state)
{
    (void)state;
    struct sync_set *set = create(3);
    for (int64_t i = 0; i < 1000; i++) {
        /* wider apart as they go, so that the first ones are joined */
        sync_set_mark_incomplete(set, i * i * 10, i * i * 10 + 1);
    }
    assert_true(sync_set_gap_count(set) <= 64);
    for (int64_t i = 0; i < 1000; i++) {
        bool is_covered = false;
        for (size_t j = 0; j < sync_set_gap_count(set); j++) {
            struct sync_gap gap = sync_set_gap_at(set, j);
            is_covered = is_covered || (gap.from_ns <= i * i * 10 && i * i * 10 + 1 <= gap.to_ns);
        }
        assert_true(is_covered);
    }
    assert_gap(set, sync_set_gap_count(set) - 1, 9980010, 9980011);
    sync_set_destroy(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(agrees_with_a_plain_scan_in_every_scope),
            cmocka_unit_test(shows_the_ids_of_all_topics_in_one_order),
            cmocka_unit_test(takes_an_id_once),
            cmocka_unit_test(the_scope_of_a_view_is_what_both_scopes_name),
            cmocka_unit_test(pruning_in_steps_shows_readers_the_pruned_set_at_once),
            cmocka_unit_test(when_full_the_oldest_moment_makes_room),
            cmocka_unit_test(refuses_times_that_have_no_place_on_the_wire),
            cmocka_unit_test(an_id_taken_back_is_gone_and_may_come_again),
            cmocka_unit_test(covers_again_what_was_pruned_too_early_and_knows_that_it_is_missing),
            cmocka_unit_test(joins_and_cuts_the_times_it_may_be_missing_something_of),
            cmocka_unit_test(joins_the_two_closest_gaps_when_there_are_too_many),
            cmocka_unit_test(never_forgets_a_gap_however_many_there_are),
    };
    return cmocka_run_group_tests(tests, name_topics, NULL);
}
