/* SPDX-License-Identifier: MIT */

/*
 * Several meshes that talk to each other in simulated time: what one decides is carried to the others
 * in order, without delay, and once a second all have their heartbeat.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rcu.h"
#include "base/tsan.h"
#include "router/mesh.h"
#include "router/peer_scores.h"
#include "tests/support/mesh_fixture.h"

enum {
    NODES_MAX = 16,
    TOPICS = 8,
    MESSAGES_MAX = 20000,
#ifdef TSAN_ON
    QUIET_HOURS = 2 /* one thread, and twenty times as slow */
#else
    QUIET_HOURS = 24
#endif
};

enum event_kind {
    SUBSCRIBE,
    UNSUBSCRIBE,
    GRAFT,
    PRUNE,
    IHAVE,
    IWANT,
    IDONTWANT,
    MESSAGE,
    EVENT_KINDS
};

struct event {
    enum event_kind kind;
    size_t from;
    size_t to;
    const struct topic *topic;
    uint64_t number; /* of a message, or the seconds of a backoff */
    size_t length;
    struct made_items ids;
};

struct node {
    bool is_up;
    bool is_free_riding; /* takes and passes nothing on */
    struct mesh *mesh;
    struct topic_scores *topic_scores;
    struct peer_scores *peer_scores;
    struct score_card cards[NODES_MAX];
    bool is_connected[NODES_MAX];
    bool is_joined[TOPICS];
    bool has_seen[MESSAGES_MAX];
    size_t delivered;
    size_t copies;
    struct mesh_actions actions;
    struct mesh_recipients recipients;
};

static struct topic topics[TOPICS];
static char topic_names[TOPICS][32];
static struct node nodes[NODES_MAX];
static size_t node_count;
static uint64_t now_ns;
static struct event *events;
static size_t event_first, event_count, event_capacity;
static size_t sent[EVENT_KINDS];
static double lowest_score;

static uint64_t id_of(size_t node)
{
    return node + 1;
}

static void send_event(struct event event)
{
    sent[event.kind]++;
    if (event_count == event_capacity) {
        event_capacity = event_capacity == 0 ? 1024 : event_capacity * 2;
        events = realloc(events, event_capacity * sizeof(events[0]));
        assert_non_null(events);
    }
    events[event_count++] = event;
}

static void tell_everyone(size_t from, enum event_kind kind, const struct topic *topic)
{
    for (size_t to = 0; to < node_count; to++) {
        if (nodes[from].is_connected[to]) {
            send_event((struct event){.kind = kind, .from = from, .to = to, .topic = topic});
        }
    }
}

static struct made_items copy_ids(const uint8_t (*ids)[MESSAGE_ID_BYTES], size_t count)
{
    struct made_items made = make_items(0, count);
    for (size_t i = 0; i < count; i++) {
        memcpy(made.bytes + i * ID_FIELD_BYTES + 2, ids[i], MESSAGE_ID_BYTES);
    }
    return made;
}

static void carry_out_action(size_t node, const struct mesh_action *action)
{
    const struct mesh_actions *actions = &nodes[node].actions;
    struct event event = {
            .from = node,
            .to = (size_t)action->peer - 1,
            .topic = action->topic,
            .number = action->backoff_s,
    };
    switch (action->kind) {
    case MESH_GRAFT:
        event.kind = GRAFT;
        break;
    case MESH_PRUNE:
        event.kind = PRUNE;
        break;
    case MESH_IHAVE:
    case MESH_IWANT:
        event.kind = action->kind == MESH_IHAVE ? IHAVE : IWANT;
        event.ids = copy_ids((const uint8_t(*)[MESSAGE_ID_BYTES])(actions->ids + action->first_id),
                action->id_count);
        break;
    case MESH_MESSAGE:
        event.kind = MESSAGE;
        event.number = number_of_id(action->envelope->id);
        event.length = action->envelope->message.length;
        break;
    case MESH_PENALISE:
        peer_scores_penalise(nodes[node].peer_scores, action->peer, action->penalty);
        return;
    }
    send_event(event);
}

static void carry_out(size_t node)
{
    for (size_t i = 0; i < nodes[node].actions.count; i++) {
        carry_out_action(node, &nodes[node].actions.list[i]);
    }
    mesh_actions_clear(&nodes[node].actions);
}

