/* SPDX-License-Identifier: MIT */

/*
 * What the reference did before it shared one envelope, in C, for comparison only: one thread, the
 * message decoded with its fields copied out by the validator and once more by the handler, a deep
 * copy for each of the asynchronous hops behind it, one hash for the archive and one for store-sync.
 * Decoder, hash and archive engine are the product's own.
 */

#include <stdlib.h>
#include <string.h>

#include "archive/archive.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "bench/message_path/meter.h"
#include "bench/message_path/scenario.h"
#include "codec/waku_message.h"
#include "hash/message_hash.h"
#include "queues/envelope.h"

enum {
    HOPS = 7, /* unique handler, trace, filter, archive, sync, internal and legacy application */
    ARCHIVE_HOP = 3,
    SYNC_HOP = 4,
    BATCH_MAX = 256
};

/* The reference's message: each field a block of its own. */
struct owned_message {
    uint8_t *payload;
    uint8_t *content_topic;
    struct waku_message_view view; /* where the decoder found them */
};

struct copying_run {
    const struct workload *workload;
    const struct scenario *scenario;
    struct archive *archive;
    struct topic topic;
    struct span *messages;
    double *latency_ns;
    struct envelope *batch[BATCH_MAX];
    size_t batch_count;
    uint8_t sync_fingerprint[SHA256_BYTES]; /* XOR of all, as of a set */
};

static uint8_t *copy_block(const uint8_t *bytes, size_t length)
{
    uint8_t *copy = memory_allocate(length > 0 ? length : 1);
    if (copy != NULL) {
        memory_copy_message(copy, bytes, length);
    }
    return copy;
}

static bool copy_fields(struct owned_message *out, const struct waku_message_view *view)
{
    out->view = *view;
    out->payload = copy_block(view->payload.bytes, view->payload.length);
    out->content_topic = copy_block(view->content_topic.bytes, view->content_topic.length);
    return out->payload != NULL && out->content_topic != NULL;
}

static bool decode_copying(struct owned_message *out, struct span bytes)
{
    struct waku_message_view view;
    return waku_message_decode(&view, bytes) == STATUS_OK && copy_fields(out, &view);
}

/* From the copy that the hop before holds, as its arguments are passed on. */
static bool copy_message(struct owned_message *out, const struct owned_message *from)
{
    struct waku_message_view view = from->view;
    view.payload.bytes = from->payload;
    view.content_topic.bytes = from->content_topic;
    bool copied = copy_fields(out, &view);
    out->view = from->view;
    return copied;
}

static void free_message(struct owned_message *message)
{
    memory_free(message->payload);
    memory_free(message->content_topic);
}

static void hash_message(
        uint8_t hash[SHA256_BYTES], struct copying_run *run, const struct owned_message *message)
{
    struct message_hash_input input = {.pubsub_topic = run->topic.name,
            .payload = span_of(message->payload, message->view.payload.length),
            .content_topic = span_of(message->content_topic, message->view.content_topic.length),
            .timestamp_ns = message->view.timestamp_ns};
    message_hash(hash, &input);
}

static struct span moved(struct span field, const uint8_t *from, uint8_t *to)
{
    return span_of(to + (field.bytes - from), field.length);
}

/* The engine takes envelopes, so the archive's copy of the message is one. */
static struct envelope *archive_copy(
        struct copying_run *run, struct span bytes, const struct owned_message *message)
{
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, bytes.length);
    struct envelope *envelope = frame != NULL ? envelope_create(frame) : NULL;
    if (envelope == NULL) {
        return NULL;
    }
    uint8_t *copy = frame_bytes(frame);
    memory_copy_message(copy, bytes.bytes, bytes.length);
    envelope->topic = &run->topic;
    envelope->message = span_of(copy, bytes.length);
    envelope->payload = moved(message->view.payload, bytes.bytes, copy);
    envelope->content_topic = moved(message->view.content_topic, bytes.bytes, copy);
    envelope->timestamp_ns = message->view.timestamp_ns;
    envelope->received_ns = message->view.timestamp_ns;
    envelope->is_timestamp_in_range = true;
    hash_message(envelope->hash, run, message);
    return envelope;
}

static enum status flush(struct copying_run *run)
{
    struct archive_put_result result;
    enum status status = archive_put(run->archive, run->batch, run->batch_count, &result);
    for (size_t i = 0; i < run->batch_count; i++) {
        envelope_unref(run->batch[i]);
    }
    run->batch_count = 0;
    return status;
}

static enum status hand_to_archive(
        struct copying_run *run, struct span bytes, const struct owned_message *message)
{
    struct envelope *envelope = archive_copy(run, bytes, message);
    if (envelope == NULL) {
        return STATUS_NO_MEMORY;
    }
    run->batch[run->batch_count++] = envelope;
    bool full = run->batch_count == run->scenario->window || run->batch_count == BATCH_MAX;
    return full ? flush(run) : STATUS_OK;
}

static void hand_to_sync(struct copying_run *run, const struct owned_message *message)
{
    uint8_t hash[SHA256_BYTES];
    hash_message(hash, run, message);
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        run->sync_fingerprint[i] ^= hash[i];
    }
}

