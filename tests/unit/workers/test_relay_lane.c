/* SPDX-License-Identifier: MIT */
#include "tests/support/cmocka.h"

#include <string.h>

#include "base/rcu.h"
#include "hash/message_id.h"
#include "router/scores.h"
#include "tests/support/mesh_fixture.h"
#include "tests/support/parts.h"
#include "workers/decode_worker.h"
#include "workers/relay_lane.h"

enum {
    PEERS = 12
};

static const struct topic topic = {.name = {(const uint8_t *)"/waku/2/rs/16/0", 15}};

/* What a lane's relay half says, without io threads: tickets are counted and dropped. */
struct fixture {
    struct inbox *inbox;
    struct inbox *events;
    struct intake intake;
    struct lane *lane;
    struct relay_lane *relay;
    struct score_card cards[PEERS + 1];
    uint64_t now_ns;
    size_t posted;
};

static void drop_ticket(void *context, struct relay_ticket *ticket)
{
    struct fixture *fixture = context;
    fixture->posted++;
    relay_parcel_unref(ticket->parcel);
}

static void ignore_flush(void *context)
{
    (void)context;
}

static void ignore_disconnect(void *context, uint64_t connection)
{
    (void)context;
    (void)connection;
}

static int set_up(void **state)
{
    static struct fixture fixture;
    struct lane_options lane = {.max_message_bytes = 4096,
            .recent_limit_bytes = 65536,
            .seen_limit_bytes = 65536,
            .seen_window_ns = 120 * SECOND_NS,
            .has_message_ids = true};
    memset(&fixture, 0, sizeof(fixture));
    rcu_register();
    assert_int_equal(inbox_create(&fixture.inbox), STATUS_OK);
    assert_int_equal(inbox_create(&fixture.events), STATUS_OK);
    assert_int_equal(lane_create(&fixture.lane, &lane), STATUS_OK);
    fixture.intake.lanes[0] = fixture.inbox;
    fixture.intake.events[0] = fixture.events;
    fixture.intake.lane_count = 1;
    fixture.now_ns = 1000 * SECOND_NS;
    struct relay_lane_options options = {.mesh = mesh_defaults,
            .scores = score_defaults,
            .events = fixture.events,
            .intake = &fixture.intake,
            .lane = fixture.lane,
            .port = {.post = drop_ticket,
                    .flush = ignore_flush,
                    .disconnect = ignore_disconnect,
                    .context = &fixture}};
    assert_int_equal(relay_lane_create(&fixture.relay, &options), STATUS_OK);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    relay_lane_destroy(&fixture->relay);
    lane_destroy(&fixture->lane);
    inbox_destroy(&fixture->events);
    inbox_destroy(&fixture->inbox);
    rcu_unregister();
    return 0;
}

static struct lane_event *make_event(enum lane_event_kind kind, uint64_t peer, uint64_t connection)
{
    struct lane_event *event = lane_event_create(kind, peer, NULL);
    assert_non_null(event);
    event->connection = connection;
    event->topic = &topic;
    return event;
}

static void tell(struct fixture *fixture, struct lane_event *event)
{
    intake_post_event(&fixture->intake, 0, event);
    while (relay_lane_turn(fixture->relay, fixture->now_ns) > 0) {
    }
}

static void join_peer(struct fixture *fixture, uint64_t peer, uint64_t connection)
{
    struct lane_event *event = make_event(LANE_EVENT_PEER_JOINED, peer, connection);
    event->card = &fixture->cards[peer];
    tell(fixture, event);
}

static void join_topic(struct fixture *fixture)
{
    tell(fixture, make_event(LANE_EVENT_JOIN_TOPIC, 0, 0));
}

/* To how many peers a new message goes. */
static size_t accept_message(struct fixture *fixture, enum message_origin origin, uint64_t sender)
{
    static uint64_t number;
    struct envelope *envelope = make_message(++number, &topic, 100);
    envelope->origin = origin;
    envelope->connection = sender;
    size_t count = relay_lane_accepted(fixture->relay, envelope, fixture->now_ns);
    envelope_unref(envelope);
    return count;
}

