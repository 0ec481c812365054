/* SPDX-License-Identifier: MIT */

/* What came of a flood: at the application, at the subscribers, in the archive, in the ledgers. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "codec/waku_message.h"
#include "tools/common/report.h"
#include "tools/flood/flood_state.h"

/* Each line of the verdict; good is false for what makes the run fail. */
static bool verdict(const struct flood *flood, bool good, const char *what, uint64_t value)
{
    if (!options_flag(flood->options, "json")) {
        printf("%-34s %12" PRIu64 "%s\n", what, value, good ? "" : "   WRONG");
    }
    return good;
}

static bool report_checker(
        const struct flood *flood, const char *place, const struct checker_result *result)
{
    char what[64];
    snprintf(what, sizeof(what), "%s: lost", place);
    bool good =
            verdict(flood, result->seen == flood->messages, what, flood->messages - result->seen);
    snprintf(what, sizeof(what), "%s: doubled", place);
    good = verdict(flood, result->doubled == 0, what, result->doubled) && good;
    snprintf(what, sizeof(what), "%s: torn", place);
    return verdict(flood, result->torn + result->strange == 0, what,
                   result->torn + result->strange) &&
           good;
}

static enum status check_row(void *context, const struct archive_row *row)
{
    struct waku_message_view view;
    enum status status = waku_message_decode(&view, row->message);
    if (status == STATUS_OK) {
        checker_take(context, view.payload);
    }
    return status;
}

static enum status read_archive(const struct flood *flood, struct checker *checker)
{
    struct archive_reader *reader = NULL;
    struct archive_page page = {.has_cursor = false};
    enum status status = archive_reader_open(&reader, node_archive(flood->node));
    do {
        struct archive_query query = {.include_data = true,
                .limit = ARCHIVE_PAGE_MAX,
                .has_cursor = page.has_cursor,
                .cursor = span_of(page.cursor, sizeof(page.cursor))};
        if (status == STATUS_OK) {
            status = archive_query(reader, &query, check_row, checker, &page);
        }
    } while (status == STATUS_OK && page.has_cursor);
    archive_reader_close(&reader);
    return status;
}

/* An archive that existed before holds strangers; only the numbers of this run count. */
static bool report_archive(const struct flood *flood, struct checker_result *result)
{
    struct checker *checker = NULL;
    if (node_archive(flood->node) == NULL) {
        return true;
    }
    enum status status = checker_create(&checker, flood->messages);
    if (status == STATUS_OK) {
        status = read_archive(flood, checker);
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "flood: reading the archive: %s\n", status_text(status));
        checker_destroy(&checker);
        return false;
    }
    *result = checker_result(checker);
    checker_destroy(&checker);
    return report_checker(flood, "archive", result);
}

static bool report_subscribers(const struct flood *flood)
{
    if (flood->subscriber_count == 0) {
        return true;
    }
    size_t topics = (size_t)options_number(flood->options, "content-topics");
    uint64_t *expected = calloc(topics, sizeof(*expected));
    uint64_t missing = 0;
    uint64_t strangers = 0;
    uint64_t deliveries = 0;
    if (expected == NULL) {
        return false;
    }
    for (uint64_t number = 0; number < flood->messages; number++) {
        expected[generator_content_topic_index(flood->generator, number)]++;
    }
    for (size_t i = 0; i < flood->subscriber_count; i++) {
        const struct flood_subscriber *subscriber = &flood->subscribers[i];
        uint64_t wanted = expected[subscriber->content_topic];
        missing += wanted > subscriber->deliveries ? wanted - subscriber->deliveries
                                                   : subscriber->deliveries - wanted;
        strangers += subscriber->strangers;
        deliveries += subscriber->deliveries;
    }
    free(expected);
    verdict(flood, true, "subscribers: deliveries", deliveries);
    bool good = verdict(flood, missing == 0, "subscribers: missing or doubled", missing);
    return verdict(flood, strangers == 0, "subscribers: not asked for", strangers) && good;
}

static bool report_budget(const struct flood *flood, long *peak_rss_kib)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    *peak_rss_kib = usage.ru_maxrss;
    size_t peak = frame_budget_peak(node_budget(flood->node));
    size_t limit = frame_budget_limit(node_budget(flood->node));
    size_t left = frame_budget_used(node_budget(flood->node));
    verdict(flood, true, "peak resident KiB", (uint64_t)usage.ru_maxrss);
    bool good = verdict(flood, peak <= limit, "frame budget: peak bytes", peak);
    verdict(flood, true, "frame budget: still charged", left);
    return good;
}

static void print_rates(const struct flood *flood)
{
    double seconds = (double)(flood->finished_ns - flood->began_ns) / 1e9;
    double sending = (double)(flood->sent_ns - flood->began_ns) / 1e9;
    printf("\n%" PRIu64 " frames (%" PRIu64
           " copies), %.1f MB, sent in %.3f s, finished in %.3f s: "
           "%.0f frames/s, %.1f MB/s\n",
            flood->frames, flood->copies, (double)flood->bytes / 1e6, sending, seconds,
            (double)flood->frames / seconds, (double)flood->bytes / 1e6 / seconds);
}

static void print_json(const struct flood *flood, const struct checker_result *event,
        const struct checker_result *archive, bool good)
{
    double seconds = (double)(flood->finished_ns - flood->began_ns) / 1e9;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    json_t *result = json_pack("{s:b, s:I, s:I, s:f, s:f, s:f, s:I, s:I, s:I, s:o, s:o}", "ok",
            good, "frames", (json_int_t)flood->frames, "copies", (json_int_t)flood->copies,
            "seconds", seconds, "frames_per_second", (double)flood->frames / seconds,
            "mb_per_second", (double)flood->bytes / 1e6 / seconds, "peak_rss_kib",
            (json_int_t)usage.ru_maxrss, "event_seen", (json_int_t)event->seen, "archive_seen",
            (json_int_t)archive->seen, "ledgers", report_ledgers_json(flood->node), "counters",
            report_counters_json(flood->node));
    json_dumpf(result, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    printf("\n");
    json_decref(result);
}

bool flood_report(struct flood *flood)
{
    bool is_json = options_flag(flood->options, "json");
    struct checker_result event = checker_result(flood->event_checker);
    struct checker_result archive = {0};
    long peak_rss_kib;
    bool good = report_checker(flood, "application", &event);
    good = report_archive(flood, &archive) && good;
    good = report_subscribers(flood) && good;
    good = report_budget(flood, &peak_rss_kib) && good;
    if (is_json) {
        good = report_ledgers_are_closed(flood->node) && good;
        print_json(flood, &event, &archive, good);
        return good;
    }
    printf("\n");
    good = report_print_ledgers(flood->node, stdout) && good;
    printf("\n");
    report_print_counters(flood->node, stdout);
    print_rates(flood);
    printf("flood: %s\n", good ? "everything came out once and whole" : "FAILED");
    return good;
}
