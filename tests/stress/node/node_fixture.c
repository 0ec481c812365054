/* SPDX-License-Identifier: MIT */
#include "tests/stress/node/node_fixture.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rcu.h"
#include "codec/waku_message.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/cmocka.h"

static void take_event(void *context, struct envelope *envelope)
{
    struct node_fixture *fixture = context;
    checker_take(fixture->event_checker, envelope->payload);
}

static void set(struct node_fixture *fixture, const char *name, const char *value)
{
    struct options_error error;
    assert_int_equal(options_set(fixture->options, name, value, &error), STATUS_OK);
}

static void set_options(struct node_fixture *fixture, const struct node_fixture_options *options)
{
    static const struct option_spec *const tables[] = {options_of_node, NULL};
    static const char *const rings[] = {"archive-ring", "filter-ring", "event-ring", "sync-ring"};
    char address[300] = "memory";
    assert_int_equal(options_create(&fixture->options, tables), STATUS_OK);
    if (options->is_on_disk) {
        snprintf(address, sizeof(address), "sqlite://%s/archive.db", fixture->folder);
    }
    set(fixture, "archive", address);
    set(fixture, "memory-budget", "16MiB");
    set(fixture, "decode-lanes", "3");
    set(fixture, "filter-threads", "2");
    set(fixture, "archive-batch", "32");
    for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
        set(fixture, rings[i], options->ring != NULL ? options->ring : "16");
    }
}

static void make_generator(struct node_fixture *fixture, const char *sizes)
{
    struct generator_options wanted = {.seed = 42,
            .sizes = sizes,
            .pubsub_topics = FIXTURE_TOPICS,
            .content_topics = 5,
            .cluster = 66};
    assert_int_equal(generator_create(&fixture->generator, &wanted), STATUS_OK);
}

static void subscribe(struct node_fixture *fixture)
{
    for (uint32_t i = 0; i < FIXTURE_TOPICS; i++) {
        struct span name = generator_pubsub_topic_at(fixture->generator, i);
        assert_int_equal(node_subscribe_topic(fixture->node, NULL, name), STATUS_OK);
    }
}

static void subscribe_filters(struct node_fixture *fixture)
{
    struct span content = generator_content_topic_at(fixture->generator, 0);
    for (uint64_t id = 1; id <= 4; id++) {
        struct subscription_request request = {
                .pubsub_topic = generator_pubsub_topic_at(fixture->generator, 0),
                .content_topics = &content,
                .content_topic_count = 1};
        assert_int_equal(
                node_filter_subscribe(fixture->node, (struct subscriber_entry){.id = id}, &request),
                SUBSCRIPTION_OK);
    }
}

