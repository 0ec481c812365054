/* SPDX-License-Identifier: MIT */
#include "codec/gossip_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/gossip.pb-c.h"
#include "codec/varint.h"

/* What another implementation makes of a frame; the caller frees it. */
static Wire__GossipRpc *unpack_frame(const uint8_t *bytes, size_t length)
{
    size_t rpc_length = 0;
    struct span rest = span_of(bytes, length);
    assert_int_equal(varint_read_length(&rpc_length, &rest, length), STATUS_OK);
    assert_int_equal(rpc_length, rest.length);
    Wire__GossipRpc *rpc = wire__gossip_rpc__unpack(NULL, rest.length, rest.bytes);
    assert_non_null(rpc);
    return rpc;
}

static void a_header_and_the_message_behind_it_are_a_frame(void **state)
{
    (void)state;
    const size_t lengths[] = {0, 1, 100, 127, 128, 16000, 16384, 150000};
    const char *topic = "/waku/2/rs/16/1";
    uint8_t *frame = malloc(200000);
    assert_non_null(frame);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t size = gossip_publish_header_size(span_of_text(topic), lengths[i]);
        assert_int_equal(
                gossip_publish_header_write(frame, size - 1, span_of_text(topic), lengths[i]), 0);
        assert_int_equal(
                gossip_publish_header_write(frame, size, span_of_text(topic), lengths[i]), size);
        memset(frame + size, (int)i + 1, lengths[i]);
        Wire__GossipRpc *rpc = unpack_frame(frame, size + lengths[i]);
        assert_int_equal(rpc->n_publish, 1);
        assert_string_equal(rpc->publish[0]->topic, topic);
        assert_true(rpc->publish[0]->has_data);
        assert_int_equal(rpc->publish[0]->data.len, lengths[i]);
        assert_true(lengths[i] == 0 ||
                    memcmp(rpc->publish[0]->data.data, frame + size, lengths[i]) == 0);
        assert_false(rpc->publish[0]->has_from || rpc->publish[0]->has_seqno ||
                     rpc->publish[0]->has_signature || rpc->publish[0]->has_key);
        wire__gossip_rpc__free_unpacked(rpc, NULL);
    }
    free(frame);
}

static bool equals(ProtobufCBinaryData data, struct span span)
{
    return span_equal(span_of(data.data, data.len), span);
}

static void another_implementation_reads_every_kind_of_entry(void **state)
{
    (void)state;
    const struct span ids[] = {span_of_text("id-1"), span_of_text("id-2"), span_of_text("id-3")};
    const struct span grafts[] = {span_of_text("graft-1"), span_of_text("graft-2")};
    const struct gossip_subscription subscriptions[] = {
            {span_of_text("topic-1"), true}, {span_of_text("topic-2"), false}};
    const struct gossip_id_list ihave[] = {
            {span_of_text("topic-1"), ids, 2}, {span_of_text("topic-2"), ids + 2, 1}};
    const struct gossip_peer peers[] = {{span_of_text("peer-1"), span_of_text("record")},
            {span_of_text("peer-2"), span_of(NULL, 0)}};
    const struct gossip_prune prunes[] = {
            {span_of_text("topic-3"), peers, 2, 60}, {span_of_text("topic-4"), NULL, 0, 0}};
    const struct gossip_outgoing outgoing = {.subscriptions = subscriptions,
            .subscription_count = 2,
            .ihave = ihave,
            .ihave_count = 2,
            .graft = grafts,
            .graft_count = 2,
            .prune = prunes,
            .prune_count = 2,
            .iwant = ids,
            .iwant_count = 3,
            .idontwant = ids + 1,
            .idontwant_count = 2};
    uint8_t frame[512];
    size_t size = gossip_outgoing_size(&outgoing);
    assert_int_equal(gossip_outgoing_write(frame, size - 1, &outgoing), 0);
    assert_int_equal(gossip_outgoing_write(frame, size, &outgoing), size);
    Wire__GossipRpc *rpc = unpack_frame(frame, size);
    assert_int_equal(rpc->n_subscriptions, 2);
    assert_true(rpc->subscriptions[0]->subscribe);
    assert_string_equal(rpc->subscriptions[0]->topic_id, "topic-1");
    assert_true(rpc->subscriptions[1]->has_subscribe && !rpc->subscriptions[1]->subscribe);
    const Wire__GossipControl *control = rpc->control;
    assert_int_equal(control->n_ihave, 2);
    assert_string_equal(control->ihave[0]->topic_id, "topic-1");
    assert_int_equal(control->ihave[0]->n_message_ids, 2);
    assert_true(equals(control->ihave[0]->message_ids[1], ids[1]));
    assert_true(equals(control->ihave[1]->message_ids[0], ids[2]));
    assert_int_equal(control->n_iwant, 1);
    assert_int_equal(control->iwant[0]->n_message_ids, 3);
    assert_int_equal(control->n_graft, 2);
    assert_string_equal(control->graft[1]->topic_id, "graft-2");
    assert_int_equal(control->n_prune, 2);
    assert_string_equal(control->prune[0]->topic_id, "topic-3");
    assert_true(control->prune[0]->backoff == 60);
    assert_int_equal(control->prune[0]->n_peers, 2);
    assert_true(equals(control->prune[0]->peers[0]->peer_id, peers[0].peer_id));
    assert_true(equals(control->prune[0]->peers[0]->signed_peer_record, peers[0].signed_record));
    assert_false(control->prune[0]->peers[1]->has_signed_peer_record);
    assert_true(control->prune[1]->has_backoff && control->prune[1]->backoff == 0);
    assert_int_equal(control->n_idontwant, 1);
    assert_true(equals(control->idontwant[0]->message_ids[1], ids[2]));
    wire__gossip_rpc__free_unpacked(rpc, NULL);
}

static void without_control_entries_there_is_no_control_message(void **state)
{
    (void)state;
    uint8_t frame[64];
    const struct gossip_subscription subscription = {span_of_text("t"), true};
    const struct gossip_outgoing outgoing = {
            .subscriptions = &subscription, .subscription_count = 1};
    size_t size = gossip_outgoing_write(frame, sizeof(frame), &outgoing);
    assert_int_equal(size, 8);
    assert_memory_equal(frame, "\x07\x0a\x05\x08\x01\x12\x01t", 8);
}

static void nothing_to_send_is_no_frame(void **state)
{
    (void)state;
    uint8_t frame[8];
    const struct gossip_outgoing outgoing = {0};
    assert_int_equal(gossip_outgoing_size(&outgoing), 0);
    assert_int_equal(gossip_outgoing_write(frame, sizeof(frame), &outgoing), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_header_and_the_message_behind_it_are_a_frame),
            cmocka_unit_test(another_implementation_reads_every_kind_of_entry),
            cmocka_unit_test(without_control_entries_there_is_no_control_message),
            cmocka_unit_test(nothing_to_send_is_no_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
