/* SPDX-License-Identifier: MIT */

/* The network's io loops, its switch, where it listens and what others are told to dial. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/network_private.h"
#include "node/node.h"

static enum status make_loops(struct network *network, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        enum status status = io_loop_create(&network->roles[i].loop, (unsigned)i);
        if (status != STATUS_OK) {
            return status;
        }
        network->loop_count = i + 1;
    }
    return STATUS_OK;
}

void network_list_loops(const struct network *network, struct io_loop *out[NETWORK_IO_THREADS_MAX])
{
    for (size_t i = 0; i < network->loop_count; i++) {
        out[i] = network->roles[i].loop;
    }
}

static enum status make_tls(struct network *network, const struct network_settings *settings)
{
    if (settings->certificate_file == NULL) {
        return STATUS_OK;
    }
    network->certificate_file = strdup(settings->certificate_file);
    network->certificate_key_file = strdup(settings->certificate_key_file);
    if (network->certificate_file == NULL || network->certificate_key_file == NULL) {
        return STATUS_NO_MEMORY;
    }
    return tls_context_create_server(
            &network->tls, network->certificate_file, network->certificate_key_file);
}

static enum status explain_tls(
        struct node_error *error, enum status status, const struct network_settings *settings)
{
    if (status != STATUS_BAD_KEY) {
        return node_explain(error, status, "--websocket-secure-support");
    }
    const char *const files[2][2] = {
            {"cert", settings->certificate_file}, {"key", settings->certificate_key_file}};
    for (size_t i = 0; i < 2; i++) {
        if (access(files[i][1], R_OK) != 0) {
            snprintf(error->text, sizeof(error->text), "--websocket-secure-%s-path=%.300s: %s",
                    files[i][0], files[i][1], strerror(errno));
            return status;
        }
    }
    snprintf(error->text, sizeof(error->text),
            "--websocket-secure-cert-path=%.200s, --websocket-secure-key-path=%.200s: are not a "
            "certificate and its key in PEM",
            settings->certificate_file, settings->certificate_key_file);
    return status;
}

enum status network_make_switch(
        struct network *network, const struct network_settings *settings, struct node_error *error)
{
    struct io_loop *loops[NETWORK_IO_THREADS_MAX];
    enum status status = make_loops(network, settings->io_threads);
    if (status == STATUS_OK) {
        status = explain_tls(error, make_tls(network, settings), settings);
    }
    if (status != STATUS_OK) {
        return node_explain(error, status, "io loop");
    }
    network_list_loops(network, loops);
    struct switch_options options = settings->limits;
    options.identity = network->identity;
    options.loops = loops;
    options.loop_count = network->loop_count;
    options.tls_server = network->tls;
    return node_explain(error, switch_create(&network->net_switch, &options), "switch");
}

/* The first address is TCP's, the second WebSocket's. */
static enum status explain_listen(struct node_error *error, enum status status,
        const struct multiaddr *address, bool is_websocket)
{
    char text[MULTIADDR_TEXT_SIZE];
    bool has_reason = errno != 0 && (status == STATUS_BUSY || status == STATUS_SYSTEM);
    snprintf(error->text, sizeof(error->text), "--%s: cannot listen on %.200s: %s",
            is_websocket ? "websocket-port" : "tcp-port", multiaddr_print(text, address),
            has_reason ? strerror(errno) : status_text(status));
    return status;
}

enum status network_listen(
        struct network *network, const struct network_settings *settings, struct node_error *error)
{
    for (size_t i = 0; i < settings->listen_count; i++) {
        errno = 0;
        enum status status = switch_listen(network->net_switch, &settings->listen[i]);
        if (status != STATUS_OK) {
            return explain_listen(error, status, &settings->listen[i], i > 0);
        }
    }
    return STATUS_OK;
}

/* The address listened on, under the name that others know its host by. */
static enum status announce_listener(struct network *network, const struct multiaddr *address,
        const struct network_settings *settings)
{
    struct multiaddr_endpoint endpoint;
    struct multiaddr *out = &network->addresses[network->address_count];
    *out = *address;
    if (settings->has_external_host) {
        enum status status = multiaddr_endpoint(&endpoint, address);
        if (status != STATUS_OK) {
            return status;
        }
        struct multiaddr_endpoint external = settings->external_host;
        external.port = endpoint.port;
        external.is_websocket = endpoint.is_websocket;
        external.is_secure = endpoint.is_secure;
        status = multiaddr_from_endpoint(out, &external);
        if (status != STATUS_OK) {
            return status;
        }
    }
    network->address_count++;
    return STATUS_OK;
}

enum status network_collect_addresses(
        struct network *network, const struct network_settings *settings)
{
    enum status status = STATUS_OK;
    const struct multiaddr *address;
    for (size_t i = 0; status == STATUS_OK && !settings->only_external &&
                       (address = switch_listen_address(network->net_switch, i)) != NULL;
            i++) {
        status = announce_listener(network, address, settings);
    }
    for (size_t i = 0; i < settings->external_count; i++) {
        network->addresses[network->address_count++] = settings->external[i];
    }
    return status;
}

bool network_address_at(const struct network *network, size_t i, struct multiaddr *out)
{
    if (i >= network->address_count) {
        return false;
    }
    *out = network->addresses[i];
    return multiaddr_set_peer(out, identity_peer_id(network->identity)) == STATUS_OK;
}
