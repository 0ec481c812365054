/* SPDX-License-Identifier: MIT */
#include "net/protocols/metadata.h"
#include "tests/support/cmocka.h"

static struct metadata_message read_message(const uint8_t *bytes, size_t length)
{
    struct metadata_message message;
    assert_int_equal(metadata_message_read(&message, span_of(bytes, length)), STATUS_OK);
    return message;
}

static void reads_shards_unpacked_packed_and_under_the_later_number(void **state)
{
    (void)state;
    const uint8_t unpacked[] = {0x08, 0x10, 0x10, 0x00, 0x10, 0x05};
    const uint8_t packed[] = {0x08, 0x10, 0x12, 0x03, 0x00, 0x80, 0x02};
    const uint8_t both[] = {0x08, 0x10, 0x12, 0x01, 0x07, 0x1a, 0x02, 0x00, 0x01};
    assert_int_equal(read_message(unpacked, sizeof(unpacked)).shard_count, 2);
    assert_int_equal(read_message(unpacked, sizeof(unpacked)).cluster_id, 16);
    assert_int_equal(read_message(packed, sizeof(packed)).shard_count, 2);
    assert_int_equal(read_message(both, sizeof(both)).shard_count, 2);
    assert_int_equal(read_message(packed, sizeof(packed)).shards[1], 256);
    assert_int_equal(read_message(both, sizeof(both)).shards[1], 1);
}

static void tells_no_cluster_from_cluster_0(void **state)
{
    (void)state;
    const uint8_t zero[] = {0x08, 0x00};
    const uint8_t shards_only[] = {0x10, 0x01};
    assert_true(read_message(zero, sizeof(zero)).has_cluster);
    assert_int_equal(read_message(zero, sizeof(zero)).cluster_id, 0);
    assert_false(read_message(shards_only, sizeof(shards_only)).has_cluster);
    assert_false(read_message(NULL, 0).has_cluster);
}

static void passes_over_unknown_fields_and_refuses_rubbish(void **state)
{
    (void)state;
    const uint8_t unknown[] = {0x22, 0x02, 'a', 'b', 0x08, 0x03};
    const uint8_t cut[] = {0x08};
    const uint8_t rubbish[] = {0xff, 0xff, 0xff};
    const uint8_t bad_packed[] = {0x12, 0x01, 0x80};
    struct metadata_message message;
    assert_int_equal(read_message(unknown, sizeof(unknown)).cluster_id, 3);
    assert_int_not_equal(metadata_message_read(&message, span_of(cut, sizeof(cut))), STATUS_OK);
    assert_int_not_equal(
            metadata_message_read(&message, span_of(rubbish, sizeof(rubbish))), STATUS_OK);
    assert_int_not_equal(
            metadata_message_read(&message, span_of(bad_packed, sizeof(bad_packed))), STATUS_OK);
}

static void refuses_numbers_beyond_their_range(void **state)
{
    (void)state;
    /* 2^32 + 16 is not cluster 16, 2^16 + 1 is not shard 1. */
    const uint8_t cluster[] = {0x08, 0x90, 0x80, 0x80, 0x80, 0x10};
    const uint8_t shard[] = {0x10, 0x81, 0x80, 0x04};
    const uint8_t packed[] = {0x1a, 0x03, 0x81, 0x80, 0x04};
    struct metadata_message message;
    assert_int_equal(
            metadata_message_read(&message, span_of(cluster, sizeof(cluster))), STATUS_BAD_FIELD);
    assert_int_equal(
            metadata_message_read(&message, span_of(shard, sizeof(shard))), STATUS_BAD_FIELD);
    assert_int_equal(
            metadata_message_read(&message, span_of(packed, sizeof(packed))), STATUS_BAD_FIELD);
}

static void keeps_no_more_shards_than_it_has_room_for(void **state)
{
    (void)state;
    uint8_t many[2 * (METADATA_SHARDS_MAX + 1)];
    for (size_t i = 0; i < sizeof(many); i += 2) {
        many[i] = 0x10;
        many[i + 1] = 0x05;
    }
    assert_int_equal(read_message(many, sizeof(many)).shard_count, METADATA_SHARDS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(reads_shards_unpacked_packed_and_under_the_later_number),
            cmocka_unit_test(tells_no_cluster_from_cluster_0),
            cmocka_unit_test(passes_over_unknown_fields_and_refuses_rubbish),
            cmocka_unit_test(refuses_numbers_beyond_their_range),
            cmocka_unit_test(keeps_no_more_shards_than_it_has_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
