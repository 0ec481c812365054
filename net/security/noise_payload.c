/* SPDX-License-Identifier: MIT */
#include "net/security/noise_payload.h"

#include <string.h>

#include "codec/wire.h"

#define TAG_IDENTITY_KEY       WIRE_TAG(1, WIRE_LENGTH)
#define TAG_IDENTITY_SIGNATURE WIRE_TAG(2, WIRE_LENGTH)
#define TAG_EXTENSIONS         WIRE_TAG(4, WIRE_LENGTH)
#define TAG_STREAM_MUXERS      WIRE_TAG(2, WIRE_LENGTH) /* inside the extensions */

static enum status parse_extensions(struct noise_payload *out, struct span bytes)
{
    while (bytes.length > 0) {
        struct wire_field field;
        if (wire_next(&field, &bytes) != STATUS_OK) {
            return STATUS_BAD_HANDSHAKE;
        }
        if (field.tag == TAG_STREAM_MUXERS && out->muxer_count < NOISE_PAYLOAD_MAX_MUXERS) {
            out->muxers[out->muxer_count++] = field.bytes;
        }
    }
    return STATUS_OK;
}

static enum status take_field(struct noise_payload *out, const struct wire_field *field)
{
    switch (field->tag) {
    case TAG_IDENTITY_KEY:
        out->identity_key = field->bytes;
        break;
    case TAG_IDENTITY_SIGNATURE:
        out->identity_signature = field->bytes;
        break;
    case TAG_EXTENSIONS:
        return parse_extensions(out, field->bytes);
    default:
        break;
    }
    return STATUS_OK;
}

enum status noise_payload_parse(struct noise_payload *out, struct span bytes)
{
    enum status status = STATUS_OK;
    memset(out, 0, sizeof(*out));
    while (bytes.length > 0 && status == STATUS_OK) {
        struct wire_field field;
        status = wire_next(&field, &bytes) == STATUS_OK ? take_field(out, &field)
                                                        : STATUS_BAD_HANDSHAKE;
    }
    return status;
}

static size_t extensions_size(const struct noise_payload *payload)
{
    size_t size = 0;
    for (size_t i = 0; i < payload->muxer_count; i++) {
        size += wire_bytes_size(TAG_STREAM_MUXERS, payload->muxers[i].length);
    }
    return size;
}

enum status noise_payload_write(
        uint8_t *out, size_t capacity, size_t *length, const struct noise_payload *payload)
{
    size_t extensions = extensions_size(payload);
    *length = wire_bytes_size(TAG_IDENTITY_KEY, payload->identity_key.length) +
              wire_bytes_size(TAG_IDENTITY_SIGNATURE, payload->identity_signature.length);
    *length += extensions > 0 ? wire_bytes_size(TAG_EXTENSIONS, extensions) : 0;
    if (*length > capacity) {
        return STATUS_TOO_LARGE;
    }
    out = wire_write_bytes(out, TAG_IDENTITY_KEY, payload->identity_key);
    out = wire_write_bytes(out, TAG_IDENTITY_SIGNATURE, payload->identity_signature);
    if (extensions > 0) {
        out = wire_write_head(out, TAG_EXTENSIONS, extensions);
    }
    for (size_t i = 0; i < payload->muxer_count; i++) {
        out = wire_write_bytes(out, TAG_STREAM_MUXERS, payload->muxers[i]);
    }
    return STATUS_OK;
}
