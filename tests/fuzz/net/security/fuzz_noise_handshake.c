/* SPDX-License-Identifier: MIT */

/*
 * The first byte chooses side, cut and depth: raw bytes in place of a handshake, or bytes in place
 * of the payload of a message that is right otherwise, so that they get past the cipher. No input
 * ever completes a handshake: that would take a signature.
 */

#include <assert.h>
#include <stdlib.h>

#include "net/security/noise.h"
#include "net/security/noise_static.h"
#include "net/security/noise_xx.h"

enum {
    MAX_PAYLOAD = NOISE_MAX_HANDSHAKE_FRAME - NOISE_XX_MAX_OVERHEAD
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct noise_static *own_static;

static void make_own_static(void)
{
    struct identity *identity = NULL;
    if (identity_create(&identity, KEY_TYPE_ED25519) != STATUS_OK ||
            noise_static_create(&own_static, identity) != STATUS_OK) {
        abort();
    }
    identity_destroy(&identity);
}

static void feed(struct noise_handshake *handshake, struct span input, size_t cut)
{
    enum status status = STATUS_OK;
    while (input.length > 0 && status == STATUS_OK) {
        size_t consumed = 0;
        size_t n = input.length < cut ? input.length : cut;
        status = noise_handshake_receive(handshake, span_of(input.bytes, n), &consumed);
        assert(consumed == n || status != STATUS_OK);
        input = span_of(input.bytes + n, input.length - n);
    }
    noise_handshake_output_taken(handshake, noise_handshake_output(handshake).length);
    assert(!noise_handshake_is_done(handshake));
}

static void read_output(struct noise_xx *peer, struct noise_handshake *handshake)
{
    uint8_t payload[2048];
    size_t length;
    struct span output = noise_handshake_output(handshake);
    enum status status = noise_xx_read(peer,
            span_of(output.bytes + NOISE_LENGTH_BYTES, output.length - NOISE_LENGTH_BYTES), payload,
            &length);
    assert(status == STATUS_OK);
    noise_handshake_output_taken(handshake, output.length);
}

static void write_and_feed(
        struct noise_xx *peer, struct noise_handshake *handshake, struct span payload, size_t cut)
{
    static uint8_t frame[NOISE_LENGTH_BYTES + NOISE_MAX_HANDSHAKE_FRAME];
    size_t written = 0;
    enum status status = noise_xx_write(peer, payload, frame + NOISE_LENGTH_BYTES, &written);
    assert(status == STATUS_OK);
    frame[0] = (uint8_t)(written >> 8);
    frame[1] = (uint8_t)written;
    feed(handshake, span_of(frame, NOISE_LENGTH_BYTES + written), cut);
}

/* payload arrives where the identity of the peer is expected. */
static void feed_as_payload(
        struct noise_handshake *handshake, bool is_initiator, struct span payload, size_t cut)
{
    struct noise_xx peer;
    const struct noise_xx_options options = {
            .is_initiator = !is_initiator, .static_pair = noise_static_pair(own_static)};
    if (noise_xx_init(&peer, &options) != STATUS_OK) {
        return;
    }
    if (is_initiator) {
        read_output(&peer, handshake);
    } else {
        static uint8_t first[NOISE_LENGTH_BYTES + NOISE_XX_MAX_OVERHEAD] = {0, NOISE_XX_KEY_BYTES};
        size_t consumed;
        size_t written;
        enum status status =
                noise_xx_write(&peer, span_of(NULL, 0), first + NOISE_LENGTH_BYTES, &written);
        assert(status == STATUS_OK && written == NOISE_XX_KEY_BYTES);
        status = noise_handshake_receive(
                handshake, span_of(first, NOISE_LENGTH_BYTES + NOISE_XX_KEY_BYTES), &consumed);
        assert(status == STATUS_OK);
        read_output(&peer, handshake);
    }
    payload.length = payload.length < MAX_PAYLOAD ? payload.length : MAX_PAYLOAD;
    write_and_feed(&peer, handshake, payload, cut);
    noise_xx_fini(&peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    if (own_static == NULL) {
        make_own_static();
    }
    struct noise_handshake *handshake = NULL;
    const struct noise_handshake_options options = {
            .own_static = own_static, .is_initiator = (data[0] & 1) != 0};
    if (noise_handshake_create(&handshake, &options) != STATUS_OK) {
        return 0;
    }
    size_t cut = 1 + (size_t)(data[0] >> 2) * 17;
    struct span input = span_of(data + 1, size - 1);
    if ((data[0] & 2) != 0) {
        feed_as_payload(handshake, options.is_initiator, input, cut);
    } else {
        feed(handshake, input, cut);
    }
    noise_handshake_destroy(&handshake);
    return 0;
}
