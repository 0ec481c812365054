/* SPDX-License-Identifier: MIT */

/* Both engines, one behaviour: every case runs on each, against a naive model. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "tests/support/archive_fixture.h"

static const char *kind;
static const struct archive_options *open_options;

static int open_archive(void **state)
{
    struct fixture_archive *fixture = malloc(sizeof(*fixture));
    fixture_open(fixture, kind, open_options);
    *state = fixture;
    return 0;
}

static int close_archive(void **state)
{
    struct fixture_archive *fixture = *state;
    fixture_close(fixture);
    free(fixture);
    return 0;
}

/* Puts them in batches and adds them to the model. */
static void put_all(struct fixture_archive *fixture, struct model *model,
        const struct fixture_message messages[], size_t count)
{
    enum {
        BATCH = 32
    };
    struct envelope *batch[BATCH];
    for (size_t done = 0; done < count;) {
        size_t size = count - done < BATCH ? count - done : BATCH;
        for (size_t i = 0; i < size; i++) {
            batch[i] = fixture_envelope(&messages[done + i]);
            model_add(model, &messages[done + i], batch[i]->hash);
        }
        struct archive_put_result result;
        assert_int_equal(archive_put(fixture->archive, batch, size, &result), STATUS_OK);
        assert_int_equal(result.stored, size);
        for (size_t i = 0; i < size; i++) {
            envelope_unref(batch[i]);
        }
        done += size;
    }
}

/* count messages, many with equal timestamps, in an order that is not that of time. */
static void fill(struct fixture_archive *fixture, struct model *model, unsigned count)
{
    struct fixture_message *messages = calloc(count, sizeof(*messages));
    for (unsigned i = 0; i < count; i++) {
        unsigned n = i * 17 % count;
        messages[i] = (struct fixture_message){.number = n + 1000,
                .timestamp_ns = 1700000000000000000 + (n < count / 2 ? 5 : n / 3),
                .pubsub = n % FIXTURE_PUBSUB_TOPICS,
                .content = n % FIXTURE_CONTENT_TOPICS,
                .payload_bytes = 8 + n % 50};
    }
    put_all(fixture, model, messages, count);
    free(messages);
}

static void assert_same_page(const struct fixture_page *a, const struct fixture_page *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_memory_equal(a->hashes[i], b->hashes[i], MESSAGE_HASH_BYTES);
    }
    assert_int_equal(a->has_cursor, b->has_cursor);
    if (a->has_cursor) {
        assert_memory_equal(a->cursor, b->cursor, MESSAGE_HASH_BYTES);
    }
}

/* One page from both; true when there is a next one, whose cursor is then in cursor. */
static bool compare_page(struct archive_reader *reader, const struct model *model,
        const struct archive_query *query, uint8_t cursor[MESSAGE_HASH_BYTES])
{
    struct fixture_page expected;
    struct fixture_page page;
    assert_true(model_query(model, query, &expected));
    assert_int_equal(fixture_query(reader, query, &page), STATUS_OK);
    assert_same_page(&page, &expected);
    bool has_next = page.has_cursor;
    memcpy(cursor, page.cursor, MESSAGE_HASH_BYTES);
    fixture_page_free(&page);
    fixture_page_free(&expected);
    return has_next;
}

static void compare_all_pages(
        struct archive_reader *reader, const struct model *model, struct archive_query query)
{
    uint8_t cursor[MESSAGE_HASH_BYTES];
    while (compare_page(reader, model, &query, cursor)) {
        query.has_cursor = true;
        query.cursor = span_of(cursor, sizeof(cursor));
    }
}

static void pages_every_size_in_both_directions_without_a_gap_or_a_repeat(void **state)
{
    struct fixture_archive *fixture = *state;
    struct model model = {0};
    fill(fixture, &model, 35);
    for (uint64_t limit = 1; limit <= 37; limit++) {
        compare_all_pages(fixture->reader, &model, (struct archive_query){.limit = limit});
        compare_all_pages(fixture->reader, &model,
                (struct archive_query){.limit = limit, .is_backward = true});
    }
    model_free(&model);
}

