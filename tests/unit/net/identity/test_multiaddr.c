/* SPDX-License-Identifier: MIT */
#include "net/identity/multiaddr.h"

#include "tests/support/vectors.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ED25519_PEER "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA"
#define RSA_PEER     "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"

static struct multiaddr parse(const char *text)
{
    struct multiaddr address;
    assert_int_equal(multiaddr_parse(&address, span_of_text(text)), STATUS_OK);
    return address;
}

static void expect_text(const struct multiaddr *address, const char *expected)
{
    char text[MULTIADDR_TEXT_SIZE];
    assert_string_equal(multiaddr_print(text, address), expected);
}

static void agrees_with_js_multiaddr_on_text_and_bytes(void **state)
{
    (void)state;
    json_t *root = vectors_load("multiaddrs.json");
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(root, "addresses"), i, item)
    {
        struct multiaddr address = parse(vectors_text(item, "text"));
        struct multiaddr from_bytes;
        struct span bytes = vectors_bytes(item, "bytes");
        assert_true(span_equal(multiaddr_span(&address), bytes));
        assert_int_equal(multiaddr_from_bytes(&from_bytes, bytes), STATUS_OK);
        expect_text(&from_bytes, vectors_text(item, "printed"));
        hex_free(bytes);
    }
    assert_int_equal(i, 19);
    json_decref(root);
}

static void expect_bad_text(const char *text)
{
    struct multiaddr address;
    if (multiaddr_parse(&address, span_of_text(text)) != STATUS_BAD_ADDRESS) {
        fail_msg("taken: %s", text);
    }
    assert_int_equal(address.length, 0);
}

static void expect_bad_bytes(const char *hex)
{
    struct multiaddr address;
    struct span bytes = hex_decode(hex);
    if (multiaddr_from_bytes(&address, bytes) != STATUS_BAD_ADDRESS) {
        fail_msg("taken: %s", hex);
    }
    hex_free(bytes);
}

static void refuses_malformed_texts(void **state)
{
    (void)state;
    const char *const bad[] = {"", "/", "//", "ip4/1.2.3.4", "/ip4", "/ip4/", "/ip4/1.2.3",
            "/ip4/1.2.3.4.5", "/ip4/256.1.1.1", "/ip4/::1", "/ip4/1.2.3.4//tcp/1", "/ip6/1.2.3.4",
            "/ip6/:::", "/ip6/fe80::1%eth0", "/ip4/1.2.3.4/tcp", "/ip4/1.2.3.4/tcp/",
            "/ip4/1.2.3.4/tcp/65536", "/ip4/1.2.3.4/tcp/-1", "/ip4/1.2.3.4/tcp/1a",
            "/ip4/1.2.3.4/tcp/4294967297", "/ip4/1.2.3.4/tcp/000080", "/ip4/1.2.3.4/tcp/80/p2p",
            "/ip4/1.2.3.4/tcp/80/p2p/", "/ip4/1.2.3.4/tcp/80/p2p/QmYyQ", "/p2p/0x1234",
            "/dns4//tcp/1", "/dns4/a b/tcp/1", "/dns4/a\nb/tcp/1", "/dns4/a%b/tcp/1",
            "/ip6zone/0123456789abcdef/ip6/::1/tcp/1"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        expect_bad_text(bad[i]);
    }
    struct multiaddr address;
    assert_int_equal(
            multiaddr_parse(&address, span_of("/ip4/1.2.3.4\0/tcp/1", 19)), STATUS_BAD_ADDRESS);
}

static void names_components_that_it_does_not_know_as_unsupported(void **state)
{
    (void)state;
    struct multiaddr address;
    assert_int_equal(
            multiaddr_parse(&address, span_of_text("/ip4/1.2.3.4/tcp/1/http")), STATUS_UNSUPPORTED);
    assert_int_equal(multiaddr_parse(&address, span_of_text("/unix/tmp")), STATUS_UNSUPPORTED);
    struct span webtransport = hex_decode("0401020304 9102 0fa1 cd03 d103");
    assert_int_equal(multiaddr_from_bytes(&address, webtransport), STATUS_UNSUPPORTED);
    hex_free(webtransport);
}

