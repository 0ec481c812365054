/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Sends back what comes: the answering side of ping, and a protocol for tests. Bytes are not copied;
 * the peer's credit is withheld while its answers wait to be sent.
 */

#include "base/attributes.h"
#include "base/status.h"
#include "net/switch/switch.h"

#define ECHO_PROTOCOL_ID "/sluice/echo/1.0.0"

enum {
    ECHO_INBOUND_MAX = 256, /* streams of a connection */
    PING_INBOUND_MAX = 32,
    ECHO_QUEUED_MAX = 1 << 20 /* bytes of a stream that wait to be sent */
};

MUST_USE enum status echo_register(struct net_switch *net_switch);

/* The same under ping's id, in small pieces. */
MUST_USE enum status ping_register(struct net_switch *net_switch);