static void goes_on_from_every_message_as_cursor(void **state)
{
    struct fixture_archive *fixture = *state;
    struct model model = {0};
    fill(fixture, &model, 35);
    uint8_t next[MESSAGE_HASH_BYTES];
    for (size_t i = 0; i < model.count; i++) {
        for (uint64_t limit = 1; limit <= 36; limit++) {
            struct archive_query query = {.limit = limit,
                    .has_cursor = true,
                    .cursor = span_of(model.rows[i].hash, MESSAGE_HASH_BYTES)};
            compare_page(fixture->reader, &model, &query, next);
            query.is_backward = true;
            compare_page(fixture->reader, &model, &query, next);
        }
    }
    model_free(&model);
}

static void filters_by_topics_and_times_as_the_model_does(void **state)
{
    struct fixture_archive *fixture = *state;
    struct model model = {0};
    fill(fixture, &model, 120);
    struct span topics[] = {fixture_content_topic(2), fixture_content_topic(0),
            span_of_text("/not/1/there/proto"), fixture_content_topic(2)};
    int64_t start = 1700000000000000000;
    for (unsigned i = 0; i < 256; i++) {
        struct archive_query query = {.limit = i % 2 == 0 ? 3 : 50,
                .is_backward = (i & 2) != 0,
                .content_topics = topics,
                .content_topic_count = (i >> 2) % 5,
                .has_time_start = (i & 32) != 0,
                .time_start_ns = start + 5,
                .has_time_end = (i & 64) != 0,
                .time_end_ns = start + 30};
        if ((i & 128) != 0) {
            query.pubsub_topic = fixture_pubsub_topic(i % FIXTURE_PUBSUB_TOPICS);
        }
        compare_all_pages(fixture->reader, &model, query);
    }
    struct archive_query unknown = {.pubsub_topic = span_of_text("/waku/2/rs/9/9")};
    compare_all_pages(fixture->reader, &model, unknown);
    model_free(&model);
}

static void takes_both_ends_of_a_time_range_as_inclusive(void **state)
{
    struct fixture_archive *fixture = *state;
    const int64_t times[] = {INT64_MIN, -1, 0, 1, 10, 11, INT64_MAX};
    struct model model = {0};
    for (unsigned i = 0; i < 7; i++) {
        struct fixture_message message = {
                .number = i, .timestamp_ns = times[i], .payload_bytes = 8};
        uint8_t hash[MESSAGE_HASH_BYTES];
        fixture_put(fixture->archive, &message, hash);
        model_add(&model, &message, hash);
    }
    for (unsigned i = 0; i < 7; i++) {
        for (unsigned j = 0; j < 7; j++) {
            struct archive_query query = {.limit = 2,
                    .is_backward = (i + j) % 2 != 0,
                    .has_time_start = true,
                    .time_start_ns = times[i],
                    .has_time_end = true,
                    .time_end_ns = times[j]};
            compare_all_pages(fixture->reader, &model, query);
        }
    }
    compare_all_pages(fixture->reader, &model, (struct archive_query){.limit = 1});
    compare_all_pages(
            fixture->reader, &model, (struct archive_query){.limit = 1, .is_backward = true});
    model_free(&model);
}

static void finds_the_hashes_asked_for_once_each_and_in_order(void **state)
{
    struct fixture_archive *fixture = *state;
    struct model model = {0};
    fill(fixture, &model, 40);
    uint8_t unknown[MESSAGE_HASH_BYTES] = {1};
    struct span hashes[32];
    for (unsigned i = 0; i < 30; i++) {
        hashes[i] = span_of(model.rows[(i * 7) % 25].hash, MESSAGE_HASH_BYTES);
    }
    hashes[30] = span_of(unknown, sizeof(unknown));
    hashes[31] = hashes[3];
    for (uint64_t limit = 1; limit < 30; limit += 4) {
        struct archive_query query = {.hashes = hashes, .hash_count = 32, .limit = limit};
        compare_all_pages(fixture->reader, &model, query);
        query.is_backward = true;
        compare_all_pages(fixture->reader, &model, query);
        query.has_time_start = true;
        query.time_start_ns = 1700000000000000006;
        compare_all_pages(fixture->reader, &model, query);
    }
    model_free(&model);
}

