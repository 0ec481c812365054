/* SPDX-License-Identifier: MIT */
#include "net/protocols/store.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/protocols/exchange_jobs.h"
#include "net/protocols/service_code.h"
#include "net/protocols/store_answer.h"
#include "net/protocols/store_message.h"

struct store {
    struct store_options options;
    struct exchange_limit limit;
    struct exchange_server server;
    struct exchange_jobs jobs;
    atomic_size_t answers_bytes;
};

struct query_job {
    struct exchange_job base;
    struct archive_job archive_job;
    struct store *store;
    struct store_request request;
    struct store_answer *answer; /* NULL: code and description say why */
    size_t charged;              /* of answers_bytes */
    enum service_code code;
    const char *description;
    uint8_t bytes[]; /* the request */
};

static void count_answer(enum service_code code)
{
    switch (code) {
    case SERVICE_OK:
        metrics_add(METRIC_STORE_ANSWERED, 1);
        break;
    case SERVICE_TOO_MANY_REQUESTS:
        metrics_add(METRIC_STORE_TOO_MANY, 1);
        break;
    case SERVICE_INTERNAL_ERROR:
    case SERVICE_UNAVAILABLE:
        metrics_add(METRIC_STORE_UNAVAILABLE, 1);
        break;
    case SERVICE_BAD_REQUEST:
    case SERVICE_NOT_FOUND:
    case SERVICE_TOO_LARGE:
    case SERVICE_INVALID_MESSAGE:
    case SERVICE_UNSUPPORTED_TOPIC:
    case SERVICE_NO_RELAY_PEERS:
        metrics_add(METRIC_STORE_BAD_REQUESTS, 1);
        break;
    }
}

static void answer_code(struct exchange *exchange, struct span request_id, enum service_code code,
        const char *description)
{
    uint8_t message[STORE_ANSWER_HEAD_MAX + 256];
    struct span text = span_of_text(description);
    assert(text.length < 256);
    if (request_id.length > STORE_REQUEST_ID_MAX) {
        request_id = span_of(NULL, 0);
    }
    uint8_t *end = store_write_head(message, request_id, (uint32_t)code, text);
    count_answer(code);
    exchange_answer_copy(exchange, span_of(message, (size_t)(end - message)));
}

static void free_job(struct query_job *job)
{
    if (job->charged > 0) {
        /* relaxed: a sum that nothing is read by */
        atomic_fetch_sub_explicit(&job->store->answers_bytes, job->charged, memory_order_relaxed);
    }
    store_answer_destroy(&job->answer);
    store_request_fini(&job->request);
    memory_free(job);
}

/* io thread */

static size_t next_pieces(void *context, struct muxer_piece pieces[], size_t max)
{
    struct query_job *job = context;
    return store_answer_next_pieces(job->answer, pieces, max);
}

static void end_job(void *context)
{
    struct query_job *job = context;
    exchange_job_remove(&job->base);
    free_job(job);
}

static void send_answer(struct io_task *task)
{
    struct query_job *job = (struct query_job *)exchange_job_of(task);
    struct exchange *exchange = job->base.exchange;
    if (exchange == NULL) {
        metrics_add(METRIC_STORE_CANCELLED, 1);
        end_job(job);
    } else if (job->answer == NULL) {
        answer_code(exchange, job->request.request_id, job->code, job->description);
        end_job(job);
    } else {
        struct exchange_body body = {.length = store_answer_length(job->answer),
                .next = next_pieces,
                .done = end_job,
                .context = job};
        count_answer(SERVICE_OK);
        metrics_add(METRIC_STORE_MESSAGES, store_answer_rows(job->answer));
        exchange_answer_body(exchange, &body);
    }
}

/* query thread */

struct page_sink {
    struct query_job *job;
    bool is_full;
};

static enum status take_row(void *context, const struct archive_row *row)
{
    struct page_sink *sink = context;
    struct query_job *job = sink->job;
    struct store_answer *answer = job->answer;
    bool has_data = job->request.query.include_data;
    if (exchange_job_is_cancelled(&job->base)) {
        return STATUS_CLOSED;
    }
    if (store_answer_rows(answer) > 0 && store_answer_length_with(answer, row, has_data) >
                                                 job->store->options.answer_bytes_max) {
        sink->is_full = true;
        return STATUS_TOO_LARGE;
    }
    return store_answer_add(answer, row, has_data);
}

