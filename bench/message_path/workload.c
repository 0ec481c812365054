/* SPDX-License-Identifier: MIT */
#include "bench/message_path/workload.h"

#include <stdlib.h>
#include <string.h>

#include "codec/gossip_writer.h"
#include "codec/varint.h"
#include "codec/waku_message.h"

enum {
    SMALL = 10 * 1024,
    MEDIUM = 50 * 1024,
    LARGE = 150 * 1000, /* below the network's limit of 150 KiB with its other fields */
    HEADER_BYTES_MAX = 256
};

/* Filled with the seed's bytes once: what is in a payload does not matter, only that it is there. */
static uint8_t pool[LARGE];

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

enum status workload_create(struct workload *out, size_t count, uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
    out->count = count;
    out->message_bytes = 0;
    out->payload_bytes = calloc(count, sizeof(*out->payload_bytes));
    if (out->payload_bytes == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < sizeof(pool); i++) {
        pool[i] = (uint8_t)next_random(&state);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t draw = next_random(&state) >> 33 & 3;
        out->payload_bytes[i] = draw == 0 ? SMALL : draw == 3 ? LARGE : MEDIUM;
        out->message_bytes += workload_message_size(out, i, 1);
    }
    return STATUS_OK;
}

void workload_destroy(struct workload *workload)
{
    free(workload->payload_bytes);
    workload->payload_bytes = NULL;
}

static struct waku_message_view fields_of(
        const struct workload *workload, size_t index, int64_t timestamp_ns)
{
    return (struct waku_message_view){
            .payload = span_of(pool, workload->payload_bytes[index]),
            .content_topic = span_of_text(WORKLOAD_CONTENT_TOPIC),
            .timestamp_ns = timestamp_ns,
            .has_payload = true,
            .has_content_topic = true,
            .has_timestamp = true,
    };
}

size_t workload_message_size(const struct workload *workload, size_t index, int64_t timestamp_ns)
{
    struct waku_message_view fields = fields_of(workload, index, timestamp_ns);
    return waku_message_size(&fields);
}

void workload_fill(const struct workload *workload, size_t index, uint64_t nonce,
        int64_t timestamp_ns, uint8_t *out)
{
    struct waku_message_view fields = fields_of(workload, index, timestamp_ns);
    uint64_t prefix = nonce << 32 | index;
    (void)waku_message_encode(out, waku_message_size(&fields), &fields);
    memcpy(out + 1 + varint_size(fields.payload.length), &prefix, sizeof(prefix));
}

void workload_fields(const struct workload *workload, size_t index, uint64_t nonce,
        int64_t timestamp_ns, struct waku_message_view *out)
{
    uint64_t prefix = nonce << 32 | index;
    *out = fields_of(workload, index % workload->count, timestamp_ns);
    memcpy(pool, &prefix, sizeof(prefix));
}

static size_t write_header(uint8_t out[HEADER_BYTES_MAX], size_t message, size_t *skip)
{
    size_t written = gossip_publish_header_write(
            out, HEADER_BYTES_MAX, span_of_text(WORKLOAD_PUBSUB_TOPIC), message);
    struct span rest = span_of(out, written);
    uint64_t length;
    (void)!varint_read(&length, &rest);
    *skip = written - rest.length;
    return written;
}

size_t workload_rpc_size(const struct workload *workload, size_t index, int64_t timestamp_ns)
{
    uint8_t header[HEADER_BYTES_MAX];
    size_t skip;
    size_t message = workload_message_size(workload, index, timestamp_ns);
    return write_header(header, message, &skip) - skip + message;
}

void workload_fill_rpc(const struct workload *workload, size_t index, uint64_t nonce,
        int64_t timestamp_ns, uint8_t *out)
{
    uint8_t header[HEADER_BYTES_MAX];
    size_t skip;
    size_t message = workload_message_size(workload, index, timestamp_ns);
    size_t written = write_header(header, message, &skip);
    memcpy(out, header + skip, written - skip);
    workload_fill(workload, index, nonce, timestamp_ns, out + written - skip);
}

uint64_t workload_bytes_until(const struct workload *workload, size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += workload_message_size(workload, i, 1);
    }
    return bytes;
}
