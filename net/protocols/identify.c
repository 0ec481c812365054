/* SPDX-License-Identifier: MIT */
#include "net/protocols/identify.h"

#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/version.h"
#include "net/protocols/exchange_private.h"
#include "net/protocols/prefixed_reader.h"

enum {
    IDENTIFY_TIMEOUT_MS = 30 * 1000,
    IDENTIFY_INBOUND_MAX = 8,
    IGNORED_BYTES = 256
};

static const char default_agent[] = "sluice/" SLUICE_VERSION;
static const char default_protocol_version[] = "ipfs/0.1.0";

struct identify {
    struct identify_options options;
    struct multiaddr *extra_addresses;
};

/* A message on its way in: the answer to our question, or a push. */
struct incoming {
    struct identify *identify;
    struct prefixed_reader reader;
    uint8_t ignored[IGNORED_BYTES];
};

/* What we say about ourselves, with the memory that the spans point into. */
struct self_description {
    struct identify_info info;
    struct multiaddr addresses[IDENTIFY_ADDRESSES_MAX];
    struct multiaddr observed;
    uint8_t public_key[PUBLIC_KEY_MAX_ENCODED];
};

static bool is_unspecified(const struct multiaddr_endpoint *endpoint)
{
    static const uint8_t zeros[sizeof(endpoint->ip)];
    size_t length = endpoint->host_kind == MULTIADDR_HOST_IP6 ? sizeof(endpoint->ip) : 4;
    bool is_number =
            endpoint->host_kind == MULTIADDR_HOST_IP4 || endpoint->host_kind == MULTIADDR_HOST_IP6;
    return is_number && memcmp(endpoint->ip, zeros, length) == 0;
}

/*
 * 0.0.0.0 and :: are no addresses to dial: for them stands the address that this peer reached us at.
 * False when there is none of that family.
 */
static bool make_concrete(struct multiaddr *address, const struct connection *connection)
{
    struct multiaddr local;
    struct multiaddr_endpoint ours;
    struct multiaddr_endpoint seen;
    if (multiaddr_endpoint(&ours, address) != STATUS_OK || !is_unspecified(&ours)) {
        return true;
    }
    connection_local(connection, &local);
    if (multiaddr_endpoint(&seen, &local) != STATUS_OK || seen.host_kind != ours.host_kind) {
        return false;
    }
    seen.port = ours.port;
    seen.is_websocket = ours.is_websocket;
    seen.is_secure = ours.is_secure;
    return multiaddr_from_endpoint(address, &seen) == STATUS_OK;
}

static void announce(struct self_description *self, const struct multiaddr *address,
        const struct connection *connection)
{
    struct identify_info *info = &self->info;
    if (info->address_count == IDENTIFY_ADDRESSES_MAX) {
        return;
    }
    struct multiaddr *kept = &self->addresses[info->address_count];
    *kept = *address;
    if (make_concrete(kept, connection)) {
        info->addresses[info->address_count++] = multiaddr_span(kept);
    }
}

static void describe_self(struct self_description *self, const struct identify *identify,
        const struct connection *connection)
{
    const struct net_switch *net_switch = identify->options.net_switch;
    struct identify_info *info = &self->info;
    const struct public_key *key = identity_public_key(switch_identity(net_switch));
    memset(info, 0, sizeof(*info));
    info->public_key = span_of(self->public_key, public_key_encode(key, self->public_key));
    info->agent = span_of_text(identify->options.agent);
    info->protocol_version = span_of_text(identify->options.protocol_version);
    connection_remote(connection, &self->observed);
    info->observed_address = multiaddr_span(&self->observed);
    for (size_t i = 0; i < identify->options.extra_address_count; i++) {
        announce(self, &identify->extra_addresses[i], connection);
    }
    const struct multiaddr *address;
    for (size_t i = 0; !identify->options.only_extra_addresses &&
                       (address = switch_listen_address(net_switch, i)) != NULL;
            i++) {
        announce(self, address, connection);
    }
    const char *id;
    for (size_t i = 0; (id = switch_protocol_at(net_switch, i)) != NULL; i++) {
        info->protocols[info->protocol_count++] = span_of_text(id);
    }
}

static enum status send_self(struct stream *stream, const struct identify *identify)
{
    struct self_description self;
    uint8_t *message;
    size_t length;
    describe_self(&self, identify, stream_connection(stream));
    enum status status = identify_message_write(&message, &length, &self.info);
    if (status != STATUS_OK) {
        return status;
    }
    struct muxer_piece piece = {
            .bytes = span_of(message, length), .release = memory_free, .owner = message};
    return exchange_write(stream, &piece, 1);
}

/* What the peer said, now whole. */
static void take_message(struct stream *stream, struct incoming *incoming)
{
    static struct log_limit limit;
    struct identify *identify = incoming->identify;
    struct connection *connection = stream_connection(stream);
    struct identify_info info;
    enum status status = identify_message_read(
            &info, prefixed_reader_message(&incoming->reader), connection_peer(connection));
    if (status != STATUS_OK) {
        char peer[PEER_ID_TEXT_SIZE];
        metrics_add(METRIC_NET_IDENTIFY_REFUSED, 1);
        log_write_limited(&limit, LOG_NOTICE, "identify", "message of %s refused: %s",
                peer_id_print(peer, connection_peer(connection)), status_text(status));
        return;
    }
    if (info.agent.length > 0) {
        connection_set_agent(connection, info.agent);
    }
    if (identify->options.identified != NULL) {
        identify->options.identified(identify->options.context, connection, &info);
    }
}

