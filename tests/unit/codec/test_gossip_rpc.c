/* SPDX-License-Identifier: MIT */
#include "codec/gossip_rpc.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/metrics.h"
#include "tests/support/hex.h"

static enum status init_hex(struct gossip_reader *reader, const char *hex, struct span *bytes)
{
    *bytes = hex_decode(hex);
    return gossip_reader_init(reader, *bytes, &gossip_limits_default);
}

static void assert_text(struct span span, const char *text)
{
    assert_true(span_equal(span, span_of_text(text)));
}

static void reads_messages_whatever_the_order_of_their_fields(void **state)
{
    (void)state;
    struct gossip_reader reader;
    struct gossip_entry entry;
    struct span bytes;
    /* data "ab" then topic "t"; topic "u" then data "c" */
    enum status status = init_hex(&reader, "1207 12026162 220174 1206 220175 120163", &bytes);
    assert_int_equal(status, STATUS_OK);
    assert_true(gossip_reader_next(&reader, &entry));
    assert_int_equal(entry.kind, GOSSIP_PUBLISH);
    assert_text(entry.data, "ab");
    assert_text(entry.topic, "t");
    assert_ptr_equal(entry.data.bytes, bytes.bytes + 4);
    assert_true(entry.has_data && entry.has_topic && !entry.has_signed_fields);
    assert_true(gossip_reader_next(&reader, &entry));
    assert_text(entry.data, "c");
    assert_text(entry.topic, "u");
    assert_false(gossip_reader_next(&reader, &entry));
    hex_free(bytes);
}

static void sees_signed_fields_even_when_they_are_empty(void **state)
{
    (void)state;
    const char *const rpcs[] = {"1208 0a00 120161 220174", "1208 120161 1a00 220174",
            "1208 120161 220174 2a00", "1208 120161 220174 3200"};
    for (size_t i = 0; i < sizeof(rpcs) / sizeof(rpcs[0]); i++) {
        struct gossip_reader reader;
        struct gossip_entry entry;
        struct span bytes;
        assert_int_equal(init_hex(&reader, rpcs[i], &bytes), STATUS_OK);
        assert_true(gossip_reader_next(&reader, &entry));
        assert_true(entry.has_signed_fields);
        hex_free(bytes);
    }
}

static void tells_an_empty_message_from_one_without_data_or_topic(void **state)
{
    (void)state;
    struct gossip_reader reader;
    struct gossip_entry entry;
    struct span bytes;
    assert_int_equal(init_hex(&reader, "1204 1200 2200 1200", &bytes), STATUS_OK);
    assert_true(gossip_reader_next(&reader, &entry));
    assert_true(entry.has_data && entry.has_topic);
    assert_true(gossip_reader_next(&reader, &entry));
    assert_false(entry.has_data || entry.has_topic);
    hex_free(bytes);
}

static void reads_subscriptions_where_absent_means_unsubscribe(void **state)
{
    (void)state;
    struct gossip_reader reader;
    struct gossip_entry entry;
    struct span bytes;
    enum status status = init_hex(&reader, "0a05 0801 120174 0a05 0800 120175 0a03 120176", &bytes);
    assert_int_equal(status, STATUS_OK);
    const char *const topics[] = {"t", "u", "v"};
    for (size_t i = 0; i < 3; i++) {
        assert_true(gossip_reader_next(&reader, &entry));
        assert_int_equal(entry.kind, GOSSIP_SUBSCRIPTION);
        assert_text(entry.topic, topics[i]);
        assert_int_equal(entry.subscribe, i == 0);
    }
    assert_false(gossip_reader_next(&reader, &entry));
    hex_free(bytes);
}

static void assert_items_are(struct gossip_items items, const char *const *texts, size_t count)
{
    struct span item;
    assert_int_equal(items.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(gossip_items_next(&items, &item));
        assert_text(item, texts[i]);
    }
    assert_false(gossip_items_next(&items, &item));
}

