/* SPDX-License-Identifier: MIT */
#include <sluice.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/api_fixture.h"

/* include/sluice.h: pages of the node's own archive, with both engines. */

enum {
    MESSAGES = 45
};

#define CHAT  "/test/1/chat/plain"
#define OTHER "/test/1/other/plain"

static int64_t base_ns; /* of message 0; the others follow, a millisecond apart */

/* What a page callback leaves behind, written before pages is raised. */
struct box {
    atomic_size_t pages;
    enum sluice_result result;
    char text[300];
    size_t count;
    int numbers[SLUICE_PAGE_MAX];
    uint8_t hashes[SLUICE_PAGE_MAX][SLUICE_HASH_BYTES];
    bool has_cursor;
    bool has_envelopes;
    uint8_t cursor[SLUICE_HASH_BYTES];
    struct sluice_envelope *kept;
};

static int number_of(const struct sluice_envelope *envelope)
{
    char text[32];
    struct sluice_bytes payload = sluice_envelope_payload(envelope);
    assert_true(payload.size < sizeof(text));
    memcpy(text, payload.data, payload.size);
    text[payload.size] = '\0';
    return atoi(text);
}

static void check_envelope(const struct sluice_envelope *envelope, const uint8_t *hash)
{
    int number = number_of(envelope);
    struct sluice_bytes topic = sluice_envelope_pubsub_topic(envelope);
    struct sluice_bytes content = sluice_envelope_content_topic(envelope);
    const char *expected = number % 3 == 0 ? OTHER : CHAT;
    assert_int_equal(topic.size, strlen(API_TOPIC));
    assert_memory_equal(topic.data, API_TOPIC, topic.size);
    assert_int_equal(content.size, strlen(expected));
    assert_memory_equal(content.data, expected, content.size);
    assert_int_equal(sluice_envelope_timestamp(envelope), base_ns + number * INT64_C(1000000));
    assert_memory_equal(sluice_envelope_hash(envelope).data, hash, SLUICE_HASH_BYTES);
    assert_false(sluice_envelope_is_ephemeral(envelope));
    assert_true(sluice_envelope_message(envelope).size > content.size);
}

static void take_page(void *context, const struct sluice_page *page)
{
    struct box *box = context;
    box->result = page->result;
    snprintf(box->text, sizeof(box->text), "%s", page->text);
    box->count = page->count;
    box->has_cursor = page->cursor != NULL;
    box->has_envelopes = page->envelopes != NULL;
    if (page->cursor != NULL) {
        memcpy(box->cursor, page->cursor, SLUICE_HASH_BYTES);
    }
    memcpy(box->hashes, page->hashes, page->count * SLUICE_HASH_BYTES);
    for (size_t i = 0; page->envelopes != NULL && i < page->count; i++) {
        check_envelope(page->envelopes[i], page->hashes + i * SLUICE_HASH_BYTES);
        box->numbers[i] = number_of(page->envelopes[i]);
    }
    if (page->count > 0 && page->envelopes != NULL && box->kept == NULL) {
        box->kept = sluice_envelope_ref(page->envelopes[0]);
    }
    atomic_fetch_add(&box->pages, 1);
}

static void ask(struct sluice_node *node, struct box *box, const struct sluice_query *query)
{
    size_t before = atomic_load(&box->pages);
    assert_int_equal(sluice_node_query(node, query, NULL, take_page, box), SLUICE_OK);
    api_wait_count(&box->pages, before + 1);
}

static struct sluice_node *filled(const char *const values[])
{
    struct sluice_subscription *subscription = NULL;
    struct sluice_node *node = api_made(values);
    struct timespec now;
    char payload[16];
    clock_gettime(CLOCK_REALTIME, &now);
    base_ns = now.tv_sec * INT64_C(1000000000);
    assert_int_equal(sluice_node_subscribe(node, API_TOPIC, NULL, NULL, &subscription), SLUICE_OK);
    sluice_subscription_end(&subscription); /* it takes part in the topic from now on */
    api_start(node);
    for (int i = 0; i < MESSAGES; i++) {
        struct sluice_message message = {.pubsub_topic = API_TOPIC,
                .content_topic = i % 3 == 0 ? OTHER : CHAT,
                .timestamp_ns = base_ns + i * INT64_C(1000000)};
        snprintf(payload, sizeof(payload), "%d", i);
        message.payload = api_bytes(payload);
        assert_int_equal(sluice_node_publish(node, &message, NULL, NULL), SLUICE_OK);
    }
    api_wait_counter(node, API_STAGE("archive", "delivered", "delivered"), MESSAGES);
    return node;
}

static void expect_numbers(const struct box *box, int first, int step, size_t count)
{
    assert_int_equal(box->result, SLUICE_OK);
    assert_int_equal(box->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(box->numbers[i], first + step * (int)i);
    }
}

