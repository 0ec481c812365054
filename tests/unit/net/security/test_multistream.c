/* SPDX-License-Identifier: MIT */
#include "net/security/multistream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define HEADER "\x13/multistream/1.0.0\n"
#define NOISE  "\x07/noise\n"
#define TLS    "\x0b/tls/1.0.0\n"
#define NA     "\x03na\n"
#define LS     "\x03ls\n"

static const char *const offered[] = {"/noise", "/ipfs/id/1.0.0", NULL};

static const char *find_offered(void *context, struct span name)
{
    (void)context;
    for (size_t i = 0; offered[i] != NULL; i++) {
        if (span_equal(span_of_text(offered[i]), name)) {
            return offered[i];
        }
    }
    return NULL;
}

static const char *offered_at(void *context, size_t i)
{
    (void)context;
    return offered[i];
}

static struct multistream *create_responder(void)
{
    struct multistream *negotiation = NULL;
    const struct multistream_offer offer = {.find = find_offered, .at = offered_at};
    assert_int_equal(multistream_create_responder(&negotiation, &offer), STATUS_OK);
    return negotiation;
}

static struct multistream *create_initiator(const char *const *protocols, size_t count)
{
    struct multistream *negotiation = NULL;
    assert_int_equal(multistream_create_initiator(&negotiation, protocols, count), STATUS_OK);
    return negotiation;
}

static enum status receive(struct multistream *negotiation, struct span input)
{
    size_t consumed = 0;
    return multistream_receive(negotiation, input, &consumed);
}

static enum status receive_text(struct multistream *negotiation, const char *text)
{
    return receive(negotiation, span_of_text(text));
}

/* Takes all that waits to be sent and compares it. */
static void expect_output(struct multistream *negotiation, struct span expected)
{
    struct span output = multistream_output(negotiation);
    assert_int_equal(output.length, expected.length);
    assert_true(span_equal(output, expected));
    multistream_output_taken(negotiation, output.length);
    assert_int_equal(multistream_output(negotiation).length, 0);
}

static void an_initiator_sends_header_and_first_proposal_in_one_write(void **state)
{
    (void)state;
    const char *const protocols[] = {"/noise"};
    struct multistream *negotiation = create_initiator(protocols, 1);
    expect_output(negotiation, span_of_text(HEADER NOISE));
    assert_int_equal(receive_text(negotiation, HEADER), STATUS_OK);
    assert_null(multistream_protocol(negotiation));
    assert_int_equal(receive_text(negotiation, NOISE), STATUS_OK);
    assert_ptr_equal(multistream_protocol(negotiation), protocols[0]);
    expect_output(negotiation, span_of(NULL, 0));
    multistream_destroy(&negotiation);
}

static void an_initiator_goes_on_to_its_next_proposal_when_refused(void **state)
{
    (void)state;
    const char *const protocols[] = {"/tls/1.0.0", "/noise", "/plain"};
    struct multistream *negotiation = create_initiator(protocols, 3);
    expect_output(negotiation, span_of_text(HEADER TLS));
    assert_int_equal(receive_text(negotiation, HEADER NA), STATUS_OK);
    expect_output(negotiation, span_of_text(NOISE));
    assert_int_equal(receive_text(negotiation, NOISE), STATUS_OK);
    assert_ptr_equal(multistream_protocol(negotiation), protocols[1]);
    multistream_destroy(&negotiation);
}

static void an_initiator_gives_up_when_all_are_refused(void **state)
{
    (void)state;
    const char *const protocols[] = {"/tls/1.0.0", "/noise"};
    struct multistream *negotiation = create_initiator(protocols, 2);
    assert_int_equal(receive_text(negotiation, HEADER NA), STATUS_OK);
    assert_int_equal(receive_text(negotiation, NA), STATUS_NO_COMMON_PROTOCOL);
    assert_int_equal(receive_text(negotiation, NOISE), STATUS_NO_COMMON_PROTOCOL);
    assert_null(multistream_protocol(negotiation));
    multistream_destroy(&negotiation);
}

static void an_initiator_refuses_an_answer_it_did_not_ask_for(void **state)
{
    (void)state;
    const char *const answers[] = {HEADER TLS, NOISE, HEADER "\x01\n", HEADER HEADER,
            HEADER "\x07/noisE\n", HEADER "\x06/noise", HEADER "\x05/noi\n"};
    const char *const protocols[] = {"/noise"};
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct multistream *negotiation = create_initiator(protocols, 1);
        assert_int_equal(receive_text(negotiation, answers[i]), STATUS_BAD_HANDSHAKE);
        multistream_destroy(&negotiation);
    }
}

static void a_responder_answers_header_and_proposal_in_one_write(void **state)
{
    (void)state;
    struct multistream *negotiation = create_responder();
    expect_output(negotiation, span_of(NULL, 0));
    assert_int_equal(receive_text(negotiation, HEADER NOISE), STATUS_OK);
    assert_ptr_equal(multistream_protocol(negotiation), offered[0]);
    expect_output(negotiation, span_of_text(HEADER NOISE));
    multistream_destroy(&negotiation);
}

