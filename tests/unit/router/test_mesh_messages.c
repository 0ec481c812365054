/* SPDX-License-Identifier: MIT */

/* Where messages go and what is told of them: one mesh, and peers that do what each case says. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/metrics.h"
#include "tests/support/mesh_alone.h"

static void a_message_goes_to_the_mesh_but_not_back(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 20, true);
    join(&fixture);
    uint64_t sender = 1;
    while (!is_in_mesh(&fixture, sender)) {
        sender++;
    }
    accept(&fixture, 1, sender, 100);
    assert_int_equal(fixture.recipients.to.count, 5);
    assert_false(peer_list_has(&fixture.recipients.to, sender));
    assert_int_equal(fixture.recipients.dont_want.count, 0);
    /* our own goes to all of the topic that are not too bad */
    set_score(&fixture, sender, -2000);
    accept(&fixture, 2, 0, 100);
    assert_int_equal(fixture.recipients.to.count, 20);
    mesh_remove_peer(fixture.mesh, sender, fixture.turn.now_ns);
    accept(&fixture, 3, 0, 100);
    assert_int_equal(fixture.recipients.to.count, 19);
    fixture_fini(&fixture);
}

static void large_messages_are_declined_once_from_everyone_but_the_sender(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 6, true);
    join(&fixture);
    accept(&fixture, 1, 3, 1024);
    assert_int_equal(fixture.recipients.dont_want.count, 0);
    accept(&fixture, 2, 3, 1025);
    assert_int_equal(fixture.recipients.dont_want.count, 5);
    assert_false(peer_list_has(&fixture.recipients.dont_want, 3));
    accept(&fixture, 3, 0, 100000);
    assert_int_equal(fixture.recipients.dont_want.count, 0);
    fixture_fini(&fixture);
}

static void unwanted(struct fixture *fixture, uint64_t peer, uint64_t first, size_t count)
{
    struct made_items ids = make_items(first, count);
    mesh_on_idontwant(fixture->mesh, peer, ids.items);
    free(ids.bytes);
}

static void what_is_not_sent_because_it_is_unwanted_is_counted(void **state)
{
    (void)state;
    struct fixture fixture;
    struct metrics *metrics;
    fixture_init(&fixture, &mesh_defaults);
    assert_int_equal(metrics_create(&metrics), STATUS_OK);
    assert_int_equal(metrics_attach_thread(metrics), STATUS_OK);
    add_peers(&fixture, 1, 6, true);
    join(&fixture);
    unwanted(&fixture, 2, 7, 1);
    accept(&fixture, 7, 3, 100);
    assert_int_equal(metrics_sum(metrics, METRIC_RELAY_UNWANTED), 1);
    metrics_detach_thread();
    metrics_destroy(&metrics);
    fixture_fini(&fixture);
}

static void an_unwanted_message_is_not_sent_for_six_heartbeats(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 6, true);
    join(&fixture);
    unwanted(&fixture, 2, 7, 1);
    accept(&fixture, 7, 3, 100);
    assert_false(peer_list_has(&fixture.recipients.to, 2));
    assert_int_equal(fixture.recipients.to.count, 4);
    wait_seconds(&fixture, 5);
    accept(&fixture, 7, 3, 100);
    assert_false(peer_list_has(&fixture.recipients.to, 2));
    wait_seconds(&fixture, 1);
    accept(&fixture, 7, 3, 100);
    assert_true(peer_list_has(&fixture.recipients.to, 2));
    assert_int_equal(mesh_counts(fixture.mesh).unwanted, 0);
    fixture_fini(&fixture);
}

static void unwanted_ids_without_end_take_bounded_room(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 2, true);
    join(&fixture);
    for (uint64_t i = 0; i < 20; i++) {
        unwanted(&fixture, 1, i * 100000, 100000);
        wait_seconds(&fixture, i % 2);
    }
    assert_true(mesh_counts(fixture.mesh).unwanted <= 6000);
    assert_true(mesh_counts(fixture.mesh).unwanted >= 1000);
    wait_seconds(&fixture, 6);
    assert_int_equal(mesh_counts(fixture.mesh).unwanted, 0);
    fixture_fini(&fixture);
}

