/* SPDX-License-Identifier: MIT */
#include "net/identity/enr.h"

#include <string.h>

#include "tests/support/cmocka.h"

/* The record of EIP-778: 127.0.0.1, UDP 30303 only. */
static const char example[] =
        "enr:-"
        "IS4QHCYrYZbAKWCBRlAy5zzaDZXJBGkcnh4MHcBFZntXNFrdvJjX04jRzjzCBOonrkTfj499SZuOh8R33Ls8RRcy5"
        "wBgmlkgnY0gmlwhH8AAAGJc2VjcDI1NmsxoQPKY0yuDUmstAHYpMa2_oxVtw0RW_QAdpzBQA8yWM0xOIN1ZHCCdl8";
static const char secret[] = "b71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291";

static struct multiaddr address_from(const char *text)
{
    struct multiaddr address;
    assert_int_equal(multiaddr_parse(&address, span_of_text(text)), STATUS_OK);
    return address;
}

static struct identity *made_identity(void)
{
    struct identity *identity;
    assert_int_equal(identity_create_from_hex(&identity, span_of_text(secret)), STATUS_OK);
    return identity;
}

/* Its signature is right, or it would not get as far as to say that there is no TCP. */
static void the_example_of_the_specification_is_verified(void **state)
{
    struct multiaddr address;
    char changed[sizeof(example)];
    (void)state;
    assert_int_equal(enr_address(&address, span_of_text(example)), STATUS_NOT_FOUND);
    strcpy(changed, example);
    changed[sizeof(example) - 3] = 'e'; /* another UDP port */
    assert_int_equal(enr_address(&address, span_of_text(changed)), STATUS_BAD_SIGNATURE);
}

static void what_is_written_is_read(void **state)
{
    struct identity *identity = made_identity();
    struct multiaddr addresses[] = {address_from("/ip4/10.1.2.3/tcp/8000/ws"),
            address_from("/ip4/10.1.2.3/tcp/60000"), address_from("/dns4/a.example/tcp/443/wss")};
    uint16_t shards[] = {0, 7, 1023};
    struct enr_options options = {.sequence = 1796067196864,
            .addresses = addresses,
            .address_count = 3,
            .cluster_id = 16,
            .shards = shards,
            .shard_count = 3,
            .capabilities = ENR_RELAY | ENR_STORE};
    char text[ENR_TEXT_SIZE];
    char printed[MULTIADDR_TEXT_SIZE];
    struct multiaddr address;
    struct peer_id peer;
    (void)state;
    assert_int_equal(enr_write(text, identity, &options), STATUS_OK);
    assert_int_equal(strncmp(text, "enr:", 4), 0);
    assert_int_equal(enr_address(&address, span_of_text(text)), STATUS_OK);
    assert_true(multiaddr_peer(&peer, &address));
    assert_true(peer_id_equal(&peer, identity_peer_id(identity)));
    assert_int_equal(
            strncmp(multiaddr_print(printed, &address), "/ip4/10.1.2.3/tcp/60000/p2p/", 28), 0);
    options.addresses = addresses + 2;
    options.address_count = 1;
    assert_int_equal(enr_write(text, identity, &options), STATUS_OK);
    assert_int_equal(enr_address(&address, span_of_text(text)), STATUS_OK);
    assert_non_null(strstr(multiaddr_print(printed, &address), "/dns4/a.example/tcp/443/wss/p2p/"));
    identity_destroy(&identity);
}

static void many_shards_and_addresses_still_fit(void **state)
{
    struct identity *identity = made_identity();
    struct multiaddr addresses[8];
    uint16_t shards[200];
    struct enr_options options = {
            .addresses = addresses, .address_count = 8, .shards = shards, .shard_count = 200};
    char text[ENR_TEXT_SIZE];
    struct multiaddr address;
    (void)state;
    for (size_t i = 0; i < 200; i++) {
        shards[i] = (uint16_t)i;
    }
    for (size_t i = 0; i < 8; i++) {
        addresses[i] = address_from("/dns4/a-rather-long-name-of-a-node.example.org/tcp/443/wss");
    }
    addresses[7] = address_from("/ip4/10.1.2.3/tcp/60000");
    assert_int_equal(enr_write(text, identity, &options), STATUS_OK);
    assert_true(strlen(text) < ENR_TEXT_SIZE);
    assert_int_equal(enr_address(&address, span_of_text(text)), STATUS_OK);
    identity_destroy(&identity);
}

static void other_keys_have_no_record(void **state)
{
    struct identity *identity;
    struct enr_options options = {.sequence = 1};
    char text[ENR_TEXT_SIZE];
    (void)state;
    assert_int_equal(identity_create(&identity, KEY_TYPE_ED25519), STATUS_OK);
    assert_int_equal(enr_write(text, identity, &options), STATUS_UNSUPPORTED);
    identity_destroy(&identity);
}

static void every_cut_of_a_record_is_refused(void **state)
{
    struct multiaddr address;
    (void)state;
    for (size_t length = 0; length < sizeof(example) - 1; length++) {
        assert_int_not_equal(enr_address(&address, span_of(example, length)), STATUS_OK);
        assert_int_not_equal(enr_address(&address, span_of(example, length)), STATUS_NOT_FOUND);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_example_of_the_specification_is_verified),
            cmocka_unit_test(what_is_written_is_read),
            cmocka_unit_test(many_shards_and_addresses_still_fit),
            cmocka_unit_test(other_keys_have_no_record),
            cmocka_unit_test(every_cut_of_a_record_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
