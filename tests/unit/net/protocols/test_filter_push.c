/* SPDX-License-Identifier: MIT */

/* What a filter service pushes, to clients of every kind. */

#include <string.h>

#include "base/rcu.h"
#include "net/protocols/relay_reader.h"
#include "tests/support/cmocka.h"
#include "tests/unit/net/protocols/filter_fixture.h"

#define SUBSCRIBE       WIRE__FILTER_SUBSCRIBE_TYPE__SUBSCRIBE
#define UNSUBSCRIBE_ALL WIRE__FILTER_SUBSCRIBE_TYPE__UNSUBSCRIBE_ALL
#define PING            WIRE__FILTER_SUBSCRIBE_TYPE__SUBSCRIBER_PING

static void subscribe(struct filter_fixture *fixture, size_t client)
{
    struct fixture_answer answer =
            fixture_request(fixture, client, SUBSCRIBE, FIXTURE_PUBSUB, FIXTURE_CONTENT);
    assert_int_equal(answer.code, 200);
}

static const struct filter_subscriber *subscriber_of(struct filter_fixture *fixture)
{
    struct subscription_view view;
    assert_true(subscriptions_next(fixture->subscriptions, 0, &view));
    return view.entry.context;
}

static struct filter_subscriber_state state_of(struct filter_fixture *fixture)
{
    struct filter_subscriber_state out;
    filter_subscriber_read(subscriber_of(fixture), &out);
    return out;
}

static bool is_all_out(void *context)
{
    const struct filter_fixture *fixture = context;
    return filter_held(fixture->filter) == 0;
}

static void every_message_comes_once_in_order_on_one_stream_without_a_hash_or_a_copy(void **state)
{
    (void)state;
    enum {
        MESSAGES = 1000
    };
    struct filter_fixture fixture;
    struct fixture_choice choice = {0};
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    fixture_connect(&fixture, 1);
    uint64_t streams = count_of(METRIC_FILTER_STREAMS);
    subscribe(&fixture, 0);
    subscribe(&fixture, 1);
    uint64_t hashes = count_of(METRIC_MESSAGE_HASHES) + count_of(METRIC_ID_HASHES);
    uint64_t copies = count_of(METRIC_COPIES);
    uint64_t delivered = count_of(LEDGER_FILTER_OUT_DELIVERED);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        fixture_publish(&fixture, FIXTURE_CONTENT, i, 20 + i % 1000);
        if (i % 40 == 39) {
            fixture_wait_received(&fixture, 0, (size_t)i + 1);
            fixture_wait_received(&fixture, 1, (size_t)i + 1);
        }
    }
    assert_int_equal(count_of(METRIC_FILTER_STREAMS) - streams, 2);
    assert_int_equal(count_of(LEDGER_FILTER_OUT_DELIVERED) - delivered, 2 * MESSAGES);
    assert_int_equal(count_of(METRIC_MESSAGE_HASHES) + count_of(METRIC_ID_HASHES), hashes);
    /* One each by the test, which encodes them. */
    assert_int_equal(count_of(METRIC_COPIES) - copies, MESSAGES);
    assert_int_equal(state_of(&fixture).sent, MESSAGES);
    assert_int_equal(state_of(&fixture).last_push, FILTER_PUSH_SENT);
    fixture_publish(&fixture, "/nobody/1/wants/this", MESSAGES, 20);
    fixture_turn(&fixture, 100);
    assert_int_equal(fixture.clients[0].received, MESSAGES);
    fixture_fini(&fixture);
}

static bool has_push_stream(void *context)
{
    return count_of(METRIC_FILTER_STREAMS) > *(uint64_t *)context;
}

