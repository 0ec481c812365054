/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A store query as REST has it: the parameters of GET /store/v3/messages.
 *
 * Ownership: what is parsed owns its texts and hashes until its fini.
 */

#include "admin/rest_body.h"
#include "archive/archive_query.h"
#include "base/attributes.h"
#include "base/status.h"

/* As they stand in the query, decoded once; NULL or "": not given. */
struct rest_query_parameters {
    const char *include_data;
    const char *pubsub_topic;
    const char *content_topics; /* separated by commas, as hashes */
    const char *start_time;     /* nanoseconds; 0 and less: none */
    const char *end_time;
    const char *hashes; /* hexadecimal, with or without 0x */
    const char *cursor;
    const char *ascending;
    const char *page_size; /* 0: 20; above 100, or negative: 100 */
};

struct rest_query {
    struct archive_query query;
    char *texts;
    struct span *content_topics;
    struct span *hashes;
    uint8_t *hash_bytes;
};

MUST_USE enum status rest_query_parse(struct rest_query *out,
        const struct rest_query_parameters *parameters, struct rest_error *error);
void rest_query_fini(struct rest_query *query);

/* A topic that was percent-encoded twice: it has no slash where all have one, but "%2F". */
bool rest_is_encoded_twice(const char *topic);