/*
 * One attempt at the page. When it is larger than an answer may be, *limit becomes one that is worth
 * trying: a page is a page from its paging end, so what fits of a backward one is not known yet.
 */
static enum status make_page(
        struct query_job *job, struct archive_reader *reader, uint64_t *limit, bool *is_full)
{
    struct page_sink sink = {.job = job};
    struct archive_page page;
    struct archive_query query = job->request.query;
    query.limit = *limit;
    enum status status = store_answer_create(&job->answer, job->request.request_id);
    if (status == STATUS_OK) {
        status = archive_query(reader, &query, take_row, &sink, &page);
    }
    if (status == STATUS_OK) {
        status = store_answer_finish(job->answer, &page);
    }
    if (status != STATUS_OK) {
        *is_full = sink.is_full;
        size_t rows = job->answer != NULL ? store_answer_rows(job->answer) : 0;
        *limit = query.is_backward ? (*limit + 1) / 2 : rows;
        store_answer_destroy(&job->answer);
    }
    return status;
}

static enum status answer_from(struct query_job *job, struct archive_reader *reader)
{
    uint64_t limit = job->request.query.limit;
    limit = limit == 0 ? ARCHIVE_PAGE_DEFAULT : limit;
    limit = limit < ARCHIVE_PAGE_MAX ? limit : ARCHIVE_PAGE_MAX;
    for (;;) {
        bool is_full = false;
        enum status status = make_page(job, reader, &limit, &is_full);
        if (status == STATUS_OK || !is_full) {
            return status;
        }
    }
}

static enum status charge_answer(struct query_job *job)
{
    struct store *store = job->store;
    size_t length = store_answer_length(job->answer);
    /* relaxed: a sum that nothing is read by */
    size_t before = atomic_fetch_add_explicit(&store->answers_bytes, length, memory_order_relaxed);
    job->charged = length;
    if (before + length <= store->options.answers_bytes_max) {
        return STATUS_OK;
    }
    store_answer_destroy(&job->answer);
    return STATUS_LIMIT_REACHED;
}

static void explain(struct query_job *job, enum status status)
{
    bool is_bad = status == STATUS_BAD_QUERY || status == STATUS_BAD_CURSOR;
    job->code = is_bad ? SERVICE_BAD_REQUEST : SERVICE_UNAVAILABLE;
    job->description = status_text(status);
}

static void run_job(struct archive_job *archive_job, struct archive_reader *reader)
{
    struct query_job *job =
            (struct query_job *)((char *)archive_job - offsetof(struct query_job, archive_job));
    enum status status = exchange_job_is_cancelled(&job->base) ? STATUS_CLOSED : STATUS_OK;
    if (status == STATUS_OK && clock_monotonic_ns() >= job->request.query.deadline_ns) {
        status = STATUS_TIMED_OUT;
    }
    if (status == STATUS_OK) {
        status = answer_from(job, reader);
    }
    if (status == STATUS_OK) {
        status = charge_answer(job);
    }
    explain(job, status);
    exchange_job_post(&job->base, send_answer);
}

/* io thread */

static struct query_job *make_job(struct store *store, struct span request)
{
    struct query_job *job = memory_allocate(sizeof(*job) + request.length);
    if (job == NULL) {
        return NULL;
    }
    memset(job, 0, sizeof(*job));
    job->store = store;
    if (request.length > 0) {
        memcpy(job->bytes, request.bytes, request.length);
    }
    return job;
}

/* Whether the query is about more time than one may be. Without an end it goes on until now. */
static bool is_too_long(const struct store *store, const struct archive_query *query)
{
    uint64_t max_ns = store->options.time_range_max_ns;
    int64_t end_ns = query->has_time_end ? query->time_end_ns : clock_wall_ns();
    if (max_ns == 0 || query->hash_count > 0) {
        return false;
    }
    return !query->has_time_start ||
           (end_ns > query->time_start_ns &&
                   (uint64_t)end_ns - (uint64_t)query->time_start_ns > max_ns);
}

