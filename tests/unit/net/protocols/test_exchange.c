/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/protocols/exchange.h"
#include "net/protocols/ping.h"
#include "tests/unit/net/switch/test_node.h"

static const char any_port[] = "/ip4/127.0.0.1/tcp/0";
static const char *const ids[] = {"/test/upper/1.0.0"};

enum {
    REQUEST_MAX = 1000,
    ANSWER_MAX = 100000
};

struct serving {
    size_t requests;
    size_t abandoned;
    size_t declined;
    enum status reason; /* of the last one declined */
    size_t beginning;
    struct exchange *kept; /* answered later */
    bool keeps;
    bool refuses;
    size_t answer_bytes; /* 0: the request itself */
};

static uint8_t large[ANSWER_MAX + 1];

static void on_requested(void *context, struct exchange *exchange, struct span request)
{
    struct serving *serving = context;
    serving->requests++;
    if (serving->keeps) {
        serving->kept = exchange;
    } else if (serving->refuses) {
        exchange_refuse(exchange, STATUS_BUSY);
    } else if (serving->answer_bytes > 0) {
        exchange_answer_copy(exchange, span_of(large, serving->answer_bytes));
    } else {
        exchange_answer_copy(exchange, request);
    }
}

static void on_declined(
        void *context, struct exchange *exchange, enum status reason, struct span beginning)
{
    struct serving *serving = context;
    serving->declined++;
    serving->reason = reason;
    serving->beginning = beginning.length;
    exchange_answer_copy(exchange, span_of_text("no"));
}

static void on_abandoned(void *context, struct exchange *exchange)
{
    struct serving *serving = context;
    assert_ptr_equal(exchange, serving->kept);
    serving->kept = NULL;
    serving->abandoned++;
}

struct asking {
    size_t done;
    enum status status;
    size_t length;
    uint8_t first;
};

static void on_done(void *context, enum status status, const char *protocol, struct span answer)
{
    (void)protocol;
    struct asking *asking = context;
    asking->done++;
    asking->status = status;
    asking->length = answer.length;
    asking->first = answer.length > 0 ? answer.bytes[0] : 0;
}

static bool is_done(void *context)
{
    const struct asking *asking = context;
    return asking->done > 0;
}

struct pair {
    struct test_node a;
    struct test_node b;
    struct test_node *nodes[2];
    struct serving serving;
    struct exchange_server server;
};

static void init_nodes(struct pair *pair)
{
    memset(pair, 0, sizeof(*pair));
    pair->nodes[0] = &pair->a;
    pair->nodes[1] = &pair->b;
    pair->server = (struct exchange_server){.id = ids[0],
            .request_max = REQUEST_MAX,
            .requested = on_requested,
            .abandoned = on_abandoned,
            .context = &pair->serving};
    test_node_init(&pair->a, NULL, NULL);
    test_node_init(&pair->b, NULL, any_port);
    assert_int_equal(exchange_serve(pair->b.net_switch, &pair->server), STATUS_OK);
}

static void init_pair(struct pair *pair)
{
    init_nodes(pair);
    test_nodes_connect(&pair->a, &pair->b);
}

static void ask(struct pair *pair, struct asking *asking, size_t bytes)
{
    struct exchange_call call = {.protocols = ids,
            .protocol_count = 1,
            .request = span_of(large, bytes),
            .answer_max = ANSWER_MAX,
            .done = on_done,
            .context = asking};
    *asking = (struct asking){0};
    assert_int_equal(exchange_call(pair->a.last_connection, &call), STATUS_OK);
    io_loop_wake(pair->a.loop);
}

static void ask_and_wait(struct pair *pair, struct asking *asking, size_t bytes)
{
    ask(pair, asking, bytes);
    test_nodes_run(pair->nodes, 2, is_done, asking);
}

static bool has_one_stream_less(void *context)
{
    const struct pair *pair = context;
    return connection_stream_count(pair->a.last_connection) == 0 &&
           connection_stream_count(pair->b.last_connection) == 0;
}

