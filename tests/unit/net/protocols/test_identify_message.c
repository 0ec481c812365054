/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "codec/identify.pb-c.h"
#include "net/identity/identity.h"
#include "net/protocols/identify_message.h"

static struct identity *create_identity(void)
{
    struct identity *identity;
    assert_int_equal(identity_create(&identity, KEY_TYPE_SECP256K1), STATUS_OK);
    return identity;
}

static struct span encode_key(const struct identity *identity, uint8_t out[PUBLIC_KEY_MAX_ENCODED])
{
    return span_of(out, public_key_encode(identity_public_key(identity), out));
}

static struct span span_of_data(ProtobufCBinaryData data)
{
    return span_of(data.data, data.len);
}

/* protobuf-c writes, we read. */
static void what_another_implementation_writes_is_read(void **state)
{
    (void)state;
    struct identity *identity = create_identity();
    uint8_t key[PUBLIC_KEY_MAX_ENCODED];
    struct span key_span = encode_key(identity, key);
    static uint8_t address[] = {4, 127, 0, 0, 1, 6, 0x1f, 0x90};
    char *protocols[] = {"/ipfs/id/1.0.0", "/vac/waku/relay/2.0.0"};
    ProtobufCBinaryData addresses[] = {{sizeof(address), address}};
    Wire__Identify message = WIRE__IDENTIFY__INIT;
    message.has_public_key = 1;
    message.public_key = (ProtobufCBinaryData){key_span.length, key};
    message.n_listen_addresses = 1;
    message.listen_addresses = addresses;
    message.n_protocols = 2;
    message.protocols = protocols;
    message.agent_version = "nim-libp2p/1.0";
    message.protocol_version = "ipfs/0.1.0";
    uint8_t *bytes = malloc(wire__identify__get_packed_size(&message));
    size_t length = wire__identify__pack(&message, bytes);
    struct identify_info info;
    assert_int_equal(
            identify_message_read(&info, span_of(bytes, length), identity_peer_id(identity)),
            STATUS_OK);
    assert_true(span_equal(info.agent, span_of_text("nim-libp2p/1.0")));
    assert_true(span_equal(info.protocol_version, span_of_text("ipfs/0.1.0")));
    assert_true(span_equal(info.public_key, key_span));
    assert_int_equal(info.address_count, 1);
    assert_true(span_equal(info.addresses[0], span_of(address, sizeof(address))));
    assert_true(identify_info_has_protocol(&info, "/vac/waku/relay/2.0.0"));
    assert_false(identify_info_has_protocol(&info, "/vac/waku/relay/2.0"));
    free(bytes);
    identity_destroy(&identity);
}

/* We write, protobuf-c reads. */
static void what_is_written_another_implementation_reads(void **state)
{
    (void)state;
    struct identity *identity = create_identity();
    uint8_t key[PUBLIC_KEY_MAX_ENCODED];
    struct identify_info info = {.agent = span_of_text("sluice"),
            .protocol_version = span_of_text("ipfs/0.1.0"),
            .public_key = encode_key(identity, key),
            .observed_address = span_of("\x04\x7f\x00\x00\x01", 5),
            .protocols = {span_of_text("/a/1"), span_of_text("/b/1")},
            .protocol_count = 2,
            .addresses = {span_of("\x04\x0a\x00\x00\x01", 5)},
            .address_count = 1};
    uint8_t *bytes;
    size_t length;
    assert_int_equal(identify_message_write(&bytes, &length, &info), STATUS_OK);
    Wire__Identify *message = wire__identify__unpack(NULL, length, bytes);
    assert_non_null(message);
    assert_string_equal(message->agent_version, "sluice");
    assert_int_equal(message->n_protocols, 2);
    assert_string_equal(message->protocols[1], "/b/1");
    assert_true(span_equal(span_of_data(message->public_key), info.public_key));
    assert_true(span_equal(span_of_data(message->observed_address), info.observed_address));
    assert_true(span_equal(span_of_data(message->listen_addresses[0]), info.addresses[0]));
    wire__identify__free_unpacked(message, NULL);
    memory_free(bytes);
    identity_destroy(&identity);
}

static void the_key_of_another_peer_is_refused(void **state)
{
    (void)state;
    struct identity *identity = create_identity();
    struct identity *other = create_identity();
    uint8_t key[PUBLIC_KEY_MAX_ENCODED];
    struct identify_info info = {.public_key = encode_key(other, key)};
    uint8_t *bytes;
    size_t length;
    assert_int_equal(identify_message_write(&bytes, &length, &info), STATUS_OK);
    assert_int_equal(
            identify_message_read(&info, span_of(bytes, length), identity_peer_id(identity)),
            STATUS_WRONG_PEER);
    assert_int_equal(identify_message_read(&info, span_of(bytes, length), identity_peer_id(other)),
            STATUS_OK);
    memory_free(bytes);
    identity_destroy(&other);
    identity_destroy(&identity);
}

static void lists_without_end_are_cut(void **state)
{
    (void)state;
    uint8_t bytes[IDENTIFY_MESSAGE_MAX];
    struct peer_id peer = {0};
    struct identify_info info;
    for (size_t i = 0; i + 2 <= sizeof(bytes); i += 2) {
        bytes[i] = i % 4 == 0 ? 0x1a : 0x12; /* an empty protocol, an empty address */
        bytes[i + 1] = 0;
    }
    assert_int_equal(identify_message_read(&info, span_of(bytes, sizeof(bytes)), &peer), STATUS_OK);
    assert_int_equal(info.protocol_count, IDENTIFY_PROTOCOLS_MAX);
    assert_int_equal(info.address_count, IDENTIFY_ADDRESSES_MAX);
}

static void malformed_messages_are_refused(void **state)
{
    (void)state;
    static const char *const messages[] = {
            "\x0a",                         /* ends behind a tag */
            "\x0a\x05xy",                   /* ends before its length says */
            "\x0b",                         /* a group */
            "\x32\xff\xff\xff\xff\xff\x01", /* a length of six bytes */
            "\x0a\x02\x08\x09",             /* no public key */
    };
    struct peer_id peer = {0};
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        struct identify_info info;
        assert_int_not_equal(
                identify_message_read(&info, span_of_text(messages[i]), &peer), STATUS_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(what_another_implementation_writes_is_read),
            cmocka_unit_test(what_is_written_another_implementation_reads),
            cmocka_unit_test(the_key_of_another_peer_is_refused),
            cmocka_unit_test(lists_without_end_are_cut),
            cmocka_unit_test(malformed_messages_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
