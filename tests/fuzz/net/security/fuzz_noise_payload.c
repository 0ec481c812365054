/* SPDX-License-Identifier: MIT */

/* The spans lie inside the input, and writing them again gives a payload that reads the same. */

#include <assert.h>

#include "net/security/noise_payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect_inside(struct span part, const uint8_t *data, size_t size)
{
    assert(part.length == 0 ||
            (part.bytes >= data && part.length <= size - (size_t)(part.bytes - data)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct noise_payload payload;
    struct noise_payload again;
    static uint8_t written[1 << 16];
    size_t length = 0;
    if (noise_payload_parse(&payload, span_of(data, size)) != STATUS_OK) {
        return 0;
    }
    expect_inside(payload.identity_key, data, size);
    expect_inside(payload.identity_signature, data, size);
    assert(payload.muxer_count <= NOISE_PAYLOAD_MAX_MUXERS);
    for (size_t i = 0; i < payload.muxer_count; i++) {
        expect_inside(payload.muxers[i], data, size);
    }
    if (noise_payload_write(written, sizeof(written), &length, &payload) != STATUS_OK) {
        return 0;
    }
    enum status status = noise_payload_parse(&again, span_of(written, length));
    assert(status == STATUS_OK && again.muxer_count == payload.muxer_count);
    assert(span_equal(again.identity_key, payload.identity_key));
    assert(span_equal(again.identity_signature, payload.identity_signature));
    return 0;
}
