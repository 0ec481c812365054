/* SPDX-License-Identifier: MIT */

/*
 * A node with store-sync, and peers that ask for the same again, promise what they do not send, or send
 * what nobody asked for. The first peer is `stranger`, a second one `other`.
 */

#include <stdlib.h>
#include <string.h>

#include "tests/support/archived_ids.h"
#include "tests/support/sync_stranger.h"
#include "tests/system/sync/sync_traffic.h"

enum {
    IDS = 500,
    PROMISED = 50,
    HASH_BYTES = 32
};

#define MINUTE_NS (INT64_C(60) * NANOSECONDS_PER_SECOND)
#define HOUR_NS   (INT64_C(60) * MINUTE_NS)

static struct live_node node;
static struct sync_stranger stranger;
static struct sync_stranger other;
static int64_t now_ns;

static void wait_a_moment(void)
{
    struct timespec slice = {.tv_nsec = (long)20 * NANOSECONDS_PER_MILLISECOND};
    nanosleep(&slice, NULL);
}

/* What the filling from the archive was first to find comes as a duplicate. */
static void wait_in_set(struct live_node *live, uint64_t expected)
{
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND;
    uint64_t count = 0;
    while (count < expected && clock_monotonic_ns() < end_ns) {
        wait_a_moment();
        count = live_node_metric(live, (enum metric)LEDGER_SYNC_DELIVERED) +
                live_node_metric(live, (enum metric)LEDGER_SYNC_DUPLICATE);
    }
    assert_int_equal(count, expected);
}

static void start(const char *patience, const char *name, const char *value)
{
    const char *settings[] = {"relay", "false", "archive", "memory", "store-sync", "true",
            "store-sync-relay-jitter", "0", "store-sync-interval", "0", "store-sync-patience",
            patience, name, value, NULL};
    now_ns = clock_wall_ns();
    live_node_start(&node, settings);
    traffic_fill(&node, 0, IDS, now_ns - 30 * MINUTE_NS);
    wait_archived(node.node, IDS);
    wait_in_set(&node, IDS);
    sync_stranger_start(&stranger, node.address);
    sync_stranger_start(&other, node.address);
}

/* Whatever was said to it, it serves an honest peer. */
static void stop(void)
{
    struct live_node honest;
    const char *settings[] = {"relay", "false", "archive", "memory", "store-sync", "true",
            "store-sync-relay-jitter", "0", "store-sync-interval", "1s", "staticnode", node.address,
            NULL};
    live_node_start(&honest, settings);
    traffic_fill(&honest, 50000, 7, now_ns - 20 * MINUTE_NS);
    wait_same_archive(node.node, honest.node);
    live_node_stop(&honest);
    sync_stranger_stop(&other);
    sync_stranger_stop(&stranger);
    live_node_stop(&node);
}

/* A session that asks for all messages: an empty set over the last hour, answered by a list. */
static void ask_for_all(struct sync_stranger *peer)
{
    uint8_t payload[256];
    uint8_t *end = sync_wire_begin(payload, LIVE_NODE_TOPIC, now_ns - HOUR_NS);
    end = sync_wire_number(end, (uint64_t)HOUR_NS);
    *end++ = 2;
    *end++ = 0;
    *end++ = 0;
    sync_stranger_open_session(peer);
    sync_stranger_say(&peer->session, span_of(payload, (size_t)(end - payload)));
    assert_int_equal(sync_stranger_hear(&peer->session, 1), 1);
    sync_stranger_end(&peer->session);
    sync_stranger_wait_closed(&peer->session);
}

static uint64_t sent(void)
{
    return live_node_metric(&node, METRIC_SYNC_MESSAGES_OUT);
}

