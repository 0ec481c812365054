/* SPDX-License-Identifier: MIT */

/* Requests of filter-subscribe: checked on the io thread, carried out on the filter thread. */

#include "net/protocols/filter.h"

#include <assert.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "codec/topics.h"
#include "net/protocols/filter_private.h"
#include "net/protocols/service_code.h"
#include "router/topic_registry.h"

enum {
    TOPIC_MAX_BYTES = 1024,
    REQUEST_SLACK = 16 * 1024, /* of a request beyond its content topics */
    INBOUND_STREAMS_MAX = 64
};

/* Why a request is refused; code 0: it is not. */
struct fault {
    uint32_t code;
    const char *description;
};

struct subscribe_job {
    struct exchange_job base;
    struct filter_request request;
    struct filter *filter;
    struct peer_id peer;
    enum filter_verb verb;
    struct subscription_request criteria;
    enum subscription_result result;
    struct span request_id;
    char (*shard_names)[SHARD_TOPIC_MAX_BYTES]; /* of the pubsub topics that autosharding gave */
    uint8_t bytes[];                            /* the request, then what its criteria point to */
};

/* Answers. */

static void count_answer(uint32_t code)
{
    switch (code) {
    case SERVICE_OK:
        metrics_add(METRIC_FILTER_ACCEPTED, 1);
        break;
    case SERVICE_NOT_FOUND:
        metrics_add(METRIC_FILTER_NOT_FOUND, 1);
        break;
    case SERVICE_TOO_MANY_REQUESTS:
        metrics_add(METRIC_FILTER_TOO_MANY, 1);
        break;
    case SERVICE_UNAVAILABLE:
        metrics_add(METRIC_FILTER_UNAVAILABLE, 1);
        break;
    default:
        metrics_add(METRIC_FILTER_BAD_REQUESTS, 1);
        break;
    }
}

/* As the reference begins its descriptions. */
static const char *prefix_of(uint32_t code)
{
    switch (code) {
    case SERVICE_BAD_REQUEST:
        return "BAD_REQUEST: ";
    case SERVICE_NOT_FOUND:
        return "NOT_FOUND: ";
    case SERVICE_UNAVAILABLE:
        return "SERVICE_UNAVAILABLE: ";
    default:
        return "";
    }
}

static void answer(struct exchange *exchange, struct span request_id, const struct fault *outcome)
{
    uint8_t message[FILTER_ANSWER_MAX];
    char text[FILTER_DESCRIPTION_MAX + 32];
    snprintf(text, FILTER_DESCRIPTION_MAX, "%s%s", prefix_of(outcome->code), outcome->description);
    struct filter_answer content = {
            .request_id = request_id, .description = span_of_text(text), .code = outcome->code};
    count_answer(outcome->code);
    size_t length = filter_answer_write(message, &content);
    exchange_answer_copy(exchange, span_of(message, length));
}

static void answer_result(struct exchange *exchange, const struct subscribe_job *job)
{
    char full[FILTER_DESCRIPTION_MAX];
    struct fault outcome = {.code = subscription_result_code(job->result),
            .description = subscription_result_text(job->result)};
    if (job->result == SUBSCRIPTION_FULL) {
        snprintf(
                full, sizeof(full), "%s: %zu", outcome.description, job->filter->options.peers_max);
        outcome.description = full;
    }
    answer(exchange, job->request_id, &outcome);
}

static void end_request(struct io_task *task)
{
    struct subscribe_job *job = (struct subscribe_job *)exchange_job_of(task);
    if (job->base.exchange != NULL) {
        answer_result(job->base.exchange, job);
    } else {
        metrics_add(METRIC_FILTER_ABANDONED, 1);
    }
    exchange_job_remove(&job->base);
    memory_free(job);
}

/* On the filter thread. */

static enum subscription_result subscribe(
        const struct subscribe_job *job, struct subscriptions *subscriptions, uint64_t now_ns)
{
    bool is_new;
    struct filter_subscriber *fresh = filter_subscriber_create(job->filter, &job->peer, now_ns);
    if (fresh == NULL) {
        return SUBSCRIPTION_FULL;
    }
    enum subscription_result result = subscriptions_subscribe(subscriptions,
            (struct subscriber_entry){.id = fresh->id, .context = fresh}, &job->criteria, now_ns,
            &is_new);
    if (!is_new) {
        filter_subscriber_unref(fresh);
    }
    return result;
}

