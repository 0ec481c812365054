/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/peer_manager/peer_slots.h"

static void the_ratio_divides_the_connections(void **state)
{
    (void)state;
    struct peer_slots slots;
    assert_int_equal(peer_slots_init(&slots, 150, "50:50"), STATUS_OK);
    assert_int_equal(slots.relay, 75);
    assert_int_equal(slots.relay_outbound, 25);
    assert_int_equal(slots.relay_inbound, 50);
    assert_int_equal(peer_slots_init(&slots, 100, "60:40"), STATUS_OK);
    assert_int_equal(slots.relay, 60);
    assert_int_equal(peer_slots_init(&slots, 150, "13.33:86.67"), STATUS_OK);
    assert_int_equal(slots.relay, 20);
    assert_int_equal(peer_slots_init(&slots, 1, "50:50"), STATUS_OK);
    assert_int_equal(slots.relay_inbound, 1);
    assert_int_equal(peer_slots_init(&slots, 100, "1:0"), STATUS_OK);
    assert_int_equal(slots.relay, 100);
    assert_int_equal(peer_slots_init(&slots, 100, "0:1"), STATUS_OK);
    assert_int_equal(slots.relay, 0);
}

static void what_is_no_ratio_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "50", "50:", ":50", "0:0", "-1:2", "1:2:3", "1: 2",
            "1e3:1", "9999999:1", "1.:.5", "0.1234567:1"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct peer_slots slots;
        assert_int_equal(peer_slots_init(&slots, 150, texts[i]), STATUS_BAD_ARGUMENT);
    }
}

static void inbound_peers_never_take_the_outbound_slots(void **state)
{
    (void)state;
    struct peer_slots slots;
    struct peer_counts counts = {0};
    assert_int_equal(peer_slots_init(&slots, 12, "50:50"), STATUS_OK);
    size_t admitted = 0;
    while (peer_slots_have_room(&slots, &counts)) {
        peer_counts_add(&counts, admitted % 2 == 0 ? PEER_UNKNOWN : PEER_SERVICE, false);
        admitted++;
    }
    assert_int_equal(admitted, 10);
    assert_true(peer_slots_want_more(&slots, &counts, 0));
    assert_true(peer_slots_want_more(&slots, &counts, 1));
    assert_false(peer_slots_want_more(&slots, &counts, 2));
    peer_counts_add(&counts, PEER_RELAY, true);
    assert_false(peer_slots_want_more(&slots, &counts, 1));
}

static void each_kind_has_its_own_limit(void **state)
{
    (void)state;
    struct peer_slots slots;
    struct peer_counts counts = {0};
    assert_int_equal(peer_slots_init(&slots, 12, "50:50"), STATUS_OK);
    for (int i = 0; i < 6; i++) {
        peer_counts_add(&counts, PEER_SERVICE, false);
    }
    assert_false(peer_slots_exceeded(&slots, &counts, PEER_SERVICE, false));
    peer_counts_add(&counts, PEER_SERVICE, false);
    assert_true(peer_slots_exceeded(&slots, &counts, PEER_SERVICE, false));
    for (int i = 0; i < 4; i++) {
        peer_counts_add(&counts, PEER_RELAY, false);
    }
    assert_false(peer_slots_exceeded(&slots, &counts, PEER_RELAY, false));
    peer_counts_add(&counts, PEER_RELAY, false);
    assert_true(peer_slots_exceeded(&slots, &counts, PEER_RELAY, false));
    peer_counts_remove(&counts, PEER_RELAY, false);
    assert_false(peer_slots_exceeded(&slots, &counts, PEER_RELAY, false));
    assert_false(peer_slots_exceeded(&slots, &counts, PEER_UNKNOWN, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_ratio_divides_the_connections),
            cmocka_unit_test(what_is_no_ratio_is_refused),
            cmocka_unit_test(inbound_peers_never_take_the_outbound_slots),
            cmocka_unit_test(each_kind_has_its_own_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