static void asked_again_and_again_it_sends_each_message_once(void **state)
{
    (void)state;
    enum {
        SESSIONS = 10
    };
    start("60s", "store-sync-rounds", "16");
    ask_for_all(&stranger);
    assert_int_equal(sync_stranger_hear(&stranger.receiving, IDS), IDS);
    for (unsigned i = 1; i < SESSIONS; i++) {
        ask_for_all(&stranger);
    }
    live_node_wait_metric(&node, METRIC_SYNC_NOT_RESENT, (SESSIONS - 1) * IDS);
    assert_int_equal(sent(), IDS);
    ask_for_all(&other); /* another peer gets them all the same */
    assert_int_equal(sync_stranger_hear(&other.receiving, IDS), IDS);
    assert_int_equal(sent(), 2 * IDS);
    stop();
}

static void asked_after_the_patience_it_sends_again(void **state)
{
    (void)state;
    start("1s", "store-sync-peer-sessions", "0");
    ask_for_all(&stranger);
    assert_int_equal(sync_stranger_hear(&stranger.receiving, IDS), IDS);
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND;
    while (sent() < 2 * IDS) {
        assert_true(clock_monotonic_ns() < end_ns);
        ask_for_all(&stranger);
        wait_a_moment();
    }
    assert_true(live_node_metric(&node, METRIC_SYNC_NOT_RESENT) > 0);
    stop();
}

/* The stream that they are on is reset by the peer: they are sent in its next session. */
static void what_a_broken_transfer_left_over_is_sent_in_the_next_session(void **state)
{
    (void)state;
    start("60s", "store-sync-rounds", "16");
    static uint8_t payload[100000];
    for (uint64_t i = 0; i < 40; i++) { /* more than a stream holds unread */
        static uint8_t message[sizeof(payload) + 128];
        memcpy(payload, &i, sizeof(i));
        uint8_t *end = wire_write_bytes(
                message, WIRE_TAG(1, WIRE_LENGTH), span_of(payload, sizeof(payload)));
        end = wire_write_bytes(end, WIRE_TAG(2, WIRE_LENGTH), span_of_text("/test/1/sync/proto"));
        end = wire_write_number(end, WIRE_TAG(10, WIRE_VARINT),
                varint_zigzag(now_ns - 10 * MINUTE_NS + (int64_t)i));
        traffic_post(&node, span_of(message, (size_t)(end - message)));
    }
    wait_archived(node.node, IDS + 40);
    wait_in_set(&node, IDS + 40);
    stranger.receiving.is_stuck = true;
    ask_for_all(&stranger);
    live_node_wait_metric(&node, METRIC_SYNC_MESSAGES_OUT, 16);
    ask_for_all(&stranger);
    live_node_wait_metric(&node, METRIC_SYNC_NOT_RESENT, IDS + 40); /* all are on their way */
    sync_stranger_reset(&stranger.receiving);
    live_node_wait_metric(&node, METRIC_SYNC_UNSENT_PEER_GONE, 1);
    ask_for_all(&stranger);
    assert_int_equal(sync_stranger_hear(&stranger.receiving, IDS + 40), IDS + 40);
    stop();
}

static void promised_hash(uint8_t out[HASH_BYTES], uint8_t i)
{
    memset(out, 0xA0, HASH_BYTES);
    out[0] = i;
}

/* All of the first payload, and the bytes stay. */
static void wait_for_answer(struct stranger_stream *stream)
{
    sync_stranger_wait_bytes(stream, 2);
    size_t length = stream->bytes[0] & 0x7F;
    bool is_long = (stream->bytes[0] & 0x80) != 0;
    length += is_long ? (size_t)stream->bytes[1] << 7 : 0;
    sync_stranger_wait_bytes(stream, length + (is_long ? 2 : 1));
}

