/* SPDX-License-Identifier: MIT */
#include "base/metrics.h"
#include "net/switch/stream_private.h"

static size_t wanted_by(const struct line_cursor *cursor)
{
    return cursor->remaining > 0 ? cursor->remaining : 1;
}

static void advance(struct line_cursor *cursor, uint8_t byte)
{
    if (cursor->remaining > 0) {
        cursor->remaining--;
        return;
    }
    /* A length that is too long is multistream's to refuse; here it only must not overflow. */
    if (cursor->shift < 21) {
        cursor->length |= (uint32_t)(byte & 0x7f) << cursor->shift;
    }
    cursor->shift = (uint8_t)(cursor->shift + 7);
    if ((byte & 0x80) == 0) {
        *cursor = (struct line_cursor){.remaining = cursor->length};
    }
}

static const char *find_protocol(void *context, struct span name)
{
    const struct protocol *protocol = switch_find_protocol(context, name);
    return protocol == NULL ? NULL : protocol->id;
}

static const char *protocol_at(void *context, size_t i)
{
    return switch_protocol_at(context, i);
}

static enum status send_output(struct stream *stream)
{
    struct span output = multistream_output(stream->negotiation);
    if (output.length == 0 || stream->muxer_stream == NULL) {
        return STATUS_OK;
    }
    enum status status = stream_write_copy(stream, output);
    multistream_output_taken(stream->negotiation, output.length);
    return status;
}

enum status stream_negotiation_begin(struct stream *stream, const struct stream_request *request)
{
    struct net_switch *net_switch = stream->connection->shard->net_switch;
    enum status status;
    if (request != NULL) {
        status = multistream_create_initiator(
                &stream->negotiation, request->protocols, request->protocol_count);
    } else {
        struct multistream_offer offer = {
                .find = find_protocol, .at = protocol_at, .context = net_switch};
        status = multistream_create_responder(&stream->negotiation, &offer);
    }
    if (status != STATUS_OK) {
        return status;
    }
    stream->is_negotiating = true;
    stream->connection->negotiating_count++;
    return send_output(stream);
}

void stream_negotiation_end(struct stream *stream)
{
    if (stream->is_negotiating) {
        stream->is_negotiating = false;
        stream->connection->negotiating_count--;
        multistream_destroy(&stream->negotiation);
    }
}

size_t stream_negotiation_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    size_t line = wanted_by(&stream->cursor);
    size_t n = wanted < line ? wanted : line;
    *to = stream->connection->shard->scratch;
    return n < SCRATCH_BYTES ? n : SCRATCH_BYTES;
}

void stream_negotiation_commit(struct stream *stream, size_t n)
{
    const uint8_t *bytes = stream->connection->shard->scratch;
    size_t consumed = 0;
    for (size_t i = 0; i < n; i++) {
        advance(&stream->cursor, bytes[i]);
    }
    muxer_stream_consumed(stream->muxer_stream, n);
    enum status status = multistream_receive(stream->negotiation, span_of(bytes, n), &consumed);
    enum status sent = send_output(stream);
    if (status != STATUS_OK || sent != STATUS_OK) {
        metrics_add(status == STATUS_NO_COMMON_PROTOCOL ? METRIC_NET_STREAMS_NO_PROTOCOL
                                                        : METRIC_NET_STREAMS_BAD_NEGOTIATION,
                1);
        stream_cut(stream, status != STATUS_OK ? status : sent);
        return;
    }
    const char *protocol = multistream_protocol(stream->negotiation);
    if (protocol != NULL) {
        stream_negotiation_end(stream);
        stream_agreed(stream, protocol);
    }
}
