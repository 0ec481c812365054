/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/memory.h"
#include "net/security/noise.h"
#include "net/security/noise_payload.h"
#include "net/security/noise_session.h"
#include "net/security/noise_static.h"
#include "net/security/noise_xx.h"

enum {
    MAX_OWN_PAYLOAD = 1024, /* key, signature, and the names of all muxers */
    OUTPUT_CAPACITY =
            NOISE_XX_MESSAGES * (NOISE_LENGTH_BYTES + NOISE_XX_MAX_OVERHEAD + MAX_OWN_PAYLOAD),
    INPUT_CAPACITY = NOISE_LENGTH_BYTES + NOISE_MAX_HANDSHAKE_FRAME
};

struct noise_handshake {
    struct noise_xx xx;
    struct noise_static *made_static; /* NULL when the caller has one */
    struct noise_handshake_options options;
    struct peer_id expected_peer; /* where options.expected_peer points, unless NULL */
    struct public_key peer_key;
    struct peer_id peer;
    const char *muxer;
    enum status failure; /* once set, nothing more is taken */
    size_t input_length; /* of the frame that is coming in, its length bytes included */
    size_t output_length;
    size_t output_taken;
    uint8_t input[INPUT_CAPACITY];
    uint8_t output[OUTPUT_CAPACITY];
};

static enum status write_own_payload(
        const struct noise_handshake *handshake, uint8_t out[MAX_OWN_PAYLOAD], size_t *length)
{
    const struct noise_handshake_options *options = &handshake->options;
    struct noise_payload payload = {
            .identity_key = noise_static_identity_key(options->own_static),
            .identity_signature = noise_static_signature(options->own_static),
            .muxer_count = options->muxer_count,
    };
    for (size_t i = 0; i < options->muxer_count; i++) {
        payload.muxers[i] = span_of_text(options->muxers[i]);
    }
    return noise_payload_write(out, MAX_OWN_PAYLOAD, length, &payload);
}

static void put_length(uint8_t *out, size_t length)
{
    out[0] = (uint8_t)(length >> 8);
    out[1] = (uint8_t)length;
}

static enum status write_message(struct noise_handshake *handshake)
{
    uint8_t payload[MAX_OWN_PAYLOAD];
    size_t payload_length = 0;
    size_t written = 0;
    if (handshake->xx.next_message > 0) {
        enum status status = write_own_payload(handshake, payload, &payload_length);
        if (status != STATUS_OK) {
            return status;
        }
    }
    uint8_t *frame = handshake->output + handshake->output_length;
    enum status status = noise_xx_write(
            &handshake->xx, span_of(payload, payload_length), frame + NOISE_LENGTH_BYTES, &written);
    if (status == STATUS_OK) {
        put_length(frame, written);
        handshake->output_length += NOISE_LENGTH_BYTES + written;
    }
    return status;
}

static bool offers(const struct noise_payload *payload, const char *muxer)
{
    for (size_t i = 0; i < payload->muxer_count; i++) {
        if (span_equal(payload->muxers[i], span_of_text(muxer))) {
            return true;
        }
    }
    return false;
}

static const char *find_own_muxer(const struct noise_handshake *handshake, struct span name)
{
    for (size_t i = 0; i < handshake->options.muxer_count; i++) {
        if (span_equal(span_of_text(handshake->options.muxers[i]), name)) {
            return handshake->options.muxers[i];
        }
    }
    return NULL;
}

static const char *first_own_muxer_they_offer(
        const struct noise_handshake *handshake, const struct noise_payload *theirs)
{
    const struct noise_handshake_options *options = &handshake->options;
    for (size_t i = 0; i < options->muxer_count; i++) {
        if (offers(theirs, options->muxers[i])) {
            return options->muxers[i];
        }
    }
    return NULL;
}

static const char *first_of_their_muxers_we_offer(
        const struct noise_handshake *handshake, const struct noise_payload *theirs)
{
    const char *muxer = NULL;
    for (size_t i = 0; i < theirs->muxer_count && muxer == NULL; i++) {
        muxer = find_own_muxer(handshake, theirs->muxers[i]);
    }
    return muxer;
}

/* What the payload says is believed only after its signature covers the static key in use. */
static enum status check_payload(struct noise_handshake *handshake, struct span bytes)
{
    struct noise_payload payload;
    uint8_t message[NOISE_STATIC_SIGNED_BYTES];
    enum status status = noise_payload_parse(&payload, bytes);
    if (status == STATUS_OK) {
        status = public_key_parse(&handshake->peer_key, payload.identity_key);
    }
    if (status == STATUS_OK) {
        noise_static_signed_bytes(message, handshake->xx.remote_static);
        status = public_key_verify(&handshake->peer_key, span_of(message, sizeof(message)),
                payload.identity_signature);
    }
    if (status != STATUS_OK) {
        return status;
    }
    peer_id_from_public_key(&handshake->peer, &handshake->peer_key);
    const struct peer_id *expected = handshake->options.expected_peer;
    if (expected != NULL && !peer_id_equal(expected, &handshake->peer)) {
        return STATUS_WRONG_PEER;
    }
    /* The initiator's order decides, so that both sides come to the same result. */
    handshake->muxer = handshake->options.is_initiator
                               ? first_own_muxer_they_offer(handshake, &payload)
                               : first_of_their_muxers_we_offer(handshake, &payload);
    return STATUS_OK;
}

static bool has_all_messages(const struct noise_handshake *handshake)
{
    return handshake->xx.next_message == NOISE_XX_MESSAGES;
}