/* A new message at a node, from a peer or (SIZE_MAX) its own: goes on to whom the mesh says. */
static size_t spread(size_t node, size_t from, const struct event *message)
{
    struct node *here = &nodes[node];
    struct envelope *envelope = make_message(message->number, message->topic, message->length);
    here->has_seen[message->number] = true;
    here->delivered++;
    mesh_accepted(
            here->mesh, envelope, from == SIZE_MAX ? 0 : id_of(from), now_ns, &here->recipients);
    envelope_unref(envelope);
    for (size_t i = 0; i < here->recipients.dont_want.count; i++) {
        uint8_t id[1][MESSAGE_ID_BYTES];
        make_id(id[0], message->number);
        send_event((struct event){.kind = IDONTWANT,
                .from = node,
                .to = (size_t)here->recipients.dont_want.ids[i] - 1,
                .ids = copy_ids((const uint8_t(*)[MESSAGE_ID_BYTES])id, 1)});
    }
    size_t count = here->is_free_riding ? 0 : here->recipients.to.count;
    for (size_t i = 0; i < count; i++) {
        struct event copy = *message;
        copy.kind = MESSAGE;
        copy.from = node;
        copy.to = (size_t)here->recipients.to.ids[i] - 1;
        send_event(copy);
    }
    return count;
}

static size_t publish(size_t node, const struct topic *topic, uint64_t number, size_t length)
{
    assert_true(number < MESSAGES_MAX);
    struct event message = {.topic = topic, .number = number, .length = length};
    return spread(node, SIZE_MAX, &message);
}

static void take_message(const struct event *event)
{
    struct node *here = &nodes[event->to];
    if (here->has_seen[event->number]) {
        uint8_t id[MESSAGE_ID_BYTES];
        make_id(id, event->number);
        here->copies++;
        mesh_arrived(here->mesh, id);
        return;
    }
    (void)spread(event->to, event->from, event);
}

static void take(const struct event *event)
{
    struct node *here = &nodes[event->to];
    struct mesh_turn turn = {.now_ns = now_ns, .actions = &here->actions};
    uint64_t peer = id_of(event->from);
    switch (event->kind) {
    case SUBSCRIBE:
        assert_int_equal(mesh_peer_subscribes(here->mesh, peer, event->topic), STATUS_OK);
        break;
    case UNSUBSCRIBE:
        mesh_peer_unsubscribes(here->mesh, peer, event->topic, now_ns);
        break;
    case GRAFT:
        mesh_on_graft(here->mesh, peer, event->topic, &turn);
        break;
    case PRUNE:
        mesh_on_prune(here->mesh, peer, event->topic, event->number, now_ns);
        break;
    case IHAVE:
        mesh_on_ihave(here->mesh, peer, event->topic, event->ids.items, &turn);
        break;
    case IWANT:
        mesh_on_iwant(here->mesh, peer, event->ids.items, &turn);
        break;
    case IDONTWANT:
        mesh_on_idontwant(here->mesh, peer, event->ids.items);
        break;
    case MESSAGE:
        take_message(event);
        break;
    case EVENT_KINDS:
        break;
    }
    carry_out(event->to);
}

static void deliver_all(void)
{
    while (event_first < event_count) {
        struct event event = events[event_first++]; /* a copy: the array may grow */
        if (nodes[event.to].is_up && nodes[event.to].is_connected[event.from]) {
            take(&event);
        }
        free(event.ids.bytes);
    }
    event_first = event_count = 0;
}

static void note_lowest_score(size_t node)
{
    for (size_t peer = 0; peer < node_count; peer++) {
        if (nodes[node].is_connected[peer]) {
            double score = score_card_total(&nodes[node].cards[peer]);
            lowest_score = score < lowest_score ? score : lowest_score;
        }
    }
}

static void beat(size_t node)
{
    struct mesh_turn turn = {.now_ns = now_ns, .actions = &nodes[node].actions};
    peer_scores_tick(nodes[node].peer_scores, now_ns);
    mesh_heartbeat(nodes[node].mesh, &turn);
    carry_out(node);
    note_lowest_score(node);
}

static void beat_all(void)
{
    for (size_t node = 0; node < node_count; node++) {
        if (nodes[node].is_up) {
            beat(node);
        }
    }
}

static void run_seconds(uint64_t seconds)
{
    for (uint64_t i = 0; i < seconds; i++) {
        deliver_all();
        now_ns += SECOND_NS;
        beat_all();
        deliver_all();
    }
}

