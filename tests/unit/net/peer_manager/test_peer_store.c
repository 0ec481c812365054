/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "net/identity/identity.h"
#include "net/peer_manager/peer_store.h"

enum {
    FIRST_MS = 1000,
    MAX_MS = 60000
};

static struct peer_store *create_store(size_t capacity)
{
    struct peer_store *store;
    struct peer_store_options options = {.capacity = capacity,
            .backoff_first_ms = FIRST_MS,
            .backoff_max_ms = MAX_MS,
            .static_backoff_max_ms = MAX_MS,
            .seed = 7};
    assert_int_equal(peer_store_create(&store, &options), STATUS_OK);
    return store;
}

static void make_peer(struct peer_id *id)
{
    struct identity *identity;
    assert_int_equal(identity_create(&identity, KEY_TYPE_ED25519), STATUS_OK);
    *id = *identity_peer_id(identity);
    identity_destroy(&identity);
}

static struct multiaddr address_of(const struct peer_id *id, unsigned port)
{
    char text[64];
    struct multiaddr address;
    snprintf(text, sizeof(text), "/ip4/10.0.0.1/tcp/%u", port);
    assert_int_equal(multiaddr_parse(&address, span_of_text(text)), STATUS_OK);
    assert_int_equal(multiaddr_set_peer(&address, id), STATUS_OK);
    return address;
}

static struct peer_record *add_peer(
        struct peer_store *store, struct peer_id *id, bool is_static, uint64_t now_ms)
{
    make_peer(id);
    struct multiaddr address = address_of(id, 1000);
    assert_int_equal(peer_store_add(store, &address,
                             is_static ? PEER_ORIGIN_STATIC : PEER_ORIGIN_FILE, now_ms),
            STATUS_OK);
    return peer_store_find(store, id);
}

static void an_address_without_a_peer_is_refused(void **state)
{
    (void)state;
    struct peer_store *store = create_store(4);
    struct multiaddr address;
    assert_int_equal(multiaddr_parse(&address, span_of_text("/ip4/10.0.0.1/tcp/1")), STATUS_OK);
    assert_int_equal(peer_store_add(store, &address, PEER_ORIGIN_STATIC, 0), STATUS_BAD_ADDRESS);
    peer_store_destroy(&store);
}

static void addresses_of_one_peer_are_kept_together_and_bounded(void **state)
{
    (void)state;
    struct peer_store *store = create_store(4);
    struct peer_id id;
    struct peer_record *peer = add_peer(store, &id, false, 0);
    for (unsigned port = 1000; port < 1000 + 3 * PEER_ADDRESSES_MAX; port++) {
        struct multiaddr address = address_of(&id, port);
        assert_int_equal(peer_store_add(store, &address, PEER_ORIGIN_FILE, 0), STATUS_OK);
        assert_int_equal(peer_store_add(store, &address, PEER_ORIGIN_FILE, 0), STATUS_OK);
    }
    assert_int_equal(peer_store_count(store), 1);
    assert_int_equal(peer->address_count, PEER_ADDRESSES_MAX);
    struct multiaddr newest = address_of(&id, 1000 + 3 * PEER_ADDRESSES_MAX - 1);
    assert_true(multiaddr_equal(&peer->addresses[PEER_ADDRESSES_MAX - 1], &newest));
    peer_store_destroy(&store);
}

static void the_backoff_doubles_with_jitter_up_to_its_maximum(void **state)
{
    (void)state;
    struct peer_store *store = create_store(4);
    struct peer_id id;
    struct peer_record *peer = add_peer(store, &id, true, 0);
    uint64_t expected_ms = FIRST_MS;
    uint64_t seen = 0;
    for (int i = 0; i < 20; i++) {
        peer_store_failed(store, peer, 0);
        assert_true(peer->due_ms >= expected_ms / 2);
        assert_true(peer->due_ms <= expected_ms);
        seen |= peer->due_ms ^ (expected_ms / 2);
        expected_ms = expected_ms * 2 < MAX_MS ? expected_ms * 2 : MAX_MS;
    }
    assert_int_not_equal(seen, 0);
    peer_store_succeeded(peer, 5);
    peer_store_lost(store, peer, 5 + PEER_SHORT_MS);
    assert_true(peer->due_ms <= 5 + PEER_SHORT_MS + FIRST_MS);
    peer_store_destroy(&store);
}

