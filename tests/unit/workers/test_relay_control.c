/* SPDX-License-Identifier: MIT */
#include "tests/support/cmocka.h"

#include <string.h>

#include "codec/varint.h"
#include "queues/topic.h"
#include "workers/relay_control.h"

enum {
    RPC_BYTES_MAX = 153600, /* what the other implementations take */
    TOPICS = 120,
    IDS = 40,
    NAME_BYTES = 400
};

static uint8_t name_bytes[NAME_BYTES];
static struct topic topic = {.name = {name_bytes, NAME_BYTES}};

/* The entries of a kind in the parcel, which must be one whole frame that the others take. */
static size_t count_entries(const struct relay_parcel *parcel, enum gossip_entry_kind kind)
{
    struct gossip_reader reader;
    struct gossip_entry entry;
    size_t count = 0;
    size_t length;
    struct span rest = span_of(parcel->header, parcel->header_length);
    assert_int_equal(varint_read_length(&length, &rest, RPC_BYTES_MAX), STATUS_OK);
    assert_int_equal(rest.length, length);
    assert_int_equal(gossip_reader_init(&reader, rest, &gossip_limits_default), STATUS_OK);
    while (gossip_reader_next(&reader, &entry)) {
        count += entry.kind == kind;
    }
    return count;
}

static void add_ihave(struct mesh_actions *actions, uint64_t peer)
{
    uint8_t(*ids)[MESSAGE_ID_BYTES] = mesh_actions_reserve_ids(actions, IDS);
    assert_non_null(ids);
    memset(ids, 0, IDS * sizeof(ids[0]));
    mesh_actions_add(actions, (struct mesh_action){.kind = MESH_IHAVE,
                                      .peer = peer,
                                      .topic = &topic,
                                      .first_id = actions->id_count,
                                      .id_count = IDS});
    actions->id_count += IDS;
}

static void no_rpc_is_larger_than_what_others_take(void **state)
{
    struct mesh_actions actions = {.count = 0};
    struct relay_control control = {.actions = &actions};
    size_t entries = 0;
    uint64_t peer;
    (void)state;
    for (size_t i = 0; i < TOPICS; i++) {
        add_ihave(&actions, 7);
    }
    while (relay_control_next(&control, &peer)) {
        struct relay_parcel *parcel = relay_control_parcel(&control, 70);
        assert_non_null(parcel);
        assert_int_equal(peer, 7);
        entries += count_entries(parcel, GOSSIP_IHAVE);
        relay_parcel_unref(parcel);
    }
    assert_int_equal(entries, TOPICS);
    mesh_actions_fini(&actions);
}

static void what_is_said_to_one_peer_goes_into_one_rpc(void **state)
{
    struct mesh_actions actions = {.count = 0};
    struct relay_control control = {.actions = &actions};
    uint64_t peer;
    (void)state;
    for (uint64_t i = 0; i < 6; i++) {
        add_ihave(&actions, 1 + i % 2);
        mesh_actions_add(&actions,
                (struct mesh_action){
                        .kind = MESH_PRUNE, .peer = 1 + i % 2, .topic = &topic, .backoff_s = 60});
    }
    for (uint64_t expected = 1; expected <= 2; expected++) {
        assert_true(relay_control_next(&control, &peer));
        assert_int_equal(peer, expected);
        struct relay_parcel *parcel = relay_control_parcel(&control, 70);
        assert_non_null(parcel);
        assert_int_equal(count_entries(parcel, GOSSIP_IHAVE), 3);
        assert_int_equal(count_entries(parcel, GOSSIP_PRUNE), 3);
        relay_parcel_unref(parcel);
    }
    assert_false(relay_control_next(&control, &peer));
    mesh_actions_fini(&actions);
}

static void add_iwant(struct mesh_actions *actions, uint64_t peer, uint8_t first, size_t count)
{
    uint8_t(*ids)[MESSAGE_ID_BYTES] = mesh_actions_reserve_ids(actions, count);
    assert_non_null(ids);
    for (size_t i = 0; i < count; i++) {
        memset(ids[i], first + (int)i, sizeof(ids[i]));
    }
    mesh_actions_add(actions, (struct mesh_action){.kind = MESH_IWANT,
                                      .peer = peer,
                                      .first_id = actions->id_count,
                                      .id_count = count});
    actions->id_count += count;
}

/* The one entry of the parcel asks for count ids, the first of these bytes. */
static void assert_asks_for(const struct relay_parcel *parcel, uint8_t first, size_t count)
{
    struct gossip_reader reader;
    struct gossip_entry entry;
    struct span id;
    size_t length;
    size_t seen = 0;
    struct span rest = span_of(parcel->header, parcel->header_length);
    assert_int_equal(varint_read_length(&length, &rest, RPC_BYTES_MAX), STATUS_OK);
    assert_int_equal(gossip_reader_init(&reader, rest, &gossip_limits_default), STATUS_OK);
    assert_true(gossip_reader_next(&reader, &entry));
    assert_int_equal(entry.kind, GOSSIP_IWANT);
    for (; gossip_items_next(&entry.items, &id); seen++) {
        uint8_t wanted[MESSAGE_ID_BYTES];
        memset(wanted, first + (int)seen, sizeof(wanted));
        assert_true(span_equal(id, span_of(wanted, sizeof(wanted))));
    }
    assert_int_equal(seen, count);
}

static void asks_each_peer_for_its_own_ids_in_order(void **state)
{
    struct mesh_actions actions = {.count = 0};
    struct relay_control control = {.actions = &actions};
    uint64_t peer;
    (void)state;
    add_iwant(&actions, 2, 100, 3);
    add_iwant(&actions, 1, 10, 2);
    for (uint64_t expected = 1; expected <= 2; expected++) {
        assert_true(relay_control_next(&control, &peer));
        assert_int_equal(peer, expected);
        struct relay_parcel *parcel = relay_control_parcel(&control, 70);
        assert_non_null(parcel);
        assert_asks_for(parcel, peer == 1 ? 10 : 100, peer == 1 ? 2 : 3);
        relay_parcel_unref(parcel);
    }
    mesh_actions_fini(&actions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(no_rpc_is_larger_than_what_others_take),
            cmocka_unit_test(what_is_said_to_one_peer_goes_into_one_rpc),
            cmocka_unit_test(asks_each_peer_for_its_own_ids_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