static enum status start_incoming(struct stream *stream)
{
    struct incoming *incoming = memory_allocate_zeroed(sizeof(*incoming));
    if (incoming == NULL) {
        stream_set_context(stream, NULL);
        return STATUS_NO_MEMORY;
    }
    incoming->identify = stream_context(stream);
    prefixed_reader_init(&incoming->reader, IDENTIFY_MESSAGE_MAX);
    stream_set_context(stream, incoming);
    stream_set_timeout(stream, IDENTIFY_TIMEOUT_MS);
    stream_close_write(stream);
    return STATUS_OK;
}

static size_t on_incoming_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct incoming *incoming = stream_context(stream);
    if (prefixed_reader_is_done(&incoming->reader)) {
        /* Some peers send a second message with what only they know: it goes nowhere. */
        *to = incoming->ignored;
        return sizeof(incoming->ignored);
    }
    return prefixed_reader_reserve(&incoming->reader, wanted, to);
}

static void on_incoming_commit(struct stream *stream, size_t n)
{
    struct incoming *incoming = stream_context(stream);
    stream_consumed(stream, n);
    if (prefixed_reader_is_done(&incoming->reader)) {
        return;
    }
    enum status status = prefixed_reader_commit(&incoming->reader, n);
    if (status != STATUS_OK) {
        metrics_add(METRIC_NET_IDENTIFY_REFUSED, 1);
        stream_reset(stream, status);
    } else if (prefixed_reader_is_done(&incoming->reader)) {
        take_message(stream, incoming);
    }
}

static void free_incoming(struct incoming *incoming)
{
    if (incoming != NULL) {
        prefixed_reader_fini(&incoming->reader);
        memory_free(incoming);
    }
}

static void on_push_closed(struct stream *stream, enum status reason)
{
    (void)reason;
    free_incoming(stream_context(stream));
}

/* A question that was never answered, or not even understood, leaves an unknown agent: no more. */
static void on_question_closed(struct stream *stream, enum status reason)
{
    (void)reason;
    if (stream_protocol(stream) != NULL) {
        free_incoming(stream_context(stream));
    }
}

static enum status on_question_opened(struct stream *stream)
{
    return start_incoming(stream);
}

static enum status on_asked(struct stream *stream)
{
    stream_set_timeout(stream, IDENTIFY_TIMEOUT_MS);
    return send_self(stream, stream_context(stream));
}

static void ignore_closed(struct stream *stream, enum status reason)
{
    (void)stream;
    (void)reason;
}

static const struct stream_events question_events = {
        .opened = on_question_opened,
        .reserve = on_incoming_reserve,
        .commit = on_incoming_commit,
        .closed = on_question_closed,
};

static const struct stream_events push_events = {
        .opened = start_incoming,
        .reserve = on_incoming_reserve,
        .commit = on_incoming_commit,
        .closed = on_push_closed,
};

/* The answering side, and the pushing side: they only send. */
static const struct stream_events sender_events = {.opened = on_asked, .closed = ignore_closed};

static void on_connected(void *context, struct connection *connection)
{
    static const char *const ids[] = {IDENTIFY_PROTOCOL_ID};
    struct stream_request request = {
            .protocols = ids, .protocol_count = 1, .events = &question_events, .context = context};
    if (connection_open_stream(connection, &request, NULL) != STATUS_OK) {
        metrics_add(METRIC_NET_IDENTIFY_REFUSED, 1);
    }
}

static enum status register_protocols(struct identify *identify)
{
    static const struct switch_observer observer = {.connected = on_connected};
    struct net_switch *net_switch = identify->options.net_switch;
    struct protocol protocol = {.id = IDENTIFY_PROTOCOL_ID,
            .events = &sender_events,
            .context = identify,
            .inbound_max = IDENTIFY_INBOUND_MAX};
    enum status status = switch_add_protocol(net_switch, &protocol);
    if (status != STATUS_OK) {
        return status;
    }
    protocol.id = IDENTIFY_PUSH_PROTOCOL_ID;
    protocol.events = &push_events;
    status = switch_add_protocol(net_switch, &protocol);
    return status == STATUS_OK ? switch_add_observer(net_switch, &observer, identify) : status;
}

enum status identify_create(struct identify **out, const struct identify_options *options)
{
    struct identify *identify = memory_allocate_zeroed(sizeof(*identify));
    if (identify == NULL) {
        return STATUS_NO_MEMORY;
    }
    identify->options = *options;
    if (options->agent == NULL) {
        identify->options.agent = default_agent;
    }
    if (options->protocol_version == NULL) {
        identify->options.protocol_version = default_protocol_version;
    }
    size_t size = options->extra_address_count * sizeof(struct multiaddr);
    identify->extra_addresses = memory_allocate(size + 1);
    enum status status = STATUS_NO_MEMORY;
    if (identify->extra_addresses != NULL) {
        if (size > 0) {
            memcpy(identify->extra_addresses, options->extra_addresses, size);
        }
        status = register_protocols(identify);
    }
    if (status != STATUS_OK) {
        identify_destroy(&identify);
        return status;
    }
    *out = identify;
    return STATUS_OK;
}

void identify_destroy(struct identify **identify)
{
    if (*identify != NULL) {
        memory_free((*identify)->extra_addresses);
        memory_free(*identify);
        *identify = NULL;
    }
}

static void push_to(void *context, struct connection *connection)
{
    static const char *const ids[] = {IDENTIFY_PUSH_PROTOCOL_ID};
    struct stream_request request = {
            .protocols = ids, .protocol_count = 1, .events = &sender_events, .context = context};
    if (connection_open_stream(connection, &request, NULL) != STATUS_OK) {
        metrics_add(METRIC_NET_IDENTIFY_REFUSED, 1);
    }
}

void identify_push(struct identify *identify)
{
    switch_visit_connections(identify->options.net_switch, push_to, identify);
}
