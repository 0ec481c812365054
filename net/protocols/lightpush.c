/* SPDX-License-Identifier: MIT */
#include "net/protocols/lightpush.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "codec/topics.h"
#include "net/protocols/exchange_jobs.h"
#include "net/protocols/lightpush_message.h"
#include "net/protocols/service_code.h"

enum {
    REQUEST_OVERHEAD_MAX = 64 * 1024 /* of a request beyond its message */
};

/* One protocol id of the service. */
struct entrance {
    struct lightpush *lightpush;
    enum lightpush_version version;
    struct exchange_limit limit;
    struct exchange_server server;
};

/* Descriptions are the reference's where it has one: clients look for its words. */
static const char seen_before[] = "Dropping already-seen message";

struct lightpush {
    struct lightpush_options options;
    char too_large[64]; /* what is said of a message that is */
    struct exchange_memory memory;
    struct exchange_jobs jobs;
    struct entrance v3;
    struct entrance legacy;
};

struct push_job {
    struct exchange_job base;
    enum lightpush_version version;
    enum service_code code;
    const char *description;
    uint32_t relay_peer_count;
    size_t request_id_length;
    uint8_t request_id[];
};

/* Why a push is not taken; code 0: it is. */
struct fault {
    enum service_code code;
    const char *description;
};

/* Requests in frames. */

static void *create_frame(void *context, size_t length)
{
    struct lightpush *lightpush = context;
    return frame_try_create(lightpush->options.budget, FRAME_BUDGET_PARTIAL, length);
}

static uint8_t *bytes_of_frame(void *frame)
{
    return frame_bytes(frame);
}

static void drop_frame(void *frame)
{
    frame_unref(frame);
}

/* Answers. */

static void count_answer(enum service_code code)
{
    switch (code) {
    case SERVICE_OK:
        metrics_add(METRIC_LIGHTPUSH_RELAYED, 1);
        break;
    case SERVICE_NO_RELAY_PEERS:
        metrics_add(METRIC_LIGHTPUSH_WITHOUT_PEERS, 1);
        break;
    case SERVICE_TOO_MANY_REQUESTS:
        metrics_add(METRIC_LIGHTPUSH_TOO_MANY, 1);
        break;
    case SERVICE_INTERNAL_ERROR:
    case SERVICE_UNAVAILABLE:
        metrics_add(METRIC_LIGHTPUSH_UNAVAILABLE, 1);
        break;
    case SERVICE_BAD_REQUEST:
    case SERVICE_NOT_FOUND:
    case SERVICE_TOO_LARGE:
    case SERVICE_INVALID_MESSAGE:
    case SERVICE_UNSUPPORTED_TOPIC:
        metrics_add(METRIC_LIGHTPUSH_REFUSED, 1);
        break;
    }
}

/* The legacy protocol has no codes: its clients tell by these words that nobody got the message. */
static const char *description_for(enum lightpush_version version, const struct fault *outcome)
{
    bool is_unheard = outcome->code == SERVICE_NO_RELAY_PEERS ||
                      outcome->code == SERVICE_UNSUPPORTED_TOPIC ||
                      outcome->description == seen_before;
    return version == LIGHTPUSH_LEGACY && is_unheard ? "not_published_to_any_peer"
                                                     : outcome->description;
}

static void answer(struct exchange *exchange, enum lightpush_version version,
        struct span request_id, const struct fault *outcome, const uint32_t *relay_peer_count)
{
    uint8_t message[LIGHTPUSH_ANSWER_MAX];
    struct lightpush_answer content = {.request_id = request_id,
            .description = span_of_text(description_for(version, outcome)),
            .code = (uint32_t)outcome->code,
            .has_relay_peer_count = relay_peer_count != NULL};
    if (relay_peer_count != NULL) {
        content.relay_peer_count = *relay_peer_count;
    }
    count_answer(outcome->code);
    size_t length = lightpush_answer_write(message, &content, version);
    exchange_answer_copy(exchange, span_of(message, length));
}

static void end_push(struct io_task *task)
{
    struct push_job *job = (struct push_job *)exchange_job_of(task);
    if (job->base.exchange != NULL) {
        struct fault outcome = {.code = job->code, .description = job->description};
        answer(job->base.exchange, job->version, span_of(job->request_id, job->request_id_length),
                &outcome, job->code == SERVICE_OK ? &job->relay_peer_count : NULL);
    }
    exchange_job_remove(&job->base);
    memory_free(job);
}