static void join(size_t node, size_t topic)
{
    struct mesh_turn turn = {.now_ns = now_ns, .actions = &nodes[node].actions};
    nodes[node].is_joined[topic] = true;
    tell_everyone(node, SUBSCRIBE, &topics[topic]);
    assert_int_equal(mesh_join(nodes[node].mesh, &topics[topic], &turn), STATUS_OK);
    carry_out(node);
}

static void leave(size_t node, size_t topic)
{
    struct mesh_turn turn = {.now_ns = now_ns, .actions = &nodes[node].actions};
    nodes[node].is_joined[topic] = false;
    tell_everyone(node, UNSUBSCRIBE, &topics[topic]);
    mesh_leave(nodes[node].mesh, &topics[topic], &turn);
    carry_out(node);
}

static void start(size_t node)
{
    struct mesh_options options = mesh_defaults;
    memset(&nodes[node], 0, sizeof(nodes[node]));
    options.seed = now_ns + node;
    assert_int_equal(topic_scores_create(&nodes[node].topic_scores, &score_defaults, 0), STATUS_OK);
    assert_int_equal(peer_scores_create(&nodes[node].peer_scores, &score_defaults), STATUS_OK);
    assert_int_equal(mesh_create(&nodes[node].mesh, &options, nodes[node].topic_scores), STATUS_OK);
    nodes[node].is_up = true;
}

static void attach(size_t node, size_t peer, bool is_outbound)
{
    nodes[node].is_connected[peer] = true;
    assert_int_equal(peer_scores_connect(
                             nodes[node].peer_scores, id_of(peer), peer, &nodes[node].cards[peer]),
            STATUS_OK);
    assert_int_equal(mesh_add_peer(nodes[node].mesh, id_of(peer), &nodes[node].cards[peer],
                             is_outbound, now_ns),
            STATUS_OK);
    for (size_t topic = 0; topic < TOPICS; topic++) {
        if (nodes[node].is_joined[topic]) {
            send_event((struct event){
                    .kind = SUBSCRIBE, .from = node, .to = peer, .topic = &topics[topic]});
        }
    }
}

static void connect_nodes(size_t dialler, size_t listener)
{
    attach(dialler, listener, true);
    attach(listener, dialler, false);
}

static void detach(size_t node, size_t peer)
{
    if (nodes[node].is_connected[peer]) {
        nodes[node].is_connected[peer] = false;
        mesh_remove_peer(nodes[node].mesh, id_of(peer), now_ns);
        peer_scores_disconnect(nodes[node].peer_scores, id_of(peer), now_ns);
    }
}

static void stop(size_t node)
{
    for (size_t peer = 0; peer < node_count; peer++) {
        detach(peer, node);
        detach(node, peer);
    }
    mesh_destroy(&nodes[node].mesh);
    topic_scores_destroy(&nodes[node].topic_scores);
    peer_scores_destroy(&nodes[node].peer_scores);
    mesh_actions_fini(&nodes[node].actions);
    mesh_recipients_fini(&nodes[node].recipients);
    nodes[node].is_up = false;
}

static void connect_to_all_that_run(size_t node)
{
    for (size_t peer = 0; peer < node_count; peer++) {
        if (peer != node && nodes[peer].is_up && !nodes[node].is_connected[peer]) {
            /* half of a node's connections are its own choice */
            bool is_dialler = (node + peer) % 2 == (node > peer ? 0 : 1);
            connect_nodes(is_dialler ? node : peer, is_dialler ? peer : node);
        }
    }
}

/* Everyone connected to everyone, all on the first topic_count topics. */
static void start_network(size_t count, size_t topic_count)
{
    now_ns = 1000 * SECOND_NS;
    node_count = count;
    lowest_score = 0;
    memset(sent, 0, sizeof(sent));
    for (uint32_t i = 0; i < TOPICS; i++) {
        (void)snprintf(topic_names[i], sizeof(topic_names[i]), "/waku/2/rs/1/%u", i);
        topics[i] = (struct topic){.index = i, .name = span_of_text(topic_names[i])};
    }
    for (size_t node = 0; node < count; node++) {
        start(node);
    }
    for (size_t node = 0; node < count; node++) {
        connect_to_all_that_run(node);
        for (size_t topic = 0; topic < topic_count; topic++) {
            join(node, topic);
        }
    }
    deliver_all();
}

