/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "archive/archive_jobs.h"
#include "codec/store.pb-c.h"
#include "net/protocols/exchange.h"
#include "net/protocols/store.h"
#include "net/protocols/store_message.h"
#include "tests/support/archive_fixture.h"
#include "tests/unit/net/switch/test_node.h"

/* Requests are written and answers read by protobuf-c. The test is the query thread. */

static const char any_port[] = "/ip4/127.0.0.1/tcp/0";
static const char *const ids[] = {STORE_PROTOCOL_ID};

enum {
    ANSWER_MAX = 64 * 1024 * 1024,
    STORED = 250
};

static const int64_t first_ns = 1700000000000000000;

struct asking {
    size_t done;
    enum status status;
    uint8_t *bytes;
    size_t length;
};

struct service {
    struct fixture_archive fixture;
    struct test_node client;
    struct test_node server;
    struct test_node *nodes[2];
    struct archive_jobs *jobs;
    struct store *store;
    bool is_stalled; /* the query thread does nothing */
    const struct asking *awaited;
};

static void run_queries(struct service *service)
{
    struct archive_job *job;
    while (!service->is_stalled && (job = archive_jobs_try_take(service->jobs, 0)) != NULL) {
        job->run(job, service->fixture.reader);
        archive_jobs_done(service->jobs, 0);
    }
}

static const struct store_options good_limits = {.connection_queries_max = 4,
        .queries_max = 6,
        .answer_bytes_max = 4 * 1024 * 1024,
        .answers_bytes_max = 64 * 1024 * 1024,
        .timeout_ms = 60 * 1000};

static void init(struct service *service, const char *kind, const struct store_options *limits)
{
    memset(service, 0, sizeof(*service));
    struct store_options options = limits != NULL ? *limits : good_limits;
    fixture_open(&service->fixture, kind, NULL);
    assert_int_equal(archive_jobs_create(&service->jobs, 1), STATUS_OK);
    service->nodes[0] = &service->client;
    service->nodes[1] = &service->server;
    test_node_init(&service->client, NULL, NULL);
    test_node_init(&service->server, NULL, any_port);
    options.net_switch = service->server.net_switch;
    options.jobs = service->jobs;
    assert_int_equal(store_create(&service->store, &options), STATUS_OK);
    test_nodes_connect(&service->client, &service->server);
}

static bool is_idle(void *context)
{
    struct service *service = context;
    run_queries(service);
    return store_pending(service->store) == 0;
}

static void fini(struct service *service)
{
    service->is_stalled = false;
    test_nodes_run(service->nodes, 2, is_idle, service);
    test_nodes_fini(service->nodes, 2);
    store_destroy(&service->store);
    archive_jobs_destroy(&service->jobs);
    fixture_close(&service->fixture);
}

/* The first half at one time, then one a nanosecond. */
static void fill(struct service *service, size_t count, size_t payload_bytes)
{
    for (size_t i = 0; i < count; i++) {
        struct fixture_message message = {.number = (unsigned)i,
                .timestamp_ns = first_ns + (i < count / 2 ? 0 : (int64_t)i),
                .content = (unsigned)(i % 2),
                .payload_bytes = payload_bytes};
        fixture_put(service->fixture.archive, &message, NULL);
    }
}

static void on_done(void *context, enum status status, const char *protocol, struct span answer)
{
    struct asking *asking = context;
    (void)protocol;
    asking->done++;
    asking->status = status;
    asking->length = answer.length;
    asking->bytes = malloc(answer.length + 1);
    assert_non_null(asking->bytes);
    if (answer.length > 0) {
        memcpy(asking->bytes, answer.bytes, answer.length);
    }
}

static void ask_bytes(struct service *service, struct asking *asking, struct span request)
{
    struct exchange_call call = {.protocols = ids,
            .protocol_count = 1,
            .request = request,
            .answer_max = ANSWER_MAX,
            .done = on_done,
            .context = asking};
    *asking = (struct asking){0};
    assert_int_equal(exchange_call(service->client.last_connection, &call), STATUS_OK);
    io_loop_wake(service->client.loop);
}

static bool is_answered(void *context)
{
    struct service *service = context;
    run_queries(service);
    return service->awaited->done > 0;
}

