/* SPDX-License-Identifier: MIT */

/* The turns of the event, filter and sync workers. */

#include <string.h>

#include "base/ledger.h"
#include "base/rcu.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/cmocka.h"
#include "workers/event_worker.h"
#include "workers/filter_worker.h"
#include "workers/sync_worker.h"

enum {
    RING = 16,
    MOST = 64
};

static struct metrics *metrics;
static struct progress progress;
static struct parking parking;
static struct stage_load load;
static struct spmc_ring *ring;
static size_t slot;

static struct inbox *tasks;

/* What the application or a subscriber got. */
static int64_t got[MOST];
static uint64_t got_by[MOST];
static size_t got_count;

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(metrics_create(&metrics), STATUS_OK);
    assert_int_equal(metrics_attach_thread(metrics), STATUS_OK);
    progress_init(&progress);
    parking_init(&parking);
    load = (struct stage_load){.lane_count = 1};
    slot = progress_add_slot(&progress, progress_add_stage(&progress));
    assert_int_equal(spmc_ring_create(&ring, RING, &parking), STATUS_OK);
    assert_int_equal(inbox_create(&tasks), STATUS_OK);
    got_count = 0;
    rcu_register();
    return 0;
}

static uint64_t counted(enum metric metric)
{
    return metrics_sum(metrics, metric);
}

static int tear_down(void **state)
{
    (void)state;
    rcu_unregister();
    rcu_drain();
    spmc_ring_destroy(&ring);
    inbox_destroy(&tasks);
    assert_int_equal(counted(METRIC_ENVELOPES), counted(METRIC_ENVELOPES_FREED));
    assert_int_equal(stage_load_bytes(&load), 0);
    metrics_detach_thread();
    metrics_destroy(&metrics);
    return 0;
}

static void push(unsigned number, unsigned content)
{
    struct fixture_message fields = {.number = number,
            .timestamp_ns = (int64_t)number,
            .content = content,
            .payload_bytes = 8};
    struct envelope *envelope = fixture_envelope(&fields);
    stage_load_add(&load, 0, stage_load_of(envelope));
    assert_true(spmc_ring_try_push(ring, envelope));
}

static struct ring_set rings(void)
{
    return (struct ring_set){.rings = {ring}, .count = 1, .load = &load};
}

static void note_event(void *context, struct envelope *envelope)
{
    assert_ptr_equal(context, &got_count);
    got[got_count++] = envelope->timestamp_ns;
}

static void hands_messages_to_the_application_in_order(void **state)
{
    struct event_worker worker = {.rings = rings(),
            .tasks = tasks,
            .parking = &parking,
            .progress = &progress,
            .progress_slot = slot,
            .callback = note_event,
            .callback_context = &got_count};
    struct worker_role role = event_worker_role(&worker, "event");
    (void)state;
    assert_int_equal(role.turn(&worker), 0);
    assert_false(role.has_work(&worker));
    for (unsigned i = 0; i < 10; i++) {
        push(i, 0);
    }
    assert_true(role.has_work(&worker));
    assert_int_equal(role.turn(&worker), 10);
    assert_int_equal(got_count, 10);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(got[i], i);
    }
    assert_int_equal(counted(LEDGER_EVENT_DELIVERED), 10);
    assert_int_equal(progress_finished(&progress), 10);
}

/* The callback may block, so no grace period may wait for this thread meanwhile. */
static void wait_for_a_grace_period(void *context, struct envelope *envelope)
{
    (void)context;
    (void)envelope;
    /* The thread is offline: else this would wait for itself. */
    assert_false(urcu_qsbr_read_ongoing());
    got_count++;
}

static void is_offline_while_the_application_has_the_message(void **state)
{
    struct event_worker worker = {.rings = rings(),
            .tasks = tasks,
            .parking = &parking,
            .progress = &progress,
            .progress_slot = slot,
            .callback = wait_for_a_grace_period};
    struct worker_role role = event_worker_role(&worker, "event");
    (void)state;
    push(1, 0);
    assert_int_equal(role.turn(&worker), 1);
    assert_int_equal(got_count, 1);
    assert_true(urcu_qsbr_read_ongoing()); /* online again */
}

