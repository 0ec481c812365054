/* SPDX-License-Identifier: MIT */
#include "node/service_peers.h"

#include <string.h>

/* In the order of the page; a protocol that is spoken with an option only stands with that option. */
static const struct {
    const char *node;
    const char *protocol;
    const char *switched_by; /* NULL: always */
} services[] = {{"storenode", "/vac/waku/store-query/3.0.0", NULL},
        {"storenode", "/vac/waku/reconciliation/1.0.0", "store-sync"},
        {"storenode", "/vac/waku/transfer/1.0.0", "store-sync"},
        {"filternode", "/vac/waku/filter-subscribe/2.0.0-beta1", NULL},
        {"lightpushnode", "/vac/waku/lightpush/3.0.0", NULL},
        {"lightpushnode", "/vac/waku/lightpush/2.0.0-beta1", NULL}};

_Static_assert(sizeof(services) / sizeof(services[0]) <= SERVICE_PEERS_MAX, "room for all");

static bool read_address(char out[MULTIADDR_TEXT_SIZE], const char *text)
{
    struct multiaddr address;
    if (text[0] == '\0' || multiaddr_parse(&address, span_of_text(text)) != STATUS_OK) {
        return false;
    }
    multiaddr_print(out, &address);
    char *peer = strstr(out, "/p2p/");
    if (peer != NULL) {
        *peer = '\0';
    }
    return true;
}

void service_peers_read(struct service_peers *out, const struct options *options)
{
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++) {
        struct service_peer *peer = &out->peers[out->count];
        bool is_spoken =
                services[i].switched_by == NULL || options_flag(options, services[i].switched_by);
        if (is_spoken && read_address(peer->address, options_text(options, services[i].node))) {
            peer->protocol = services[i].protocol;
            out->count++;
        }
    }
}
