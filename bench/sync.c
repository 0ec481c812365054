/* SPDX-License-Identifier: MIT */

/*
 * What store-sync costs: two nodes in one process, over loopback with Noise and yamux, whose archives
 * hold the same messages but for some that one of them lacks. For each number of differences: payloads,
 * round trips and bytes of the session, bytes of the transfers, and time until nothing is lacking.
 *
 * bench_sync [IDS [DIFFERENCES ...]]
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "codec/wire.h"
#include "net/protocols/store_sync.h"
#include "node/network.h"
#include "node/node.h"

enum {
    MESSAGE_MAX = 512,
    PAYLOAD_BYTES = 100,
    PATIENCE_S = 120,
    CASES_MAX = 32
};

#define TOPIC    "/waku/2/rs/16/0"
#define RANGE_NS (INT64_C(3600) * NANOSECONDS_PER_SECOND)

struct side {
    struct options *options;
    struct node *node;
    const struct topic *topic;
    char address[MULTIADDR_TEXT_SIZE];
};

static void die(const char *what)
{
    fprintf(stderr, "bench_sync: %s\n", what);
    exit(1);
}

static void set(struct options *options, const char *name, const char *value)
{
    struct options_error error = {.text = ""};
    if (options_set(options, name, value, &error) != STATUS_OK) {
        die(error.text);
    }
}

static void start(struct side *side, const char *peer)
{
    static const struct option_spec *const tables[] = {options_of_node, NULL};
    static const char *const settings[][2] = {{"tcp-port", "0"}, {"listen-address", "127.0.0.1"},
            {"cluster-id", "16"}, {"shard", "0"}, {"relay", "false"}, {"archive", "memory"},
            {"archive-memory-limit", "8GiB"}, {"sync-ring", "262144"}, {"store-sync", "true"},
            {"store-sync-interval", "0"}, {"store-sync-relay-jitter", "1s"},
            {"store-sync-range", "2h"}, {"ip-colocation-limit", "0"}};
    struct node_hooks hooks = {.has_network = true};
    struct node_error error = {.text = ""};
    struct multiaddr address;
    if (options_create(&side->options, tables) != STATUS_OK) {
        die("no memory");
    }
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        set(side->options, settings[i][0], settings[i][1]);
    }
    if (peer != NULL) {
        set(side->options, "staticnode", peer);
    }
    if (node_create(&side->node, side->options, &hooks, &error) != STATUS_OK ||
            node_start(side->node, &error) != STATUS_OK ||
            node_subscribe_topic(side->node, &side->topic, span_of_text(TOPIC)) != STATUS_OK) {
        die(error.text);
    }
    if (!network_address_at(node_network(side->node), 0, &address)) {
        die("no address");
    }
    multiaddr_print(side->address, &address);
}

static void stop(struct side *side)
{
    node_stop(side->node);
    node_destroy(&side->node);
    options_destroy(&side->options);
}

static size_t make_message(uint8_t *out, uint64_t number, int64_t timestamp_ns)
{
    uint8_t payload[PAYLOAD_BYTES] = {0};
    memcpy(payload, &number, sizeof(number));
    uint8_t *end =
            wire_write_bytes(out, WIRE_TAG(1, WIRE_LENGTH), span_of(payload, sizeof(payload)));
    end = wire_write_bytes(end, WIRE_TAG(2, WIRE_LENGTH), span_of_text("/bench/1/sync/proto"));
    end = wire_write_number(end, WIRE_TAG(10, WIRE_VARINT), varint_zigzag(timestamp_ns));
    return (size_t)(end - out);
}

static void put(struct side *side, struct span message)
{
    struct frame *frame = node_wait_frame(side->node, message.length);
    struct intake_source source = {.received_ns = clock_wall_ns(),
            .received_monotonic_ns = clock_monotonic_ns(),
            .origin = ORIGIN_SYNC};
    if (frame == NULL) {
        die("no frame");
    }
    memcpy(frame_bytes(frame), message.bytes, message.length);
    if (intake_post_message(node_intake(side->node), frame, side->topic, &source, NULL) !=
            STATUS_OK) {
        die("no memory");
    }
}

/* count messages spread over the hour before now; to both sides, or to the first only. */
static void fill(struct side sides[2], uint64_t first, uint64_t count, size_t to)
{
    int64_t start_ns = clock_wall_ns() - RANGE_NS;
    for (uint64_t i = 0; i < count; i++) {
        uint8_t message[MESSAGE_MAX];
        int64_t offset_ns = (int64_t)((double)i / (double)count * 0.98 * (double)RANGE_NS);
        size_t length = make_message(message, first + i, start_ns + offset_ns);
        for (size_t s = 0; s < to; s++) {
            put(&sides[s], span_of(message, length));
        }
    }
}