static void refuses_malformed_bytes(void **state)
{
    (void)state;
    const char *const bad[] = {"", "04", "04010203", "0401020304 06", "0401020304 0600",
            "0401020304 060050 a503",        /* p2p without length */
            "0401020304 060050 a50322 1220", /* cut */
            "0401020304 060050 a50302 1200", /* no multihash of a key */
            "35", "3500", "3502 61", "3503 612f62", "3503 610062", "3503 610a62", /* dns */
            "35ffffffff0f", "35ffffffffffffffffff01", "35ffffffffffffffffffff01",
            "ffffffffffffffffffff01", "80", "2a00", "2a10 30313233343536373839616263646566"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        expect_bad_bytes(bad[i]);
    }
}

static void bounds_size_and_number_of_components(void **state)
{
    (void)state;
    struct multiaddr address;
    char text[1200] = "";
    for (int i = 0; i < MULTIADDR_MAX_COMPONENTS; i++) {
        strcat(text, "/ip6/1111:2222:3333:4444:5555:6666:7777:8888");
    }
    assert_int_equal(multiaddr_parse(&address, span_of_text(text)), STATUS_OK);
    expect_text(&address, text);
    strcat(text, "/ws");
    assert_int_equal(multiaddr_parse(&address, span_of_text(text)), STATUS_TOO_LARGE);
    snprintf(text, sizeof(text), "/dns4/%0253d/tcp/1", 0);
    assert_int_equal(multiaddr_parse(&address, span_of_text(text)), STATUS_OK);
    snprintf(text, sizeof(text), "/dns4/%0254d/tcp/1", 0);
    assert_int_equal(multiaddr_parse(&address, span_of_text(text)), STATUS_BAD_ADDRESS);
    snprintf(text, sizeof(text), "/dns4/%0253d/tcp/1/tls/sni/%0253d/ws", 0, 0);
    assert_int_equal(multiaddr_parse(&address, span_of_text(text)), STATUS_TOO_LARGE);
}

struct endpoint_example {
    const char *text;
    enum multiaddr_host host_kind;
    const char *host;
    const char *sni;
    uint16_t port;
    bool is_websocket;
    bool is_secure;
    bool has_peer;
};

static const struct endpoint_example endpoints[] = {
        {"/ip4/10.0.0.1/tcp/60000", MULTIADDR_HOST_IP4, "10.0.0.1", "", 60000, 0, 0, 0},
        {"/ip6/::1/tcp/1/p2p/" ED25519_PEER, MULTIADDR_HOST_IP6, "::1", "", 1, 0, 0, 1},
        {"/ip4/0.0.0.0/tcp/8000/ws", MULTIADDR_HOST_IP4, "0.0.0.0", "", 8000, 1, 0, 0},
        {"/ip4/1.2.3.4/tcp/443/wss", MULTIADDR_HOST_IP4, "1.2.3.4", "", 443, 1, 1, 0},
        {"/dns4/example.org/tcp/443/wss/p2p/" RSA_PEER, MULTIADDR_HOST_DNS4, "example.org",
                "example.org", 443, 1, 1, 1},
        {"/dns/example.org/tcp/80/ws", MULTIADDR_HOST_DNS, "example.org", "example.org", 80, 1, 0,
                0},
        {"/dns6/a.b/tcp/4001", MULTIADDR_HOST_DNS6, "a.b", "a.b", 4001, 0, 0, 0},
        {"/dns4/a.b/tcp/443/tls/sni/c.d/ws", MULTIADDR_HOST_DNS4, "a.b", "c.d", 443, 1, 1, 0},
        {"/ip4/1.2.3.4/tcp/443/tls/sni/c.d/ws", MULTIADDR_HOST_IP4, "1.2.3.4", "c.d", 443, 1, 1, 0},
        {"/ip6zone/eth0/ip6/fe80::1/tcp/9", MULTIADDR_HOST_IP6, "fe80::1", "", 9, 0, 0, 0},
};

