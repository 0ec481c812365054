/* SPDX-License-Identifier: MIT */
#include "tests/support/stranger.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec/gossip_writer.h"
#include "net/protocols/metadata.h"
#include "net/protocols/relay.h"
#include "tests/support/cmocka.h"

enum {
    WAIT_S = 60,
    SINK_BYTES = 64 * 1024
};

static _Thread_local uint8_t sink[SINK_BYTES];

static void change_begin(struct stranger *stranger)
{
    pthread_mutex_lock(&stranger->mutex);
}

static void change_end(struct stranger *stranger)
{
    pthread_cond_broadcast(&stranger->changed);
    pthread_mutex_unlock(&stranger->mutex);
}

static enum status on_agreed(struct stream *stream)
{
    struct stranger *stranger = stream_context(stream);
    change_begin(stranger);
    stranger->stream = stream_address(stream);
    change_end(stranger);
    return STATUS_OK;
}

static void on_outbound_closed(struct stream *stream, enum status reason)
{
    (void)reason;
    struct stranger *stranger = stream_context(stream);
    change_begin(stranger);
    stranger->stream.stream = 0;
    change_end(stranger);
}

static const struct stream_events outbound_events = {
        .opened = on_agreed, .closed = on_outbound_closed};

static size_t on_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct stranger *stranger = stream_context(stream);
    *to = sink;
    if (stranger->options.reads_nothing) {
        return 0;
    }
    return wanted < SINK_BYTES ? wanted : SINK_BYTES;
}

static void on_commit(struct stream *stream, size_t n)
{
    struct stranger *stranger = stream_context(stream);
    stream_consumed(stream, n);
    change_begin(stranger);
    stranger->received_bytes += n;
    change_end(stranger);
}

static void on_inbound_closed(struct stream *stream, enum status reason)
{
    (void)stream;
    (void)reason;
}

static const struct stream_events inbound_events = {
        .reserve = on_reserve, .commit = on_commit, .closed = on_inbound_closed};

static void on_connected(void *context, struct connection *connection)
{
    static const char *const ids[] = {RELAY_PROTOCOL_ID};
    struct stranger *stranger = context;
    struct stream_request request = {
            .protocols = ids, .protocol_count = 1, .events = &outbound_events, .context = stranger};
    (void)!connection_open_stream(connection, &request, NULL);
    change_begin(stranger);
    stranger->connection = connection_id(connection);
    stranger->connected_count++;
    change_end(stranger);
}

static void on_disconnected(void *context, struct connection *connection, enum close_reason reason)
{
    (void)connection;
    (void)reason;
    struct stranger *stranger = context;
    change_begin(stranger);
    stranger->disconnected_count++;
    change_end(stranger);
}

static void on_metadata_requested(void *context, struct exchange *exchange, struct span request)
{
    (void)request;
    struct stranger *stranger = context;
    exchange_answer_copy(exchange, *stranger->options.metadata);
    change_begin(stranger);
    stranger->answered_count++;
    change_end(stranger);
}

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    (void)context;
    (void)status;
    (void)connection;
}

static void register_protocols(struct stranger *stranger)
{
    static const struct switch_observer observer = {
            .connected = on_connected, .disconnected = on_disconnected};
    struct net_switch *net_switch = net_host_switch(stranger->host);
    struct protocol relay = {
            .id = RELAY_PROTOCOL_ID, .events = &inbound_events, .context = stranger};
    assert_int_equal(switch_add_protocol(net_switch, &relay), STATUS_OK);
    assert_int_equal(switch_add_observer(net_switch, &observer, stranger), STATUS_OK);
    if (stranger->options.metadata != NULL) {
        stranger->metadata = (struct exchange_server){.id = METADATA_PROTOCOL_ID,
                .request_max = METADATA_MESSAGE_MAX,
                .requested = on_metadata_requested,
                .context = stranger};
        assert_int_equal(exchange_serve(net_switch, &stranger->metadata), STATUS_OK);
    }
}

/* is_there is asked with the mutex held. */
static void wait_until(
        struct stranger *stranger, bool (*is_there)(const struct stranger *, size_t), size_t value)
{
    struct timespec end;
    int result = 0;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += WAIT_S;
    pthread_mutex_lock(&stranger->mutex);
    while (!is_there(stranger, value) && result == 0) {
        result = pthread_cond_timedwait(&stranger->changed, &stranger->mutex, &end);
    }
    if (result != 0) {
        print_error(
                "waited for %zu: %zu bytes received, stream %llu, connected %u, disconnected %u, "
                "answered %u\n",
                value, stranger->received_bytes, (unsigned long long)stranger->stream.stream,
                stranger->connected_count, stranger->disconnected_count, stranger->answered_count);
    }
    pthread_mutex_unlock(&stranger->mutex);
    assert_int_equal(result, 0);
}

