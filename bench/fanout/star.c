/* SPDX-License-Identifier: MIT */

/* One publisher, one router, many receivers. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "bench/fanout/fanout.h"
#include "codec/varint.h"
#include "tools/common/arrivals.h"
#include "tools/common/light_peer.h"
#include "tools/flood/generator.h"

enum {
    QUEUED_MAX = 256 * 1024,
    PROBE_PERIOD_NS = 50 * NANOSECONDS_PER_MILLISECOND,
    WAIT_MAX_S = 30
};

struct star {
    const struct fanout_plan *plan;
    struct generator *generator;
    struct io_loop *loop;
    struct fanout_node router;
    struct light_peer *publisher;
    struct light_peer **receivers;
    bool *has_probe; /* by receiver: it is in the mesh */
    size_t probed_count;
    uv_timer_t timer; /* only so that waiting ends from time to time */
    uint64_t sent;    /* numbers of this run; probes come before them */
    uint64_t first;
    struct arrivals arrivals;
    uint64_t delivered;
    uint64_t bytes;
    bool is_sending;
    bool is_lost;
};

static bool send_number(struct star *star, uint64_t number)
{
    struct generator_message message = {.number = number, .timestamp_ns = clock_wall_ns()};
    size_t length = generator_rpc_size(star->generator, message);
    size_t prefix = varint_size(length);
    uint8_t *frame = memory_allocate(prefix + length);
    if (frame == NULL) {
        return false;
    }
    generator_fill_rpc(star->generator, message, varint_write(frame, length));
    if (light_peer_send(star->publisher, frame, prefix + length) != STATUS_OK) {
        memory_free(frame);
        return false;
    }
    return true;
}

static void pump(struct star *star)
{
    uint64_t end = star->plan->messages;
    while (star->is_sending && star->sent < end &&
            arrivals_in_flight(&star->arrivals, star->sent) < FANOUT_WINDOW &&
            light_peer_queued(star->publisher) < QUEUED_MAX &&
            send_number(star, star->first + star->sent)) {
        star->sent++;
    }
}

static size_t index_of(const struct star *star, const struct light_peer *peer)
{
    size_t i = 0;
    while (star->receivers[i] != peer) {
        i++;
    }
    return i;
}

/* Where the payload lies is known without decoding: the generator puts it first. */
static void on_message(void *context, struct light_peer *peer, const struct light_message *message)
{
    struct star *star = context;
    struct span rest = message->bytes;
    uint64_t tag;
    uint64_t length;
    uint64_t number;
    if (varint_read(&tag, &rest) != STATUS_OK || varint_read(&length, &rest) != STATUS_OK ||
            rest.length < sizeof(number)) {
        return;
    }
    memcpy(&number, rest.bytes, sizeof(number));
    if (star->is_sending && number >= star->first) {
        arrivals_add(&star->arrivals, index_of(star, peer));
        star->delivered++;
        star->bytes += message->bytes.length;
        pump(star);
    } else if (!star->is_sending) {
        size_t i = index_of(star, peer);
        star->probed_count += !star->has_probe[i];
        star->has_probe[i] = true;
    }
}

static void on_writable(void *context, struct light_peer *peer)
{
    (void)peer;
    pump(context);
}

static void on_ended(void *context, struct light_peer *peer, const char *reason)
{
    (void)peer;
    struct star *star = context;
    star->is_lost = true;
    fprintf(stderr, "bench_fanout: a peer ended: %s\n", reason);
}

static const struct light_peer_events events = {
        .message = on_message, .writable = on_writable, .ended = on_ended};