static void publishing_without_taking_part_keeps_its_peers_for_a_minute(void **state)
{
    (void)state;
    struct fixture fixture;
    struct mesh_options options = mesh_defaults;
    options.is_flood_publishing = false;
    fixture_init(&fixture, &options);
    accept(&fixture, 1, 0, 100);
    assert_int_equal(fixture.recipients.to.count, 0);
    add_peers(&fixture, 1, 20, true);
    accept(&fixture, 2, 0, 100);
    assert_int_equal(fixture.recipients.to.count, 6);
    uint64_t chosen = fixture.recipients.to.ids[0];
    wait_seconds(&fixture, 59);
    mesh_remove_peer(fixture.mesh, fixture.recipients.to.ids[1], fixture.turn.now_ns);
    mesh_remove_peer(fixture.mesh, fixture.recipients.to.ids[2], fixture.turn.now_ns);
    accept(&fixture, 3, 0, 100);
    struct peer_list *to = &fixture.recipients.to;
    assert_int_equal(to->count, 6);
    assert_true(peer_list_has(to, chosen));
    for (size_t i = 1; i < to->count; i++) { /* each once */
        struct peer_list before = {.ids = to->ids, .count = i};
        assert_false(peer_list_has(&before, to->ids[i]));
    }
    wait_seconds(&fixture, 59);
    assert_int_equal(mesh_counts(fixture.mesh).fanout, 6);
    wait_seconds(&fixture, 1);
    assert_int_equal(mesh_counts(fixture.mesh).fanout, 0);
    accept(&fixture, 4, 0, 100);
    chosen = fixture.recipients.to.ids[0];
    join(&fixture);
    assert_int_equal(mesh_counts(fixture.mesh).fanout, 0);
    assert_true(is_in_mesh(&fixture, chosen));
    fixture_fini(&fixture);
}

static void tells_a_quarter_of_the_others_of_the_last_three_heartbeats(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 38, true);
    join(&fixture);
    accept(&fixture, 1, 0, 100);
    for (int heartbeat = 0; heartbeat < 4; heartbeat++) {
        wait_seconds(&fixture, 1);
        /* 32 are outside; a quarter of them is more than six */
        size_t told = count_actions(&fixture, MESH_IHAVE);
        assert_int_equal(told, heartbeat < 3 ? 8 : 0);
        assert_int_equal(ids_of(&fixture, MESH_IHAVE, 0), told);
        for (size_t i = 0; i < told; i++) {
            const struct mesh_action *action = &fixture.actions.list[i];
            assert_false(is_in_mesh(&fixture, action->peer));
            assert_int_equal(number_of_id(fixture.actions.ids[action->first_id]), 1);
        }
    }
    assert_int_equal(mesh_counts(fixture.mesh).cached, 1);
    wait_seconds(&fixture, 2);
    assert_int_equal(mesh_counts(fixture.mesh).cached, 0);
    fixture_fini(&fixture);
}

static void tells_of_so_many_messages_in_a_heartbeat(void **state)
{
    (void)state;
    struct fixture fixture;
    struct mesh_options options = mesh_defaults;
    options.ids_max = 10;
    fixture_init(&fixture, &options);
    add_peers(&fixture, 1, 7, true);
    join(&fixture);
    for (uint64_t i = 0; i < 12; i++) {
        accept(&fixture, i, 0, 100);
    }
    wait_seconds(&fixture, 1);
    assert_int_equal(count_actions(&fixture, MESH_IHAVE), 1);
    assert_int_equal(ids_of(&fixture, MESH_IHAVE, 0), 10);
    fixture_fini(&fixture);
}

static void tells_nothing_to_who_is_below_the_gossip_threshold(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 6, true);
    join(&fixture);
    add_peers(&fixture, 7, 2, true);
    set_score(&fixture, 7, -100);
    set_score(&fixture, 8, -100.5);
    accept(&fixture, 1, 0, 100);
    wait_seconds(&fixture, 1);
    assert_int_equal(count_actions(&fixture, MESH_IHAVE), 1);
    assert_int_equal(fixture.actions.list[0].peer, 7);
    fixture_fini(&fixture);
}

