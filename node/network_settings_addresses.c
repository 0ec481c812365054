/* SPDX-License-Identifier: MIT */

/* Where a network listens, what it announces and whom it dials, read from options. */

#include <stdio.h>
#include <string.h>

#include "net/identity/enr.h"
#include "node/network_settings_private.h"
#include "node/node.h"

enum {
    PORT_MAX = 65535
};

static bool parse_host(struct multiaddr_endpoint *out, const char *kind, const char *host)
{
    char text[MULTIADDR_TEXT_SIZE];
    struct multiaddr address;
    int length = snprintf(text, sizeof(text), "/%s/%s/tcp/0", kind, host);
    return length > 0 && (size_t)length < sizeof(text) &&
           multiaddr_parse(&address, span_of_text(text)) == STATUS_OK &&
           multiaddr_endpoint(out, &address) == STATUS_OK;
}

static bool parse_ip(struct multiaddr_endpoint *out, const char *host)
{
    return parse_host(out, strchr(host, ':') != NULL ? "ip6" : "ip4", host);
}

static enum status read_port(
        uint16_t *out, const struct options *options, const char *name, struct node_error *error)
{
    uint64_t port = options_number(options, name);
    if (port != 0) {
        port += options_number(options, "ports-shift");
    }
    if (port > PORT_MAX) {
        return settings_refuse(error, "ports-shift", name, "leads to a port above 65535");
    }
    *out = (uint16_t)port;
    return STATUS_OK;
}

static enum status add_listener(struct network_settings *out, struct multiaddr_endpoint *endpoint,
        const char *port_option, const struct options *options, struct node_error *error)
{
    enum status status = read_port(&endpoint->port, options, port_option, error);
    if (status == STATUS_OK) {
        status = multiaddr_from_endpoint(&out->listen[out->listen_count], endpoint);
    }
    out->listen_count += status == STATUS_OK;
    return status;
}

static enum status read_certificate(
        struct network_settings *out, const struct options *options, struct node_error *error)
{
    static const char *const names[] = {"websocket-secure-cert-path", "websocket-secure-key-path"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (options_text(options, names[i])[0] == '\0') {
            return settings_refuse(
                    error, names[i], "", "is needed with --websocket-secure-support");
        }
    }
    out->certificate_file = options_text(options, names[0]);
    out->certificate_key_file = options_text(options, names[1]);
    return STATUS_OK;
}

static enum status read_listeners(
        struct network_settings *out, const struct options *options, struct node_error *error)
{
    const char *host = options_text(options, "listen-address");
    struct multiaddr_endpoint endpoint;
    if (!parse_ip(&endpoint, host)) {
        return settings_refuse(error, "listen-address", host, "is no IP address");
    }
    enum status status = add_listener(out, &endpoint, "tcp-port", options, error);
    bool is_secure = options_flag(options, "websocket-secure-support");
    if (status != STATUS_OK || (!is_secure && !options_flag(options, "websocket-support"))) {
        return status;
    }
    endpoint.is_websocket = true;
    endpoint.is_secure = is_secure;
    if (is_secure) {
        status = read_certificate(out, options, error);
    }
    return status != STATUS_OK ? status
                               : add_listener(out, &endpoint, "websocket-port", options, error);
}

static bool is_nat_without_mapping(const char *nat)
{
    return strcmp(nat, "any") == 0 || strcmp(nat, "none") == 0 || strcmp(nat, "upnp") == 0 ||
           strcmp(nat, "pmp") == 0;
}

static enum status read_external_host(
        struct network_settings *out, const struct options *options, struct node_error *error)
{
    static const char prefix[] = "extip:";
    const char *nat = options_text(options, "nat");
    const char *domain = options_text(options, "dns4-domain-name");
    bool has_ip = strncmp(nat, prefix, sizeof(prefix) - 1) == 0;
    if (!has_ip && !is_nat_without_mapping(nat)) {
        return settings_refuse(error, "nat", nat, "is none of any, none, upnp, pmp, extip:IP");
    }
    if (has_ip && !parse_ip(&out->external_host, nat + sizeof(prefix) - 1)) {
        return settings_refuse(error, "nat", nat, "holds no IP address");
    }
    out->has_external_host = has_ip;
    if (domain[0] == '\0') {
        return STATUS_OK;
    }
    out->has_external_host = true;
    return parse_host(&out->external_host, "dns4", domain)
                   ? STATUS_OK
                   : settings_refuse(error, "dns4-domain-name", domain, "is no domain name");
}

