/* SPDX-License-Identifier: MIT */

/* The schemas against bytes written by hand from the specifications' field tables. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codec/filter.pb-c.h"
#include "codec/identify.pb-c.h"
#include "codec/keys.pb-c.h"
#include "codec/lightpush.pb-c.h"
#include "codec/metadata.pb-c.h"
#include "codec/noise.pb-c.h"
#include "codec/peer_exchange.pb-c.h"
#include "codec/peer_record.pb-c.h"
#include "codec/rendezvous.pb-c.h"
#include "codec/store.pb-c.h"
#include "codec/transfer.pb-c.h"
#include "tests/support/hex.h"

/* Unpacks hex, packs it again, and wants the same bytes: no field is unknown, none is lost. */
static ProtobufCMessage *unpack(const ProtobufCMessageDescriptor *descriptor, const char *hex)
{
    uint8_t packed[512];
    struct span bytes = hex_decode(hex);
    ProtobufCMessage *message =
            protobuf_c_message_unpack(descriptor, NULL, bytes.length, bytes.bytes);
    assert_non_null(message);
    assert_int_equal(message->n_unknown_fields, 0);
    assert_int_equal(protobuf_c_message_get_packed_size(message), bytes.length);
    assert_int_equal(protobuf_c_message_pack(message, packed), bytes.length);
    assert_memory_equal(packed, bytes.bytes, bytes.length);
    hex_free(bytes);
    return message;
}

static void assert_bytes(ProtobufCBinaryData data, const char *text)
{
    assert_int_equal(data.len, strlen(text));
    assert_memory_equal(data.data, text, data.len);
}

static void filter_request_response_and_push(void **state)
{
    (void)state;
    Wire__FilterSubscribeRequest *request = (void *)unpack(
            &wire__filter_subscribe_request__descriptor, "0a0172 1003 520170 5a0163 5a0164");
    assert_string_equal(request->request_id, "r");
    assert_int_equal(request->filter_subscribe_type, WIRE__FILTER_SUBSCRIBE_TYPE__UNSUBSCRIBE_ALL);
    assert_string_equal(request->pubsub_topic, "p");
    assert_int_equal(request->n_content_topics, 2);
    assert_string_equal(request->content_topics[1], "d");
    wire__filter_subscribe_request__free_unpacked(request, NULL);
    Wire__FilterSubscribeResponse *response =
            (void *)unpack(&wire__filter_subscribe_response__descriptor, "0a0172 50c801 5a026f6b");
    assert_int_equal(response->status_code, 200);
    assert_string_equal(response->status_desc, "ok");
    wire__filter_subscribe_response__free_unpacked(response, NULL);
    Wire__FilterPush *push = (void *)unpack(&wire__filter_push__descriptor, "0a026d6d 120170");
    assert_bytes(push->waku_message, "mm");
    assert_string_equal(push->pubsub_topic, "p");
    wire__filter_push__free_unpacked(push, NULL);
}

static void store_request_and_response(void **state)
{
    (void)state;
    Wire__StoreQueryRequest *request = (void *)unpack(&wire__store_query_request__descriptor,
            "0a0172 1001 520170 5a0163 6001 6802 a2010168 a2010169 9a030163 a00301 a80364");
    assert_true(request->include_data);
    assert_true(request->time_start == -1);
    assert_true(request->time_end == 1);
    assert_int_equal(request->n_message_hashes, 2);
    assert_bytes(request->pagination_cursor, "c");
    assert_true(request->pagination_forward);
    assert_true(request->pagination_limit == 100);
    wire__store_query_request__free_unpacked(request, NULL);
    Wire__StoreQueryResponse *response = (void *)unpack(&wire__store_query_response__descriptor,
            "0a0172 50c801 5a026f6b a20109 0a0168 12016d 1a0170 9a030163");
    assert_int_equal(response->n_messages, 1);
    assert_bytes(response->messages[0]->message_hash, "h");
    assert_bytes(response->messages[0]->message, "m");
    assert_string_equal(response->messages[0]->pubsub_topic, "p");
    assert_bytes(response->pagination_cursor, "c");
    wire__store_query_response__free_unpacked(response, NULL);
}

static void lightpush_of_both_versions(void **state)
{
    (void)state;
    Wire__LightpushRequest *request =
            (void *)unpack(&wire__lightpush_request__descriptor, "0a0172 a2010170 aa01016d");
    assert_string_equal(request->pubsub_topic, "p");
    assert_bytes(request->message, "m");
    wire__lightpush_request__free_unpacked(request, NULL);
    Wire__LightpushResponse *response =
            (void *)unpack(&wire__lightpush_response__descriptor, "0a0172 50f903 5a0178 6002");
    assert_int_equal(response->status_code, 505);
    assert_int_equal(response->relay_peer_count, 2);
    wire__lightpush_response__free_unpacked(response, NULL);
    Wire__LegacyLightpushRpc *legacy = (void *)unpack(
            &wire__legacy_lightpush_rpc__descriptor, "0a0172 1206 0a0170 12016d 1a05 0801 120169");
    assert_string_equal(legacy->request->pubsub_topic, "p");
    assert_bytes(legacy->request->message, "m");
    assert_true(legacy->response->is_success);
    assert_string_equal(legacy->response->info, "i");
    wire__legacy_lightpush_rpc__free_unpacked(legacy, NULL);
}