static void offer(struct fixture *fixture, uint64_t peer, uint64_t first, size_t count)
{
    struct made_items ids = make_items(first, count);
    mesh_on_ihave(fixture->mesh, peer, &topics[0], ids.items, &fixture->turn);
    free(ids.bytes);
}

static void ask(struct fixture *fixture, uint64_t peer, uint64_t first, size_t count)
{
    struct made_items ids = make_items(first, count);
    mesh_on_iwant(fixture->mesh, peer, ids.items, &fixture->turn);
    free(ids.bytes);
}

static void asks_for_what_is_news_within_its_budgets(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 3, true);
    offer(&fixture, 1, 100, 10); /* not our topic yet */
    assert_int_equal(fixture.actions.count, 0);
    join(&fixture);
    accept(&fixture, 100, 2, 100);
    mesh_actions_clear(&fixture.actions);
    offer(&fixture, 1, 100, 10);
    assert_int_equal(ids_of(&fixture, MESH_IWANT, 1), 9);

    /* 50,000 fake ids a heartbeat */
    wait_seconds(&fixture, 1);
    mesh_actions_clear(&fixture.actions);
    offer(&fixture, 1, 1000000, 50000);
    offer(&fixture, 1, 2000000, 50000);
    assert_int_equal(ids_of(&fixture, MESH_IWANT, 1), 5000);
    for (size_t i = 0; i < fixture.actions.count; i++) {
        assert_true(fixture.actions.list[i].id_count <= 2000);
    }
    /* eleven messages, the last is not listened to; other peers are */
    wait_seconds(&fixture, 1);
    mesh_actions_clear(&fixture.actions);
    for (uint64_t i = 0; i < 11; i++) {
        offer(&fixture, 1, 3000000 + i, 1);
    }
    offer(&fixture, 3, 4000000, 1);
    assert_int_equal(ids_of(&fixture, MESH_IWANT, 1), 10);
    assert_int_equal(ids_of(&fixture, MESH_IWANT, 3), 1);
    wait_seconds(&fixture, 1);
    set_score(&fixture, 1, -100.5);
    offer(&fixture, 1, 5000000, 1);
    assert_int_equal(ids_of(&fixture, MESH_IWANT, 1), 0);
    fixture_fini(&fixture);
}

static bool is_even(void *context, const struct topic *topic, const uint8_t *id)
{
    (void)context;
    assert_ptr_equal(topic, &topics[0]);
    return number_of_id(id) % 2 == 0;
}

static void does_not_ask_for_what_its_owner_knows(void **state)
{
    (void)state;
    struct fixture fixture;
    struct mesh_options options = mesh_defaults;
    options.is_known = is_even;
    fixture_init(&fixture, &options);
    add_peers(&fixture, 1, 1, true);
    join(&fixture);
    mesh_actions_clear(&fixture.actions);
    offer(&fixture, 1, 100, 9);
    assert_int_equal(ids_of(&fixture, MESH_IWANT, 1), 4);
    fixture_fini(&fixture);
}

static void offers_of_strangers_and_on_unheard_of_topics_are_passed_over(void **state)
{
    (void)state;
    struct fixture fixture;
    struct made_items ids = make_items(1, 3);
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 1, true);
    mesh_on_ihave(fixture.mesh, 1, &topics[1], ids.items, &fixture.turn);
    join(&fixture);
    mesh_actions_clear(&fixture.actions);
    offer(&fixture, 99, 1, 3);
    ask(&fixture, 99, 1, 3);
    unwanted(&fixture, 99, 1, 3);
    assert_int_equal(fixture.actions.count, 0);
    free(ids.bytes);
    fixture_fini(&fixture);
}