static struct fault fault_of(enum metric reason)
{
    switch ((int)reason) {
    case LEDGER_INTAKE_DUPLICATE:
        return (struct fault){SERVICE_INVALID_MESSAGE, seen_before};
    case LEDGER_INTAKE_NOT_DECODABLE:
        return (struct fault){SERVICE_INVALID_MESSAGE, "message is malformed"};
    case LEDGER_INTAKE_PAYLOAD_MISSING:
        return (struct fault){SERVICE_INVALID_MESSAGE, status_text(STATUS_PAYLOAD_MISSING)};
    case LEDGER_INTAKE_CONTENT_TOPIC_MISSING:
        return (struct fault){SERVICE_INVALID_MESSAGE, status_text(STATUS_CONTENT_TOPIC_MISSING)};
    case LEDGER_INTAKE_CONTENT_TOPIC_NOT_UTF8:
        return (struct fault){SERVICE_INVALID_MESSAGE, "content topic is not UTF-8"};
    case LEDGER_INTAKE_META_TOO_LONG:
        return (struct fault){
                SERVICE_INVALID_MESSAGE, "invalid length for Meta field: longer than 64 bytes"};
    case LEDGER_INTAKE_NOT_SIGNED:
        return (struct fault){SERVICE_INVALID_MESSAGE, "message has not the shard's signature"};
    case LEDGER_INTAKE_TIMESTAMP_OUT_OF_RANGE:
        return (struct fault){SERVICE_INVALID_MESSAGE, "timestamp is too far from our clock"};
    case LEDGER_INTAKE_TOO_LARGE:
        return (struct fault){SERVICE_TOO_LARGE, "message is too large"};
    case LEDGER_INTAKE_TOPIC_NOT_SUBSCRIBED:
        return (struct fault){SERVICE_UNSUPPORTED_TOPIC, "pubsub topic is not supported"};
    default:
        return (struct fault){SERVICE_UNAVAILABLE, "node is out of memory"};
    }
}

/* On the lane's decode thread. */
void lightpush_settle(
        void *context, void *completion, const struct lane_decision *decision, size_t peer_count)
{
    (void)context;
    struct push_job *job = completion;
    struct fault outcome = {SERVICE_OK, "OK"};
    if (decision->verdict != LANE_NEW) {
        outcome = fault_of(decision->reason);
    } else if (peer_count == 0) {
        outcome = (struct fault){SERVICE_NO_RELAY_PEERS, "No peers for topic, skipping publish"};
    }
    job->code = outcome.code;
    job->description = outcome.description;
    job->relay_peer_count = (uint32_t)peer_count;
    exchange_job_post(&job->base, end_push);
}

/* Requests. */

static const struct topic *find_sharded_topic(
        const struct lightpush *lightpush, struct span message, struct fault *fault)
{
    struct content_topic content_topic;
    uint16_t index;
    char name[SHARD_TOPIC_MAX_BYTES];
    *fault = (struct fault){SERVICE_INVALID_MESSAGE,
            "Pubsub topic must be specified when static sharding is enabled"};
    if (lightpush->options.network_shards == 0) {
        return NULL;
    }
    *fault = (struct fault){SERVICE_INVALID_MESSAGE, "Invalid content-topic: it has no shard"};
    if (content_topic_parse(&content_topic, lightpush_content_topic(message)) != STATUS_OK ||
            content_topic_shard(&index, &content_topic, lightpush->options.network_shards) !=
                    STATUS_OK) {
        return NULL;
    }
    *fault = fault_of(LEDGER_INTAKE_TOPIC_NOT_SUBSCRIBED);
    size_t length = shard_format(
            name, (struct shard){.cluster = lightpush->options.cluster_id, .index = index});
    return topic_registry_find_subscribed(lightpush->options.intake->topics, span_of(name, length));
}

/* NULL: *fault says why. */
static const struct topic *find_topic(const struct lightpush *lightpush,
        const struct lightpush_request *request, struct fault *fault)
{
    if (!request->has_pubsub_topic) {
        return find_sharded_topic(lightpush, request->message, fault);
    }
    if (request->pubsub_topic.length == 0) {
        *fault = (struct fault){SERVICE_BAD_REQUEST, "topic must not be empty"};
        return NULL;
    }
    *fault = fault_of(LEDGER_INTAKE_TOPIC_NOT_SUBSCRIBED);
    return topic_registry_find_subscribed(lightpush->options.intake->topics, request->pubsub_topic);
}

