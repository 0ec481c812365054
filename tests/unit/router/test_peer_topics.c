/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "router/peer_map.h"
#include "router/peer_topics.h"

static struct span name_of(char *text, size_t size, uint64_t number)
{
    (void)snprintf(text, size, "/waku/2/rs/%llu/0", (unsigned long long)number);
    return span_of_text(text);
}

static void a_map_agrees_with_an_array_through_many_changes(void **state)
{
    (void)state;
    enum {
        KEYS = 200,
        ROUNDS = 100000
    };
    static char values[KEYS];
    bool is_there[KEYS] = {false};
    struct peer_map map = {.count = 0};
    uint64_t random = 1;
    size_t count = 0;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407U;
        /* neighbouring keys and keys with equal low halves */
        size_t number = (size_t)(random >> 33) % KEYS;
        uint64_t key = number % 2 == 0 ? number : (uint64_t)number << 40;
        if ((random >> 20) % 2 == 0) {
            assert_true(peer_map_put(&map, key, &values[number]));
            count += !is_there[number];
            is_there[number] = true;
        } else {
            assert_ptr_equal(peer_map_take(&map, key), is_there[number] ? &values[number] : NULL);
            count -= is_there[number];
            is_there[number] = false;
        }
        assert_int_equal(map.count, count);
    }
    for (size_t number = 0; number < KEYS; number++) {
        uint64_t key = number % 2 == 0 ? number : (uint64_t)number << 40;
        assert_ptr_equal(peer_map_find(&map, key), is_there[number] ? &values[number] : NULL);
    }
    size_t position = 0;
    size_t walked = 0;
    struct peer_slot *slot;
    while ((slot = peer_map_next(&map, &position)) != NULL) {
        (void)peer_map_take(&map, slot->key);
        peer_map_step_back(&position);
        walked++;
    }
    assert_int_equal(walked, count);
    assert_null(map.slots);
}

static void finds_the_peers_of_a_name_and_the_names_of_a_peer(void **state)
{
    (void)state;
    struct peer_topics *topics = NULL;
    struct span a = span_of_text("/waku/2/rs/1/0");
    struct span b = span_of_text("/waku/2/rs/1/1");
    assert_int_equal(peer_topics_create(&topics, PEER_TOPICS_MAX), STATUS_OK);
    assert_int_equal(peer_topics_subscribe(topics, 1, a), STATUS_OK);
    assert_int_equal(peer_topics_subscribe(topics, 1, a), STATUS_ALREADY_THERE);
    assert_int_equal(peer_topics_subscribe(topics, 2, a), STATUS_OK);
    assert_int_equal(peer_topics_subscribe(topics, 2, b), STATUS_OK);
    assert_int_equal(peer_topics_find(topics, a).count, 2);
    assert_int_equal(peer_topics_find(topics, b).count, 1);
    assert_int_equal(peer_topics_find(topics, b).peers[0], 2);
    struct span name;
    assert_true(peer_topics_at(topics, 2, 1, &name));
    assert_true(span_equal(name, b));
    assert_false(peer_topics_at(topics, 2, 2, &name));
    assert_false(peer_topics_at(topics, 3, 0, &name));
    assert_true(peer_topics_unsubscribe(topics, 1, a));
    assert_false(peer_topics_unsubscribe(topics, 1, a));
    assert_int_equal(peer_topics_find(topics, a).count, 1);
    assert_int_equal(peer_topics_peer_count(topics), 1);
    peer_topics_destroy(&topics);
}

static void refuses_names_without_end_and_too_many_of_them(void **state)
{
    (void)state;
    struct peer_topics *topics = NULL;
    char text[64];
    static uint8_t longest[1025];
    memset(longest, 'n', sizeof(longest));
    assert_int_equal(peer_topics_create(&topics, 3), STATUS_OK);
    assert_int_equal(peer_topics_subscribe(topics, 1, span_of(NULL, 0)), STATUS_BAD_TOPIC);
    assert_int_equal(
            peer_topics_subscribe(topics, 1, span_of(longest, sizeof(longest))), STATUS_BAD_TOPIC);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(
                peer_topics_subscribe(topics, 1, name_of(text, sizeof(text), i)), STATUS_OK);
    }
    assert_int_equal(
            peer_topics_subscribe(topics, 1, name_of(text, sizeof(text), 3)), STATUS_LIMIT_REACHED);
    assert_int_equal(peer_topics_name_count(topics), 3);
    peer_topics_destroy(&topics);
}

static void a_thousand_peers_with_too_many_names_each_leave_nothing_behind(void **state)
{
    (void)state;
    enum {
        PEERS = 1000,
        NAMES = 200,
        TAKEN = 64
    };
    struct peer_topics *topics = NULL;
    char text[64];
    size_t refused = 0;
    assert_int_equal(peer_topics_create(&topics, TAKEN), STATUS_OK);
    for (uint64_t peer = 0; peer < PEERS; peer++) {
        for (uint64_t i = 0; i < NAMES; i++) {
            struct span name = name_of(text, sizeof(text), peer * NAMES + i);
            refused += peer_topics_subscribe(topics, peer, name) == STATUS_LIMIT_REACHED;
        }
    }
    assert_int_equal(refused, (size_t)PEERS * (NAMES - TAKEN));
    assert_int_equal(peer_topics_name_count(topics), (size_t)PEERS * TAKEN);
    for (uint64_t peer = 0; peer < PEERS; peer++) {
        peer_topics_drop(topics, peer);
    }
    assert_int_equal(peer_topics_name_count(topics), 0);
    assert_int_equal(peer_topics_peer_count(topics), 0);
    peer_topics_destroy(&topics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_map_agrees_with_an_array_through_many_changes),
            cmocka_unit_test(finds_the_peers_of_a_name_and_the_names_of_a_peer),
            cmocka_unit_test(refuses_names_without_end_and_too_many_of_them),
            cmocka_unit_test(a_thousand_peers_with_too_many_names_each_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
