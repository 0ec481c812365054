/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "codec/waku_message.h"
#include "hash/message_hash.h"
#include "node/node_private.h"
#include "tests/support/cmocka.h"
#include "tests/support/live_node.h"
#include "tests/support/require.h"
#include "tests/support/store_asker.h"

/* Store queries of several peers on several query threads. */

enum {
    STORED = 150,
    CONTENT_TOPICS = 3,
    PAGE = 7,
    CLIENTS = 3,
    ROUNDS = 20
};

static struct span content_topic(size_t i)
{
    static const char *const names[CONTENT_TOPICS] = {
            "/queries/1/a/proto", "/queries/1/b/proto", "/queries/1/c/proto"};
    return span_of_text(names[i % CONTENT_TOPICS]);
}

/* What a page shows of a message, and what its place is decided by. */
struct stored {
    int64_t timestamp_ns;
    size_t topic;
    uint8_t hash[MESSAGE_HASH_BYTES];
};

static struct stored stored[STORED]; /* in store order */

static int compare(const void *a, const void *b)
{
    const struct stored *x = a;
    const struct stored *y = b;
    if (x->timestamp_ns != y->timestamp_ns) {
        return x->timestamp_ns < y->timestamp_ns ? -1 : 1;
    }
    return memcmp(x->hash, y->hash, MESSAGE_HASH_BYTES);
}

/* Five of each timestamp. */
static void fill(struct live_node *service, int64_t first_ns)
{
    for (size_t i = 0; i < STORED; i++) {
        uint8_t bytes[256];
        uint64_t number = i * 7919;
        struct waku_message_view message = {.payload = span_of(&number, sizeof(number)),
                .content_topic = content_topic(i),
                .timestamp_ns = first_ns + (int64_t)(i / 5),
                .has_payload = true,
                .has_content_topic = true,
                .has_timestamp = true};
        stored[i] =
                (struct stored){.timestamp_ns = message.timestamp_ns, .topic = i % CONTENT_TOPICS};
        struct message_hash_input named = {.pubsub_topic = span_of_text(LIVE_NODE_TOPIC),
                .payload = message.payload,
                .content_topic = message.content_topic,
                .timestamp_ns = message.timestamp_ns};
        message_hash(stored[i].hash, &named);
        live_node_publish(
                service, span_of(bytes, waku_message_encode(bytes, sizeof(bytes), &message)));
    }
    qsort(stored, STORED, sizeof(stored[0]), compare);
    live_node_wait_metric(service, (enum metric)LEDGER_ARCHIVE_DELIVERED, STORED);
}

static void start_service(struct live_node *service, const char *archive, const char *threads)
{
    const char *settings[] = {"store", "true", "archive", archive, "query-threads", threads,
            "store-query-timeout", "60s", "store-peer-queries", "16", "timestamp-tolerance", "24h",
            "rate-limit", "0/1s", NULL};
    live_node_start(service, settings);
}

static void start_client(struct live_node *client, struct live_node *service)
{
    const char *settings[] = {"relay", "false", "staticnode", service->address, NULL};
    live_node_start(client, settings);
    (void)store_asker_connection(client);
}

/* One client's way through all pages of what it asks for. */
struct walk {
    pthread_t thread;
    struct live_node *client;
    size_t topic; /* CONTENT_TOPICS: all */
    bool is_backward;
};

static bool is_asked_for(const struct walk *walk, const struct stored *message)
{
    return walk->topic == CONTENT_TOPICS || walk->topic == message->topic;
}

/* What the naive answer to the walk is: of one list, in order. */
static size_t expect(const struct walk *walk, const struct stored *expected[])
{
    size_t count = 0;
    for (size_t i = 0; i < STORED; i++) {
        if (is_asked_for(walk, &stored[i])) {
            expected[count++] = &stored[i];
        }
    }
    return count;
}

static void *walk_through(void *argument)
{
    struct walk *walk = argument;
    const struct stored *expected[STORED];
    size_t left = expect(walk, expected);
    size_t begin = 0;
    struct span topic = content_topic(walk->topic);
    struct archive_query query = {.content_topics = &topic,
            .content_topic_count = walk->topic != CONTENT_TOPICS,
            .limit = PAGE,
            .is_backward = walk->is_backward};
    struct store_asker_page page = {.has_cursor = true};
    uint8_t cursor[MESSAGE_HASH_BYTES];
    while (page.has_cursor) {
        store_asker_ask(walk->client, &query, &page);
        REQUIRE(page.code == 200);
        REQUIRE(page.count == (left < PAGE ? left : PAGE));
        left -= page.count;
        REQUIRE(page.has_cursor == (left > 0));
        size_t first = walk->is_backward ? left : begin;
        for (size_t i = 0; i < page.count; i++) {
            REQUIRE(memcmp(page.hashes[i], expected[first + i]->hash, MESSAGE_HASH_BYTES) == 0);
        }
        begin += page.count;
        free(page.hashes);
        memcpy(cursor, page.cursor, sizeof(cursor));
        query.has_cursor = true;
        query.cursor = span_of(cursor, sizeof(cursor));
    }
    return NULL;
}

/* Every client walks forward and backward through everything and through one content topic at once. */
static void walk_all(struct live_node clients[CLIENTS])
{
    struct walk walks[4 * CLIENTS];
    for (size_t i = 0; i < 4 * CLIENTS; i++) {
        walks[i] = (struct walk){.client = &clients[i / 4],
                .topic = i % 4 < 2 ? CONTENT_TOPICS : (i / 4) % CONTENT_TOPICS,
                .is_backward = i % 2 == 1};
        assert_int_equal(pthread_create(&walks[i].thread, NULL, walk_through, &walks[i]), 0);
    }
    for (size_t i = 0; i < 4 * CLIENTS; i++) {
        pthread_join(walks[i].thread, NULL);
    }
}