static void passes_over_what_an_older_connection_of_a_peer_says(void **state)
{
    struct fixture *fixture = *state;
    join_topic(fixture);
    join_peer(fixture, 1, 101);
    join_peer(fixture, 1, 102);
    tell(fixture, make_event(LANE_EVENT_SUBSCRIBE, 1, 101));
    assert_int_equal(accept_message(fixture, ORIGIN_API, 0), 0);
    tell(fixture, make_event(LANE_EVENT_SUBSCRIBE, 1, 102));
    assert_int_equal(accept_message(fixture, ORIGIN_API, 0), 1);
    tell(fixture, make_event(LANE_EVENT_UNSUBSCRIBE, 1, 101));
    tell(fixture, make_event(LANE_EVENT_PEER_LEFT, 1, 101));
    assert_int_equal(accept_message(fixture, ORIGIN_API, 0), 1);
}

/* Their io threads tell of two connections in any order. */
static void an_older_connection_that_joins_last_does_not_take_the_peer_away(void **state)
{
    struct fixture *fixture = *state;
    join_topic(fixture);
    struct lane_event *newer = make_event(LANE_EVENT_PEER_JOINED, 1, 102);
    newer->card = &fixture->cards[1];
    newer->admission = 8;
    tell(fixture, newer);
    struct lane_event *older = make_event(LANE_EVENT_PEER_JOINED, 1, 101);
    older->card = &fixture->cards[2];
    older->admission = 7;
    tell(fixture, older);
    tell(fixture, make_event(LANE_EVENT_SUBSCRIBE, 1, 102));
    tell(fixture, make_event(LANE_EVENT_UNSUBSCRIBE, 1, 101));
    assert_int_equal(accept_message(fixture, ORIGIN_API, 0), 1);
    tell(fixture, make_event(LANE_EVENT_PEER_LEFT, 1, 101));
    assert_int_equal(accept_message(fixture, ORIGIN_API, 0), 1);
    tell(fixture, make_event(LANE_EVENT_PEER_LEFT, 1, 102));
    assert_int_equal(accept_message(fixture, ORIGIN_API, 0), 0);
}

static void does_not_take_the_message_of_a_peer_that_has_left_for_its_own(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t peer = 1; peer <= PEERS; peer++) {
        join_peer(fixture, peer, 100 + peer);
        tell(fixture, make_event(LANE_EVENT_SUBSCRIBE, peer, 100 + peer));
    }
    join_topic(fixture);
    assert_int_equal(accept_message(fixture, ORIGIN_API, 0), PEERS);
    assert_int_equal(accept_message(fixture, ORIGIN_MESH, 999), mesh_defaults.d);
}

/* An IHAVE of one id. */
static void offer(struct fixture *fixture, uint64_t peer, const uint8_t id[MESSAGE_ID_BYTES])
{
    struct made_items made = make_items(0, 1);
    memcpy(made.bytes + 2, id, MESSAGE_ID_BYTES);
    struct lane_event *event = make_event(LANE_EVENT_IHAVE, peer, 100 + peer);
    event->items = made.items;
    tell(fixture, event);
    free(made.bytes);
}

static double score_after_a_promise(struct fixture *fixture, bool is_kept)
{
    uint8_t id[MESSAGE_ID_BYTES];
    struct frame_part *part = test_part_of_bytes(&topic, span_of_text("not even a message"));
    message_id(id, part->message);
    join_topic(fixture);
    join_peer(fixture, 1, 101);
    tell(fixture, make_event(LANE_EVENT_SUBSCRIBE, 1, 101));
    size_t posted = fixture->posted;
    offer(fixture, 1, id);
    assert_int_equal(fixture->posted, posted + 1); /* IWANT */
    if (is_kept) {
        part->connection = 101;
        part->origin = ORIGIN_MESH;
        relay_lane_refused(
                fixture->relay, part, LEDGER_INTAKE_SIGNED_FIELDS_PRESENT, fixture->now_ns);
        offer(fixture, 1, id);
        assert_int_equal(fixture->posted, posted + 1); /* it would be refused again */
    }
    frame_part_destroy(part);
    fixture->now_ns += 5 * SECOND_NS;
    while (relay_lane_turn(fixture->relay, fixture->now_ns) > 0) {
    }
    /* Without what it earned in the mesh meanwhile. */
    return atomic_load_explicit(&fixture->cards[1].general, memory_order_relaxed);
}

static void blames_a_peer_for_a_message_that_it_promised_and_never_sent(void **state)
{
    assert_true(score_after_a_promise(*state, false) < 0);
}

