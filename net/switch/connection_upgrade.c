/* SPDX-License-Identifier: MIT */

/* From an open channel to a muxer: multistream, Noise, and multistream again where Noise's early
 * negotiation did not settle the muxer. */

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/switch/connection_private.h"

enum {
    NEGOTIATION_BYTES = 1024
};

static const char *const security_ids[] = {"/noise"};

static const char *find_security(void *context, struct span name)
{
    (void)context;
    return span_equal(name, span_of_text(security_ids[0])) ? security_ids[0] : NULL;
}

static const char *security_at(void *context, size_t i)
{
    (void)context;
    return i == 0 ? security_ids[0] : NULL;
}

static const char *find_muxer(void *context, struct span name)
{
    const struct net_switch *net_switch = context;
    for (size_t i = 0; i < net_switch->options.muxer_count; i++) {
        if (span_equal(name, span_of_text(net_switch->muxer_ids[i]))) {
            return net_switch->muxer_ids[i];
        }
    }
    return NULL;
}

static const char *muxer_at(void *context, size_t i)
{
    const struct net_switch *net_switch = context;
    return i < net_switch->options.muxer_count ? net_switch->muxer_ids[i] : NULL;
}

static enum status send_negotiation(struct connection *connection)
{
    struct span output = multistream_output(connection->negotiation);
    if (output.length == 0) {
        return STATUS_OK;
    }
    enum status status = connection->session == NULL ? channel_write(connection->channel, output)
                                                     : connection_send_sealed(connection, output);
    multistream_output_taken(connection->negotiation, output.length);
    return status;
}

static enum status begin_security(struct connection *connection)
{
    static const struct multistream_offer offer = {.find = find_security, .at = security_at};
    connection->state = CONNECTION_SECURITY;
    enum status status =
            connection->is_outbound
                    ? multistream_create_initiator(&connection->negotiation, security_ids, 1)
                    : multistream_create_responder(&connection->negotiation, &offer);
    return status == STATUS_OK ? send_negotiation(connection) : status;
}

void connection_begin_upgrade(struct connection *connection)
{
    enum status status = begin_security(connection);
    if (status != STATUS_OK) {
        connection_fail(connection, close_reason_from_status(status, false), status);
    }
}

static enum status send_handshake(struct connection *connection)
{
    struct span output = noise_handshake_output(connection->handshake);
    if (output.length == 0) {
        return STATUS_OK;
    }
    enum status status = channel_write(connection->channel, output);
    noise_handshake_output_taken(connection->handshake, output.length);
    return status;
}

static enum status begin_handshake(struct connection *connection)
{
    const struct net_switch *net_switch = connection->shard->net_switch;
    struct noise_handshake_options options = {
            .own_static = net_switch->own_static,
            .is_initiator = connection->is_outbound,
            .expected_peer = connection->has_expected_peer ? &connection->peer : NULL,
            .muxers = net_switch->muxer_ids,
            .muxer_count = net_switch->options.muxer_count,
    };
    multistream_destroy(&connection->negotiation);
    connection->state = CONNECTION_HANDSHAKE;
    enum status status = noise_handshake_create(&connection->handshake, &options);
    return status == STATUS_OK ? send_handshake(connection) : status;
}

static void report_upgraded(struct connection *connection)
{
    struct multiaddr remote;
    connection_remote(connection, &remote);
    connection->state = CONNECTION_ADMISSION;
    registry_report_upgraded(connection->entry, &connection->peer, &remote);
}

static void on_stream_opened(void *context, struct muxer_stream *stream)
{
    stream_accept(context, stream);
}

static void on_output_ready(void *context)
{
    connection_mark_dirty(context);
}

static void on_pause(void *context, bool is_paused)
{
    struct connection *connection = context;
    if (connection->channel == NULL) {
        return;
    }
    if (is_paused) {
        channel_pause(connection->channel);
    } else {
        channel_resume(connection->channel);
    }
}

static enum status begin_muxer(struct connection *connection, const char *protocol)
{
    const struct switch_options *limits = &connection->shard->net_switch->options;
    struct muxer_options options = {
            .events = {.stream_opened = on_stream_opened,
                    .output_ready = on_output_ready,
                    .pause = on_pause},
            .context = connection,
            .streams_max = limits->streams_max,
            .keep_alive_ns = limits->keep_alive_ms * NANOSECONDS_PER_MILLISECOND,
    };
    if (!muxer_kind_from_protocol_id(&connection->muxer_kind, span_of_text(protocol))) {
        return STATUS_NO_COMMON_PROTOCOL;
    }
    enum status status = muxer_create(
            &connection->muxer, connection->muxer_kind, connection->is_outbound, &options);
    if (status == STATUS_OK) {
        report_upgraded(connection);
    }
    return status;
}

