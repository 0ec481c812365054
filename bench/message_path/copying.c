/* SPDX-License-Identifier: MIT */
#include "bench/message_path/copying.h"

#include "base/memory.h"
#include "codec/waku_message.h"
#include "hash/message_hash.h"

enum {
    HOPS = 7, /* unique handler, trace, filter, archive, sync, internal and legacy application */
    ARCHIVE_HOP = 3,
    SYNC_HOP = 4
};

/* The reference's message: each field a block of its own. */
struct owned_message {
    uint8_t *payload;
    uint8_t *content_topic;
    struct waku_message_view view; /* where the decoder found them */
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
        uint8_t hash[SHA256_BYTES], struct copying *copying, const struct owned_message *message)
{
    struct message_hash_input input = {.pubsub_topic = copying->topic.name,
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
        struct copying *copying, struct span bytes, const struct owned_message *message)
{
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, bytes.length);
    struct envelope *envelope = frame != NULL ? envelope_create(frame) : NULL;
    if (envelope == NULL) {
        return NULL;
    }
    uint8_t *copy = frame_bytes(frame);
    memory_copy_message(copy, bytes.bytes, bytes.length);
    envelope->topic = &copying->topic;
    envelope->message = span_of(copy, bytes.length);
    envelope->payload = moved(message->view.payload, bytes.bytes, copy);
    envelope->content_topic = moved(message->view.content_topic, bytes.bytes, copy);
    envelope->timestamp_ns = message->view.timestamp_ns;
    envelope->received_ns = message->view.timestamp_ns;
    envelope->is_timestamp_in_range = true;
    hash_message(envelope->hash, copying, message);
    return envelope;
}

enum status copying_flush(struct copying *copying)
{
    struct archive_put_result result;
    enum status status =
            archive_put(copying->archive, copying->batch, copying->batch_count, &result);
    for (size_t i = 0; i < copying->batch_count; i++) {
        envelope_unref(copying->batch[i]);
    }
    copying->batch_count = 0;
    return status;
}

static enum status hand_to_archive(
        struct copying *copying, struct span bytes, const struct owned_message *message)
{
    struct envelope *envelope = archive_copy(copying, bytes, message);
    if (envelope == NULL) {
        return STATUS_NO_MEMORY;
    }
    copying->batch[copying->batch_count++] = envelope;
    bool full = copying->batch_count >= copying->batch_max;
    return full ? copying_flush(copying) : STATUS_OK;
}

static void hand_to_sync(struct copying *copying, const struct owned_message *message)
{
    uint8_t hash[SHA256_BYTES];
    hash_message(hash, copying, message);
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        copying->sync_fingerprint[i] ^= hash[i];
    }
}

/* An observer of the reference decodes the bytes for itself; one of the two also hashes. */
static bool observe(struct copying *copying, struct span bytes, bool hashes)
{
    struct owned_message seen = {0};
    uint8_t hash[SHA256_BYTES];
    bool decoded = decode_copying(&seen, bytes);
    if (decoded && hashes) {
        hash_message(hash, copying, &seen);
    }
    free_message(&seen);
    return decoded;
}

enum status copying_take(struct copying *copying, struct span bytes)
{
    struct owned_message validated = {0};
    struct owned_message handled = {0};
    struct owned_message hops[HOPS] = {{0}};
    size_t copied = 0;
    enum status status = STATUS_NO_MEMORY;
    bool decoded = decode_copying(&validated, bytes);
    free_message(&validated);
    if (copying->has_observers) {
        decoded = decoded && observe(copying, bytes, false) && observe(copying, bytes, true);
    }
    decoded = decoded && decode_copying(&handled, bytes);
    while (decoded && copied < HOPS && copy_message(&hops[copied], &handled)) {
        copied++;
    }
    if (copied == HOPS) {
        status = hand_to_archive(copying, bytes, &hops[ARCHIVE_HOP]);
        hand_to_sync(copying, &hops[SYNC_HOP]);
    }
    for (size_t i = 0; i < HOPS; i++) {
        free_message(&hops[i]);
    }
    free_message(&handled);
    return status;
}