static void ask(
        struct service *service, struct asking *asking, const Wire__StoreQueryRequest *request)
{
    uint8_t bytes[4096];
    assert_true(wire__store_query_request__get_packed_size(request) <= sizeof(bytes));
    size_t length = wire__store_query_request__pack(request, bytes);
    ask_bytes(service, asking, span_of(bytes, length));
}

static Wire__StoreQueryResponse *wait_answer(struct service *service, struct asking *asking)
{
    service->awaited = asking;
    test_nodes_run(service->nodes, 2, is_answered, service);
    assert_int_equal(asking->status, STATUS_OK);
    Wire__StoreQueryResponse *response =
            wire__store_query_response__unpack(NULL, asking->length, asking->bytes);
    assert_non_null(response);
    free(asking->bytes);
    return response;
}

static uint32_t code_of(struct service *service, const Wire__StoreQueryRequest *request)
{
    struct asking asking;
    ask(service, &asking, request);
    Wire__StoreQueryResponse *response = wait_answer(service, &asking);
    uint32_t code = response->status_code;
    if (request->request_id != NULL) {
        assert_string_equal(response->request_id, request->request_id);
    }
    assert_true(response->status_desc != NULL && response->status_desc[0] != '\0');
    wire__store_query_response__free_unpacked(response, NULL);
    return code;
}

static Wire__StoreQueryRequest request_of_all(void)
{
    static char id[] = "request";
    Wire__StoreQueryRequest request = WIRE__STORE_QUERY_REQUEST__INIT;
    request.request_id = id;
    request.has_include_data = 1;
    request.include_data = 1;
    return request;
}

static void a_query_that_makes_no_sense_is_refused_with_400(void **state)
{
    (void)state;
    static uint8_t hash[MESSAGE_HASH_BYTES + 1] = {1};
    static uint8_t zeros[MESSAGE_HASH_BYTES];
    static char name[] = "/a/1/b/c";
    char *names[] = {name};
    ProtobufCBinaryData hashes[] = {{.data = hash, .len = MESSAGE_HASH_BYTES}};
    struct service service;
    init(&service, "memory", NULL);
    fill(&service, 3, 8);

    Wire__StoreQueryRequest request = request_of_all();
    request.request_id = NULL;
    assert_int_equal(code_of(&service, &request), 400);

    request = request_of_all();
    request.n_message_hashes = 1;
    request.message_hashes = hashes;
    assert_int_equal(code_of(&service, &request), 200);
    request.pubsub_topic = name; /* js-waku names it */
    assert_int_equal(code_of(&service, &request), 200);
    request.n_content_topics = 1;
    request.content_topics = names;
    assert_int_equal(code_of(&service, &request), 400);

    for (size_t length = 0; length <= MESSAGE_HASH_BYTES + 1; length++) {
        request = request_of_all();
        request.has_pagination_cursor = 1;
        request.pagination_cursor = (ProtobufCBinaryData){.data = hash, .len = length};
        assert_int_equal(code_of(&service, &request), 400);
    }
    request.pagination_cursor = (ProtobufCBinaryData){.data = zeros, .len = MESSAGE_HASH_BYTES};
    assert_int_equal(code_of(&service, &request), 400);

    hashes[0].len = MESSAGE_HASH_BYTES - 1;
    request = request_of_all();
    request.n_message_hashes = 1;
    request.message_hashes = hashes;
    assert_int_equal(code_of(&service, &request), 400);

    request = request_of_all();
    request.has_time_start = request.has_time_end = 1;
    request.time_start = 2;
    request.time_end = 1;
    assert_int_equal(code_of(&service, &request), 400);
    request.time_end = 2;
    assert_int_equal(code_of(&service, &request), 200);
    fini(&service);
}

static void bytes_that_are_no_request_are_refused_with_400(void **state)
{
    (void)state;
    static const uint8_t cut[] = {0x0a, 5, 'x'};
    static uint8_t topics[3 + 2 * (STORE_CONTENT_TOPICS_MAX + 1)] = {0x0a, 1, 'x'};
    struct service service;
    struct asking asking;
    init(&service, "memory", NULL);
    const struct span bad[] = {
            {NULL, 0}, {cut, sizeof(cut)}, {topics, 3 + 2 * (STORE_CONTENT_TOPICS_MAX + 1)}};
    for (size_t i = 3; i < sizeof(topics); i += 2) {
        topics[i] = 0x5a; /* a content topic of no bytes */
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ask_bytes(&service, &asking, bad[i]);
        Wire__StoreQueryResponse *response = wait_answer(&service, &asking);
        assert_int_equal(response->status_code, 400);
        assert_int_equal(response->n_messages, 0);
        wire__store_query_response__free_unpacked(response, NULL);
    }
    ask_bytes(&service, &asking, span_of(topics, sizeof(topics) - 2));
    Wire__StoreQueryResponse *response = wait_answer(&service, &asking);
    assert_int_equal(response->status_code, 200);
    wire__store_query_response__free_unpacked(response, NULL);
    fini(&service);
}

