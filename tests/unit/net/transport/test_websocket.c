/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "net/transport/websocket.h"

struct side {
    struct websocket *websocket;
    uint8_t received[4096];
    size_t received_length;
    uint8_t sent[4096];
    size_t sent_length;
};

static void on_received(void *context, struct span payload)
{
    struct side *side = context;
    assert_true(side->received_length + payload.length <= sizeof(side->received));
    memcpy(side->received + side->received_length, payload.bytes, payload.length);
    side->received_length += payload.length;
}

static void on_send(void *context, struct span bytes)
{
    struct side *side = context;
    assert_true(side->sent_length + bytes.length <= sizeof(side->sent));
    memcpy(side->sent + side->sent_length, bytes.bytes, bytes.length);
    side->sent_length += bytes.length;
}

static void init_side(struct side *side, bool is_server)
{
    static const struct websocket_events events = {.received = on_received, .send = on_send};
    memset(side, 0, sizeof(*side));
    assert_int_equal(websocket_create(&side->websocket, is_server, &events, side), STATUS_OK);
}

static enum status feed(struct side *side, const void *bytes, size_t length)
{
    return websocket_receive(side->websocket, span_of(bytes, length));
}

/* The masked frame of RFC 6455, section 5.7 ("Hello"), with the opcode of a binary message. */
static const uint8_t masked_hello[] = {
        0x82, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58};

static void the_sample_of_the_specification_is_unmasked_in_any_cut(void **state)
{
    (void)state;
    for (size_t cut = 0; cut <= sizeof(masked_hello); cut++) {
        struct side server;
        init_side(&server, true);
        assert_int_equal(feed(&server, masked_hello, cut), STATUS_OK);
        assert_int_equal(feed(&server, masked_hello + cut, sizeof(masked_hello) - cut), STATUS_OK);
        assert_int_equal(server.received_length, 5);
        assert_memory_equal(server.received, "Hello", 5);
        websocket_destroy(&server.websocket);
    }
}

static void a_server_sends_what_the_specification_shows(void **state)
{
    (void)state;
    static const uint8_t expected[] = {0x82, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f};
    struct side server;
    init_side(&server, true);
    assert_int_equal(websocket_write(server.websocket, span_of_text("Hello")), STATUS_OK);
    assert_int_equal(server.sent_length, sizeof(expected));
    assert_memory_equal(server.sent, expected, sizeof(expected));
    websocket_destroy(&server.websocket);
}

static void what_a_client_sends_is_masked_and_understood(void **state)
{
    (void)state;
    struct side client;
    struct side server;
    init_side(&client, false);
    init_side(&server, true);
    assert_int_equal(websocket_write(client.websocket, span_of_text("message one")), STATUS_OK);
    assert_true((client.sent[1] & 0x80) != 0);
    assert_int_equal(feed(&server, client.sent, client.sent_length), STATUS_OK);
    assert_memory_equal(server.received, "message one", 11);
    websocket_destroy(&client.websocket);
    websocket_destroy(&server.websocket);
}

static void a_ping_is_answered_and_fragments_are_joined(void **state)
{
    (void)state;
    /* Ping "Hello" (RFC 6455, 5.7), then a message in two fragments; all masked with zeros. */
    static const uint8_t bytes[] = {0x89, 0x85, 0, 0, 0, 0, 'H', 'e', 'l', 'l', 'o', 0x02, 0x82, 0,
            0, 0, 0, 'a', 'b', 0x80, 0x81, 0, 0, 0, 0, 'c'};
    static const uint8_t pong[] = {0x8a, 0x05, 'H', 'e', 'l', 'l', 'o'};
    struct side server;
    init_side(&server, true);
    assert_int_equal(feed(&server, bytes, sizeof(bytes)), STATUS_OK);
    assert_int_equal(server.received_length, 3);
    assert_memory_equal(server.received, "abc", 3);
    assert_int_equal(websocket_queued(server.websocket), 1);
    assert_int_equal(websocket_flush(server.websocket), STATUS_OK);
    assert_memory_equal(server.sent, pong, sizeof(pong));
    websocket_destroy(&server.websocket);
}

static void expect_refusal(const uint8_t *bytes, size_t length, enum status expected)
{
    struct side server;
    init_side(&server, true);
    assert_int_equal(feed(&server, bytes, length), expected);
    assert_int_equal(server.received_length, 0);
    websocket_destroy(&server.websocket);
}

static void frames_against_the_protocol_are_refused(void **state)
{
    (void)state;
    static const uint8_t unmasked[] = {0x82, 0x01, 'a'};
    static const uint8_t text[] = {0x81, 0x81, 0, 0, 0, 0, 'a'};
    static const uint8_t reserved_bit[] = {0xc2, 0x81, 0, 0, 0, 0, 'a'};
    static const uint8_t unknown_opcode[] = {0x83, 0x81, 0, 0, 0, 0, 'a'};
    static const uint8_t continuation[] = {0x80, 0x81, 0, 0, 0, 0, 'a'};
    static const uint8_t long_ping[] = {0x89, 0xfe, 0, 126, 0, 0, 0, 0};
    static const uint8_t huge[] = {0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    static const uint8_t close_frame[] = {0x88, 0x80, 0, 0, 0, 0};
    expect_refusal(unmasked, sizeof(unmasked), STATUS_BAD_FRAME);
    expect_refusal(text, sizeof(text), STATUS_BAD_FRAME);
    expect_refusal(reserved_bit, sizeof(reserved_bit), STATUS_BAD_FRAME);
    expect_refusal(unknown_opcode, sizeof(unknown_opcode), STATUS_BAD_FRAME);
    expect_refusal(continuation, sizeof(continuation), STATUS_BAD_FRAME);
    expect_refusal(long_ping, sizeof(long_ping), STATUS_BAD_FRAME);
    expect_refusal(huge, sizeof(huge), STATUS_BAD_FRAME);
    expect_refusal(close_frame, sizeof(close_frame), STATUS_CLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_sample_of_the_specification_is_unmasked_in_any_cut),
            cmocka_unit_test(a_server_sends_what_the_specification_shows),
            cmocka_unit_test(what_a_client_sends_is_masked_and_understood),
            cmocka_unit_test(a_ping_is_answered_and_fragments_are_joined),
            cmocka_unit_test(frames_against_the_protocol_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
