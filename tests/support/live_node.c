/* SPDX-License-Identifier: MIT */
#include "tests/support/live_node.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "codec/wire.h"
#include "hash/sha256.h"
#include "node/network.h"
#include "tests/support/cmocka.h"

static const char *const defaults[] = {"tcp-port", "0", "listen-address", "127.0.0.1", "cluster-id",
        "16", "shard", "0", "archive", "none", "ip-colocation-limit", "0", NULL};

static void keep(void *context, struct envelope *envelope)
{
    struct live_node *live = context;
    pthread_mutex_lock(&live->mutex);
    if (live->count == live->capacity) {
        live->capacity = live->capacity == 0 ? 1024 : live->capacity * 2;
        live->digests = realloc(live->digests, live->capacity * sizeof(*live->digests));
    }
    sha256(live->digests[live->count++], (struct sha256_pieces){&envelope->message, 1});
    pthread_cond_broadcast(&live->changed);
    pthread_mutex_unlock(&live->mutex);
}

static void set_all(struct options *options, const char *const settings[])
{
    for (size_t i = 0; settings != NULL && settings[i] != NULL; i += 2) {
        struct options_error error = {.text = ""};
        (void)!options_set(options, settings[i], settings[i + 1], &error);
        assert_string_equal(error.text, "");
    }
}