static void says_where_to_connect_and_makes_the_address_of_it_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(endpoints); i++) {
        const struct endpoint_example *expected = &endpoints[i];
        struct multiaddr_endpoint endpoint;
        struct multiaddr again;
        struct multiaddr address = parse(expected->text);
        assert_int_equal(multiaddr_endpoint(&endpoint, &address), STATUS_OK);
        assert_int_equal(endpoint.host_kind, expected->host_kind);
        assert_string_equal(endpoint.host, expected->host);
        assert_string_equal(endpoint.sni, expected->sni);
        assert_int_equal(endpoint.port, expected->port);
        assert_int_equal(endpoint.is_websocket, expected->is_websocket);
        assert_int_equal(endpoint.is_secure, expected->is_secure);
        assert_int_equal(endpoint.has_peer, expected->has_peer);
        assert_int_equal(multiaddr_from_endpoint(&again, &endpoint), STATUS_OK);
        expect_text(&again, expected->text);
    }
}

static void says_which_addresses_no_transport_here_can_reach(void **state)
{
    (void)state;
    const char *const others[] = {"/ip4/1.2.3.4", "/tcp/1", "/ip4/1.2.3.4/udp/1/quic-v1",
            "/ip4/1.2.3.4/udp/1", "/dnsaddr/a.b", "/dnsaddr/a.b/tcp/1", ("/p2p/" RSA_PEER),
            "/ip4/1.2.3.4/tcp/1/tls", "/ip4/1.2.3.4/tcp/1/ws/tls", "/ip4/1.2.3.4/tcp/1/wss/ws",
            ("/ip4/1.2.3.4/tcp/1/p2p/" RSA_PEER "/p2p-circuit"),
            ("/ip4/1.2.3.4/tcp/1/p2p/" RSA_PEER "/p2p-circuit/p2p/" ED25519_PEER),
            "/ip6zone/eth0/ip4/1.2.3.4/tcp/1", "/ip4/1.2.3.4/tcp/1/tcp/1",
            "/ip4/1.2.3.4/tcp/1/sni/a.b"};
    for (size_t i = 0; i < COUNT(others); i++) {
        struct multiaddr_endpoint endpoint;
        struct multiaddr address = parse(others[i]);
        assert_int_equal(multiaddr_endpoint(&endpoint, &address), STATUS_UNSUPPORTED);
    }
}

static void refuses_an_endpoint_with_a_name_that_is_none(void **state)
{
    (void)state;
    struct multiaddr address;
    struct multiaddr_endpoint endpoint = {.host_kind = MULTIADDR_HOST_DNS4, .host = "a/b"};
    assert_int_equal(multiaddr_from_endpoint(&address, &endpoint), STATUS_BAD_ADDRESS);
    endpoint.host[0] = '\0';
    assert_int_equal(multiaddr_from_endpoint(&address, &endpoint), STATUS_BAD_ADDRESS);
    memcpy(endpoint.host, "a.b", 4);
    endpoint.is_secure = true;
    assert_int_equal(multiaddr_from_endpoint(&address, &endpoint), STATUS_UNSUPPORTED);
}

static void treats_tls_ws_and_wss_as_the_same(void **state)
{
    (void)state;
    struct multiaddr spelt_out = parse("/dns4/a.b/tcp/443/tls/ws/p2p/" RSA_PEER);
    struct multiaddr canonical = parse("/dns4/a.b/tcp/443/wss/p2p/" RSA_PEER);
    struct multiaddr with_name = parse("/dns4/a.b/tcp/443/tls/sni/c.d/ws");
    assert_true(multiaddr_equal(&spelt_out, &canonical));
    multiaddr_canonicalize(&spelt_out);
    expect_text(&spelt_out, "/dns4/a.b/tcp/443/wss/p2p/" RSA_PEER);
    multiaddr_canonicalize(&with_name);
    expect_text(&with_name, "/dns4/a.b/tcp/443/tls/sni/c.d/ws");
    assert_false(multiaddr_equal(&with_name, &canonical));
}

