/* SPDX-License-Identifier: MIT */

/* Side B of a macro run: the product's node, or one thread that copies as the reference did. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/options.h"
#include "bench/message_path/copy_count.h"
#include "bench/message_path/copying.h"
#include "bench/message_path/macro.h"
#include "codec/varint.h"
#include "node/network.h"
#include "node/node.h"
#include "tools/common/light_peer.h"

struct receiver {
    struct macro_shared *shared;
    int commands;
    int acknowledgements;
    atomic_bool is_over; /* relaxed: only ends loops, joins order the rest */
    pthread_t thread;
    bool has_thread;

    /* the product's node */
    struct options *options;
    struct node *node;
    _Atomic uint64_t all_count; /* messages at the application; written by the event thread */
    _Atomic uint64_t run_count; /* those of this run */

    /* copying */
    struct metrics *metrics;
    struct io_loop *loop;
    struct light_peer *peer;
    struct copying copying;
    enum status copying_status;
};

static void acknowledge(struct receiver *receiver, uint64_t finished)
{
    static const char byte = 'a';
    atomic_store_explicit(
            &receiver->shared->finished, finished, memory_order_release); /* FINISHED */
    /* A full socket wakes its reader just as well. */
    (void)!send(receiver->acknowledgements, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* True when the payload belongs to this run. */
static bool note_arrival(struct receiver *receiver, struct span payload)
{
    uint64_t prefix;
    if (payload.length < sizeof(prefix)) {
        return false;
    }
    memcpy(&prefix, payload.bytes, sizeof(prefix));
    size_t index = (size_t)(prefix & UINT32_MAX);
    if (prefix >> 32 != receiver->shared->nonce || index >= receiver->shared->count) {
        return false;
    }
    receiver->shared->arrived_ns[index] = clock_monotonic_ns();
    return true;
}

static void take_event(void *context, struct envelope *envelope)
{
    struct receiver *receiver = context;
    bool is_ours = note_arrival(receiver, envelope->payload);
    /* release: the waiter that sees a count sees the arrival */
    atomic_fetch_add_explicit(&receiver->run_count, is_ours, memory_order_release);
    atomic_fetch_add_explicit(&receiver->all_count, 1, memory_order_release);
}

/* How many were submitted is not known here: as if there had been very many. */
static void wait_for_one_more(struct node *node, uint64_t finished)
{
    uint64_t many = UINT64_MAX / 2;
    node_wait_in_flight(node, many, many - finished - 1);
}

/* Tells of a message when its application callback has run and every stage is done with it. */
static void *wait_for_stages(void *context)
{
    struct receiver *receiver = context;
    uint64_t told = 0;
    while (!atomic_load_explicit(&receiver->is_over, memory_order_relaxed)) {
        uint64_t finished = node_finished(receiver->node);
        uint64_t all = atomic_load_explicit(&receiver->all_count, memory_order_acquire);
        uint64_t ours = atomic_load_explicit(&receiver->run_count, memory_order_acquire);
        if (finished >= all && ours > told) {
            told = ours;
            acknowledge(receiver, told);
        } else {
            wait_for_one_more(receiver->node, finished);
        }
    }
    return NULL;
}

static enum status start_node(struct receiver *receiver)
{
    const struct option_spec *const tables[] = {options_of_node, NULL};
    struct node_hooks hooks = {.event = take_event, .event_context = receiver, .has_network = true};
    struct node_error error = {.text = ""};
    enum status status = options_create(&receiver->options, tables);
    if (status == STATUS_OK) {
        status = macro_set_options(
                receiver->options, receiver->shared, receiver->shared->archive, "staticnode");
    }
    if (status == STATUS_OK) {
        status = node_create(&receiver->node, receiver->options, &hooks, &error);
    }
    if (status == STATUS_OK) {
        /* What is read there is ciphertext: its pieces are put together before decryption. */
        copy_count_leave_out(io_loop_input_buffer(switch_control_loop(
                                     network_switch(node_network(receiver->node)))),
                IO_LOOP_BUFFER_BYTES);
        status = node_start(receiver->node, &error);
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "message_path: receiver: %s\n", error.text);
        return status;
    }
    receiver->has_thread = pthread_create(&receiver->thread, NULL, wait_for_stages, receiver) == 0;
    return receiver->has_thread ? STATUS_OK : STATUS_SYSTEM;
}

/* A message of its own wakes the waiter once more, whatever becomes of it. */
static void wake_waiter(struct receiver *receiver)
{
    struct intake_source source = {.received_ns = clock_wall_ns(),
            .received_monotonic_ns = clock_monotonic_ns(),
            .origin = ORIGIN_SYNC};
    struct frame *frame = node_wait_frame(receiver->node, 1);
    const struct topic *topic = NULL;
    if (frame == NULL) {
        return;
    }
    frame_bytes(frame)[0] = 0;
    if (node_subscribe_topic(receiver->node, &topic, span_of_text(WORKLOAD_PUBSUB_TOPIC)) !=
                    STATUS_OK ||
            intake_post_message(node_intake(receiver->node), frame, topic, &source, NULL) !=
                    STATUS_OK) {
        frame_unref(frame);
    }
}

static void stop_node(struct receiver *receiver)
{
    atomic_store_explicit(&receiver->is_over, true, memory_order_relaxed);
    if (receiver->has_thread) {
        wake_waiter(receiver);
        pthread_join(receiver->thread, NULL);
    }
    if (receiver->node != NULL) {
        node_stop(receiver->node);
    }
    node_destroy(&receiver->node);
    options_destroy(&receiver->options);
}

static void take_copying(
        void *context, struct light_peer *peer, const struct light_message *message)
{
    (void)peer;
    struct receiver *receiver = context;
    receiver->copying_status = copying_take(&receiver->copying, message->bytes);
    /* Where the payload lies is known to the bench without decoding: the encoder puts it first. */
    struct span rest = message->bytes;
    uint64_t tag;
    uint64_t length;
    if (receiver->copying_status != STATUS_OK || varint_read(&tag, &rest) != STATUS_OK ||
            varint_read(&length, &rest) != STATUS_OK) {
        return;
    }
    if (note_arrival(receiver, rest)) {
        uint64_t count = receiver->run_count + 1;
        receiver->run_count = count;
        acknowledge(receiver, count);
    }
}

static void *run_copying_loop(void *context)
{
    struct receiver *receiver = context;
    if (metrics_attach_thread(receiver->metrics) != STATUS_OK) {
        return NULL;
    }
    while (!atomic_load_explicit(&receiver->is_over, memory_order_relaxed)) {
        io_loop_run_once(receiver->loop);
    }
    light_peer_stop(receiver->peer);
    while (!light_peer_is_stopped(receiver->peer)) {
        io_loop_run_once(receiver->loop);
    }
    metrics_detach_thread();
    return NULL;
}

static enum status open_copying_archive(struct receiver *receiver)
{
    struct archive_options options = {.memory_limit_bytes = UINT64_MAX};
    struct archive_error error;
    receiver->copying.topic.name = span_of_text(WORKLOAD_PUBSUB_TOPIC);
    receiver->copying.batch_max = 1; /* the callback comes after the archive has it */
    receiver->copying.has_observers = true;
    return archive_open(&receiver->copying.archive, receiver->shared->archive, &options, &error);
}

static enum status start_copying(struct receiver *receiver)
{
    static const struct light_peer_events events = {.message = take_copying};
    static struct span topic;
    topic = span_of_text(WORKLOAD_PUBSUB_TOPIC);
    struct light_peer_options peer_options = {.topics = &topic,
            .topic_count = 1,
            .cluster = MACRO_CLUSTER,
            .receives = true,
            .max_message_bytes = (size_t)1 << 20,
            .events = &events,
            .context = receiver};
    enum status status = metrics_create(&receiver->metrics);
    if (status == STATUS_OK) {
        status = open_copying_archive(receiver);
    }
    if (status == STATUS_OK) {
        status = io_loop_create(&receiver->loop, 1);
        peer_options.loop = receiver->loop;
    }
    if (status == STATUS_OK) {
        status = light_peer_create(&receiver->peer, &peer_options);
    }
    if (status == STATUS_OK) {
        status = light_peer_dial(receiver->peer, receiver->shared->address);
    }
    if (status == STATUS_OK) {
        receiver->has_thread =
                pthread_create(&receiver->thread, NULL, run_copying_loop, receiver) == 0;
    }
    return status == STATUS_OK && !receiver->has_thread ? STATUS_SYSTEM : status;
}

static void stop_copying(struct receiver *receiver)
{
    atomic_store_explicit(&receiver->is_over, true, memory_order_relaxed);
    if (receiver->has_thread) {
        io_loop_wake(receiver->loop);
        pthread_join(receiver->thread, NULL);
    }
    light_peer_destroy(&receiver->peer);
    io_loop_destroy(&receiver->loop);
    archive_close(&receiver->copying.archive);
    metrics_destroy(&receiver->metrics);
}

static void read_now(struct receiver *receiver, struct macro_reading *out)
{
    const struct metrics *metrics =
            receiver->shared->is_copying ? receiver->metrics : node_metrics(receiver->node);
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        out->counters[i] = metrics_sum(metrics, (enum metric)i);
    }
    meter_read(&out->meter);
    out->peak_rss_mb = meter_peak_rss_mb();
}

