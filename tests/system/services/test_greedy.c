/* SPDX-License-Identifier: MIT */
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "codec/waku_message.h"
#include "net/protocols/exchange.h"
#include "net/protocols/lightpush_message.h"
#include "net/protocols/store_message.h"
#include "node/lightpush.h"
#include "node/network.h"
#include "tests/support/cmocka.h"
#include "tests/support/live_node.h"

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

/* The connection that a node has. */
struct visit {
    sem_t seen;
    uint64_t connection;
};

static void note_connection(void *context, struct connection *connection)
{
    struct visit *visit = context;
    visit->connection = connection_id(connection);
    sem_post(&visit->seen);
}

static uint64_t connection_of(struct live_node *live)
{
    struct visit visit = {.connection = 0};
    struct net_switch *net_switch = network_switch(node_network(live->node));
    live_node_wait_metric(live, METRIC_NET_CONNECTIONS_OUT, 1);
    sem_init(&visit.seen, 0, 0);
    switch_visit_connections(net_switch, note_connection, &visit);
    while (sem_wait(&visit.seen) != 0) {
    }
    sem_destroy(&visit.seen);
    return visit.connection;
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
    assert_int_equal(
            switch_run_on_connection(net_switch, connection_of(greedy), open_streams, hoard),
            STATUS_OK);
    while (sem_wait(&hoard->asked) != 0) {
    }
    sem_destroy(&hoard->asked);
    assert_true(hoard->opened > 0);
}

/* A store query that waits for its answer. */
struct query {
    struct exchange_call call;
    sem_t over;
    uint32_t code;
    size_t entries;
};

static void on_answered(void *context, enum status status, const char *protocol, struct span answer)
{
    struct query *query = context;
    struct store_answer_view view;
    struct store_entry entry;
    (void)protocol;
    query->code = 0;
    if (status == STATUS_OK && store_answer_read(&view, answer) == STATUS_OK) {
        query->code = view.code;
        while (store_answer_next(&view, &entry, &status)) {
            query->entries++;
        }
    }
    sem_post(&query->over);
}

static void ask_store(void *context, struct connection *connection)
{
    struct query *query = context;
    if (connection == NULL || exchange_call(connection, &query->call) != STATUS_OK) {
        sem_post(&query->over);
    }
}

static struct query query_store(struct live_node *live, struct span request)
{
    static const char *const protocols[] = {STORE_PROTOCOL_ID};
    struct query query = {.call = {.protocols = protocols,
                                  .protocol_count = 1,
                                  .request = request,
                                  .answer_max = 64 * 1024 * 1024,
                                  .timeout_ms = LIVE_NODE_WAIT_S * 1000,
                                  .done = on_answered}};
    query.call.context = &query;
    sem_init(&query.over, 0, 0);
    assert_int_equal(switch_run_on_connection(network_switch(node_network(live->node)),
                             connection_of(live), ask_store, &query),
            STATUS_OK);
    while (sem_wait(&query.over) != 0) {
    }
    sem_destroy(&query.over);
    return query;
}

/* The request of a page of everything, with and without its length. */
struct request {
    uint8_t *bytes;
    size_t length;
    uint8_t framed[256];
    size_t framed_length;
};

static void make_request(struct request *out)
{
    struct store_request request = {
            .request_id = span_of_text("greedy"), .query = {.include_data = true, .limit = 100}};
    assert_int_equal(store_request_write(&out->bytes, &out->length, &request), STATUS_OK);
    assert_true(out->length < 128);
    out->framed[0] = (uint8_t)out->length;
    memcpy(out->framed + 1, out->bytes, out->length);
    out->framed_length = out->length + 1;
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
    struct request request;
    const char *settings[] = {"store", "true", "archive", "memory", "rate-limit", "0/1s", NULL};
    live_node_start(&service, settings);
    start_client(&greedy, &service);
    start_client(&modest, &service);
    for (size_t i = 0; i < STORED; i++) {
        live_node_publish(&service, message_of(PAYLOAD_BYTES));
    }
    live_node_wait_metric(&service, (enum metric)LEDGER_ARCHIVE_DELIVERED, STORED);
    make_request(&request);

    struct hoard queries = {.protocol = STORE_PROTOCOL_ID,
            .request = span_of(request.framed, request.framed_length)};
    hoard_answers(&greedy, &queries);
    live_node_wait_metric(&service, METRIC_STORE_TOO_MANY, 1); /* beyond four at a time */
    uint8_t cut[] = {100, 'x'};                                /* a push that never comes whole */
    struct hoard pushes = {.protocol = LIGHTPUSH_PROTOCOL_ID, .request = span_of(cut, sizeof(cut))};
    hoard_answers(&greedy, &pushes);

    for (size_t i = 0; i < ROUNDS; i++) {
        struct query query = query_store(&modest, span_of(request.bytes, request.length));
        assert_int_equal(query.code, 200);
        assert_true(query.entries >= STORED);
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
    memory_free(request.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(who_reads_nothing_is_limited_and_the_others_are_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
