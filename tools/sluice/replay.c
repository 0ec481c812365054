/* SPDX-License-Identifier: MIT */

/* sluice replay: captured relay traffic through the whole pipeline, its receive times as the clock. */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "codec/capture.h"
#include "tools/common/acknowledge.h"
#include "tools/common/program_log.h"
#include "tools/common/report.h"
#include "tools/sluice/commands.h"
#include "tools/sluice/replay_tally.h"

enum {
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    RPC_OVERHEAD_BYTES = 64 * 1024,
    PROGRESS_PERIOD_NS = 250 * NANOSECONDS_PER_MILLISECOND
};

static const struct option_spec replay_options[] = {
        {"filter-subscribe", OPTION_LIST, "", 0, 0, "Replay",
                "PUBSUB,CONTENT: a filter subscriber whose deliveries are counted"},
        {"realtime", OPTION_BOOL, "false", 0, 0, "Replay", "keep the recorded pace"},
        ACKNOWLEDGE_OPTION("Replay"),
        {"json", OPTION_BOOL, "false", 0, 0, "Replay", "print one JSON object at the end"},
        {"help", OPTION_BOOL, "false", 0, 0, "Replay", "print this help"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

/* One --filter-subscribe. */
struct replay_subscriber {
    const char *text;
    _Atomic uint64_t deliveries; /* written by a filter thread */
};

enum {
    SUBSCRIBERS_MAX = 1000
};

struct replay {
    struct options *options;
    struct node *node;
    struct replay_tally *tally;
    struct replay_subscriber subscribers[SUBSCRIBERS_MAX];
    size_t subscriber_count;
    struct replay_counts counts; /* of the current file */
    uint64_t submitted;
    uint64_t bytes;
    uint64_t began_ns;
    uint64_t next_progress_ns;
    bool shows_progress;
    int acknowledge_fd; /* 0: none; on the archive thread */
    json_t *files;
};

static void take_event(void *context, struct envelope *envelope)
{
    struct replay *replay = context;
    replay_tally_add(replay->tally, envelope);
}

static void count_push(
        void *context, const struct subscriber_entry *entry, struct envelope *envelope)
{
    struct replay_subscriber *subscriber = entry->context;
    (void)context;
    (void)envelope;
    /* relaxed: a count */
    atomic_fetch_add_explicit(&subscriber->deliveries, 1, memory_order_relaxed);
}

/* A replayed node takes part in every topic that the captures name, within max-topics. */
static const struct topic *take_part(void *context, struct span name)
{
    struct replay *replay = context;
    const struct topic *topic = NULL;
    return node_subscribe_topic(replay->node, &topic, name) == STATUS_OK ? topic : NULL;
}

static bool subscribe(struct replay *replay, const char *text)
{
    const char *comma = strchr(text, ',');
    if (comma == NULL || comma == text || comma[1] == '\0') {
        fprintf(stderr, "--filter-subscribe=%s: expected PUBSUB,CONTENT\n", text);
        return false;
    }
    struct replay_subscriber *subscriber = &replay->subscribers[replay->subscriber_count++];
    subscriber->text = text;
    struct span content_topic = span_of_text(comma + 1);
    struct subscription_request request = {.pubsub_topic = span_of(text, (size_t)(comma - text)),
            .content_topics = &content_topic,
            .content_topic_count = 1};
    struct subscriber_entry entry = {.id = replay->subscriber_count, .context = subscriber};
    enum subscription_result result = node_filter_subscribe(replay->node, entry, &request);
    if (result != SUBSCRIPTION_OK) {
        fprintf(stderr, "--filter-subscribe=%s: %s\n", text, subscription_result_text(result));
        return false;
    }
    return true;
}

static void show_progress(struct replay *replay, bool is_last)
{
    uint64_t now = clock_monotonic_ns();
    if (!replay->shows_progress || (!is_last && now < replay->next_progress_ns)) {
        return;
    }
    replay->next_progress_ns = now + PROGRESS_PERIOD_NS;
    double seconds = (double)(now - replay->began_ns) / 1e9;
    fprintf(stderr, "\r%" PRIu64 " messages, %.1f MB, %.0f messages/s, in flight %" PRIu64 "   %s",
            replay->submitted, (double)replay->bytes / 1e6,
            seconds > 0 ? (double)replay->submitted / seconds : 0.0,
            replay->submitted - node_finished(replay->node), is_last ? "\n" : "");
}

static void keep_pace(int64_t first_ns, int64_t this_ns, uint64_t began_ns)
{
    uint64_t due = began_ns + (this_ns > first_ns ? (uint64_t)(this_ns - first_ns) : 0);
    uint64_t now = clock_monotonic_ns();
    if (due > now) {
        struct timespec wait = {.tv_sec = (time_t)((due - now) / NANOSECONDS_PER_SECOND),
                .tv_nsec = (long)((due - now) % NANOSECONDS_PER_SECOND)};
        nanosleep(&wait, NULL);
    }
}

static enum status feed_record(
        struct replay *replay, struct capture *capture, const struct capture_record *record)
{
    struct frame *frame = node_wait_frame(replay->node, record->frame_length);
    if (frame == NULL) {
        bool has_archive = node_archive_health(replay->node) == STATUS_OK;
        return has_archive ? STATUS_TOO_LARGE : STATUS_ARCHIVE_UNAVAILABLE;
    }
    enum status status = capture_read_frame(capture, frame_bytes(frame));
    if (status != STATUS_OK) {
        frame_unref(frame);
        return status;
    }
    struct intake_source source = {.received_ns = record->received_ns,
            .received_monotonic_ns = (uint64_t)record->received_ns,
            .connection = (uint64_t)record->peer + 1,
            .origin = ORIGIN_MESH};
    size_t posted = 0;
    status = intake_post_rpc(node_intake(replay->node), frame, &source, &posted);
    replay->counts.frames++;
    replay->counts.bad_frames += status != STATUS_OK;
    replay->submitted += posted;
    replay->bytes += record->frame_length;
    return STATUS_OK;
}

static enum status feed_records(struct replay *replay, struct capture *capture)
{
    struct capture_record record;
    bool has_record = false;
    int64_t first_ns = 0;
    uint64_t began_ns = clock_monotonic_ns();
    bool realtime = options_flag(replay->options, "realtime");
    enum status status = capture_next(capture, &record, &has_record);
    while (status == STATUS_OK && has_record) {
        first_ns = first_ns == 0 ? record.received_ns : first_ns;
        if (realtime) {
            keep_pace(first_ns, record.received_ns, began_ns);
        }
        status = feed_record(replay, capture, &record);
        show_progress(replay, false);
        if (status == STATUS_OK) {
            status = capture_next(capture, &record, &has_record);
        }
    }
    return status;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* What came before a fault in the file has gone through the pipeline all the same. */
static bool feed_file(struct replay *replay, const char *path)
{
    struct capture *capture = NULL;
    size_t frame_max = (size_t)options_number(replay->options, "max-msg-size") + RPC_OVERHEAD_BYTES;
    if (capture_open(&capture, path, frame_max) != STATUS_OK) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    replay->counts = (struct replay_counts){0};
    replay_tally_begin(replay->tally, replay->node);
    errno = 0;
    enum status status = feed_records(replay, capture);
    const char *reason =
            status == STATUS_SYSTEM && errno != 0 ? strerror(errno) : status_text(status);
    /* Why the archive is not available is said once, at the end. */
    if (status != STATUS_OK && status != STATUS_ARCHIVE_UNAVAILABLE) {
        fprintf(stderr, "%s%s: record %" PRIu64 " at byte %" PRIu64 ": %s\n",
                replay->shows_progress ? "\n" : "", path, capture_record_number(capture),
                capture_offset(capture), reason);
    }
    capture_close(&capture);
    bool has_finished = node_wait_in_flight(replay->node, replay->submitted, 0);
    if (options_flag(replay->options, "json")) {
        json_object_set_new(replay->files, base_name(path),
                replay_tally_json(replay->tally, replay->node, &replay->counts));
    }
    return status == STATUS_OK && has_finished;
}

static void add_deliveries(const struct replay *replay, json_t *result)
{
    json_t *deliveries = json_object();
    for (size_t i = 0; i < replay->subscriber_count; i++) {
        json_object_set_new(deliveries, replay->subscribers[i].text,
                json_integer((json_int_t)replay->subscribers[i].deliveries));
    }
    json_object_set_new(result, "filter_deliveries", deliveries);
}

static void print_json(const struct replay *replay, double seconds)
{
    json_t *result = json_deep_copy(replay->files);
    json_object_set_new(result, "ledgers", report_ledgers_json(replay->node));
    json_object_set_new(result, "counters", report_counters_json(replay->node));
    json_object_set_new(result, "seconds", json_real(seconds));
    json_object_set_new(
            result, "messages_per_second", json_real((double)replay->submitted / seconds));
    add_deliveries(replay, result);
    json_dumpf(result, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    printf("\n");
    json_decref(result);
}

static void print_text(const struct replay *replay, double seconds)
{
    report_print_ledgers(replay->node, stdout);
    printf("\n");
    report_print_counters(replay->node, stdout);
    for (size_t i = 0; i < replay->subscriber_count; i++) {
        printf("delivered to %s: %" PRIu64 "\n", replay->subscribers[i].text,
                (uint64_t)replay->subscribers[i].deliveries);
    }
    printf("\n%" PRIu64 " messages, %.1f MB in %.3f s: %.0f messages/s, %.1f MB/s\n",
            replay->submitted, (double)replay->bytes / 1e6, seconds,
            (double)replay->submitted / seconds, (double)replay->bytes / 1e6 / seconds);
}

/* False, with one line that says why, when something that the archive was offered is not in it. */
static bool check_archive(const struct replay *replay)
{
    const char *address = node_archive_address(replay->node);
    enum status health = node_archive_health(replay->node);
    uint64_t dropped = metrics_sum(node_metrics(replay->node), LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE);
    if (health != STATUS_OK) {
        fprintf(stderr, "replay: archive %s: %s\n", address, status_text(health));
    } else if (dropped > 0) {
        fprintf(stderr, "replay: archive %s: too slow for %" PRIu64 " messages\n", address,
                dropped);
    }
    return health == STATUS_OK && dropped == 0;
}

static int run_files(struct replay *replay)
{
    int exit_status = 0;
    for (size_t i = 0; i < options_list_count(replay->options, "filter-subscribe"); i++) {
        if (i == SUBSCRIBERS_MAX ||
                !subscribe(replay, options_list_item(replay->options, "filter-subscribe", i))) {
            return EXIT_USAGE;
        }
    }
    replay->began_ns = clock_monotonic_ns();
    for (size_t i = 0; i < options_positional_count(replay->options) &&
                       node_archive_health(replay->node) == STATUS_OK;
            i++) {
        if (!feed_file(replay, options_positional(replay->options, i))) {
            exit_status = EXIT_FAILED;
        }
    }
    double seconds = (double)(clock_monotonic_ns() - replay->began_ns) / 1e9;
    show_progress(replay, true);
    node_stop(replay->node);
    if (options_flag(replay->options, "json")) {
        print_json(replay, seconds);
    } else {
        print_text(replay, seconds);
    }
    if (!report_ledgers_are_closed(replay->node)) {
        fprintf(stderr, "replay: a ledger does not close\n");
        exit_status = EXIT_FAILED;
    }
    return check_archive(replay) ? exit_status : EXIT_FAILED;
}

static int run_node(struct replay *replay)
{
    struct node_error error = {.text = ""};
    struct node_hooks hooks = {.event = take_event,
            .event_context = replay,
            .push = count_push,
            .archived = acknowledge_to_fd,
            .archived_context = &replay->acknowledge_fd,
            .unknown_topic = take_part,
            .unknown_context = replay};
    enum status status = node_create(&replay->node, replay->options, &hooks, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "replay: %s\n", error.text);
        return status == STATUS_BAD_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
    }
    int exit_status = EXIT_FAILED;
    if (replay_tally_create(&replay->tally) == STATUS_OK) {
        status = node_start(replay->node, &error);
        if (status == STATUS_OK && metrics_attach_thread(node_metrics(replay->node)) == STATUS_OK) {
            exit_status = run_files(replay);
        } else {
            fprintf(stderr, "replay: %s\n", error.text);
        }
    }
    metrics_detach_thread();
    node_stop(replay->node);
    node_destroy(&replay->node);
    replay_tally_destroy(&replay->tally);
    return exit_status;
}

int command_replay(int argc, char **argv)
{
    static struct replay replay;
    const struct option_spec *const tables[] = {replay_options, options_of_node, NULL};
    struct options_error error;
    if (options_create(&replay.options, tables) != STATUS_OK) {
        return EXIT_FAILED;
    }
    int exit_status = EXIT_USAGE;
    if (options_parse_arguments(replay.options, argc, argv, &error) != STATUS_OK) {
        fprintf(stderr, "replay: %s\n", error.text);
    } else if (options_flag(replay.options, "help")) {
        printf("usage: sluice replay [OPTIONS] FILE...\n");
        options_print_help(replay.options, stdout);
        exit_status = 0;
    } else if (options_positional_count(replay.options) == 0) {
        fprintf(stderr, "replay: name at least one capture file\n");
    } else if (program_log_start_on_request(replay.options)) {
        replay.shows_progress = isatty(STDERR_FILENO) != 0;
        replay.acknowledge_fd = (int)options_number(replay.options, "acknowledge-fd");
        replay.files = json_object();
        exit_status = run_node(&replay);
        json_decref(replay.files);
        program_log_stop();
    }
    options_destroy(&replay.options);
    return exit_status;
}