static void the_backoff_grows_with_connections_that_are_lost_at_once(void **state)
{
    (void)state;
    struct peer_store *store = create_store(4);
    struct peer_id id;
    struct peer_record *peer = add_peer(store, &id, true, 0);
    uint64_t now_ms = 0;
    size_t attempts = 0;
    while (now_ms < 10 * MAX_MS) {
        peer_store_succeeded(peer, now_ms);
        peer_store_lost(store, peer, now_ms + 1);
        now_ms = peer->due_ms;
        attempts++;
    }
    /* Seven doublings up to the maximum, and then one in half of it at most. */
    assert_true(attempts <= 7 + 2 * 10);
    peer_store_destroy(&store);
}

static void each_attempt_takes_the_next_address(void **state)
{
    (void)state;
    struct peer_store *store = create_store(4);
    struct peer_id id;
    struct peer_record *peer = add_peer(store, &id, true, 0);
    struct multiaddr second = address_of(&id, 1001);
    assert_int_equal(peer_store_add(store, &second, true, 0), STATUS_OK);
    assert_int_equal(peer->next_address, 0);
    peer_store_failed(store, peer, 0);
    assert_int_equal(peer->next_address, 1);
    peer_store_failed(store, peer, 0);
    assert_int_equal(peer->next_address, 0);
    peer_store_destroy(&store);
}

static void static_peers_are_dialled_first_and_others_only_when_wanted(void **state)
{
    (void)state;
    struct peer_store *store = create_store(4);
    struct peer_id other_id;
    struct peer_id static_id;
    struct peer_record *other = add_peer(store, &other_id, false, 0);
    struct peer_record *wanted = add_peer(store, &static_id, true, 5);
    assert_ptr_equal(peer_store_next(store, true, 10), wanted);
    wanted->is_dialling = true;
    assert_null(peer_store_next(store, false, 10));
    assert_ptr_equal(peer_store_next(store, true, 10), other);
    other->connection = 1;
    assert_null(peer_store_next(store, true, 10));
    peer_store_failed(store, wanted, 10);
    assert_null(peer_store_next(store, true, 10));
    assert_int_equal(peer_store_next_due_ms(store, false), wanted->due_ms);
    assert_ptr_equal(peer_store_next(store, false, wanted->due_ms), wanted);
    peer_store_destroy(&store);
}

static void a_full_store_forgets_the_least_promising_peer_and_never_a_static_one(void **state)
{
    (void)state;
    struct peer_store *store = create_store(3);
    struct peer_id static_id;
    struct peer_id failing_id;
    struct peer_id good_id;
    struct peer_id new_id;
    struct peer_record *wanted = add_peer(store, &static_id, true, 0);
    struct peer_record *failing = add_peer(store, &failing_id, false, 100);
    (void)add_peer(store, &good_id, false, 0);
    for (int i = 0; i < 5; i++) {
        peer_store_failed(store, wanted, 0);
    }
    peer_store_failed(store, failing, 0);
    (void)add_peer(store, &new_id, false, 200);
    assert_null(peer_store_find(store, &failing_id));
    assert_non_null(peer_store_find(store, &static_id));
    assert_non_null(peer_store_find(store, &good_id));
    peer_store_find(store, &good_id)->connection = 1;
    peer_store_find(store, &new_id)->is_dialling = true;
    make_peer(&failing_id);
    struct multiaddr address = address_of(&failing_id, 1);
    assert_int_equal(peer_store_add(store, &address, PEER_ORIGIN_STATIC, 0), STATUS_LIMIT_REACHED);
    assert_int_equal(peer_store_count(store), 3);
    peer_store_destroy(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(an_address_without_a_peer_is_refused),
            cmocka_unit_test(addresses_of_one_peer_are_kept_together_and_bounded),
            cmocka_unit_test(the_backoff_doubles_with_jitter_up_to_its_maximum),
            cmocka_unit_test(the_backoff_grows_with_connections_that_are_lost_at_once),
            cmocka_unit_test(each_attempt_takes_the_next_address),
            cmocka_unit_test(static_peers_are_dialled_first_and_others_only_when_wanted),
            cmocka_unit_test(a_full_store_forgets_the_least_promising_peer_and_never_a_static_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