/* Pages of three, each a list of places in hashes, -1: no more. */
static void assert_pages(struct archive_reader *reader, bool is_backward, const int pages[4][3],
        uint8_t hashes[10][MESSAGE_HASH_BYTES])
{
    struct archive_query query = {.limit = 3, .is_backward = is_backward};
    uint8_t cursor[MESSAGE_HASH_BYTES];
    for (int number = 0; number < 4; number++) {
        struct fixture_page page;
        assert_int_equal(fixture_query(reader, &query, &page), STATUS_OK);
        assert_int_equal(page.count, number < 3 ? 3 : 1);
        assert_int_equal(page.has_cursor, number < 3);
        for (size_t i = 0; i < page.count; i++) {
            assert_memory_equal(page.hashes[i], hashes[pages[number][i]], MESSAGE_HASH_BYTES);
        }
        memcpy(cursor, page.cursor, sizeof(cursor));
        query.has_cursor = true;
        query.cursor = span_of(cursor, sizeof(cursor));
        fixture_page_free(&page);
    }
}

/* Ten messages in order of time; the pages are written out. */
static void pages_ten_messages_by_three_as_written_here(void **state)
{
    struct fixture_archive *fixture = *state;
    uint8_t hashes[10][MESSAGE_HASH_BYTES];
    for (unsigned i = 0; i < 10; i++) {
        struct fixture_message message = {.number = i, .timestamp_ns = 100 + i, .payload_bytes = 8};
        fixture_put(fixture->archive, &message, hashes[i]);
    }
    static const int forward[4][3] = {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, -1, -1}};
    static const int backward[4][3] = {{7, 8, 9}, {4, 5, 6}, {1, 2, 3}, {0, -1, -1}};
    assert_pages(fixture->reader, false, forward, hashes);
    assert_pages(fixture->reader, true, backward, hashes);
}

static void has_a_page_of_twenty_by_default_and_of_a_hundred_at_most(void **state)
{
    struct fixture_archive *fixture = *state;
    struct model model = {0};
    fill(fixture, &model, 130);
    static const struct {
        uint64_t limit;
        uint64_t max_limit;
        size_t count;
    } cases[] = {{0, 0, 20}, {100, 0, 100}, {101, 0, 100}, {UINT64_MAX, 0, 100}, {0, 10, 10},
            {1000, 125, 125}, {1000, UINT64_MAX, 130}, {130, 1000, 130}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct archive_query query = {.limit = cases[i].limit, .max_limit = cases[i].max_limit};
        struct fixture_page page;
        assert_int_equal(fixture_query(fixture->reader, &query, &page), STATUS_OK);
        assert_int_equal(page.count, cases[i].count);
        assert_int_equal(page.has_cursor, cases[i].count < 130);
        fixture_page_free(&page);
    }
    model_free(&model);
}

static enum status query_status(struct fixture_archive *fixture, const struct archive_query *query)
{
    struct fixture_page page;
    enum status status = fixture_query(fixture->reader, query, &page);
    fixture_page_free(&page);
    return status;
}

static void refuses_cursors_that_are_unknown_zero_or_not_32_bytes(void **state)
{
    struct fixture_archive *fixture = *state;
    struct model model = {0};
    fill(fixture, &model, 3);
    uint8_t bytes[MESSAGE_HASH_BYTES + 1] = {0};
    struct archive_query query = {.has_cursor = true, .cursor = span_of(bytes, 32)};
    assert_int_equal(query_status(fixture, &query), STATUS_BAD_CURSOR);
    bytes[31] = 1;
    assert_int_equal(query_status(fixture, &query), STATUS_BAD_CURSOR);
    query.cursor.length = 31;
    assert_int_equal(query_status(fixture, &query), STATUS_BAD_CURSOR);
    query.cursor.length = 33;
    assert_int_equal(query_status(fixture, &query), STATUS_BAD_CURSOR);
    query.cursor.length = 0;
    assert_int_equal(query_status(fixture, &query), STATUS_BAD_CURSOR);
    model_free(&model);
}

