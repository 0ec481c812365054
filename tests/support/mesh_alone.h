/* SPDX-License-Identifier: MIT */
#pragma once

/* One mesh for a test, with peers 1 to PEERS and time by the second. After cmocka.h. */

#include <string.h>

#include "base/rcu.h"
#include "router/mesh.h"
#include "tests/support/mesh_fixture.h"

enum {
    PEERS = 40
};

static struct topic topics[2];

struct fixture {
    struct mesh *mesh;
    struct topic_scores *scores;
    struct score_card cards[PEERS + 1]; /* by peer id; ids from 1 */
    struct mesh_actions actions;
    struct mesh_recipients recipients;
    struct mesh_turn turn;
};

static inline void fixture_init(struct fixture *fixture, const struct mesh_options *options)
{
    static const char *const names[] = {"/waku/2/rs/1/0", "/waku/2/rs/1/1"};
    memset(fixture, 0, sizeof(*fixture));
    for (uint32_t i = 0; i < 2; i++) {
        topics[i] = (struct topic){.index = i, .name = span_of_text(names[i])};
    }
    assert_int_equal(topic_scores_create(&fixture->scores, &score_defaults, 0), STATUS_OK);
    assert_int_equal(mesh_create(&fixture->mesh, options, fixture->scores), STATUS_OK);
    fixture->turn = (struct mesh_turn){.now_ns = 1000 * SECOND_NS, .actions = &fixture->actions};
}

static inline void fixture_fini(struct fixture *fixture)
{
    mesh_destroy(&fixture->mesh);
    topic_scores_destroy(&fixture->scores);
    mesh_actions_fini(&fixture->actions);
    mesh_recipients_fini(&fixture->recipients);
}

static inline void add_peers(
        struct fixture *fixture, uint64_t first, size_t count, bool is_outbound)
{
    for (uint64_t peer = first; peer < first + count; peer++) {
        assert_int_equal(mesh_add_peer(fixture->mesh, peer, &fixture->cards[peer], is_outbound,
                                 fixture->turn.now_ns),
                STATUS_OK);
        assert_int_equal(mesh_peer_subscribes(fixture->mesh, peer, &topics[0]), STATUS_OK);
    }
}

static inline void join(struct fixture *fixture)
{
    assert_int_equal(mesh_join(fixture->mesh, &topics[0], &fixture->turn), STATUS_OK);
}

static inline void wait_seconds(struct fixture *fixture, uint64_t seconds)
{
    for (uint64_t i = 0; i < seconds; i++) {
        mesh_actions_clear(&fixture->actions);
        fixture->turn.now_ns += SECOND_NS;
        mesh_heartbeat(fixture->mesh, &fixture->turn);
    }
}

static inline void graft(struct fixture *fixture, uint64_t peer)
{
    mesh_actions_clear(&fixture->actions);
    mesh_on_graft(fixture->mesh, peer, &topics[0], &fixture->turn);
}

static inline size_t count_actions(const struct fixture *fixture, enum mesh_action_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < fixture->actions.count; i++) {
        count += fixture->actions.list[i].kind == kind;
    }
    return count;
}

static inline bool is_in_mesh(const struct fixture *fixture, uint64_t peer)
{
    return mesh_has_peer(fixture->mesh, &topics[0], peer);
}

static inline void set_score(struct fixture *fixture, uint64_t peer, double score)
{
    score_card_set(&fixture->cards[peer].general, score);
}

static inline void accept(struct fixture *fixture, uint64_t number, uint64_t sender, size_t length)
{
    struct envelope *envelope = make_message(number, &topics[0], length);
    mesh_accepted(fixture->mesh, envelope, sender, fixture->turn.now_ns, &fixture->recipients);
    envelope_unref(envelope);
}

static inline size_t ids_of(
        const struct fixture *fixture, enum mesh_action_kind kind, uint64_t peer)
{
    size_t count = 0;
    for (size_t i = 0; i < fixture->actions.count; i++) {
        const struct mesh_action *action = &fixture->actions.list[i];
        bool is_asked_for = action->kind == kind && (peer == 0 || action->peer == peer);
        count += is_asked_for ? action->id_count : 0;
    }
    return count;
}

static inline int enter_rcu(void **state)
{
    (void)state;
    rcu_register();
    return 0;
}

static inline int leave_rcu(void **state)
{
    (void)state;
    rcu_unregister();
    return 0;
}
