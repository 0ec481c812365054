/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One connection to a node whose services a command uses, one request after the other, waiting for
 * each answer.
 *
 * Thread: the one that opened it.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/options.h"
#include "base/span.h"
#include "base/status.h"
#include "tools/sluice/key_options.h"

struct service_client;

/* To be put in a table of option_spec. */
#define SERVICE_CLIENT_OPTIONS                                                                     \
    {"timeout", OPTION_SECONDS, "10s", 100, 600000, "Connection",                                  \
            "time to connect, and for each answer"},                                               \
            KEY_OPTIONS,                                                                           \
    {                                                                                              \
        "log-level", OPTION_TEXT, "WARN", 0, 0, "Logging", "least level that is written"           \
    }

/* Connects to the multiaddr; complains on standard error in the name of command. */
MUST_USE enum status service_client_open(struct service_client **out, const struct options *options,
        const char *command, const char *address);

/*
 * The same in two steps, for who registers protocols between them, or connects again later; nothing is
 * said on standard error by connect.
 */
MUST_USE enum status service_client_create(
        struct service_client **out, const struct options *options, const char *command);
MUST_USE enum status service_client_connect(struct service_client *client, const char *address);

struct net_switch *BORROWED service_client_switch(const struct service_client *client);

/* 0: there is none, or it is gone. */
uint64_t service_client_connection(const struct service_client *client);

void service_client_close(struct service_client **client);

struct service_answer {
    enum status status;
    const char *BORROWED protocol; /* the one of those asked for that was agreed */
    uint8_t *bytes;                /* from base/memory.h, the caller's */
    size_t length;
};

/* protocols in order of preference, they outlive the client. */
struct service_answer service_client_ask(struct service_client *client,
        const char *const *protocols, size_t protocol_count, struct span request,
        size_t answer_max);