static void requests_are_answered_and_their_streams_end(void **state)
{
    (void)state;
    struct pair pair;
    struct asking asking;
    init_pair(&pair);
    large[0] = 42;
    for (size_t i = 0; i < 1000; i++) {
        ask_and_wait(&pair, &asking, i);
        assert_int_equal(asking.status, STATUS_OK);
        assert_int_equal(asking.length, i);
        assert_int_equal(asking.first, i == 0 ? 0 : 42);
    }
    assert_int_equal(pair.serving.requests, 1000);
    test_nodes_run(pair.nodes, 2, has_one_stream_less, &pair);
    test_nodes_fini(pair.nodes, 2);
}

static void a_request_above_the_limit_resets_its_stream_only(void **state)
{
    (void)state;
    struct pair pair;
    struct asking asking;
    init_pair(&pair);
    ask_and_wait(&pair, &asking, REQUEST_MAX + 1);
    assert_int_not_equal(asking.status, STATUS_OK);
    assert_int_equal(pair.serving.requests, 0);
    ask_and_wait(&pair, &asking, REQUEST_MAX);
    assert_int_equal(asking.status, STATUS_OK);
    test_nodes_fini(pair.nodes, 2);
}

static void ask_for_refusal(struct pair *pair, size_t bytes, enum status reason, size_t beginning)
{
    struct asking asking;
    size_t before = pair->serving.declined;
    ask_and_wait(pair, &asking, bytes);
    assert_int_equal(asking.status, STATUS_OK);
    assert_int_equal(asking.length, 2);
    assert_int_equal(pair->serving.declined, before + 1);
    assert_int_equal(pair->serving.reason, reason);
    assert_int_equal(pair->serving.beginning, beginning);
}

static void a_request_above_the_limit_is_answered_where_the_service_says_why(void **state)
{
    (void)state;
    struct pair pair;
    struct asking asking;
    init_nodes(&pair);
    pair.server.declined = on_declined;
    test_nodes_connect(&pair.a, &pair.b);
    for (size_t i = 0; i < 300; i++) { /* more than there may be streams */
        ask_for_refusal(&pair, REQUEST_MAX + 1, STATUS_TOO_LARGE, REQUEST_MAX + 1);
    }
    ask_for_refusal(&pair, ANSWER_MAX, STATUS_TOO_LARGE, EXCHANGE_BEGINNING_MAX);
    assert_int_equal(pair.serving.requests, 0);
    ask_and_wait(&pair, &asking, REQUEST_MAX);
    assert_int_equal(asking.status, STATUS_OK);
    assert_int_equal(asking.length, REQUEST_MAX);
    assert_int_equal(pair.serving.requests, 1);
    test_nodes_run(pair.nodes, 2, has_one_stream_less, &pair);
    assert_int_equal(pair.b.disconnected, 0);
    test_nodes_fini(pair.nodes, 2);
}

/* The period is so long that nothing comes back during the test. */
static void requests_beyond_the_rate_are_declined_and_counted(void **state)
{
    (void)state;
    struct pair pair;
    struct asking asking;
    struct exchange_limit limit = {
            .served = METRIC_STORE_SERVED, .rejected = METRIC_STORE_REJECTED};
    struct rate_limit rate = {.volume = 2, .period_ns = 3600ULL * NANOSECONDS_PER_SECOND};
    uint64_t served = count_of(METRIC_STORE_SERVED);
    uint64_t rejected = count_of(METRIC_STORE_REJECTED);
    assert_int_equal(rate_limiter_create(&limit.limiter, rate), STATUS_OK);
    init_nodes(&pair);
    pair.server.declined = on_declined;
    pair.server.limit = &limit;
    test_nodes_connect(&pair.a, &pair.b);
    ask_and_wait(&pair, &asking, 10);
    ask_and_wait(&pair, &asking, 0);
    assert_int_equal(pair.serving.requests, 2);
    ask_for_refusal(&pair, 10, STATUS_LIMIT_REACHED, 10);
    ask_for_refusal(&pair, 0, STATUS_LIMIT_REACHED, 0);
    ask_for_refusal(&pair, ANSWER_MAX, STATUS_LIMIT_REACHED, EXCHANGE_BEGINNING_MAX);
    assert_int_equal(pair.serving.requests, 2);
    assert_int_equal(count_of(METRIC_STORE_SERVED), served + 2);
    assert_int_equal(count_of(METRIC_STORE_REJECTED), rejected + 3);
    test_nodes_run(pair.nodes, 2, has_one_stream_less, &pair);
    test_nodes_fini(pair.nodes, 2);
    rate_limiter_destroy(&limit.limiter);
}

