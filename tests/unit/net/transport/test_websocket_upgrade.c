/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/transport/websocket_upgrade.h"

/* The request of RFC 6455, section 1.3, and the answer that it names. */
static const char sample_request[] = "GET /chat HTTP/1.1\r\n"
                                     "Host: server.example.com\r\n"
                                     "Upgrade: websocket\r\n"
                                     "Connection: keep-alive, Upgrade\r\n"
                                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                                     "Origin: http://example.com\r\n"
                                     "Sec-WebSocket-Version: 13\r\n\r\n";
static const char sample_accept[] = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";

static struct websocket_upgrade *create_server(void)
{
    struct websocket_upgrade *server;
    assert_int_equal(websocket_upgrade_create_server(&server), STATUS_OK);
    return server;
}

static bool output_contains(const struct websocket_upgrade *upgrade, const char *text)
{
    struct span output = websocket_upgrade_output(upgrade);
    return output.length > 0 && memmem(output.bytes, output.length, text, strlen(text)) != NULL;
}

static void the_server_answers_the_sample_of_the_specification_in_any_cut(void **state)
{
    (void)state;
    for (size_t cut = 1; cut < sizeof(sample_request) - 1; cut++) {
        struct websocket_upgrade *server = create_server();
        struct span request = span_of_text(sample_request);
        size_t consumed = 0;
        assert_int_equal(websocket_upgrade_receive(server, span_of(request.bytes, cut), &consumed),
                STATUS_OK);
        assert_int_equal(consumed, cut);
        assert_false(websocket_upgrade_is_done(server));
        assert_int_equal(websocket_upgrade_receive(server,
                                 span_of(request.bytes + cut, request.length - cut), &consumed),
                STATUS_OK);
        assert_int_equal(consumed, request.length - cut);
        assert_true(websocket_upgrade_is_done(server));
        assert_true(output_contains(server, "HTTP/1.1 101 "));
        assert_true(output_contains(server, sample_accept));
        websocket_upgrade_destroy(&server);
    }
}

static void bytes_behind_the_request_are_not_taken(void **state)
{
    (void)state;
    struct websocket_upgrade *server = create_server();
    static const char more[] = "\x82\x01GET";
    uint8_t bytes[sizeof(sample_request) + sizeof(more)];
    size_t request_length = strlen(sample_request);
    size_t consumed = 0;
    memcpy(bytes, sample_request, sizeof(sample_request));
    memcpy(bytes + request_length, more, sizeof(more));
    assert_int_equal(
            websocket_upgrade_receive(server, span_of(bytes, sizeof(bytes)), &consumed), STATUS_OK);
    assert_int_equal(consumed, sizeof(sample_request) - 1);
    websocket_upgrade_destroy(&server);
}

static void expect_refusal(const char *request, const char *answer)
{
    struct websocket_upgrade *server = create_server();
    size_t consumed = 0;
    assert_int_equal(websocket_upgrade_receive(server, span_of_text(request), &consumed),
            STATUS_BAD_HANDSHAKE);
    if (answer != NULL) {
        assert_true(output_contains(server, answer));
    }
    websocket_upgrade_destroy(&server);
}

static void requests_that_are_no_upgrade_are_refused(void **state)
{
    (void)state;
    expect_refusal("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 400 ");
    expect_refusal("POST / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                   "Sec-WebSocket-Version: 13\r\nContent-Length: 5\r\n\r\n",
            "HTTP/1.1 400 ");
    expect_refusal("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                   "Sec-WebSocket-Version: 8\r\n\r\n",
            "HTTP/1.1 426 ");
    expect_refusal("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                   "Sec-WebSocket-Key: short\r\nSec-WebSocket-Version: 13\r\n\r\n",
            "HTTP/1.1 400 ");
    expect_refusal("\x13/multistream/1.0.0\n", NULL);
}

static void a_request_without_end_is_refused(void **state)
{
    (void)state;
    struct websocket_upgrade *server = create_server();
    static const char line[] = "X-Padding: 0123456789\r\n";
    size_t consumed = 0;
    enum status status =
            websocket_upgrade_receive(server, span_of_text("GET / HTTP/1.1\r\n"), &consumed);
    size_t taken = consumed;
    while (status == STATUS_OK) {
        status = websocket_upgrade_receive(server, span_of_text(line), &consumed);
        taken += consumed;
        assert_true(taken <= WEBSOCKET_UPGRADE_BYTES_MAX);
    }
    assert_int_equal(status, STATUS_TOO_LARGE);
    websocket_upgrade_destroy(&server);
}

static void a_client_and_a_server_agree(void **state)
{
    (void)state;
    struct websocket_upgrade *client;
    struct websocket_upgrade *server = create_server();
    size_t consumed = 0;
    assert_int_equal(websocket_upgrade_create_client(&client, "localhost:80"), STATUS_OK);
    assert_true(output_contains(client, "Host: localhost:80\r\n"));
    assert_int_equal(websocket_upgrade_receive(server, websocket_upgrade_output(client), &consumed),
            STATUS_OK);
    websocket_upgrade_output_taken(client);
    assert_int_equal(websocket_upgrade_output(client).length, 0);
    assert_int_equal(websocket_upgrade_receive(client, websocket_upgrade_output(server), &consumed),
            STATUS_OK);
    assert_true(websocket_upgrade_is_done(client));
    websocket_upgrade_destroy(&client);
    websocket_upgrade_destroy(&server);
}

static void a_client_refuses_another_answer(void **state)
{
    (void)state;
    static const char wrong_status[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    static const char wrong_accept[] =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    static const char no_accept[] =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    static const char *const answers[] = {wrong_status, wrong_accept, no_accept};
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct websocket_upgrade *client;
        size_t consumed = 0;
        assert_int_equal(websocket_upgrade_create_client(&client, "a"), STATUS_OK);
        assert_int_equal(websocket_upgrade_receive(client, span_of_text(answers[i]), &consumed),
                STATUS_BAD_HANDSHAKE);
        websocket_upgrade_destroy(&client);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_server_answers_the_sample_of_the_specification_in_any_cut),
            cmocka_unit_test(bytes_behind_the_request_are_not_taken),
            cmocka_unit_test(requests_that_are_no_upgrade_are_refused),
            cmocka_unit_test(a_request_without_end_is_refused),
            cmocka_unit_test(a_client_and_a_server_agree),
            cmocka_unit_test(a_client_refuses_another_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