static struct fault check_request(
        const struct entrance *entrance, const struct lightpush_request *request, enum status read)
{
    const struct lightpush *lightpush = entrance->lightpush;
    if (read != STATUS_OK) {
        return (struct fault){SERVICE_BAD_REQUEST, status_text(read)};
    }
    if (request->request_id.length == 0) {
        return (struct fault){SERVICE_BAD_REQUEST, "request_id is missing"};
    }
    if (request->request_id.length > LIGHTPUSH_REQUEST_ID_MAX) {
        return (struct fault){SERVICE_BAD_REQUEST, "request_id is too long"};
    }
    if (!request->has_message) {
        return (struct fault){SERVICE_BAD_REQUEST, entrance->version == LIGHTPUSH_LEGACY
                                                           ? "empty_request_body_failure"
                                                           : "message is missing"};
    }
    if (request->message.length > lightpush->options.message_bytes_max) {
        return (struct fault){SERVICE_TOO_LARGE, lightpush->too_large};
    }
    return (struct fault){0};
}

static struct push_job *make_job(const struct entrance *entrance, struct span request_id)
{
    struct push_job *job = memory_allocate(sizeof(*job) + request_id.length);
    if (job != NULL) {
        memset(job, 0, sizeof(*job));
        job->version = entrance->version;
        job->request_id_length = request_id.length;
        memcpy(job->request_id, request_id.bytes, request_id.length);
    }
    return job;
}

/* The frame that the request was read into. Without credit then, it may have some now, for a copy. */
static struct frame *take_frame(
        struct lightpush *lightpush, struct exchange *exchange, struct span *message)
{
    struct frame *frame = exchange_take_memory(exchange);
    if (frame != NULL) {
        return frame;
    }
    frame = frame_try_create(lightpush->options.budget, FRAME_BUDGET_COMPLETE, message->length);
    if (frame != NULL && message->length > 0) {
        memory_copy_message(frame_bytes(frame), message->bytes, message->length);
        message->bytes = frame_bytes(frame);
    }
    return frame;
}

static enum status post_push(struct lightpush *lightpush, struct push_job *job,
        struct exchange *exchange, struct span message, const struct topic *topic)
{
    struct frame *frame = take_frame(lightpush, exchange, &message);
    if (frame == NULL) {
        return STATUS_NO_MEMORY;
    }
    struct intake_source source = {.received_ns = clock_wall_ns(),
            .received_monotonic_ns = clock_monotonic_ns(),
            .connection = job->base.connection,
            .origin = ORIGIN_LIGHTPUSH};
    struct local_message local = {.bytes = message, .topic = topic, .completion = job};
    enum status status = intake_post_part(lightpush->options.intake, frame, &local, &source);
    if (status != STATUS_OK) {
        frame_unref(frame);
    }
    return status;
}

static struct fault start_push(const struct entrance *entrance, struct exchange *exchange,
        const struct lightpush_request *request, const struct topic *topic)
{
    struct lightpush *lightpush = entrance->lightpush;
    if (intake_is_behind(lightpush->options.intake)) {
        return (struct fault){SERVICE_UNAVAILABLE, "messages wait for most of the node's peers"};
    }
    struct push_job *job = make_job(entrance, request->request_id);
    if (job == NULL) {
        return (struct fault){SERVICE_UNAVAILABLE, "node is out of memory"};
    }
    enum status status = exchange_jobs_add(&lightpush->jobs, &job->base, exchange);
    if (status != STATUS_OK) {
        memory_free(job);
        return status == STATUS_LIMIT_REACHED
                       ? (struct fault){SERVICE_TOO_MANY_REQUESTS, "too many pushes at a time"}
                       : (struct fault){SERVICE_UNAVAILABLE, "too many pushes of all peers"};
    }
    status = post_push(lightpush, job, exchange, request->message, topic);
    if (status != STATUS_OK) {
        exchange_set_context(exchange, NULL);
        exchange_job_remove(&job->base);
        memory_free(job);
        return (struct fault){SERVICE_UNAVAILABLE, "node is out of memory"};
    }
    return (struct fault){0};
}