/* Names a length without end and goes on sending. */
struct endless {
    struct stream *stream;
    bool is_closed;
};

static uint8_t endless_head[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};

static void send_more(struct stream *stream)
{
    while (stream_queued(stream) < ANSWER_MAX) {
        struct muxer_piece piece = {.bytes = span_of(large, ANSWER_MAX)};
        if (stream_write(stream, &piece, 1) != STATUS_OK) {
            return;
        }
    }
}

static enum status on_endless_opened(struct stream *stream)
{
    enum status status = stream_write_copy(stream, span_of(endless_head, sizeof(endless_head)));
    send_more(stream);
    return status;
}

static void on_endless_closed(struct stream *stream, enum status reason)
{
    struct endless *endless = stream_context(stream);
    assert_int_equal(reason, STATUS_RESET);
    endless->is_closed = true;
}

static bool is_endless_closed(void *context)
{
    const struct endless *endless = context;
    return endless->is_closed;
}

static void a_request_without_end_is_answered_and_ended(void **state)
{
    static const struct stream_events events = {
            .opened = on_endless_opened, .writable = send_more, .closed = on_endless_closed};
    (void)state;
    struct pair pair;
    struct asking asking;
    struct endless endless = {.is_closed = false};
    struct stream_request request = {
            .protocols = ids, .protocol_count = 1, .events = &events, .context = &endless};
    init_nodes(&pair);
    pair.server.declined = on_declined;
    test_nodes_connect(&pair.a, &pair.b);
    assert_int_equal(connection_open_stream(pair.a.last_connection, &request, NULL), STATUS_OK);
    io_loop_wake(pair.a.loop);
    test_nodes_run(pair.nodes, 2, is_endless_closed, &endless);
    assert_int_equal(pair.serving.declined, 1);
    ask_and_wait(&pair, &asking, 1);
    assert_int_equal(asking.status, STATUS_OK);
    test_nodes_fini(pair.nodes, 2);
}

static void an_answer_above_the_limit_is_refused(void **state)
{
    (void)state;
    struct pair pair;
    struct asking asking;
    init_pair(&pair);
    pair.serving.answer_bytes = ANSWER_MAX + 1;
    ask_and_wait(&pair, &asking, 1);
    assert_int_equal(asking.status, STATUS_TOO_LARGE);
    pair.serving.answer_bytes = ANSWER_MAX;
    ask_and_wait(&pair, &asking, 1);
    assert_int_equal(asking.status, STATUS_OK);
    assert_int_equal(asking.length, ANSWER_MAX);
    test_nodes_fini(pair.nodes, 2);
}

static void a_refused_request_fails_for_the_one_who_asked(void **state)
{
    (void)state;
    struct pair pair;
    struct asking asking;
    init_pair(&pair);
    pair.serving.refuses = true;
    ask_and_wait(&pair, &asking, 1);
    assert_int_equal(asking.status, STATUS_RESET);
    test_nodes_fini(pair.nodes, 2);
}

static bool is_kept(void *context)
{
    const struct serving *serving = context;
    return serving->kept != NULL;
}

static bool is_abandoned(void *context)
{
    const struct serving *serving = context;
    return serving->abandoned > 0;
}