static void refuses_hashes_together_with_a_content_filter_and_short_hashes(void **state)
{
    struct fixture_archive *fixture = *state;
    uint8_t bytes[MESSAGE_HASH_BYTES] = {1};
    struct span hash = span_of(bytes, sizeof(bytes));
    struct span topic = fixture_content_topic(0);
    struct archive_query query = {.hashes = &hash, .hash_count = 1};
    assert_int_equal(query_status(fixture, &query), STATUS_OK);
    query.pubsub_topic = fixture_pubsub_topic(0);
    assert_int_equal(query_status(fixture, &query), STATUS_BAD_QUERY);
    query.pubsub_topic = (struct span){0};
    query.content_topics = &topic;
    query.content_topic_count = 1;
    assert_int_equal(query_status(fixture, &query), STATUS_BAD_QUERY);
    query.content_topic_count = 0;
    hash.length = 31;
    assert_int_equal(query_status(fixture, &query), STATUS_BAD_QUERY);
}

static void gives_up_at_the_deadline(void **state)
{
    struct fixture_archive *fixture = *state;
    struct model model = {0};
    fill(fixture, &model, 3);
    struct archive_query query = {.deadline_ns = 1};
    assert_int_equal(query_status(fixture, &query), STATUS_TIMED_OUT);
    query.deadline_ns = clock_monotonic_ns() + 3600ULL * NANOSECONDS_PER_SECOND;
    assert_int_equal(query_status(fixture, &query), STATUS_OK);
    model_free(&model);
}

static void gives_up_what_nobody_waits_for(void **state)
{
    struct fixture_archive *fixture = *state;
    struct model model = {0};
    atomic_bool abandoned;
    atomic_init(&abandoned, false);
    fill(fixture, &model, 60);
    struct archive_query query = {.abandoned = &abandoned};
    assert_int_equal(query_status(fixture, &query), STATUS_OK);
    atomic_store(&abandoned, true);
    assert_int_equal(query_status(fixture, &query), STATUS_TIMED_OUT);
    struct span hash = span_of(model.rows[0].hash, MESSAGE_HASH_BYTES);
    query.hashes = &hash;
    query.hash_count = 1;
    assert_int_equal(query_status(fixture, &query), STATUS_TIMED_OUT);
    model_free(&model);
}

static enum status refuse(void *context, const struct archive_row *row)
{
    (void)row;
    ++*(size_t *)context;
    return STATUS_RESET;
}

static void ends_the_query_with_the_status_of_the_sink(void **state)
{
    struct fixture_archive *fixture = *state;
    struct model model = {0};
    fill(fixture, &model, 3);
    size_t calls = 0;
    struct archive_page page;
    struct archive_query query = {.include_data = true};
    assert_int_equal(archive_query(fixture->reader, &query, refuse, &calls, &page), STATUS_RESET);
    assert_int_equal(calls, 1);
    model_free(&model);
}

struct data_check {
    struct envelope **expected;
    size_t count;
    bool has_data;
};

static enum status check_data(void *context, const struct archive_row *row)
{
    struct data_check *check = context;
    const struct envelope *envelope = check->expected[check->count++];
    assert_memory_equal(row->hash.bytes, envelope->hash, MESSAGE_HASH_BYTES);
    assert_true(row->timestamp_ns == envelope->timestamp_ns);
    if (!check->has_data) {
        assert_int_equal(row->message.length, 0);
        assert_int_equal(row->pubsub_topic.length, 0);
        return STATUS_OK;
    }
    assert_true(span_equal(row->message, envelope->message));
    assert_true(span_equal(row->pubsub_topic, envelope->topic->name));
    return STATUS_OK;
}

