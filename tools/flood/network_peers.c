/* SPDX-License-Identifier: MIT */

/* The peers of a flood: made, connected, and what they receive. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "codec/waku_message.h"
#include "tools/flood/network_state.h"

enum {
    PRUNED_FROM = 8 /* more receivers of one node than a mesh holds: some will have to ask */
};

static const char *kind_of(const struct network_peer *peer)
{
    return peer->is_receiver ? "receiver" : "publisher";
}

static void take_probe(struct network_peer *receiver, uint64_t number)
{
    size_t publisher = number % receiver->network->publisher_count;
    uint64_t bit = 1ULL << publisher % 64;
    if ((receiver->probes_of[publisher / 64] & bit) == 0) {
        receiver->probes_of[publisher / 64] |= bit;
        receiver->probed_count++;
    }
}

static void take_number(struct network_peer *receiver, uint64_t number,
        const struct waku_message_view *view, size_t bytes)
{
    struct network *network = receiver->network;
    uint64_t now = clock_monotonic_ns();
    if (!checker_take_number(receiver->checker, number)) {
        return;
    }
    int64_t age = network->wall_base_ns + (int64_t)(now - network->began_ns) - view->timestamp_ns;
    uint64_t latency = age > 0 ? (uint64_t)age : 0;
    histogram_add(&network->latency, latency);
    histogram_add(&network->recent_latency, latency);
    arrivals_add(&network->arrivals, receiver->index);
    network->delivered++;
    network->delivered_bytes += bytes;
    network->last_delivery_ns = now;
    network_pump(network);
}

/* What is of no run of ours is somebody else's traffic and not looked at. */
static void on_message(void *context, struct light_peer *peer, const struct light_message *message)
{
    (void)peer;
    struct network_peer *receiver = context;
    struct waku_message_view view;
    uint64_t number;
    if (waku_message_decode(&view, message->bytes) != STATUS_OK ||
            !generator_is_ours(view.content_topic)) {
        return;
    }
    if (!generator_check(&number, view.payload)) {
        checker_take(receiver->checker, view.payload); /* counts it as torn */
        return;
    }
    if (number >> NETWORK_RUN_SHIFT != receiver->network->run) {
        return;
    }
    if ((number & NETWORK_PROBE) != 0) {
        take_probe(receiver, number & NETWORK_MASK);
    } else {
        take_number(receiver, number & NETWORK_MASK, &view, message->bytes.length);
    }
}

static void on_writable(void *context, struct light_peer *peer)
{
    (void)peer;
    struct network_peer *publisher = context;
    network_pump(publisher->network);
}

static void on_ended(void *context, struct light_peer *peer, const char *reason)
{
    (void)peer;
    struct network_peer *ended = context;
    ended->has_ended = true;
    fprintf(stderr, "flood: %s %zu at %s: %s\n", kind_of(ended), ended->index, ended->address,
            reason);
    if (ended->network->phase < NETWORK_SENDING) {
        ended->network->has_failed = true;
    }
}

static const struct light_peer_events publisher_events = {
        .writable = on_writable, .ended = on_ended};
static const struct light_peer_events receiver_events = {.message = on_message, .ended = on_ended};

static const char *address_of(const struct network *network, const struct network_peer *peer)
{
    const char *list = "peer";
    if (peer->is_receiver && options_list_count(network->options, "receive-from") > 0) {
        list = "receive-from";
    }
    return options_list_item(
            network->options, list, peer->index % options_list_count(network->options, list));
}

static enum status make_receiver_parts(struct network_peer *peer)
{
    peer->probes_of = calloc(peer->network->publisher_count / 64 + 1, sizeof(*peer->probes_of));
    if (peer->probes_of == NULL) {
        return STATUS_NO_MEMORY;
    }
    return checker_create(&peer->checker, 0);
}

static enum status make_peer(struct network_peer *peer)
{
    struct network *network = peer->network;
    struct light_peer_options options = {.loop = network->loop,
            .topics = network->topics,
            .topic_count = (size_t)options_number(network->options, "topics"),
            .cluster = (uint16_t)options_number(network->options, "cluster-id"),
            .receives = peer->is_receiver,
            .asks = peer->is_receiver && network->receiver_count > PRUNED_FROM,
            .max_message_bytes = (size_t)64 << 20,
            .events = peer->is_receiver ? &receiver_events : &publisher_events,
            .context = peer};
    enum status status = peer->is_receiver ? make_receiver_parts(peer) : STATUS_OK;
    peer->address = address_of(network, peer);
    if (status == STATUS_OK) {
        status = light_peer_create(&peer->peer, &options);
    }
    return status == STATUS_OK ? light_peer_dial(peer->peer, peer->address) : status;
}

static bool make_some(struct network *network, struct network_peer *peers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        peers[i].network = network;
        peers[i].index = i;
        peers[i].is_receiver = peers == network->receivers;
        enum status status = make_peer(&peers[i]);
        if (status != STATUS_OK) {
            fprintf(stderr, "flood: %s %zu at %s: %s\n", kind_of(&peers[i]), i, peers[i].address,
                    status_text(status));
            return false;
        }
    }
    return true;
}

bool network_make_peers(struct network *network)
{
    network->publishers = calloc(network->publisher_count + 1, sizeof(*network->publishers));
    network->receivers = calloc(network->receiver_count + 1, sizeof(*network->receivers));
    if (network->publishers == NULL || network->receivers == NULL ||
            arrivals_init(&network->arrivals, network->receiver_count) != STATUS_OK) {
        return false;
    }
    return make_some(network, network->publishers, network->publisher_count) &&
           make_some(network, network->receivers, network->receiver_count);
}

static void end_some(struct network *network, struct network_peer *peers, size_t count)
{
    for (size_t i = 0; peers != NULL && i < count; i++) {
        if (peers[i].peer != NULL) {
            light_peer_stop(peers[i].peer);
        }
    }
    for (size_t i = 0; peers != NULL && i < count; i++) {
        while (peers[i].peer != NULL && !light_peer_is_stopped(peers[i].peer)) {
            io_loop_run_once(network->loop);
        }
        light_peer_destroy(&peers[i].peer);
        checker_destroy(&peers[i].checker);
        free(peers[i].probes_of);
    }
    free(peers);
}

void network_end_peers(struct network *network)
{
    end_some(network, network->publishers, network->publisher_count);
    end_some(network, network->receivers, network->receiver_count);
    arrivals_fini(&network->arrivals);
}

static bool some_ready(const struct network_peer *peers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!light_peer_is_ready(peers[i].peer)) {
            return false;
        }
    }
    return true;
}

bool network_all_ready(const struct network *network)
{
    return some_ready(network->publishers, network->publisher_count) &&
           some_ready(network->receivers, network->receiver_count);
}

bool network_all_probed(const struct network *network)
{
    for (size_t i = 0; i < network->receiver_count; i++) {
        if (network->receivers[i].probed_count < network->publisher_count) {
            return false;
        }
    }
    return true;
}