static void the_push_stream_stands_before_the_first_message_and_takes_it(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    struct fixture_choice choice = {0};
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    uint64_t streams = count_of(METRIC_FILTER_STREAMS);
    subscribe(&fixture, 0);
    fixture_run(&fixture, has_push_stream, &streams);
    uint64_t opened = count_of(METRIC_NET_STREAMS_OUT);
    fixture_publish(&fixture, FIXTURE_CONTENT, 0, 20);
    fixture_wait_received(&fixture, 0, 1);
    assert_int_equal(count_of(METRIC_NET_STREAMS_OUT), opened);
    assert_int_equal(count_of(METRIC_FILTER_STREAMS) - streams, 1);
    fixture_fini(&fixture);
}

static void publish_burst(struct filter_fixture *fixture, uint64_t from, uint64_t to, size_t length)
{
    for (uint64_t i = from; i < to; i++) {
        fixture_publish(fixture, FIXTURE_CONTENT, i, length);
    }
    fixture_wait_received(fixture, 0, (size_t)to);
    fixture_wait_received(fixture, 1, (size_t)to);
}

/* Beyond what a task takes for one peer nothing may be lost; below that a burst is few secure frames. */
static void a_burst_comes_in_order_without_loss_and_in_few_frames(void **state)
{
    (void)state;
    enum {
        SMALL = 300,
        SMALL_BYTES = 50,
        LARGE = 40,
        LARGE_BYTES = 10 * 1024,
        FRAME_BYTES = 2 + 16 + 12 /* length, tag, yamux header */
    };
    struct filter_fixture fixture;
    struct fixture_choice choice = {0};
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    fixture_connect(&fixture, 1);
    uint64_t streams = count_of(METRIC_FILTER_STREAMS) + 1;
    subscribe(&fixture, 0);
    subscribe(&fixture, 1);
    fixture_run(&fixture, has_push_stream, &streams);
    fixture_turn(&fixture, 100);
    uint64_t before = count_of(METRIC_NET_BYTES_OUT);
    publish_burst(&fixture, 0, 1, SMALL_BYTES);
    uint64_t single = count_of(METRIC_NET_BYTES_OUT) - before;
    publish_burst(&fixture, 1, 1 + SMALL, SMALL_BYTES);
    uint64_t burst = count_of(METRIC_NET_BYTES_OUT) - before - single;
    assert_true(burst < SMALL * (single - 2 * FRAME_BYTES * 3 / 4));
    uint64_t dropped = count_of(LEDGER_FILTER_OUT_QUEUE_FULL);
    publish_burst(&fixture, 1 + SMALL, 1 + SMALL + LARGE, LARGE_BYTES);
    assert_int_equal(count_of(LEDGER_FILTER_OUT_QUEUE_FULL), dropped);
    fixture_fini(&fixture);
}

/* A message as protobuf-c reads it. */
static void what_is_pushed_is_the_message_as_it_was_received(void **state)
{
    (void)state;
    uint8_t head[256];
    static uint8_t message[] = "\x0a\x02hi\x12\x01t\x98\x06\x07"; /* with an unknown field */
    struct span topic = span_of_text(FIXTURE_PUBSUB);
    size_t length = sizeof(message) - 1;
    size_t head_length = filter_push_head_size(topic, length);
    filter_push_head_write(head, topic, length);
    memcpy(head + head_length, message, length);
    assert_int_equal(head[0], head_length + length - 1);
    Wire__FilterPush *push = wire__filter_push__unpack(NULL, head[0], head + 1);
    assert_non_null(push);
    assert_string_equal(push->pubsub_topic, FIXTURE_PUBSUB);
    assert_int_equal(push->waku_message.len, length);
    assert_memory_equal(push->waku_message.data, message, length);
    wire__filter_push__free_unpacked(push, NULL);
}

