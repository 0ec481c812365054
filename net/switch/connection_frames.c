/* SPDX-License-Identifier: MIT */

/* Noise frames: assembled from what the channel brings and given to the muxer, and made of what the
 * muxer has to send. */

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/switch/connection_private.h"

enum {
    SEALED_MAX = NOISE_LENGTH_BYTES + NOISE_MAX_CIPHERTEXT,
    PIECES_MAX = 256,
    BATCHES_PER_TURN = 4,
    /* What one connection may have waiting for its socket, normally and when many have much. */
    BATCH_BYTES = IO_LOOP_BUFFER_BYTES,
    BATCH_BYTES_SCARCE = SEALED_MAX
};

static void read_session(void *context, uint8_t *to, size_t n)
{
    noise_session_read(context, to, n);
}

enum status connection_feed_muxer(struct connection *connection, struct muxer_source *source)
{
    enum status status = muxer_tick(connection->muxer, clock_monotonic_ns());
    return status == STATUS_OK ? muxer_receive(connection->muxer, source) : status;
}

static enum status take_frame(
        struct connection *connection, const uint8_t *ciphertext, size_t length)
{
    enum status status = noise_session_open(connection->session, ciphertext, length);
    while (status == STATUS_OK && connection->state < CONNECTION_CLOSING) {
        size_t remaining = noise_session_remaining(connection->session);
        if (remaining == 0) {
            break;
        }
        if (connection->muxer == NULL) {
            status = connection_negotiate_muxer(connection);
            continue;
        }
        struct muxer_source source = {
                .remaining = remaining, .read = read_session, .context = connection->session};
        status = connection_feed_muxer(connection, &source);
    }
    return status;
}

size_t connection_reserve_frame(struct connection *connection, uint8_t **to)
{
    if (connection->frame == NULL) {
        return 0;
    }
    *to = connection->frame + connection->frame_received;
    return (size_t)(connection->frame_length - connection->frame_received);
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The rest of a frame that began in an earlier read. */
static enum status continue_frame(struct connection *connection, struct span *bytes)
{
    size_t missing = (size_t)(connection->frame_length - connection->frame_received);
    size_t n = min_size(bytes->length, missing);
    uint8_t *to = connection->frame + connection->frame_received;
    if (bytes->bytes != to) {
        memcpy(to, bytes->bytes, n);
    }
    connection->frame_received = (uint16_t)(connection->frame_received + n);
    bytes->bytes += n;
    bytes->length -= n;
    if (n < missing) {
        return STATUS_OK;
    }
    uint8_t *frame = connection->frame;
    connection->frame = NULL;
    enum status status = take_frame(connection, frame, connection->frame_length);
    memory_free(frame);
    return status;
}

/* A frame of which bytes holds only the beginning. */
static enum status begin_frame(struct connection *connection, struct span *bytes, size_t length)
{
    connection->frame = memory_allocate(length);
    if (connection->frame == NULL) {
        return STATUS_NO_MEMORY;
    }
    connection->frame_length = (uint16_t)length;
    connection->frame_received = 0;
    return continue_frame(connection, bytes);
}

static void take_length_bytes(struct connection *connection, struct span *bytes)
{
    while (connection->length_received < NOISE_LENGTH_BYTES && bytes->length > 0) {
        connection->length_bytes[connection->length_received++] = bytes->bytes[0];
        bytes->bytes++;
        bytes->length--;
    }
}

static enum status next_frame(struct connection *connection, struct span *bytes)
{
    take_length_bytes(connection, bytes);
    if (connection->length_received < NOISE_LENGTH_BYTES) {
        return STATUS_OK;
    }
    size_t length = (size_t)(connection->length_bytes[0] << 8 | connection->length_bytes[1]);
    if (length < NOISE_TAG_BYTES) {
        return STATUS_BAD_FRAME;
    }
    connection->length_received = 0;
    if (bytes->length < length) {
        return begin_frame(connection, bytes, length);
    }
    const uint8_t *ciphertext = bytes->bytes;
    bytes->bytes += length;
    bytes->length -= length;
    return take_frame(connection, ciphertext, length);
}

enum status connection_receive_frames(struct connection *connection, struct span bytes)
{
    enum status status = STATUS_OK;
    metrics_add(METRIC_NET_BYTES_IN, bytes.length);
    while (status == STATUS_OK && bytes.length > 0 && connection->state < CONNECTION_CLOSING) {
        status = connection->frame != NULL ? continue_frame(connection, &bytes)
                                           : next_frame(connection, &bytes);
    }
    return status;
}

enum status connection_send_sealed(struct connection *connection, struct span plaintext)
{
    uint8_t *out = io_loop_output_buffer(connection->shard->loop);
    assert(plaintext.length <= NOISE_MAX_PLAINTEXT);
    size_t length = noise_session_seal(connection->session, &plaintext, 1, out);
    return length == 0 ? STATUS_LIMIT_REACHED
                       : channel_write(connection->channel, span_of(out, length));
}

/* As many frames as fit in room bytes; 0 when the muxer has nothing or the session is used up. */
static size_t seal_frames(struct connection *connection, uint8_t *out, size_t room)
{
    struct span pieces[PIECES_MAX];
    size_t used = 0;
    while (room - used >= SEALED_MAX) {
        size_t count = muxer_output(connection->muxer, pieces, PIECES_MAX, NOISE_MAX_PLAINTEXT);
        if (count == 0) {
            break;
        }
        size_t length = noise_session_seal(connection->session, pieces, count, out + used);
        muxer_output_done(connection->muxer);
        if (length == 0) {
            connection_fail(connection, CLOSE_BAD_FRAME, STATUS_LIMIT_REACHED);
            break;
        }
        used += length;
    }
    return used;
}

static size_t batch_limit(const struct connection *connection)
{
    const struct switch_shard *shard = connection->shard;
    size_t limit = shard->net_switch->options.buffered_bytes_max / shard->net_switch->shard_count;
    return io_loop_bytes_in_flight(shard->loop) > limit / 4 ? BATCH_BYTES_SCARCE : BATCH_BYTES;
}

bool connection_flush(struct connection *connection)
{
    uint8_t *out = io_loop_output_buffer(connection->shard->loop);
    for (int i = 0; i < BATCHES_PER_TURN; i++) {
        if (!channel_is_writable(connection->channel)) {
            return false;
        }
        size_t used = seal_frames(connection, out, batch_limit(connection));
        if (used == 0 || connection->state == CONNECTION_ENDED) {
            return false;
        }
        metrics_add(METRIC_NET_BYTES_OUT, used);
        enum status status = channel_write(connection->channel, span_of(out, used));
        if (status != STATUS_OK) {
            connection_fail(connection, close_reason_from_status(status, true), status);
            return false;
        }
    }
    /* The muxer reports new output only after it has been seen to run dry. */
    return channel_is_writable(connection->channel);
}
