/* SPDX-License-Identifier: MIT */

/* /store/v3/messages: pages of stored messages, of this node or of another one. */

#include <stdlib.h>
#include <string.h>

#include "admin/rest_format.h"
#include "admin/rest_private.h"
#include "admin/rest_query.h"

struct store_request {
    struct rest_store_call call;
    struct rest_query query;
    char *peer;
    struct rest_answer *answer;
    size_t row_count;
};

static void free_request(void *data)
{
    struct store_request *store = data;
    rest_query_fini(&store->query);
    free(store->peer);
    free(store);
}

static void begin_answer(
        struct store_request *store, const char *request_id, uint32_t code, const char *description)
{
    struct rest_text *text = &store->answer->text;
    rest_text_add(text, "{\"requestId\":");
    rest_text_add_string(text, span_of_text(request_id));
    rest_text_add(text, ",\"statusCode\":");
    rest_text_add_number(text, code);
    rest_text_add(text, ",\"statusDesc\":");
    rest_text_add_string(text, span_of_text(description));
    rest_text_add(text, ",\"messages\":[");
}

/* On the query thread, or where a peer's answer is read. */
static enum status take_row(void *context, const struct archive_row *row)
{
    struct store_request *store = context;
    struct rest_text *text = &store->answer->text;
    size_t before = text->length;
    if (before == 0) {
        begin_answer(store, store->call.request_id, HTTP_OK, "OK");
    }
    /* A row that is no message is left out, as it is of no use to anybody. */
    if (rest_add_row(text, row, store->query.query.include_data, store->row_count == 0)) {
        store->row_count++;
    }
    if (!http_request_try_charge(store->answer->request, text->length - before)) {
        return STATUS_BUSY;
    }
    return text->has_failed ? STATUS_NO_MEMORY : STATUS_OK;
}

static void send_page(struct store_request *store, const struct archive_page *page)
{
    struct rest_text *text = &store->answer->text;
    if (store->row_count == 0) {
        rest_text_fini(text);
        begin_answer(store, store->call.request_id, HTTP_OK, "OK");
    }
    rest_text_add(text, "]");
    if (page->has_cursor) {
        rest_text_add(text, ",\"paginationCursor\":");
        rest_text_add_hex(text, span_of(page->cursor, sizeof(page->cursor)));
    }
    rest_text_add(text, "}");
    store->answer->is_json = true;
    rest_answer_send(store->answer);
}

/* The reference passes on what a peer answered: it is an answer, so HTTP's code is 200. */
static void send_peer_failure(struct store_request *store, const char *description)
{
    rest_text_fini(&store->answer->text);
    begin_answer(store, "", store->call.peer_code, description);
    rest_text_add(&store->answer->text, "]}");
    store->answer->is_json = true;
    rest_answer_send(store->answer);
}

/* What a client may look for in the text is as the reference says it. */
static void send_failure(struct store_request *store, enum status status, const char *description)
{
    struct rest_answer *answer = store->answer;
    const char *why = description[0] != '\0' ? description : status_text(status);
    switch (status) {
    case STATUS_BAD_CURSOR:
        rest_answer_send_text(
                answer, HTTP_INTERNAL_ERROR, "BAD_REQUEST: invalid cursor: cursor not found");
        return;
    case STATUS_BAD_QUERY:
        rest_answer_send_text(answer, HTTP_BAD_REQUEST, "BAD_REQUEST: %s", why);
        return;
    case STATUS_LIMIT_REACHED:
        rest_answer_send_text(answer, HTTP_TOO_MANY_REQUESTS, "Request rate limit reached");
        return;
    case STATUS_BUSY:
        rest_answer_send_text(answer, HTTP_UNAVAILABLE,
                "Too many answers wait for their clients to read them: try again later");
        return;
    case STATUS_TIMED_OUT:
        rest_answer_send_text(
                answer, HTTP_INTERNAL_ERROR, "No history response received (timeout)");
        return;
    case STATUS_NOT_FOUND:
        rest_answer_send_text(
                answer, HTTP_PRECONDITION_FAILED, "No suitable service peer & no discovery method");
        return;
    default:
        rest_answer_send_text(
                answer, HTTP_INTERNAL_ERROR, "Error occurred in queryFut.read() [%s]", why);
        return;
    }
}