static void who_comes_back_gets_messages_again_without_subscribing(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    struct fixture_choice choice = {0};
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    subscribe(&fixture, 0);
    fixture_publish(&fixture, FIXTURE_CONTENT, 0, 20);
    fixture_wait_received(&fixture, 0, 1);
    connection_close(fixture.clients[0].node.last_connection, CLOSE_REQUESTED);
    while (fixture.server.disconnected == 0 || fixture.clients[0].node.disconnected == 0) {
        fixture_turn(&fixture, 1);
    }
    fixture_turn(&fixture, 10);
    assert_int_equal(state_of(&fixture).connection, 0);
    uint64_t gone = count_of(LEDGER_FILTER_OUT_PEER_GONE);
    fixture_publish(&fixture, FIXTURE_CONTENT, 1, 20);
    assert_int_equal(count_of(LEDGER_FILTER_OUT_PEER_GONE) - gone, 1);
    assert_int_equal(state_of(&fixture).last_push, FILTER_PUSH_NOT_CONNECTED);
    assert_int_equal(state_of(&fixture).dropped, 1);
    fixture_connect(&fixture, 0);
    while (state_of(&fixture).connection == 0) {
        fixture_turn(&fixture, 1);
    }
    fixture_publish(&fixture, FIXTURE_CONTENT, 2, 20);
    fixture_wait_received(&fixture, 0, 2);
    assert_int_equal(fixture.clients[0].next_number, 3);
    assert_int_equal(fixture_request(&fixture, 0, PING, NULL, NULL).code, 200);
    fixture_fini(&fixture);
}

static void nothing_is_pushed_once_it_is_unsubscribed(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    struct fixture_choice choice = {0};
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    for (uint64_t round = 0; round < 5; round++) {
        subscribe(&fixture, 0);
        fixture_publish(&fixture, FIXTURE_CONTENT, 2 * round, 20);
        fixture_wait_received(&fixture, 0, (size_t)round + 1);
        assert_int_equal(fixture_request(&fixture, 0, UNSUBSCRIBE_ALL, NULL, NULL).code, 200);
        fixture_publish(&fixture, FIXTURE_CONTENT, 2 * round + 1, 20);
        fixture_turn(&fixture, 50);
        assert_int_equal(fixture.clients[0].received, round + 1);
    }
    fixture_fini(&fixture);
}

/* Clients of the test's own making. */

enum habit {
    READS_NOTHING,
    CLOSES_AFTER_EACH, /* both its sides: what follows on the stream is lost */
    RESETS_AFTER_EACH
};

struct odd_client {
    enum habit habit;
    size_t streams;
    size_t open_streams;
    size_t most_open;
    size_t received;
    uint64_t next_number;
};

struct odd_stream {
    struct odd_client *client;
    struct relay_reader reader;
    uint8_t ignored[1024];
    bool is_done;
};

static struct odd_client odd_client;
static struct odd_stream odd_streams[256];

static enum status odd_opened(struct stream *stream)
{
    struct odd_client *client = stream_context(stream);
    assert_true(client->streams < sizeof(odd_streams) / sizeof(odd_streams[0]));
    struct odd_stream *odd = &odd_streams[client->streams++];
    *odd = (struct odd_stream){.client = client};
    relay_reader_init(&odd->reader, NULL, NULL, 1024 * 1024);
    stream_set_context(stream, odd);
    client->open_streams++;
    if (client->open_streams > client->most_open) {
        client->most_open = client->open_streams;
    }
    return STATUS_OK;
}

static size_t odd_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct odd_stream *odd = stream_context(stream);
    if (odd->client->habit == READS_NOTHING) {
        return 0;
    }
    if (odd->is_done) {
        *to = odd->ignored;
        return sizeof(odd->ignored);
    }
    return relay_reader_reserve(&odd->reader, wanted, to);
}

