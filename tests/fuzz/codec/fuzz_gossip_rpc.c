/* SPDX-License-Identifier: MIT */

/*
 * The RPC reader against protobuf-c: the same RPCs are taken and refused whole, with the same entries
 * in the same order within their kind (tests/support/protobuf_oracle.h says where the two differ);
 * then again with limits of one and two, which may only leave out and count.
 */

#include "codec/gossip_rpc.h"

#include <string.h>

#include "codec/gossip.pb-c.h"
#include "tests/support/protobuf_oracle.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool equals(struct span span, ProtobufCBinaryData expected)
{
    return span_equal(span, span_of(expected.data, expected.len));
}

/* protobuf-c ends strings with a NUL and does not tell their length. */
static bool equals_text(const struct gossip_entry *entry, const char *expected)
{
    if (expected == NULL) {
        return !entry->has_topic && entry->topic.length == 0;
    }
    return entry->has_topic && expected[entry->topic.length] == '\0' &&
           (entry->topic.length == 0 ||
                   memcmp(entry->topic.bytes, expected, entry->topic.length) == 0);
}

static void compare_ids(
        struct gossip_items items, const ProtobufCBinaryData *expected, size_t count)
{
    struct span id;
    REQUIRE(items.count == count);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(gossip_items_next(&items, &id));
        REQUIRE(equals(id, expected[i]));
    }
    REQUIRE(!gossip_items_next(&items, &id));
}

static void compare_publish(const struct gossip_entry *entry, const Wire__GossipMessage *expected)
{
    REQUIRE(equals_text(entry, expected->topic));
    REQUIRE(entry->has_data == (expected->has_data != 0));
    REQUIRE(entry->has_data ? equals(entry->data, expected->data) : entry->data.length == 0);
    REQUIRE(entry->has_signed_fields == (expected->has_from || expected->has_seqno ||
                                                expected->has_signature || expected->has_key));
}

static void compare_subscription(
        const struct gossip_entry *entry, const Wire__GossipSubscription *expected)
{
    REQUIRE(equals_text(entry, expected->topic_id));
    REQUIRE(entry->subscribe == (expected->has_subscribe && expected->subscribe));
}

static void compare_prune(const struct gossip_entry *entry, const Wire__GossipPrune *expected)
{
    struct span item;
    struct gossip_items peers = entry->items;
    REQUIRE(equals_text(entry, expected->topic_id));
    REQUIRE(entry->has_backoff == (expected->has_backoff != 0));
    REQUIRE(!entry->has_backoff || entry->backoff_s == expected->backoff);
    REQUIRE(peers.count == expected->n_peers);
    for (size_t i = 0; i < expected->n_peers; i++) {
        struct gossip_peer peer;
        const Wire__GossipPeer *other = expected->peers[i];
        REQUIRE(gossip_items_next(&peers, &item));
        REQUIRE(gossip_peer_decode(&peer, item) == STATUS_OK);
        REQUIRE(other->has_peer_id ? equals(peer.peer_id, other->peer_id)
                                   : peer.peer_id.length == 0);
        REQUIRE(other->has_signed_peer_record
                        ? equals(peer.signed_record, other->signed_peer_record)
                        : peer.signed_record.length == 0);
    }
    REQUIRE(!gossip_items_next(&peers, &item));
}

static void compare_control(
        const struct gossip_entry *entry, const Wire__GossipControl *control, size_t index)
{
    switch (entry->kind) {
    case GOSSIP_IHAVE:
        REQUIRE(equals_text(entry, control->ihave[index]->topic_id));
        compare_ids(entry->items, control->ihave[index]->message_ids,
                control->ihave[index]->n_message_ids);
        break;
    case GOSSIP_IWANT:
        compare_ids(entry->items, control->iwant[index]->message_ids,
                control->iwant[index]->n_message_ids);
        break;
    case GOSSIP_GRAFT:
        REQUIRE(equals_text(entry, control->graft[index]->topic_id));
        break;
    case GOSSIP_PRUNE:
        compare_prune(entry, control->prune[index]);
        break;
    case GOSSIP_IDONTWANT:
        compare_ids(entry->items, control->idontwant[index]->message_ids,
                control->idontwant[index]->n_message_ids);
        break;
    case GOSSIP_PUBLISH:
    case GOSSIP_SUBSCRIPTION:
    case GOSSIP_ENTRY_KINDS:
        REQUIRE(false);
    }
}