/* A session that lists ids of messages that do not exist, and asks which of them the node has. */
static size_t promise(struct sync_stranger *peer)
{
    uint8_t payload[4096];
    int64_t from_ns = now_ns - 50 * MINUTE_NS;
    uint8_t *end = sync_wire_begin(payload, LIVE_NODE_TOPIC, from_ns);
    end = sync_wire_number(end, (uint64_t)(10 * MINUTE_NS));
    *end++ = 2;
    *end++ = PROMISED;
    for (unsigned i = 0; i < PROMISED; i++) {
        end = sync_wire_number(end, i == 0 ? (uint64_t)from_ns + 1 : 1);
        promised_hash(end, (uint8_t)i);
        end += HASH_BYTES;
    }
    *end++ = 0;
    sync_stranger_open_session(peer);
    sync_stranger_say(&peer->session, span_of(payload, (size_t)(end - payload)));
    wait_for_answer(&peer->session);
    sync_stranger_end(&peer->session);
    sync_stranger_wait_closed(&peer->session);
    size_t named = 0;
    for (unsigned i = 0; i < PROMISED; i++) {
        uint8_t hash[HASH_BYTES];
        promised_hash(hash, (uint8_t)i);
        named += memmem(peer->session.bytes, peer->session.length, hash, sizeof(hash)) != NULL;
    }
    return named;
}

static void what_one_peer_is_to_send_the_next_one_is_not_asked_for(void **state)
{
    (void)state;
    start("60s", "store-sync-rounds", "16");
    assert_int_equal(promise(&stranger), 0);
    assert_int_equal(live_node_metric(&node, METRIC_SYNC_WE_LACK), PROMISED);
    /* It says that it has them, to both, which so send nothing. */
    assert_int_equal(promise(&other), PROMISED);
    assert_int_equal(promise(&stranger), PROMISED);
    assert_int_equal(live_node_metric(&node, METRIC_SYNC_WE_LACK), PROMISED);
    assert_int_equal(live_node_metric(&node, METRIC_SYNC_NOT_ASKED), 2 * PROMISED);
    /* Nobody is told that it has them who does not know it himself. */
    ask_for_all(&other);
    assert_int_equal(live_node_metric(&node, METRIC_SYNC_THEY_LACK), IDS);
    /* The first one leaves: the other one is asked. */
    sync_stranger_stop(&stranger);
    live_node_wait_metric(&node, METRIC_SYNC_UNDELIVERED, PROMISED);
    assert_int_equal(promise(&other), 0);
    sync_stranger_start(&stranger, node.address);
    stop();
}

static void promises_that_are_not_kept_hold_nothing_back_for_long(void **state)
{
    (void)state;
    start("100ms", "store-sync-peer-sessions", "0");
    uint64_t asked = 0;
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND;
    /* Three times it waits for one of them; then it asks whoever says that he has them. */
    while (asked < 5) {
        assert_true(clock_monotonic_ns() < end_ns);
        asked += promise(asked % 2 == 0 ? &stranger : &other) == 0;
        wait_a_moment();
    }
    assert_int_equal(live_node_metric(&node, METRIC_SYNC_UNDELIVERED), 3 * PROMISED);
    assert_int_equal(live_node_metric(&node, METRIC_SYNC_WE_LACK), 5 * PROMISED);
    assert_int_equal(archived_ids(node.node).count, IDS);
    stop();
}

/* Another message than was promised, and again: taken once, as none that anybody was asked for. */
static void other_messages_than_were_promised_are_counted(void **state)
{
    (void)state;
    uint8_t message[TRAFFIC_MESSAGE_MAX];
    uint8_t frame[512];
    start("60s", "store-sync-rounds", "16");
    assert_int_equal(promise(&stranger), 0);
    sync_stranger_open_transfer(&stranger);
    size_t length = traffic_message(message, 70000, now_ns - 50 * MINUTE_NS + 1);
    uint8_t *end = sync_wire_transfer(frame, LIVE_NODE_TOPIC, span_of(message, length));
    uint64_t before = live_node_metric(&node, METRIC_SYNC_UNASKED);
    uint64_t decodes = live_node_metric(&node, METRIC_DECODES);
    for (unsigned i = 0; i < 100; i++) {
        sync_stranger_say(&stranger.sending, span_of(frame, (size_t)(end - frame)));
    }
    live_node_wait_metric(&node, METRIC_SYNC_MESSAGES_IN, 100);
    live_node_wait_metric(&node, METRIC_SYNC_UNASKED, before + 1);
    live_node_wait_metric(&node, METRIC_SYNC_REPEATED, 99);
    assert_int_equal(live_node_metric(&node, METRIC_DECODES), decodes + 1);
    assert_int_equal(promise(&other), PROMISED); /* what was promised is still waited for */
    wait_archived(node.node, IDS + 1);
    stop();
}

