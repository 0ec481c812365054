/* SPDX-License-Identifier: MIT */

/* What a flood sends, and when. */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "codec/varint.h"
#include "tools/flood/network_state.h"

enum {
    QUEUED_MAX = 256 * 1024,  /* of a publisher's stream; more waits here */
    TURN_BYTES = 256 * 1024,  /* sent in a turn of the loop: as much as a receiver reads in one */
    EXPECTED_STEP = 64 * 1024 /* by how many numbers the checkers grow */
};

static bool may_write(const struct network_peer *publisher)
{
    return !publisher->has_ended && light_peer_is_ready(publisher->peer) &&
           light_peer_queued(publisher->peer) < QUEUED_MAX;
}

/* The one whose turn it is, or the next that can; NULL: all streams are full. */
static struct network_peer *choose(struct network *network, uint64_t turn)
{
    for (size_t i = 0; i < network->publisher_count; i++) {
        struct network_peer *publisher =
                &network->publishers[(turn + i) % network->publisher_count];
        if (may_write(publisher)) {
            return publisher;
        }
    }
    return NULL;
}

static bool send_to(
        struct network *network, struct network_peer *publisher, struct generator_message message)
{
    uint8_t prefix[VARINT_MAX_BYTES];
    size_t length = generator_rpc_size(network->generator, message);
    size_t prefix_length = (size_t)(varint_write(prefix, length) - prefix);
    uint8_t *frame = memory_allocate(prefix_length + length);
    if (frame == NULL) {
        return false;
    }
    memcpy(frame, prefix, prefix_length);
    generator_fill_rpc(network->generator, message, frame + prefix_length);
    if (light_peer_send(publisher->peer, frame, prefix_length + length) != STATUS_OK) {
        memory_free(frame);
        return false;
    }
    return true;
}

void network_send_probes(struct network *network)
{
    uint64_t base = network->run << NETWORK_RUN_SHIFT | NETWORK_PROBE;
    for (size_t i = 0; i < network->publisher_count; i++) {
        struct generator_message probe = {
                .number = base | (network->probe_count * network->publisher_count + i),
                .timestamp_ns = clock_wall_ns()};
        if (may_write(&network->publishers[i])) {
            (void)!send_to(network, &network->publishers[i], probe);
        }
    }
    network->probe_count++;
}

/* xorshift: only which message is repeated, and when. */
static uint32_t draw(struct network *network)
{
    network->random ^= network->random << 13;
    network->random ^= network->random >> 7;
    network->random ^= network->random << 17;
    return (uint32_t)(network->random >> 32);
}

/* A copy of one of the last messages, by whoever comes next: the node has to know it. */
static void repeat_sometimes(struct network *network)
{
    uint64_t back = network->published < NETWORK_RECENT ? network->published : NETWORK_RECENT;
    if (network->duplicate_percent == 0 || draw(network) % 100 >= network->duplicate_percent) {
        return;
    }
    struct network_peer *publisher = choose(network, network->published);
    struct generator_message message =
            network->recent[(network->published - 1 - draw(network) % back) % NETWORK_RECENT];
    if (publisher != NULL && send_to(network, publisher, message)) {
        network->repeated++;
    }
}

uint64_t network_in_flight(const struct network *network)
{
    return arrivals_in_flight(&network->arrivals, network->published);
}

bool network_is_all_sent(const struct network *network, uint64_t now_ns)
{
    bool is_late = network->duration_ns != UINT64_MAX &&
                   now_ns - network->began_ns >= network->duration_ns;
    return network->published >= network->messages_max || is_late || network->is_interrupted;
}

static uint64_t due_ns(const struct network *network, uint64_t number, uint64_t now_ns)
{
    if (network->rate == 0) {
        return now_ns;
    }
    return network->began_ns +
           (uint64_t)((double)number * NANOSECONDS_PER_SECOND / (double)network->rate);
}

/* The checkers know the number before it is on its way. */
static bool expect_more(struct network *network)
{
    if (network->published < network->expected_count) {
        return true;
    }
    uint64_t count = network->expected_count + EXPECTED_STEP;
    for (size_t i = 0; i < network->receiver_count; i++) {
        if (checker_expect(network->receivers[i].checker, count) != STATUS_OK) {
            return false;
        }
    }
    network->expected_count = count;
    return true;
}

/* 0: not now. A message that is late counts from when it was due. */
static size_t send_next(struct network *network, uint64_t now_ns)
{
    uint64_t due = due_ns(network, network->published, now_ns);
    if (due > now_ns || network_in_flight(network) >= network->window || !expect_more(network)) {
        return 0;
    }
    struct network_peer *publisher = choose(network, network->published);
    struct generator_message message = {
            .number = network->run << NETWORK_RUN_SHIFT | network->published,
            .timestamp_ns = network->wall_base_ns + (int64_t)(due - network->began_ns)};
    if (publisher == NULL || !send_to(network, publisher, message)) {
        return 0;
    }
    size_t bytes = generator_message_size(network->generator, message);
    network->recent[network->published % NETWORK_RECENT] = message;
    network->published++;
    network->published_bytes += bytes;
    repeat_sometimes(network);
    return bytes;
}

void network_pump(struct network *network)
{
    uint64_t now = clock_monotonic_ns();
    if (network->phase != NETWORK_SENDING || network->is_pumping) {
        return;
    }
    network->is_pumping = true;
    while (network->turn_bytes < TURN_BYTES && !network_is_all_sent(network, now)) {
        size_t sent = send_next(network, now);
        if (sent == 0) {
            break;
        }
        network->turn_bytes += sent;
        now = clock_monotonic_ns();
    }
    network->is_pumping = false;
}

uint64_t network_process_cpu_ns(void)
{
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return (uint64_t)cpu.tv_sec * NANOSECONDS_PER_SECOND + (uint64_t)cpu.tv_nsec;
}
