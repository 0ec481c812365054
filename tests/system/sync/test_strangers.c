/* SPDX-License-Identifier: MIT */

/* A node with store-sync and a peer that keeps to no rule; afterwards it syncs with an honest one. */

#include <stdlib.h>
#include <string.h>

#include "tests/support/archived_ids.h"
#include "tests/support/sync_stranger.h"
#include "tests/system/sync/sync_traffic.h"

enum {
    IDS = 500,
    ROUNDS_MAX = 16,
    IDS_MAX = 1000,
    PAYLOAD_LIMIT = 65536
};

#define MINUTE_NS (INT64_C(60) * NANOSECONDS_PER_SECOND)
#define HOUR_NS   (INT64_C(60) * MINUTE_NS)

static struct live_node node;
static struct sync_stranger stranger;
static int64_t now_ns;

/* What the filling from the archive was first to find comes as a duplicate. */
static void wait_in_set(void)
{
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND;
    struct timespec slice = {.tv_nsec = (long)5 * NANOSECONDS_PER_MILLISECOND};
    uint64_t count = 0;
    while (count < IDS && clock_monotonic_ns() < end_ns) {
        nanosleep(&slice, NULL);
        count = live_node_metric(&node, (enum metric)LEDGER_SYNC_DELIVERED) +
                live_node_metric(&node, (enum metric)LEDGER_SYNC_DUPLICATE);
    }
    assert_int_equal(count, IDS);
}

static int set_up(void **state)
{
    (void)state;
    static const char *const settings[] = {"relay", "false", "archive", "memory", "store-sync",
            "true", "store-sync-relay-jitter", "0", "store-sync-interval", "0", "store-sync-rounds",
            "16", "store-sync-ids", "1000", "store-sync-payload-limit", "64KiB",
            "store-sync-sessions", "1", NULL};
    now_ns = clock_wall_ns();
    live_node_start(&node, settings);
    traffic_fill(&node, 0, IDS, now_ns - 30 * MINUTE_NS);
    wait_archived(node.node, IDS);
    wait_in_set();
    sync_stranger_start(&stranger, node.address);
    return 0;
}

/* Whatever was said to it, it is in order. */
static int tear_down(void **state)
{
    (void)state;
    struct live_node honest;
    const char *settings[] = {"relay", "false", "archive", "memory", "store-sync", "true",
            "store-sync-relay-jitter", "0", "store-sync-interval", "1s", "staticnode", node.address,
            NULL};
    sync_stranger_stop(&stranger);
    live_node_start(&honest, settings);
    traffic_fill(&honest, 50000, 7, now_ns - 20 * MINUTE_NS);
    wait_same_archive(node.node, honest.node);
    live_node_stop(&honest);
    live_node_stop(&node);
    return 0;
}

/* A fingerprint that is none of ours over the last hour. Returns its length. */
static size_t wrong_fingerprint(uint8_t *out, uint8_t fill)
{
    uint8_t *end = sync_wire_begin(out, LIVE_NODE_TOPIC, now_ns - HOUR_NS);
    end = sync_wire_fingerprint(end, (uint64_t)HOUR_NS, fill);
    return (size_t)(end - out);
}

static void begin_session(void)
{
    uint8_t payload[256];
    sync_stranger_open_session(&stranger);
    sync_stranger_say(&stranger.session, span_of(payload, wrong_fingerprint(payload, 0x5A)));
    assert_int_equal(sync_stranger_hear(&stranger.session, 1), 1);
}

static void malformed_payloads_end_the_session_and_nothing_else(void **state)
{
    (void)state;
    static const uint8_t topics_without_end[] = {0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 1, 'a'};
    static const uint8_t unknown_type[] = {0, 0, 0x80, 0x01, 1, 7, 0, 0, 0, 0, 0, 0, 0, 0};
    static const uint8_t no_end[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
    static const uint8_t short_fingerprint[] = {0, 0, 5, 9, 1, 1, 2, 3};
    static const uint8_t items_without_end[] = {0, 0, 5, 9, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F};
    const struct span payloads[] = {span_of(topics_without_end, sizeof(topics_without_end)),
            span_of(unknown_type, sizeof(unknown_type)), span_of(no_end, sizeof(no_end)),
            span_of(short_fingerprint, sizeof(short_fingerprint)),
            span_of(items_without_end, sizeof(items_without_end))};
    for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
        sync_stranger_open_session(&stranger);
        sync_stranger_say(&stranger.session, payloads[i]);
        sync_stranger_wait_closed(&stranger.session);
        live_node_wait_metric(&node,
                i == 0 ? METRIC_SYNC_SESSIONS_LIMIT : METRIC_SYNC_SESSIONS_MALFORMED,
                i == 0 ? 1 : i);
    }
}