void live_node_start(struct live_node *live, const char *const settings[])
{
    static const struct option_spec *const tables[] = {options_of_node, NULL};
    struct node_hooks hooks = {.event = keep, .event_context = live, .has_network = true};
    struct node_error error = {.text = ""};
    struct multiaddr address;
    memset(live, 0, sizeof(*live));
    pthread_mutex_init(&live->mutex, NULL);
    pthread_cond_init(&live->changed, NULL);
    assert_int_equal(options_create(&live->options, tables), STATUS_OK);
    set_all(live->options, defaults);
    set_all(live->options, settings);
    if (node_create(&live->node, live->options, &hooks, &error) != STATUS_OK ||
            node_start(live->node, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    assert_true(network_address_at(node_network(live->node), 0, &address));
    multiaddr_print(live->address, &address);
    assert_int_equal(node_subscribe_topic(live->node, &live->topic, span_of_text(LIVE_NODE_TOPIC)),
            STATUS_OK);
}

static bool is_closed(const struct live_node *live, enum ledger_stage stage)
{
    struct ledger ledger;
    ledger_read(&ledger, node_metrics(live->node), stage, node_held(live->node, stage));
    return ledger_is_closed(&ledger);
}

void live_node_stop(struct live_node *live)
{
    node_stop(live->node);
    for (size_t stage = 0; stage < LEDGER_STAGES; stage++) {
        assert_true(is_closed(live, (enum ledger_stage)stage));
    }
    node_destroy(&live->node);
    options_destroy(&live->options);
    free(live->digests);
    pthread_cond_destroy(&live->changed);
    pthread_mutex_destroy(&live->mutex);
}

void live_node_publish(struct live_node *live, struct span message)
{
    struct frame *frame = node_wait_frame(live->node, message.length);
    assert_non_null(frame);
    memcpy(frame_bytes(frame), message.bytes, message.length);
    struct intake_source source = {.received_ns = clock_wall_ns(),
            .received_monotonic_ns = clock_monotonic_ns(),
            .origin = ORIGIN_API};
    struct local_message local = {.bytes = span_of(frame_bytes(frame), message.length)};
    local.topic = node_publish_topic(live->node, live->topic->name, &local.is_fanout);
    assert_non_null(local.topic);
    assert_int_equal(intake_post_part(node_intake(live->node), frame, &local, &source), STATUS_OK);
}

static struct timespec end_after(uint64_t timeout_ns)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    uint64_t end_ns = (uint64_t)end.tv_nsec + timeout_ns;
    end.tv_sec += (time_t)(end_ns / NANOSECONDS_PER_SECOND);
    end.tv_nsec = (long)(end_ns % NANOSECONDS_PER_SECOND);
    return end;
}

/* Waits for up to that time; false when there are not count then. */
static bool wait_up_to(struct live_node *live, size_t count, uint64_t timeout_ns)
{
    struct timespec end = end_after(timeout_ns);
    int result = 0;
    pthread_mutex_lock(&live->mutex);
    while (live->count < count && result == 0) {
        result = pthread_cond_timedwait(&live->changed, &live->mutex, &end);
    }
    bool has_come = live->count >= count;
    pthread_mutex_unlock(&live->mutex);
    return has_come;
}

/* Messages from first on that are that one; with the mutex held. */
static size_t count_from(const struct live_node *live, size_t first, const uint8_t digest[32])
{
    size_t found = 0;
    for (size_t i = first; i < live->count; i++) {
        found += memcmp(live->digests[i], digest, sizeof(live->digests[i])) == 0;
    }
    return found;
}

void live_node_wait_for(struct live_node *live, const uint8_t digest[32])
{
    struct timespec end = end_after((uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND);
    int result = 0;
    pthread_mutex_lock(&live->mutex);
    while (count_from(live, 0, digest) == 0 && result == 0) {
        result = pthread_cond_timedwait(&live->changed, &live->mutex, &end);
    }
    pthread_mutex_unlock(&live->mutex);
    assert_int_equal(result, 0);
}

size_t live_node_copies(struct live_node *live)
{
    size_t copies = 0;
    pthread_mutex_lock(&live->mutex);
    for (size_t i = 0; i < live->count; i++) {
        copies += count_from(live, i + 1, live->digests[i]) > 0;
    }
    pthread_mutex_unlock(&live->mutex);
    return copies;
}

void live_node_wait(struct live_node *live, size_t count)
{
    if (!wait_up_to(live, count, (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND)) {
        fail_msg("%zu of %zu messages have come", live_node_received(live), count);
    }
}

size_t live_node_received(struct live_node *live)
{
    pthread_mutex_lock(&live->mutex);
    size_t count = live->count;
    pthread_mutex_unlock(&live->mutex);
    return count;
}

void live_node_wait_for_way(struct live_node *from, struct live_node *to)
{
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND;
    size_t before = live_node_received(to);
    for (uint64_t i = 0; clock_monotonic_ns() < end_ns; i++) {
        uint8_t message[256];
        uint64_t number = (uint64_t)1 << 63 | clock_monotonic_ns();
        live_node_publish(from, span_of(message, live_message(message, number, 16)));
        if (wait_up_to(to, before + 1, (uint64_t)20 * NANOSECONDS_PER_MILLISECOND)) {
            return;
        }
    }
    fail_msg("no way from %s to %s", from->address, to->address);
}

uint64_t live_node_metric(const struct live_node *live, enum metric metric)
{
    return metrics_sum(node_metrics(live->node), metric);
}

void live_node_wait_metric(struct live_node *live, enum metric metric, uint64_t value)
{
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND;
    struct timespec slice = {.tv_nsec = (long)5 * NANOSECONDS_PER_MILLISECOND};
    while (live_node_metric(live, metric) < value && clock_monotonic_ns() < end_ns) {
        nanosleep(&slice, NULL);
    }
    assert_true(live_node_metric(live, metric) >= value);
}

size_t live_message(uint8_t *out, uint64_t number, size_t payload_length)
{
    static const char content_topic[] = "/test/1/relay/proto";
    uint8_t *end = wire_write_head(out, WIRE_TAG(1, WIRE_LENGTH), payload_length);
    memset(end, (int)(number & 0xff), payload_length);
    memcpy(end, &number, payload_length < sizeof(number) ? payload_length : sizeof(number));
    end += payload_length;
    end = wire_write_bytes(end, WIRE_TAG(2, WIRE_LENGTH), span_of_text(content_topic));
    end = wire_write_number(end, WIRE_TAG(10, WIRE_VARINT), varint_zigzag(clock_wall_ns()));
    end = wire_write_bytes(end, WIRE_TAG(77, WIRE_LENGTH), span_of("unknown", 7));
    return (size_t)(end - out);
}
