/* SPDX-License-Identifier: MIT */
#include "router/intake.h"

#include <string.h>

#include "base/metrics.h"
#include "codec/gossip_tags.h"
#include "tests/support/cmocka.h"

/* An RPC is written by hand here: field 2 (publish), in it field 2 (data) and field 4 (topic). */
enum {
    PUBLISH = 2 << 3 | 2,
    DATA = 2 << 3 | 2,
    TOPIC = 4 << 3 | 2,
    SIGNATURE = 5 << 3 | 2,
    SUBSCRIPTION = 1 << 3 | 2,
    LANES = 3
};

struct rpc {
    uint8_t bytes[1024];
    size_t length;
};

static struct metrics *metrics;
static struct topic_registry *topics;
static struct intake intake;
static struct inbox *lanes[LANES];
static const struct intake_source source = {
        .received_ns = 5, .received_monotonic_ns = 6, .connection = 7, .origin = ORIGIN_LIGHTPUSH};

static int set_up(void **state)
{
    struct topic_registry_options options = {.max_topics = 16, .lane_count = LANES};
    static const char *const names[] = {"/t/0", "/t/1", "/t/2"};
    (void)state;
    assert_int_equal(metrics_create(&metrics), STATUS_OK);
    assert_int_equal(metrics_attach_thread(metrics), STATUS_OK);
    assert_int_equal(topic_registry_create(&topics, &options), STATUS_OK);
    memset(&intake, 0, sizeof(intake));
    for (size_t i = 0; i < LANES; i++) {
        assert_int_equal(topic_registry_subscribe(topics, NULL, span_of_text(names[i])), STATUS_OK);
        assert_int_equal(inbox_create(&lanes[i]), STATUS_OK);
        intake.lanes[i] = lanes[i];
    }
    intake.topics = topics;
    intake.lane_count = LANES;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < LANES; i++) {
        inbox_destroy(&lanes[i]);
    }
    topic_registry_destroy(&topics);
    metrics_detach_thread();
    metrics_destroy(&metrics);
    return 0;
}

static void put(struct rpc *rpc, uint8_t tag, const char *text)
{
    rpc->bytes[rpc->length++] = tag;
    rpc->bytes[rpc->length++] = (uint8_t)strlen(text);
    memcpy(rpc->bytes + rpc->length, text, strlen(text));
    rpc->length += strlen(text);
}

static void put_message(struct rpc *rpc, const char *topic, const char *data, bool is_signed)
{
    struct rpc inner = {.length = 0};
    put(&inner, DATA, data);
    put(&inner, TOPIC, topic);
    if (is_signed) {
        put(&inner, SIGNATURE, "s");
    }
    rpc->bytes[rpc->length++] = PUBLISH;
    rpc->bytes[rpc->length++] = (uint8_t)inner.length;
    memcpy(rpc->bytes + rpc->length, inner.bytes, inner.length);
    rpc->length += inner.length;
}

static struct frame *frame_of(struct frame_budget *budget, const struct rpc *rpc)
{
    struct frame *frame = frame_try_create(budget, FRAME_BUDGET_COMPLETE, rpc->length);
    assert_non_null(frame);
    memcpy(frame_bytes(frame), rpc->bytes, rpc->length);
    return frame;
}

static enum status post(const struct rpc *rpc, size_t *posted)
{
    return intake_post_rpc(&intake, frame_of(NULL, rpc), &source, posted);
}

static void assert_next(size_t lane, const char *data)
{
    struct frame_part *part = frame_part_of(inbox_try_pop(lanes[lane]));
    assert_non_null(part);
    assert_int_equal(part->message.length, strlen(data));
    assert_memory_equal(part->message.bytes, data, strlen(data));
    frame_part_destroy(part);
}

static void assert_all_empty(void)
{
    for (size_t i = 0; i < LANES; i++) {
        assert_true(inbox_is_empty(lanes[i]));
    }
}

static uint64_t counted(enum metric metric)
{
    return metrics_sum(metrics, metric);
}

static void posts_every_message_of_an_rpc_to_the_lane_of_its_topic_in_order(void **state)
{
    struct rpc rpc = {.length = 0};
    size_t posted = 0;
    (void)state;
    put_message(&rpc, "/t/1", "one", false);
    put_message(&rpc, "/t/0", "two", false);
    put_message(&rpc, "/t/1", "three", false);
    put_message(&rpc, "/t/2", "four", false);
    assert_int_equal(post(&rpc, &posted), STATUS_OK);
    assert_int_equal(posted, 4);
    assert_next(1, "one");
    assert_next(1, "three");
    assert_next(0, "two");
    assert_next(2, "four");
    assert_all_empty();
}