static void a_payload_above_the_cap_is_not_read(void **state)
{
    (void)state;
    uint8_t prefix[16];
    sync_stranger_open_session(&stranger);
    uint8_t *end = sync_wire_number(prefix, PAYLOAD_LIMIT + 1);
    sync_stranger_say_raw(&stranger.session, span_of(prefix, (size_t)(end - prefix)));
    sync_stranger_wait_closed(&stranger.session);
    live_node_wait_metric(&node, METRIC_SYNC_SESSIONS_LIMIT, 1);
    assert_int_equal(live_node_metric(&node, METRIC_SYNC_ROUNDS), 0);
}

static void a_session_without_end_is_ended(void **state)
{
    (void)state;
    uint8_t payload[256];
    sync_stranger_open_session(&stranger);
    for (unsigned i = 0; i < ROUNDS_MAX + 4; i++) {
        size_t length = wrong_fingerprint(payload, (uint8_t)(i + 1));
        sync_stranger_say(&stranger.session, span_of(payload, length));
        if (sync_stranger_hear(&stranger.session, 1) == 0) {
            break;
        }
    }
    sync_stranger_wait_closed(&stranger.session);
    live_node_wait_metric(&node, METRIC_SYNC_SESSIONS_LIMIT, 1);
    assert_int_equal(live_node_metric(&node, METRIC_SYNC_ROUNDS), ROUNDS_MAX);
}

/* 50 ids of messages that do not exist: they are not waited for, and not believed. */
static void what_is_promised_and_does_not_come_changes_nothing(void **state)
{
    (void)state;
    uint8_t payload[4096];
    uint8_t *end = sync_wire_begin(payload, LIVE_NODE_TOPIC, now_ns - 50 * MINUTE_NS);
    end = sync_wire_number(end, (uint64_t)(10 * MINUTE_NS));
    *end++ = 2;
    *end++ = 50;
    for (uint8_t i = 0; i < 50; i++) {
        end = sync_wire_number(end, i == 0 ? (uint64_t)(now_ns - 50 * MINUTE_NS) + 1 : 1);
        memset(end, i, 32);
        end += 32;
    }
    *end++ = 1;
    sync_stranger_open_session(&stranger);
    sync_stranger_say(&stranger.session, span_of(payload, (size_t)(end - payload)));
    sync_stranger_wait_closed(&stranger.session);
    live_node_wait_metric(&node, METRIC_SYNC_WE_LACK, 50);
    assert_int_equal(archived_ids(node.node).count, IDS);
}

static void only_so_many_sessions_are_on_at_a_time(void **state)
{
    (void)state;
    struct sync_stranger other;
    begin_session();
    sync_stranger_start(&other, node.address);
    sync_stranger_open_session(&other);
    sync_stranger_wait_closed(&other.session);
    live_node_wait_metric(&node, METRIC_SYNC_SESSIONS_BUSY, 1);
    sync_stranger_stop(&other);
    sync_stranger_end(&stranger.session);
    sync_stranger_wait_closed(&stranger.session);
}

static void a_transfer_without_a_session_is_refused(void **state)
{
    (void)state;
    uint8_t message[TRAFFIC_MESSAGE_MAX];
    uint8_t frame[512];
    size_t length = traffic_message(message, 77777, now_ns - MINUTE_NS);
    uint8_t *end = sync_wire_transfer(frame, LIVE_NODE_TOPIC, span_of(message, length));
    sync_stranger_open_transfer(&stranger);
    sync_stranger_say(&stranger.sending, span_of(frame, (size_t)(end - frame)));
    sync_stranger_wait_closed(&stranger.sending);
    live_node_wait_metric(&node, METRIC_SYNC_REFUSED_NO_SESSION, 1);
    assert_int_equal(archived_ids(node.node).count, IDS);
}

static void transfer(const char *topic, struct span message)
{
    uint8_t *frame = malloc(message.length + 256);
    assert_non_null(frame);
    uint8_t *end = sync_wire_transfer(frame, topic, message);
    sync_stranger_say(&stranger.sending, span_of(frame, (size_t)(end - frame)));
    free(frame);
}

static struct span ephemeral(uint8_t *message, size_t length)
{
    uint8_t *end = wire_write_number(message + length, WIRE_TAG(31, WIRE_VARINT), 1);
    return span_of(message, (size_t)(end - message));
}

static struct span with_unknown_field(uint8_t *message, size_t length)
{
    uint8_t *end = wire_write_number(message + length, WIRE_TAG(99, WIRE_VARINT), 1);
    return span_of(message, (size_t)(end - message));
}