static void an_answer_may_come_later(void **state)
{
    (void)state;
    struct pair pair;
    struct asking asking;
    init_pair(&pair);
    pair.serving.keeps = true;
    ask(&pair, &asking, 10);
    test_nodes_run(pair.nodes, 2, is_kept, &pair.serving);
    test_nodes_turn(pair.nodes, 2, 100);
    assert_int_equal(asking.done, 0);
    exchange_answer_copy(pair.serving.kept, span_of(large, 7));
    io_loop_wake(pair.b.loop);
    test_nodes_run(pair.nodes, 2, is_done, &asking);
    assert_int_equal(asking.length, 7);
    test_nodes_fini(pair.nodes, 2);
    assert_int_equal(pair.serving.abandoned, 0);
}

static void a_request_whose_asker_leaves_is_abandoned(void **state)
{
    (void)state;
    struct pair pair;
    struct asking asking;
    init_pair(&pair);
    pair.serving.keeps = true;
    ask(&pair, &asking, 10);
    test_nodes_run(pair.nodes, 2, is_kept, &pair.serving);
    connection_close(pair.a.last_connection, CLOSE_REQUESTED);
    io_loop_wake(pair.a.loop);
    test_nodes_run(pair.nodes, 2, is_abandoned, &pair.serving);
    assert_int_equal(asking.done, 1);
    assert_int_not_equal(asking.status, STATUS_OK);
    test_nodes_fini(pair.nodes, 2);
}

/* Sends a request of a thousand bytes, one of them every DRIP_MS. */
enum {
    DRIP_MS = 20
};

struct dripper {
    struct pair *pair;
    struct stream *stream;
    uint64_t next_ns;
    bool is_closed;
};

static enum status on_drip_opened(struct stream *stream)
{
    struct dripper *dripper = stream_context(stream);
    dripper->stream = stream;
    return stream_write_copy(stream, span_of("\xe8\x07", 2));
}

static void on_drip_closed(struct stream *stream, enum status reason)
{
    (void)reason;
    struct dripper *dripper = stream_context(stream);
    dripper->stream = NULL;
    dripper->is_closed = true;
}

static bool has_dripped_out(void *context)
{
    struct dripper *dripper = context;
    uint64_t now_ns = clock_monotonic_ns();
    if (dripper->stream != NULL && now_ns >= dripper->next_ns) {
        enum status status = stream_write_copy(dripper->stream, span_of("x", 1));
        (void)status;
        dripper->next_ns = now_ns + DRIP_MS * NANOSECONDS_PER_MILLISECOND;
        io_loop_wake(dripper->pair->a.loop);
    }
    return dripper->is_closed || dripper->pair->serving.requests > 0;
}

static void calls_to_a_peer_are_limited_by_the_one_who_asks(void **state)
{
    (void)state;
    struct pair pair;
    struct asking asking;
    struct asking second = {0};
    init_nodes(&pair);
    struct exchange_server own = pair.server;
    own.outbound_max = 1;
    assert_int_equal(exchange_serve(pair.a.net_switch, &own), STATUS_OK);
    test_nodes_connect(&pair.a, &pair.b);
    struct exchange_call call = {.protocols = ids,
            .protocol_count = 1,
            .answer_max = ANSWER_MAX,
            .done = on_done,
            .context = &second};
    ask(&pair, &asking, 10);
    assert_int_equal(exchange_call(pair.a.last_connection, &call), STATUS_LIMIT_REACHED);
    test_nodes_run(pair.nodes, 2, is_done, &asking);
    test_nodes_run(pair.nodes, 2, has_one_stream_less, &pair);
    assert_int_equal(exchange_call(pair.a.last_connection, &call), STATUS_OK);
    io_loop_wake(pair.a.loop);
    test_nodes_run(pair.nodes, 2, is_done, &second);
    test_nodes_fini(pair.nodes, 2);
}

static void a_request_that_trickles_in_has_one_deadline(void **state)
{
    (void)state;
    static const struct stream_events events = {.opened = on_drip_opened, .closed = on_drip_closed};
    struct pair pair;
    struct dripper dripper = {.pair = &pair};
    init_pair(&pair);
    pair.server.timeout_ms = 300;
    struct stream_request request = {
            .protocols = ids, .protocol_count = 1, .events = &events, .context = &dripper};
    assert_int_equal(connection_open_stream(pair.a.last_connection, &request, NULL), STATUS_OK);
    io_loop_wake(pair.a.loop);
    test_nodes_run(pair.nodes, 2, has_dripped_out, &dripper);
    assert_int_equal(pair.serving.requests, 0);
    assert_true(dripper.is_closed);
    test_nodes_fini(pair.nodes, 2);
}