/* Takes one message and writes the answer, if there is one. */
static enum status process_message(struct noise_handshake *handshake, struct span message)
{
    uint8_t payload[NOISE_MAX_HANDSHAKE_FRAME];
    size_t length = 0;
    bool is_first = handshake->xx.next_message == 0;
    enum status status = noise_xx_read(&handshake->xx, message, payload, &length);
    if (status == STATUS_OK && !is_first) {
        status = check_payload(handshake, span_of(payload, length));
    }
    if (status == STATUS_OK && !has_all_messages(handshake)) {
        status = write_message(handshake);
    }
    return status;
}

static enum status start(struct noise_handshake *handshake)
{
    enum status status = STATUS_OK;
    struct noise_handshake_options *options = &handshake->options;
    if (options->own_static == NULL) {
        status = noise_static_create(&handshake->made_static, options->identity);
        options->own_static = handshake->made_static;
    }
    if (status != STATUS_OK) {
        return status;
    }
    const struct noise_xx_options xx_options = {
            .is_initiator = options->is_initiator,
            .static_pair = noise_static_pair(options->own_static),
    };
    status = noise_xx_init(&handshake->xx, &xx_options);
    return status == STATUS_OK && options->is_initiator ? write_message(handshake) : status;
}

enum status noise_handshake_create(
        struct noise_handshake **out, const struct noise_handshake_options *options)
{
    bool has_key = options->own_static != NULL || options->identity != NULL;
    if (!has_key || options->muxer_count > NOISE_PAYLOAD_MAX_MUXERS) {
        return STATUS_BAD_ARGUMENT;
    }
    struct noise_handshake *handshake = memory_allocate_zeroed(sizeof(*handshake));
    if (handshake == NULL) {
        return STATUS_NO_MEMORY;
    }
    handshake->options = *options;
    if (options->expected_peer != NULL) {
        handshake->expected_peer = *options->expected_peer;
        handshake->options.expected_peer = &handshake->expected_peer;
    }
    enum status status = start(handshake);
    if (status != STATUS_OK) {
        noise_handshake_destroy(&handshake);
        return status;
    }
    *out = handshake;
    return STATUS_OK;
}

void noise_handshake_destroy(struct noise_handshake **handshake)
{
    if (*handshake == NULL) {
        return;
    }
    noise_xx_fini(&(*handshake)->xx);
    noise_static_destroy(&(*handshake)->made_static);
    memory_free(*handshake);
    *handshake = NULL;
}

/* Bytes of the current frame, with its length bytes, as far as that is known. */
static size_t frame_size(const struct noise_handshake *handshake)
{
    if (handshake->input_length < NOISE_LENGTH_BYTES) {
        return NOISE_LENGTH_BYTES;
    }
    return NOISE_LENGTH_BYTES + ((size_t)handshake->input[0] << 8 | handshake->input[1]);
}

static enum status take_input(struct noise_handshake *handshake, struct span input, size_t *taken)
{
    size_t wanted = frame_size(handshake);
    if (wanted > INPUT_CAPACITY) {
        return STATUS_TOO_LARGE;
    }
    size_t missing = wanted - handshake->input_length;
    *taken = missing < input.length ? missing : input.length;
    if (*taken > 0) {
        memcpy(handshake->input + handshake->input_length, input.bytes, *taken);
        handshake->input_length += *taken;
    }
    if (handshake->input_length < NOISE_LENGTH_BYTES ||
            handshake->input_length < frame_size(handshake)) {
        return STATUS_OK;
    }
    struct span message = span_of(
            handshake->input + NOISE_LENGTH_BYTES, handshake->input_length - NOISE_LENGTH_BYTES);
    handshake->input_length = 0;
    return process_message(handshake, message);
}

enum status noise_handshake_receive(
        struct noise_handshake *handshake, struct span input, size_t *consumed)
{
    *consumed = 0;
    while (handshake->failure == STATUS_OK && !has_all_messages(handshake) &&
            *consumed < input.length) {
        size_t taken = 0;
        struct span rest = span_of(input.bytes + *consumed, input.length - *consumed);
        handshake->failure = take_input(handshake, rest, &taken);
        *consumed += taken;
    }
    return handshake->failure;
}

struct span noise_handshake_output(const struct noise_handshake *handshake)
{
    return span_of(handshake->output + handshake->output_taken,
            handshake->output_length - handshake->output_taken);
}

void noise_handshake_output_taken(struct noise_handshake *handshake, size_t n)
{
    assert(n <= handshake->output_length - handshake->output_taken);
    handshake->output_taken += n;
}

bool noise_handshake_is_done(const struct noise_handshake *handshake)
{
    return handshake->failure == STATUS_OK && has_all_messages(handshake) &&
           handshake->output_taken == handshake->output_length;
}

const struct peer_id *noise_handshake_peer(const struct noise_handshake *handshake)
{
    assert(noise_handshake_is_done(handshake));
    return &handshake->peer;
}

const struct public_key *noise_handshake_peer_key(const struct noise_handshake *handshake)
{
    assert(noise_handshake_is_done(handshake));
    return &handshake->peer_key;
}

const char *noise_handshake_muxer(const struct noise_handshake *handshake)
{
    assert(noise_handshake_is_done(handshake));
    return handshake->muxer;
}

enum status noise_handshake_finish(struct noise_handshake **handshake, struct noise_session **out)
{
    assert(noise_handshake_is_done(*handshake));
    uint8_t send_key[NOISE_XX_KEY_BYTES] = {0};
    uint8_t receive_key[NOISE_XX_KEY_BYTES] = {0};
    enum status status = noise_xx_split(&(*handshake)->xx, send_key, receive_key);
    if (status == STATUS_OK) {
        status = noise_session_create(out, send_key, receive_key);
    }
    OPENSSL_cleanse(send_key, sizeof(send_key));
    OPENSSL_cleanse(receive_key, sizeof(receive_key));
    if (status == STATUS_OK) {
        noise_handshake_destroy(handshake);
    }
    return status;
}
