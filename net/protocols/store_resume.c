/* SPDX-License-Identifier: MIT */
#include "net/protocols/store_resume.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/protocols/exchange.h"
#include "net/protocols/service_code.h"
#include "net/protocols/store_message.h"

enum {
    PEERS_MAX = 16, /* that have a store and are remembered */
    TICK_MS = 50,
    DESCRIPTION_LOGGED = 200,
    AHEAD_S = 20, /* the end of what is asked for, of the clock: others' are ahead of ours */
    PAGE_SLACK_BYTES = 1024 * 1024 /* of a page beside its messages */
};

enum resume_state {
    RESUME_WAITING, /* for a peer, or for the next attempt */
    RESUME_ASKING,
    RESUME_POSTING, /* the messages of a page */
    RESUME_OVER
};

struct store_resume {
    struct store_resume_options options;
    /* Connections whose peers have a store; 0: none. One may be gone. */
    atomic_size_t next_peer;
    _Atomic uint64_t peers[PEERS_MAX];

    /* control thread */
    uv_timer_t tick;
    bool is_tick_closed;
    enum resume_state state;
    unsigned failures;
    size_t turn; /* whose of peers it is */
    uint64_t attempt_at_ms;
    uint64_t connection;
    int64_t to_ns;
    bool has_cursor;
    uint8_t cursor[MESSAGE_HASH_BYTES];
    uint64_t message_count;
    uint64_t entry_count; /* of all pages, whatever became of them */
    size_t page_entry_count;
    uint64_t page_count;
    struct store_answer_view view; /* of the page, how far it was posted */
    bool is_entry_waiting;         /* for room */
    struct store_entry entry;

    /* the io thread's until it posts answered */
    struct io_task answered;
    enum status status;
    uint8_t *page;
    size_t page_length;
};

static uint64_t now_ms(void)
{
    return clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND;
}

/* io thread */

void store_resume_identified(struct store_resume *resume, struct connection *connection,
        const struct identify_info *info)
{
    bool is_wanted = !resume->options.has_peer ||
                     peer_id_equal(&resume->options.peer, connection_peer(connection));
    if (is_wanted && identify_info_has_protocol(info, STORE_PROTOCOL_ID)) {
        /* relaxed: a number that is found gone when it is used too late */
        size_t place = atomic_fetch_add_explicit(&resume->next_peer, 1, memory_order_relaxed);
        atomic_store_explicit(
                &resume->peers[place % PEERS_MAX], connection_id(connection), memory_order_relaxed);
    }
}

static void post_answer(struct store_resume *resume, enum status status)
{
    resume->status = status;
    io_loop_post(switch_control_loop(resume->options.net_switch), &resume->answered);
}

static void on_answer(void *context, enum status status, const char *protocol, struct span answer)
{
    struct store_resume *resume = context;
    (void)protocol;
    if (status == STATUS_OK) {
        resume->page = memory_allocate(answer.length + 1);
        resume->page_length = answer.length;
        status = resume->page == NULL ? STATUS_NO_MEMORY : STATUS_OK;
    }
    if (status == STATUS_OK && answer.length > 0) {
        memory_copy_message(resume->page, answer.bytes, answer.length);
    }
    post_answer(resume, status);
}

static void ask(void *context, struct connection *connection)
{
    static const char *const protocols[] = {STORE_PROTOCOL_ID};
    struct store_resume *resume = context;
    struct store_request request = {.request_id = span_of_text("resume"),
            .query = {.time_start_ns = resume->options.from_ns,
                    .time_end_ns = resume->to_ns,
                    .has_time_start = true,
                    .has_time_end = true,
                    .has_cursor = resume->has_cursor,
                    .cursor = span_of(resume->cursor, sizeof(resume->cursor)),
                    .limit = STORE_RESUME_PAGE_MESSAGES,
                    .include_data = true}};
    uint8_t *bytes = NULL;
    size_t length = 0;
    enum status status =
            connection == NULL ? STATUS_NOT_FOUND : store_request_write(&bytes, &length, &request);
    if (status == STATUS_OK) {
        struct exchange_call call = {.protocols = protocols,
                .protocol_count = 1,
                .request = span_of(bytes, length),
                .answer_max = STORE_RESUME_PAGE_MESSAGES * resume->options.message_bytes_max +
                              PAGE_SLACK_BYTES,
                .done = on_answer,
                .context = resume};
        status = exchange_call(connection, &call);
        memory_free(bytes);
    }
    if (status != STATUS_OK) {
        post_answer(resume, status);
    }
}

