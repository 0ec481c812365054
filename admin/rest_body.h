/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What stands in the bodies of REST requests: lists of topics, messages, pushes, filter subscriptions.
 * Fields that are not known are passed over, or refused with is_strict.
 *
 * Ownership: what is parsed owns its texts and bytes until its fini, which takes a zeroed one too.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "codec/waku_message.h"

enum {
    REST_LIST_MAX = 10000 /* items of a list of topics */
};

/* What was wrong, for the client. */
struct rest_error {
    char text[256];
    bool is_base64; /* all was well but the base64 of a field, which the reference says otherwise */
};

struct rest_list {
    void *json; /* holds the texts */
    const char **items;
    size_t count;
};

/* An array of texts. STATUS_BAD_FIELD, STATUS_LIMIT_REACHED, STATUS_NO_MEMORY; so for all below. */
MUST_USE enum status rest_list_parse(
        struct rest_list *out, struct span body, struct rest_error *error);
void rest_list_fini(struct rest_list *list);

struct rest_message {
    void *json;
    uint8_t *bytes; /* what was base64 */
    struct waku_message_view fields;
};

/*
 * payload (base64) and contentTopic, neither of them empty, and optionally version, timestamp
 * (an integer of nanoseconds; absent or 0: now_ns), meta, proof (base64) and ephemeral.
 */
MUST_USE enum status rest_message_parse(struct rest_message *out, struct span body, int64_t now_ns,
        bool is_strict, struct rest_error *error);
void rest_message_fini(struct rest_message *message);

struct rest_push {
    struct rest_message message;
    const char *pubsub_topic; /* NULL: none, or empty */
};

/* {"pubsubTopic": "...", "message": {...}} */
MUST_USE enum status rest_push_parse(struct rest_push *out, struct span body, int64_t now_ns,
        bool is_strict, struct rest_error *error);
void rest_push_fini(struct rest_push *push);

struct rest_filter {
    struct rest_list content_topics; /* its json holds the texts below too */
    const char *request_id;
    const char *pubsub_topic; /* NULL: none, or empty */
};

/* requestId and, unless is_all, contentFilters with at least one topic; optionally pubsubTopic. */
MUST_USE enum status rest_filter_parse(struct rest_filter *out, struct span body, bool is_all,
        bool is_strict, struct rest_error *error);
void rest_filter_fini(struct rest_filter *filter);