static void gives_back_the_bytes_that_were_put_if_asked_for(void **state)
{
    struct fixture_archive *fixture = *state;
    struct envelope *envelopes[8];
    static const size_t sizes[8] = {8, 9, 100, 1000, 4096, 10240, 65536, 150000};
    for (unsigned i = 0; i < 8; i++) {
        struct fixture_message message = {.number = i + 77,
                .timestamp_ns = i + 1,
                .pubsub = i % FIXTURE_PUBSUB_TOPICS,
                .content = i % FIXTURE_CONTENT_TOPICS,
                .payload_bytes = sizes[i]};
        envelopes[i] = fixture_envelope(&message);
    }
    struct archive_put_result result;
    assert_int_equal(archive_put(fixture->archive, envelopes, 8, &result), STATUS_OK);
    assert_int_equal(result.stored, 8);
    for (int with_data = 0; with_data < 2; with_data++) {
        struct data_check check = {.expected = envelopes, .has_data = with_data == 1};
        struct archive_query query = {.include_data = with_data == 1};
        struct archive_page page;
        assert_int_equal(
                archive_query(fixture->reader, &query, check_data, &check, &page), STATUS_OK);
        assert_int_equal(check.count, 8);
    }
    for (unsigned i = 0; i < 8; i++) {
        envelope_unref(envelopes[i]);
    }
}

static enum status check_topics(void *context, const struct archive_row *row)
{
    struct data_check *check = context;
    const struct envelope *envelope = check->expected[check->count++];
    assert_memory_equal(row->hash.bytes, envelope->hash, MESSAGE_HASH_BYTES);
    assert_true(span_equal(row->pubsub_topic, envelope->topic->name));
    assert_true(span_equal(row->content_topic, envelope->content_topic));
    assert_true(check->has_data ? span_equal(row->message, envelope->message)
                                : row->message.length == 0);
    return STATUS_OK;
}

static void shows_the_topics_with_and_without_the_messages(void **state)
{
    struct fixture_archive *fixture = *state;
    struct envelope *envelopes[8];
    for (unsigned i = 0; i < 8; i++) {
        struct fixture_message message = {.number = i,
                .timestamp_ns = i + 1,
                .pubsub = i % FIXTURE_PUBSUB_TOPICS,
                .content = i % FIXTURE_CONTENT_TOPICS,
                .payload_bytes = 50};
        envelopes[i] = fixture_envelope(&message);
    }
    struct archive_put_result result;
    assert_int_equal(archive_put(fixture->archive, envelopes, 8, &result), STATUS_OK);
    for (int with_data = 0; with_data < 2; with_data++) {
        struct data_check check = {.expected = envelopes, .has_data = with_data == 1};
        struct archive_query query = {.include_topics = true, .include_data = with_data == 1};
        struct archive_page page;
        assert_int_equal(
                archive_query(fixture->reader, &query, check_topics, &check, &page), STATUS_OK);
        assert_int_equal(check.count, 8);
    }
    for (unsigned i = 0; i < 8; i++) {
        envelope_unref(envelopes[i]);
    }
}

static void counts_duplicates_and_stores_each_message_once(void **state)
{
    struct fixture_archive *fixture = *state;
    struct envelope *batch[6];
    for (unsigned i = 0; i < 3; i++) {
        struct fixture_message message = {.number = i, .timestamp_ns = 5, .payload_bytes = 20};
        batch[i] = fixture_envelope(&message);
        batch[3 + i] = batch[i];
    }
    struct archive_put_result result;
    struct archive_totals totals;
    assert_int_equal(archive_put(fixture->archive, batch, 6, &result), STATUS_OK);
    assert_int_equal(result.stored, 3);
    assert_int_equal(result.duplicates, 3);
    assert_int_equal(archive_put(fixture->archive, batch, 3, &result), STATUS_OK);
    assert_int_equal(result.stored, 0);
    assert_int_equal(result.duplicates, 3);
    assert_int_equal(archive_put(fixture->archive, batch, 0, &result), STATUS_OK);
    assert_int_equal(archive_totals(fixture->archive, &totals), STATUS_OK);
    assert_int_equal(totals.count, 3);
    for (unsigned i = 0; i < 3; i++) {
        envelope_unref(batch[i]);
    }
}