static void a_request_that_is_too_large_is_refused_with_400(void **state)
{
    (void)state;
    static uint8_t bytes[3 * STORE_REQUEST_MAX] = {0x0a, 7, 'r', 'e', 'q', 'u', 'e', 's', 't'};
    static const size_t sizes[] = {STORE_REQUEST_MAX, STORE_REQUEST_MAX + 1, 3 * STORE_REQUEST_MAX};
    struct service service;
    struct asking asking;
    init(&service, "memory", NULL);
    for (size_t i = 9; i + 1 < sizeof(bytes); i += 2) {
        bytes[i] = 0x5a; /* a million content topics of no bytes */
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ask_bytes(&service, &asking, span_of(bytes, sizes[i]));
        Wire__StoreQueryResponse *response = wait_answer(&service, &asking);
        assert_int_equal(response->status_code, 400);
        if (i > 0) { /* the first one is read, and malformed at its end */
            assert_string_equal(response->request_id, "request");
            assert_string_equal(response->status_desc, "request is too large");
        }
        wire__store_query_response__free_unpacked(response, NULL);
    }
    Wire__StoreQueryRequest request = request_of_all();
    assert_int_equal(code_of(&service, &request), 200);
    assert_int_equal(service.server.disconnected, 0);
    fini(&service);
}

/* The hash of the oldest message; then that message is deleted. */
static void check_cursor_of_a_deleted_message(const char *kind)
{
    struct service service;
    struct asking asking;
    Wire__StoreQueryRequest request = request_of_all();
    struct archive_prune_limits limits = archive_prune_nothing;
    struct archive_prune_result pruned;
    uint8_t oldest[MESSAGE_HASH_BYTES];
    init(&service, kind, NULL);
    fill(&service, 10, 8);
    request.has_pagination_forward = 1;
    request.pagination_forward = 1;
    ask(&service, &asking, &request);
    Wire__StoreQueryResponse *response = wait_answer(&service, &asking);
    assert_int_equal(response->n_messages, 10);
    memcpy(oldest, response->messages[0]->message_hash.data, MESSAGE_HASH_BYTES);
    wire__store_query_response__free_unpacked(response, NULL);

    request.has_pagination_cursor = 1;
    request.pagination_cursor = (ProtobufCBinaryData){.data = oldest, .len = sizeof(oldest)};
    assert_int_equal(code_of(&service, &request), 200);
    limits.oldest_ns = first_ns + 1;
    assert_int_equal(archive_prune(service.fixture.archive, &limits, 1000, &pruned), STATUS_OK);
    assert_int_equal(pruned.removed, 5);
    assert_int_equal(code_of(&service, &request), 400); /* no empty page, which would be the end */
    fini(&service);
}

static void a_cursor_of_a_deleted_message_is_refused_with_400(void **state)
{
    (void)state;
    check_cursor_of_a_deleted_message("memory");
    check_cursor_of_a_deleted_message("sqlite");
}

enum {
    HASHES = STORE_REQUEST_MAX / 36 /* as many as a request has room for */
};

/* Adds that many hashes to a request, one of them known. Returns its length. */
static size_t add_hashes(uint8_t *bytes, size_t length, const uint8_t *known)
{
    for (size_t i = 0; i < HASHES; i++) {
        uint8_t hash[MESSAGE_HASH_BYTES] = {0xff, (uint8_t)(i >> 8), (uint8_t)i};
        bytes[length++] = 0xa2;
        bytes[length++] = 0x01;
        bytes[length++] = MESSAGE_HASH_BYTES;
        memcpy(bytes + length, i == HASHES / 2 ? known : hash, sizeof(hash));
        length += sizeof(hash);
    }
    return length;
}