static void a_part_points_into_the_frame_and_knows_where_it_came_from(void **state)
{
    struct rpc rpc = {.length = 0};
    size_t posted = 0;
    (void)state;
    put_message(&rpc, "/t/0", "x", false);
    uint64_t copies = counted(METRIC_COPIES);
    assert_int_equal(post(&rpc, &posted), STATUS_OK);
    struct frame_part *part = frame_part_of(inbox_try_pop(lanes[0]));
    assert_non_null(part);
    assert_in_range((uintptr_t)part->message.bytes, (uintptr_t)frame_bytes(part->frame),
            (uintptr_t)frame_bytes(part->frame) + frame_length(part->frame));
    assert_int_equal(part->received_ns, 5);
    assert_int_equal(part->received_monotonic_ns, 6);
    assert_int_equal(part->connection, 7);
    assert_int_equal(part->origin, ORIGIN_LIGHTPUSH);
    assert_false(part->has_signed_fields);
    assert_null(part->completion);
    assert_int_equal(counted(METRIC_COPIES), copies);
    frame_part_destroy(part);
}

static void says_when_a_message_has_fields_that_must_be_absent(void **state)
{
    struct rpc rpc = {.length = 0};
    size_t posted = 0;
    (void)state;
    put_message(&rpc, "/t/0", "x", true);
    assert_int_equal(post(&rpc, &posted), STATUS_OK);
    struct frame_part *part = frame_part_of(inbox_try_pop(lanes[0]));
    assert_true(part->has_signed_fields);
    frame_part_destroy(part);
}

static void refuses_an_unknown_topic_counts_it_and_takes_the_rest(void **state)
{
    struct rpc rpc = {.length = 0};
    size_t posted = 0;
    (void)state;
    put_message(&rpc, "/t/9", "x", false);
    put_message(&rpc, "/t/0", "y", false);
    assert_int_equal(post(&rpc, &posted), STATUS_OK);
    assert_int_equal(posted, 1);
    assert_int_equal(counted(LEDGER_INTAKE_TOPIC_NOT_SUBSCRIBED), 1);
    assert_int_equal(counted(LEDGER_INTAKE_RECEIVED), 1); /* the other is counted by its lane */
    assert_next(0, "y");
    assert_all_empty();
}

static void refuses_a_topic_that_was_left(void **state)
{
    struct rpc rpc = {.length = 0};
    size_t posted = 0;
    (void)state;
    assert_int_equal(topic_registry_unsubscribe(topics, span_of_text("/t/0")), STATUS_OK);
    put_message(&rpc, "/t/0", "x", false);
    assert_int_equal(post(&rpc, &posted), STATUS_OK);
    assert_int_equal(posted, 0);
    assert_int_equal(counted(LEDGER_INTAKE_TOPIC_NOT_SUBSCRIBED), 1);
    assert_all_empty();
}

static const struct topic *join(void *context, struct span name)
{
    const struct topic *topic = NULL;
    *(int *)context += 1;
    return topic_registry_subscribe(topics, &topic, name) == STATUS_OK ? topic : NULL;
}

static void asks_its_owner_once_about_a_topic_that_it_does_not_know(void **state)
{
    struct rpc rpc = {.length = 0};
    size_t posted = 0;
    int asked = 0;
    (void)state;
    intake.unknown_topic = join;
    intake.unknown_context = &asked;
    put_message(&rpc, "/t/3", "x", false);
    put_message(&rpc, "/t/3", "y", false);
    assert_int_equal(post(&rpc, &posted), STATUS_OK);
    assert_int_equal(posted, 2);
    assert_int_equal(asked, 1);
    assert_next(0, "x"); /* the fourth topic of three lanes */
    assert_next(0, "y");
}

static void refuses_a_malformed_rpc_whole(void **state)
{
    struct rpc rpc = {.length = 0};
    size_t posted = 7;
    struct frame_budget *budget;
    (void)state;
    assert_int_equal(frame_budget_create(&budget, 1 << 20, 1), STATUS_OK);
    put_message(&rpc, "/t/0", "good", false);
    put_message(&rpc, "/t/1", "cut short", false);
    rpc.length -= 3;
    assert_int_not_equal(
            intake_post_rpc(&intake, frame_of(budget, &rpc), &source, &posted), STATUS_OK);
    assert_int_equal(posted, 0);
    assert_int_equal(counted(METRIC_RPCS_MALFORMED), 1);
    assert_int_equal(counted(LEDGER_INTAKE_RECEIVED), 0);
    assert_all_empty();
    assert_int_equal(frame_budget_used(budget), 0); /* the frame is gone */
    frame_budget_destroy(&budget);
}

