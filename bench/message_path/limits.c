/* SPDX-License-Identifier: MIT */

/* The slowest single step of a row's path, done alone on the same bytes. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/archive.h"
#include "base/clock.h"
#include "base/memory.h"
#include "bench/message_path/scenario.h"
#include "codec/waku_message.h"
#include "hash/message_hash.h"
#include "queues/envelope.h"

/* The messages of a workload as envelopes outside any node. */
struct material {
    size_t count;
    struct topic topic;
    struct envelope **envelopes;
};

static void material_fini(struct material *material)
{
    for (size_t i = 0; material->envelopes != NULL && i < material->count; i++) {
        if (material->envelopes[i] != NULL) {
            envelope_unref(material->envelopes[i]);
        }
    }
    free(material->envelopes);
}

static struct message_hash_input input_of(const struct envelope *envelope)
{
    return (struct message_hash_input){.pubsub_topic = envelope->topic->name,
            .payload = envelope->payload,
            .content_topic = envelope->content_topic,
            .meta = envelope->meta,
            .timestamp_ns = envelope->timestamp_ns};
}

static struct envelope *make_envelope(const struct material *material,
        const struct workload *workload, size_t index, uint64_t nonce)
{
    int64_t timestamp = clock_wall_ns();
    struct frame *frame = frame_try_create(
            NULL, FRAME_BUDGET_COMPLETE, workload_message_size(workload, index, timestamp));
    if (frame == NULL) {
        return NULL;
    }
    workload_fill(workload, index, nonce, timestamp, frame_bytes(frame));
    struct waku_message_view view;
    struct envelope *envelope = envelope_create(frame);
    if (envelope == NULL || waku_message_decode(&view, span_of(frame_bytes(frame),
                                                               frame_length(frame))) != STATUS_OK) {
        return NULL;
    }
    envelope->topic = &material->topic;
    envelope->message = span_of(frame_bytes(frame), frame_length(frame));
    envelope->payload = view.payload;
    envelope->content_topic = view.content_topic;
    envelope->timestamp_ns = timestamp;
    envelope->received_ns = timestamp;
    envelope->is_timestamp_in_range = true;
    struct message_hash_input input = input_of(envelope);
    message_hash(envelope->hash, &input);
    return envelope;
}

static enum status material_init(
        struct material *material, const struct workload *workload, uint64_t nonce)
{
    material->count = workload->count;
    material->topic.name = span_of_text(WORKLOAD_PUBSUB_TOPIC);
    material->envelopes = calloc(workload->count, sizeof(struct envelope *));
    if (material->envelopes == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < workload->count; i++) {
        material->envelopes[i] = make_envelope(material, workload, i, nonce);
        if (material->envelopes[i] == NULL) {
            return STATUS_NO_MEMORY;
        }
    }
    return STATUS_OK;
}

static double rate(const struct material *material, uint64_t began_ns)
{
    return (double)material->count * 1e9 / (double)(clock_monotonic_ns() - began_ns);
}

/* What hash() writes goes nowhere else; the counters see it, so it is not optimised away. */
static double hash_alone(const struct material *material)
{
    uint8_t hash[SHA256_BYTES];
    uint64_t began = clock_monotonic_ns();
    for (size_t i = 0; i < material->count; i++) {
        struct message_hash_input input = input_of(material->envelopes[i]);
        message_hash(hash, &input);
    }
    return rate(material, began);
}

static double hash_two_alone(const struct material *material)
{
    uint8_t a[SHA256_BYTES];
    uint8_t b[SHA256_BYTES];
    uint64_t began = clock_monotonic_ns();
    for (size_t i = 0; i + 1 < material->count; i += 2) {
        struct message_hash_input first = input_of(material->envelopes[i]);
        struct message_hash_input second = input_of(material->envelopes[i + 1]);
        message_hash_of_two(a, &first, b, &second);
    }
    return rate(material, began);
}

static double hash_and_id_serial(const struct material *material)
{
    uint8_t hash[SHA256_BYTES];
    uint64_t began = clock_monotonic_ns();
    for (size_t i = 0; i < material->count; i++) {
        struct message_hash_input input = input_of(material->envelopes[i]);
        message_hash(hash, &input);
        message_id(hash, material->envelopes[i]->message);
    }
    return rate(material, began);
}

static double hash_and_id_pair(const struct material *material)
{
    uint8_t hash[SHA256_BYTES];
    uint8_t id[SHA256_BYTES];
    uint64_t began = clock_monotonic_ns();
    for (size_t i = 0; i < material->count; i++) {
        struct message_hash_input input = input_of(material->envelopes[i]);
        message_hash_and_id(hash, id, &input, material->envelopes[i]->message);
    }
    return rate(material, began);
}

static double better(double a, double b)
{
    return a > b ? a : b;
}

static double hash_limit(const struct material *material, const struct scenario *scenario)
{
    if (scenario->kind == SCENARIO_INGRESS_SHARED) {
        return better(hash_and_id_serial(material), hash_and_id_pair(material));
    }
    /* One message at a time leaves nothing to run beside it. */
    double alone = hash_alone(material);
    return scenario->window == 1 ? alone : better(alone, hash_two_alone(material));
}

static enum status engine_limit(
        double *msg_per_s, const struct material *material, const struct scenario *scenario)
{
    struct archive *archive = NULL;
    struct archive_error error;
    struct archive_options options = {.memory_limit_bytes = UINT64_MAX};
    enum status status = archive_open(&archive, scenario->archive, &options, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "message_path: %s\n", error.text);
        return status;
    }
    uint64_t began = clock_monotonic_ns();
    for (size_t i = 0; status == STATUS_OK && i < material->count; i += scenario->window) {
        struct archive_put_result result;
        size_t left = material->count - i;
        status = archive_put(archive, material->envelopes + i,
                left < scenario->window ? left : scenario->window, &result);
    }
    *msg_per_s = rate(material, began);
    archive_close(&archive);
    return status;
}

enum status measure_limit(
        double *msg_per_s, const struct workload *workload, const struct scenario *scenario)
{
    struct material material = {0};
    double engine = 0;
    enum status status = material_init(&material, workload, scenario->nonce);
    if (status == STATUS_OK) {
        status = engine_limit(&engine, &material, scenario);
    }
    if (status == STATUS_OK) {
        double hashes = hash_limit(&material, scenario);
        *msg_per_s = hashes < engine ? hashes : engine;
    }
    material_fini(&material);
    return status;
}