static void check_many_hashes(const char *kind)
{
    static uint8_t bytes[STORE_REQUEST_MAX];
    struct service service;
    struct asking asking;
    Wire__StoreQueryRequest request = request_of_all();
    init(&service, kind, NULL);
    fill(&service, 1, 8);
    ask(&service, &asking, &request);
    Wire__StoreQueryResponse *response = wait_answer(&service, &asking);
    size_t length = wire__store_query_request__pack(&request, bytes);
    length = add_hashes(bytes, length, response->messages[0]->message_hash.data);
    wire__store_query_response__free_unpacked(response, NULL);
    ask_bytes(&service, &asking, span_of(bytes, length));
    response = wait_answer(&service, &asking);
    assert_int_equal(response->status_code, 200);
    assert_int_equal(response->n_messages, 1);
    wire__store_query_response__free_unpacked(response, NULL);
    fini(&service);
}

static void any_number_of_hashes_may_be_asked_for(void **state)
{
    (void)state;
    check_many_hashes("memory");
    check_many_hashes("sqlite");
}

static void more_requests_than_the_rate_are_refused_with_429(void **state)
{
    (void)state;
    struct service service;
    struct store_options limits = good_limits;
    Wire__StoreQueryRequest request = request_of_all();
    limits.rate = (struct rate_limit){.volume = 2, .period_ns = UINT64_C(3600000000000)};
    init(&service, "memory", &limits);
    assert_int_equal(code_of(&service, &request), 200);
    assert_int_equal(code_of(&service, &request), 200);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(code_of(&service, &request), 429);
    }
    fini(&service);
}

static void a_query_over_a_longer_time_than_allowed_is_refused_with_400(void **state)
{
    (void)state;
    struct service service;
    struct store_options limits = good_limits;
    Wire__StoreQueryRequest request = request_of_all();
    limits.time_range_max_ns = 1000;
    init(&service, "memory", &limits);
    fill(&service, 3, 8);
    assert_int_equal(code_of(&service, &request), 400); /* from the beginning until now */
    request.has_time_start = 1;
    request.time_start = first_ns;
    assert_int_equal(code_of(&service, &request), 400); /* until now */
    request.has_time_end = 1;
    request.time_end = first_ns + 1000;
    assert_int_equal(code_of(&service, &request), 200);
    request.time_end++;
    assert_int_equal(code_of(&service, &request), 400);
    request.time_start = INT64_MIN;
    request.time_end = INT64_MAX;
    assert_int_equal(code_of(&service, &request), 400);

    /* By hash it costs what the hashes cost. */
    static uint8_t hash[MESSAGE_HASH_BYTES] = {1};
    ProtobufCBinaryData hashes[] = {{.data = hash, .len = MESSAGE_HASH_BYTES}};
    request = request_of_all();
    request.n_message_hashes = 1;
    request.message_hashes = hashes;
    assert_int_equal(code_of(&service, &request), 200);
    fini(&service);
}

/* What a page holds, compared with the archive itself, which has tests of its own against a model. */
static void check_page(struct service *service, const Wire__StoreQueryResponse *response,
        const struct archive_query *query)
{
    struct fixture_page expected;
    assert_int_equal(fixture_query(service->fixture.reader, query, &expected), STATUS_OK);
    assert_int_equal(response->n_messages, expected.count);
    for (size_t i = 0; i < expected.count; i++) {
        const Wire__StoreMessage *entry = response->messages[i];
        assert_int_equal(entry->message_hash.len, MESSAGE_HASH_BYTES);
        assert_memory_equal(entry->message_hash.data, expected.hashes[i], MESSAGE_HASH_BYTES);
    }
    assert_int_equal(response->has_pagination_cursor, expected.has_cursor);
    if (expected.has_cursor) {
        assert_int_equal(response->pagination_cursor.len, MESSAGE_HASH_BYTES);
        assert_memory_equal(response->pagination_cursor.data, expected.cursor, MESSAGE_HASH_BYTES);
    }
    fixture_page_free(&expected);
}