static void stop_network(void)
{
    for (size_t node = 0; node < node_count; node++) {
        if (nodes[node].is_up) {
            stop(node);
        }
    }
    deliver_all();
    free(events);
    events = NULL;
    event_capacity = 0;
}

static bool all_have(uint64_t number)
{
    for (size_t node = 0; node < node_count; node++) {
        if (nodes[node].is_up && !nodes[node].has_seen[number]) {
            return false;
        }
    }
    return true;
}

static void subscribing_again_and_again_brings_the_mesh_back(void **state)
{
    (void)state;
    start_network(6, 1);
    run_seconds(5);
    for (int i = 0; i < 20; i++) {
        leave(0, 0);
        run_seconds(5);
        join(0, 0);
        run_seconds(5);
    }
    run_seconds(5);
    assert_true(mesh_size(nodes[0].mesh, &topics[0]) >= mesh_defaults.d_low);
    for (uint64_t number = 0; number < 1000; number++) {
        (void)publish((size_t)(number % 6), &topics[0], number, 300);
        deliver_all();
        assert_true(all_have(number));
    }
    assert_true(lowest_score >= 0);
    stop_network();
}

static void restart(size_t first, size_t count)
{
    for (size_t node = first; node < first + count; node++) {
        stop(node);
    }
    deliver_all();
    for (size_t node = first; node < first + count; node++) {
        start(node);
        for (size_t topic = 0; topic < TOPICS; topic++) {
            nodes[node].is_joined[topic] = true;
        }
    }
    for (size_t node = first; node < first + count; node++) {
        connect_to_all_that_run(node);
        for (size_t topic = 0; topic < TOPICS; topic++) {
            join(node, topic);
        }
    }
    deliver_all();
}

static void assert_meshes_form(void)
{
    run_seconds(30);
    for (size_t node = 0; node < node_count; node++) {
        for (size_t topic = 0; topic < TOPICS; topic++) {
            assert_true(mesh_size(nodes[node].mesh, &topics[topic]) >= mesh_defaults.d_low);
        }
    }
}

static void restarted_nodes_have_their_mesh_and_lose_no_message(void **state)
{
    (void)state;
    start_network(6, TOPICS);
    run_seconds(60);
    restart(2, 1);
    /* in the first second, before any heartbeat */
    assert_int_equal(publish(2, &topics[3], 1, 300), 5);
    deliver_all();
    assert_true(all_have(1));
    (void)publish(0, &topics[4], 2, 300);
    deliver_all();
    assert_true(all_have(2));
    assert_meshes_form();

    restart(0, 6);
    assert_int_equal(publish(5, &topics[0], 3, 300), 5);
    deliver_all();
    assert_true(all_have(3));
    assert_meshes_form();
    stop_network();
}

static void offers_of_nothing_cost_the_offerer_and_not_the_busy(void **state)
{
    (void)state;
    const size_t attacker = 9;
    start_network(10, 1);
    run_seconds(5);
    leave(attacker, 0); /* outside of the mesh, where offers come from */
    run_seconds(1);
    uint64_t number = 0;
    size_t asked_most = 0;
    for (uint64_t second = 0; second < 60; second++) {
        for (size_t i = 0; i < 10; i++) {
            send_event((struct event){.kind = IHAVE,
                    .from = attacker,
                    .to = 0,
                    .topic = &topics[0],
                    .ids = make_items(1000000 + second * 50000 + i * 5000, 5000)});
        }
        size_t asked_before = sent[IWANT];
        deliver_all();
        asked_most =
                sent[IWANT] - asked_before > asked_most ? sent[IWANT] - asked_before : asked_most;
        for (size_t i = 0; i < 100; i++) { /* ten times what is usual */
            (void)publish(1 + (size_t)(number % 8), &topics[0], number, 2000);
            number++;
        }
        run_seconds(1);
    }
    assert_true(asked_most <= 3); /* 5,000 ids in requests of 2,000 */
    assert_true(score_card_total(&nodes[0].cards[attacker]) < 0);
    for (size_t peer = 1; peer < 9; peer++) {
        assert_true(score_card_total(&nodes[0].cards[peer]) >= 0);
        assert_int_equal(nodes[peer].delivered, number);
    }
    stop_network();
}