/* A node that will have none of it may end the connection at once. */
static bool has_stream(const struct stranger *stranger, size_t value)
{
    (void)value;
    return stranger->stream.stream != 0 || stranger->disconnected_count > 0;
}

void stranger_start(
        struct stranger *stranger, const struct stranger_options *options, const char *address)
{
    static const enum muxer_kind mplex = MUXER_MPLEX;
    struct switch_dial dial = {.done = on_dialled};
    memset(stranger, 0, sizeof(*stranger));
    stranger->options = *options;
    pthread_mutex_init(&stranger->mutex, NULL);
    pthread_cond_init(&stranger->changed, NULL);
    if (options->identity == NULL) {
        assert_int_equal(identity_create(&stranger->own_identity, KEY_TYPE_ED25519), STATUS_OK);
        stranger->options.identity = stranger->own_identity;
    }
    struct net_host_options host = {.identity = stranger->options.identity};
    if (options->muxer != NULL && strcmp(options->muxer, "mplex") == 0) {
        host.limits.muxers = &mplex;
        host.limits.muxer_count = 1;
    }
    assert_int_equal(net_host_create(&stranger->host, &host), STATUS_OK);
    register_protocols(stranger);
    assert_int_equal(net_host_start(stranger->host), STATUS_OK);
    assert_int_equal(multiaddr_parse(&dial.address, span_of_text(address)), STATUS_OK);
    assert_int_equal(switch_dial(net_host_switch(stranger->host), &dial), STATUS_OK);
    wait_until(stranger, has_stream, 0);
}

void stranger_stop(struct stranger *stranger)
{
    net_host_destroy(&stranger->host);
    identity_destroy(&stranger->own_identity);
    pthread_cond_destroy(&stranger->changed);
    pthread_mutex_destroy(&stranger->mutex);
}

static void on_written(struct stream_write *write, enum status status)
{
    if (status != STATUS_OK) {
        free(write->pieces[0].owner);
    }
    free(write);
}

void stranger_say(struct stranger *stranger, struct span bytes)
{
    struct stream_write *write = calloc(1, sizeof(*write));
    uint8_t *copy = malloc(bytes.length);
    assert_non_null(write);
    assert_non_null(copy);
    memcpy(copy, bytes.bytes, bytes.length);
    pthread_mutex_lock(&stranger->mutex);
    write->to = stranger->stream;
    pthread_mutex_unlock(&stranger->mutex);
    write->pieces[0] = (struct muxer_piece){
            .bytes = span_of(copy, bytes.length), .release = free, .owner = copy};
    write->piece_count = 1;
    write->done = on_written;
    switch_post_write(net_host_switch(stranger->host), write);
}

void stranger_subscribe(struct stranger *stranger, const char *topic)
{
    uint8_t bytes[256];
    struct gossip_subscription subscription = {.topic = span_of_text(topic), .subscribe = true};
    struct gossip_outgoing rpc = {.subscriptions = &subscription,
            .subscription_count = 1,
            .graft = &subscription.topic,
            .graft_count = 1};
    stranger_say(stranger, span_of(bytes, gossip_outgoing_write(bytes, sizeof(bytes), &rpc)));
}

void stranger_publish(struct stranger *stranger, const char *topic, struct span message)
{
    uint8_t header[256];
    struct span name = span_of_text(topic);
    size_t size = gossip_publish_header_write(header, sizeof(header), name, message.length);
    uint8_t *whole = malloc(size + message.length);
    assert_non_null(whole);
    memcpy(whole, header, size);
    memcpy(whole + size, message.bytes, message.length);
    stranger_say(stranger, span_of(whole, size + message.length));
    free(whole);
}

static bool is_disconnected(const struct stranger *stranger, size_t value)
{
    (void)value;
    return stranger->disconnected_count > 0;
}

void stranger_wait_disconnected(struct stranger *stranger)
{
    wait_until(stranger, is_disconnected, 0);
}

static bool has_answered(const struct stranger *stranger, size_t value)
{
    return stranger->answered_count >= value;
}

void stranger_wait_answered(struct stranger *stranger)
{
    wait_until(stranger, has_answered, 1);
}

static bool has_received(const struct stranger *stranger, size_t value)
{
    return stranger->received_bytes >= value;
}

void stranger_wait_received(struct stranger *stranger, size_t bytes)
{
    wait_until(stranger, has_received, bytes);
}

size_t stranger_received(struct stranger *stranger)
{
    pthread_mutex_lock(&stranger->mutex);
    size_t bytes = stranger->received_bytes;
    pthread_mutex_unlock(&stranger->mutex);
    return bytes;
}

bool stranger_is_connected(struct stranger *stranger)
{
    pthread_mutex_lock(&stranger->mutex);
    bool is_connected = stranger->connected_count > stranger->disconnected_count;
    pthread_mutex_unlock(&stranger->mutex);
    return is_connected;
}