static void count_task(struct event_task *task)
{
    (void)task;
    assert_false(urcu_qsbr_read_ongoing());
    got_count++;
}

static void carries_out_tasks_and_wakes_for_them(void **state)
{
    struct event_worker worker = {.rings = rings(),
            .tasks = tasks,
            .parking = &parking,
            .progress = &progress,
            .progress_slot = slot};
    struct worker_role role = event_worker_role(&worker, "event");
    struct event_task task = {.carry_out = count_task};
    (void)state;
    uint32_t ticket = parking_prepare(&parking);
    event_worker_post(&worker, &task);
    assert_true(parking_wait(&parking, ticket, 0));
    assert_true(role.has_work(&worker));
    assert_int_equal(role.turn(&worker), 1);
    assert_int_equal(got_count, 1);
    assert_false(role.has_work(&worker));
}

static void without_an_application_everything_is_delivered(void **state)
{
    struct event_worker worker = {.rings = rings(),
            .tasks = tasks,
            .parking = &parking,
            .progress = &progress,
            .progress_slot = slot};
    struct worker_role role = event_worker_role(&worker, "event");
    (void)state;
    push(1, 0);
    assert_int_equal(role.turn(&worker), 1);
    assert_int_equal(counted(LEDGER_EVENT_DELIVERED), 1);
}

/* The filter worker. */

static struct filter_worker filter;
static struct worker_role filter_role;

static void note_push(
        void *context, const struct subscriber_entry *subscriber, struct envelope *envelope)
{
    assert_ptr_equal(context, &filter);
    got_by[got_count] = subscriber->id;
    got[got_count++] = envelope->timestamp_ns;
}

static int set_up_filter(void **state)
{
    set_up(state);
    filter = (struct filter_worker){.rings = rings(),
            .progress = &progress,
            .progress_slot = slot,
            .push = note_push,
            .push_context = &filter};
    assert_int_equal(inbox_create(&filter.requests), STATUS_OK);
    assert_int_equal(
            subscriptions_create(&filter.subscriptions, &subscriptions_defaults), STATUS_OK);
    filter_role = filter_worker_role(&filter, "filter");
    return 0;
}

static int tear_down_filter(void **state)
{
    subscriptions_destroy(&filter.subscriptions);
    inbox_destroy(&filter.requests);
    return tear_down(state);
}

struct toy_request {
    struct filter_request request;
    uint64_t id;
    unsigned content;
    bool is_done;
};

static void subscribe(struct filter_request *request, struct subscriptions *subscriptions)
{
    struct toy_request *toy = (struct toy_request *)request;
    struct span content = fixture_content_topic(toy->content);
    struct subscription_request wanted = {.pubsub_topic = fixture_pubsub_topic(0),
            .content_topics = &content,
            .content_topic_count = 1};
    bool is_new;
    assert_int_equal(subscriptions_subscribe(subscriptions,
                             (struct subscriber_entry){.id = toy->id}, &wanted, 0, &is_new),
            SUBSCRIPTION_OK);
    toy->is_done = true;
}

static void request(struct toy_request *toy, uint64_t id, unsigned content)
{
    *toy = (struct toy_request){.request.carry_out = subscribe, .id = id, .content = content};
    inbox_push(filter.requests, &toy->request.link);
}

static void gives_each_subscriber_what_it_asked_for_and_nothing_else(void **state)
{
    struct toy_request toys[3];
    (void)state;
    filter.next_expiry_ns = UINT64_MAX;
    request(&toys[0], 1, 0);
    request(&toys[1], 2, 1);
    request(&toys[2], 3, 0);
    assert_true(filter_role.has_work(&filter));
    push(10, 0);
    push(11, 1);
    push(12, 2);
    /* Requests come before messages that were there already. */
    assert_true(filter_role.turn(&filter) > 0);
    assert_true(toys[0].is_done && toys[1].is_done && toys[2].is_done);
    assert_int_equal(got_count, 3);
    uint64_t by_10 = 0;
    for (size_t i = 0; i < 3; i++) {
        by_10 += got[i] == 10 ? got_by[i] : 0;
        assert_true(got[i] != 11 || got_by[i] == 2);
        assert_true(got[i] != 12);
    }
    assert_int_equal(by_10, 1 + 3);
    assert_int_equal(counted(METRIC_FILTER_PUSHES), 3);
    assert_int_equal(counted(LEDGER_FILTER_DELIVERED), 3);
    assert_int_equal(progress_finished(&progress), 3);
}