static void odd_commit(struct stream *stream, size_t n)
{
    struct odd_stream *odd = stream_context(stream);
    struct filter_push_view push;
    struct frame *frame = NULL;
    stream_consumed(stream, n);
    if (odd->is_done) {
        return;
    }
    assert_int_equal(relay_reader_commit(&odd->reader, n, &frame), STATUS_OK);
    if (frame == NULL) {
        return;
    }
    assert_int_equal(
            filter_push_read(&push, span_of(frame_bytes(frame), frame_length(frame))), STATUS_OK);
    assert_true(fixture_number_of(push.message) >= odd->client->next_number);
    odd->client->next_number = fixture_number_of(push.message) + 1;
    odd->client->received++;
    frame_unref(frame);
    odd->is_done = true;
    odd->client->open_streams--;
    if (odd->client->habit == CLOSES_AFTER_EACH) {
        stream_close_write(stream);
    } else {
        stream_reset(stream, STATUS_RESET);
    }
}

static void odd_closed(struct stream *stream, enum status reason)
{
    struct odd_stream *odd = stream_context(stream);
    (void)reason;
    relay_reader_reset(&odd->reader);
    odd->client->open_streams -= !odd->is_done;
}

static const struct stream_events odd_events = {
        .opened = odd_opened, .reserve = odd_reserve, .commit = odd_commit, .closed = odd_closed};

/* Client 0 is odd, client 1 as it should be. */
static void init_odd(struct filter_fixture *fixture, enum habit habit)
{
    struct fixture_choice choice = {.has_own_pushes = true};
    struct protocol protocol = {
            .id = FILTER_PUSH_PROTOCOL_ID, .events = &odd_events, .context = &odd_client};
    odd_client = (struct odd_client){.habit = habit};
    fixture_init(fixture, &choice);
    assert_int_equal(
            switch_add_protocol(fixture->clients[0].node.net_switch, &protocol), STATUS_OK);
    fixture_connect(fixture, 0);
    subscribe(fixture, 0);
}

static bool has_received_odd(void *context)
{
    return odd_client.received >= *(size_t *)context;
}

static void serve_a_client_that_ends_each_stream(enum habit habit)
{
    enum {
        FIRST = 40, /* on its first stream, of which it reads one */
        SINGLE = 5,
        BURST = 60
    };
    struct filter_fixture fixture;
    size_t count = 0;
    init_odd(&fixture, habit);
    uint64_t repeated = count_of(METRIC_FILTER_REPEATED);
    for (; count < FIRST; count++) {
        fixture_publish(&fixture, FIXTURE_CONTENT, count, 20);
    }
    fixture_run(&fixture, has_received_odd, &count);
    assert_true(count_of(METRIC_FILTER_REPEATED) - repeated > 0);
    assert_true(count_of(METRIC_FILTER_REPEATED) - repeated < FIRST);
    for (; count < FIRST + SINGLE; count++) {
        size_t wanted = count + 1;
        fixture_publish(&fixture, FIXTURE_CONTENT, count, 20);
        fixture_run(&fixture, has_received_odd, &wanted);
    }
    for (; count < FIRST + SINGLE + BURST; count++) {
        fixture_publish(&fixture, FIXTURE_CONTENT, count, 20);
    }
    fixture_run(&fixture, has_received_odd, &count);
    fixture_turn(&fixture, 100);
    assert_int_equal(odd_client.received, FIRST + SINGLE + BURST);
    assert_int_equal(odd_client.next_number, FIRST + SINGLE + BURST); /* each once, in order */
    assert_int_equal(odd_client.streams, FIRST + SINGLE + BURST);
    assert_int_equal(odd_client.most_open, 1);
    assert_int_equal(filter_held(fixture.filter), 0);
    fixture_fini(&fixture);
}

static void who_closes_its_stream_after_each_message_gets_a_new_one_each_time(void **state)
{
    (void)state;
    serve_a_client_that_ends_each_stream(CLOSES_AFTER_EACH);
}

static void who_resets_its_stream_after_each_message_gets_a_new_one_each_time(void **state)
{
    (void)state;
    serve_a_client_that_ends_each_stream(RESETS_AFTER_EACH);
}