void node_fixture_start(struct node_fixture *fixture, const struct node_fixture_options *options)
{
    struct node_error error;
    memset(fixture, 0, sizeof(*fixture));
    fixture_make_folder(fixture->folder);
    set_options(fixture, options);
    make_generator(fixture, options->sizes);
    assert_int_equal(checker_create(&fixture->event_checker, FIXTURE_MESSAGES_MAX), STATUS_OK);
    fixture->timestamp_ns = clock_wall_ns();
    fixture->shared_freed = metrics_sum(NULL, METRIC_ENVELOPES_FREED);
    struct node_hooks hooks = {.event = take_event, .event_context = fixture};
    enum status status = node_create(&fixture->node, fixture->options, &hooks, &error);
    if (status != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    subscribe(fixture);
    assert_int_equal(node_start(fixture->node, &error), STATUS_OK);
    subscribe_filters(fixture);
}

static void post_frame(
        struct node_fixture *fixture, struct frame *frame, struct generator_message message)
{
    size_t posted = 0;
    generator_fill_rpc(fixture->generator, message, frame_bytes(frame));
    /* The clock of the frame is the one of the message, so none is out of range. */
    struct intake_source source = {.received_ns = fixture->timestamp_ns,
            .received_monotonic_ns = clock_monotonic_ns(),
            .connection = 1,
            .origin = ORIGIN_MESH};
    enum status status = intake_post_rpc(node_intake(fixture->node), frame, &source, &posted);
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(posted, 1);
}

bool node_fixture_post(struct node_fixture *fixture, uint64_t number, bool may_wait)
{
    struct generator_message message = {
            .number = number, .timestamp_ns = fixture->timestamp_ns + (int64_t)number};
    size_t size = generator_rpc_size(fixture->generator, message);
    struct frame_budget *budget = node_budget(fixture->node);
    struct frame *frame = may_wait ? node_wait_credit(fixture->node, size)
                                   : frame_try_create(budget, FRAME_BUDGET_COMPLETE, size);
    if (frame == NULL) {
        assert_false(may_wait);
        return false;
    }
    post_frame(fixture, frame, message);
    return true;
}

void node_fixture_post_closed(struct node_fixture *fixture, uint64_t number)
{
    struct generator_message message = {
            .number = number, .timestamp_ns = fixture->timestamp_ns + (int64_t)number};
    size_t size = generator_rpc_size(fixture->generator, message);
    struct frame *frame = node_wait_frame(fixture->node, size);
    assert_non_null(frame);
    post_frame(fixture, frame, message);
}

uint64_t node_fixture_count(const struct node_fixture *fixture, enum metric metric)
{
    return metrics_sum(node_metrics(fixture->node), metric);
}

static enum status check_row(void *context, const struct archive_row *row)
{
    struct waku_message_view view;
    assert_int_equal(waku_message_decode(&view, row->message), STATUS_OK);
    checker_take(context, view.payload);
    return STATUS_OK;
}

static struct checker_result read_archive(const struct node_fixture *fixture)
{
    struct archive_reader *reader;
    struct archive_page page = {.has_cursor = false};
    struct checker *checker;
    assert_int_equal(checker_create(&checker, FIXTURE_MESSAGES_MAX), STATUS_OK);
    assert_int_equal(archive_reader_open(&reader, node_archive(fixture->node)), STATUS_OK);
    do {
        struct archive_query query = {.include_data = true,
                .limit = ARCHIVE_PAGE_MAX,
                .has_cursor = page.has_cursor,
                .cursor = span_of(page.cursor, sizeof(page.cursor))};
        assert_int_equal(archive_query(reader, &query, check_row, checker, &page), STATUS_OK);
    } while (page.has_cursor);
    archive_reader_close(&reader);
    struct checker_result result = checker_result(checker);
    checker_destroy(&checker);
    return result;
}

static void assert_whole(struct checker_result result, uint64_t expected)
{
    assert_int_equal(result.torn, 0);
    assert_int_equal(result.doubled, 0);
    assert_int_equal(result.strange, 0);
    assert_int_equal(result.seen, expected);
}

static void assert_ledgers_closed(const struct node_fixture *fixture)
{
    for (size_t i = 0; i < LEDGER_STAGES; i++) {
        enum ledger_stage stage = (enum ledger_stage)i;
        struct ledger ledger;
        ledger_read(&ledger, node_metrics(fixture->node), stage, node_held(fixture->node, stage));
        bool closed = ledger_is_closed(&ledger);
        if (!closed) {
            print_error("the ledger of %s does not close\n", ledger_stage_name(stage));
        }
        assert_true(closed);
        /* A stop gives the archive's engine two seconds and leaves the rest in the spill file. */
        assert_true(ledger.held == 0 || stage == LEDGER_STAGE_ARCHIVE);
    }
}

void node_fixture_wait_stored(const struct node_fixture *fixture)
{
    struct timespec slice = {.tv_nsec = (long)10 * NANOSECONDS_PER_MILLISECOND};
    uint64_t end_ns =
            clock_monotonic_ns() + (uint64_t)FIXTURE_STORED_WAIT_S * NANOSECONDS_PER_SECOND;
    while (node_held(fixture->node, LEDGER_STAGE_ARCHIVE) > 0 && clock_monotonic_ns() < end_ns) {
        nanosleep(&slice, NULL);
    }
    assert_int_equal(node_held(fixture->node, LEDGER_STAGE_ARCHIVE), 0);
}

void node_fixture_stop_checked(
        struct node_fixture *fixture, uint64_t posted_count, uint64_t unique_count)
{
    const struct node_fixture *f = fixture;
    node_stop(fixture->node);
    assert_ledgers_closed(fixture);
    assert_int_equal(node_fixture_count(f, LEDGER_INTAKE_RECEIVED), posted_count);
    assert_int_equal(node_fixture_count(f, LEDGER_INTAKE_DELIVERED), unique_count);
    assert_int_equal(node_fixture_count(f, LEDGER_INTAKE_DUPLICATE), posted_count - unique_count);
    assert_int_equal(node_fixture_count(f, LEDGER_ARCHIVE_RECEIVED), unique_count);
    assert_whole(read_archive(fixture), node_fixture_count(f, LEDGER_ARCHIVE_DELIVERED));
    assert_whole(
            checker_result(fixture->event_checker), node_fixture_count(f, LEDGER_EVENT_DELIVERED));
    assert_true(frame_budget_peak(node_budget(f->node)) <= FIXTURE_BUDGET_BYTES);
    assert_int_equal(node_fixture_count(f, METRIC_COPIES), 0);
}

void node_fixture_end(struct node_fixture *fixture)
{
    uint64_t made = node_fixture_count(fixture, METRIC_ENVELOPES);
    uint64_t freed = node_fixture_count(fixture, METRIC_ENVELOPES_FREED);
    node_destroy(&fixture->node);
    rcu_drain();
    /* What this thread and the reclaimer freed stands in the row of the threads without one. */
    freed += metrics_sum(NULL, METRIC_ENVELOPES_FREED) - fixture->shared_freed;
    assert_int_equal(made, freed);
    checker_destroy(&fixture->event_checker);
    generator_destroy(&fixture->generator);
    options_destroy(&fixture->options);
    fixture_remove_folder(fixture->folder);
}

uint32_t node_fixture_draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32);
}