static void a_responder_answers_the_header_alone_so_that_nobody_waits(void **state)
{
    (void)state;
    struct multistream *negotiation = create_responder();
    assert_int_equal(receive_text(negotiation, HEADER), STATUS_OK);
    expect_output(negotiation, span_of_text(HEADER));
    multistream_destroy(&negotiation);
}

static void a_responder_refuses_by_na_until_it_finds_a_protocol(void **state)
{
    (void)state;
    struct multistream *negotiation = create_responder();
    assert_string_equal(multistream_refused(negotiation), "");
    assert_int_equal(receive_text(negotiation, HEADER TLS "\x07/noisy\n"), STATUS_OK);
    expect_output(negotiation, span_of_text(HEADER NA NA));
    assert_string_equal(multistream_refused(negotiation), "/noisy");
    assert_null(multistream_protocol(negotiation));
    assert_int_equal(receive_text(negotiation, NOISE), STATUS_OK);
    expect_output(negotiation, span_of_text(NOISE));
    assert_ptr_equal(multistream_protocol(negotiation), offered[0]);
    multistream_destroy(&negotiation);
}

static void a_refused_name_is_fit_for_a_log(void **state)
{
    (void)state;
    struct multistream *negotiation = create_responder();
    char line[200];
    memset(line, 'x', sizeof(line));
    const uint8_t start[] = {0xc6, 0x01, '/', 'a', 0x1b, '[', 0xff, '\r'};
    memcpy(line, start, sizeof(start));
    line[199] = '\n';
    assert_int_equal(receive_text(negotiation, HEADER), STATUS_OK);
    assert_int_equal(receive(negotiation, span_of(line, sizeof(line))), STATUS_OK);
    assert_int_equal(strlen(multistream_refused(negotiation)), 63);
    assert_memory_equal(multistream_refused(negotiation), "/a?[??xxx", 9);
    multistream_destroy(&negotiation);
}

/* The form that js-libp2p's multistream-select documents: names with lengths, one more newline. */
static void a_responder_lists_what_it_offers(void **state)
{
    (void)state;
    struct multistream *negotiation = create_responder();
    assert_int_equal(receive_text(negotiation, HEADER LS), STATUS_OK);
    expect_output(negotiation, span_of_text(HEADER "\x19\x07/noise\n\x0f/ipfs/id/1.0.0\n\n"));
    assert_int_equal(receive_text(negotiation, NOISE), STATUS_OK);
    assert_ptr_equal(multistream_protocol(negotiation), offered[0]);
    multistream_destroy(&negotiation);
}

static void takes_the_bytes_in_every_cut_and_none_beyond_the_agreement(void **state)
{
    (void)state;
    static const char input[] = HEADER TLS LS NOISE "data of the protocol";
    size_t expected = sizeof(input) - sizeof("data of the protocol");
    for (size_t cut = 1; cut < sizeof(input); cut++) {
        struct multistream *negotiation = create_responder();
        size_t at = 0;
        while (multistream_protocol(negotiation) == NULL) {
            size_t consumed = 0;
            size_t n = sizeof(input) - 1 - at < cut ? sizeof(input) - 1 - at : cut;
            struct span piece = span_of(input + at, n);
            assert_int_equal(multistream_receive(negotiation, piece, &consumed), STATUS_OK);
            at += consumed;
        }
        assert_int_equal(at, expected);
        size_t consumed = 99;
        assert_int_equal(
                multistream_receive(negotiation, span_of(input + at, 4), &consumed), STATUS_OK);
        assert_int_equal(consumed, 0);
        multistream_destroy(&negotiation);
    }
}

struct bad_input {
    const char *bytes;
    size_t length;
    enum status status;
};

#define BAD(text, status)                                                                          \
    {                                                                                              \
        text, sizeof(text) - 1, status                                                             \
    }

/* The length before a line: 0, the limit and beyond, 2^31, 2^63, ten bytes. */
static const struct bad_input bad_inputs[] = {
        BAD("\x00", STATUS_BAD_HANDSHAKE),
        BAD("\x81\x08", STATUS_TOO_LARGE),
        BAD("\xff\x7f", STATUS_TOO_LARGE),
        BAD("\x80\x80", STATUS_TOO_LARGE),
        BAD("\x80\x80\x80\x80\x08", STATUS_TOO_LARGE),
        BAD("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", STATUS_TOO_LARGE),
        BAD("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", STATUS_TOO_LARGE),
        BAD("\x80\x00", STATUS_BAD_HANDSHAKE),
        BAD("\x01x", STATUS_BAD_HANDSHAKE),
        BAD("\x13/multistream/1.0.1\n", STATUS_BAD_HANDSHAKE),
        BAD("\x13/multistream/1.0.0 ", STATUS_BAD_HANDSHAKE),
        BAD("\x07/noise\n", STATUS_BAD_HANDSHAKE),
        BAD("GET / HTTP/1.1\r\nHost: somewhere in this world, and some more to fill the line",
                STATUS_BAD_HANDSHAKE),
        BAD("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS client hello",
                STATUS_BAD_HANDSHAKE),
};