static void metadata_shards_are_read_packed_and_unpacked(void **state)
{
    (void)state;
    Wire__Metadata *metadata =
            (void *)unpack(&wire__metadata__descriptor, "0810 1000 1005 1a020005");
    assert_int_equal(metadata->cluster_id, 16);
    assert_int_equal(metadata->n_shards, 2);
    assert_int_equal(metadata->n_shards_packed, 2);
    assert_int_equal(metadata->shards_packed[1], 5);
    wire__metadata__free_unpacked(metadata, NULL);
    struct span other = hex_decode("12020005 1800 1805");
    metadata = wire__metadata__unpack(NULL, other.length, other.bytes);
    assert_non_null(metadata);
    assert_int_equal(metadata->n_shards, 2);
    assert_int_equal(metadata->n_shards_packed, 2);
    assert_int_equal(metadata->shards[1], 5);
    wire__metadata__free_unpacked(metadata, NULL);
    hex_free(other);
}

static void peer_exchange_query_and_response(void **state)
{
    (void)state;
    Wire__PeerExchangeRpc *rpc = (void *)unpack(
            &wire__peer_exchange_rpc__descriptor, "0a02 083c 120c 0a03 0a0165 50c801 5a026f6b");
    assert_true(rpc->query->num_peers == 60);
    assert_int_equal(rpc->response->n_peer_infos, 1);
    assert_bytes(rpc->response->peer_infos[0]->enr, "e");
    assert_int_equal(rpc->response->status_code, 200);
    wire__peer_exchange_rpc__free_unpacked(rpc, NULL);
}

/* The Ed25519 key of the test vectors in libp2p's specification of peer ids. */
static void public_key_of_the_specification(void **state)
{
    (void)state;
    Wire__PublicKey *key = (void *)unpack(&wire__public_key__descriptor,
            "08011220 1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e");
    assert_int_equal(key->type, WIRE__KEY_TYPE__ED25519);
    assert_int_equal(key->data.len, 32);
    wire__public_key__free_unpacked(key, NULL);
}

static void identify_and_noise_payload(void **state)
{
    (void)state;
    Wire__Identify *identify = (void *)unpack(
            &wire__identify__descriptor, "0a016b 12016c 1a0170 1a0171 22016f 2a0176 320161 420173");
    assert_bytes(identify->public_key, "k");
    assert_int_equal(identify->n_listen_addresses, 1);
    assert_int_equal(identify->n_protocols, 2);
    assert_bytes(identify->observed_address, "o");
    assert_string_equal(identify->protocol_version, "v");
    assert_string_equal(identify->agent_version, "a");
    assert_bytes(identify->signed_peer_record, "s");
    wire__identify__free_unpacked(identify, NULL);
    Wire__NoiseHandshakePayload *payload = (void *)unpack(
            &wire__noise_handshake_payload__descriptor, "0a016b 120173 2206 0a0163 12016d");
    assert_bytes(payload->identity_key, "k");
    assert_bytes(payload->identity_sig, "s");
    assert_string_equal(payload->extensions->stream_muxers[0], "m");
    wire__noise_handshake_payload__free_unpacked(payload, NULL);
}

static void transfer_records_and_rendezvous(void **state)
{
    (void)state;
    Wire__Transfer *transfer = (void *)unpack(&wire__transfer__descriptor, "0a0170 12016d");
    assert_string_equal(transfer->pubsub_topic, "p");
    assert_bytes(transfer->message, "m");
    wire__transfer__free_unpacked(transfer, NULL);
    Wire__Envelope *envelope =
            (void *)unpack(&wire__envelope__descriptor, "0a016b 120174 1a0170 2a0173");
    assert_bytes(envelope->payload, "p");
    assert_bytes(envelope->signature, "s");
    wire__envelope__free_unpacked(envelope, NULL);
    Wire__PeerRecord *record =
            (void *)unpack(&wire__peer_record__descriptor, "0a0169 1007 1a03 0a0161");
    assert_true(record->seq == 7);
    assert_bytes(record->addresses[0]->multiaddr, "a");
    wire__peer_record__free_unpacked(record, NULL);
    Wire__Rendezvous *rendezvous =
            (void *)unpack(&wire__rendezvous__descriptor, "0800 1209 0a016e 120173 18a038");
    assert_int_equal(rendezvous->type, WIRE__RENDEZVOUS_TYPE__REGISTER);
    assert_string_equal(rendezvous->register_->ns, "n");
    assert_true(rendezvous->register_->ttl == 7200);
    wire__rendezvous__free_unpacked(rendezvous, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(filter_request_response_and_push),
            cmocka_unit_test(store_request_and_response),
            cmocka_unit_test(lightpush_of_both_versions),
            cmocka_unit_test(metadata_shards_are_read_packed_and_unpacked),
            cmocka_unit_test(peer_exchange_query_and_response),
            cmocka_unit_test(public_key_of_the_specification),
            cmocka_unit_test(identify_and_noise_payload),
            cmocka_unit_test(transfer_records_and_rendezvous),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
