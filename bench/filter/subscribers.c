/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/address.h"
#include "bench/filter/filter_bench.h"
#include "codec/waku_message.h"
#include "net/protocols/echo.h"
#include "net/protocols/filter_client.h"
#include "net/protocols/identify.h"
#include "net/switch/switch.h"

enum {
    AT_ONCE = 32,
    WAIT_MS = 10,
    MESSAGE_BYTES_MAX = 1024 * 1024,
    TIMEOUT_MS = 60 * 1000
};

struct subscriber {
    struct filter_bench_group *group;
    struct identity *identity;
    struct net_switch *net_switch;
    struct identify *identify;
    struct filter_client *filter;
    char topic[FILTER_BENCH_TOPIC_BYTES];
    uint64_t next_number;
    bool is_asked;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench_filter: %s: %s\n", what, why);
    exit(1);
}

static void check(const char *what, enum status status)
{
    if (status != STATUS_OK) {
        die(what, status_text(status));
    }
}

void filter_bench_topic(char out[FILTER_BENCH_TOPIC_BYTES], size_t number)
{
    snprintf(out, FILTER_BENCH_TOPIC_BYTES, "/bench/1/topic-%zu/proto", number);
}

static void on_answered(void *context, uint32_t code, struct span description)
{
    struct subscriber *subscriber = context;
    if (code != 200) {
        fprintf(stderr, "bench_filter: refused with %u: %.*s\n", code, (int)description.length,
                (const char *)description.bytes);
        exit(1);
    }
    atomic_fetch_add(&subscriber->group->subscribed, 1);
}

static void on_identified(
        void *context, struct connection *connection, const struct identify_info *info)
{
    struct subscriber *subscriber = context;
    struct span topic = span_of_text(subscriber->topic);
    struct filter_request_fields fields = {.verb = FILTER_SUBSCRIBE,
            .pubsub_topic = span_of_text(FILTER_BENCH_PUBSUB),
            .content_topics = &topic,
            .content_topic_count = 1};
    (void)info;
    if (!subscriber->is_asked) {
        subscriber->is_asked = true;
        filter_client_ask(connection, &fields, TIMEOUT_MS, on_answered, subscriber);
    }
}

static void on_received(
        void *context, struct connection *connection, const struct filter_push_view *push)
{
    struct subscriber *subscriber = context;
    struct waku_message_view view;
    uint64_t head[FILTER_BENCH_HEAD_BYTES / sizeof(uint64_t)];
    (void)connection;
    if (waku_message_decode(&view, push->message) != STATUS_OK ||
            view.payload.length < sizeof(head)) {
        die("push", "malformed");
    }
    memcpy(head, view.payload.bytes, sizeof(head));
    if (head[0] < subscriber->next_number ||
            !span_equal(view.content_topic, span_of_text(subscriber->topic))) {
        atomic_fetch_add(&subscriber->group->out_of_order, 1);
    }
    subscriber->next_number = head[0] + 1;
    histogram_add(&subscriber->group->latencies_ns, clock_monotonic_ns() - head[1]);
    atomic_fetch_add(&subscriber->group->received, 1);
}

static void on_disconnected(void *context, struct connection *connection, enum close_reason reason)
{
    struct subscriber *subscriber = context;
    (void)connection;
    (void)reason;
    atomic_fetch_add(&subscriber->group->lost, 1);
}

static void begin(
        struct subscriber *subscriber, struct io_loop *loop, const struct multiaddr *address)
{
    static const struct switch_observer observer = {.disconnected = on_disconnected};
    check("identity", identity_create(&subscriber->identity, KEY_TYPE_ED25519));
    struct switch_options options = {
            .identity = subscriber->identity, .loops = &loop, .loop_count = 1};
    check("switch", switch_create(&subscriber->net_switch, &options));
    check("ping", ping_register(subscriber->net_switch));
    check("observer", switch_add_observer(subscriber->net_switch, &observer, subscriber));
    struct identify_options identify = {.net_switch = subscriber->net_switch,
            .identified = on_identified,
            .context = subscriber};
    check("identify", identify_create(&subscriber->identify, &identify));
    struct filter_client_options filter = {.net_switch = subscriber->net_switch,
            .message_bytes_max = MESSAGE_BYTES_MAX,
            .received = on_received,
            .context = subscriber};
    check("filter", filter_client_create(&subscriber->filter, &filter));
    struct switch_dial dial = {.address = *address};
    check("dial", switch_dial(subscriber->net_switch, &dial));
}

void filter_bench_subscribe(
        struct filter_bench_group *group, int descriptor, size_t first, size_t count, size_t topics)
{
    struct io_loop *loop;
    struct multiaddr address;
    struct subscriber *subscribers = calloc(count + 1, sizeof(*subscribers));
    if (subscribers == NULL) {
        die("subscribers", "no memory");
    }
    check("address", bench_read_address(descriptor, &address));
    check("loop", io_loop_create(&loop, 0));
    size_t begun = 0;
    while (!atomic_load(&group->is_over)) {
        while (begun < count && begun - atomic_load(&group->subscribed) < AT_ONCE) {
            struct subscriber *subscriber = &subscribers[begun];
            subscriber->group = group;
            filter_bench_topic(subscriber->topic, (first + begun) % topics);
            begin(subscriber, loop, &address);
            begun++;
        }
        io_loop_wait(loop, (uint64_t)WAIT_MS * NANOSECONDS_PER_MILLISECOND);
        io_loop_turn(loop);
    }
    atomic_store(&group->is_done, true);
}