/* control thread */

static void drop_page(struct store_resume *resume)
{
    memory_free(resume->page);
    resume->page = NULL;
    resume->is_entry_waiting = false;
}

/* The other pages are asked of the next peer: messages that it names again are recognised. */
static void fail(struct store_resume *resume, enum status status)
{
    metrics_add(METRIC_RESUME_FAILURES, 1);
    resume->failures++;
    resume->has_cursor = false;
    resume->state = RESUME_WAITING;
    resume->attempt_at_ms = now_ms() + STORE_RESUME_RETRY_MS;
    log_write(LOG_NOTICE, "resume", "attempt %u: %s", resume->failures, status_text(status));
    if (resume->failures == STORE_RESUME_ATTEMPTS_MAX) {
        resume->state = RESUME_OVER;
        log_write(LOG_WARN, "resume", "given up: what was missed is not here");
    }
    drop_page(resume);
}

static void ask_page(struct store_resume *resume)
{
    resume->state = RESUME_ASKING;
    enum status status =
            switch_run_on_connection(resume->options.net_switch, resume->connection, ask, resume);
    if (status != STATUS_OK) {
        fail(resume, status);
    }
}

static void begin(struct store_resume *resume)
{
    for (size_t i = 0; i < PEERS_MAX; i++) {
        uint64_t connection = atomic_load_explicit(
                &resume->peers[resume->turn++ % PEERS_MAX], memory_order_relaxed);
        if (connection != 0) {
            resume->connection = connection;
            resume->to_ns = clock_wall_ns() + (int64_t)AHEAD_S * NANOSECONDS_PER_SECOND;
            ask_page(resume);
            return;
        }
    }
}

/* No page comes behind that one: there is nothing on it, or the cursor is none or the one before. */
static bool is_stuck(const struct store_resume *resume)
{
    struct span cursor = resume->view.cursor;
    if (cursor.length == 0) {
        return false;
    }
    return resume->page_entry_count == 0 || cursor.length != sizeof(resume->cursor) ||
           (resume->has_cursor &&
                   memcmp(resume->cursor, cursor.bytes, sizeof(resume->cursor)) == 0);
}

static void end(struct store_resume *resume)
{
    resume->state = RESUME_OVER;
    log_write(LOG_NOTICE, "resume", "%" PRIu64 " messages in %" PRIu64 " pages",
            resume->message_count, resume->page_count);
}

static void end_page(struct store_resume *resume)
{
    struct span cursor = resume->view.cursor;
    if (is_stuck(resume)) {
        fail(resume, STATUS_BAD_CURSOR);
        return;
    }
    metrics_add(METRIC_RESUME_PAGES, 1);
    resume->page_count++;
    resume->has_cursor = cursor.length > 0;
    if (resume->has_cursor) {
        memcpy(resume->cursor, cursor.bytes, sizeof(resume->cursor));
    }
    drop_page(resume);
    if (resume->has_cursor && resume->entry_count >= resume->options.messages_max) {
        metrics_add(METRIC_RESUME_LIMITED, 1);
        log_write(LOG_WARN, "resume", "there are more messages than --store-resume-limit allows");
        end(resume);
    } else if (resume->has_cursor) {
        ask_page(resume);
    } else {
        end(resume);
    }
}

/* False: there is no room for it now. */
static bool post_entry(struct store_resume *resume)
{
    const struct store_resume_options *options = &resume->options;
    struct span message = resume->entry.message;
    const struct topic *topic =
            topic_registry_find_subscribed(options->intake->topics, resume->entry.pubsub_topic);
    if (topic == NULL || message.length == 0) {
        metrics_add(METRIC_RESUME_SKIPPED, 1);
        return true;
    }
    struct frame *frame =
            options->has_room(options->room_context)
                    ? frame_try_create(options->budget, FRAME_BUDGET_COMPLETE, message.length)
                    : NULL;
    if (frame == NULL) {
        return false;
    }
    memory_copy_message(frame_bytes(frame), message.bytes, message.length);
    struct intake_source source = {.received_ns = clock_wall_ns(),
            .received_monotonic_ns = clock_monotonic_ns(),
            .connection = resume->connection,
            .origin = ORIGIN_RESUME};
    if (intake_post_message(options->intake, frame, topic, &source, NULL) != STATUS_OK) {
        frame_unref(frame);
        return false;
    }
    metrics_add(METRIC_RESUME_MESSAGES, 1);
    resume->message_count++;
    return true;
}