static void reads_every_kind_of_control_entry(void **state)
{
    (void)state;
    struct gossip_reader reader;
    struct gossip_entry entry;
    struct span bytes;
    enum status status = init_hex(&reader,
            "1a30"
            "0a09 120131 0a0174 120132"             /* ihave: id 1, topic t, id 2 */
            "1206 0a0133 0a0134"                    /* iwant: ids 3, 4 */
            "1a03 0a0175"                           /* graft u */
            "220e 0a0176 1206 0a0170 120172 18ac02" /* prune v, peer p with record r, 300 s */
            "2a06 0a0135 0a0136",                   /* idontwant: ids 5, 6 */
            &bytes);
    assert_int_equal(status, STATUS_OK);
    assert_true(gossip_reader_next(&reader, &entry));
    assert_int_equal(entry.kind, GOSSIP_IHAVE);
    assert_text(entry.topic, "t");
    assert_items_are(entry.items, (const char *const[]){"1", "2"}, 2);
    assert_true(gossip_reader_next(&reader, &entry));
    assert_int_equal(entry.kind, GOSSIP_IWANT);
    assert_items_are(entry.items, (const char *const[]){"3", "4"}, 2);
    assert_true(gossip_reader_next(&reader, &entry));
    assert_int_equal(entry.kind, GOSSIP_GRAFT);
    assert_text(entry.topic, "u");
    assert_true(gossip_reader_next(&reader, &entry));
    assert_int_equal(entry.kind, GOSSIP_PRUNE);
    assert_text(entry.topic, "v");
    assert_true(entry.has_backoff && entry.backoff_s == 300);
    struct span item;
    struct gossip_peer peer;
    assert_true(gossip_items_next(&entry.items, &item));
    assert_int_equal(gossip_peer_decode(&peer, item), STATUS_OK);
    assert_text(peer.peer_id, "p");
    assert_text(peer.signed_record, "r");
    assert_true(gossip_reader_next(&reader, &entry));
    assert_int_equal(entry.kind, GOSSIP_IDONTWANT);
    assert_items_are(entry.items, (const char *const[]){"5", "6"}, 2);
    assert_false(gossip_reader_next(&reader, &entry));
    hex_free(bytes);
}

static void reads_several_control_messages_as_one(void **state)
{
    (void)state;
    struct gossip_reader reader;
    struct gossip_entry entry;
    struct span bytes;
    enum status status =
            init_hex(&reader, "1a05 1a030a0174 1a00 1203120161 1a05 1a030a0175", &bytes);
    assert_int_equal(status, STATUS_OK);
    const enum gossip_entry_kind kinds[] = {GOSSIP_GRAFT, GOSSIP_PUBLISH, GOSSIP_GRAFT};
    for (size_t i = 0; i < 3; i++) {
        assert_true(gossip_reader_next(&reader, &entry));
        assert_int_equal(entry.kind, kinds[i]);
    }
    assert_text(entry.topic, "u");
    assert_false(gossip_reader_next(&reader, &entry));
    hex_free(bytes);
}

static void skips_unknown_fields_at_every_level(void **state)
{
    (void)state;
    struct gossip_reader reader;
    struct gossip_entry entry;
    struct span bytes;
    enum status status = init_hex(
            &reader, "a00601 1206 a00601 120161 1a0b a00601 1a06 a00601 0a0174 10ff01", &bytes);
    assert_int_equal(status, STATUS_OK);
    assert_true(gossip_reader_next(&reader, &entry));
    assert_text(entry.data, "a");
    assert_true(gossip_reader_next(&reader, &entry));
    assert_text(entry.topic, "t");
    assert_false(gossip_reader_next(&reader, &entry));
    hex_free(bytes);
}

static void refuses_an_rpc_whole_when_any_part_is_malformed(void **state)
{
    (void)state;
    const char *const rpcs[] = {
            "1203120161 12",                     /* cut short behind a good message */
            "1203120161 1205120161",             /* a message longer than what is left */
            "1203120161 1203120261",             /* data longer than its message */
            "1203120161 0a020880",               /* varint cut short by the end of its message */
            "1203120161 1a03 1a020a01",          /* inside a graft */
            "1203120161 1a06 2204 1202 0a01",    /* inside a peer of a prune */
            "1203120161 0b",                     /* group */
            "1203120161 1280808080808080808001", /* length 2^63 */
    };
    for (size_t i = 0; i < sizeof(rpcs) / sizeof(rpcs[0]); i++) {
        struct gossip_reader reader;
        struct gossip_entry entry;
        struct span bytes;
        uint64_t rpcs_before = metrics_sum(NULL, METRIC_RPCS);
        uint64_t malformed_before = metrics_sum(NULL, METRIC_RPCS_MALFORMED);
        assert_int_not_equal(init_hex(&reader, rpcs[i], &bytes), STATUS_OK);
        assert_false(gossip_reader_next(&reader, &entry));
        assert_int_equal(metrics_sum(NULL, METRIC_RPCS) - rpcs_before, 1);
        assert_int_equal(metrics_sum(NULL, METRIC_RPCS_MALFORMED) - malformed_before, 1);
        hex_free(bytes);
    }
}

