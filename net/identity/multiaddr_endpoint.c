/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <string.h>

#include "net/identity/multiaddr.h"
#include "net/identity/multiaddr_component.h"

/* A walk over the components of an address, one ahead. */
struct reader {
    struct span rest;
    struct component current;
    bool has_current;
};

static void advance(struct reader *reader)
{
    reader->has_current =
            reader->rest.length > 0 && component_read(&reader->current, &reader->rest) == STATUS_OK;
}

static bool at(const struct reader *reader, enum component_code code)
{
    return reader->has_current && reader->current.code == code;
}

/* Takes the current component if it has that code. */
static bool take(struct span *value, struct reader *reader, enum component_code code)
{
    if (!at(reader, code)) {
        return false;
    }
    *value = reader->current.value;
    advance(reader);
    return true;
}

static void copy_text(char *out, struct span value)
{
    memcpy(out, value.bytes, value.length);
    out[value.length] = '\0';
}

static void set_ip(struct multiaddr_endpoint *out, enum multiaddr_host kind, struct span value)
{
    out->host_kind = kind;
    memcpy(out->ip, value.bytes, value.length);
    int family = kind == MULTIADDR_HOST_IP4 ? AF_INET : AF_INET6;
    inet_ntop(family, out->ip, out->host, sizeof(out->host));
}

static void set_name(struct multiaddr_endpoint *out, enum multiaddr_host kind, struct span value)
{
    out->host_kind = kind;
    copy_text(out->host, value);
    copy_text(out->sni, value);
}

static bool read_host(struct multiaddr_endpoint *out, struct reader *reader)
{
    struct span value;
    if (take(&value, reader, COMPONENT_IP6ZONE)) {
        copy_text(out->zone, value);
        if (!at(reader, COMPONENT_IP6)) {
            return false;
        }
    }
    if (take(&value, reader, COMPONENT_IP4)) {
        set_ip(out, MULTIADDR_HOST_IP4, value);
    } else if (take(&value, reader, COMPONENT_IP6)) {
        set_ip(out, MULTIADDR_HOST_IP6, value);
    } else if (take(&value, reader, COMPONENT_DNS)) {
        set_name(out, MULTIADDR_HOST_DNS, value);
    } else if (take(&value, reader, COMPONENT_DNS4)) {
        set_name(out, MULTIADDR_HOST_DNS4, value);
    } else if (take(&value, reader, COMPONENT_DNS6)) {
        set_name(out, MULTIADDR_HOST_DNS6, value);
    } else {
        return false;
    }
    return true;
}

/* Nothing, /ws, /wss, or /tls with an optional /sni before /ws. */
static bool read_websocket(struct multiaddr_endpoint *out, struct reader *reader)
{
    struct span value;
    if (take(&value, reader, COMPONENT_TLS)) {
        out->is_secure = true;
        if (take(&value, reader, COMPONENT_SNI)) {
            copy_text(out->sni, value);
        }
        out->is_websocket = take(&value, reader, COMPONENT_WS);
        return out->is_websocket;
    }
    out->is_secure = at(reader, COMPONENT_WSS);
    out->is_websocket = take(&value, reader, COMPONENT_WSS) || take(&value, reader, COMPONENT_WS);
    return true;
}

enum status multiaddr_endpoint(struct multiaddr_endpoint *out, const struct multiaddr *address)
{
    struct reader reader = {.rest = multiaddr_span(address)};
    struct span value;
    memset(out, 0, sizeof(*out));
    advance(&reader);
    if (!read_host(out, &reader) || !take(&value, &reader, COMPONENT_TCP)) {
        return STATUS_UNSUPPORTED;
    }
    out->port = (uint16_t)(value.bytes[0] << 8 | value.bytes[1]);
    if (!read_websocket(out, &reader)) {
        return STATUS_UNSUPPORTED;
    }
    out->has_peer = take(&value, &reader, COMPONENT_P2P) &&
                    peer_id_from_bytes(&out->peer, value) == STATUS_OK;
    return reader.has_current ? STATUS_UNSUPPORTED : STATUS_OK;
}

/* Components in a row. */
struct writer {
    size_t length;
    uint8_t bytes[7 * COMPONENT_MAX_BYTES];
};

static void add(struct writer *writer, enum component_code code, struct span value)
{
    struct component component = {.code = code, .value = value};
    if (value.length <= COMPONENT_VALUE_MAX_BYTES) {
        writer->length += component_write(writer->bytes + writer->length, &component);
    }
}

static void add_host(struct writer *writer, const struct multiaddr_endpoint *endpoint)
{
    struct span name = span_of_text(endpoint->host);
    switch (endpoint->host_kind) {
    case MULTIADDR_HOST_IP4:
        add(writer, COMPONENT_IP4, span_of(endpoint->ip, sizeof(struct in_addr)));
        break;
    case MULTIADDR_HOST_IP6:
        if (endpoint->zone[0] != '\0') {
            add(writer, COMPONENT_IP6ZONE, span_of_text(endpoint->zone));
        }
        add(writer, COMPONENT_IP6, span_of(endpoint->ip, sizeof(struct in6_addr)));
        break;
    case MULTIADDR_HOST_DNS:
        add(writer, COMPONENT_DNS, name);
        break;
    case MULTIADDR_HOST_DNS4:
        add(writer, COMPONENT_DNS4, name);
        break;
    case MULTIADDR_HOST_DNS6:
        add(writer, COMPONENT_DNS6, name);
        break;
    }
}

static void add_websocket(struct writer *writer, const struct multiaddr_endpoint *endpoint)
{
    const struct span nothing = {0};
    bool is_ip =
            endpoint->host_kind == MULTIADDR_HOST_IP4 || endpoint->host_kind == MULTIADDR_HOST_IP6;
    const char *implied = is_ip ? "" : endpoint->host;
    if (endpoint->is_secure && endpoint->sni[0] != '\0' && strcmp(endpoint->sni, implied) != 0) {
        add(writer, COMPONENT_TLS, nothing);
        add(writer, COMPONENT_SNI, span_of_text(endpoint->sni));
        add(writer, COMPONENT_WS, nothing);
    } else if (endpoint->is_websocket) {
        add(writer, endpoint->is_secure ? COMPONENT_WSS : COMPONENT_WS, nothing);
    }
}

enum status multiaddr_from_endpoint(
        struct multiaddr *out, const struct multiaddr_endpoint *endpoint)
{
    struct writer writer = {0};
    const uint8_t port[] = {(uint8_t)(endpoint->port >> 8), (uint8_t)endpoint->port};
    if (endpoint->is_secure && !endpoint->is_websocket) {
        return STATUS_UNSUPPORTED;
    }
    add_host(&writer, endpoint);
    add(&writer, COMPONENT_TCP, span_of(port, sizeof(port)));
    add_websocket(&writer, endpoint);
    if (endpoint->has_peer) {
        add(&writer, COMPONENT_P2P, peer_id_span(&endpoint->peer));
    }
    return multiaddr_from_bytes(out, span_of(writer.bytes, writer.length));
}
