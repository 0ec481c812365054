/* SPDX-License-Identifier: MIT */
#include "node/store_client.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/protocols/exchange.h"
#include "net/protocols/service_code.h"
#include "net/protocols/store_message.h"

enum {
    ANSWER_MAX = 64 * 1024 * 1024, /* 100 messages of the largest kind, with room */
    DESCRIPTION_SIZE = 256,
    DESCRIPTION_SHOWN = 200
};

struct store_client {
    struct net_switch *net_switch;
    atomic_size_t pending;
};

/* One query, from the call to its end. One thread at a time works on it. */
struct asking {
    struct io_task task;
    struct store_client *client;
    archive_sink *row;
    store_client_answered *answered;
    void *context;
    struct switch_dial dial;
    uint64_t deadline_ns;
    uint8_t *request; /* from base/memory.h */
    size_t length;
};

static void end(struct asking *asking, const struct store_client_outcome *outcome)
{
    struct store_client *client = asking->client;
    asking->answered(asking->context, outcome);
    memory_free(asking->request);
    memory_free(asking);
    /* release: whoever sees nothing pending may free what answered used */
    atomic_fetch_sub_explicit(&client->pending, 1, memory_order_release);
}

/* As the reference names what its client meets with; the name stands before the words. */
static void end_with_code(
        struct asking *asking, enum status status, uint32_t code, struct span words)
{
    static const struct {
        uint32_t code;
        const char *name;
    } names[] = {{STORE_CLIENT_BAD_RESPONSE, "BAD_RESPONSE"}, {SERVICE_BAD_REQUEST, "BAD_REQUEST"},
            {SERVICE_TOO_MANY_REQUESTS, "TOO_MANY_REQUESTS"},
            {SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE"},
            {STORE_CLIENT_UNREACHABLE, "PEER_DIAL_FAILURE"}};
    char text[DESCRIPTION_SIZE];
    const char *name = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        name = names[i].code == code ? names[i].name : name;
    }
    size_t shown = words.length < DESCRIPTION_SHOWN ? words.length : DESCRIPTION_SHOWN;
    snprintf(text, sizeof(text), "%s%s%.*s", name != NULL ? name : "UNKNOWN", shown > 0 ? ": " : "",
            (int)shown, shown > 0 ? (const char *)words.bytes : "");
    end(asking, &(struct store_client_outcome){
                        .status = status, .code = name != NULL ? code : 0, .description = text});
}

/* No code: the peer has no part in it. */
static void end_here(struct asking *asking, enum status status)
{
    end(asking,
            &(struct store_client_outcome){.status = status, .description = status_text(status)});
}

static void end_unreached(struct asking *asking, enum status status)
{
    char id[PEER_ID_TEXT_SIZE] = "";
    struct peer_id peer;
    if (status == STATUS_TIMED_OUT || status == STATUS_NO_MEMORY) {
        end_here(asking, status);
        return;
    }
    if (multiaddr_peer(&peer, &asking->dial.address)) {
        peer_id_print(id, &peer);
    }
    end_with_code(asking,
            status == STATUS_NO_COMMON_PROTOCOL ? STATUS_NO_COMMON_PROTOCOL : STATUS_UNREACHABLE,
            STORE_CLIENT_UNREACHABLE, span_of_text(id));
}

static void end_unanswered(struct asking *asking, enum status status)
{
    if (status == STATUS_TIMED_OUT || status == STATUS_NO_MEMORY ||
            status == STATUS_NO_COMMON_PROTOCOL) {
        end_unreached(asking, status);
    } else {
        end_with_code(asking, status, STORE_CLIENT_BAD_RESPONSE, span_of_text(status_text(status)));
    }
}

/* The rows in turn; what fails ends them. *is_ours: it was the sink. */
static enum status pass_rows(
        const struct asking *asking, struct store_answer_view *view, bool *is_ours)
{
    struct store_entry entry;
    enum status status = STATUS_OK;
    *is_ours = false;
    while (status == STATUS_OK && store_answer_next(view, &entry, &status)) {
        struct archive_row row = {
                .hash = entry.hash, .pubsub_topic = entry.pubsub_topic, .message = entry.message};
        status = asking->row(asking->context, &row);
        *is_ours = status != STATUS_OK && status != STATUS_BAD_FIELD;
    }
    return status;
}

static void end_with_page(struct asking *asking, struct store_answer_view *view)
{
    bool is_ours;
    struct archive_page page = {.has_cursor = view->cursor.length == MESSAGE_HASH_BYTES};
    if (page.has_cursor) {
        memcpy(page.cursor, view->cursor.bytes, MESSAGE_HASH_BYTES);
    }
    enum status status = pass_rows(asking, view, &is_ours);
    if (status == STATUS_OK) {
        end(asking, &(struct store_client_outcome){
                            .status = STATUS_OK, .description = "", .page = &page});
    } else if (is_ours) {
        end_here(asking, status);
    } else {
        end_unanswered(asking, status);
    }
}