static void carry_out(struct filter_request *request, struct subscriptions *subscriptions)
{
    struct subscribe_job *job =
            (struct subscribe_job *)((char *)request - offsetof(struct subscribe_job, request));
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t id = filter_number_of(job->filter, &job->peer);
    switch (job->verb) {
    case FILTER_SUBSCRIBER_PING:
        job->result = subscriptions_ping(subscriptions, id, now_ns);
        break;
    case FILTER_SUBSCRIBE:
        job->result = subscribe(job, subscriptions, now_ns);
        break;
    case FILTER_UNSUBSCRIBE:
        job->result = subscriptions_unsubscribe(subscriptions, id, &job->criteria, now_ns);
        break;
    case FILTER_UNSUBSCRIBE_ALL:
        job->result = subscriptions_unsubscribe_all(subscriptions, id, now_ns);
        break;
    }
    struct filter_subscriber *subscriber = subscriptions_find_context(subscriptions, id);
    if (job->result == SUBSCRIPTION_OK && subscriber != NULL) {
        filter_subscriber_attach(subscriber, job->base.connection);
    }
    exchange_job_post(&job->base, end_request);
}

/* Requests. */

static void count_request(uint64_t verb)
{
    static const enum metric metrics[] = {METRIC_FILTER_PINGS, METRIC_FILTER_SUBSCRIBES,
            METRIC_FILTER_UNSUBSCRIBES, METRIC_FILTER_UNSUBSCRIBES_ALL};
    metrics_add(verb <= FILTER_UNSUBSCRIBE_ALL ? metrics[verb] : METRIC_FILTER_REQUESTS_BAD, 1);
}

static bool has_criteria(uint64_t verb)
{
    return verb == FILTER_SUBSCRIBE || verb == FILTER_UNSUBSCRIBE;
}

static struct fault bad_request(const char *description)
{
    return (struct fault){SERVICE_BAD_REQUEST, description};
}

/* text is for a description that is made here. */
static struct fault check_request(const struct filter *filter,
        const struct filter_request_view *view, enum status read, char text[FILTER_DESCRIPTION_MAX])
{
    if (read != STATUS_OK) {
        return bad_request(status_text(read));
    }
    if (view->request_id.length == 0) {
        return bad_request("request_id is missing");
    }
    if (view->request_id.length > FILTER_REQUEST_ID_MAX) {
        return bad_request("request_id is too long");
    }
    if (view->verb > FILTER_UNSUBSCRIBE_ALL) {
        return bad_request("unknown filter_subscribe_type");
    }
    if (!has_criteria(view->verb)) {
        return (struct fault){0};
    }
    bool has_topic = view->pubsub_topic.length > 0 || filter->options.network_shards > 0;
    if (!has_topic || view->content_topic_count == 0) {
        return bad_request("pubsubTopic and contentTopics must be specified");
    }
    if (view->content_topic_count > filter->options.topics_per_request_max) {
        snprintf(text, FILTER_DESCRIPTION_MAX, "exceeds maximum content topics: %zu",
                filter->options.topics_per_request_max);
        return bad_request(text);
    }
    return (struct fault){0};
}

static void *place_of(uint8_t **end, size_t bytes)
{
    void *place = *end;
    *end += bytes;
    return place;
}

/* The request's bytes are the job's own: the exchange may be gone before it is carried out. */
static struct subscribe_job *make_job(
        struct filter *filter, struct span bytes, const struct filter_request_view *view)
{
    size_t count = has_criteria(view->verb) ? view->content_topic_count : 0;
    size_t shards = view->pubsub_topic.length == 0 ? count : 0;
    size_t padding = _Alignof(struct span);
    struct subscribe_job *job =
            memory_allocate(sizeof(*job) + bytes.length + padding + count * sizeof(struct span) +
                            shards * (sizeof(struct span) + SHARD_TOPIC_MAX_BYTES));
    if (job == NULL) {
        return NULL;
    }
    memset(job, 0, sizeof(*job));
    job->filter = filter;
    job->verb = (enum filter_verb)view->verb;
    job->request.carry_out = carry_out;
    memcpy(job->bytes, bytes.bytes, bytes.length);
    uint8_t *end = job->bytes + bytes.length;
    end += padding - (uintptr_t)end % padding;
    struct span *topics = place_of(&end, count * sizeof(struct span));
    struct span *pubsub_topics = place_of(&end, shards * sizeof(struct span));
    job->shard_names = place_of(&end, shards * SHARD_TOPIC_MAX_BYTES);
    struct span rest = span_of(job->bytes, bytes.length);
    for (size_t i = 0; i < count && filter_request_next_topic(&rest, &topics[i]); i++) {
    }
    job->criteria = (struct subscription_request){.content_topics = topics,
            .content_topic_count = count,
            .pubsub_topics = shards > 0 ? pubsub_topics : NULL};
    return job;
}