static void stores_records_that_have_no_envelope(void **state)
{
    struct fixture_archive *fixture = *state;
    struct fixture_message message = {
            .number = 4, .timestamp_ns = 9, .pubsub = 1, .content = 2, .payload_bytes = 300};
    struct envelope *envelope = fixture_envelope(&message);
    struct archive_record record = archive_record_of(envelope);
    record.envelope = NULL;
    struct archive_put_result result;
    assert_int_equal(archive_put_records(fixture->archive, &record, 1, &result), STATUS_OK);
    assert_int_equal(result.stored, 1);
    struct span topic = fixture_content_topic(2);
    struct archive_query query = {.include_data = true,
            .pubsub_topic = fixture_pubsub_topic(1),
            .content_topics = &topic,
            .content_topic_count = 1};
    struct data_check check = {.expected = &envelope, .has_data = true};
    struct archive_page page;
    assert_int_equal(archive_query(fixture->reader, &query, check_data, &check, &page), STATUS_OK);
    assert_int_equal(page.count, 1);
    envelope_unref(envelope);
}

static void knows_its_totals(void **state)
{
    struct fixture_archive *fixture = *state;
    struct archive_totals totals;
    assert_int_equal(archive_totals(fixture->archive, &totals), STATUS_OK);
    assert_int_equal(totals.count, 0);
    assert_true(totals.oldest_ns == 0 && totals.newest_ns == 0);
    struct model model = {0};
    fill(fixture, &model, 60);
    assert_int_equal(archive_totals(fixture->archive, &totals), STATUS_OK);
    assert_int_equal(totals.count, 60);
    assert_true(totals.oldest_ns == 1700000000000000005);
    assert_true(totals.newest_ns == 1700000000000000019);
    assert_true(totals.message_bytes > 1200);
    assert_true(totals.size_bytes >= totals.message_bytes);
    model_free(&model);
}

static void prunes_by_age_in_steps_of_the_size_asked_for(void **state)
{
    struct fixture_archive *fixture = *state;
    struct model model = {0};
    fill(fixture, &model, 60);
    struct archive_prune_result result = {.removed = 1};
    assert_int_equal(
            archive_prune(fixture->archive, &archive_prune_nothing, 100, &result), STATUS_OK);
    assert_int_equal(result.removed, 0);
    struct archive_prune_limits limits = archive_prune_nothing;
    limits.oldest_ns = 1700000000000000012;
    size_t sum = 0;
    do {
        assert_int_equal(archive_prune(fixture->archive, &limits, 7, &result), STATUS_OK);
        assert_true(result.removed <= 7);
        sum += result.removed;
    } while (result.has_more);
    model_prune(&model, limits.oldest_ns);
    assert_int_equal(sum, 60 - model.count);
    compare_all_pages(fixture->reader, &model, (struct archive_query){.limit = 7});
    model_free(&model);
}

static void prunes_the_oldest_beyond_a_count_and_beyond_bytes(void **state)
{
    struct fixture_archive *fixture = *state;
    struct model model = {0};
    fill(fixture, &model, 60);
    struct archive_prune_limits limits = archive_prune_nothing;
    limits.max_count = 25;
    struct archive_prune_result result;
    assert_int_equal(archive_prune(fixture->archive, &limits, 1000, &result), STATUS_OK);
    assert_int_equal(result.removed, 35);
    struct archive_totals totals;
    assert_int_equal(archive_totals(fixture->archive, &totals), STATUS_OK);
    assert_int_equal(totals.count, 25);
    limits.max_count = UINT64_MAX;
    limits.max_bytes = totals.message_bytes / 2;
    assert_int_equal(archive_prune(fixture->archive, &limits, 1000, &result), STATUS_OK);
    assert_true(result.removed > 5 && result.removed < 20);
    assert_int_equal(archive_totals(fixture->archive, &totals), STATUS_OK);
    assert_true(totals.message_bytes <= limits.max_bytes);
    assert_int_equal(totals.count, 25 - result.removed);

    /* What is left are the newest. */
    struct archive_query query = {.limit = totals.count, .is_backward = true};
    uint8_t cursor[MESSAGE_HASH_BYTES];
    struct fixture_page page;
    struct fixture_page expected;
    assert_int_equal(fixture_query(fixture->reader, &query, &page), STATUS_OK);
    assert_true(model_query(&model, &query, &expected));
    assert_false(page.has_cursor);
    expected.has_cursor = false;
    assert_same_page(&page, &expected);
    memcpy(cursor, page.cursor, sizeof(cursor));
    fixture_page_free(&page);
    fixture_page_free(&expected);
    model_free(&model);
}