/* One RPC has an entry for each topic, and others count the RPCs. */
static void offers_on_each_topic_of_ours_have_a_budget_of_their_own(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 1, true);
    join(&fixture);
    assert_int_equal(mesh_join(fixture.mesh, &topics[1], &fixture.turn), STATUS_OK);
    mesh_actions_clear(&fixture.actions);
    for (uint64_t i = 0; i < 25; i++) {
        offer(&fixture, 1, 100 + i, 1);
    }
    assert_int_equal(ids_of(&fixture, MESH_IWANT, 1), 20);
    mesh_leave(fixture.mesh, &topics[1], &fixture.turn);
    wait_seconds(&fixture, 1);
    mesh_actions_clear(&fixture.actions);
    for (uint64_t i = 0; i < 25; i++) {
        offer(&fixture, 1, 200 + i, 1);
    }
    assert_int_equal(ids_of(&fixture, MESH_IWANT, 1), 10);
    fixture_fini(&fixture);
}

static void everyone_of_hundreds_who_ask_gets_the_message(void **state)
{
    (void)state;
    enum {
        ASKERS = 300
    };
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 1, true);
    join(&fixture);
    accept(&fixture, 1, 0, 100);
    size_t bytes = mesh_counts(fixture.mesh).cached_bytes;
    for (uint64_t peer = 1000; peer < 1000 + ASKERS; peer++) {
        assert_int_equal(
                mesh_add_peer(fixture.mesh, peer, &fixture.cards[2], false, fixture.turn.now_ns),
                STATUS_OK);
        mesh_actions_clear(&fixture.actions);
        for (int i = 0; i < 4; i++) {
            ask(&fixture, peer, 1, 1);
        }
        assert_int_equal(count_actions(&fixture, MESH_MESSAGE), 3);
    }
    /* who they are counts in the cache, and goes with the message */
    assert_true(mesh_counts(fixture.mesh).cached_bytes >= bytes + ASKERS * sizeof(uint64_t));
    wait_seconds(&fixture, 6);
    assert_int_equal(mesh_counts(fixture.mesh).cached_bytes, 0);
    fixture_fini(&fixture);
}

/* Others forward what we refuse, some of it in good faith: one copy of it is enough. */
static void what_was_refused_is_not_asked_for_again_for_six_heartbeats(void **state)
{
    (void)state;
    struct fixture fixture;
    uint8_t id[MESSAGE_ID_BYTES];
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 3, true);
    join(&fixture);
    make_id(id, 500);
    mesh_ignored(fixture.mesh, id);
    make_id(id, 501);
    mesh_rejected(fixture.mesh, 1, &topics[0], id, fixture.turn.now_ns);
    make_id(id, 502);
    mesh_arrived(fixture.mesh, id); /* of these three the only one that may be good */
    wait_seconds(&fixture, 5);
    mesh_actions_clear(&fixture.actions);
    offer(&fixture, 2, 500, 3);
    assert_int_equal(ids_of(&fixture, MESH_IWANT, 2), 1);
    wait_seconds(&fixture, 1);
    mesh_actions_clear(&fixture.actions);
    offer(&fixture, 2, 500, 3);
    assert_int_equal(ids_of(&fixture, MESH_IWANT, 2), 3);
    fixture_fini(&fixture);
}

/* A request that was on its way when the message came from elsewhere. */
static void who_asks_for_what_it_has_declined_gets_nothing(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 2, true);
    join(&fixture);
    accept(&fixture, 7, 0, 5000);
    unwanted(&fixture, 1, 7, 1);
    mesh_actions_clear(&fixture.actions);
    ask(&fixture, 1, 7, 1);
    assert_int_equal(count_actions(&fixture, MESH_MESSAGE), 0);
    ask(&fixture, 2, 7, 1);
    assert_int_equal(count_actions(&fixture, MESH_MESSAGE), 1);
    fixture_fini(&fixture);
}

