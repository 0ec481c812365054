/* SPDX-License-Identifier: MIT */

/* What goes wrong in this node is nobody else's fault: its peers' scores stay, and they stay connected. */

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "codec/waku_message.h"
#include "node/peers.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/archived_ids.h"
#include "tests/support/cmocka.h"
#include "tests/support/live_node.h"
#include "tests/support/stranger.h"

enum {
    MESSAGES = 200,
    PAYLOAD = 3000,
    LIST_TIMEOUT_MS = 10 * 1000
};

static struct span message_at(uint8_t *out, size_t size, int64_t timestamp_ns, bool has_timestamp)
{
    static uint64_t number;
    static uint8_t payload[PAYLOAD];
    number++;
    memcpy(payload, &number, sizeof(number));
    struct waku_message_view fields = {.payload = span_of(payload, sizeof(payload)),
            .content_topic = span_of_text("/test/1/faults/proto"),
            .timestamp_ns = timestamp_ns,
            .has_payload = true,
            .has_content_topic = true,
            .has_timestamp = has_timestamp};
    return span_of(out, waku_message_encode(out, size, &fields));
}

/* Of the only peer. */
static double score_of_peer(struct live_node *live)
{
    struct node_peer_list *list = NULL;
    assert_int_equal(node_peers_list(live->node, &list, LIST_TIMEOUT_MS), STATUS_OK);
    assert_true(list->count > 0 && list->peers[0].has_score);
    double score = list->peers[0].score;
    node_peer_list_destroy(&list);
    return score;
}

/* Rings of all stages full, the archive with them, and a clock that differs by an hour. */
static void a_node_in_trouble_blames_no_peer(void **state)
{
    (void)state;
    static const struct stranger_options plain = {0};
    static const enum node_role stages[] = {
            NODE_ROLE_ARCHIVE, NODE_ROLE_SPILL, NODE_ROLE_FILTER, NODE_ROLE_SYNC, NODE_ROLE_EVENT};
    char folder[256];
    char archive[320];
    uint8_t message[PAYLOAD + 256];
    struct stranger stranger;
    struct live_node live;
    fixture_make_folder(folder);
    snprintf(archive, sizeof(archive), "sqlite://%s/archive.db", folder);
    const char *settings[] = {"archive", archive, "archive-spill-limit", "0", "archive-ring", "16",
            "filter-ring", "16", "event-ring", "16", "sync-ring", "16", NULL};
    live_node_start(&live, settings);
    stranger_start(&stranger, &plain, live.address);
    stranger_subscribe(&stranger, LIVE_NODE_TOPIC);
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
        node_stall(live.node, stages[i], UINT64_MAX);
    }
    for (size_t i = 0; i < MESSAGES; i++) {
        int64_t ago = i % 2 == 0 ? 0 : INT64_C(3600) * NANOSECONDS_PER_SECOND;
        stranger_publish(&stranger, LIVE_NODE_TOPIC,
                message_at(message, sizeof(message), clock_wall_ns() - ago, true));
    }
    live_node_wait_metric(&live, (enum metric)LEDGER_INTAKE_DELIVERED, MESSAGES);
    live_node_wait_metric(&live, (enum metric)LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE, 1);
    live_node_wait_metric(&live, (enum metric)LEDGER_ARCHIVE_TIMESTAMP_OUT_OF_RANGE, 1);
    assert_true(live_node_metric(&live, (enum metric)LEDGER_EVENT_RING_FULL) > 0);
    assert_true(score_of_peer(&live) >= 0);
    assert_true(stranger_is_connected(&stranger));
    /* That would have been seen. */
    stranger_publish(&stranger, LIVE_NODE_TOPIC, span_of_text("\xff\xff no message"));
    live_node_wait_metric(&live, (enum metric)LEDGER_INTAKE_NOT_DECODABLE, 1);
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND;
    struct timespec slice = {.tv_nsec = (long)50 * NANOSECONDS_PER_MILLISECOND};
    while (score_of_peer(&live) >= 0) {
        assert_true(clock_monotonic_ns() < end_ns);
        nanosleep(&slice, NULL);
    }
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
        node_stall(live.node, stages[i], 0);
    }
    stranger_stop(&stranger);
    live_node_stop(&live);
    fixture_remove_folder(folder);
}

/* Whatever its time, a message is relayed; only what is of now is archived, under its own time. */
static void a_message_of_any_time_is_relayed_and_only_one_of_now_archived(void **state)
{
    (void)state;
    const int64_t year = INT64_C(365) * 24 * 3600 * NANOSECONDS_PER_SECOND;
    const int64_t now = clock_wall_ns();
    const int64_t times[] = {0, now - year, now - INT64_C(60) * NANOSECONDS_PER_SECOND,
            now + INT64_C(80) * NANOSECONDS_PER_SECOND, now + 100 * year, -1, INT64_MIN, INT64_MAX,
            now};
    enum {
        TIMES = sizeof(times) / sizeof(times[0])
    };
    static const struct stranger_options plain = {0};
    uint8_t message[PAYLOAD + 256];
    struct stranger stranger;
    struct live_node a;
    struct live_node b;
    const char *store[] = {"archive", "memory", NULL};
    live_node_start(&a, store);
    const char *settings[] = {"staticnode", a.address, NULL};
    live_node_start(&b, settings);
    live_node_wait_for_way(&a, &b);
    uint64_t archived = live_node_metric(&a, (enum metric)LEDGER_ARCHIVE_RECEIVED);
    wait_archived(a.node, archived);
    size_t before = live_node_received(&b);
    stranger_start(&stranger, &plain, a.address);
    stranger_subscribe(&stranger, LIVE_NODE_TOPIC);
    for (size_t i = 0; i < TIMES; i++) {
        stranger_publish(
                &stranger, LIVE_NODE_TOPIC, message_at(message, sizeof(message), times[i], true));
    }
    stranger_publish(&stranger, LIVE_NODE_TOPIC, message_at(message, sizeof(message), 0, false));
    live_node_wait(&b, before + TIMES + 1);
    wait_archived(a.node, archived + 1);
    assert_int_equal(
            live_node_metric(&a, (enum metric)LEDGER_ARCHIVE_TIMESTAMP_OUT_OF_RANGE), TIMES);
    struct node_archive_state extent = {.held = 0};
    struct timespec slice = {.tv_nsec = (long)10 * NANOSECONDS_PER_MILLISECOND};
    while (extent.totals.count < archived + 1) { /* it is shown a moment later */
        nanosleep(&slice, NULL);
        assert_true(node_archive_state(a.node, &extent));
    }
    assert_true(extent.totals.newest_ns <= clock_wall_ns());
    assert_true(extent.totals.oldest_ns > now - year);
    stranger_stop(&stranger);
    live_node_stop(&b);
    live_node_stop(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_node_in_trouble_blames_no_peer),
            cmocka_unit_test(a_message_of_any_time_is_relayed_and_only_one_of_now_archived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
