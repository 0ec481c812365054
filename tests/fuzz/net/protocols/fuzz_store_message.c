/* SPDX-License-Identifier: MIT */

/* Requests and answers of store; what protobuf-c takes is read to the same. */

#include <stdlib.h>

#include "base/memory.h"
#include "codec/store.pb-c.h"
#include "net/protocols/store_message.h"
#include "tests/support/protobuf_oracle.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_lists(const struct archive_query *query, const Wire__StoreQueryRequest *oracle)
{
    REQUIRE(query->content_topic_count == oracle->n_content_topics);
    REQUIRE(query->hash_count == oracle->n_message_hashes);
    for (size_t i = 0; i < query->hash_count; i++) {
        struct span hash = span_of(oracle->message_hashes[i].data, oracle->message_hashes[i].len);
        REQUIRE(span_equal(query->hashes[i], hash));
    }
}

static void check_request(
        const struct store_request *request, const Wire__StoreQueryRequest *oracle)
{
    const struct archive_query *query = &request->query;
    struct span cursor = span_of(oracle->pagination_cursor.data, oracle->pagination_cursor.len);
    check_lists(query, oracle);
    REQUIRE(query->include_data == (oracle->has_include_data && oracle->include_data));
    REQUIRE(query->is_backward == !(oracle->has_pagination_forward && oracle->pagination_forward));
    REQUIRE(query->has_cursor == (oracle->has_pagination_cursor != 0));
    REQUIRE(!query->has_cursor || span_equal(query->cursor, cursor));
    REQUIRE(query->has_time_start == (oracle->has_time_start != 0));
    REQUIRE(!query->has_time_start || query->time_start_ns == oracle->time_start);
    REQUIRE(query->has_time_end == (oracle->has_time_end != 0));
    REQUIRE(!query->has_time_end || query->time_end_ns == oracle->time_end);
    REQUIRE(query->limit == (oracle->has_pagination_limit ? oracle->pagination_limit : 0));
}

/* What was read is written, and read to the same. */
static void check_again(const struct store_request *request)
{
    struct store_request again;
    uint8_t *bytes;
    size_t length;
    REQUIRE(store_request_write(&bytes, &length, request) == STATUS_OK);
    REQUIRE(store_request_read(&again, span_of(bytes, length)) == STATUS_OK);
    REQUIRE(span_equal(again.request_id, request->request_id));
    REQUIRE(span_equal(again.query.pubsub_topic, request->query.pubsub_topic));
    REQUIRE(again.query.content_topic_count == request->query.content_topic_count);
    REQUIRE(again.query.hash_count == request->query.hash_count);
    REQUIRE(again.query.is_backward == request->query.is_backward);
    REQUIRE(again.query.limit == request->query.limit);
    store_request_fini(&again);
    memory_free(bytes);
}

static void check_against_oracle(
        const struct store_request *request, enum status status, struct span message)
{
    uint8_t *clean;
    size_t length;
    size_t dropped;
    enum oracle_verdict verdict = oracle_clean(
            &wire__store_query_request__descriptor, message, &clean, &length, &dropped);
    if (verdict != ORACLE_GOOD) {
        REQUIRE(status != STATUS_OK);
        return;
    }
    if (status == STATUS_OK) {
        Wire__StoreQueryRequest *oracle = wire__store_query_request__unpack(NULL, length, clean);
        REQUIRE(oracle != NULL);
        check_request(request, oracle);
        wire__store_query_request__free_unpacked(oracle, NULL);
    } else {
        REQUIRE(status == STATUS_LIMIT_REACHED);
    }
    free(clean);
}

static void read_answer(struct span message)
{
    struct store_answer_view view;
    struct store_entry entry;
    enum status status;
    size_t bytes = 0;
    if (store_answer_read(&view, message) != STATUS_OK) {
        return;
    }
    while (store_answer_next(&view, &entry, &status)) {
        REQUIRE(entry.hash.length == MESSAGE_HASH_BYTES);
        bytes += entry.message.length + entry.pubsub_topic.length;
    }
    REQUIRE(bytes <= message.length);
}

/* What names a declined request: the same as in the whole one, where it is among the first bytes. */
static void read_beginning(
        const struct store_request *request, enum status status, struct span message)
{
    struct span whole = store_request_id_of(message);
    struct span half = store_request_id_of(span_of(message.bytes, message.length / 2));
    REQUIRE(status != STATUS_OK || span_equal(whole, request->request_id));
    REQUIRE(half.length <= message.length / 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct store_request request;
    struct span message = span_of(data, size);
    enum status status = store_request_read(&request, message);
    check_against_oracle(&request, status, message);
    if (status == STATUS_OK) {
        check_again(&request);
    }
    read_beginning(&request, status, message);
    store_request_fini(&request);
    read_answer(message);
    return 0;
}