static void end_query(struct rest_store_call *call, enum status status,
        const struct archive_page *page, const char *description)
{
    struct store_request *store = call->context;
    if (status == STATUS_OK) {
        send_page(store, page);
    } else if (call->has_peer_code) {
        send_peer_failure(store, description);
    } else {
        send_failure(store, status, description);
    }
}

static struct rest_query_parameters parameters_of(const struct http_request *request)
{
    return (struct rest_query_parameters){
            .include_data = http_request_parameter(request, "includeData"),
            .pubsub_topic = http_request_parameter(request, "pubsubTopic"),
            .content_topics = http_request_parameter(request, "contentTopics"),
            .start_time = http_request_parameter(request, "startTime"),
            .end_time = http_request_parameter(request, "endTime"),
            .hashes = http_request_parameter(request, "hashes"),
            .cursor = http_request_parameter(request, "cursor"),
            .ascending = http_request_parameter(request, "ascending"),
            .page_size = http_request_parameter(request, "pageSize")};
}

static struct store_request *make_request(struct http_request *request)
{
    struct rest_error error;
    struct rest_query_parameters parameters = parameters_of(request);
    const char *peer = http_request_parameter(request, "peerAddr");
    struct store_request *store = calloc(1, sizeof(*store));
    enum status status =
            store == NULL ? STATUS_NO_MEMORY : rest_query_parse(&store->query, &parameters, &error);
    if (status == STATUS_OK && peer != NULL && peer[0] != '\0') {
        store->peer = strdup(peer);
        status = store->peer == NULL ? STATUS_NO_MEMORY : STATUS_OK;
    }
    if (status == STATUS_OK) {
        return store;
    }
    if (status == STATUS_NO_MEMORY) {
        http_respond_text(request, HTTP_UNAVAILABLE, "out of memory");
    } else {
        http_respond_text(request, HTTP_BAD_REQUEST, "%s", error.text);
    }
    if (store != NULL) {
        free_request(store);
    }
    return NULL;
}

static void refuse(struct store_request *store, enum status status)
{
    struct rest_answer *answer = store->answer;
    switch (status) {
    case STATUS_NOT_FOUND:
        rest_answer_send_text(
                answer, HTTP_PRECONDITION_FAILED, "No suitable service peer & no discovery method");
        return;
    case STATUS_BAD_ADDRESS:
        rest_answer_send_text(answer, HTTP_BAD_REQUEST,
                "Failed parsing remote peer info: MultiAddress error: Invalid MultiAddress, "
                "Unsupported protocol or peer id [%.200s]",
                store->peer);
        return;
    case STATUS_BUSY:
    case STATUS_LIMIT_REACHED:
    case STATUS_NO_MEMORY:
        rest_answer_send_text(
                answer, HTTP_UNAVAILABLE, "The query was not taken: %s", status_text(status));
        return;
    default:
        send_failure(store, status, "");
        return;
    }
}

static void get_messages(void *context, struct http_request *request)
{
    struct rest_api *api = context;
    const struct rest_services *services = &api->options.services;
    struct store_request *store = make_request(request);
    if (store == NULL) {
        return;
    }
    store->answer = rest_answer_begin(api, request);
    if (store->answer == NULL) {
        free_request(store);
        return;
    }
    store->answer->data = store;
    store->answer->free_data = free_request;
    store->call = (struct rest_store_call){.query = store->query.query,
            .peer = store->peer,
            .row = take_row,
            .end = end_query,
            .context = store};
    enum status status = services->query(services->context, &store->call);
    if (status != STATUS_OK) {
        refuse(store, status);
    }
}

const struct http_route rest_store_routes[] = {
        {HTTP_GET, "/store/v3/messages", get_messages},
};
const size_t rest_store_route_count = sizeof(rest_store_routes) / sizeof(rest_store_routes[0]);