static void count_entry(void *context, const struct gossip_entry *entry)
{
    assert_int_not_equal(entry->kind, GOSSIP_PUBLISH);
    *(int *)context += 1;
}

static void hands_over_what_is_no_message(void **state)
{
    struct rpc rpc = {.length = 0};
    struct rpc subscription = {.bytes = {1 << 3, 1}, .length = 2};
    size_t posted = 0;
    int entries = 0;
    (void)state;
    put(&subscription, 2 << 3 | 2, "/t/0");
    rpc.bytes[rpc.length++] = SUBSCRIPTION;
    rpc.bytes[rpc.length++] = (uint8_t)subscription.length;
    memcpy(rpc.bytes + rpc.length, subscription.bytes, subscription.length);
    rpc.length += subscription.length;
    put_message(&rpc, "/t/0", "x", false);
    struct intake_source with_control = source;
    with_control.control = count_entry;
    with_control.control_context = &entries;
    assert_int_equal(
            intake_post_rpc(&intake, frame_of(NULL, &rpc), &with_control, &posted), STATUS_OK);
    assert_int_equal(entries, 1);
    assert_int_equal(posted, 1);
    assert_next(0, "x");
    /* where nobody takes it, it is passed over */
    assert_int_equal(intake_post_rpc(&intake, frame_of(NULL, &rpc), &source, &posted), STATUS_OK);
    assert_int_equal(posted, 1);
    assert_next(0, "x");
}

static void an_empty_rpc_posts_nothing_and_gives_its_frame_back(void **state)
{
    struct rpc rpc = {.length = 0};
    size_t posted = 7;
    struct frame_budget *budget;
    (void)state;
    assert_int_equal(frame_budget_create(&budget, 1 << 20, 1), STATUS_OK);
    assert_int_equal(intake_post_rpc(&intake, frame_of(budget, &rpc), &source, &posted), STATUS_OK);
    assert_int_equal(posted, 0);
    assert_int_equal(frame_budget_used(budget), 0);
    frame_budget_destroy(&budget);
}

static void wakes_only_the_lanes_that_got_something(void **state)
{
    struct rpc rpc = {.length = 0};
    uint32_t tickets[LANES];
    size_t posted = 0;
    (void)state;
    put_message(&rpc, "/t/1", "x", false);
    for (size_t i = 0; i < LANES; i++) {
        tickets[i] = parking_prepare(inbox_parking(lanes[i]));
    }
    assert_int_equal(post(&rpc, &posted), STATUS_OK);
    assert_false(parking_wait(inbox_parking(lanes[0]), tickets[0], 0));
    assert_true(parking_wait(inbox_parking(lanes[1]), tickets[1], 0));
    assert_false(parking_wait(inbox_parking(lanes[2]), tickets[2], 0));
    assert_next(1, "x");
}

static void posts_a_local_message_with_its_completion(void **state)
{
    struct rpc message = {.bytes = "payload", .length = 7};
    int completion = 0;
    (void)state;
    const struct topic *topic = topic_registry_find_subscribed(topics, span_of_text("/t/2"));
    assert_int_equal(
            intake_post_message(&intake, frame_of(NULL, &message), topic, &source, &completion),
            STATUS_OK);
    struct frame_part *part = frame_part_of(inbox_try_pop(lanes[2]));
    assert_ptr_equal(part->completion, &completion);
    assert_ptr_equal(part->topic, topic);
    assert_int_equal(part->message.length, 7);
    frame_part_destroy(part);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(posts_every_message_of_an_rpc_to_the_lane_of_its_topic_in_order),
            CASE(a_part_points_into_the_frame_and_knows_where_it_came_from),
            CASE(says_when_a_message_has_fields_that_must_be_absent),
            CASE(refuses_an_unknown_topic_counts_it_and_takes_the_rest),
            CASE(refuses_a_topic_that_was_left),
            CASE(asks_its_owner_once_about_a_topic_that_it_does_not_know),
            CASE(refuses_a_malformed_rpc_whole),
            CASE(hands_over_what_is_no_message),
            CASE(an_empty_rpc_posts_nothing_and_gives_its_frame_back),
            CASE(wakes_only_the_lanes_that_got_something),
            CASE(posts_a_local_message_with_its_completion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
