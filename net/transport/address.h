/* SPDX-License-Identifier: MIT */
#pragma once

/* Between socket addresses and the endpoints of multiaddrs. */

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/identity/multiaddr.h"

enum {
    ADDRESS_TEXT_SIZE = 64
};

/* STATUS_BAD_ADDRESS for a name, which has to be resolved first. */
MUST_USE enum status address_from_endpoint(
        struct sockaddr_storage *out, const struct multiaddr_endpoint *endpoint);

/* Host and port of address (an IPv4-mapped one as IPv4), the rest of the endpoint as it was. */
void address_to_endpoint(
        struct multiaddr_endpoint *endpoint, const struct sockaddr_storage *address);

/*
 * What connections are counted by: the IPv4 address, or the /64 of an IPv6 address. Never 0 for an
 * address of these families, 0 for others.
 */
uint64_t address_group(const struct sockaddr_storage *address);

/* The group of address as an operator knows it: "10.0.0.1", "2001:db8:1:2::/64". */
const char *address_print_group(
        char out[ADDRESS_TEXT_SIZE], const struct sockaddr_storage *address);

socklen_t address_length(const struct sockaddr_storage *address);