static void own_messages_go_to_nobody_below_the_publish_threshold(void **state)
{
    (void)state;
    struct fixture fixture;
    struct mesh_options options = mesh_defaults;
    fixture_init(&fixture, &options);
    add_peers(&fixture, 1, 3, true);
    set_score(&fixture, 1, -1000);
    set_score(&fixture, 2, -1000.5);
    accept(&fixture, 1, 0, 100);
    assert_int_equal(fixture.recipients.to.count, 2);
    assert_false(peer_list_has(&fixture.recipients.to, 2));
    fixture_fini(&fixture);
    /* and of those that it goes to without flooding, the bad are replaced */
    options.is_flood_publishing = false;
    fixture_init(&fixture, &options);
    add_peers(&fixture, 1, 7, true);
    set_score(&fixture, 7, -1000.5);
    accept(&fixture, 1, 0, 100);
    assert_int_equal(fixture.recipients.to.count, 6);
    assert_false(peer_list_has(&fixture.recipients.to, 7));
    set_score(&fixture, 7, 0);
    set_score(&fixture, 1, -1000.5);
    wait_seconds(&fixture, 1);
    accept(&fixture, 2, 0, 100);
    assert_int_equal(fixture.recipients.to.count, 6);
    assert_false(peer_list_has(&fixture.recipients.to, 1));
    fixture_fini(&fixture);
}

/* Not to those who get them anyway. */
static void tells_of_messages_on_a_topic_that_we_only_publish_on(void **state)
{
    (void)state;
    struct fixture fixture;
    struct mesh_options options = mesh_defaults;
    options.is_flood_publishing = false;
    fixture_init(&fixture, &options);
    add_peers(&fixture, 1, 10, true);
    accept(&fixture, 1, 0, 100);
    struct peer_list *to = &fixture.recipients.to;
    wait_seconds(&fixture, 1);
    assert_int_equal(count_actions(&fixture, MESH_IHAVE), 4);
    for (size_t i = 0; i < fixture.actions.count; i++) {
        assert_false(peer_list_has(to, fixture.actions.list[i].peer));
    }
    fixture_fini(&fixture);
}

static size_t blamed(struct fixture *fixture, uint64_t seconds)
{
    size_t count = 0;
    for (uint64_t i = 0; i < seconds; i++) {
        wait_seconds(fixture, 1);
        count += count_actions(fixture, MESH_PENALISE);
    }
    return count;
}

static void blames_who_offers_and_does_not_deliver(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 3, true);
    join(&fixture);
    for (uint64_t i = 0; i < 10; i++) {
        offer(&fixture, 1, 100 + i, 1);
    }
    assert_int_equal(mesh_counts(fixture.mesh).promises, 10);
    assert_int_equal(blamed(&fixture, 2), 0);
    assert_int_equal(blamed(&fixture, 2), 10);
    assert_int_equal(mesh_counts(fixture.mesh).promises, 0);

    /* kept: it came, from whomever, and whatever it was worth */
    uint8_t id[MESSAGE_ID_BYTES];
    offer(&fixture, 1, 200, 1);
    offer(&fixture, 2, 200, 1);
    accept(&fixture, 200, 3, 100);
    offer(&fixture, 1, 201, 1);
    make_id(id, 201);
    mesh_arrived(fixture.mesh, id);
    offer(&fixture, 1, 202, 1);
    make_id(id, 202);
    mesh_rejected(fixture.mesh, 2, &topics[0], id, fixture.turn.now_ns);
    assert_int_equal(blamed(&fixture, 10), 0);
    /* so is a promise of many, of which it does not know the one that counts */
    offer(&fixture, 1, 210, 40);
    assert_int_equal(mesh_counts(fixture.mesh).promises, 1);
    for (uint64_t i = 0; i < 40; i++) {
        accept(&fixture, 210 + i, 1, 100);
    }
    /* who has left is not blamed */
    offer(&fixture, 3, 300, 1);
    mesh_remove_peer(fixture.mesh, 3, fixture.turn.now_ns);
    assert_int_equal(blamed(&fixture, 10), 0);
    fixture_fini(&fixture);
}