static void forgets_subscribers_that_were_not_heard_of_for_long(void **state)
{
    struct toy_request toy;
    struct subscriptions_options options = subscriptions_defaults;
    (void)state;
    subscriptions_destroy(&filter.subscriptions);
    options.expiry_ns = 1;
    assert_int_equal(subscriptions_create(&filter.subscriptions, &options), STATUS_OK);
    filter.next_expiry_ns = UINT64_MAX;
    request(&toy, 1, 0); /* last heard of at time 0 */
    filter_role.turn(&filter);
    assert_int_equal(filter_role.deadline(&filter), UINT64_MAX);
    assert_int_equal(subscriptions_peer_count(filter.subscriptions), 1);
    filter.next_expiry_ns = 0;
    filter_role.turn(&filter);
    assert_true(filter.next_expiry_ns > 0);
    assert_int_equal(subscriptions_peer_count(filter.subscriptions), 0);
}

/* The message hash decides: another encoding of a message is the same push. */
static void pushes_a_message_once_however_often_it_comes(void **state)
{
    struct toy_request toy;
    (void)state;
    assert_int_equal(
            seen_set_create(&filter.pushed, SEEN_SET_MIN_LIMIT_BYTES, UINT64_MAX), STATUS_OK);
    filter.next_expiry_ns = UINT64_MAX;
    push(9, 0); /* while nobody is there */
    filter_role.turn(&filter);
    request(&toy, 1, 0);
    push(10, 0);
    push(10, 0);
    push(11, 0);
    push(9, 0);
    filter_role.turn(&filter);
    push(10, 0);
    filter_role.turn(&filter);
    assert_int_equal(got_count, 3);
    assert_int_equal(got[0], 10);
    assert_int_equal(got[1], 11);
    assert_int_equal(got[2], 9);
    assert_int_equal(counted(METRIC_FILTER_COPIES), 2);
    seen_set_destroy(&filter.pushed);
}

static void note_port_push(
        void *context, const struct subscriber_list *list, struct envelope *envelope)
{
    (void)context;
    got[got_count] = envelope->timestamp_ns;
    got_by[got_count++] = list->count;
}

static void note_flush(void *context)
{
    *(size_t *)context += 1;
}

static void gives_the_port_a_list_a_message_and_one_flush_a_turn(void **state)
{
    struct toy_request toys[2];
    size_t flushes = 0;
    (void)state;
    filter.push = NULL;
    filter.port =
            (struct filter_port){.push = note_port_push, .flush = note_flush, .context = &flushes};
    filter.next_expiry_ns = UINT64_MAX;
    request(&toys[0], 1, 0);
    request(&toys[1], 2, 0);
    filter_role.turn(&filter);
    assert_int_equal(flushes, 0); /* there was nothing */
    push(10, 0);
    push(11, 1); /* for nobody */
    push(12, 0);
    filter_role.turn(&filter);
    assert_int_equal(flushes, 1);
    assert_int_equal(got_count, 2);
    assert_int_equal(got[1], 12);
    assert_int_equal(got_by[0], 2);
    filter_role.turn(&filter);
    assert_int_equal(flushes, 1);
    assert_int_equal(counted(METRIC_FILTER_PUSHES), 4);
}

static void sleeps_without_a_deadline_when_nobody_is_subscribed(void **state)
{
    (void)state;
    filter_role.turn(&filter);
    assert_int_equal(filter_role.deadline(&filter), UINT64_MAX);
    assert_int_equal(filter_role.turn(&filter), 0);
}

/* The sync worker. */

static struct dispatcher dispatcher;
static struct sync_worker sync_stage;
static struct worker_role sync_role;