static size_t read_pages(struct service *service, bool is_backward, size_t limit)
{
    uint8_t cursor[MESSAGE_HASH_BYTES];
    size_t count = 0;
    bool has_more = true;
    struct archive_query query = {.include_data = true, .is_backward = is_backward, .limit = limit};
    Wire__StoreQueryRequest request = request_of_all();
    request.has_pagination_forward = !is_backward; /* absent is backward */
    request.pagination_forward = 1;
    request.has_pagination_limit = 1;
    request.pagination_limit = limit;
    while (has_more) {
        struct asking asking;
        ask(service, &asking, &request);
        Wire__StoreQueryResponse *response = wait_answer(service, &asking);
        assert_int_equal(response->status_code, 200);
        check_page(service, response, &query);
        count += response->n_messages;
        has_more = response->has_pagination_cursor;
        if (has_more) {
            memcpy(cursor, response->pagination_cursor.data, sizeof(cursor));
            request.has_pagination_cursor = 1;
            request.pagination_cursor =
                    (ProtobufCBinaryData){.data = cursor, .len = sizeof(cursor)};
            query.has_cursor = true;
            query.cursor = span_of(cursor, sizeof(cursor));
        }
        wire__store_query_response__free_unpacked(response, NULL);
    }
    return count;
}

static void pages_in_both_directions_hold_all_messages(void **state)
{
    static const char *const kinds[] = {"memory", "sqlite-disk"};
    static const size_t limits[] = {1, 7, 100};
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        struct service service;
        init(&service, kinds[k], NULL);
        fill(&service, STORED, 100);
        for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
            assert_int_equal(read_pages(&service, false, limits[i]), STORED);
            assert_int_equal(read_pages(&service, true, limits[i]), STORED);
        }
        fini(&service);
    }
}

static void an_answer_has_the_stored_bytes_only_when_they_were_asked_for(void **state)
{
    static const char *const kinds[] = {"memory", "sqlite-disk"};
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        struct fixture_message message = {
                .number = 7, .timestamp_ns = first_ns, .pubsub = 1, .payload_bytes = 100000};
        struct envelope *envelope = fixture_envelope(&message);
        struct service service;
        struct asking asking;
        init(&service, kinds[k], NULL);
        fixture_put(service.fixture.archive, &message, NULL);
        Wire__StoreQueryRequest request = request_of_all();
        ask(&service, &asking, &request);
        Wire__StoreQueryResponse *response = wait_answer(&service, &asking);
        assert_int_equal(response->n_messages, 1);
        const Wire__StoreMessage *entry = response->messages[0];
        assert_int_equal(entry->message.len, envelope->message.length);
        assert_memory_equal(entry->message.data, envelope->message.bytes, entry->message.len);
        assert_int_equal(strlen(entry->pubsub_topic), envelope->topic->name.length);
        wire__store_query_response__free_unpacked(response, NULL);
        request.include_data = 0;
        ask(&service, &asking, &request);
        response = wait_answer(&service, &asking);
        assert_int_equal(response->n_messages, 1);
        assert_false(response->messages[0]->has_message);
        assert_null(response->messages[0]->pubsub_topic);
        wire__store_query_response__free_unpacked(response, NULL);
        envelope_unref(envelope);
        fini(&service);
    }
}

/* The pages are shorter, and yet none is missing. */
static size_t read_cut_pages(struct service *service, bool is_backward, size_t *pages)
{
    uint8_t cursor[MESSAGE_HASH_BYTES];
    size_t count = 0;
    bool has_more = true;
    Wire__StoreQueryRequest request = request_of_all();
    request.has_pagination_forward = 1;
    request.pagination_forward = !is_backward;
    request.has_pagination_limit = 1;
    request.pagination_limit = 100;
    for (*pages = 0; has_more; ++*pages) {
        struct asking asking;
        ask(service, &asking, &request);
        Wire__StoreQueryResponse *response = wait_answer(service, &asking);
        assert_int_equal(response->status_code, 200);
        assert_true(asking.length <= 4096 || response->n_messages == 1);
        count += response->n_messages;
        has_more = response->has_pagination_cursor;
        if (has_more) {
            assert_true(response->n_messages > 0);
            size_t end = is_backward ? 0 : response->n_messages - 1;
            assert_memory_equal(response->pagination_cursor.data,
                    response->messages[end]->message_hash.data, MESSAGE_HASH_BYTES);
            memcpy(cursor, response->pagination_cursor.data, sizeof(cursor));
            request.has_pagination_cursor = 1;
            request.pagination_cursor =
                    (ProtobufCBinaryData){.data = cursor, .len = sizeof(cursor)};
        }
        wire__store_query_response__free_unpacked(response, NULL);
    }
    return count;
}

