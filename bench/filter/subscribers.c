/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <uv.h>

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
    LOOPS = 256,        /* a switch has its turn with all others of its loop */
    ALL_TURNS_MS = 100, /* for timers */
    MESSAGE_BYTES_MAX = 1024 * 1024,
    TIMEOUT_MS = 60 * 1000
};

struct subscriber {
    struct filter_bench_group *group;
    struct identity *identity;
    struct net_switch *net_switch;
    struct identify *identify;
    struct filter_client *filter;
    const struct filter_bench_part *part;
    size_t number;
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

size_t filter_bench_topic_of(const struct filter_bench_part *part, size_t subscriber, size_t place)
{
    return (subscriber * part->each + place) % part->topics;
}

bool filter_bench_read_head(uint64_t out[2], struct span *content_topic, struct span message)
{
    static const char prefix[] = "/bench/1/";
    struct waku_message_view view;
    if (waku_message_decode(&view, message) != STATUS_OK ||
            view.payload.length < FILTER_BENCH_HEAD_BYTES ||
            view.content_topic.length < sizeof(prefix) ||
            memcmp(view.content_topic.bytes, prefix, sizeof(prefix) - 1) != 0) {
        return false;
    }
    memcpy(out, view.payload.bytes, FILTER_BENCH_HEAD_BYTES);
    *content_topic = view.content_topic;
    return true;
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

static void subscribe(struct subscriber *subscriber, struct connection *connection)
{
    char names[FILTER_BENCH_EACH_MAX][FILTER_BENCH_TOPIC_BYTES];
    struct span topics[FILTER_BENCH_EACH_MAX];
    const struct filter_bench_part *part = subscriber->part;
    for (size_t i = 0; i < part->each; i++) {
        filter_bench_topic(names[i], filter_bench_topic_of(part, subscriber->number, i));
        topics[i] = span_of_text(names[i]);
    }
    struct filter_request_fields fields = {.verb = FILTER_SUBSCRIBE,
            .pubsub_topic = span_of_text(FILTER_BENCH_PUBSUB),
            .content_topics = topics,
            .content_topic_count = part->each};
    filter_client_ask(connection, &fields, TIMEOUT_MS, on_answered, subscriber);
}

static void on_identified(
        void *context, struct connection *connection, const struct identify_info *info)
{
    struct subscriber *subscriber = context;
    (void)info;
    if (!subscriber->is_asked) {
        subscriber->is_asked = true;
        subscribe(subscriber, connection);
    }
}

/* The number of a message says which content topic it is on. */
static bool is_asked_for(
        const struct subscriber *subscriber, uint64_t number, struct span content_topic)
{
    char name[FILTER_BENCH_TOPIC_BYTES];
    const struct filter_bench_part *part = subscriber->part;
    size_t topic = number % part->topics;
    filter_bench_topic(name, topic);
    if (!span_equal(content_topic, span_of_text(name))) {
        return false;
    }
    for (size_t i = 0; i < part->each; i++) {
        if (filter_bench_topic_of(part, subscriber->number, i) == topic) {
            return true;
        }
    }
    return false;
}

static void on_received(
        void *context, struct connection *connection, const struct filter_push_view *push)
{
    struct subscriber *subscriber = context;
    struct filter_bench_group *group = subscriber->group;
    struct span content_topic;
    uint64_t head[2];
    (void)connection;
    if (!filter_bench_read_head(head, &content_topic, push->message)) {
        die("push", "malformed");
    }
    if (head[0] < subscriber->next_number || !is_asked_for(subscriber, head[0], content_topic)) {
        atomic_fetch_add(&group->out_of_order, 1);
    }
    uint64_t age_ns = clock_monotonic_ns() - head[1];
    histogram_add(&group->latencies_ns, age_ns);
    if (subscriber->next_number == 0) {
        histogram_add(&group->first_ns, age_ns);
    }
    subscriber->next_number = head[0] + 1;
    atomic_fetch_add(&group->received, 1);
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

/* The thread of all subscribers of a process. */
struct runner {
    struct filter_bench_group *group;
    struct io_loop *loops[LOOPS];
    int epoll;
    uint64_t all_turns_ns; /* when each loop is to have its next turn */
};

static void init_runner(struct runner *runner, struct filter_bench_group *group)
{
    *runner = (struct runner){.group = group, .epoll = epoll_create1(0)};
    for (unsigned i = 0; i < LOOPS; i++) {
        check("loop", io_loop_create(&runner->loops[i], 0));
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = runner->loops[i]};
        int descriptor = uv_backend_fd(io_loop_uv(runner->loops[i]));
        if (epoll_ctl(runner->epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) {
            die("loop", "epoll");
        }
    }
}

static void run_ready(struct runner *runner)
{
    struct epoll_event events[LOOPS];
    int count = epoll_wait(runner->epoll, events, LOOPS, WAIT_MS);
    uint64_t now_ns = clock_monotonic_ns();
    for (int i = 0; i < count; i++) {
        io_loop_turn(events[i].data.ptr);
    }
    for (size_t i = 0; now_ns >= runner->all_turns_ns && i < LOOPS; i++) {
        io_loop_turn(runner->loops[i]);
    }
    if (now_ns >= runner->all_turns_ns) {
        runner->all_turns_ns = now_ns + (uint64_t)ALL_TURNS_MS * NANOSECONDS_PER_MILLISECOND;
    }
    if (count > 0) {
        histogram_add(&runner->group->turns_ns, clock_monotonic_ns() - now_ns);
    }
}

void filter_bench_subscribe(
        struct filter_bench_group *group, int descriptor, const struct filter_bench_part *part)
{
    static struct runner runner;
    struct multiaddr address;
    struct subscriber *subscribers = calloc(part->count + 1, sizeof(*subscribers));
    if (subscribers == NULL) {
        die("subscribers", "no memory");
    }
    check("address", bench_read_address(descriptor, &address));
    init_runner(&runner, group);
    size_t begun = 0;
    while (!atomic_load(&group->is_over)) {
        while (begun < part->count && begun - atomic_load(&group->subscribed) < AT_ONCE) {
            struct subscriber *subscriber = &subscribers[begun];
            subscriber->group = group;
            subscriber->part = part;
            subscriber->number = part->first + begun;
            begin(subscriber, runner.loops[begun % LOOPS], &address);
            begun++;
        }
        run_ready(&runner);
    }
    atomic_store(&group->is_done, true);
}
