/* SPDX-License-Identifier: MIT */

/* Store queries of REST clients, as the parameters of a request's target. */

#include "admin/rest_query.h"

#include <stdlib.h>
#include <string.h>

#include "admin/http_target.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_query(const struct http_target *target)
{
    struct rest_query_parameters parameters = {
            .include_data = http_target_find(target, "includeData"),
            .pubsub_topic = http_target_find(target, "pubsubTopic"),
            .content_topics = http_target_find(target, "contentTopics"),
            .start_time = http_target_find(target, "startTime"),
            .end_time = http_target_find(target, "endTime"),
            .hashes = http_target_find(target, "hashes"),
            .cursor = http_target_find(target, "cursor"),
            .ascending = http_target_find(target, "ascending"),
            .page_size = http_target_find(target, "pageSize")};
    struct rest_query query;
    struct rest_error error = {.text = ""};
    if (rest_query_parse(&query, &parameters, &error) != STATUS_OK) {
        REQUIRE(error.text[0] != '\0');
        return;
    }
    REQUIRE(query.query.limit >= 1 && query.query.limit <= ARCHIVE_PAGE_MAX);
    REQUIRE(!query.query.has_cursor || query.query.cursor.length == MESSAGE_HASH_BYTES);
    REQUIRE(!query.query.has_time_start || query.query.time_start_ns > 0);
    for (size_t i = 0; i < query.query.hash_count; i++) {
        REQUIRE(query.query.hashes[i].length == MESSAGE_HASH_BYTES);
    }
    rest_query_fini(&query);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_target target;
    char *raw = malloc(size + 1);
    REQUIRE(raw != NULL);
    memcpy(raw, data, size);
    raw[size] = '\0';
    if (http_target_parse(&target, raw) == STATUS_OK) {
        check_query(&target);
        http_target_fini(&target);
    }
    free(raw);
    return 0;
}
