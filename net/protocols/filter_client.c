/* SPDX-License-Identifier: MIT */
#include "net/protocols/filter_client.h"

#include <openssl/rand.h>

#include "base/hex.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "codec/waku_message.h"
#include "net/protocols/exchange.h"
#include "net/protocols/relay_reader.h"
#include "net/protocols/service_code.h"

enum {
    REQUEST_ID_BYTES = 10, /* twice as many hexadecimal digits */
    FRAME_TIMEOUT_MS = 30 * 1000
};

struct filter_client {
    struct filter_client_options options;
};

/* What is read of one push stream. */
struct filter_inbound {
    const struct filter_client *client;
    struct relay_reader reader;
};

/* STATUS_UNSUPPORTED: nothing is wanted of that peer. */
static enum status make_inbound(struct filter_inbound **out, const struct filter_client *client,
        const struct stream *stream)
{
    const struct filter_client_options *options = &client->options;
    if (options->accepts != NULL &&
            !options->accepts(options->context, stream_connection(stream))) {
        return STATUS_UNSUPPORTED;
    }
    struct filter_inbound *inbound = memory_allocate_zeroed(sizeof(*inbound));
    if (inbound == NULL) {
        return STATUS_NO_MEMORY;
    }
    inbound->client = client;
    relay_reader_init(
            &inbound->reader, NULL, NULL, options->message_bytes_max + FILTER_CLIENT_OVERHEAD);
    *out = inbound;
    return STATUS_OK;
}

static enum status on_opened(struct stream *stream)
{
    const struct filter_client *client = stream_context(stream);
    struct filter_inbound *inbound = NULL;
    enum status status = make_inbound(&inbound, client, stream);
    metrics_add(METRIC_FILTER_UNASKED, status == STATUS_UNSUPPORTED);
    stream_set_context(stream, inbound);
    return status;
}

static size_t on_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct filter_inbound *inbound = stream_context(stream);
    return inbound == NULL ? 0 : relay_reader_reserve(&inbound->reader, wanted, to);
}

/* False: malformed. */
static bool take_push(
        struct stream *stream, const struct filter_inbound *inbound, struct span bytes)
{
    const struct filter_client_options *options = &inbound->client->options;
    struct filter_push_view push;
    struct waku_message_view view;
    if (filter_push_read(&push, bytes) != STATUS_OK ||
            waku_message_decode(&view, push.message) != STATUS_OK) {
        return false;
    }
    metrics_add(METRIC_FILTER_TAKEN, 1);
    options->received(options->context, stream_connection(stream), &push);
    return true;
}

static void refuse(struct stream *stream, enum status status)
{
    static struct log_limit limit;
    char text[PEER_ID_TEXT_SIZE];
    metrics_add(METRIC_FILTER_MALFORMED, 1);
    log_write_limited(&limit, LOG_NOTICE, "filter",
            "service peer %s pushed something malformed: %s",
            peer_id_print(text, connection_peer(stream_connection(stream))), status_text(status));
    stream_reset(stream, status);
}

bool filter_client_commit(struct filter_inbound *inbound, struct stream *stream, size_t n)
{
    struct frame *frame = NULL;
    stream_consumed(stream, n);
    if (inbound == NULL) {
        return true;
    }
    enum status status = relay_reader_commit(&inbound->reader, n, &frame);
    if (status == STATUS_OK && frame != NULL) {
        bool is_good = take_push(stream, inbound, span_of(frame_bytes(frame), frame_length(frame)));
        status = is_good ? STATUS_OK : STATUS_BAD_FIELD;
        frame_unref(frame);
    }
    if (status != STATUS_OK) {
        refuse(stream, status);
    }
    return status == STATUS_OK;
}

static void on_commit(struct stream *stream, size_t n)
{
    struct filter_inbound *inbound = stream_context(stream);
    if (filter_client_commit(inbound, stream, n)) {
        stream_set_timeout(stream, relay_reader_is_inside(&inbound->reader) ? FRAME_TIMEOUT_MS : 0);
    }
}

size_t filter_client_reserve(const struct filter_client *client, struct filter_inbound **inbound,
        struct stream *stream, size_t wanted, uint8_t **to)
{
    if (*inbound == NULL &&
            (client == NULL || make_inbound(inbound, client, stream) != STATUS_OK)) {
        return stream_reserve_waste(stream, wanted, to);
    }
    return relay_reader_reserve(&(*inbound)->reader, wanted, to);
}