/* NULL: it may be carried out. */
static const char *find_fault(
        const struct store *store, const struct store_request *request, enum status read)
{
    const struct archive_query *query = &request->query;
    if (read == STATUS_LIMIT_REACHED) {
        return "too many content topics, or the request id is too long";
    }
    if (read != STATUS_OK) {
        return status_text(read);
    }
    if (request->request_id.length == 0) {
        return "request_id is missing";
    }
    if (query->has_time_start && query->has_time_end && query->time_start_ns > query->time_end_ns) {
        return "time_start is after time_end";
    }
    if (is_too_long(store, query)) {
        return "time range is too long";
    }
    return NULL;
}

static void start_job(struct query_job *job, struct exchange *exchange)
{
    struct store *store = job->store;
    struct span request_id = job->request.request_id;
    enum status status = exchange_jobs_add(&store->jobs, &job->base, exchange);
    if (status != STATUS_OK) {
        bool is_own = status == STATUS_LIMIT_REACHED;
        answer_code(exchange, request_id, is_own ? SERVICE_TOO_MANY_REQUESTS : SERVICE_UNAVAILABLE,
                is_own ? "too many queries at a time" : "too many queries of all peers");
        free_job(job);
        return;
    }
    job->request.query.deadline_ns =
            clock_monotonic_ns() + store->options.timeout_ms * NANOSECONDS_PER_MILLISECOND;
    job->request.query.abandoned = &job->base.is_cancelled;
    job->archive_job.run = run_job;
    job->archive_job.origin = job->base.connection;
    archive_jobs_post(store->options.jobs, &job->archive_job);
}

static void on_requested(void *context, struct exchange *exchange, struct span request)
{
    struct store *store = context;
    struct query_job *job = make_job(store, request);
    if (job == NULL) {
        exchange_refuse(exchange, STATUS_NO_MEMORY);
        return;
    }
    enum status status = store_request_read(&job->request, span_of(job->bytes, request.length));
    const char *fault = find_fault(store, &job->request, status);
    if (job->request.query.hash_count > 0) {
        /* js-waku names it even then. A hash has the topic in it. */
        job->request.query.pubsub_topic = span_of(NULL, 0);
    }
    if (fault == NULL) {
        start_job(job, exchange);
        return;
    }
    bool is_ours = status == STATUS_NO_MEMORY;
    answer_code(exchange, job->request.request_id,
            is_ours ? SERVICE_UNAVAILABLE : SERVICE_BAD_REQUEST, fault);
    free_job(job);
}

/* The request id comes first as a rule; where it does not, or is cut, the answer has none. */
static void on_declined(
        void *context, struct exchange *exchange, enum status reason, struct span beginning)
{
    bool is_rate = reason == STATUS_LIMIT_REACHED;
    (void)context;
    answer_code(exchange, store_request_id_of(beginning),
            is_rate ? SERVICE_TOO_MANY_REQUESTS : SERVICE_BAD_REQUEST,
            is_rate ? "TOO_MANY_REQUESTS" : "request is too large");
}

static void on_abandoned(void *context, struct exchange *exchange)
{
    (void)context;
    exchange_job_abandon(exchange);
}

enum status store_create(struct store **out, const struct store_options *options)
{
    struct store *store = memory_allocate_zeroed(sizeof(*store));
    if (store == NULL) {
        return STATUS_NO_MEMORY;
    }
    store->options = *options;
    store->jobs.connection_max = options->connection_queries_max;
    store->jobs.max = options->queries_max;
    store->limit = (struct exchange_limit){
            .served = METRIC_STORE_SERVED, .rejected = METRIC_STORE_REJECTED};
    store->server = (struct exchange_server){.id = STORE_PROTOCOL_ID,
            .request_max = STORE_REQUEST_MAX,
            .limit = &store->limit,
            .requested = on_requested,
            .declined = on_declined,
            .abandoned = on_abandoned,
            .context = store};
    enum status status = rate_limiter_create(&store->limit.limiter, options->rate);
    if (status == STATUS_OK) {
        status = exchange_serve(options->net_switch, &store->server);
    }
    if (status != STATUS_OK) {
        store_destroy(&store);
        return status;
    }
    *out = store;
    return STATUS_OK;
}

void store_destroy(struct store **store)
{
    if (*store == NULL) {
        return;
    }
    assert(store_pending(*store) == 0);
    rate_limiter_destroy(&(*store)->limit.limiter);
    memory_free(*store);
    *store = NULL;
}

size_t store_pending(struct store *store)
{
    return exchange_jobs_count(&store->jobs);
}
