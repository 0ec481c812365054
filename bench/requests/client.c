/* SPDX-License-Identifier: MIT */
#include "bench/requests/requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "bench/address.h"
#include "codec/waku_message.h"
#include "net/protocols/echo.h"
#include "net/protocols/exchange.h"
#include "net/protocols/filter_message.h"
#include "net/protocols/identify.h"
#include "net/protocols/lightpush_message.h"
#include "net/protocols/metadata.h"
#include "net/protocols/ping.h"
#include "net/protocols/store_message.h"
#include "net/switch/switch.h"

enum {
    WAIT_MS = 10,
    TIMEOUT_MS = 60 * 1000,
    ANSWER_MAX = 1024 * 1024,
    REQUEST_MAX = 1024,
    STORED = 100,
    BREAK_OFF_EACH = 10
};

enum kind {
    KIND_LIGHTPUSH,
    KIND_FILTER,
    KIND_STORE,
    KIND_METADATA,
    KIND_PING,
    KIND_MIXED
};

static const char *const names[] = {"lightpush", "filter", "store", "metadata", "ping", "mixed"};
static const char *const ids[] = {LIGHTPUSH_PROTOCOL_ID, FILTER_SUBSCRIBE_PROTOCOL_ID,
        STORE_PROTOCOL_ID, METADATA_PROTOCOL_ID, PING_PROTOCOL_ID};

struct client {
    struct requests_shared *shared;
    struct connection *connection;
    enum kind kind;
    size_t count;
    size_t at_once;
    size_t begun;
    size_t under_way;
};

static struct client client;

static void die(const char *what, enum status status)
{
    fprintf(stderr, "bench_requests: %s: %s\n", what, status_text(status));
    atomic_store(&client.shared->has_failed, true);
    exit(1);
}

static void check(const char *what, enum status status)
{
    if (status != STATUS_OK) {
        die(what, status);
    }
}

static enum kind find_kind(const char *protocol)
{
    size_t i = 0;
    while (i <= KIND_MIXED && strcmp(names[i], protocol) != 0) {
        i++;
    }
    return (enum kind)i;
}

bool requests_know(const char *protocol)
{
    return find_kind(protocol) <= KIND_MIXED;
}

/* Requests. */

static size_t write_push(uint8_t *to, size_t number)
{
    uint8_t message[REQUEST_MAX / 2];
    struct waku_message_view fields = {.payload = span_of(&number, sizeof(number)),
            .content_topic = span_of_text("/bench/1/requests/proto"),
            .timestamp_ns = clock_wall_ns(),
            .ephemeral = number >= STORED, /* what is stored costs memory by right */
            .has_payload = true,
            .has_content_topic = true,
            .has_timestamp = true};
    size_t length = waku_message_encode(message, sizeof(message), &fields);
    struct lightpush_request request = {.request_id = span_of_text("bench"),
            .pubsub_topic = span_of_text(REQUESTS_PUBSUB),
            .message = span_of(message, length),
            .has_pubsub_topic = true,
            .has_message = true};
    size_t head = lightpush_request_write_head(to, &request, LIGHTPUSH_V3);
    memcpy(to + head, message, length);
    return head + length;
}

static size_t write_subscription(uint8_t *to)
{
    struct span topic = span_of_text("/bench/1/requests/proto");
    struct filter_request_fields fields = {.request_id = span_of_text("bench"),
            .verb = FILTER_SUBSCRIBE,
            .pubsub_topic = span_of_text(REQUESTS_PUBSUB),
            .content_topics = &topic,
            .content_topic_count = 1};
    filter_request_write(to, &fields);
    return filter_request_size(&fields);
}

static size_t write_query(uint8_t *to)
{
    uint8_t *bytes;
    size_t length;
    struct store_request request = {
            .request_id = span_of_text("bench"), .query = {.include_data = true}};
    check("query", store_request_write(&bytes, &length, &request));
    memcpy(to, bytes, length);
    memory_free(bytes);
    return length;
}

static size_t write_request(uint8_t *to, enum kind kind, size_t number)
{
    static const uint8_t cluster[] = {0x08, 16};
    switch (kind) {
    case KIND_LIGHTPUSH:
        return write_push(to, number);
    case KIND_FILTER:
        return write_subscription(to);
    case KIND_STORE:
        return write_query(to);
    case KIND_METADATA:
        memcpy(to, cluster, sizeof(cluster));
        return sizeof(cluster);
    case KIND_PING:
    case KIND_MIXED:
        /* With its length before it it is what a ping is; so is the echo. */
        memset(to, 7, PING_BYTES - 1);
        return PING_BYTES - 1;
    }
    return 0;
}

/* Answers. */

static void begin_more(void);

static void end_one(void)
{
    client.under_way--;
    atomic_fetch_add(&client.shared->done, 1);
    begin_more();
}