static enum status start(struct receiver *receiver)
{
    return receiver->shared->is_copying ? start_copying(receiver) : start_node(receiver);
}

static void stop(struct receiver *receiver)
{
    if (receiver->shared->is_copying) {
        stop_copying(receiver);
    } else {
        stop_node(receiver);
    }
}

static enum status obey(struct receiver *receiver, char command)
{
    if (command == MACRO_START) {
        return start(receiver);
    }
    if (command == MACRO_RESET) {
        meter_reset_peak();
        read_now(receiver, &receiver->shared->before);
    } else if (command == MACRO_READ) {
        read_now(receiver, &receiver->shared->after);
    } else {
        stop(receiver);
    }
    return STATUS_OK;
}

enum status macro_receive(struct macro_shared *shared, int commands, int acknowledgements)
{
    struct receiver *receiver = memory_allocate_zeroed(sizeof(*receiver));
    enum status status = STATUS_OK;
    char command = 0;
    if (receiver == NULL) {
        return STATUS_NO_MEMORY;
    }
    receiver->shared = shared;
    receiver->commands = commands;
    receiver->acknowledgements = acknowledgements;
    while (command != MACRO_QUIT && recv(commands, &command, 1, 0) == 1) {
        status = obey(receiver, command);
        char answer = command;
        if (status != STATUS_OK) {
            answer = '!';
        }
        (void)!send(commands, &answer, 1, MSG_NOSIGNAL);
    }
    if (command != MACRO_QUIT) {
        stop(receiver); /* A is gone */
    }
    memory_free(receiver);
    return status;
}

int macro_receiver_main(int argc, char *argv[])
{
    if (argc != 3) {
        return 2;
    }
    int memory = (int)strtol(argv[0], NULL, 10);
    off_t bytes = lseek(memory, 0, SEEK_END);
    void *shared =
            bytes <= 0 ? MAP_FAILED
                       : mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (shared == MAP_FAILED) {
        return 1;
    }
    enum status status =
            macro_receive(shared, (int)strtol(argv[1], NULL, 10), (int)strtol(argv[2], NULL, 10));
    return status == STATUS_OK ? 0 : 1;
}