static struct fault shard_topics(const struct filter *filter, struct subscribe_job *job)
{
    struct span *out = (struct span *)(uintptr_t)job->criteria.pubsub_topics;
    for (size_t i = 0; i < job->criteria.content_topic_count; i++) {
        struct content_topic topic;
        uint16_t index;
        if (content_topic_parse(&topic, job->criteria.content_topics[i]) != STATUS_OK ||
                content_topic_shard(&index, &topic, filter->options.network_shards) != STATUS_OK) {
            return bad_request("content topic has no shard");
        }
        struct shard shard = {.cluster = filter->options.cluster_id, .index = index};
        size_t length = shard_format(job->shard_names[i], shard);
        out[i] = span_of(job->shard_names[i], length);
    }
    return (struct fault){0};
}

/*
 * Whether messages of the topic may come: it is one that the node takes part in, or a shard of our
 * network, which it may join at any time. A subscription to anything else would wait for ever.
 */
static struct fault check_pubsub_topic(
        const struct filter *filter, struct span topic, char text[FILTER_DESCRIPTION_MAX])
{
    struct shard shard;
    uint16_t shards = filter->options.network_shards;
    uint32_t last = (shards > 0 ? shards : (uint32_t)CLUSTER_SHARDS_MAX) - 1;
    if (topic_registry_find_subscribed(filter->options.intake->topics, topic) != NULL) {
        return (struct fault){0};
    }
    if (shard_parse(&shard, topic) != STATUS_OK) {
        return bad_request("pubsub topic is neither a shard nor one that this node takes part in");
    }
    if (shard.cluster != filter->options.cluster_id) {
        snprintf(text, FILTER_DESCRIPTION_MAX,
                "pubsub topic is of cluster %u, this node is of cluster %u", shard.cluster,
                filter->options.cluster_id);
        return bad_request(text);
    }
    if (shard.index > last) {
        snprintf(text, FILTER_DESCRIPTION_MAX,
                "pubsub topic is of shard %u, the last one of this network is %u", shard.index,
                last);
        return bad_request(text);
    }
    return (struct fault){0};
}

/* text is for a description that is made here. */
static struct fault check_topics(const struct filter *filter, const struct subscribe_job *job,
        char text[FILTER_DESCRIPTION_MAX])
{
    const struct subscription_request *criteria = &job->criteria;
    for (size_t i = 0; i < criteria->content_topic_count; i++) {
        size_t length = criteria->content_topics[i].length;
        if (length == 0 || length > TOPIC_MAX_BYTES) {
            return bad_request("a content topic is empty or too long");
        }
    }
    bool is_named = criteria->content_topic_count > 0 && criteria->pubsub_topics == NULL;
    return is_named && job->verb == FILTER_SUBSCRIBE
                   ? check_pubsub_topic(filter, criteria->pubsub_topic, text)
                   : (struct fault){0};
}

static struct fault post_request(
        struct filter *filter, struct exchange *exchange, struct subscribe_job *job)
{
    enum status status = exchange_jobs_add(&filter->jobs, &job->base, exchange);
    if (status == STATUS_LIMIT_REACHED) {
        return (struct fault){SERVICE_TOO_MANY_REQUESTS, "too many requests at a time"};
    }
    if (status != STATUS_OK) {
        return (struct fault){SERVICE_UNAVAILABLE, "too many requests of all peers"};
    }
    job->peer = *connection_peer(stream_connection(exchange_stream(exchange)));
    filter_link_post(
            filter->options.filter_link, filter_number_of(filter, &job->peer), &job->request);
    return (struct fault){0};
}

