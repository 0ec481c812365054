/* SPDX-License-Identifier: MIT */
#include "net/transport/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

enum {
    MAPPED_PREFIX_BYTES = 12
};

static void fill_ip4(struct sockaddr_storage *out, const struct multiaddr_endpoint *endpoint)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(endpoint->port)};
    memcpy(&address.sin_addr, endpoint->ip, sizeof(address.sin_addr));
    memcpy(out, &address, sizeof(address));
}

static void fill_ip6(struct sockaddr_storage *out, const struct multiaddr_endpoint *endpoint)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(endpoint->port)};
    memcpy(&address.sin6_addr, endpoint->ip, sizeof(address.sin6_addr));
    if (endpoint->zone[0] != '\0') {
        address.sin6_scope_id = if_nametoindex(endpoint->zone);
    }
    memcpy(out, &address, sizeof(address));
}

enum status address_from_endpoint(
        struct sockaddr_storage *out, const struct multiaddr_endpoint *endpoint)
{
    memset(out, 0, sizeof(*out));
    switch (endpoint->host_kind) {
    case MULTIADDR_HOST_IP4:
        fill_ip4(out, endpoint);
        return STATUS_OK;
    case MULTIADDR_HOST_IP6:
        fill_ip6(out, endpoint);
        return STATUS_OK;
    case MULTIADDR_HOST_DNS:
    case MULTIADDR_HOST_DNS4:
    case MULTIADDR_HOST_DNS6:
        break;
    }
    return STATUS_BAD_ADDRESS;
}

/* The four bytes of an IPv4 address, or of an IPv6 address that only wraps one; else false. */
static bool read_ip4(uint8_t ip[4], uint16_t *port, const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof(in));
        memcpy(ip, &in.sin_addr, 4);
        *port = ntohs(in.sin_port);
        return true;
    }
    struct sockaddr_in6 in6;
    memcpy(&in6, address, sizeof(in6));
    if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
        return false;
    }
    memcpy(ip, in6.sin6_addr.s6_addr + MAPPED_PREFIX_BYTES, 4);
    *port = ntohs(in6.sin6_port);
    return true;
}

static void read_ip6(struct multiaddr_endpoint *endpoint, const struct sockaddr_storage *address)
{
    struct sockaddr_in6 in6;
    memcpy(&in6, address, sizeof(in6));
    endpoint->host_kind = MULTIADDR_HOST_IP6;
    memcpy(endpoint->ip, &in6.sin6_addr, sizeof(in6.sin6_addr));
    endpoint->port = ntohs(in6.sin6_port);
    endpoint->zone[0] = '\0';
    char name[IF_NAMESIZE];
    if (in6.sin6_scope_id != 0 && if_indextoname(in6.sin6_scope_id, name) != NULL) {
        snprintf(endpoint->zone, sizeof(endpoint->zone), "%.15s", name);
    }
    inet_ntop(AF_INET6, &in6.sin6_addr, endpoint->host, sizeof(endpoint->host));
}

void address_to_endpoint(
        struct multiaddr_endpoint *endpoint, const struct sockaddr_storage *address)
{
    uint8_t ip[4];
    uint16_t port;
    if (!read_ip4(ip, &port, address)) {
        read_ip6(endpoint, address);
        return;
    }
    endpoint->host_kind = MULTIADDR_HOST_IP4;
    endpoint->port = port;
    endpoint->zone[0] = '\0';
    memset(endpoint->ip, 0, sizeof(endpoint->ip));
    memcpy(endpoint->ip, ip, sizeof(ip));
    inet_ntop(AF_INET, ip, endpoint->host, sizeof(endpoint->host));
}

uint64_t address_group(const struct sockaddr_storage *address)
{
    uint8_t ip[4];
    uint16_t port;
    if (read_ip4(ip, &port, address)) {
        /* Above the 32 bits of the address a mark that no global IPv6 prefix begins with. */
        return UINT64_C(0xffff000000000000) | (uint64_t)ip[0] << 24 | (uint64_t)ip[1] << 16 |
               (uint64_t)ip[2] << 8 | ip[3];
    }
    if (address->ss_family != AF_INET6) {
        return 0;
    }
    struct sockaddr_in6 in6;
    memcpy(&in6, address, sizeof(in6));
    uint64_t group = 0;
    for (size_t i = 0; i < sizeof(group); i++) {
        group = group << 8 | in6.sin6_addr.s6_addr[i];
    }
    return group == 0 ? 1 : group; /* ::1 and its like */
}

const char *address_print_group(char out[ADDRESS_TEXT_SIZE], const struct sockaddr_storage *address)
{
    uint8_t ip[4];
    uint16_t port;
    if (read_ip4(ip, &port, address)) {
        inet_ntop(AF_INET, ip, out, ADDRESS_TEXT_SIZE);
        return out;
    }
    if (address->ss_family != AF_INET6) {
        snprintf(out, ADDRESS_TEXT_SIZE, "unknown");
        return out;
    }
    struct sockaddr_in6 in6;
    memcpy(&in6, address, sizeof(in6));
    memset(in6.sin6_addr.s6_addr + 8, 0, 8);
    char prefix[INET6_ADDRSTRLEN];
    inet_ntop(AF_INET6, &in6.sin6_addr, prefix, sizeof(prefix));
    snprintf(out, ADDRESS_TEXT_SIZE, "%s/64", prefix);
    return out;
}

socklen_t address_length(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}