static void what_is_transferred_is_checked(void **state)
{
    (void)state;
    uint8_t message[TRAFFIC_MESSAGE_MAX];
    begin_session();
    sync_stranger_open_transfer(&stranger);
    size_t length = traffic_message(message, 60000, now_ns - MINUTE_NS);
    transfer(LIVE_NODE_TOPIC, span_of(message, length));            /* taken */
    transfer(LIVE_NODE_TOPIC, span_of(message, length));            /* the same bytes */
    transfer(LIVE_NODE_TOPIC, with_unknown_field(message, length)); /* known by its hash */
    length = traffic_message(message, 60001, now_ns - MINUTE_NS);
    transfer(LIVE_NODE_TOPIC, ephemeral(message, length));
    length = traffic_message(message, 60002, now_ns + HOUR_NS);
    transfer(LIVE_NODE_TOPIC, span_of(message, length)); /* of the future */
    length = traffic_message(message, 60003, now_ns - MINUTE_NS);
    transfer("/waku/2/rs/16/9", span_of(message, length));
    transfer(LIVE_NODE_TOPIC, span_of("\xFF\xFF", 2));
    live_node_wait_metric(&node, METRIC_SYNC_MESSAGES_IN, 7);
    wait_archived(node.node, IDS + 1);
    live_node_wait_metric(&node, METRIC_SYNC_REPEATED, 1);
    live_node_wait_metric(&node, (enum metric)LEDGER_ARCHIVE_DUPLICATE, 1);
    live_node_wait_metric(&node, (enum metric)LEDGER_ARCHIVE_EPHEMERAL, 1);
    live_node_wait_metric(&node, (enum metric)LEDGER_ARCHIVE_TIMESTAMP_OUT_OF_RANGE, 1);
    live_node_wait_metric(&node, (enum metric)LEDGER_INTAKE_NOT_DECODABLE, 1);
    assert_int_equal(live_node_metric(&node, METRIC_SYNC_REFUSED_TOPIC), 1);
    assert_int_equal(live_node_received(&node), 0);
    /* Neither topic nor message: the stream ends. */
    sync_stranger_say(&stranger.sending, span_of("\x08\x01", 2));
    sync_stranger_wait_closed(&stranger.sending);
    live_node_wait_metric(&node, METRIC_SYNC_REFUSED_MALFORMED, 1);
}

static void no_more_is_transferred_than_a_session_is_about(void **state)
{
    (void)state;
    begin_session();
    sync_stranger_open_transfer(&stranger);
    for (uint64_t i = 0; i < IDS_MAX + 10; i++) {
        uint8_t message[TRAFFIC_MESSAGE_MAX];
        size_t length = traffic_message(message, 100000 + i, now_ns - MINUTE_NS);
        transfer(LIVE_NODE_TOPIC, span_of(message, length));
    }
    sync_stranger_wait_closed(&stranger.sending);
    live_node_wait_metric(&node, METRIC_SYNC_REFUSED_OVER_LIMIT, 1);
    wait_archived(node.node, IDS + IDS_MAX);
}

/* An empty set over the last hour that asks: all our messages come. */
static size_t ask_for_all(uint8_t *out)
{
    uint8_t *end = sync_wire_begin(out, LIVE_NODE_TOPIC, now_ns - HOUR_NS);
    end = sync_wire_number(end, (uint64_t)HOUR_NS);
    *end++ = 2;
    *end++ = 0;
    *end++ = 0;
    return (size_t)(end - out);
}

/* So far and no further; 0: nothing but the connection. */
static void come_up_to(unsigned phase)
{
    uint8_t payload[256];
    uint8_t message[TRAFFIC_MESSAGE_MAX];
    uint8_t frame[512];
    size_t length = ask_for_all(payload);
    if (phase >= 1) {
        sync_stranger_open_session(&stranger);
    }
    if (phase == 2) {
        uint8_t cut[] = {(uint8_t)length, payload[0], payload[1]};
        sync_stranger_say_raw(&stranger.session, span_of(cut, sizeof(cut)));
    }
    if (phase >= 3) {
        sync_stranger_say(&stranger.session, span_of(payload, length));
    }
    if (phase >= 4) {
        (void)sync_stranger_hear(&stranger.session, 1);
        sync_stranger_open_transfer(&stranger);
        length = traffic_message(message, 90000, now_ns - MINUTE_NS);
        uint8_t *end = sync_wire_transfer(frame, LIVE_NODE_TOPIC, span_of(message, length));
        uint8_t cut[] = {(uint8_t)(end - frame), frame[0], frame[1], frame[2]};
        sync_stranger_say_raw(&stranger.sending, span_of(cut, sizeof(cut)));
    }
    if (phase >= 5) {
        sync_stranger_wait_bytes(&stranger.receiving, 1000); /* of some 30,000 */
    }
}