static void a_page_is_cut_to_the_bytes_of_an_answer_and_nothing_is_missed(void **state)
{
    (void)state;
    struct store_options limits = {.connection_queries_max = 1,
            .queries_max = 1,
            .answer_bytes_max = 4096,
            .answers_bytes_max = 1024 * 1024,
            .timeout_ms = 60 * 1000};
    struct service service;
    size_t pages;
    init(&service, "memory", &limits);
    fill(&service, 60, 600);
    struct fixture_message large = {
            .number = 1000, .timestamp_ns = first_ns + 10, .payload_bytes = 100000};
    fixture_put(service.fixture.archive, &large, NULL);
    assert_int_equal(read_cut_pages(&service, false, &pages), 61);
    assert_true(pages >= 10);
    assert_int_equal(read_cut_pages(&service, true, &pages), 61);
    assert_true(pages >= 10);
    fini(&service);
}

static void more_queries_than_a_peer_may_have_are_refused_with_429(void **state)
{
    (void)state;
    struct service service;
    struct asking asking[5];
    Wire__StoreQueryRequest request = request_of_all();
    init(&service, "memory", NULL);
    service.is_stalled = true;
    for (size_t i = 0; i < 5; i++) {
        ask(&service, &asking[i], &request);
    }
    Wire__StoreQueryResponse *response = wait_answer(&service, &asking[4]);
    assert_int_equal(response->status_code, 429);
    wire__store_query_response__free_unpacked(response, NULL);
    service.is_stalled = false;
    for (size_t i = 0; i < 4; i++) {
        response = wait_answer(&service, &asking[i]);
        assert_int_equal(response->status_code, 200);
        wire__store_query_response__free_unpacked(response, NULL);
    }
    test_nodes_run(service.nodes, 2, is_idle, &service);
    assert_int_equal(code_of(&service, &request), 200);
    fini(&service);
}

static void what_all_peers_ask_too_much_is_refused_with_503(void **state)
{
    (void)state;
    struct store_options limits = {.connection_queries_max = 4,
            .queries_max = 1,
            .answer_bytes_max = 4096,
            .answers_bytes_max = 10,
            .timeout_ms = 60 * 1000};
    struct service service;
    struct asking asking[2];
    Wire__StoreQueryRequest request = request_of_all();
    init(&service, "memory", &limits);
    service.is_stalled = true;
    ask(&service, &asking[0], &request);
    ask(&service, &asking[1], &request);
    Wire__StoreQueryResponse *response = wait_answer(&service, &asking[1]);
    assert_int_equal(response->status_code, 503);
    wire__store_query_response__free_unpacked(response, NULL);
    service.is_stalled = false;
    /* This one is carried out, but there is no room for its answer. */
    response = wait_answer(&service, &asking[0]);
    assert_int_equal(response->status_code, 503);
    wire__store_query_response__free_unpacked(response, NULL);
    fini(&service);
}

static void a_query_past_its_deadline_is_refused_with_503(void **state)
{
    (void)state;
    struct store_options limits = {.connection_queries_max = 4,
            .queries_max = 4,
            .answer_bytes_max = 4096,
            .answers_bytes_max = 4096,
            .timeout_ms = 0};
    struct service service;
    Wire__StoreQueryRequest request = request_of_all();
    init(&service, "memory", &limits);
    assert_int_equal(code_of(&service, &request), 503);
    fini(&service);
}

static bool has_pending(void *context)
{
    struct service *service = context;
    return store_pending(service->store) > 0;
}

static bool has_left(void *context)
{
    struct service *service = context;
    return service->server.disconnected > 0;
}

static void a_query_is_given_up_when_its_peer_leaves(void **state)
{
    (void)state;
    struct service service;
    struct asking asking;
    Wire__StoreQueryRequest request = request_of_all();
    uint64_t cancelled = count_of(METRIC_STORE_CANCELLED);
    init(&service, "memory", NULL);
    service.is_stalled = true;
    ask(&service, &asking, &request);
    test_nodes_run(service.nodes, 2, has_pending, &service);
    connection_close(service.client.last_connection, CLOSE_REQUESTED);
    io_loop_wake(service.client.loop);
    test_nodes_run(service.nodes, 2, has_left, &service);
    assert_int_equal(store_pending(service.store), 1);
    service.is_stalled = false;
    test_nodes_run(service.nodes, 2, is_idle, &service);
    assert_int_equal(count_of(METRIC_STORE_CANCELLED), cancelled + 1);
    free(asking.bytes);
    fini(&service);
}

