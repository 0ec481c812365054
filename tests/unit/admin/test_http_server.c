/* SPDX-License-Identifier: MIT */
#include "admin/http_server.h"

#include <stdio.h>

#include "admin/http_stream.h"
#include "tests/support/http_fixture.h"

enum {
    BODY_MAX = 1000,
    ANSWER_SIZE = 65536,
    LARGE_ANSWER = 32 * 1024 * 1024
};

struct world {
    struct http_fixture http;
    struct http_stream *_Atomic stream;
    pthread_t helper;
    struct http_request *held;
    char answer[ANSWER_SIZE];
};

static void echo(void *context, struct http_request *request)
{
    struct span body = http_request_body(request);
    const char *parameter = http_request_parameter(request, "q");
    (void)context;
    http_respond_text(request, HTTP_OK, "[%s][%s][%.*s]", http_request_segment(request, 1),
            parameter != NULL ? parameter : "", (int)body.length, (const char *)body.bytes);
}

static void answer_held(void *context, struct http_request *request)
{
    (void)context;
    http_respond_text(request, HTTP_OK, "later %s", http_request_segment(request, 1));
}

static void *resume(void *context)
{
    struct world *world = context;
    http_request_resume(world->held, answer_held, NULL);
    return NULL;
}

static void hold(void *context, struct http_request *request)
{
    struct world *world = context;
    world->held = request;
    http_request_hold(request);
    assert_int_equal(pthread_create(&world->helper, NULL, resume, world), 0);
}

static void forget(void *context, struct http_request *request)
{
    (void)context;
    (void)request;
}

/* An answer that nobody's socket buffers hold. */
static void give_large(void *context, struct http_request *request)
{
    (void)context;
    char *body = calloc(1, LARGE_ANSWER);
    assert_non_null(body);
    if (http_request_try_charge(request, LARGE_ANSWER)) {
        http_respond_owned(request, HTTP_OK, "text/plain", body, LARGE_ANSWER);
    } else {
        free(body);
        http_respond_text(request, HTTP_UNAVAILABLE, "later");
    }
}

static void open_stream(void *context, struct http_request *request)
{
    struct world *world = context;
    struct http_stream *stream;
    struct http_stream_options options = {.content_type = "text/event-stream",
            .queue_bytes_max = 64,
            .keep_alive = ": \n\n",
            .keep_alive_ms = 20};
    if (http_stream_open(&stream, request, &options) == STATUS_OK) {
        atomic_store(&world->stream, stream);
    }
}

static const struct http_route routes[] = {
        {HTTP_GET, "/echo/{text}", echo},
        {HTTP_POST, "/echo/{text}", echo},
        {HTTP_GET, "/held/{text}", hold},
        {HTTP_GET, "/forget", forget},
        {HTTP_GET, "/large", give_large},
        {HTTP_GET, "/stream", open_stream},
};

static void start_with(struct world *world, const char *const *origins, size_t count)
{
    struct http_server_options options = {.address = "127.0.0.1",
            .connections_max = 8,
            .body_bytes_max = BODY_MAX,
            .idle_timeout_s = 20,
            .answer_bytes_max = LARGE_ANSWER + LARGE_ANSWER / 2,
            .allowed_origins = origins,
            .allowed_origin_count = count};
    atomic_init(&world->stream, NULL);
    http_fixture_start(&world->http, &options, routes, sizeof(routes) / sizeof(routes[0]), world);
}

static int status_of(struct world *world, const char *request)
{
    return http_fixture_status(
            http_fixture_ask(&world->http, request, world->answer, sizeof(world->answer)));
}

