/* SPDX-License-Identifier: MIT */
#include "net/peer_manager/peer_connections.h"

#include <string.h>

#include "tests/support/cmocka.h"

static uint64_t count_of(
        const struct peer_connections *connections, const char *protocol, bool is_outbound)
{
    for (size_t i = 0; i < PEER_PROTOCOLS_COUNTED; i++) {
        if (strcmp(peer_protocols_counted[i], protocol) == 0) {
            return atomic_load(&connections->protocols.of[i][is_outbound]);
        }
    }
    fail_msg("%s is not counted", protocol);
    return 0;
}

static struct peer_facts *facts_of(const char *first, const char *second)
{
    struct span names[] = {span_of_text(first), span_of_text(second)};
    struct peer_facts *facts = peer_facts_create(span_of_text("agent"), names, 2);
    assert_non_null(facts);
    return facts;
}

static void a_peer_counts_once_for_what_it_said_last_until_it_leaves(void **state)
{
    static const char relay[] = "/vac/waku/relay/2.0.0";
    static const char store[] = "/vac/waku/store-query/3.0.0";
    struct peer_connections connections;
    struct switch_peer in = {.connection = 1};
    struct switch_peer out = {.connection = 2, .is_outbound = true};
    (void)state;
    assert_int_equal(peer_connections_init(&connections), STATUS_OK);
    struct peer_connection *first = peer_connections_add(&connections, &in, 0);
    struct peer_connection *second = peer_connections_add(&connections, &out, 0);
    assert_true(first != NULL && second != NULL);
    peer_connections_set_facts(&connections, first, facts_of(relay, relay));
    peer_connections_set_facts(&connections, second, facts_of(relay, "/some/thing/else"));
    assert_int_equal(count_of(&connections, relay, false), 1);
    assert_int_equal(count_of(&connections, relay, true), 1);
    peer_connections_set_facts(&connections, first, facts_of(store, relay));
    peer_connections_set_facts(&connections, second, facts_of(store, ""));
    assert_int_equal(count_of(&connections, relay, false), 1);
    assert_int_equal(count_of(&connections, relay, true), 0);
    assert_int_equal(count_of(&connections, store, true), 1);
    peer_connections_remove(&connections, first);
    assert_int_equal(count_of(&connections, relay, false), 0);
    assert_int_equal(count_of(&connections, store, false), 0);
    peer_connections_fini(&connections);
    assert_int_equal(count_of(&connections, store, true), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_peer_counts_once_for_what_it_said_last_until_it_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