static bool has_no_subscriber(void *context)
{
    const struct filter_fixture *fixture = context;
    return subscriptions_peer_count(fixture->subscriptions) == 0;
}

static void who_reads_nothing_costs_its_queue_and_is_dropped_in_time(void **state)
{
    (void)state;
    enum {
        LENGTH = 10000,
        MESSAGES = 100
    };
    struct filter_fixture fixture;
    init_odd(&fixture, READS_NOTHING);
    uint64_t stuck = count_of(METRIC_FILTER_STUCK);
    uint64_t received = count_of(LEDGER_FILTER_OUT_RECEIVED);
    uint64_t delivered = count_of(LEDGER_FILTER_OUT_DELIVERED);
    uint64_t full = count_of(LEDGER_FILTER_OUT_QUEUE_FULL);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        fixture_publish(&fixture, FIXTURE_CONTENT, i, LENGTH);
        fixture_turn(&fixture, 5);
        assert_true(atomic_load(&fixture.outbound.bytes) <= FIXTURE_QUEUE_BYTES);
    }
    struct filter_subscriber_state now = state_of(&fixture);
    assert_true(now.queue_bytes > 0 && now.queue_bytes <= FIXTURE_QUEUE_BYTES);
    assert_int_equal(now.last_push, FILTER_PUSH_DROPPED);
    assert_true(now.dropped > 0);
    assert_int_equal(now.dropped, count_of(LEDGER_FILTER_OUT_QUEUE_FULL) - full);
    fixture_run(&fixture, has_no_subscriber, &fixture);
    assert_int_equal(count_of(METRIC_FILTER_STUCK) - stuck, 1);
    assert_int_equal(fixture.server.disconnected, 0);
    assert_int_equal(atomic_load(&fixture.outbound.bytes), 0);
    assert_int_equal(filter_held(fixture.filter), 0);
    assert_int_equal(count_of(LEDGER_FILTER_OUT_RECEIVED) - received, MESSAGES);
    assert_true(count_of(LEDGER_FILTER_OUT_DELIVERED) - delivered < MESSAGES);
    assert_int_equal(fixture_request(&fixture, 0, PING, NULL, NULL).code, 404);
    fixture_fini(&fixture);
}

static void who_has_no_push_protocol_is_dropped_in_time(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    struct fixture_choice choice = {.has_own_pushes = true};
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    subscribe(&fixture, 0);
    uint64_t refused = count_of(METRIC_FILTER_STREAMS_REFUSED);
    fixture_publish(&fixture, FIXTURE_CONTENT, 0, 20);
    fixture_run(&fixture, has_no_subscriber, &fixture);
    assert_true(count_of(METRIC_FILTER_STREAMS_REFUSED) > refused);
    fixture_run(&fixture, is_all_out, &fixture);
    fixture_fini(&fixture);
}

static void who_is_idle_is_not_dropped(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    struct fixture_choice choice = {0};
    fixture_init(&fixture, &choice);
    fixture_connect(&fixture, 0);
    subscribe(&fixture, 0);
    fixture_publish(&fixture, FIXTURE_CONTENT, 0, 20);
    fixture_wait_received(&fixture, 0, 1);
    uint64_t end_ms = io_loop_now_ms(fixture.server.loop) + 3 * FIXTURE_STUCK_MS;
    while (io_loop_now_ms(fixture.server.loop) < end_ms) {
        fixture_turn(&fixture, 1);
    }
    fixture_publish(&fixture, FIXTURE_CONTENT, 1, 20);
    fixture_wait_received(&fixture, 0, 2);
    fixture_fini(&fixture);
}

/* As the reference does when it serves whoever serves it. */

struct echoing {
    uint8_t bytes[64 * 1024];
};

static struct echoing echoing;

static size_t echo_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    (void)stream;
    *to = echoing.bytes;
    return wanted < sizeof(echoing.bytes) ? wanted : sizeof(echoing.bytes);
}