/* A peer that asks and does not read. */
struct lazy_reader {
    struct stream *stream;
    struct span request;
    size_t received;
    bool reads;
    bool is_over;
    uint8_t buffer[4096];
};

static enum status on_lazy_opened(struct stream *stream)
{
    struct lazy_reader *reader = stream_context(stream);
    reader->stream = stream;
    return stream_write_copy(stream, reader->request);
}

static size_t on_lazy_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct lazy_reader *reader = stream_context(stream);
    *to = reader->buffer;
    size_t room = wanted < sizeof(reader->buffer) ? wanted : sizeof(reader->buffer);
    return reader->reads ? room : 0;
}

static void on_lazy_commit(struct stream *stream, size_t n)
{
    struct lazy_reader *reader = stream_context(stream);
    reader->received += n;
    stream_consumed(stream, n);
}

static void on_lazy_remote_closed(struct stream *stream)
{
    stream_close_write(stream);
}

static void on_lazy_closed(struct stream *stream, enum status reason)
{
    struct lazy_reader *reader = stream_context(stream);
    assert_int_equal(reason, STATUS_OK);
    reader->is_over = true;
}

static bool is_read(void *context)
{
    const struct lazy_reader *reader = context;
    return reader->is_over;
}

static bool has_answered(void *context)
{
    struct service *service = context;
    run_queries(service);
    return archive_jobs_depth_estimate(service->jobs) == 0 && store_pending(service->store) == 1;
}

static void an_answer_that_nobody_reads_waits_and_then_goes_on(void **state)
{
    static const struct stream_events events = {.opened = on_lazy_opened,
            .reserve = on_lazy_reserve,
            .commit = on_lazy_commit,
            .remote_closed = on_lazy_remote_closed,
            .closed = on_lazy_closed};
    (void)state;
    struct service service;
    uint8_t bytes[64];
    Wire__StoreQueryRequest request = request_of_all();
    bytes[0] = (uint8_t)wire__store_query_request__pack(&request, bytes + 1);
    struct lazy_reader reader = {.request = span_of(bytes, (size_t)bytes[0] + 1)};
    struct stream_request opening = {
            .protocols = ids, .protocol_count = 1, .events = &events, .context = &reader};
    init(&service, "memory", NULL);
    fill(&service, 20, 100000);
    assert_int_equal(
            connection_open_stream(service.client.last_connection, &opening, NULL), STATUS_OK);
    io_loop_wake(service.client.loop);
    test_nodes_run(service.nodes, 2, has_answered, &service);
    test_nodes_turn(service.nodes, 2, 200);
    assert_int_equal(store_pending(service.store), 1);
    assert_int_equal(reader.received, 0);
    reader.reads = true;
    stream_resume(reader.stream);
    io_loop_wake(service.client.loop);
    test_nodes_run(service.nodes, 2, is_read, &reader);
    assert_true(reader.received > 20 * 100000 && reader.received < 21 * 100000);
    fini(&service);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_query_that_makes_no_sense_is_refused_with_400),
            cmocka_unit_test(bytes_that_are_no_request_are_refused_with_400),
            cmocka_unit_test(a_request_that_is_too_large_is_refused_with_400),
            cmocka_unit_test(a_cursor_of_a_deleted_message_is_refused_with_400),
            cmocka_unit_test(any_number_of_hashes_may_be_asked_for),
            cmocka_unit_test(more_requests_than_the_rate_are_refused_with_429),
            cmocka_unit_test(a_query_over_a_longer_time_than_allowed_is_refused_with_400),
            cmocka_unit_test(pages_in_both_directions_hold_all_messages),
            cmocka_unit_test(an_answer_has_the_stored_bytes_only_when_they_were_asked_for),
            cmocka_unit_test(a_page_is_cut_to_the_bytes_of_an_answer_and_nothing_is_missed),
            cmocka_unit_test(more_queries_than_a_peer_may_have_are_refused_with_429),
            cmocka_unit_test(what_all_peers_ask_too_much_is_refused_with_503),
            cmocka_unit_test(a_query_past_its_deadline_is_refused_with_503),
            cmocka_unit_test(a_query_is_given_up_when_its_peer_leaves),
            cmocka_unit_test(an_answer_that_nobody_reads_waits_and_then_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