static void a_protocol_that_nobody_serves_is_reported(void **state)
{
    (void)state;
    struct pair pair;
    struct asking asking = {0};
    static const char *const unknown[] = {"/test/unknown"};
    init_pair(&pair);
    struct exchange_call call = {.protocols = unknown,
            .protocol_count = 1,
            .answer_max = 10,
            .done = on_done,
            .context = &asking};
    assert_int_equal(exchange_call(pair.a.last_connection, &call), STATUS_OK);
    io_loop_wake(pair.a.loop);
    test_nodes_run(pair.nodes, 2, is_done, &asking);
    assert_int_equal(asking.status, STATUS_NO_COMMON_PROTOCOL);
    test_nodes_fini(pair.nodes, 2);
}

struct pinging {
    size_t answered;
    size_t ended;
    enum status reason;
};

static void on_ping_ready(void *context, struct ping *ping)
{
    (void)context;
    ping_send(ping);
}

static void on_ping_answered(void *context, struct ping *ping, uint64_t round_trip_ns)
{
    struct pinging *pinging = context;
    assert_true(round_trip_ns > 0);
    pinging->answered++;
    if (pinging->answered < 100) {
        ping_send(ping);
    } else {
        ping_close(ping);
    }
}

static void on_ping_ended(void *context, struct ping *ping, enum status reason)
{
    (void)ping;
    struct pinging *pinging = context;
    pinging->ended++;
    pinging->reason = reason;
}

static bool has_ended(void *context)
{
    const struct pinging *pinging = context;
    return pinging->ended > 0;
}

static void a_hundred_pings_are_answered_on_one_stream(void **state)
{
    (void)state;
    static const struct ping_events events = {
            .ready = on_ping_ready, .answered = on_ping_answered, .ended = on_ping_ended};
    struct pair pair;
    struct pinging pinging = {0};
    struct ping *ping;
    init_pair(&pair);
    assert_int_equal(ping_open(pair.a.last_connection, &events, &pinging, &ping), STATUS_OK);
    io_loop_wake(pair.a.loop);
    test_nodes_run(pair.nodes, 2, has_ended, &pinging);
    assert_int_equal(pinging.answered, 100);
    assert_int_equal(pinging.reason, STATUS_OK);
    test_nodes_fini(pair.nodes, 2);
}

static bool is_identified_twice(void *context)
{
    const struct test_node *node = context;
    return node->identified == 2;
}

static void what_is_pushed_is_taken(void **state)
{
    (void)state;
    struct pair pair;
    init_pair(&pair);
    identify_push(pair.b.identify);
    test_nodes_run(pair.nodes, 2, is_identified_twice, &pair.a);
    test_nodes_fini(pair.nodes, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(requests_are_answered_and_their_streams_end),
            cmocka_unit_test(a_request_above_the_limit_resets_its_stream_only),
            cmocka_unit_test(a_request_above_the_limit_is_answered_where_the_service_says_why),
            cmocka_unit_test(requests_beyond_the_rate_are_declined_and_counted),
            cmocka_unit_test(a_request_without_end_is_answered_and_ended),
            cmocka_unit_test(an_answer_above_the_limit_is_refused),
            cmocka_unit_test(a_refused_request_fails_for_the_one_who_asked),
            cmocka_unit_test(an_answer_may_come_later),
            cmocka_unit_test(a_request_whose_asker_leaves_is_abandoned),
            cmocka_unit_test(calls_to_a_peer_are_limited_by_the_one_who_asks),
            cmocka_unit_test(a_request_that_trickles_in_has_one_deadline),
            cmocka_unit_test(a_protocol_that_nobody_serves_is_reported),
            cmocka_unit_test(a_hundred_pings_are_answered_on_one_stream),
            cmocka_unit_test(what_is_pushed_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