static void refuses_what_is_not_multistream(void **state)
{
    (void)state;
    const char *const protocols[] = {"/noise"};
    for (size_t i = 0; i < sizeof(bad_inputs) / sizeof(bad_inputs[0]); i++) {
        struct span input = span_of(bad_inputs[i].bytes, bad_inputs[i].length);
        struct multistream *responder = create_responder();
        struct multistream *initiator = create_initiator(protocols, 1);
        assert_int_equal(receive(responder, input), bad_inputs[i].status);
        assert_int_equal(receive(responder, span_of_text(HEADER)), bad_inputs[i].status);
        assert_int_equal(receive(initiator, input), bad_inputs[i].status);
        assert_null(multistream_protocol(responder));
        multistream_destroy(&responder);
        multistream_destroy(&initiator);
    }
}

static void takes_the_longest_line_and_refuses_a_longer_one(void **state)
{
    (void)state;
    uint8_t line[2 + MULTISTREAM_MAX_LINE] = {0x80, 0x08};
    struct multistream *negotiation = create_responder();
    memset(line + 2, 'a', MULTISTREAM_MAX_LINE);
    line[sizeof(line) - 1] = '\n';
    assert_int_equal(receive_text(negotiation, HEADER), STATUS_OK);
    assert_int_equal(receive(negotiation, span_of(line, sizeof(line))), STATUS_OK);
    expect_output(negotiation, span_of_text(HEADER NA));
    line[0] = 0x81;
    assert_int_equal(receive(negotiation, span_of(line, 2)), STATUS_TOO_LARGE);
    multistream_destroy(&negotiation);
}

static void bounds_the_proposals_that_it_answers(void **state)
{
    (void)state;
    struct multistream *negotiation = create_responder();
    assert_int_equal(receive_text(negotiation, HEADER), STATUS_OK);
    for (int i = 0; i < MULTISTREAM_MAX_REQUESTS; i++) {
        assert_int_equal(receive_text(negotiation, TLS), STATUS_OK);
    }
    assert_int_equal(receive_text(negotiation, NOISE), STATUS_LIMIT_REACHED);
    assert_null(multistream_protocol(negotiation));
    multistream_destroy(&negotiation);
}

static const char *long_name_at(void *context, size_t i)
{
    (void)i;
    return context;
}

static void bounds_the_answers_that_wait_for_a_peer_that_does_not_read(void **state)
{
    (void)state;
    char name[600];
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    struct multistream *negotiation = NULL;
    const struct multistream_offer offer = {
            .find = find_offered, .at = long_name_at, .context = name};
    assert_int_equal(multistream_create_responder(&negotiation, &offer), STATUS_OK);
    assert_int_equal(receive_text(negotiation, HEADER LS), STATUS_OK);
    assert_int_equal(receive_text(negotiation, LS), STATUS_OK);
    assert_int_equal(receive_text(negotiation, LS), STATUS_LIMIT_REACHED);
    assert_true(multistream_output(negotiation).length <= MULTISTREAM_MAX_OUTPUT);
    multistream_destroy(&negotiation);
}

static void refuses_to_propose_nothing_or_a_name_beyond_the_limit(void **state)
{
    (void)state;
    char name[MULTISTREAM_MAX_LINE + 1];
    const char *const protocols[] = {name};
    struct multistream *negotiation = NULL;
    memset(name, 'n', sizeof(name));
    name[MULTISTREAM_MAX_LINE] = '\0';
    assert_int_equal(multistream_create_initiator(&negotiation, protocols, 0), STATUS_BAD_ARGUMENT);
    assert_int_equal(multistream_create_initiator(&negotiation, protocols, 1), STATUS_BAD_ARGUMENT);
    name[MULTISTREAM_MAX_LINE - 1] = '\0';
    assert_int_equal(multistream_create_initiator(&negotiation, protocols, 1), STATUS_OK);
    multistream_destroy(&negotiation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(an_initiator_sends_header_and_first_proposal_in_one_write),
            cmocka_unit_test(an_initiator_goes_on_to_its_next_proposal_when_refused),
            cmocka_unit_test(an_initiator_gives_up_when_all_are_refused),
            cmocka_unit_test(an_initiator_refuses_an_answer_it_did_not_ask_for),
            cmocka_unit_test(a_responder_answers_header_and_proposal_in_one_write),
            cmocka_unit_test(a_responder_answers_the_header_alone_so_that_nobody_waits),
            cmocka_unit_test(a_responder_refuses_by_na_until_it_finds_a_protocol),
            cmocka_unit_test(a_refused_name_is_fit_for_a_log),
            cmocka_unit_test(a_responder_lists_what_it_offers),
            cmocka_unit_test(takes_the_bytes_in_every_cut_and_none_beyond_the_agreement),
            cmocka_unit_test(refuses_what_is_not_multistream),
            cmocka_unit_test(takes_the_longest_line_and_refuses_a_longer_one),
            cmocka_unit_test(bounds_the_proposals_that_it_answers),
            cmocka_unit_test(bounds_the_answers_that_wait_for_a_peer_that_does_not_read),
            cmocka_unit_test(refuses_to_propose_nothing_or_a_name_beyond_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