static struct fault start_request(struct filter *filter, struct exchange *exchange,
        struct span bytes, const struct filter_request_view *view,
        char text[FILTER_DESCRIPTION_MAX])
{
    struct fault fault = {0};
    struct subscribe_job *job = make_job(filter, bytes, view);
    if (job == NULL) {
        return (struct fault){SERVICE_UNAVAILABLE, "node is out of memory"};
    }
    struct filter_request_view own;
    enum status status = filter_request_read(&own, span_of(job->bytes, bytes.length));
    assert(status == STATUS_OK);
    job->request_id = own.request_id;
    job->criteria.pubsub_topic = own.pubsub_topic;
    if (job->criteria.pubsub_topics != NULL) {
        fault = shard_topics(filter, job);
    }
    if (fault.code == 0) {
        fault = check_topics(filter, job, text);
    }
    if (fault.code == 0) {
        fault = post_request(filter, exchange, job);
    }
    if (fault.code != 0) {
        memory_free(job);
    }
    return fault;
}

static void on_requested(void *context, struct exchange *exchange, struct span bytes)
{
    struct filter *filter = context;
    struct filter_request_view view;
    char text[FILTER_DESCRIPTION_MAX];
    enum status status = filter_request_read(&view, bytes);
    count_request(status == STATUS_OK ? view.verb : UINT64_MAX);
    struct fault fault = check_request(filter, &view, status, text);
    if (fault.code == 0) {
        fault = start_request(filter, exchange, bytes, &view, text);
    }
    if (fault.code != 0) {
        answer(exchange, view.request_id, &fault);
    }
}

/* The request id comes first as a rule; where it does not, or is cut, the answer has none. */
static void on_declined(
        void *context, struct exchange *exchange, enum status reason, struct span beginning)
{
    struct filter_request_view view;
    struct fault fault = bad_request("request is too large");
    enum status status = filter_request_read(&view, beginning);
    (void)context;
    (void)status; /* what was read before the cut is all that is wanted */
    if (reason == STATUS_LIMIT_REACHED) {
        fault = (struct fault){
                SERVICE_TOO_MANY_REQUESTS, "filter request rejected due rate limit exceeded"};
    }
    count_request(UINT64_MAX);
    answer(exchange, view.request_id, &fault);
}

static void on_abandoned(void *context, struct exchange *exchange)
{
    (void)context;
    exchange_job_abandon(exchange);
}

static enum status open_server(struct filter *filter)
{
    size_t topic = TOPIC_MAX_BYTES + 4; /* with tag and length */
    filter->limit = (struct exchange_limit){
            .served = METRIC_FILTER_SERVED, .rejected = METRIC_FILTER_REJECTED};
    enum status status = rate_limiter_create(&filter->limit.limiter, filter->options.rate);
    if (status != STATUS_OK) {
        return status;
    }
    filter->server = (struct exchange_server){.id = FILTER_SUBSCRIBE_PROTOCOL_ID,
            .request_max = filter->options.topics_per_request_max * topic + REQUEST_SLACK,
            .inbound_max = INBOUND_STREAMS_MAX,
            .limit = &filter->limit,
            .requested = on_requested,
            .declined = on_declined,
            .abandoned = on_abandoned,
            .context = filter};
    return exchange_serve(filter->options.net_switch, &filter->server);
}

enum status filter_create(struct filter **out, const struct filter_options *options)
{
    struct filter *filter = memory_allocate_zeroed(
            sizeof(*filter) + options->loop_count * sizeof(struct filter_shard));
    if (filter == NULL) {
        return STATUS_NO_MEMORY;
    }
    filter->options = *options;
    filter->jobs.connection_max = options->connection_requests_max;
    filter->jobs.max = options->requests_max;
    enum status status =
            RAND_bytes(filter->secret, sizeof(filter->secret)) == 1 ? STATUS_OK : STATUS_SYSTEM;
    if (status == STATUS_OK) {
        status = filter_push_init(filter);
    }
    if (status == STATUS_OK) {
        status = open_server(filter);
    }
    if (status != STATUS_OK) {
        filter_destroy(&filter);
        return status;
    }
    filter->options.loops = NULL;
    *out = filter;
    return STATUS_OK;
}

void filter_destroy(struct filter **filter_pointer)
{
    struct filter *filter = *filter_pointer;
    if (filter == NULL) {
        return;
    }
    assert(filter_pending(filter) == 0);
    filter_push_fini(filter);
    rate_limiter_destroy(&filter->limit.limiter);
    memory_free(filter);
    *filter_pointer = NULL;
}

size_t filter_pending(struct filter *filter)
{
    return exchange_jobs_count(&filter->jobs);
}