static void a_quiet_day_costs_no_honest_peer_anything(void **state)
{
    (void)state;
    start_network(11, TOPICS);
    run_seconds(600);
    for (uint64_t hour = 0; hour < QUIET_HOURS; hour++) {
        for (size_t topic = 0; topic < TOPICS; topic++) {
            uint64_t number = hour * TOPICS + topic;
            (void)publish((size_t)(number % 11), &topics[topic], number, 300);
            deliver_all();
            assert_true(all_have(number));
        }
        run_seconds(3600);
    }
    /* nobody below zero at any heartbeat, so nobody was pruned for his score either */
    assert_true(lowest_score >= 0);
    stop_network();
}

static void assert_all_score_above(size_t last, size_t node)
{
    double last_score = score_card_total(&nodes[node].cards[last]);
    for (size_t peer = 0; peer < node_count; peer++) {
        if (peer != last && peer != node) {
            assert_true(score_card_total(&nodes[node].cards[peer]) > last_score);
        }
    }
}

static void a_free_rider_on_a_busy_topic_scores_lowest(void **state)
{
    (void)state;
    const size_t free_rider = 4;
    start_network(9, 1);
    nodes[free_rider].is_free_riding = true;
    run_seconds(5);
    uint64_t number = 0;
    for (int second = 0; second < 120; second++) {
        for (size_t i = 1; i < 9; i++) {
            (void)publish((free_rider + i) % 9, &topics[0], number++, 300);
            deliver_all();
        }
        run_seconds(1);
    }
    for (size_t i = 1; i < 9; i++) {
        assert_all_score_above(free_rider, (free_rider + i) % 9);
    }
    stop_network();
}

static void a_large_message_is_declined_at_most_once_by_each_to_each(void **state)
{
    (void)state;
    start_network(9, 1);
    run_seconds(5);
    (void)publish(0, &topics[0], 1, 1000);
    deliver_all();
    assert_true(all_have(1));
    assert_int_equal(sent[IDONTWANT], 0);
    (void)publish(0, &topics[0], 2, (size_t)100 * 1024);
    deliver_all();
    assert_true(all_have(2));
    size_t links = 0;
    size_t copies = 0;
    for (size_t node = 1; node < 9; node++) {
        links += mesh_size(nodes[node].mesh, &topics[0]);
        copies += nodes[node].copies;
    }
    assert_true(copies > 0);
    assert_true(sent[IDONTWANT] > 0);
    assert_true(sent[IDONTWANT] <= links);
    stop_network();
}

static void when_all_have_left_nothing_is_left(void **state)
{
    (void)state;
    start_network(9, TOPICS);
    for (uint64_t number = 0; number < 100; number++) {
        (void)publish((size_t)(number % 9), &topics[number % TOPICS], number, 2000);
        run_seconds(1);
    }
    for (size_t node = 1; node < 9; node++) {
        stop(node);
    }
    run_seconds(70);
    struct mesh_counts counts = mesh_counts(nodes[0].mesh);
    assert_int_equal(counts.peers, 0);
    assert_int_equal(counts.subscriptions, 0);
    assert_int_equal(counts.grafted, 0);
    assert_int_equal(counts.backoffs, 0);
    assert_int_equal(counts.promises, 0);
    assert_int_equal(counts.unwanted, 0);
    assert_int_equal(counts.cached, 0);
    assert_int_equal(counts.topics, TOPICS);
    assert_int_equal(peer_scores_peer_count(nodes[0].peer_scores), 0);
    assert_int_equal(topic_scores_peer_count(nodes[0].topic_scores), 0);
    stop_network();
}

static int enter_rcu(void **state)
{
    (void)state;
    rcu_register();
    return 0;
}

static int leave_rcu(void **state)
{
    (void)state;
    rcu_unregister();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(subscribing_again_and_again_brings_the_mesh_back),
            cmocka_unit_test(restarted_nodes_have_their_mesh_and_lose_no_message),
            cmocka_unit_test(offers_of_nothing_cost_the_offerer_and_not_the_busy),
            cmocka_unit_test(a_quiet_day_costs_no_honest_peer_anything),
            cmocka_unit_test(a_free_rider_on_a_busy_topic_scores_lowest),
            cmocka_unit_test(a_large_message_is_declined_at_most_once_by_each_to_each),
            cmocka_unit_test(when_all_have_left_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, enter_rcu, leave_rcu);
}