/* All there is, forward and backward, page by page. */
static void walk(struct sluice_node *node)
{
    struct box box = {0};
    struct sluice_query query = {0};
    for (int i = 0; i < 3; i++) {
        ask(node, &box, &query);
        expect_numbers(&box, 20 * i, 1, i < 2 ? 20 : 5);
        assert_int_equal(box.has_cursor, i < 2);
        query.cursor = box.cursor;
    }
    query = (struct sluice_query){.limit = 40, .is_backward = true};
    ask(node, &box, &query);
    expect_numbers(&box, 5, 1, 40);
    query.cursor = box.cursor;
    ask(node, &box, &query);
    expect_numbers(&box, 0, 1, 5);
    assert_false(box.has_cursor);
    query = (struct sluice_query){.limit = 1000};
    ask(node, &box, &query);
    expect_numbers(&box, 0, 1, MESSAGES);
    sluice_envelope_unref(box.kept);
}

static void choose(struct sluice_node *node)
{
    static const char *const topics[] = {OTHER, "/test/1/none/plain"};
    struct box box = {0};
    struct sluice_query query = {.content_topics = topics, .content_topic_count = 2};
    ask(node, &box, &query);
    expect_numbers(&box, 0, 3, 15);
    query = (struct sluice_query){
            .time_start_ns = base_ns + 10000000, .time_end_ns = base_ns + 14000000};
    ask(node, &box, &query);
    expect_numbers(&box, 10, 1, 5);
    uint8_t hashes[3][SLUICE_HASH_BYTES] = {{0}};
    memcpy(hashes[0], box.hashes[4], SLUICE_HASH_BYTES);
    memcpy(hashes[2], box.hashes[1], SLUICE_HASH_BYTES);
    query = (struct sluice_query){
            .hashes = hashes[0], .hash_count = 3}; /* the second is nobody's */
    ask(node, &box, &query);
    expect_numbers(&box, 11, 3, 2);
    query = (struct sluice_query){.pubsub_topic = "/waku/2/rs/0/5"};
    ask(node, &box, &query);
    expect_numbers(&box, 0, 0, 0);
    query = (struct sluice_query){.is_without_messages = true, .limit = 3};
    ask(node, &box, &query);
    assert_int_equal(box.count, 3);
    assert_false(box.has_envelopes);
    query.is_without_messages = false;
    uint8_t first[SLUICE_HASH_BYTES];
    memcpy(first, box.hashes[0], sizeof(first));
    ask(node, &box, &query);
    assert_memory_equal(first, box.hashes[0], sizeof(first));
    sluice_envelope_unref(box.kept);
}

static void refuse(struct sluice_node *node)
{
    static const char *const topics[] = {CHAT};
    uint8_t unknown[SLUICE_HASH_BYTES] = {1};
    struct box box = {0};
    struct sluice_query query = {.cursor = unknown};
    ask(node, &box, &query);
    assert_int_equal(box.result, SLUICE_BAD_ARGUMENT);
    assert_non_null(strstr(box.text, "cursor"));
    assert_int_equal(box.count, 0);
    query = (struct sluice_query){
            .hashes = unknown, .hash_count = 1, .content_topics = topics, .content_topic_count = 1};
    ask(node, &box, &query);
    assert_int_equal(box.result, SLUICE_BAD_ARGUMENT);
    query = (struct sluice_query){.content_topics = topics, .content_topic_count = 1001};
    assert_int_equal(sluice_node_query(node, &query, NULL, take_page, &box), SLUICE_BAD_ARGUMENT);
    query = (struct sluice_query){.hash_count = 1};
    assert_int_equal(sluice_node_query(node, &query, NULL, take_page, &box), SLUICE_BAD_ARGUMENT);
    query = (struct sluice_query){0};
    assert_int_equal(sluice_node_query(node, &query, NULL, NULL, &box), SLUICE_BAD_ARGUMENT);
    struct sluice_service nobody = {.timeout_ms = 1};
    assert_int_equal(
            sluice_node_query(node, &query, &nobody, take_page, &box), SLUICE_BAD_ARGUMENT);
    assert_int_equal(atomic_load(&box.pages), 2);
}

static void the_memory_archive_is_asked_as_store_v3_says(void **state)
{
    static const char *const values[] = {"archive", "memory", NULL};
    struct sluice_node *node = filled(values);
    (void)state;
    walk(node);
    choose(node);
    refuse(node);
    api_destroy(&node);
}