static void answers_with_what_was_asked(void **state)
{
    struct world *world = *state;
    start_with(world, NULL, 0);
    assert_int_equal(
            status_of(world,
                    "GET /echo/a%2Fb?q=1%202 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
            200);
    assert_string_equal(http_fixture_body(world->answer), "[a/b][1 2][]");
    assert_int_equal(status_of(world, "POST /echo/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                                      "Content-Length: 4\r\n\r\nbody"),
            200);
    assert_string_equal(http_fixture_body(world->answer), "[x][][body]");
    assert_int_equal(
            status_of(world, "POST /echo/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                             "Transfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n"),
            200);
    assert_string_equal(http_fixture_body(world->answer), "[x][][body]");
    http_fixture_stop(&world->http);
}

static void says_what_is_wrong_with_path_and_method(void **state)
{
    struct world *world = *state;
    start_with(world, NULL, 0);
    assert_int_equal(
            status_of(world, "GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 404);
    assert_int_equal(
            status_of(world, "PUT /echo/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 405);
    assert_non_null(strstr(world->answer, "Allow: GET, HEAD, POST\r\n"));
    assert_int_equal(
            status_of(world, "BREW /echo/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 405);
    assert_int_equal(
            status_of(world, "OPTIONS /echo/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
            200);
    assert_int_equal(
            status_of(world, "GET /echo/%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
            400);
    assert_int_equal(
            status_of(world, "GET /forget HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 500);
    http_fixture_stop(&world->http);
}

static void bodies_are_bounded_and_their_senders_told(void **state)
{
    struct world *world = *state;
    char request[4 * BODY_MAX];
    start_with(world, NULL, 0);
    int length = snprintf(request, sizeof(request),
            "POST /echo/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n",
            BODY_MAX + 1);
    memset(request + length, 'b', BODY_MAX + 1);
    request[length + BODY_MAX + 1] = '\0';
    assert_int_equal(status_of(world, request), 413);
    length = snprintf(request, sizeof(request),
            "POST /echo/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: "
            "chunked\r\n\r\n%x\r\n",
            BODY_MAX + 1);
    memset(request + length, 'b', BODY_MAX + 1);
    strcpy(request + length + BODY_MAX + 1, "\r\n0\r\n\r\n");
    assert_int_equal(status_of(world, request), 413);
    assert_int_equal(
            status_of(world, "POST /echo/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                             "Expect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n"),
            413);
    length = snprintf(request, sizeof(request),
            "POST /echo/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n",
            BODY_MAX);
    memset(request + length, 'b', BODY_MAX);
    request[length + BODY_MAX] = '\0';
    assert_int_equal(status_of(world, request), 200);
    http_fixture_stop(&world->http);
}

static void answers_later_from_another_thread(void **state)
{
    struct world *world = *state;
    start_with(world, NULL, 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(
                status_of(world, "GET /held/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                200);
        assert_string_equal(http_fixture_body(world->answer), "later x");
        assert_int_equal(pthread_join(world->helper, NULL), 0);
    }
    assert_int_equal(http_server_held(world->http.server), 0);
    http_fixture_stop(&world->http);
}

static void only_pages_of_allowed_origins_may_read(void **state)
{
    static const char *const named[] = {"*.example"};
    static const char *const all[] = {"*"};
    struct world *world = *state;
    start_with(world, named, 1);
    assert_int_equal(status_of(world, "GET /echo/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                                      "Origin: http://a.example\r\n\r\n"),
            200);
    assert_non_null(strstr(world->answer, "Access-Control-Allow-Origin: http://a.example\r\n"));
    assert_non_null(strstr(world->answer, "Vary: Origin\r\n"));
    assert_int_equal(status_of(world, "GET /echo/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                                      "Origin: http://b.org\r\n\r\n"),
            403);
    assert_int_equal(status_of(world, "GET /echo/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                                      "Origin: http://a.example\r\nOrigin: http://b.org\r\n\r\n"),
            400);
    assert_int_equal(
            status_of(world, "GET /echo/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 200);
    http_fixture_stop(&world->http);
    start_with(world, all, 1);
    assert_int_equal(status_of(world, "OPTIONS /echo/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                                      "Origin: http://b.org\r\n\r\n"),
            200);
    assert_non_null(strstr(world->answer, "Access-Control-Allow-Origin: *\r\n"));
    assert_non_null(strstr(world->answer, "Access-Control-Allow-Methods: GET"));
    http_fixture_stop(&world->http);
}

static struct http_stream *opened(struct world *world)
{
    struct http_stream *stream;
    while ((stream = atomic_exchange(&world->stream, NULL)) == NULL) {
        sched_yield();
    }
    return stream;
}

static void a_stream_sends_what_is_pushed_until_it_ends(void **state)
{
    struct world *world = *state;
    start_with(world, NULL, 0);
    int fd = http_fixture_connect(&world->http);
    world->answer[0] = '\0';
    http_fixture_send(fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    struct http_stream *stream = opened(world);
    assert_true(http_stream_is_open(stream));
    assert_true(http_stream_try_push(stream, "data: one\n\n", 11));
    http_stream_wake(stream);
    assert_true(http_fixture_read_until(fd, world->answer, ANSWER_SIZE, "data: one\n\n"));
    assert_true(http_fixture_read_until(fd, world->answer, ANSWER_SIZE, ": \n\n"));
    while (!http_stream_try_push(stream, "data: two\n\n", 11)) {
        sched_yield();
    }
    http_stream_close(&stream);
    assert_true(http_fixture_read_until(fd, world->answer, ANSWER_SIZE, "data: two\n\n"));
    assert_true(http_fixture_read_until(fd, world->answer, ANSWER_SIZE, "0\r\n\r\n"));
    close(fd);
    http_fixture_stop(&world->http);
}

static void a_stream_queue_is_bounded(void **state)
{
    struct world *world = *state;
    char block[65] = {0};
    start_with(world, NULL, 0);
    int fd = http_fixture_connect(&world->http);
    http_fixture_send(fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    struct http_stream *stream = opened(world);
    assert_false(http_stream_try_push(stream, block, 65));
    size_t taken = 0;
    while (http_stream_try_push(
            stream, block, 32)) { /* not woken: nothing is sent but keep-alive */
        taken++;
        assert_true(taken < 1000);
    }
    assert_true(taken >= 2);
    close(fd);
    while (http_stream_is_open(stream)) { /* the keep-alive finds out */
        http_stream_wake(stream);
        (void)!http_stream_try_push(stream, "x", 1);
        sched_yield();
    }
    assert_false(http_stream_try_push(stream, "x", 1));
    http_stream_close(&stream);
    http_fixture_stop(&world->http);
}

static void the_end_of_the_server_ends_its_streams(void **state)
{
    struct world *world = *state;
    start_with(world, NULL, 0);
    int fd = http_fixture_connect(&world->http);
    world->answer[0] = '\0';
    http_fixture_send(fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    struct http_stream *stream = opened(world);
    http_server_close(world->http.server);
    assert_true(http_fixture_read_until(fd, world->answer, ANSWER_SIZE, "0\r\n\r\n"));
    http_stream_close(&stream);
    close(fd);
    http_fixture_stop(&world->http);
}

/* Two servers that shared a port would each get some of the clients. */
static void a_port_that_is_taken_is_refused(void **state)
{
    struct world *world = *state;
    struct http_server *second;
    start_with(world, NULL, 0);
    struct http_server_options options = {.address = "127.0.0.1",
            .port = http_server_port(world->http.server),
            .connections_max = 1,
            .body_bytes_max = 1};
    assert_int_equal(http_server_create(&second, &options), STATUS_SYSTEM);
    http_fixture_stop(&world->http);
}

static void head_is_get_without_a_body(void **state)
{
    struct world *world = *state;
    start_with(world, NULL, 0);
    assert_int_equal(
            status_of(world, "HEAD /echo/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 200);
    assert_string_equal(http_fixture_body(world->answer), "");
    http_fixture_stop(&world->http);
}

/* What is longer than a connection's memory is refused, what fits is answered. */
static void long_targets_are_answered_or_refused(void **state)
{
    enum {
        FITS = 30 * 1000,
        TOO_LONG = 200 * 1000
    };
    struct world *world = *state;
    char *request = malloc(TOO_LONG + 128);
    static const int lengths[] = {FITS, TOO_LONG};
    assert_non_null(request);
    start_with(world, NULL, 0);
    for (size_t i = 0; i < 2; i++) {
        int length = sprintf(request, "GET /echo/x?q=");
        memset(request + length, 'q', (size_t)lengths[i]);
        strcpy(request + length + lengths[i], " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        int status = status_of(world, request);
        assert_true(lengths[i] == FITS ? status == 200 : status == 414 || status == 431);
    }
    free(request);
    http_fixture_stop(&world->http);
}

static void answers_that_are_not_read_leave_no_room_for_others(void **state)
{
    static const char request[] = "GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    struct world *world = *state;
    int status;
    start_with(world, NULL, 0);
    int fd = http_fixture_connect(&world->http);
    http_fixture_send(fd, request);
    memset(world->answer, 0, ANSWER_SIZE);
    assert_int_equal(recv(fd, world->answer, 12, MSG_WAITALL), 12); /* it is being sent */
    assert_int_equal(http_fixture_status(world->answer), 200);
    assert_int_equal(status_of(world, request), 503);
    close(fd);
    do { /* the server sees it a little later */
        status = status_of(world, request);
    } while (status == 503);
    assert_int_equal(status, 200);
    http_fixture_stop(&world->http);
}

static void a_length_that_is_given_twice_ends_the_connection(void **state)
{
    static const char *const lengths[] = {"Content-Length: 2\r\nContent-Length: 3\r\n",
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"};
    struct world *world = *state;
    char request[256];
    start_with(world, NULL, 0);
    for (size_t i = 0; i < 2; i++) {
        snprintf(request, sizeof(request),
                "POST /echo/x HTTP/1.1\r\nHost: x\r\n%s\r\n2\r\nhi\r\n0\r\n\r\n"
                "GET /echo/smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
                lengths[i]);
        assert_int_equal(status_of(world, request), 400); /* all that comes until the end */
        assert_null(strstr(world->answer, "smuggled"));
    }
    http_fixture_stop(&world->http);
}

static void pipelined_requests_are_answered_in_turn(void **state)
{
    struct world *world = *state;
    start_with(world, NULL, 0);
    int fd = http_fixture_connect(&world->http);
    http_fixture_send(fd, "GET /held/one HTTP/1.1\r\nHost: x\r\n\r\n"
                          "POST /echo/two HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nb"
                          "GET /echo/three HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_true(http_fixture_read_until(fd, world->answer, ANSWER_SIZE, "[three][][]"));
    char *one = strstr(world->answer, "one");
    char *two = strstr(world->answer, "[two][][b]");
    assert_true(one != NULL && two != NULL && one < two);
    close(fd);
    http_fixture_stop(&world->http);
    assert_int_equal(pthread_join(world->helper, NULL), 0);
}

static void an_address_that_is_none_is_refused(void **state)
{
    struct http_server *server;
    struct http_server_options options = {
            .address = "localhost", .connections_max = 1, .body_bytes_max = 1};
    (void)state;
    assert_int_equal(http_server_create(&server, &options), STATUS_BAD_ADDRESS);
}

static int make_world(void **state)
{
    *state = calloc(1, sizeof(struct world));
    return *state != NULL ? 0 : -1;
}

static int free_world(void **state)
{
    free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(answers_with_what_was_asked),
            cmocka_unit_test(says_what_is_wrong_with_path_and_method),
            cmocka_unit_test(bodies_are_bounded_and_their_senders_told),
            cmocka_unit_test(answers_later_from_another_thread),
            cmocka_unit_test(only_pages_of_allowed_origins_may_read),
            cmocka_unit_test(a_stream_sends_what_is_pushed_until_it_ends),
            cmocka_unit_test(a_stream_queue_is_bounded),
            cmocka_unit_test(the_end_of_the_server_ends_its_streams),
            cmocka_unit_test(a_port_that_is_taken_is_refused),
            cmocka_unit_test(head_is_get_without_a_body),
            cmocka_unit_test(long_targets_are_answered_or_refused),
            cmocka_unit_test(answers_that_are_not_read_leave_no_room_for_others),
            cmocka_unit_test(a_length_that_is_given_twice_ends_the_connection),
            cmocka_unit_test(pipelined_requests_are_answered_in_turn),
            cmocka_unit_test(an_address_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, make_world, free_world);
}