enum {
    STAYING = 300,
    STAY_FROM = 1000 /* their timestamps */
};

/* A message among and one behind those that stay, and ten of the old ones pruned. */
static void disturb(struct archive *archive, unsigned round)
{
    struct fixture_message message = {.number = 20000 + round,
            .timestamp_ns = STAY_FROM + 2 + (round % 2) * 1000,
            .payload_bytes = 8};
    fixture_put(archive, &message, NULL);
    struct archive_prune_limits limits = archive_prune_nothing;
    limits.oldest_ns = round * 5 < 150 ? round * 5 : 150;
    struct archive_prune_result result;
    assert_int_equal(archive_prune(archive, &limits, 10, &result), STATUS_OK);
}

static void count_staying(
        const struct fixture_page *page, const struct model_row *staying, unsigned seen[STAYING])
{
    for (size_t i = 0; i < page->count; i++) {
        for (unsigned j = 0; j < STAYING; j++) {
            seen[j] += memcmp(page->hashes[i], staying[j].hash, MESSAGE_HASH_BYTES) == 0;
        }
    }
}

static void page_through_disturbed(
        struct fixture_archive *fixture, bool is_backward, const struct model_row *staying)
{
    unsigned seen[STAYING] = {0};
    uint8_t cursor[MESSAGE_HASH_BYTES];
    struct archive_query query = {.limit = 9,
            .is_backward = is_backward,
            .has_time_start = true,
            .time_start_ns = STAY_FROM};
    bool has_next = true;
    for (unsigned round = 0; has_next; round++) {
        struct fixture_page page;
        assert_int_equal(fixture_query(fixture->reader, &query, &page), STATUS_OK);
        count_staying(&page, staying, seen);
        has_next = page.has_cursor;
        memcpy(cursor, page.cursor, sizeof(cursor));
        query.has_cursor = true;
        query.cursor = span_of(cursor, sizeof(cursor));
        fixture_page_free(&page);
        disturb(fixture->archive, round + (is_backward ? 5000 : 0));
    }
    for (unsigned j = 0; j < STAYING; j++) {
        assert_int_equal(seen[j], 1);
    }
}

/* Pages through in steps while older messages are pruned and newer ones come in. */
static void shows_what_stays_exactly_once_while_others_come_and_go(void **state)
{
    struct fixture_archive *fixture = *state;
    struct fixture_message messages[200 + STAYING];
    struct model model = {0};
    for (unsigned i = 0; i < 200 + STAYING; i++) {
        messages[i] = (struct fixture_message){.number = i,
                .timestamp_ns = i < 200 ? i : STAY_FROM + (i - 200) / 100,
                .payload_bytes = 8};
    }
    put_all(fixture, &model, messages, 200 + STAYING);
    page_through_disturbed(fixture, false, model.rows + 200);
    page_through_disturbed(fixture, true, model.rows + 200);
    model_free(&model);
}

static int compare_hashes(const void *a, const void *b)
{
    return memcmp(a, b, MESSAGE_HASH_BYTES);
}