static void count_expected(size_t counts[GOSSIP_ENTRY_KINDS], const Wire__GossipRpc *expected)
{
    const Wire__GossipControl *control = expected->control;
    counts[GOSSIP_PUBLISH] = expected->n_publish;
    counts[GOSSIP_SUBSCRIPTION] = expected->n_subscriptions;
    counts[GOSSIP_IHAVE] = control == NULL ? 0 : control->n_ihave;
    counts[GOSSIP_IWANT] = control == NULL ? 0 : control->n_iwant;
    counts[GOSSIP_GRAFT] = control == NULL ? 0 : control->n_graft;
    counts[GOSSIP_PRUNE] = control == NULL ? 0 : control->n_prune;
    counts[GOSSIP_IDONTWANT] = control == NULL ? 0 : control->n_idontwant;
}

/* Reads without limits; returns how many entries and items there are in all. */
static size_t compare(struct span rpc, const Wire__GossipRpc *expected)
{
    struct gossip_limits limits;
    struct gossip_reader reader;
    struct gossip_entry entry;
    size_t counts[GOSSIP_ENTRY_KINDS];
    size_t seen[GOSSIP_ENTRY_KINDS] = {0};
    size_t total = 0;
    memset(&limits, 0xff, sizeof(limits));
    count_expected(counts, expected);
    REQUIRE(gossip_reader_init(&reader, rpc, &limits) == STATUS_OK);
    while (gossip_reader_next(&reader, &entry)) {
        size_t index = seen[entry.kind]++;
        REQUIRE(index < counts[entry.kind]);
        if (entry.kind == GOSSIP_PUBLISH) {
            compare_publish(&entry, expected->publish[index]);
        } else if (entry.kind == GOSSIP_SUBSCRIPTION) {
            compare_subscription(&entry, expected->subscriptions[index]);
        } else {
            compare_control(&entry, expected->control, index);
        }
        total += 1 + entry.items.count;
    }
    REQUIRE(memcmp(seen, counts, sizeof(seen)) == 0);
    REQUIRE(reader.over_limit == 0);
    return total;
}

static void check_limits(struct span rpc, size_t total)
{
    const struct gossip_limits limits = {
            .entries = {1, 2, 1, 2, 1, 2, 1}, .items = {0, 0, 1, 2, 0, 1, 2}};
    struct gossip_reader reader;
    struct gossip_entry entry;
    size_t entries[GOSSIP_ENTRY_KINDS] = {0};
    size_t items[GOSSIP_ENTRY_KINDS] = {0};
    size_t read = 0;
    REQUIRE(gossip_reader_init(&reader, rpc, &limits) == STATUS_OK);
    while (gossip_reader_next(&reader, &entry)) {
        entries[entry.kind]++;
        items[entry.kind] += entry.items.count;
        read += 1 + entry.items.count;
    }
    for (size_t kind = 0; kind < GOSSIP_ENTRY_KINDS; kind++) {
        REQUIRE(entries[kind] <= limits.entries[kind]);
        REQUIRE(items[kind] <= limits.items[kind]);
    }
    /* The items of an entry that is skipped are not looked at, so they are not counted. */
    REQUIRE(read + reader.over_limit <= total);
    REQUIRE((read == total) == (reader.over_limit == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gossip_reader reader;
    struct gossip_entry entry;
    uint8_t *cleaned = NULL;
    size_t length = 0;
    size_t dropped = 0;
    struct span rpc = span_of(data, size);
    enum status status = gossip_reader_init(&reader, rpc, &gossip_limits_default);
    enum oracle_verdict verdict =
            oracle_clean(&wire__gossip_rpc__descriptor, rpc, &cleaned, &length, &dropped);
    REQUIRE((status == STATUS_OK) == (verdict == ORACLE_GOOD));
    if (verdict == ORACLE_GOOD) {
        Wire__GossipRpc *expected = wire__gossip_rpc__unpack(NULL, length, cleaned);
        REQUIRE(expected != NULL);
        check_limits(rpc, compare(rpc, expected));
        wire__gossip_rpc__free_unpacked(expected, NULL);
    } else {
        REQUIRE(!gossip_reader_next(&reader, &entry));
    }
    free(cleaned);
    return 0;
}