/* What was promised and comes is none of that; what the nodes began with came as if it were. */
static void what_comes_as_promised_is_no_stray(void **state)
{
    (void)state;
    struct live_node giver;
    start("60s", "store-sync-rounds", "16");
    const char *settings[] = {"relay", "false", "archive", "memory", "store-sync", "true",
            "store-sync-relay-jitter", "0", "store-sync-interval", "1s", "staticnode", node.address,
            NULL};
    live_node_start(&giver, settings);
    uint64_t before = live_node_metric(&node, METRIC_SYNC_UNASKED);
    traffic_fill(&giver, 90000, 300, now_ns - 15 * MINUTE_NS);
    wait_same_archive(node.node, giver.node);
    assert_int_equal(live_node_metric(&node, METRIC_SYNC_MESSAGES_IN), 300);
    wait_in_set(&node, IDS + 300);
    assert_int_equal(live_node_metric(&node, METRIC_SYNC_UNASKED), before);
    live_node_stop(&giver);
    stop();
}

static void a_peer_begins_so_many_sessions_a_minute(void **state)
{
    (void)state;
    start("60s", "store-sync-peer-sessions", "5");
    for (unsigned i = 0; i < 5; i++) {
        ask_for_all(&stranger);
    }
    for (uint64_t i = 1; i <= 20; i++) {
        sync_stranger_open_session(&stranger);
        sync_stranger_wait_closed(&stranger.session);
        live_node_wait_metric(&node, METRIC_SYNC_SESSIONS_BUSY, i);
    }
    ask_for_all(&other);
    stop();
}

/* It says something now and then, so that no pause is too long; others have their place after it. */
static void a_session_that_is_kept_open_is_ended(void **state)
{
    (void)state;
    uint8_t payload[256];
    start("60s", "store-sync-session-time", "2s");
    uint8_t *end = sync_wire_begin(payload, LIVE_NODE_TOPIC, now_ns - HOUR_NS);
    end = sync_wire_fingerprint(end, (uint64_t)HOUR_NS, 0x5A);
    uint8_t prefix = (uint8_t)(end - payload);
    sync_stranger_open_session(&stranger);
    sync_stranger_say_raw(&stranger.session, span_of(&prefix, 1));
    for (uint8_t *byte = payload; byte < end - 1 && !sync_stranger_is_closed(&stranger.session);
            byte++) {
        sync_stranger_say_raw(&stranger.session, span_of(byte, 1));
        wait_a_moment();
        wait_a_moment();
    }
    sync_stranger_wait_closed(&stranger.session);
    assert_int_equal(live_node_metric(&node, METRIC_SYNC_ROUNDS), 0);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(asked_again_and_again_it_sends_each_message_once),
            cmocka_unit_test(asked_after_the_patience_it_sends_again),
            cmocka_unit_test(what_a_broken_transfer_left_over_is_sent_in_the_next_session),
            cmocka_unit_test(what_one_peer_is_to_send_the_next_one_is_not_asked_for),
            cmocka_unit_test(promises_that_are_not_kept_hold_nothing_back_for_long),
            cmocka_unit_test(other_messages_than_were_promised_are_counted),
            cmocka_unit_test(what_comes_as_promised_is_no_stray),
            cmocka_unit_test(a_peer_begins_so_many_sessions_a_minute),
            cmocka_unit_test(a_session_that_is_kept_open_is_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