static void on_answered(void *context, enum status status, const char *protocol, struct span bytes)
{
    struct asking *asking = context;
    struct store_answer_view view;
    (void)protocol;
    if (status == STATUS_OK) {
        status = store_answer_read(&view, bytes);
    }
    if (status != STATUS_OK) {
        end_unanswered(asking, status);
    } else if (view.code != SERVICE_OK) {
        end_with_code(asking,
                view.code == SERVICE_TOO_MANY_REQUESTS ? STATUS_LIMIT_REACHED : STATUS_CLOSED,
                view.code, view.description);
    } else {
        end_with_page(asking, &view);
    }
}

static uint64_t left_ms(const struct asking *asking)
{
    uint64_t now_ns = clock_monotonic_ns();
    return now_ns >= asking->deadline_ns
                   ? 1
                   : (asking->deadline_ns - now_ns) / NANOSECONDS_PER_MILLISECOND + 1;
}

static void ask(void *context, struct connection *connection)
{
    static const char *const protocols[] = {STORE_PROTOCOL_ID};
    struct asking *asking = context;
    struct exchange_call call = {.protocols = protocols,
            .protocol_count = 1,
            .request = span_of(asking->request, asking->length),
            .answer_max = ANSWER_MAX,
            .timeout_ms = left_ms(asking),
            .done = on_answered,
            .context = asking};
    enum status status = connection == NULL ? STATUS_CLOSED : exchange_call(connection, &call);
    if (status != STATUS_OK) {
        end_unreached(asking, status);
    }
}

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    struct asking *asking = context;
    if (status == STATUS_OK) {
        status = switch_run_on_connection(asking->client->net_switch, connection, ask, asking);
    }
    if (status != STATUS_OK) {
        end_unreached(asking, status);
    }
}

/* On the control loop. */
static void start(struct io_task *task)
{
    struct asking *asking = (struct asking *)((char *)task - offsetof(struct asking, task));
    enum status status = switch_dial(asking->client->net_switch, &asking->dial);
    if (status != STATUS_OK) {
        end_unreached(asking, status);
    }
}

void store_client_make_id(char id[STORE_CLIENT_ID_SIZE])
{
    static _Atomic uint64_t made;
    /* relaxed: each gets another number, in whatever order */
    uint64_t number = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
    snprintf(id, STORE_CLIENT_ID_SIZE, "sluice-%" PRIu64, number);
}

static struct asking *make_asking(struct store_client *client, const struct store_client_ask *ask)
{
    char id[STORE_CLIENT_ID_SIZE];
    struct asking *asking = memory_allocate_zeroed(sizeof(*asking));
    if (asking == NULL) {
        return NULL;
    }
    uint64_t timeout_ms = ask->timeout_ms == 0 ? STORE_CLIENT_TIMEOUT_MS : ask->timeout_ms;
    asking->client = client;
    asking->row = ask->row;
    asking->answered = ask->answered;
    asking->context = ask->context;
    asking->deadline_ns = clock_monotonic_ns() + timeout_ms * NANOSECONDS_PER_MILLISECOND;
    asking->dial = (struct switch_dial){
            .address = *ask->peer, .timeout_ms = timeout_ms, .done = on_dialled, .context = asking};
    asking->task.run = start;
    store_client_make_id(id);
    struct store_request request = {
            .request_id = span_of_text(ask->request_id != NULL ? ask->request_id : id),
            .query = *ask->query};
    if (store_request_write(&asking->request, &asking->length, &request) != STATUS_OK) {
        memory_free(asking);
        return NULL;
    }
    return asking;
}

enum status store_client_ask(struct store_client *client, const struct store_client_ask *ask)
{
    struct asking *asking = make_asking(client, ask);
    if (asking == NULL) {
        return STATUS_NO_MEMORY;
    }
    /* relaxed: it orders nothing */
    atomic_fetch_add_explicit(&client->pending, 1, memory_order_relaxed);
    io_loop_post(switch_control_loop(client->net_switch), &asking->task);
    return STATUS_OK;
}

enum status store_client_read_address(struct multiaddr *out, const char *text)
{
    struct multiaddr_endpoint endpoint;
    return multiaddr_parse(out, span_of_text(text)) == STATUS_OK &&
                           multiaddr_endpoint(&endpoint, out) == STATUS_OK && endpoint.has_peer
                   ? STATUS_OK
                   : STATUS_BAD_ADDRESS;
}

enum status store_client_create(struct store_client **out, struct net_switch *net_switch)
{
    struct store_client *client = memory_allocate_zeroed(sizeof(*client));
    if (client == NULL) {
        return STATUS_NO_MEMORY;
    }
    client->net_switch = net_switch;
    *out = client;
    return STATUS_OK;
}

void store_client_destroy(struct store_client **client)
{
    assert(*client == NULL || store_client_pending(*client) == 0);
    memory_free(*client);
    *client = NULL;
}

size_t store_client_pending(struct store_client *client)
{
    /* acquire: pairs with the release in end */
    return atomic_load_explicit(&client->pending, memory_order_acquire);
}
