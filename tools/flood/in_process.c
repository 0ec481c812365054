/* SPDX-License-Identifier: MIT */
#include "tools/flood/in_process.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/common/acknowledge.h"
#include "tools/common/report.h"
#include "tools/flood/checker.h"
#include "tools/flood/common.h"
#include "tools/flood/flood_state.h"
#include "tools/flood/generator.h"

enum {
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    CLUSTER = 66,
    PROGRESS_PERIOD_NS = 500 * NANOSECONDS_PER_MILLISECOND
};

const struct option_spec flood_in_process_options[] = {
        {"subscribers", OPTION_NUMBER, "0", 0, 1000, "Flood",
                "filter subscribers, each of one content topic on all pubsub topics"},
        {"stall", OPTION_LIST, "", 0, 0, "Flood",
                "ROLE:TIME: that role does nothing for that time from the start, e.g. archive:5s"},
        ACKNOWLEDGE_OPTION("Flood"),
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

static void take_event(void *context, struct envelope *envelope)
{
    struct flood *flood = context;
    checker_take(flood->event_checker, envelope->payload);
}

/* The bytes are the application's too, whose end checks them; here only the number is looked at. */
static void take_push(
        void *context, const struct subscriber_entry *entry, struct envelope *envelope)
{
    struct flood_subscriber *subscriber = entry->context;
    const struct flood *flood = context;
    uint64_t number;
    memcpy(&number, envelope->payload.bytes, sizeof(number));
    subscriber->deliveries++;
    subscriber->strangers +=
            generator_content_topic_index(flood->generator, number) != subscriber->content_topic;
}

static bool parse_options(struct flood *flood)
{
    const struct options *options = flood->options;
    if (!flood_make_generator(&flood->generator, options, CLUSTER, &flood->duplicate_percent)) {
        return false;
    }
    flood->messages = options_number(options, "messages");
    flood->is_open_loop = options_flag(options, "open-loop");
    flood->acknowledge_fd = (int)options_number(options, "acknowledge-fd");
    flood->window = flood->is_open_loop ? UINT64_MAX : options_number(options, "window");
    flood->rate = options_number(options, "rate");
    return true;
}

static bool stall_roles(struct flood *flood)
{
    for (size_t i = 0; i < options_list_count(flood->options, "stall"); i++) {
        char name[32];
        enum node_role role;
        uint64_t duration_ms;
        const char *text = options_list_item(flood->options, "stall", i);
        const char *colon = strchr(text, ':');
        snprintf(name, sizeof(name), "%.*s", colon != NULL ? (int)(colon - text) : 0, text);
        if (colon == NULL || !node_role_from_name(&role, name) ||
                options_parse_duration(&duration_ms, colon + 1) != STATUS_OK) {
            fprintf(stderr, "flood: --stall=%s: expected ROLE:TIME such as archive:5s\n", text);
            return false;
        }
        node_stall(flood->node, role,
                clock_monotonic_ns() + duration_ms * NANOSECONDS_PER_MILLISECOND);
    }
    return true;
}

/* To its content topic, on every pubsub topic. */
static bool subscribe_one(struct flood *flood, struct flood_subscriber *subscriber, uint64_t id)
{
    uint32_t topics = (uint32_t)options_number(flood->options, "topics");
    struct span content_topic =
            generator_content_topic_at(flood->generator, subscriber->content_topic);
    for (uint32_t topic = 0; topic < topics; topic++) {
        struct subscription_request request = {
                .pubsub_topic = generator_pubsub_topic_at(flood->generator, topic),
                .content_topics = &content_topic,
                .content_topic_count = 1};
        struct subscriber_entry entry = {.id = id, .context = subscriber};
        enum subscription_result result = node_filter_subscribe(flood->node, entry, &request);
        if (result != SUBSCRIPTION_OK) {
            fprintf(stderr, "flood: subscriber %llu: %s\n", (unsigned long long)id,
                    subscription_result_text(result));
            return false;
        }
    }
    return true;
}

static bool subscribe_all(struct flood *flood)
{
    size_t count = (size_t)options_number(flood->options, "subscribers");
    flood->subscribers = calloc(count + 1, sizeof(*flood->subscribers));
    flood->subscriber_count = flood->subscribers != NULL ? count : 0;
    for (size_t i = 0; i < flood->subscriber_count; i++) {
        struct flood_subscriber *subscriber = &flood->subscribers[i];
        subscriber->content_topic =
                (uint32_t)(i % options_number(flood->options, "content-topics"));
        if (!subscribe_one(flood, subscriber, i + 1)) {
            return false;
        }
    }
    return true;
}

static bool take_part(struct flood *flood)
{
    uint32_t topics = (uint32_t)options_number(flood->options, "topics");
    for (uint32_t i = 0; i < topics; i++) {
        enum status status = node_subscribe_topic(
                flood->node, NULL, generator_pubsub_topic_at(flood->generator, i));
        if (status != STATUS_OK) {
            fprintf(stderr, "flood: topic %u: %s\n", i, status_text(status));
            return false;
        }
    }
    return true;
}

static void keep_rate(const struct flood *flood)
{
    uint64_t due = flood->began_ns +
                   (uint64_t)((double)flood->frames * NANOSECONDS_PER_SECOND / (double)flood->rate);
    uint64_t now = clock_monotonic_ns();
    if (due > now) {
        struct timespec wait = {.tv_sec = (time_t)((due - now) / NANOSECONDS_PER_SECOND),
                .tv_nsec = (long)((due - now) % NANOSECONDS_PER_SECOND)};
        nanosleep(&wait, NULL);
    }
}

static void show_progress(struct flood *flood, bool is_last)
{
    uint64_t now = clock_monotonic_ns();
    if (!flood->shows_progress || (!is_last && now < flood->next_progress_ns)) {
        return;
    }
    flood->next_progress_ns = now + PROGRESS_PERIOD_NS;
    double seconds = (double)(now - flood->began_ns) / 1e9;
    fprintf(stderr,
            "\r%" PRIu64 " frames, %.0f frames/s, in flight %" PRIu64 ", budget %zu KiB   %s",
            flood->frames, (double)flood->frames / seconds,
            flood->frames - node_finished(flood->node),
            frame_budget_used(node_budget(flood->node)) / 1024, is_last ? "\n" : "");
}

/* A new message is of the time at which there is room for it, however long that was waited for. */
static bool send_message(struct flood *flood, struct generator_message *message, bool is_new)
{
    if (flood->rate > 0) {
        keep_rate(flood);
    }
    if (flood->window != UINT64_MAX && flood->frames - flood->known_finished >= flood->window) {
        if (!node_wait_in_flight(flood->node, flood->frames, flood->window / 2)) {
            return false;
        }
        flood->known_finished = node_finished(flood->node);
    }
    size_t size = generator_rpc_size(flood->generator, *message);
    struct frame *frame = flood->is_open_loop ? node_wait_credit(flood->node, size)
                                              : node_wait_frame(flood->node, size);
    if (frame == NULL) {
        if (node_archive_health(flood->node) == STATUS_OK) {
            fprintf(stderr, "flood: a message of %zu bytes does not fit the memory budget\n",
                    generator_message_size(flood->generator, *message));
        }
        return false;
    }
    if (is_new) {
        message->timestamp_ns = clock_wall_ns(); /* as long in its encoding as the one before */
    }
    struct metrics_row *row = metrics_suspend_thread();
    generator_fill_rpc(flood->generator, *message, frame_bytes(frame));
    metrics_resume_thread(row);
    struct intake_source source = {.received_ns = clock_wall_ns(),
            .received_monotonic_ns = clock_monotonic_ns(),
            .connection = 1,
            .origin = ORIGIN_MESH};
    size_t posted = 0;
    enum status status = intake_post_rpc(node_intake(flood->node), frame, &source, &posted);
    if (status != STATUS_OK || posted != 1) {
        fprintf(stderr, "flood: the router refused a frame: %s\n", status_text(status));
        return false;
    }
    flood->frames++;
    flood->bytes += generator_message_size(flood->generator, *message);
    show_progress(flood, false);
    return true;
}

/* xorshift: only which message is repeated, and when. */
static uint32_t draw(struct flood *flood)
{
    flood->random ^= flood->random << 13;
    flood->random ^= flood->random >> 7;
    flood->random ^= flood->random << 17;
    return (uint32_t)(flood->random >> 32);
}

static bool send_all(struct flood *flood)
{
    flood->random = options_number(flood->options, "seed") * 2 + 1;
    for (uint64_t number = 0; number < flood->messages;) {
        bool repeats = number > 0 && draw(flood) % 100 < flood->duplicate_percent;
        struct generator_message message = {.number = number, .timestamp_ns = clock_wall_ns()};
        if (repeats) {
            uint64_t back = number < FLOOD_RECENT ? number : FLOOD_RECENT;
            message = flood->recent[(number - 1 - draw(flood) % back) % FLOOD_RECENT];
        }
        if (!send_message(flood, &message, !repeats)) {
            return false;
        }
        if (!repeats) {
            flood->recent[number % FLOOD_RECENT] = message;
            number++;
        }
        flood->copies += repeats;
    }
    return true;
}

static int run_started(struct flood *flood)
{
    if (!subscribe_all(flood) || !stall_roles(flood)) {
        return EXIT_USAGE;
    }
    flood->began_ns = clock_monotonic_ns();
    bool sent = send_all(flood);
    flood->sent_ns = clock_monotonic_ns();
    sent = node_wait_in_flight(flood->node, flood->frames, 0) && sent;
    flood->finished_ns = clock_monotonic_ns();
    show_progress(flood, true);
    node_stop(flood->node);
    (void)metrics_suspend_thread();
    enum status health = node_archive_health(flood->node);
    if (health != STATUS_OK) {
        fprintf(stderr, "flood: archive %s: %s\n", node_archive_address(flood->node),
                status_text(health));
    }
    return flood_report(flood) && sent ? 0 : EXIT_FAILED;
}

static int run_node(struct flood *flood)
{
    struct node_error error = {.text = ""};
    struct node_hooks hooks = {.event = take_event,
            .event_context = flood,
            .push = take_push,
            .push_context = flood,
            .archived = acknowledge_to_fd,
            .archived_context = &flood->acknowledge_fd};
    enum status status = node_create(&flood->node, flood->options, &hooks, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "flood: %s\n", error.text);
        return status == STATUS_BAD_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
    }
    if (!take_part(flood)) {
        return EXIT_FAILED;
    }
    struct cpu_set floating;
    node_floating_cpus(flood->node, &floating);
    (void)!sched_setaffinity(0, sizeof(floating.mask), &floating.mask);
    status = node_start(flood->node, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "flood: %s\n", error.text);
        return EXIT_FAILED;
    }
    if (metrics_attach_thread(node_metrics(flood->node)) != STATUS_OK) {
        return EXIT_FAILED;
    }
    int exit_status = run_started(flood);
    metrics_detach_thread();
    return exit_status;
}

int flood_in_process(const struct options *options)
{
    static struct flood flood;
    flood.options = options;
    flood.shows_progress = isatty(STDERR_FILENO) != 0;
    if (!parse_options(&flood)) {
        return EXIT_USAGE;
    }
    int exit_status = EXIT_FAILED;
    if (checker_create(&flood.event_checker, flood.messages) == STATUS_OK) {
        exit_status = run_node(&flood);
    }
    if (flood.node != NULL) {
        node_stop(flood.node);
    }
    node_destroy(&flood.node);
    checker_destroy(&flood.event_checker);
    generator_destroy(&flood.generator);
    free(flood.subscribers);
    return exit_status;
}