static void a_database_is_asked_as_store_v3_says(void **state)
{
    char folder[] = "/tmp/sluice-api-XXXXXX";
    char address[128];
    char command[160];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(address, sizeof(address), "sqlite://%s/a.db", folder);
    const char *values[] = {"archive", address, NULL};
    struct sluice_node *node = filled(values);
    walk(node);
    choose(node);
    refuse(node);
    api_destroy(&node);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void without_an_archive_a_query_is_refused(void **state)
{
    struct sluice_node *node = api_made(NULL);
    struct sluice_query query = {0};
    struct box box = {0};
    (void)state;
    assert_int_equal(sluice_node_query(node, &query, NULL, take_page, &box), SLUICE_NOT_RUNNING);
    api_start(node);
    assert_int_equal(sluice_node_query(node, &query, NULL, take_page, &box), SLUICE_NOT_FOUND);
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    assert_int_equal(sluice_node_query(node, &query, NULL, take_page, &box), SLUICE_NOT_RUNNING);
    assert_int_equal(atomic_load(&box.pages), 0);
    api_destroy(&node);
}

static void a_page_counts_in_what_may_be_kept(void **state)
{
    static const char *const values[] = {
            "archive", "sqlite://:memory:", "event-hold-limit", "4KiB", NULL};
    struct sluice_node *node = filled(values);
    struct box box = {0};
    struct sluice_query query = {.limit = 3};
    (void)state;
    ask(node, &box, &query);
    expect_numbers(&box, 0, 1, 3);
    query.limit = 40;
    ask(node, &box, &query);
    assert_int_equal(box.result, SLUICE_LIMIT_REACHED);
    assert_string_equal(box.text, "event-hold-limit is used up");
    assert_int_equal(box.count, 0);
    assert_true(api_counter(node, "sluice_event_hold_refused_total") > 0);
    query.limit = 3; /* what was refused is given back */
    ask(node, &box, &query);
    expect_numbers(&box, 0, 1, 3);
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    assert_int_equal(sluice_node_destroy(&node), SLUICE_HELD);
    assert_int_equal(number_of(box.kept), 0);
    sluice_envelope_unref(box.kept);
    api_destroy(&node);
}

/* Holds up the callbacks until it is told, so that calls are under way. */
static atomic_bool may_go_on;
static atomic_size_t blocked;

static void block(void *context, const struct sluice_page *page)
{
    atomic_fetch_add(&blocked, 1);
    while (!atomic_load(&may_go_on)) {
        sched_yield();
    }
    take_page(context, page);
}

static void calls_under_way_have_a_limit_and_stop_ends_them(void **state)
{
    static const char *const values[] = {"archive", "memory", "call-limit", "4", NULL};
    struct sluice_node *node = filled(values);
    struct box box = {0};
    struct sluice_query query = {.is_without_messages = true};
    (void)state;
    assert_int_equal(sluice_node_query(node, &query, NULL, block, &box), SLUICE_OK);
    api_wait_count(&blocked, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sluice_node_query(node, &query, NULL, take_page, &box), SLUICE_OK);
    }
    assert_int_equal(sluice_node_query(node, &query, NULL, take_page, &box), SLUICE_LIMIT_REACHED);
    atomic_store(&may_go_on, true);
    assert_int_equal(sluice_node_stop(node), SLUICE_OK);
    assert_int_equal(atomic_load(&box.pages), 4);
    api_destroy(&node);
}

static void ask_again(void *context, const struct sluice_page *page)
{
    struct sluice_node *node = ((void **)context)[0];
    struct box *box = ((void **)context)[1];
    struct sluice_query query = {.cursor = page->cursor};
    take_page(box, page);
    if (page->cursor != NULL) {
        assert_int_equal(sluice_node_query(node, &query, NULL, ask_again, context), SLUICE_OK);
    }
    assert_int_equal(sluice_node_stop(node), SLUICE_WRONG_THREAD);
}

static void the_next_page_can_be_asked_for_in_the_callback(void **state)
{
    static const char *const values[] = {"archive", "memory", NULL};
    struct sluice_node *node = filled(values);
    struct box box = {0};
    struct sluice_query query = {0};
    void *context[] = {node, &box};
    (void)state;
    assert_int_equal(sluice_node_query(node, &query, NULL, ask_again, context), SLUICE_OK);
    api_wait_count(&box.pages, 3);
    expect_numbers(&box, 40, 1, 5);
    sluice_envelope_unref(box.kept);
    api_destroy(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_memory_archive_is_asked_as_store_v3_says),
            cmocka_unit_test(a_database_is_asked_as_store_v3_says),
            cmocka_unit_test(without_an_archive_a_query_is_refused),
            cmocka_unit_test(a_page_counts_in_what_may_be_kept),
            cmocka_unit_test(calls_under_way_have_a_limit_and_stop_ends_them),
            cmocka_unit_test(the_next_page_can_be_asked_for_in_the_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