static void each_who_promised_the_same_message_has_its_own_time_for_it(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 4, true);
    join(&fixture);
    for (uint64_t peer = 1; peer <= 4; peer++) {
        offer(&fixture, peer, 200, 1);
        fixture.turn.now_ns += SECOND_NS;
    }
    mesh_actions_clear(&fixture.actions);
    mesh_heartbeat(fixture.mesh, &fixture.turn);
    assert_int_equal(count_actions(&fixture, MESH_PENALISE), 2);
    for (size_t i = 0; i < fixture.actions.count; i++) {
        const struct mesh_action *action = &fixture.actions.list[i];
        assert_true(action->kind != MESH_PENALISE || action->peer <= 2);
    }
    accept(&fixture, 200, 0, 100);
    assert_int_equal(blamed(&fixture, 10), 0);
    assert_int_equal(mesh_counts(fixture.mesh).promises, 0);
    fixture_fini(&fixture);
}

static void gives_a_message_three_times_to_each_who_asks(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 3, true);
    join(&fixture);
    accept(&fixture, 1, 0, (size_t)150 * 1024);
    mesh_actions_clear(&fixture.actions);
    for (int i = 0; i < 1000; i++) {
        ask(&fixture, 1, 1, 1);
    }
    assert_int_equal(count_actions(&fixture, MESH_MESSAGE), 3);
    ask(&fixture, 2, 1, 1);
    assert_int_equal(count_actions(&fixture, MESH_MESSAGE), 4);
    ask(&fixture, 2, 77, 1); /* unknown */
    set_score(&fixture, 3, -101);
    ask(&fixture, 3, 1, 1);
    assert_int_equal(count_actions(&fixture, MESH_MESSAGE), 4);
    assert_int_equal(fixture.actions.list[0].envelope->message.length, (size_t)150 * 1024);
    wait_seconds(&fixture, 6);
    ask(&fixture, 2, 1, 1);
    assert_int_equal(count_actions(&fixture, MESH_MESSAGE), 0);
    fixture_fini(&fixture);
}

static void looks_at_so_many_asked_ids_in_a_heartbeat(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 1, true);
    join(&fixture);
    accept(&fixture, 1, 0, 10);
    mesh_actions_clear(&fixture.actions);
    ask(&fixture, 1, 1000, 5000); /* unknown ones use it up */
    ask(&fixture, 1, 1, 1);
    assert_int_equal(count_actions(&fixture, MESH_MESSAGE), 0);
    wait_seconds(&fixture, 1);
    ask(&fixture, 1, 1, 1);
    assert_int_equal(count_actions(&fixture, MESH_MESSAGE), 1);
    fixture_fini(&fixture);
}

static void the_same_bytes_on_two_topics_are_two_messages(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 1, true);
    join(&fixture);
    for (int i = 0; i < 2; i++) {
        struct envelope *envelope = make_message(5, &topics[i], 10);
        mesh_accepted(fixture.mesh, envelope, 0, fixture.turn.now_ns, &fixture.recipients);
        envelope_unref(envelope);
    }
    mesh_actions_clear(&fixture.actions);
    ask(&fixture, 1, 5, 1);
    assert_int_equal(count_actions(&fixture, MESH_MESSAGE), 2);
    assert_ptr_not_equal(fixture.actions.list[0].topic, fixture.actions.list[1].topic);
    fixture_fini(&fixture);
}

static void a_message_on_another_topic_is_news_on_this_one(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 1, true);
    join(&fixture);
    struct envelope *envelope = make_message(5, &topics[1], 10);
    mesh_accepted(fixture.mesh, envelope, 0, fixture.turn.now_ns, &fixture.recipients);
    envelope_unref(envelope);
    mesh_actions_clear(&fixture.actions);
    offer(&fixture, 1, 5, 1);
    assert_int_equal(ids_of(&fixture, MESH_IWANT, 1), 1);
    /* and known here, once it has come here, whatever comes there */
    accept(&fixture, 6, 0, 10);
    envelope = make_message(6, &topics[1], 10);
    mesh_accepted(fixture.mesh, envelope, 0, fixture.turn.now_ns, &fixture.recipients);
    envelope_unref(envelope);
    mesh_actions_clear(&fixture.actions);
    offer(&fixture, 1, 6, 1);
    assert_int_equal(ids_of(&fixture, MESH_IWANT, 1), 0);
    fixture_fini(&fixture);
}