static void does_not_blame_a_peer_whose_promised_message_is_ignored(void **state)
{
    assert_true(score_after_a_promise(*state, true) >= 0);
}

/* What the peer's card shows after it sent something that the lane refused for that reason. */
static double score_after_a_refusal(struct fixture *fixture, uint64_t peer, enum metric reason)
{
    struct frame_part *part = test_part_of_bytes(&topic, span_of_text("not even a message"));
    part->connection = 100 + peer;
    part->origin = ORIGIN_MESH;
    join_peer(fixture, peer, part->connection);
    relay_lane_refused(fixture->relay, part, reason, fixture->now_ns);
    frame_part_destroy(part);
    return score_card_total(&fixture->cards[peer]);
}

static void blames_who_sends_what_everybody_refuses_and_nobody_else(void **state)
{
    static const enum metric blamed[] = {LEDGER_INTAKE_NOT_DECODABLE, LEDGER_INTAKE_PAYLOAD_MISSING,
            LEDGER_INTAKE_META_TOO_LONG, LEDGER_INTAKE_NOT_SIGNED};
    static const enum metric spared[] = {LEDGER_INTAKE_CONTENT_TOPIC_NOT_UTF8,
            LEDGER_INTAKE_TIMESTAMP_OUT_OF_RANGE, LEDGER_INTAKE_NO_MEMORY,
            LEDGER_INTAKE_SIGNED_FIELDS_PRESENT};
    struct fixture *fixture = *state;
    uint64_t peer = 0;
    join_topic(fixture);
    for (size_t i = 0; i < 4; i++) {
        assert_true(score_after_a_refusal(fixture, ++peer, blamed[i]) <= -99); /* P4: -100 */
        assert_true(score_after_a_refusal(fixture, ++peer, spared[i]) >= 0);
    }
}

static void note_peer_count(
        void *context, void *completion, const struct lane_decision *decision, size_t peer_count)
{
    (void)context;
    assert_int_equal(decision->verdict, LANE_NEW);
    *(size_t *)completion = peer_count;
}

/* More events than one turn takes, and then the message: all that was told before it counts. */
static void hears_what_was_told_before_a_message_however_much_it_was(void **state)
{
    enum {
        TALK = 300
    };
    struct fixture *fixture = *state;
    struct progress progress;
    struct dispatcher dispatcher;
    size_t peer_count = SIZE_MAX;
    progress_init(&progress);
    dispatcher_init(&dispatcher);
    dispatcher.progress = &progress;
    struct decode_worker worker = {.lane = fixture->lane,
            .inbox = fixture->inbox,
            .relay = fixture->relay,
            .dispatcher = &dispatcher,
            .progress = &progress,
            .progress_slot = progress_add_slot(&progress, PROGRESS_INTAKE),
            .verdict = note_peer_count};
    struct worker_role role = decode_worker_role(&worker, "decode");
    join_topic(fixture);
    join_peer(fixture, 1, 101);
    for (size_t i = 0; i < TALK; i++) {
        intake_post_event(&fixture->intake, 0, make_event(LANE_EVENT_UNSUBSCRIBE, 1, 101));
    }
    intake_post_event(&fixture->intake, 0, make_event(LANE_EVENT_SUBSCRIBE, 1, 101));
    struct test_message message = {
            .payload = "x", .content_topic = "/a/1/b/c", .timestamp_ns = TEST_RECEIVED_NS};
    struct frame_part *part = test_part(&topic, &message);
    part->origin = ORIGIN_API;
    part->completion = &peer_count;
    inbox_push(fixture->inbox, &part->link);
    role.turn(&worker);
    assert_int_equal(peer_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(
                    hears_what_was_told_before_a_message_however_much_it_was, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    passes_over_what_an_older_connection_of_a_peer_says, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    an_older_connection_that_joins_last_does_not_take_the_peer_away, set_up,
                    tear_down),
            cmocka_unit_test_setup_teardown(
                    does_not_take_the_message_of_a_peer_that_has_left_for_its_own, set_up,
                    tear_down),
            cmocka_unit_test_setup_teardown(
                    blames_a_peer_for_a_message_that_it_promised_and_never_sent, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    does_not_blame_a_peer_whose_promised_message_is_ignored, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    blames_who_sends_what_everybody_refuses_and_nobody_else, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
