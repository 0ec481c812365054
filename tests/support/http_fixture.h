/* SPDX-License-Identifier: MIT */
#pragma once

/* An HTTP server on a thread of its own, and a client of bare sockets: what is sent is the test's. */

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "admin/http_server.h"
#include "tests/support/cmocka.h"

enum {
    HTTP_FIXTURE_PATIENCE_S = 30,
    HTTP_FIXTURE_TURN_NS = 50000000
};

struct http_fixture {
    struct http_server *server;
    pthread_t thread;
    atomic_bool is_over;
};

static inline void *http_fixture_run(void *context)
{
    struct http_fixture *fixture = context;
    while (!atomic_load(&fixture->is_over) || http_server_held(fixture->server) > 0) {
        if (http_server_turn(fixture->server) == 0) {
            http_server_wait(fixture->server, HTTP_FIXTURE_TURN_NS);
        }
    }
    return NULL;
}

static inline void http_fixture_start(struct http_fixture *fixture,
        const struct http_server_options *options, const struct http_route *routes, size_t count,
        void *context)
{
    assert_int_equal(http_server_create(&fixture->server, options), STATUS_OK);
    http_server_add_routes(fixture->server, routes, count, context);
    atomic_init(&fixture->is_over, false);
    assert_int_equal(pthread_create(&fixture->thread, NULL, http_fixture_run, fixture), 0);
}

static inline void http_fixture_stop(struct http_fixture *fixture)
{
    http_server_close(fixture->server);
    atomic_store(&fixture->is_over, true);
    http_server_wake(fixture->server);
    assert_int_equal(pthread_join(fixture->thread, NULL), 0);
    http_server_destroy(&fixture->server);
}

static inline int http_fixture_connect(const struct http_fixture *fixture)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
            .sin_port = htons(http_server_port(fixture->server)),
            .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    struct timeval patience = {.tv_sec = HTTP_FIXTURE_PATIENCE_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static inline void http_fixture_send(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Reads until the text is there or the peer closes; what came is NUL-terminated. */
static inline bool http_fixture_read_until(int fd, char *out, size_t size, const char *text)
{
    size_t length = strlen(out);
    while (text == NULL || strstr(out, text) == NULL) {
        ssize_t got = recv(fd, out + length, size - 1 - length, 0);
        if (got <= 0) {
            return false;
        }
        length += (size_t)got;
        out[length] = '\0';
    }
    return true;
}

/* One request on a connection of its own: all that was answered. */
static inline const char *http_fixture_ask(
        const struct http_fixture *fixture, const char *request, char *out, size_t size)
{
    int fd = http_fixture_connect(fixture);
    out[0] = '\0';
    http_fixture_send(fd, request);
    (void)http_fixture_read_until(fd, out, size, NULL);
    close(fd);
    return out;
}

static inline int http_fixture_status(const char *answer)
{
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? atoi(answer + 9) : 0;
}

static inline const char *http_fixture_body(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n");
    return end != NULL ? end + 4 : "";
}