static void the_cache_stays_below_its_cap(void **state)
{
    (void)state;
    struct fixture fixture;
    struct mesh_options options = mesh_defaults;
    options.cache_bytes_max = 10000;
    fixture_init(&fixture, &options);
    add_peers(&fixture, 1, 1, true);
    join(&fixture);
    for (uint64_t i = 0; i < 100; i++) {
        accept(&fixture, i, 0, 1000);
        assert_true(mesh_counts(fixture.mesh).cached_bytes <= 10000);
    }
    size_t kept = mesh_counts(fixture.mesh).cached;
    assert_in_range(kept, 5, 10);
    accept(&fixture, 1000, 0, 10001);
    assert_int_equal(mesh_counts(fixture.mesh).cached, kept);
    mesh_actions_clear(&fixture.actions);
    ask(&fixture, 1, 100 - kept, kept);
    assert_int_equal(count_actions(&fixture, MESH_MESSAGE), kept);
    ask(&fixture, 1, 99 - kept, 1);
    assert_int_equal(count_actions(&fixture, MESH_MESSAGE), kept);
    fixture_fini(&fixture);
}

static void small_messages_count_in_the_cache_with_all_that_they_pin(void **state)
{
    (void)state;
    struct fixture fixture;
    struct mesh_options options = mesh_defaults;
    options.cache_bytes_max = 10000;
    fixture_init(&fixture, &options);
    add_peers(&fixture, 1, 1, true);
    join(&fixture);
    for (uint64_t i = 0; i < 200; i++) {
        accept(&fixture, i, 0, 1);
    }
    size_t pinned = sizeof(struct envelope) + frame_charge(1);
    assert_true(mesh_counts(fixture.mesh).cached * pinned <= 10000);
    fixture_fini(&fixture);
}

static void our_own_faults_cost_nobody_anything(void **state)
{
    (void)state;
    struct fixture fixture;
    uint8_t id[MESSAGE_ID_BYTES];
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 6, true);
    join(&fixture);
    /* a full queue, a clock that is wrong, an archive that is down: ignored, never rejected */
    for (uint64_t i = 0; i < 1000; i++) {
        make_id(id, i);
        mesh_arrived(fixture.mesh, id);
    }
    for (uint64_t peer = 1; peer <= 6; peer++) {
        assert_true(score_card_total(&fixture.cards[peer]) >= 0);
    }
    mesh_rejected(fixture.mesh, 2, &topics[0], id, fixture.turn.now_ns);
    assert_true(score_card_total(&fixture.cards[2]) <= -99);
    assert_true(score_card_total(&fixture.cards[1]) >= 0);
    assert_true(mesh_accepts(fixture.mesh, 2));
    for (int i = 0; i < 10; i++) {
        mesh_rejected(fixture.mesh, 2, &topics[0], id, fixture.turn.now_ns);
    }
    assert_false(mesh_accepts(fixture.mesh, 2)); /* -100 times 11 squared */
    assert_false(mesh_accepts(fixture.mesh, 99));
    fixture_fini(&fixture);
}

static void connect_and_leave_at_phase(struct fixture *fixture, uint64_t peer, unsigned phase)
{
    struct score_card *card = &fixture->cards[1];
    assert_int_equal(mesh_add_peer(fixture->mesh, peer, card, peer % 2 == 0, fixture->turn.now_ns),
            STATUS_OK);
    if (phase >= 1) {
        assert_int_equal(mesh_peer_subscribes(fixture->mesh, peer, &topics[0]), STATUS_OK);
        assert_int_equal(mesh_peer_subscribes(fixture->mesh, peer, &topics[1]), STATUS_OK);
    }
    if (phase >= 2) {
        graft(fixture, peer);
    }
    if (phase >= 3) {
        accept(fixture, peer, peer, 2000);
        offer(fixture, peer, peer + 1000000, 3);
        unwanted(fixture, peer, peer, 3);
        ask(fixture, peer, peer, 1);
    }
    if (phase >= 4) {
        mesh_on_prune(fixture->mesh, peer, &topics[0], 1000000, fixture->turn.now_ns);
    }
    mesh_remove_peer(fixture->mesh, peer, fixture->turn.now_ns);
}

