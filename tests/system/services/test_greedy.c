/* SPDX-License-Identifier: MIT */
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "codec/waku_message.h"
#include "net/protocols/lightpush_message.h"
#include "net/protocols/store_message.h"
#include "node/lightpush.h"
#include "node/network.h"
#include "tests/support/cmocka.h"
#include "tests/support/live_node.h"
#include "tests/support/store_asker.h"

/* A peer that asks without end and reads nothing costs the others nothing, and little memory. */

enum {
    STORED = 30,
    PAYLOAD_BYTES = 100000,
    STREAMS = 300, /* more than a connection may have of one protocol */
    ROUNDS = 20
};

static struct span message_of(size_t payload_bytes)
{
    static uint64_t number;
    static uint8_t payload[PAYLOAD_BYTES];
    static uint8_t bytes[PAYLOAD_BYTES + 128];
    number++;
    memcpy(payload, &number, sizeof(number));
    struct waku_message_view fields = {.payload = span_of(payload, payload_bytes),
            .content_topic = span_of_text("/greedy/1/test/proto"),
            .timestamp_ns = clock_wall_ns(),
            .has_payload = true,
            .has_content_topic = true,
            .has_timestamp = true};
    return span_of(bytes, waku_message_encode(bytes, sizeof(bytes), &fields));
}

/* Streams with a request on each, whose answers are left where they are. */
struct hoard {
    const char *protocol;
    struct span request; /* with its length before it */
    sem_t asked;
    size_t opened;
};

static enum status on_opened(struct stream *stream)
{
    struct hoard *hoard = stream_context(stream);
    return stream_write_copy(stream, hoard->request);
}

static size_t on_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    (void)stream;
    (void)wanted;
    (void)to;
    return 0;
}

static void on_closed(struct stream *stream, enum status reason)
{
    (void)stream;
    (void)reason;
}

static const struct stream_events hoarder = {
        .opened = on_opened, .reserve = on_reserve, .closed = on_closed};

static void open_streams(void *context, struct connection *connection)
{
    struct hoard *hoard = context;
    struct stream_request request = {.protocols = &hoard->protocol,
            .protocol_count = 1,
            .events = &hoarder,
            .context = hoard};
    for (size_t i = 0; connection != NULL && i < STREAMS; i++) {
        hoard->opened += connection_open_stream(connection, &request, NULL) == STATUS_OK;
    }
    sem_post(&hoard->asked);
}

static void hoard_answers(struct live_node *greedy, struct hoard *hoard)
{
    struct net_switch *net_switch = network_switch(node_network(greedy->node));
    hoard->opened = 0;
    sem_init(&hoard->asked, 0, 0);
    assert_int_equal(switch_run_on_connection(
                             net_switch, store_asker_connection(greedy), open_streams, hoard),
            STATUS_OK);
    while (sem_wait(&hoard->asked) != 0) {
    }
    sem_destroy(&hoard->asked);
    assert_true(hoard->opened > 0);
}

/* A page of everything. */
static const struct archive_query everything = {.include_data = true, .limit = 100};

/* The request of it, with its length. */
static struct span make_request(void)
{
    static uint8_t framed[256];
    struct store_request request = {.request_id = span_of_text("greedy"), .query = everything};
    uint8_t *bytes = NULL;
    size_t length = 0;
    assert_int_equal(store_request_write(&bytes, &length, &request), STATUS_OK);
    assert_true(length < 128);
    framed[0] = (uint8_t)length;
    memcpy(framed + 1, bytes, length);
    memory_free(bytes);
    return span_of(framed, length + 1);
}

static void start_client(struct live_node *client, struct live_node *service)
{
    const char *settings[] = {"relay", "false", "staticnode", service->address, "lightpushnode",
            service->address, NULL};
    live_node_start(client, settings);
}

static void who_reads_nothing_is_limited_and_the_others_are_served(void **state)
{
    (void)state;
    struct live_node service;
    struct live_node greedy;
    struct live_node modest;
    const char *settings[] = {"store", "true", "archive", "memory", "rate-limit", "0/1s", NULL};
    live_node_start(&service, settings);
    start_client(&greedy, &service);
    start_client(&modest, &service);
    for (size_t i = 0; i < STORED; i++) {
        live_node_publish(&service, message_of(PAYLOAD_BYTES));
    }
    live_node_wait_metric(&service, (enum metric)LEDGER_ARCHIVE_DELIVERED, STORED);

    struct hoard queries = {.protocol = STORE_PROTOCOL_ID, .request = make_request()};
    hoard_answers(&greedy, &queries);
    live_node_wait_metric(&service, METRIC_STORE_TOO_MANY, 1); /* beyond four at a time */
    uint8_t cut[] = {100, 'x'};                                /* a push that never comes whole */
    struct hoard pushes = {.protocol = LIGHTPUSH_PROTOCOL_ID, .request = span_of(cut, sizeof(cut))};
    hoard_answers(&greedy, &pushes);

    for (size_t i = 0; i < ROUNDS; i++) {
        struct store_asker_page page;
        store_asker_ask(&modest, &everything, &page);
        assert_int_equal(page.code, 200);
        assert_true(page.count >= STORED);
        free(page.hashes);
        struct node_push push = {.version = LIGHTPUSH_V3,
                .pubsub_topic = span_of_text(LIVE_NODE_TOPIC),
                .message = message_of(20),
                .timeout_ms = LIVE_NODE_WAIT_S * 1000};
        struct node_push_outcome outcome;
        assert_int_equal(node_push_and_wait(modest.node, &push, &outcome), STATUS_OK);
        assert_int_equal(outcome.code, 505); /* nobody to relay to */
    }
    assert_true(live_node_metric(&service, METRIC_STORE_ANSWERED) <= ROUNDS + 4);
    assert_int_equal(live_node_metric(&service, METRIC_STORE_UNAVAILABLE), 0);
    live_node_stop(&greedy);
    live_node_stop(&modest);
    live_node_stop(&service);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(who_reads_nothing_is_limited_and_the_others_are_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