/* Until there is no room, or the page is done. */
static void post_page(struct store_resume *resume)
{
    enum status status = STATUS_OK;
    while (resume->is_entry_waiting || store_answer_next(&resume->view, &resume->entry, &status)) {
        resume->is_entry_waiting = !post_entry(resume);
        if (resume->is_entry_waiting) {
            return;
        }
        resume->entry_count++;
        resume->page_entry_count++;
    }
    if (status == STATUS_OK) {
        end_page(resume);
    } else {
        fail(resume, status);
    }
}

/* The connection was gone before it was asked: no attempt. */
static void forget_peer(struct store_resume *resume)
{
    for (size_t i = 0; i < PEERS_MAX; i++) {
        uint64_t connection = resume->connection;
        (void)atomic_compare_exchange_strong_explicit(
                &resume->peers[i], &connection, 0, memory_order_relaxed, memory_order_relaxed);
    }
    resume->has_cursor = false;
    resume->state = RESUME_WAITING;
}

static void run_answered(struct io_task *task)
{
    struct store_resume *resume =
            (struct store_resume *)((char *)task - offsetof(struct store_resume, answered));
    enum status status = resume->status;
    if (status == STATUS_NOT_FOUND) {
        forget_peer(resume);
        return;
    }
    if (status == STATUS_OK) {
        status = store_answer_read(&resume->view, span_of(resume->page, resume->page_length));
    }
    if (status == STATUS_OK && resume->view.code != SERVICE_OK) {
        int length = resume->view.description.length < DESCRIPTION_LOGGED
                             ? (int)resume->view.description.length
                             : DESCRIPTION_LOGGED;
        log_write(LOG_NOTICE, "resume", "refused with %" PRIu32 ": %.*s", resume->view.code, length,
                (const char *)resume->view.description.bytes);
        status = STATUS_BAD_QUERY;
    }
    if (status != STATUS_OK) {
        fail(resume, status);
        return;
    }
    resume->state = RESUME_POSTING;
    resume->page_entry_count = 0;
    post_page(resume);
}

static void on_tick(uv_timer_t *timer)
{
    struct store_resume *resume = timer->data;
    switch (resume->state) {
    case RESUME_WAITING:
        if (now_ms() >= resume->attempt_at_ms) {
            begin(resume);
        }
        break;
    case RESUME_ASKING:
        break;
    case RESUME_POSTING:
        post_page(resume);
        break;
    case RESUME_OVER:
        uv_timer_stop(timer);
        break;
    }
}

enum status store_resume_create(
        struct store_resume **out, const struct store_resume_options *options)
{
    struct store_resume *resume = memory_allocate_zeroed(sizeof(*resume));
    if (resume == NULL) {
        return STATUS_NO_MEMORY;
    }
    resume->options = *options;
    resume->answered.run = run_answered;
    atomic_init(&resume->next_peer, 0);
    for (size_t i = 0; i < PEERS_MAX; i++) {
        atomic_init(&resume->peers[i], 0);
    }
    /* libuv's documentation: both always succeed. */
    uv_timer_init(io_loop_uv(switch_control_loop(options->net_switch)), &resume->tick);
    resume->tick.data = resume;
    uv_timer_start(&resume->tick, on_tick, TICK_MS, TICK_MS);
    *out = resume;
    return STATUS_OK;
}

static void on_tick_closed(uv_handle_t *handle)
{
    struct store_resume *resume = handle->data;
    resume->is_tick_closed = true;
}

void store_resume_destroy(struct store_resume **resume_pointer)
{
    struct store_resume *resume = *resume_pointer;
    if (resume == NULL) {
        return;
    }
    uv_close((uv_handle_t *)&resume->tick, on_tick_closed);
    while (!resume->is_tick_closed) {
        io_loop_turn(switch_control_loop(resume->options.net_switch));
    }
    memory_free(resume->page);
    memory_free(resume);
    *resume_pointer = NULL;
}