static void peers_that_come_and_go_leave_nothing(void **state)
{
    (void)state;
    enum {
        CYCLES = 100000
    };
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    join(&fixture);
    for (uint64_t i = 0; i < CYCLES; i++) {
        connect_and_leave_at_phase(&fixture, 100 + i % 5000, (unsigned)(i % 5));
        if (i % 20 == 0) {
            wait_seconds(&fixture, 1);
        }
    }
    struct mesh_counts counts = mesh_counts(fixture.mesh);
    assert_int_equal(counts.peers, 0);
    assert_int_equal(counts.subscriptions, 0);
    assert_int_equal(counts.grafted, 0);
    assert_int_equal(counts.unwanted, 0);
    assert_int_equal(topic_scores_peer_count(fixture.scores), 0);
    wait_seconds(&fixture, 63); /* the longest backoff of who has gone, and its slack */
    counts = mesh_counts(fixture.mesh);
    assert_int_equal(counts.backoffs, 0);
    assert_int_equal(counts.promises, 0);
    assert_int_equal(counts.cached, 0);
    assert_int_equal(counts.topics, 1);
    mesh_leave(fixture.mesh, &topics[0], &fixture.turn);
    assert_int_equal(mesh_counts(fixture.mesh).topics, 0);
    fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_message_goes_to_the_mesh_but_not_back),
            cmocka_unit_test(large_messages_are_declined_once_from_everyone_but_the_sender),
            cmocka_unit_test(what_is_not_sent_because_it_is_unwanted_is_counted),
            cmocka_unit_test(an_unwanted_message_is_not_sent_for_six_heartbeats),
            cmocka_unit_test(unwanted_ids_without_end_take_bounded_room),
            cmocka_unit_test(publishing_without_taking_part_keeps_its_peers_for_a_minute),
            cmocka_unit_test(tells_a_quarter_of_the_others_of_the_last_three_heartbeats),
            cmocka_unit_test(tells_of_so_many_messages_in_a_heartbeat),
            cmocka_unit_test(tells_nothing_to_who_is_below_the_gossip_threshold),
            cmocka_unit_test(asks_for_what_is_news_within_its_budgets),
            cmocka_unit_test(does_not_ask_for_what_its_owner_knows),
            cmocka_unit_test(offers_of_strangers_and_on_unheard_of_topics_are_passed_over),
            cmocka_unit_test(offers_on_each_topic_of_ours_have_a_budget_of_their_own),
            cmocka_unit_test(everyone_of_hundreds_who_ask_gets_the_message),
            cmocka_unit_test(what_was_refused_is_not_asked_for_again_for_six_heartbeats),
            cmocka_unit_test(who_asks_for_what_it_has_declined_gets_nothing),
            cmocka_unit_test(own_messages_go_to_nobody_below_the_publish_threshold),
            cmocka_unit_test(tells_of_messages_on_a_topic_that_we_only_publish_on),
            cmocka_unit_test(blames_who_offers_and_does_not_deliver),
            cmocka_unit_test(each_who_promised_the_same_message_has_its_own_time_for_it),
            cmocka_unit_test(gives_a_message_three_times_to_each_who_asks),
            cmocka_unit_test(looks_at_so_many_asked_ids_in_a_heartbeat),
            cmocka_unit_test(the_same_bytes_on_two_topics_are_two_messages),
            cmocka_unit_test(a_message_on_another_topic_is_news_on_this_one),
            cmocka_unit_test(the_cache_stays_below_its_cap),
            cmocka_unit_test(small_messages_count_in_the_cache_with_all_that_they_pin),
            cmocka_unit_test(our_own_faults_cost_nobody_anything),
            cmocka_unit_test(peers_that_come_and_go_leave_nothing),
    };
    return cmocka_run_group_tests(tests, enter_rcu, leave_rcu);
}