static void a_peer_that_vanishes_in_any_phase_leaves_nothing(void **state)
{
    (void)state;
    enum {
        PHASES = 6
    };
    for (unsigned i = 0; i < 2 * PHASES; i++) {
        come_up_to(i % PHASES);
        sync_stranger_stop(&stranger);
        sync_stranger_start(&stranger, node.address);
    }
    /* There is room for one session at a time: none has kept it. */
    begin_session();
    sync_stranger_end(&stranger.session);
    sync_stranger_wait_closed(&stranger.session);
    assert_int_equal(archived_ids(node.node).count, IDS);
}

/* What it calls its own lies outside of what it speaks about, or is out of order. */
static void ids_outside_their_range_are_not_believed(void **state)
{
    (void)state;
    uint8_t payload[512];
    uint8_t *end = sync_wire_begin(payload, LIVE_NODE_TOPIC, now_ns - 50 * MINUTE_NS);
    end = sync_wire_number(end, (uint64_t)MINUTE_NS);
    *end++ = 2;
    *end++ = 3;
    end = sync_wire_number(end, 1); /* 1970 */
    memset(end, 1, 32);
    end += 32;
    end = sync_wire_number(end, (uint64_t)(now_ns - 50 * MINUTE_NS)); /* the only one inside */
    memset(end, 2, 32);
    end += 32;
    end = sync_wire_number(end, (uint64_t)HOUR_NS); /* of the future */
    memset(end, 3, 32);
    end += 32;
    *end++ = 1;
    sync_stranger_open_session(&stranger);
    sync_stranger_say(&stranger.session, span_of(payload, (size_t)(end - payload)));
    sync_stranger_wait_closed(&stranger.session);
    live_node_wait_metric(&node, METRIC_SYNC_WE_LACK, 1);
    assert_int_equal(live_node_metric(&node, METRIC_SYNC_WE_LACK), 1);
}

/* The bytes on the wire, by the specification: an empty set that asks, and all our messages come. */
static void sends_what_a_peer_lacks(void **state)
{
    (void)state;
    uint8_t payload[256];
    uint8_t message[TRAFFIC_MESSAGE_MAX];
    uint8_t frame[512];
    uint8_t *end = sync_wire_begin(payload, LIVE_NODE_TOPIC, now_ns - HOUR_NS);
    end = sync_wire_number(end, (uint64_t)HOUR_NS);
    *end++ = 2; /* an item set */
    *end++ = 0; /* of none */
    *end++ = 1; /* that wants no answer */
    sync_stranger_open_session(&stranger);
    sync_stranger_say(&stranger.session, span_of(payload, (size_t)(end - payload)));
    size_t length = traffic_message(message, 0, now_ns - 30 * MINUTE_NS);
    end = sync_wire_transfer(frame, LIVE_NODE_TOPIC, span_of(message, length));
    size_t frame_length = (size_t)(end - frame);
    assert_true(frame_length < 128); /* one byte of length before it */
    assert_int_equal(sync_stranger_hear(&stranger.receiving, IDS - 1), IDS - 1);
    sync_stranger_wait_bytes(&stranger.receiving, frame_length + 1);
    assert_int_equal(stranger.receiving.length, frame_length + 1);
    assert_int_equal(stranger.receiving.bytes[0], frame_length);
    /* The last in the order of time. */
    length = traffic_message(message, IDS - 1, now_ns - 30 * MINUTE_NS + IDS - 1);
    (void)sync_wire_transfer(frame, LIVE_NODE_TOPIC, span_of(message, length));
    assert_memory_equal(stranger.receiving.bytes + 1, frame, frame_length);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(malformed_payloads_end_the_session_and_nothing_else),
            CASE(a_payload_above_the_cap_is_not_read),
            CASE(a_session_without_end_is_ended),
            CASE(what_is_promised_and_does_not_come_changes_nothing),
            CASE(only_so_many_sessions_are_on_at_a_time),
            CASE(a_transfer_without_a_session_is_refused),
            CASE(what_is_transferred_is_checked),
            CASE(no_more_is_transferred_than_a_session_is_about),
            CASE(a_peer_that_vanishes_in_any_phase_leaves_nothing),
            CASE(ids_outside_their_range_are_not_believed),
            CASE(sends_what_a_peer_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
