/* SPDX-License-Identifier: MIT */

/* Pages of an archive: the node's own, read on the query thread, or that of a store node. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/archive_job.h"
#include "base/clock.h"
#include "node/api_private.h"
#include "node/node_private.h"
#include "node/store_client.h"

enum {
    LIST_MAX = 1000, /* content topics, or hashes, of one query */
    TEXT_SIZE = 257
};

_Static_assert((int)SLUICE_PAGE_MAX == (int)ARCHIVE_PAGE_MAX, "a page is the archive's");
_Static_assert((int)SLUICE_HASH_BYTES == (int)MESSAGE_HASH_BYTES, "a hash is the message hash");

/* From the call to the callback. One thread at a time works on it. */
struct page_call {
    struct event_task task;
    struct archive_job job;
    struct sluice_node *node;
    sluice_page_callback *done;
    void *context;
    struct archive_query query; /* whose lists and texts are behind this struct */
    bool is_over_limit;         /* of event-hold-limit */
    enum status status;
    char text[TEXT_SIZE];
    size_t count;
    bool has_cursor;
    uint8_t cursor[MESSAGE_HASH_BYTES];
    uint8_t hashes[ARCHIVE_PAGE_MAX][MESSAGE_HASH_BYTES];
    struct sluice_envelope *envelopes[ARCHIVE_PAGE_MAX];
    struct span lists[];
};

static void release_rows(struct page_call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        sluice_envelope_unref(call->envelopes[i]);
    }
    call->count = 0;
}

/* Out of the memory archive it is the message itself; elsewhere a copy, until now without hash. */
static bool complete(struct page_call *call, size_t i)
{
    struct sluice_envelope *envelope = call->envelopes[i];
    return !envelope->is_detached ||
           (api_envelope_seal(envelope, 0) &&
                   memcmp(envelope->envelope->hash, call->hashes[i], MESSAGE_HASH_BYTES) == 0);
}

static void fail(struct page_call *call, enum status status, const char *text)
{
    call->status = status;
    snprintf(call->text, sizeof(call->text), "%s", text);
}

static void complete_all(struct page_call *call)
{
    for (size_t i = 0; call->query.include_data && i < call->count; i++) {
        if (!complete(call, i)) {
            fail(call, STATUS_BAD_FIELD, "a message is not the one of its hash");
            return;
        }
    }
}

static enum sluice_result result_of(const struct page_call *call)
{
    /* relaxed: it was set before the node's threads were told to end */
    bool is_ending = atomic_load_explicit(&call->node->is_ending, memory_order_relaxed);
    return is_ending && call->status != STATUS_OK ? SLUICE_NOT_RUNNING : api_result(call->status);
}

static void tell(struct event_task *task)
{
    struct page_call *call = (struct page_call *)task;
    struct sluice_node *node = call->node;
    if (call->status == STATUS_OK) {
        complete_all(call);
    }
    if (call->status != STATUS_OK) {
        release_rows(call);
        call->has_cursor = false;
    }
    struct sluice_page page = {.result = result_of(call),
            .text = call->text,
            .count = call->count,
            .hashes = call->hashes[0],
            .envelopes = call->query.include_data ? call->envelopes : NULL,
            .cursor = call->has_cursor ? call->cursor : NULL};
    api_calling_node = node;
    call->done(call->context, &page);
    api_calling_node = NULL;
    release_rows(call);
    free(call);
    api_uncount_call(node);
}

/* The row's message; NULL with *status saying why. */
static struct sluice_envelope *take_message(
        struct page_call *call, const struct archive_row *row, enum status *status)
{
    struct sluice_envelope *envelope = NULL;
    enum sluice_result result = SLUICE_LIMIT_REACHED;
    if (row->envelope != NULL) {
        envelope = api_envelope_keep(call->node, row->envelope);
    } else {
        result = api_envelope_make(&envelope, call->node, row->pubsub_topic, row->message);
    }
    if (envelope == NULL) {
        call->is_over_limit = result == SLUICE_LIMIT_REACHED;
        *status = call->is_over_limit ? STATUS_LIMIT_REACHED : STATUS_NO_MEMORY;
    }
    return envelope;
}

/* On the query thread or an io thread. */
static enum status take_row(void *context, const struct archive_row *row)
{
    struct page_call *call = context;
    enum status status = STATUS_OK;
    if (call->count == ARCHIVE_PAGE_MAX || row->hash.length != MESSAGE_HASH_BYTES) {
        return STATUS_BAD_FIELD; /* a store node that makes no sense */
    }
    if (call->query.include_data) {
        call->envelopes[call->count] = take_message(call, row, &status);
    }
    if (status == STATUS_OK) {
        memcpy(call->hashes[call->count++], row->hash.bytes, MESSAGE_HASH_BYTES);
    }
    return status;
}

static void end(
        void *context, enum status status, const struct archive_page *page, const char *description)
{
    struct page_call *call = context;
    bool is_bare = description[0] == '\0';
    call->status = status;
    if (call->is_over_limit) {
        fail(call, status, "event-hold-limit is used up");
    } else if (status != STATUS_OK) {
        fail(call, status, is_bare ? status_text(status) : description);
    } else if (page->has_cursor) {
        call->has_cursor = true;
        memcpy(call->cursor, page->cursor, MESSAGE_HASH_BYTES);
    }
    node_post_event_task(call->node->node, &call->task);
}

static void on_answered(void *context, const struct store_client_outcome *outcome)
{
    /* That it could not be asked has a status, which says more than the code. */
    bool is_asked =
            outcome->status != STATUS_UNREACHABLE && outcome->status != STATUS_NO_COMMON_PROTOCOL;
    end(context, outcome->status, outcome->page, is_asked ? outcome->description : "");
}