static uint64_t counted(const struct side *side, enum metric metric)
{
    return metrics_sum(node_metrics(side->node), metric);
}

static void wait_for(const struct side *side, enum metric metric, uint64_t value)
{
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)PATIENCE_S * NANOSECONDS_PER_SECOND;
    struct timespec slice = {.tv_nsec = (long)NANOSECONDS_PER_MILLISECOND};
    while (counted(side, metric) < value) {
        if (clock_monotonic_ns() > end_ns) {
            die("a session or its transfers did not end");
        }
        nanosleep(&slice, NULL);
    }
}

struct reading {
    uint64_t payloads;
    uint64_t bytes;
    uint64_t transfer_bytes;
    uint64_t stored;
};

static struct reading read_both(const struct side sides[2])
{
    struct reading reading = {0};
    for (size_t s = 0; s < 2; s++) {
        reading.payloads += counted(&sides[s], METRIC_SYNC_ROUNDS);
        reading.bytes += counted(&sides[s], METRIC_SYNC_BYTES_IN);
        reading.transfer_bytes += counted(&sides[s], METRIC_SYNC_TRANSFER_BYTES_IN);
        reading.stored += counted(&sides[s], (enum metric)LEDGER_ARCHIVE_DELIVERED);
    }
    return reading;
}

static void run_case(struct side sides[2], uint64_t first, uint64_t differences, uint64_t session)
{
    fill(sides, first, differences, 1);
    wait_for(&sides[0], (enum metric)LEDGER_SYNC_DELIVERED, first + differences);
    struct reading before = read_both(sides);
    uint64_t start_ns = clock_monotonic_ns();
    store_sync_now(network_store_sync(node_network(sides[1].node)));
    wait_for(&sides[0], METRIC_SYNC_SESSIONS_ENDED, session);
    wait_for(&sides[1], METRIC_SYNC_SESSIONS_ENDED, session);
    wait_for(&sides[1], (enum metric)LEDGER_ARCHIVE_DELIVERED, first + differences);
    double milliseconds = (double)(clock_monotonic_ns() - start_ns) / 1e6;
    struct reading after = read_both(sides);
    uint64_t payloads = after.payloads - before.payloads;
    printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.1f\n", first,
            differences, payloads, (payloads + 1) / 2, after.bytes - before.bytes,
            after.transfer_bytes - before.transfer_bytes, milliseconds);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const uint64_t usual[] = {0, 1, 100, 10000};
    uint64_t differences[CASES_MAX];
    size_t count = sizeof(usual) / sizeof(usual[0]);
    uint64_t ids = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
    struct side sides[2];
    memcpy(differences, usual, sizeof(usual));
    for (int i = 2; i < argc && i - 2 < CASES_MAX; i++) {
        differences[i - 2] = strtoull(argv[i], NULL, 10);
        count = (size_t)i - 1;
    }
    start(&sides[0], NULL);
    start(&sides[1], sides[0].address);
    fill(sides, 0, ids, 2);
    wait_for(&sides[0], (enum metric)LEDGER_SYNC_DELIVERED, ids);
    wait_for(&sides[1], (enum metric)LEDGER_SYNC_DELIVERED, ids);
    wait_for(&sides[1], (enum metric)LEDGER_ARCHIVE_DELIVERED, ids);
    printf("ids,differences,payloads,round_trips,session_bytes,transfer_bytes,ms\n");
    for (size_t i = 0; i < count; i++) {
        run_case(sides, ids, differences[i], i + 1);
        ids += differences[i];
    }
    stop(&sides[1]);
    stop(&sides[0]);
    return 0;
}