static enum status take_message(struct copying_run *run, struct span bytes)
{
    struct owned_message validated = {0};
    struct owned_message handled = {0};
    struct owned_message hops[HOPS] = {{0}};
    size_t copied = 0;
    enum status status = STATUS_NO_MEMORY;
    bool decoded = decode_copying(&validated, bytes);
    free_message(&validated);
    decoded = decoded && decode_copying(&handled, bytes);
    while (decoded && copied < HOPS && copy_message(&hops[copied], &handled)) {
        copied++;
    }
    if (copied == HOPS) {
        status = hand_to_archive(run, bytes, &hops[ARCHIVE_HOP]);
        hand_to_sync(run, &hops[SYNC_HOP]);
    }
    for (size_t i = 0; i < HOPS; i++) {
        free_message(&hops[i]);
    }
    free_message(&handled);
    return status;
}

static enum status build_messages(struct copying_run *run)
{
    size_t count = run->workload->count;
    run->messages = calloc(count, sizeof(*run->messages));
    run->latency_ns = calloc(count, sizeof(*run->latency_ns));
    if (run->messages == NULL || run->latency_ns == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t timestamp = clock_wall_ns();
        size_t size = workload_message_size(run->workload, i, timestamp);
        uint8_t *bytes = malloc(size);
        if (bytes == NULL) {
            return STATUS_NO_MEMORY;
        }
        workload_fill(run->workload, i, run->scenario->nonce, timestamp, bytes);
        run->messages[i] = span_of(bytes, size);
    }
    return STATUS_OK;
}

static enum status take_range(struct copying_run *run, size_t first, size_t end)
{
    enum status status = STATUS_OK;
    for (size_t i = first; status == STATUS_OK && i < end; i++) {
        uint64_t began = clock_monotonic_ns();
        status = take_message(run, run->messages[i]);
        run->latency_ns[i] = (double)(clock_monotonic_ns() - began);
    }
    return status == STATUS_OK && run->batch_count > 0 ? flush(run) : status;
}

/* This thread has no row of its own: its counts are in the row that such threads share. */
static void read_counters(uint64_t counters[METRIC_COUNT])
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        counters[i] = metrics_sum(NULL, (enum metric)i);
    }
}

static void fill_sample(struct row_sample *sample, const uint64_t counters[METRIC_COUNT],
        const struct meter *before, const struct meter *after, double messages)
{
    uint64_t now[METRIC_COUNT];
    read_counters(now);
    double wall_ns = (double)(after->wall_ns - before->wall_ns);
#define COUNTED(metric) ((double)(now[metric] - counters[metric]))
    sample->wall_ms = wall_ns / 1e6;
    sample->msg_per_s = messages * 1e9 / wall_ns;
    sample->decodes_per_msg = COUNTED(METRIC_DECODES) / messages;
    sample->hashes_per_msg = COUNTED(METRIC_MESSAGE_HASHES) / messages;
    sample->hashed_mb = COUNTED(METRIC_HASHED_BYTES) / 1e6;
    sample->decoded_mb = COUNTED(METRIC_DECODED_BYTES) / 1e6;
    sample->occupied_mem_delta_mb = (after->allocated_bytes - before->allocated_bytes) / 1e6;
    sample->copies_per_msg = COUNTED(METRIC_COPIES) / messages;
    sample->copied_mb = COUNTED(METRIC_COPIED_BYTES) / 1e6;
    sample->allocs_per_msg = COUNTED(METRIC_ALLOCATIONS) / messages;
    sample->allocated_mb = COUNTED(METRIC_ALLOCATED_BYTES) / 1e6;
    sample->cpu_us_per_msg = (double)(after->cpu_ns - before->cpu_ns) / 1e3 / messages;
    sample->peak_rss_mb = meter_peak_rss_mb();
#undef COUNTED
}

static enum status measure(struct row_sample *sample, struct copying_run *run)
{
    struct meter before;
    struct meter after;
    uint64_t counters[METRIC_COUNT];
    size_t first = run->scenario->warmup;
    size_t count = run->workload->count;
    enum status status = take_range(run, 0, first);
    meter_reset_peak();
    read_counters(counters);
    meter_read(&before);
    if (status == STATUS_OK) {
        status = take_range(run, first, count);
    }
    meter_read(&after);
    fill_sample(sample, counters, &before, &after, (double)(count - first));
    sample->ns_per_msg_p50 = median_of(run->latency_ns + first, count - first);
    sample->ns_per_msg_p99 = run->latency_ns[first + (count - first) * 99 / 100];
    return status;
}

static void free_messages(struct copying_run *run)
{
    for (size_t i = 0; run->messages != NULL && i < run->workload->count; i++) {
        free((void *)(uintptr_t)run->messages[i].bytes);
    }
    free(run->messages);
    free(run->latency_ns);
}

enum status run_copying(
        struct row_sample *sample, const struct workload *workload, const struct scenario *scenario)
{
    struct copying_run run = {.workload = workload, .scenario = scenario};
    struct archive_error error;
    struct archive_options options = {.memory_limit_bytes = UINT64_MAX};
    run.topic.name = span_of_text(WORKLOAD_PUBSUB_TOPIC);
    enum status status = archive_open(&run.archive, scenario->archive, &options, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "message_path: %s\n", error.text);
        return status;
    }
    status = build_messages(&run);
    if (status == STATUS_OK) {
        status = measure(sample, &run);
    }
    archive_close(&run.archive);
    free_messages(&run);
    return status;
}