static void echo_commit(struct stream *stream, size_t n)
{
    stream_consumed(stream, n);
    assert_int_equal(stream_write_copy(stream, span_of(echoing.bytes, n / 2)), STATUS_OK);
    assert_int_equal(
            stream_write_copy(stream, span_of(echoing.bytes + n / 2, n - n / 2)), STATUS_OK);
}

static void echo_closed(struct stream *stream, enum status reason)
{
    (void)stream;
    (void)reason;
}

static const struct stream_events echo_events = {
        .reserve = echo_reserve, .commit = echo_commit, .closed = echo_closed};

static void init_echoing(struct filter_fixture *fixture, bool takes_returns)
{
    struct fixture_choice choice = {.has_own_pushes = true, .takes_returns = takes_returns};
    struct protocol protocol = {.id = FILTER_PUSH_PROTOCOL_ID, .events = &echo_events};
    fixture_init(fixture, &choice);
    assert_int_equal(
            switch_add_protocol(fixture->clients[0].node.net_switch, &protocol), STATUS_OK);
    fixture_connect(fixture, 0);
    subscribe(fixture, 0);
}

static void publish_in_turn(struct filter_fixture *fixture)
{
    for (uint64_t i = 0; i < 100; i++) {
        fixture_publish(fixture, FIXTURE_CONTENT, i, 20 + 10 * i);
        fixture_turn(fixture, 2);
    }
}

static bool has_returned(void *context)
{
    const struct filter_fixture *fixture = context;
    return fixture->returned.received == 100;
}

static void what_the_subscriber_pushes_on_the_push_stream_of_ours_is_taken(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    init_echoing(&fixture, true);
    publish_in_turn(&fixture);
    fixture_run(&fixture, has_returned, &fixture);
    fixture_fini(&fixture);
}

static void what_nobody_wants_of_the_subscriber_is_thrown_away(void **state)
{
    (void)state;
    struct filter_fixture fixture;
    init_echoing(&fixture, false);
    uint64_t streams = count_of(METRIC_FILTER_STREAMS);
    publish_in_turn(&fixture);
    fixture_run(&fixture, is_all_out, &fixture);
    fixture_turn(&fixture, 200);
    assert_int_equal(state_of(&fixture).sent, 100);
    assert_true(count_of(METRIC_FILTER_STREAMS) - streams <= 1);
    fixture_fini(&fixture);
}

static int enter_rcu(void **state)
{
    (void)state;
    rcu_register();
    return 0;
}

static int leave_rcu(void **state)
{
    (void)state;
    rcu_drain();
    rcu_unregister();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(
                    every_message_comes_once_in_order_on_one_stream_without_a_hash_or_a_copy),
            cmocka_unit_test(the_push_stream_stands_before_the_first_message_and_takes_it),
            cmocka_unit_test(a_burst_comes_in_order_without_loss_and_in_few_frames),
            cmocka_unit_test(what_is_pushed_is_the_message_as_it_was_received),
            cmocka_unit_test(who_comes_back_gets_messages_again_without_subscribing),
            cmocka_unit_test(nothing_is_pushed_once_it_is_unsubscribed),
            cmocka_unit_test(who_closes_its_stream_after_each_message_gets_a_new_one_each_time),
            cmocka_unit_test(who_resets_its_stream_after_each_message_gets_a_new_one_each_time),
            cmocka_unit_test(who_reads_nothing_costs_its_queue_and_is_dropped_in_time),
            cmocka_unit_test(who_has_no_push_protocol_is_dropped_in_time),
            cmocka_unit_test(who_is_idle_is_not_dropped),
            cmocka_unit_test(what_the_subscriber_pushes_on_the_push_stream_of_ours_is_taken),
            cmocka_unit_test(what_nobody_wants_of_the_subscriber_is_thrown_away),
    };
    return cmocka_run_group_tests(tests, enter_rcu, leave_rcu);
}
