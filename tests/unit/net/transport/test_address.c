/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "net/transport/address.h"

static struct sockaddr_storage make_address(const char *text, uint16_t port)
{
    struct sockaddr_storage out = {0};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
        memcpy(&out, &in, sizeof(in));
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
        memcpy(&out, &in6, sizeof(in6));
    }
    return out;
}

static uint64_t group(const char *text)
{
    struct sockaddr_storage address = make_address(text, 1);
    return address_group(&address);
}

static void ip4_addresses_are_counted_one_by_one_and_ip6_by_their_64(void **state)
{
    (void)state;
    assert_true(group("10.0.0.1") != group("10.0.0.2"));
    assert_true(group("10.0.0.1") == group("::ffff:10.0.0.1"));
    assert_true(group("2001:db8:1:2::1") == group("2001:db8:1:2:ffff:ffff:ffff:ffff"));
    assert_true(group("2001:db8:1:2::1") != group("2001:db8:1:3::1"));
    assert_true(group("::1") != 0);
    assert_true(group("0.0.0.0") != 0);
}

static void groups_are_named_as_operators_know_them(void **state)
{
    (void)state;
    char text[ADDRESS_TEXT_SIZE];
    struct sockaddr_storage address = make_address("2001:db8:1:2::77", 5);
    assert_string_equal(address_print_group(text, &address), "2001:db8:1:2::/64");
    address = make_address("::ffff:10.1.2.3", 5);
    assert_string_equal(address_print_group(text, &address), "10.1.2.3");
    memset(&address, 0, sizeof(address));
    assert_string_equal(address_print_group(text, &address), "unknown");
}

static void socket_addresses_and_endpoints_are_two_forms_of_one(void **state)
{
    (void)state;
    static const char *const texts[] = {"10.0.0.1", "2001:db8::5"};
    for (size_t i = 0; i < 2; i++) {
        struct sockaddr_storage address = make_address(texts[i], 60000);
        struct sockaddr_storage again;
        struct multiaddr_endpoint endpoint = {.is_websocket = true};
        address_to_endpoint(&endpoint, &address);
        assert_string_equal(endpoint.host, texts[i]);
        assert_int_equal(endpoint.port, 60000);
        assert_true(endpoint.is_websocket);
        assert_int_equal(address_from_endpoint(&again, &endpoint), STATUS_OK);
        assert_memory_equal(&address, &again, address_length(&address));
    }
    struct multiaddr_endpoint name = {.host_kind = MULTIADDR_HOST_DNS};
    struct sockaddr_storage none;
    assert_int_equal(address_from_endpoint(&none, &name), STATUS_BAD_ADDRESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(ip4_addresses_are_counted_one_by_one_and_ip6_by_their_64),
            cmocka_unit_test(groups_are_named_as_operators_know_them),
            cmocka_unit_test(socket_addresses_and_endpoints_are_two_forms_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