static void union_of_pages_is_the_set_when_half_share_a_timestamp(void **state)
{
    struct fixture_archive *fixture = *state;
    enum {
        COUNT = 10510,
        EQUAL = 5000,
        BATCH = 256
    };
    uint8_t(*all)[MESSAGE_HASH_BYTES] = malloc(COUNT * sizeof(*all));
    struct fixture_message *messages = calloc(COUNT, sizeof(*messages));
    struct model model = {0};
    for (unsigned i = 0; i < COUNT; i++) {
        messages[i] = (struct fixture_message){
                .number = i, .timestamp_ns = i < EQUAL ? 5000000 : 1000 * i, .payload_bytes = 8};
    }
    put_all(fixture, &model, messages, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        memcpy(all[i], model.rows[i].hash, MESSAGE_HASH_BYTES);
    }
    free(messages);
    model_free(&model);
    qsort(all, COUNT, sizeof(*all), compare_hashes);
    static const uint64_t limits[] = {13, 100, 4999, 5000, 5001};
    for (unsigned i = 0; i < 10; i++) {
        uint8_t(*seen)[MESSAGE_HASH_BYTES] = calloc(COUNT, sizeof(*seen));
        size_t count = 0;
        uint8_t cursor[MESSAGE_HASH_BYTES];
        struct archive_query query = {
                .limit = limits[i / 2], .max_limit = COUNT, .is_backward = i % 2 == 1};
        bool has_next = true;
        while (has_next) {
            struct fixture_page page;
            assert_int_equal(fixture_query(fixture->reader, &query, &page), STATUS_OK);
            assert_true(count + page.count <= COUNT);
            memcpy(seen + count, page.hashes, page.count * sizeof(*seen));
            count += page.count;
            has_next = page.has_cursor;
            memcpy(cursor, page.cursor, sizeof(cursor));
            query.has_cursor = true;
            query.cursor = span_of(cursor, sizeof(cursor));
            fixture_page_free(&page);
        }
        qsort(seen, count, sizeof(*seen), compare_hashes);
        assert_int_equal(count, COUNT);
        assert_memory_equal(seen, all, COUNT * sizeof(*all));
        free(seen);
    }
    free(all);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_archive, close_archive)

static const struct CMUnitTest tests[] = {
        CASE(pages_every_size_in_both_directions_without_a_gap_or_a_repeat),
        CASE(goes_on_from_every_message_as_cursor),
        CASE(filters_by_topics_and_times_as_the_model_does),
        CASE(takes_both_ends_of_a_time_range_as_inclusive),
        CASE(finds_the_hashes_asked_for_once_each_and_in_order),
        CASE(pages_ten_messages_by_three_as_written_here),
        CASE(has_a_page_of_twenty_by_default_and_of_a_hundred_at_most),
        CASE(refuses_cursors_that_are_unknown_zero_or_not_32_bytes),
        CASE(refuses_hashes_together_with_a_content_filter_and_short_hashes),
        CASE(gives_up_at_the_deadline),
        CASE(gives_up_what_nobody_waits_for),
        CASE(ends_the_query_with_the_status_of_the_sink),
        CASE(gives_back_the_bytes_that_were_put_if_asked_for),
        CASE(shows_the_topics_with_and_without_the_messages),
        CASE(counts_duplicates_and_stores_each_message_once),
        CASE(stores_records_that_have_no_envelope),
        CASE(knows_its_totals),
        CASE(prunes_by_age_in_steps_of_the_size_asked_for),
        CASE(prunes_the_oldest_beyond_a_count_and_beyond_bytes),
        CASE(shows_what_stays_exactly_once_while_others_come_and_go),
        CASE(union_of_pages_is_the_set_when_half_share_a_timestamp),
};

int main(void)
{
    /* Tiny segment files, so that every case crosses many of them. */
    static const struct archive_options tiny = {.segment_bytes = 4096};
    int failures = 0;
    kind = "memory";
    failures += cmocka_run_group_tests_name("memory", tests, NULL, NULL);
    kind = "sqlite-memory";
    failures += cmocka_run_group_tests_name("sqlite in memory", tests, NULL, NULL);
    kind = "sqlite-disk";
    failures += cmocka_run_group_tests_name("sqlite on disk", tests, NULL, NULL);
    open_options = &tiny;
    failures += cmocka_run_group_tests_name("sqlite on disk, tiny segments", tests, NULL, NULL);
    return failures;
}