static uint32_t code_of(const char *protocol, struct span answer)
{
    struct lightpush_answer pushed;
    struct filter_answer subscribed;
    struct store_answer_view stored;
    if (strcmp(protocol, LIGHTPUSH_PROTOCOL_ID) == 0) {
        check("answer", lightpush_answer_read(&pushed, answer, LIGHTPUSH_V3));
        return pushed.code;
    }
    if (strcmp(protocol, FILTER_SUBSCRIBE_PROTOCOL_ID) == 0) {
        check("answer", filter_answer_read(&subscribed, answer));
        return subscribed.code;
    }
    if (strcmp(protocol, STORE_PROTOCOL_ID) == 0) {
        check("answer", store_answer_read(&stored, answer));
        return stored.code;
    }
    return 0;
}

static void on_answered(void *context, enum status status, const char *protocol, struct span answer)
{
    (void)context;
    check("no answer", status);
    uint32_t code = code_of(protocol, answer);
    atomic_fetch_add(&client.shared->codes[code < REQUESTS_CODES ? code : 0], 1);
    end_one();
}

/* Requests that are broken off. */

static enum status on_opened(struct stream *stream)
{
    static const uint8_t half[] = {100, 0x0a, 5, 'b', 'e', 'n'};
    enum status status = stream_write_copy(stream, span_of(half, sizeof(half)));
    if (status == STATUS_OK) {
        stream_reset(stream, STATUS_RESET);
    }
    return status;
}

static void on_closed(struct stream *stream, enum status reason)
{
    (void)stream;
    (void)reason;
    atomic_fetch_add(&client.shared->broken_off, 1);
    end_one();
}

static const struct stream_events broken_off = {.opened = on_opened, .closed = on_closed};

static void begin_one(size_t number)
{
    uint8_t request[REQUEST_MAX];
    bool is_mixed = client.kind == KIND_MIXED;
    enum kind kind = is_mixed ? (enum kind)(number % KIND_MIXED) : client.kind;
    if (is_mixed && number / KIND_MIXED % BREAK_OFF_EACH == 0) {
        struct stream_request stream = {
                .protocols = &ids[kind], .protocol_count = 1, .events = &broken_off};
        check("stream", connection_open_stream(client.connection, &stream, NULL));
        return;
    }
    struct exchange_call call = {.protocols = &ids[kind],
            .protocol_count = 1,
            .request = span_of(request, write_request(request, kind, number)),
            .answer_max = ANSWER_MAX,
            .timeout_ms = TIMEOUT_MS,
            .done = on_answered};
    check("request", exchange_call(client.connection, &call));
}

static void begin_more(void)
{
    while (client.under_way < client.at_once && client.begun < client.count) {
        client.under_way++;
        if (client.under_way > atomic_load(&client.shared->most_under_way)) {
            atomic_store(&client.shared->most_under_way, client.under_way);
        }
        begin_one(client.begun++);
    }
}

/* The connection. */

static void on_identified(
        void *context, struct connection *connection, const struct identify_info *info)
{
    (void)context;
    (void)info;
    if (client.connection == NULL) {
        client.connection = connection;
        begin_more();
    }
}

static void on_disconnected(void *context, struct connection *connection, enum close_reason reason)
{
    (void)context;
    (void)connection;
    (void)reason;
    if (!atomic_load(&client.shared->is_over)) {
        atomic_fetch_add(&client.shared->lost, 1);
        atomic_store(&client.shared->has_failed, true);
    }
}

static void dial(struct io_loop *loop, const struct multiaddr *address)
{
    static const struct switch_observer observer = {.disconnected = on_disconnected};
    struct identity *identity;
    struct net_switch *net_switch;
    struct identify *identify;
    check("identity", identity_create(&identity, KEY_TYPE_ED25519));
    struct switch_options options = {.identity = identity, .loops = &loop, .loop_count = 1};
    check("switch", switch_create(&net_switch, &options));
    check("ping", ping_register(net_switch));
    check("observer", switch_add_observer(net_switch, &observer, NULL));
    struct identify_options identified = {.net_switch = net_switch, .identified = on_identified};
    check("identify", identify_create(&identify, &identified));
    struct switch_dial where = {.address = *address};
    check("dial", switch_dial(net_switch, &where));
}

void requests_make(struct requests_shared *shared, int descriptor, const char *protocol,
        size_t count, size_t at_once)
{
    struct io_loop *loop;
    struct multiaddr address;
    client = (struct client){
            .shared = shared, .kind = find_kind(protocol), .count = count, .at_once = at_once};
    check("address", bench_read_address(descriptor, &address));
    check("loop", io_loop_create(&loop, 0));
    dial(loop, &address);
    while (!atomic_load(&shared->is_over)) {
        io_loop_wait(loop, (uint64_t)WAIT_MS * NANOSECONDS_PER_MILLISECOND);
        io_loop_turn(loop);
    }
}