static void run(struct archive_job *job, struct archive_reader *reader)
{
    struct page_call *call = (struct page_call *)((char *)job - offsetof(struct page_call, job));
    struct archive_page page;
    enum status status = archive_query(reader, &call->query, take_row, call, &page);
    end(call, status, &page, "");
}

static enum status ask_own(struct sluice_node *node, struct page_call *call)
{
    struct node *own = node->node;
    call->job.run = run;
    call->job.origin = ARCHIVE_JOB_OWN;
    call->query.abandoned = &node->is_ending;
    call->query.deadline_ns =
            clock_monotonic_ns() + options_number(node->options->options, "store-query-timeout") *
                                           NANOSECONDS_PER_MILLISECOND;
    archive_jobs_post(own->query_jobs, &call->job);
    return STATUS_OK;
}

static enum status ask_peer(
        struct sluice_node *node, struct page_call *call, const struct sluice_service *service)
{
    struct multiaddr address;
    enum status status = store_client_read_address(&address, service->peer);
    if (status != STATUS_OK) {
        return status;
    }
    struct store_client_ask ask = {.query = &call->query,
            .peer = &address,
            .timeout_ms = service->timeout_ms,
            .row = take_row,
            .answered = on_answered,
            .context = call};
    return store_client_ask(network_store_client(node->node->network), &ask);
}

/* Making: the query with all that it points to, in one block. */

static size_t size_of_texts(const struct sluice_query *query)
{
    size_t size = query->hash_count * MESSAGE_HASH_BYTES + MESSAGE_HASH_BYTES;
    size += query->pubsub_topic == NULL ? 0 : strlen(query->pubsub_topic);
    for (size_t i = 0; i < query->content_topic_count; i++) {
        size += strlen(query->content_topics[i]);
    }
    return size;
}

static struct span copy(uint8_t **end_of_copies, const void *bytes, size_t length)
{
    struct span out = span_of(*end_of_copies, length);
    if (length > 0) {
        memcpy(*end_of_copies, bytes, length);
    }
    *end_of_copies += length;
    return out;
}

static void copy_lists(struct page_call *call, const struct sluice_query *query, uint8_t *to)
{
    struct archive_query *out = &call->query;
    out->content_topics = call->lists;
    out->content_topic_count = query->content_topic_count;
    for (size_t i = 0; i < query->content_topic_count; i++) {
        const char *topic = query->content_topics[i];
        call->lists[i] = copy(&to, topic, strlen(topic));
    }
    out->hashes = call->lists + query->content_topic_count;
    out->hash_count = query->hash_count;
    for (size_t i = 0; i < query->hash_count; i++) {
        call->lists[query->content_topic_count + i] =
                copy(&to, query->hashes + i * MESSAGE_HASH_BYTES, MESSAGE_HASH_BYTES);
    }
    if (query->pubsub_topic != NULL) {
        out->pubsub_topic = copy(&to, query->pubsub_topic, strlen(query->pubsub_topic));
    }
    if (query->cursor != NULL) {
        out->cursor = copy(&to, query->cursor, MESSAGE_HASH_BYTES);
        out->has_cursor = true;
    }
}

static struct page_call *make_call(struct sluice_node *node, const struct sluice_query *query)
{
    size_t list_bytes = (query->content_topic_count + query->hash_count) * sizeof(struct span);
    struct page_call *call = calloc(1, sizeof(*call) + list_bytes + size_of_texts(query));
    if (call == NULL) {
        return NULL;
    }
    call->task.carry_out = tell;
    call->node = node;
    call->query = (struct archive_query){.time_start_ns = query->time_start_ns,
            .time_end_ns = query->time_end_ns,
            .has_time_start = query->time_start_ns != 0,
            .has_time_end = query->time_end_ns != 0,
            .limit = query->limit < SLUICE_PAGE_MAX ? query->limit : SLUICE_PAGE_MAX,
            .include_data = !query->is_without_messages,
            .is_backward = query->is_backward};
    copy_lists(call, query, (uint8_t *)call->lists + list_bytes);
    return call;
}

static bool is_sound(const struct sluice_query *query)
{
    return query->content_topic_count <= LIST_MAX && query->hash_count <= LIST_MAX &&
           (query->hash_count == 0 || query->hashes != NULL) &&
           (query->content_topic_count == 0 || query->content_topics != NULL);
}

static enum sluice_result begin(
        struct sluice_node *node, struct page_call *call, const struct sluice_service *service)
{
    if (service == NULL) {
        return node->node->archive != NULL ? api_result(ask_own(node, call)) : SLUICE_NOT_FOUND;
    }
    return node->node->network != NULL ? api_result(ask_peer(node, call, service))
                                       : SLUICE_NOT_FOUND;
}

enum sluice_result sluice_node_query(struct sluice_node *node, const struct sluice_query *query,
        const struct sluice_service *service, sluice_page_callback *done, void *context)
{
    if (done == NULL || !is_sound(query) || (service != NULL && service->peer == NULL)) {
        return SLUICE_BAD_ARGUMENT;
    }
    if (!api_enter(node)) {
        return SLUICE_NOT_RUNNING;
    }
    enum sluice_result result = SLUICE_LIMIT_REACHED;
    if (api_try_count_call(node)) {
        struct page_call *call = make_call(node, query);
        result = SLUICE_NO_MEMORY;
        if (call != NULL) {
            call->done = done;
            call->context = context;
            result = begin(node, call, service);
        }
        if (result != SLUICE_OK) {
            free(call);
            api_uncount_call(node);
        }
    }
    api_leave(node);
    return result;
}