/* An RPC of a megabyte that repeats one entry, so that its tiny entries pass every limit. */
static struct span flood_of(const char *entry_hex, const char *head_hex)
{
    static uint8_t bytes[1 << 20];
    struct span entry = hex_decode(entry_hex);
    struct span head = hex_decode(head_hex);
    size_t length = head.length;
    memcpy(bytes, head.bytes, head.length);
    while (length + entry.length <= 1000000 + head.length) {
        memcpy(bytes + length, entry.bytes, entry.length);
        length += entry.length;
    }
    hex_free(entry);
    hex_free(head);
    return span_of(bytes, length);
}

struct flood {
    enum gossip_entry_kind kind;
    const char *head; /* of messages with 1,000,000 bytes of content */
    const char *entry;
    uint32_t entries; /* sent */
    uint32_t items;
};

static void read_flood(const struct flood *flood)
{
    struct gossip_reader reader;
    struct gossip_entry entry;
    struct span item;
    uint32_t entries = 0;
    uint32_t items = 0;
    uint32_t entry_limit = gossip_limits_default.entries[flood->kind];
    uint64_t counted = metrics_sum(NULL, METRIC_RPC_ENTRIES_OVER_CAP);
    struct span rpc = flood_of(flood->entry, flood->head);
    assert_int_equal(gossip_reader_init(&reader, rpc, &gossip_limits_default), STATUS_OK);
    while (gossip_reader_next(&reader, &entry)) {
        assert_int_equal(entry.kind, flood->kind);
        entries++;
        while (gossip_items_next(&entry.items, &item)) {
            items++;
        }
    }
    assert_int_equal(entries, flood->entries < entry_limit ? flood->entries : entry_limit);
    assert_true(items <= gossip_limits_default.items[flood->kind]);
    uint32_t over = flood->entries - entries;
    over += flood->entries == 1 ? flood->items - items : 0;
    assert_int_equal(reader.over_limit, over);
    assert_false(gossip_reader_next(&reader, &entry));
    assert_int_equal(metrics_sum(NULL, METRIC_RPC_ENTRIES_OVER_CAP) - counted, over);
}

static void caps_floods_of_tiny_entries_and_counts_the_rest(void **state)
{
    (void)state;
    const struct flood floods[] = {
            {GOSSIP_SUBSCRIPTION, "", "0a00", 500000, 0},
            {GOSSIP_PUBLISH, "", "1200", 500000, 0},
            {GOSSIP_GRAFT, "1ac0843d", "1a00", 500000, 0},
            {GOSSIP_PRUNE, "1ac0843d", "2200", 500000, 0},
            {GOSSIP_IHAVE, "1ac0843d", "0a00", 500000, 0},
            {GOSSIP_IHAVE, "1ac4843d 0ac0843d", "1200", 1, 500000},
            {GOSSIP_IWANT, "1ac4843d 12c0843d", "0a00", 1, 500000},
            {GOSSIP_IDONTWANT, "1ac4843d 2ac0843d", "0a00", 1, 500000},
            {GOSSIP_PRUNE, "1ac4843d 22c0843d", "1200", 1, 500000},
            {GOSSIP_IWANT, "1ac0843d", "12020a00", 250000, 250000},
    };
    for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++) {
        read_flood(&floods[i]);
    }
}

static void ids_are_capped_over_all_entries_together(void **state)
{
    (void)state;
    struct gossip_reader reader;
    struct gossip_entry entry;
    struct gossip_limits limits = gossip_limits_default;
    struct span bytes = hex_decode("1a18 1206 0a0131 0a0132 1206 0a0133 0a0134 1206 0a0135 0a0136");
    limits.items[GOSSIP_IWANT] = 3;
    assert_int_equal(gossip_reader_init(&reader, bytes, &limits), STATUS_OK);
    const uint32_t expected[] = {2, 1, 0};
    for (size_t i = 0; i < 3; i++) {
        assert_true(gossip_reader_next(&reader, &entry));
        assert_int_equal(entry.items.count, expected[i]);
    }
    assert_false(gossip_reader_next(&reader, &entry));
    assert_int_equal(reader.over_limit, 3);
    hex_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(reads_messages_whatever_the_order_of_their_fields),
            cmocka_unit_test(sees_signed_fields_even_when_they_are_empty),
            cmocka_unit_test(tells_an_empty_message_from_one_without_data_or_topic),
            cmocka_unit_test(reads_subscriptions_where_absent_means_unsubscribe),
            cmocka_unit_test(reads_every_kind_of_control_entry),
            cmocka_unit_test(reads_several_control_messages_as_one),
            cmocka_unit_test(skips_unknown_fields_at_every_level),
            cmocka_unit_test(refuses_an_rpc_whole_when_any_part_is_malformed),
            cmocka_unit_test(caps_floods_of_tiny_entries_and_counts_the_rest),
            cmocka_unit_test(ids_are_capped_over_all_entries_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