static void sets_replaces_and_finds_the_peer_at_the_end(void **state)
{
    (void)state;
    struct peer_id peer;
    struct peer_id found;
    struct multiaddr address = parse("/ip4/1.2.3.4/tcp/1");
    assert_false(multiaddr_peer(&found, &address));
    assert_int_equal(peer_id_parse(&peer, span_of_text(RSA_PEER)), STATUS_OK);
    assert_int_equal(multiaddr_set_peer(&address, &peer), STATUS_OK);
    expect_text(&address, "/ip4/1.2.3.4/tcp/1/p2p/" RSA_PEER);
    assert_true(multiaddr_peer(&found, &address));
    assert_true(peer_id_equal(&found, &peer));
    assert_int_equal(peer_id_parse(&peer, span_of_text(ED25519_PEER)), STATUS_OK);
    assert_int_equal(multiaddr_set_peer(&address, &peer), STATUS_OK);
    expect_text(&address, "/ip4/1.2.3.4/tcp/1/p2p/" ED25519_PEER);
}

static void takes_the_target_of_a_circuit_for_its_peer(void **state)
{
    (void)state;
    struct peer_id peer;
    struct peer_id found;
    struct multiaddr address =
            parse("/ip4/1.2.3.4/tcp/1/p2p/" RSA_PEER "/p2p-circuit/p2p/" ED25519_PEER);
    assert_int_equal(peer_id_parse(&peer, span_of_text(ED25519_PEER)), STATUS_OK);
    assert_true(multiaddr_peer(&found, &address));
    assert_true(peer_id_equal(&found, &peer));
}

static void keeps_an_address_that_has_no_room_for_a_peer(void **state)
{
    (void)state;
    char text[600];
    struct peer_id peer;
    snprintf(text, sizeof(text), "/dns4/%0253d/tcp/443/tls/sni/%0100d/ws", 0, 0);
    struct multiaddr address = parse(text);
    assert_int_equal(peer_id_parse(&peer, span_of_text(ED25519_PEER)), STATUS_OK);
    assert_int_equal(multiaddr_set_peer(&address, &peer), STATUS_TOO_LARGE);
    expect_text(&address, text);
}

static void prints_ipfs_as_p2p_and_drops_one_slash_at_the_end(void **state)
{
    (void)state;
    struct multiaddr address = parse("/ip4/1.2.3.4/tcp/1/ipfs/" RSA_PEER "/");
    expect_text(&address, "/ip4/1.2.3.4/tcp/1/p2p/" RSA_PEER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(agrees_with_js_multiaddr_on_text_and_bytes),
            cmocka_unit_test(refuses_malformed_texts),
            cmocka_unit_test(names_components_that_it_does_not_know_as_unsupported),
            cmocka_unit_test(refuses_malformed_bytes),
            cmocka_unit_test(bounds_size_and_number_of_components),
            cmocka_unit_test(says_where_to_connect_and_makes_the_address_of_it_again),
            cmocka_unit_test(says_which_addresses_no_transport_here_can_reach),
            cmocka_unit_test(refuses_an_endpoint_with_a_name_that_is_none),
            cmocka_unit_test(treats_tls_ws_and_wss_as_the_same),
            cmocka_unit_test(sets_replaces_and_finds_the_peer_at_the_end),
            cmocka_unit_test(takes_the_target_of_a_circuit_for_its_peer),
            cmocka_unit_test(keeps_an_address_that_has_no_room_for_a_peer),
            cmocka_unit_test(prints_ipfs_as_p2p_and_drops_one_slash_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