static void pages_are_what_was_stored(const char *archive, const char *threads)
{
    struct live_node service;
    struct live_node clients[CLIENTS];
    start_service(&service, archive, threads);
    fill(&service, clock_wall_ns());
    for (size_t i = 0; i < CLIENTS; i++) {
        start_client(&clients[i], &service);
    }
    walk_all(clients);
    for (size_t i = 0; i < CLIENTS; i++) {
        live_node_stop(&clients[i]);
    }
    live_node_stop(&service);
}

static void pages_are_the_same_however_many_threads_make_them(void **state)
{
    (void)state;
    pages_are_what_was_stored("memory", "1");
    pages_are_what_was_stored("memory", "4");
    pages_are_what_was_stored("sqlite://:memory:", "1");
    pages_are_what_was_stored("sqlite://:memory:", "4");
}

/* A question that takes as long as the test wants. */
struct hanging {
    struct archive_job job;
    sem_t has_begun;
    sem_t may_end;
    sem_t has_ended;
};

static void await(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0) {
    }
}

static void hang(struct archive_job *job, struct archive_reader *reader)
{
    struct hanging *hanging = (struct hanging *)job;
    (void)reader;
    sem_post(&hanging->has_begun);
    await(&hanging->may_end);
    sem_post(&hanging->has_ended);
}

static void start_hanging(struct hanging *hanging, struct live_node *service, uint64_t origin)
{
    hanging->job = (struct archive_job){.run = hang, .origin = origin};
    sem_init(&hanging->has_begun, 0, 0);
    sem_init(&hanging->may_end, 0, 0);
    sem_init(&hanging->has_ended, 0, 0);
    archive_jobs_post(service->node->query_jobs, &hanging->job);
}

static void end_hanging(struct hanging *hanging)
{
    sem_post(&hanging->may_end);
    await(&hanging->has_ended);
    sem_destroy(&hanging->has_begun);
    sem_destroy(&hanging->may_end);
    sem_destroy(&hanging->has_ended);
}

struct asking {
    pthread_t thread;
    struct live_node *client;
    struct store_asker_page page;
};

static void *ask_once(void *argument)
{
    struct asking *asking = argument;
    struct archive_query query = {.limit = PAGE};
    store_asker_ask(asking->client, &query, &asking->page);
    return NULL;
}

static void ask_well(struct live_node *client)
{
    struct asking asking = {.client = client};
    ask_once(&asking);
    assert_int_equal(asking.page.code, 200);
    assert_int_equal(asking.page.count, PAGE);
    free(asking.page.hashes);
}

static void note(void *context, struct connection *connection)
{
    *(_Atomic uint64_t *)context = connection_id(connection);
}

/* Of the only peer that the service has. */
static uint64_t only_connection(struct live_node *service)
{
    _Atomic uint64_t number = 0;
    struct timespec nap = {.tv_nsec = NANOSECONDS_PER_MILLISECOND};
    switch_visit_connections(network_switch(node_network(service->node)), note, &number);
    while (number == 0) {
        nanosleep(&nap, NULL);
    }
    return number;
}

static void wait_for_depth(struct live_node *service, size_t depth)
{
    struct timespec nap = {.tv_nsec = NANOSECONDS_PER_MILLISECOND};
    while (archive_jobs_depth_estimate(service->node->query_jobs) != depth) {
        nanosleep(&nap, NULL);
    }
}

static void a_peer_whose_query_hangs_holds_up_nobody_but_itself(void **state)
{
    (void)state;
    struct live_node service;
    struct live_node greedy;
    struct live_node modest;
    struct hanging hanging;
    start_service(&service, "memory", "2");
    fill(&service, clock_wall_ns());
    start_client(&greedy, &service);
    ask_well(&greedy);
    start_hanging(&hanging, &service, only_connection(&service));
    await(&hanging.has_begun);
    struct asking second = {.client = &greedy};
    assert_int_equal(pthread_create(&second.thread, NULL, ask_once, &second), 0);
    wait_for_depth(&service, 1);
    start_client(&modest, &service);
    for (size_t i = 0; i < ROUNDS; i++) {
        ask_well(&modest);
    }
    /* The second thread was left to the others all the time. */
    assert_int_equal(archive_jobs_depth_estimate(service.node->query_jobs), 1);
    end_hanging(&hanging);
    pthread_join(second.thread, NULL);
    assert_int_equal(second.page.code, 200);
    free(second.page.hashes);
    live_node_stop(&greedy);
    live_node_stop(&modest);
    live_node_stop(&service);
}

/* The question of nobody in particular, as that of a REST client. */
static void a_query_that_hangs_leaves_the_other_threads_to_everybody(void **state)
{
    (void)state;
    struct live_node service;
    struct live_node client;
    struct hanging hanging[2];
    start_service(&service, "sqlite://:memory:", "3");
    fill(&service, clock_wall_ns());
    for (size_t i = 0; i < 2; i++) {
        start_hanging(&hanging[i], &service, ARCHIVE_JOB_OWN);
        await(&hanging[i].has_begun);
    }
    start_client(&client, &service);
    for (size_t i = 0; i < ROUNDS; i++) {
        ask_well(&client);
    }
    end_hanging(&hanging[0]);
    end_hanging(&hanging[1]);
    live_node_stop(&client);
    live_node_stop(&service);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(pages_are_the_same_however_many_threads_make_them),
            cmocka_unit_test(a_peer_whose_query_hangs_holds_up_nobody_but_itself),
            cmocka_unit_test(a_query_that_hangs_leaves_the_other_threads_to_everybody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
