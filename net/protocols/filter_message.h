/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The messages of filter-subscribe and filter-push (12/WAKU2-FILTER), read where they lie.
 *
 * Lifetime: what is read points into the bytes that it was read from.
 * Thread:   any; no state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

#define FILTER_SUBSCRIBE_PROTOCOL_ID "/vac/waku/filter-subscribe/2.0.0-beta1"
#define FILTER_PUSH_PROTOCOL_ID      "/vac/waku/filter-push/2.0.0-beta1"

enum {
    FILTER_REQUEST_ID_MAX = 1024,
    FILTER_DESCRIPTION_MAX = 256,
    FILTER_ANSWER_MAX = FILTER_REQUEST_ID_MAX + FILTER_DESCRIPTION_MAX + 64
};

/* As on the wire. */
enum filter_verb {
    FILTER_SUBSCRIBER_PING = 0,
    FILTER_SUBSCRIBE = 1,
    FILTER_UNSUBSCRIBE = 2,
    FILTER_UNSUBSCRIBE_ALL = 3
};

/* A request as it came: verb may be a number that is none. */
struct filter_request_view {
    struct span request_id;   /* empty: there is none */
    struct span pubsub_topic; /* likewise */
    uint64_t verb;
    size_t content_topic_count;
    struct span bytes; /* of the request, for filter_request_next_topic */
};

/* STATUS_TRUNCATED, STATUS_BAD_VARINT, STATUS_BAD_FIELD: no protobuf message. */
MUST_USE enum status filter_request_read(struct filter_request_view *out, struct span bytes);

/* Takes the next content topic off the front of *rest, at first the request's bytes. */
MUST_USE bool filter_request_next_topic(struct span *rest, struct span *topic);

/* A request as it is made. */
struct filter_request_fields {
    struct span request_id;
    enum filter_verb verb;
    struct span pubsub_topic; /* empty: left out */
    const struct span *content_topics;
    size_t content_topic_count;
};

size_t filter_request_size(const struct filter_request_fields *fields);

/* to has room for filter_request_size. */
void filter_request_write(uint8_t *to, const struct filter_request_fields *fields);

struct filter_answer {
    struct span request_id;
    struct span description; /* at most FILTER_DESCRIPTION_MAX bytes when written */
    uint32_t code;
};

/* to has room for FILTER_ANSWER_MAX; an id above FILTER_REQUEST_ID_MAX is left out. */
size_t filter_answer_write(uint8_t *to, const struct filter_answer *answer);

/* STATUS_BAD_FIELD: without a status code. */
MUST_USE enum status filter_answer_read(struct filter_answer *out, struct span bytes);

/*
 * What stands on the stream before the serialised message: the length of all, the pubsub topic, and
 * the message's own tag and length.
 */
size_t filter_push_head_size(struct span pubsub_topic, size_t message_length);
void filter_push_head_write(uint8_t *to, struct span pubsub_topic, size_t message_length);

struct filter_push_view {
    struct span pubsub_topic;
    struct span message; /* the serialised WakuMessage */
};

/* Without the length before it. STATUS_BAD_FIELD: the topic or the message is missing. */
MUST_USE enum status filter_push_read(struct filter_push_view *out, struct span bytes);