struct address_list {
    const char *name; /* of the option */
    struct multiaddr *addresses;
    size_t count;
    size_t max;
};

static enum status read_addresses(
        struct address_list *list, const struct options *options, struct node_error *error)
{
    size_t given = options_list_count(options, list->name);
    if (given > list->max) {
        snprintf(error->text, sizeof(error->text), "--%s: at most %zu", list->name, list->max);
        return STATUS_LIMIT_REACHED;
    }
    for (size_t i = 0; i < given; i++) {
        const char *text = options_list_item(options, list->name, i);
        enum status status = multiaddr_parse(&list->addresses[i], span_of_text(text));
        if (status != STATUS_OK) {
            return settings_refuse_status(error, list->name, text, status);
        }
    }
    list->count = given;
    return STATUS_OK;
}

static enum status read_external(
        struct network_settings *out, const struct options *options, struct node_error *error)
{
    struct address_list list = {
            .name = "ext-multiaddr", .addresses = out->external, .max = NETWORK_EXTERNAL_MAX};
    enum status status = read_addresses(&list, options, error);
    out->external_count = list.count;
    return status;
}

static enum status read_static_nodes(
        struct network_settings *out, const struct options *options, struct node_error *error)
{
    struct address_list list = {
            .name = "staticnode", .addresses = out->static_nodes, .max = NETWORK_STATIC_NODES_MAX};
    enum status status = read_addresses(&list, options, error);
    for (size_t i = 0; i < list.count; i++) {
        struct multiaddr_endpoint endpoint;
        if (multiaddr_endpoint(&endpoint, &list.addresses[i]) != STATUS_OK || !endpoint.has_peer) {
            return settings_refuse(error, "staticnode", options_list_item(options, "staticnode", i),
                    "is no TCP or WebSocket address with /p2p");
        }
    }
    out->static_node_count = list.count;
    return status;
}

/* The node stays connected to the store that it asks. */
static enum status read_stores(
        struct network_settings *out, const struct options *options, struct node_error *error)
{
    enum status status = store_settings_read(&out->stores, options, error);
    if (status == STATUS_OK && out->stores.has_node) {
        if (out->static_node_count == NETWORK_STATIC_NODES_MAX) {
            return settings_refuse(
                    error, "storenode", "", "there are too many static nodes besides");
        }
        out->static_nodes[out->static_node_count++] = out->stores.node;
    }
    return status;
}

/* Discovery v5 that is switched off has no bootstrap nodes either. */
static bool has_bootstrap(const struct options *options)
{
    static const char name[] = "discv5-discovery";
    return options_find_spec(options, name) == NULL || !options_is_set(options, name) ||
           options_flag(options, name);
}

static enum status read_bootstrap(
        struct network_settings *out, const struct options *options, struct node_error *error)
{
    static const char name[] = "discv5-bootstrap-node";
    size_t count = has_bootstrap(options) ? options_list_count(options, name) : 0;
    for (size_t i = 0; i < count; i++) {
        const char *text = options_list_item(options, name, i);
        if (out->static_node_count == NETWORK_STATIC_NODES_MAX) {
            return settings_refuse_status(error, name, text, STATUS_LIMIT_REACHED);
        }
        enum status status =
                enr_address(&out->static_nodes[out->static_node_count], span_of_text(text));
        if (status != STATUS_OK) {
            return settings_refuse_status(error, name, text, status);
        }
        out->static_node_count++;
    }
    return STATUS_OK;
}

enum status network_settings_read_addresses(
        struct network_settings *out, const struct options *options, struct node_error *error)
{
    enum status status = read_listeners(out, options, error);
    if (status == STATUS_OK) {
        status = read_external_host(out, options, error);
    }
    if (status == STATUS_OK) {
        status = read_external(out, options, error);
    }
    if (status == STATUS_OK) {
        status = read_static_nodes(out, options, error);
    }
    if (status == STATUS_OK) {
        status = read_stores(out, options, error);
    }
    if (status == STATUS_OK) {
        status = read_bootstrap(out, options, error);
    }
    return status;
}