void filter_client_drop(struct filter_inbound **inbound)
{
    if (*inbound != NULL) {
        relay_reader_reset(&(*inbound)->reader);
        memory_free(*inbound);
        *inbound = NULL;
    }
}

static void on_remote_closed(struct stream *stream)
{
    stream_close_write(stream);
}

static void on_closed(struct stream *stream, enum status reason)
{
    (void)reason;
    struct filter_inbound *inbound = stream_context(stream);
    filter_client_drop(&inbound);
}

static const struct stream_events events = {
        .opened = on_opened,
        .reserve = on_reserve,
        .commit = on_commit,
        .remote_closed = on_remote_closed,
        .closed = on_closed,
};

enum status filter_client_create(
        struct filter_client **out, const struct filter_client_options *options)
{
    struct filter_client *client = memory_allocate_zeroed(sizeof(*client));
    if (client == NULL) {
        return STATUS_NO_MEMORY;
    }
    client->options = *options;
    struct protocol protocol = {.id = FILTER_PUSH_PROTOCOL_ID,
            .events = &events,
            .context = client,
            .inbound_max = FILTER_CLIENT_STREAMS_MAX};
    enum status status = switch_add_protocol(options->net_switch, &protocol);
    if (status != STATUS_OK) {
        memory_free(client);
        return status;
    }
    *out = client;
    return STATUS_OK;
}

void filter_client_destroy(struct filter_client **client)
{
    memory_free(*client);
    *client = NULL;
}

/* Requests. */

struct question {
    filter_client_answered *answered;
    void *context;
    char id[2 * REQUEST_ID_BYTES + 1];
};

static void end_question(struct question *question, uint32_t code, struct span description)
{
    question->answered(question->context, code, description);
    memory_free(question);
}

static void on_done(void *context, enum status status, const char *protocol, struct span bytes)
{
    struct question *question = context;
    struct filter_answer answer;
    if (status != STATUS_OK) {
        uint32_t code = protocol == NULL ? FILTER_CODE_UNREACHABLE : FILTER_CODE_BAD_RESPONSE;
        end_question(question, code, span_of_text(status_text(status)));
        return;
    }
    status = filter_answer_read(&answer, bytes);
    if (status != STATUS_OK) {
        end_question(question, FILTER_CODE_BAD_RESPONSE, span_of_text("answer is malformed"));
    } else if (!span_equal(answer.request_id, span_of_text(question->id)) &&
               answer.code != SERVICE_TOO_MANY_REQUESTS) {
        /* Who counts requests does so before it has read them. */
        end_question(question, FILTER_CODE_BAD_RESPONSE, span_of_text("answer to another request"));
    } else {
        end_question(question, answer.code, answer.description);
    }
}

static enum status make_question(
        struct question **out, filter_client_answered *answered, void *context)
{
    uint8_t id[REQUEST_ID_BYTES];
    struct question *question = memory_allocate_zeroed(sizeof(*question));
    if (question == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (RAND_bytes(id, sizeof(id)) != 1) {
        memory_free(question);
        return STATUS_SYSTEM;
    }
    hex_encode(question->id, span_of(id, sizeof(id)));
    question->answered = answered;
    question->context = context;
    *out = question;
    return STATUS_OK;
}

static enum status start(struct connection *connection, struct question *question,
        struct filter_request_fields fields, uint64_t timeout_ms)
{
    static const char *const ids[] = {FILTER_SUBSCRIBE_PROTOCOL_ID};
    fields.request_id = span_of_text(question->id);
    size_t length = filter_request_size(&fields);
    uint8_t *request = memory_allocate(length);
    if (request == NULL) {
        return STATUS_NO_MEMORY;
    }
    filter_request_write(request, &fields);
    struct exchange_call call = {.protocols = ids,
            .protocol_count = 1,
            .request = span_of(request, length),
            .answer_max = FILTER_CLIENT_ANSWER_MAX,
            .timeout_ms = timeout_ms,
            .done = on_done,
            .context = question};
    enum status status = exchange_call(connection, &call);
    memory_free(request);
    return status;
}

void filter_client_ask(struct connection *connection, const struct filter_request_fields *fields,
        uint64_t timeout_ms, filter_client_answered *answered, void *context)
{
    struct question *question;
    enum status status = make_question(&question, answered, context);
    if (status != STATUS_OK) {
        answered(context, FILTER_CODE_UNREACHABLE, span_of_text(status_text(status)));
        return;
    }
    status = start(connection, question, *fields, timeout_ms);
    if (status != STATUS_OK) {
        end_question(question, FILTER_CODE_UNREACHABLE, span_of_text(status_text(status)));
    }
}