static int set_up_sync(void **state)
{
    set_up(state);
    dispatcher_init(&dispatcher);
    dispatcher.progress = &progress;
    dispatcher.slot_sync = slot;
    assert_int_equal(id_ring_create(&dispatcher.sync, RING, &parking), STATUS_OK);
    sync_stage = (struct sync_worker){.rings = {dispatcher.sync},
            .dispatchers = {&dispatcher},
            .lane_count = 1,
            .parking = &parking,
            .progress = &progress,
            .progress_slot = progress_add_slot(&progress, 1)};
    assert_int_equal(sync_set_create(&sync_stage.set, 1000), STATUS_OK);
    sync_role = sync_worker_role(&sync_stage, "sync");
    return 0;
}

static int tear_down_sync(void **state)
{
    sync_set_destroy(&sync_stage.set);
    id_ring_destroy(&dispatcher.sync);
    return tear_down(state);
}

static void publish(unsigned number)
{
    struct fixture_message fields = {
            .number = number, .timestamp_ns = (int64_t)number, .payload_bytes = 8};
    dispatcher_publish(&dispatcher, fixture_envelope(&fields));
}

static void assert_sync_closed(void)
{
    struct ledger ledger;
    ledger_read(&ledger, metrics, LEDGER_STAGE_SYNC, id_ring_depth_estimate(dispatcher.sync));
    assert_true(ledger_is_closed(&ledger));
}

static void puts_ids_in_the_set_and_counts_repetitions(void **state)
{
    (void)state;
    publish(1);
    publish(2);
    publish(1);
    assert_true(sync_role.has_work(&sync_stage));
    assert_int_equal(sync_role.turn(&sync_stage), 3);
    assert_int_equal(sync_set_count(sync_stage.set), 2);
    assert_int_equal(counted(LEDGER_SYNC_DELIVERED), 2);
    assert_int_equal(counted(LEDGER_SYNC_DUPLICATE), 1);
    assert_int_equal(progress_finished(&progress), 3);
    assert_false(sync_role.has_work(&sync_stage));
    assert_sync_closed();
}

static void refuses_ids_of_a_time_that_it_no_longer_covers(void **state)
{
    (void)state;
    sync_set_prune(sync_stage.set, 100, 10);
    publish(99);
    publish(100);
    sync_role.turn(&sync_stage);
    assert_int_equal(counted(LEDGER_SYNC_TOO_OLD), 1);
    assert_int_equal(sync_set_count(sync_stage.set), 1);
    assert_sync_closed();
}

static void marks_the_time_of_lost_ids_as_incomplete(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RING + 3; i++) {
        publish(100 + i);
    }
    assert_int_equal(counted(LEDGER_SYNC_RING_FULL), 3);
    sync_role.turn(&sync_stage);
    assert_int_equal(sync_set_gap_count(sync_stage.set), 1);
    struct sync_gap gap = sync_set_gap_at(sync_stage.set, 0);
    assert_int_equal(gap.from_ns, 100 + RING);
    assert_int_equal(gap.to_ns, 100 + RING + 2);
    assert_sync_closed();
}

#define CASE(name)        cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define FILTER_CASE(name) cmocka_unit_test_setup_teardown(name, set_up_filter, tear_down_filter)
#define SYNC_CASE(name)   cmocka_unit_test_setup_teardown(name, set_up_sync, tear_down_sync)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(hands_messages_to_the_application_in_order),
            CASE(is_offline_while_the_application_has_the_message),
            CASE(carries_out_tasks_and_wakes_for_them),
            CASE(without_an_application_everything_is_delivered),
            FILTER_CASE(gives_each_subscriber_what_it_asked_for_and_nothing_else),
            FILTER_CASE(forgets_subscribers_that_were_not_heard_of_for_long),
            FILTER_CASE(pushes_a_message_once_however_often_it_comes),
            FILTER_CASE(gives_the_port_a_list_a_message_and_one_flush_a_turn),
            FILTER_CASE(sleeps_without_a_deadline_when_nobody_is_subscribed),
            SYNC_CASE(puts_ids_in_the_set_and_counts_repetitions),
            SYNC_CASE(refuses_ids_of_a_time_that_it_no_longer_covers),
            SYNC_CASE(marks_the_time_of_lost_ids_as_incomplete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
