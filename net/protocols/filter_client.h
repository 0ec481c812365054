/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The client's side of filter: requests to a service peer, and what it pushes, in its order, on as
 * many streams as it likes to open.
 *
 * Lifetime: create before the loops run, destroy after the switch.
 * Thread:   the io thread of the connection; create and destroy as above.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/protocols/filter_message.h"
#include "net/switch/switch.h"

enum {
    FILTER_CLIENT_STREAMS_MAX = 16,      /* inbound push streams of a connection */
    FILTER_CLIENT_OVERHEAD = 64 * 1024,  /* of a push beyond its message */
    FILTER_CLIENT_ANSWER_MAX = 64 * 1024 /* as in the reference */
};

/* What the reference's client says of what came of no service. */
enum {
    FILTER_CODE_BAD_RESPONSE = 300,
    FILTER_CODE_UNREACHABLE = 504
};

struct filter_client_options {
    struct net_switch *BORROWED net_switch;
    size_t message_bytes_max;
    /* Whether pushes of that peer are wanted: its push streams are reset otherwise. NULL: of all. */
    bool (*accepts)(void *context, struct connection *connection);
    /* A message of a well-formed push; valid in the call only. */
    void (*received)(
            void *context, struct connection *connection, const struct filter_push_view *push);
    void *context;
};

struct filter_client;

MUST_USE enum status filter_client_create(
        struct filter_client **out, const struct filter_client_options *options);
void filter_client_destroy(struct filter_client **client);

/*
 * Pushes that come on a push stream which this node opened, as the service: the reference writes into
 * whichever push stream it finds. For the reserve and commit of that stream; *inbound is NULL at first,
 * and is dropped with the stream. What comes from a peer that nothing is wanted of is thrown away.
 */
struct filter_inbound;

size_t filter_client_reserve(const struct filter_client *client, struct filter_inbound **inbound,
        struct stream *stream, size_t wanted, uint8_t **to);
/* False: it was malformed, and the stream is reset. */
bool filter_client_commit(struct filter_inbound *inbound, struct stream *stream, size_t n);
void filter_client_drop(struct filter_inbound **inbound);

/* code and description are the service's, or one of FILTER_CODE_ and why. Valid in the call. */
typedef void filter_client_answered(void *context, uint32_t code, struct span description);

/*
 * request_id is chosen here and everything is copied. answered comes once, also from inside the call.
 */
void filter_client_ask(struct connection *connection, const struct filter_request_fields *fields,
        uint64_t timeout_ms, filter_client_answered *answered, void *context);