static void on_requested(void *context, struct exchange *exchange, struct span bytes)
{
    const struct entrance *entrance = context;
    struct lightpush_request request;
    const struct topic *topic = NULL;
    enum status status = lightpush_request_read(&request, bytes, entrance->version);
    struct fault fault = check_request(entrance, &request, status);
    metrics_add(METRIC_LIGHTPUSH_REQUESTS, 1);
    if (fault.code == 0) {
        topic = find_topic(entrance->lightpush, &request, &fault);
    }
    if (topic != NULL) {
        fault = start_push(entrance, exchange, &request, topic);
    }
    if (fault.code != 0) {
        answer(exchange, entrance->version, request.request_id, &fault, NULL);
    }
}

/* The request id comes first as a rule; where it does not, or is cut, the answer has none. */
static void on_declined(
        void *context, struct exchange *exchange, enum status reason, struct span beginning)
{
    const struct entrance *entrance = context;
    struct lightpush_request request;
    struct fault fault = {SERVICE_TOO_LARGE, entrance->lightpush->too_large};
    /* What is cut is not complete; what was read before the cut is all that is wanted. */
    enum status status = lightpush_request_read(&request, beginning, entrance->version);
    (void)status;
    if (reason == STATUS_LIMIT_REACHED) {
        fault = (struct fault){SERVICE_TOO_MANY_REQUESTS,
                entrance->version == LIGHTPUSH_V3 ? "Request rejected due to too many requests"
                                                  : "TOO_MANY_REQUESTS"};
    }
    metrics_add(METRIC_LIGHTPUSH_REQUESTS, 1);
    answer(exchange, entrance->version, request.request_id, &fault, NULL);
}

static void on_abandoned(void *context, struct exchange *exchange)
{
    (void)context;
    exchange_job_abandon(exchange);
}

static enum status open_entrance(struct lightpush *lightpush, struct entrance *entrance,
        enum lightpush_version version, const char *id)
{
    bool is_v3 = version == LIGHTPUSH_V3;
    entrance->lightpush = lightpush;
    entrance->version = version;
    entrance->limit = (struct exchange_limit){
            .served = is_v3 ? METRIC_LIGHTPUSH_SERVED : METRIC_LEGACY_LIGHTPUSH_SERVED,
            .rejected = is_v3 ? METRIC_LIGHTPUSH_REJECTED : METRIC_LEGACY_LIGHTPUSH_REJECTED};
    enum status status = rate_limiter_create(&entrance->limit.limiter, lightpush->options.rate);
    if (status != STATUS_OK) {
        return status;
    }
    entrance->server = (struct exchange_server){.id = id,
            .request_max = lightpush->options.message_bytes_max + REQUEST_OVERHEAD_MAX,
            .memory = &lightpush->memory,
            .limit = &entrance->limit,
            .requested = on_requested,
            .declined = on_declined,
            .abandoned = on_abandoned,
            .context = entrance};
    return exchange_serve(lightpush->options.net_switch, &entrance->server);
}

enum status lightpush_create(struct lightpush **out, const struct lightpush_options *options)
{
    struct lightpush *lightpush = memory_allocate_zeroed(sizeof(*lightpush));
    if (lightpush == NULL) {
        return STATUS_NO_MEMORY;
    }
    lightpush->options = *options;
    snprintf(lightpush->too_large, sizeof(lightpush->too_large),
            "Message size exceeded maximum of %zu bytes", options->message_bytes_max);
    lightpush->jobs.connection_max = options->connection_pushes_max;
    lightpush->jobs.max = options->pushes_max;
    lightpush->memory = (struct exchange_memory){.create = create_frame,
            .bytes = bytes_of_frame,
            .destroy = drop_frame,
            .context = lightpush};
    enum status status =
            open_entrance(lightpush, &lightpush->v3, LIGHTPUSH_V3, LIGHTPUSH_PROTOCOL_ID);
    if (status == STATUS_OK) {
        status = open_entrance(
                lightpush, &lightpush->legacy, LIGHTPUSH_LEGACY, LIGHTPUSH_LEGACY_PROTOCOL_ID);
    }
    if (status != STATUS_OK) {
        lightpush_destroy(&lightpush);
        return status;
    }
    *out = lightpush;
    return STATUS_OK;
}

void lightpush_destroy(struct lightpush **lightpush)
{
    if (*lightpush == NULL) {
        return;
    }
    assert(lightpush_pending(*lightpush) == 0);
    rate_limiter_destroy(&(*lightpush)->v3.limit.limiter);
    rate_limiter_destroy(&(*lightpush)->legacy.limit.limiter);
    memory_free(*lightpush);
    *lightpush = NULL;
}

size_t lightpush_pending(struct lightpush *lightpush)
{
    return exchange_jobs_count(&lightpush->jobs);
}