static enum status make_peer(struct star *star, struct light_peer **out, bool receives)
{
    static struct span topic;
    topic = span_of_text(FANOUT_TOPIC);
    struct light_peer_options options = {.loop = star->loop,
            .topics = &topic,
            .topic_count = 1,
            .cluster = FANOUT_CLUSTER,
            .receives = receives,
            .max_message_bytes = (size_t)1 << 20,
            .events = &events,
            .context = star};
    enum status status = light_peer_create(out, &options);
    return status == STATUS_OK ? light_peer_dial(*out, star->router.address) : status;
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static enum status make_parts(struct star *star)
{
    char sizes[32];
    struct generator_options options = {
            .sizes = sizes, .pubsub_topics = 1, .content_topics = 1, .cluster = FANOUT_CLUSTER};
    struct node_hooks hooks = {.has_network = true};
    snprintf(sizes, sizeof(sizes), "%zu:1", star->plan->payload_bytes);
    star->receivers = calloc(star->plan->receivers, sizeof(struct light_peer *));
    star->has_probe = calloc(star->plan->receivers, sizeof(bool));
    if (star->receivers == NULL || star->has_probe == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = arrivals_init(&star->arrivals, star->plan->receivers);
    if (status == STATUS_OK) {
        status = generator_create(&star->generator, &options);
    }
    if (status == STATUS_OK) {
        status = fanout_start_node(&star->router, star->plan, &hooks, NULL);
    }
    if (status == STATUS_OK) {
        status = io_loop_create(&star->loop, 0);
    }
    if (status == STATUS_OK) {
        uv_timer_init(io_loop_uv(star->loop), &star->timer);
        uv_timer_start(&star->timer, on_tick, 10, 10);
        status = make_peer(star, &star->publisher, false);
    }
    for (size_t i = 0; status == STATUS_OK && i < star->plan->receivers; i++) {
        status = make_peer(star, &star->receivers[i], true);
    }
    return status;
}

/* Probes until each receiver has had one: all are in the mesh then. */
static enum status connect_all(struct star *star)
{
    uint64_t began = clock_monotonic_ns();
    uint64_t next = began;
    while (star->probed_count < star->plan->receivers) {
        uint64_t now = clock_monotonic_ns();
        if (star->is_lost || now - began > WAIT_MAX_S * (uint64_t)NANOSECONDS_PER_SECOND) {
            return STATUS_TIMED_OUT;
        }
        if (light_peer_is_ready(star->publisher) && now >= next) {
            next = now + PROBE_PERIOD_NS;
            (void)send_number(star, star->first++);
        }
        io_loop_run_once(star->loop);
    }
    return STATUS_OK;
}

static enum status deliver_all(struct star *star)
{
    uint64_t wanted = star->plan->messages * star->plan->receivers;
    uint64_t seen = 0;
    uint64_t since = clock_monotonic_ns();
    pump(star);
    while (star->delivered < wanted && !star->is_lost) {
        io_loop_run_once(star->loop);
        uint64_t now = clock_monotonic_ns();
        since = star->delivered > seen ? now : since;
        seen = star->delivered;
        if (now - since > WAIT_MAX_S * (uint64_t)NANOSECONDS_PER_SECOND) {
            return STATUS_TIMED_OUT;
        }
    }
    return star->is_lost ? STATUS_CLOSED : STATUS_OK;
}

static enum status measure(struct fanout_result *out, struct star *star)
{
    uint64_t before[METRIC_COUNT];
    fanout_read_counts(before, star->router.node);
    uint64_t cpu = fanout_process_cpu_ns();
    uint64_t own_cpu = clock_thread_cpu_ns();
    uint64_t began = clock_monotonic_ns();
    star->is_sending = true;
    enum status status = deliver_all(star);
    out->seconds = (double)(clock_monotonic_ns() - began) / 1e9;
    own_cpu = clock_thread_cpu_ns() - own_cpu;
    out->cpu_seconds = (double)(fanout_process_cpu_ns() - cpu - own_cpu) / 1e9;
    out->deliveries = star->delivered;
    out->bytes = (double)star->bytes;
    fanout_add_counts(out, star->router.node, before);
    return status;
}

static void stop_peer(struct star *star, struct light_peer **peer)
{
    if (*peer == NULL) {
        return;
    }
    light_peer_stop(*peer);
    while (!light_peer_is_stopped(*peer)) {
        io_loop_run_once(star->loop);
    }
    light_peer_destroy(peer);
}

enum status fanout_star(struct fanout_result *out, const struct fanout_plan *plan)
{
    struct star star = {.plan = plan};
    *out = (struct fanout_result){0};
    enum status status = make_parts(&star);
    if (status == STATUS_OK) {
        status = connect_all(&star);
    }
    if (status == STATUS_OK) {
        status = measure(out, &star);
    }
    star.is_sending = false;
    stop_peer(&star, &star.publisher);
    for (size_t i = 0; star.receivers != NULL && i < plan->receivers; i++) {
        stop_peer(&star, &star.receivers[i]);
    }
    if (star.loop != NULL) {
        uv_close((uv_handle_t *)&star.timer, NULL);
    }
    io_loop_destroy(&star.loop);
    fanout_stop_node(&star.router);
    generator_destroy(&star.generator);
    arrivals_fini(&star.arrivals);
    free(star.receivers);
    free(star.has_probe);
    return status;
}