static enum status begin_muxer_negotiation(struct connection *connection)
{
    struct net_switch *net_switch = connection->shard->net_switch;
    struct multistream_offer offer = {.find = find_muxer, .at = muxer_at, .context = net_switch};
    connection->state = CONNECTION_MUXER;
    enum status status = connection->is_outbound
                                 ? multistream_create_initiator(&connection->negotiation,
                                           net_switch->muxer_ids, net_switch->options.muxer_count)
                                 : multistream_create_responder(&connection->negotiation, &offer);
    return status == STATUS_OK ? send_negotiation(connection) : status;
}

static enum status finish_handshake(struct connection *connection)
{
    const char *muxer = noise_handshake_muxer(connection->handshake);
    connection->peer = *noise_handshake_peer(connection->handshake);
    connection->has_peer = true;
    enum status status = noise_handshake_finish(&connection->handshake, &connection->session);
    if (status != STATUS_OK) {
        return status;
    }
    return muxer != NULL ? begin_muxer(connection, muxer) : begin_muxer_negotiation(connection);
}

static enum status receive_handshake(struct connection *connection, struct span *bytes)
{
    size_t consumed = 0;
    enum status status = noise_handshake_receive(connection->handshake, *bytes, &consumed);
    /* Also after an error: it may be the answer that tells the peer. */
    enum status sent = send_handshake(connection);
    bytes->bytes += consumed;
    bytes->length -= consumed;
    if (status != STATUS_OK || sent != STATUS_OK) {
        return status != STATUS_OK ? status : sent;
    }
    return noise_handshake_is_done(connection->handshake) ? finish_handshake(connection)
                                                          : STATUS_OK;
}

static void fail_negotiation(
        struct connection *connection, enum close_reason reason, enum status status)
{
    static struct log_limit limit;
    const char *refused = multistream_refused(connection->negotiation);
    if (refused[0] != '\0') {
        log_write_limited(&limit, LOG_NOTICE, "switch", "%s: the peer offered %s",
                close_reason_text(reason), refused);
    }
    connection_fail(connection, reason, status);
}

/*
 * The refusal that a peer saw shows only in what it does next: a responder learns of the failure when
 * the other side leaves or proposes too much.
 */
static enum status receive_security(struct connection *connection, struct span *bytes)
{
    size_t consumed = 0;
    enum status status = multistream_receive(connection->negotiation, *bytes, &consumed);
    enum status sent = send_negotiation(connection);
    bytes->bytes += consumed;
    bytes->length -= consumed;
    if (status == STATUS_NO_COMMON_PROTOCOL) {
        fail_negotiation(connection, CLOSE_NO_COMMON_SECURITY, status);
        return STATUS_OK;
    }
    if (status != STATUS_OK || sent != STATUS_OK) {
        return status != STATUS_OK ? status : sent;
    }
    return multistream_protocol(connection->negotiation) != NULL ? begin_handshake(connection)
                                                                 : STATUS_OK;
}

enum status connection_receive_upgrade(struct connection *connection, struct span *bytes)
{
    if (connection->state == CONNECTION_SECURITY) {
        return receive_security(connection, bytes);
    }
    assert(connection->state == CONNECTION_HANDSHAKE);
    return receive_handshake(connection, bytes);
}

struct memory_source {
    const uint8_t *next;
};

static void read_memory(void *context, uint8_t *to, size_t n)
{
    struct memory_source *source = context;
    memcpy(to, source->next, n);
    source->next += n;
}

/* The agreement may be followed by the first bytes of the muxer in one frame. */
static enum status finish_muxer_negotiation(struct connection *connection, struct span rest)
{
    const char *protocol = multistream_protocol(connection->negotiation);
    multistream_destroy(&connection->negotiation);
    enum status status = begin_muxer(connection, protocol);
    if (status != STATUS_OK || rest.length == 0) {
        return status;
    }
    struct memory_source memory = {.next = rest.bytes};
    struct muxer_source source = {
            .remaining = rest.length, .read = read_memory, .context = &memory};
    return connection_feed_muxer(connection, &source);
}

enum status connection_negotiate_muxer(struct connection *connection)
{
    uint8_t plain[NEGOTIATION_BYTES];
    size_t remaining = noise_session_remaining(connection->session);
    size_t length = remaining < sizeof(plain) ? remaining : sizeof(plain);
    size_t consumed = 0;
    noise_session_read(connection->session, plain, length);
    enum status status =
            multistream_receive(connection->negotiation, span_of(plain, length), &consumed);
    enum status sent = send_negotiation(connection);
    if (status == STATUS_NO_COMMON_PROTOCOL) {
        fail_negotiation(connection, CLOSE_NO_COMMON_MUXER, status);
        return STATUS_OK;
    }
    if (status != STATUS_OK || sent != STATUS_OK) {
        return status != STATUS_OK ? status : sent;
    }
    if (multistream_protocol(connection->negotiation) == NULL) {
        return STATUS_OK;
    }
    return finish_muxer_negotiation(connection, span_of(plain + consumed, length - consumed));
}
