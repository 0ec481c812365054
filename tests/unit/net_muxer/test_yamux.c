/* SPDX-License-Identifier: MIT */

/*
 * Yamux against the bytes of its specification (github.com/hashicorp/yamux, spec.md) and against
 * conversations recorded from the JavaScript implementations.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/net_muxer/muxer_end.h"
#include "tests/unit/net_muxer/transcript.h"

enum {
    WINDOW = 262144
};

/* Types and flags as the specification numbers them. */
enum {
    DATA = 0,
    UPDATE = 1,
    PING = 2,
    AWAY = 3,
    SYN = 1,
    ACK = 2,
    FIN = 4,
    RST = 8
};

static size_t put_frame(uint8_t *out, unsigned type, unsigned flags, uint32_t id, uint32_t length)
{
    const uint8_t bytes[12] = {0, (uint8_t)type, 0, (uint8_t)flags, (uint8_t)(id >> 24),
            (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id, (uint8_t)(length >> 24),
            (uint8_t)(length >> 16), (uint8_t)(length >> 8), (uint8_t)length};
    memcpy(out, bytes, sizeof(bytes));
    return sizeof(bytes);
}

static enum status feed(
        struct end *end, unsigned type, unsigned flags, uint32_t id, uint32_t length)
{
    uint8_t frame[12];
    put_frame(frame, type, flags, id, length);
    return end_receive(end, frame, sizeof(frame), 0);
}

static enum status feed_zeros(struct end *end, size_t length)
{
    static const uint8_t zeros[WINDOW + 1];
    return end_receive(end, zeros, length, 0);
}

static void expect_output(struct end *end, const void *bytes, size_t length)
{
    uint8_t out[4096];
    assert_int_equal(end_output(end, out, sizeof(out)), length);
    assert_memory_equal(out, bytes, length);
}

static void expect_frame(
        struct end *end, unsigned type, unsigned flags, uint32_t id, uint32_t length)
{
    uint8_t frame[12];
    put_frame(frame, type, flags, id, length);
    expect_output(end, frame, sizeof(frame));
}

static void expect_silence(struct end *end)
{
    uint8_t out[64];
    assert_false(muxer_wants_output(end->muxer));
    assert_int_equal(end_output(end, out, sizeof(out)), 0);
}

static void writes_the_frames_of_the_specification(void **state)
{
    (void)state;
    static const uint8_t open_and_data[] = {0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, /* window, SYN */
            0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5, 'h', 'e', 'l', 'l', 'o'};
    struct end end;
    end_init(&end, MUXER_YAMUX, true, NULL);
    struct end_stream *stream = end_open(&end);
    assert_int_equal(end_write(stream, "hello", 5), STATUS_OK);
    expect_output(&end, open_and_data, sizeof(open_and_data));
    muxer_stream_close_write(stream->stream);
    expect_frame(&end, UPDATE, FIN, 1, 0);
    muxer_stream_reset(stream->stream);
    expect_frame(&end, UPDATE, RST, 1, 0);
    muxer_go_away(end.muxer, MUXER_GO_AWAY_NORMAL);
    expect_frame(&end, AWAY, 0, 0, 0);
    expect_silence(&end);
    end_fini(&end);
}

static void numbers_streams_odd_for_the_dialler_and_even_for_the_listener(void **state)
{
    (void)state;
    struct end dialler;
    struct end listener;
    end_init(&dialler, MUXER_YAMUX, true, NULL);
    end_init(&listener, MUXER_YAMUX, false, NULL);
    assert_int_equal(muxer_stream_id(end_open(&dialler)->stream), 1);
    assert_int_equal(muxer_stream_id(end_open(&dialler)->stream), 3);
    assert_int_equal(muxer_stream_id(end_open(&listener)->stream), 2);
    assert_int_equal(muxer_stream_id(end_open(&listener)->stream), 4);
    end_fini(&dialler);
    end_fini(&listener);
}

static void acknowledges_a_stream_when_it_gets_an_owner(void **state)
{
    (void)state;
    struct end end;
    end_init(&end, MUXER_YAMUX, false, NULL);
    end.accepts = false;
    assert_int_equal(feed(&end, DATA, SYN, 1, 3), STATUS_OK);
    assert_int_equal(end_receive(&end, "abc", 3, 1), STATUS_OK);
    expect_silence(&end);
    end_accept(end.streams);
    expect_frame(&end, UPDATE, ACK, 1, 0);
    muxer_stream_resume(end.streams->stream);
    assert_int_equal(end.streams->length, 3);
    assert_memory_equal(end.streams->bytes, "abc", 3);
    end_fini(&end);
}

static void answers_a_ping_with_its_number(void **state)
{
    (void)state;
    struct end end;
    end_init(&end, MUXER_YAMUX, false, NULL);
    assert_int_equal(feed(&end, PING, SYN, 0, 0xdeadbeef), STATUS_OK);
    expect_frame(&end, PING, ACK, 0, 0xdeadbeef);
    /* an answer to no question is no reason to fail */
    assert_int_equal(feed(&end, PING, ACK, 0, 77), STATUS_OK);
    expect_silence(&end);
    end_fini(&end);
}

static void pings_after_silence_and_fails_without_an_answer(void **state)
{
    (void)state;
    const struct muxer_options limits = {.keep_alive_ns = 1000, .ping_timeout_ns = 500};
    struct end end;
    end_init(&end, MUXER_YAMUX, true, &limits);
    assert_int_equal(muxer_tick(end.muxer, 10000), STATUS_OK);
    assert_int_equal(muxer_tick(end.muxer, 10999), STATUS_OK);
    expect_silence(&end);
    assert_int_equal(muxer_tick(end.muxer, 11000), STATUS_OK);
    expect_frame(&end, PING, SYN, 0, 1);
    assert_true(muxer_rtt_ns(end.muxer) == UINT64_MAX);
    assert_int_equal(muxer_tick(end.muxer, 11200), STATUS_OK);
    assert_int_equal(feed(&end, PING, ACK, 0, 1), STATUS_OK);
    assert_int_equal(muxer_rtt_ns(end.muxer), 200);

    /* whatever comes puts the next one off */
    assert_int_equal(muxer_tick(end.muxer, 12199), STATUS_OK);
    assert_int_equal(feed(&end, UPDATE, 0, 9, 0), STATUS_OK);
    assert_int_equal(muxer_tick(end.muxer, 13198), STATUS_OK);
    expect_silence(&end);
    assert_int_equal(muxer_tick(end.muxer, 13199), STATUS_OK);
    expect_frame(&end, PING, SYN, 0, 2);
    assert_int_equal(muxer_tick(end.muxer, 13698), STATUS_OK);
    assert_int_equal(muxer_tick(end.muxer, 13699), STATUS_TIMED_OUT);
    assert_int_equal(feed(&end, PING, ACK, 0, 2), STATUS_TIMED_OUT);
    end_fini(&end);
}

static void closes_with_go_away_exactly_one_byte_over_the_window(void **state)
{
    (void)state;
    struct end end;
    end_init(&end, MUXER_YAMUX, false, NULL);
    end.inbound_stops = true;
    assert_int_equal(feed(&end, UPDATE, SYN, 1, 0), STATUS_OK);
    expect_frame(&end, UPDATE, ACK, 1, 0);
    assert_int_equal(feed(&end, DATA, 0, 1, WINDOW), STATUS_OK);
    assert_int_equal(feed_zeros(&end, WINDOW), STATUS_OK);
    assert_int_equal(feed(&end, DATA, 0, 1, 0), STATUS_OK);
    expect_silence(&end);
    assert_int_equal(feed(&end, DATA, 0, 1, 1), STATUS_WINDOW_OVERRUN);
    expect_frame(&end, AWAY, 0, 0, 1);
    expect_silence(&end);
    assert_int_equal(feed(&end, PING, SYN, 0, 1), STATUS_WINDOW_OVERRUN);
    end_fini(&end);
}

static void refuses_a_frame_larger_than_the_window_by_one(void **state)
{
    (void)state;
    struct end end;
    end_init(&end, MUXER_YAMUX, false, NULL);
    assert_int_equal(feed(&end, DATA, SYN, 1, WINDOW + 1), STATUS_WINDOW_OVERRUN);
    expect_frame(&end, AWAY, 0, 0, 1);
    end_fini(&end);
}

/* What belongs to no stream is thrown away, but nobody was ever granted more than the largest window. */
static void refuses_a_frame_for_no_stream_beyond_any_window(void **state)
{
    const uint32_t largest = 16 * 1024 * 1024;
    (void)state;
    struct end end;
    end_init(&end, MUXER_YAMUX, false, NULL);
    assert_int_equal(feed(&end, DATA, 0, 99, largest + 1), STATUS_WINDOW_OVERRUN);
    expect_frame(&end, AWAY, 0, 0, 1);
    end_fini(&end);
    end_init(&end, MUXER_YAMUX, false, NULL);
    assert_int_equal(feed(&end, DATA, 0, 99, largest), STATUS_OK);
    expect_silence(&end);
    end_fini(&end);
}

static void is_chosen_by_the_protocol_id_of_the_specification(void **state)
{
    enum muxer_kind kind = MUXER_MPLEX;
    (void)state;
    assert_true(muxer_kind_from_protocol_id(&kind, span_of_text("/yamux/1.0.0")));
    assert_int_equal(kind, MUXER_YAMUX);
    assert_true(muxer_kind_from_protocol_id(&kind, span_of_text("/mplex/6.7.0")));
    assert_int_equal(kind, MUXER_MPLEX);
    assert_false(muxer_kind_from_protocol_id(&kind, span_of_text("/yamux/1.0.1")));
    assert_false(muxer_kind_from_protocol_id(&kind, span_of_text("")));
}

static void grants_a_window_only_from_the_moment_it_is_on_the_wire(void **state)
{
    (void)state;
    struct end end;
    end_init(&end, MUXER_YAMUX, false, NULL);
    assert_int_equal(feed(&end, DATA, SYN, 1, WINDOW), STATUS_OK);
    assert_int_equal(feed_zeros(&end, WINDOW), STATUS_OK);
    assert_int_equal(end.streams->length, WINDOW);
    uint8_t out[64];
    assert_int_equal(end_output(&end, out, sizeof(out)), 12 + 12); /* ping and ACK with credit */
    assert_int_equal(feed(&end, DATA, 0, 1, WINDOW), STATUS_OK);
    assert_int_equal(feed_zeros(&end, WINDOW), STATUS_OK);
    assert_int_equal(feed(&end, DATA, 0, 1, 1), STATUS_WINDOW_OVERRUN);
    end_fini(&end);
}

static void grants_nothing_to_a_peer_that_has_closed(void **state)
{
    (void)state;
    struct end end;
    uint8_t out[64];
    end_init(&end, MUXER_YAMUX, false, NULL);
    assert_int_equal(feed(&end, UPDATE, SYN, 1, 0), STATUS_OK);
    end_output(&end, out, sizeof(out));
    struct end_stream *stream = end.streams;
    stream->keeps = true;
    assert_int_equal(feed(&end, DATA, 0, 1, WINDOW), STATUS_OK);
    assert_int_equal(feed_zeros(&end, WINDOW), STATUS_OK);
    muxer_stream_consumed(stream->stream, WINDOW / 2); /* credit that is queued */
    assert_int_equal(feed(&end, UPDATE, FIN, 1, 0), STATUS_OK);
    muxer_stream_consumed(stream->stream, WINDOW / 2);
    expect_frame(&end, PING, SYN, 0, 1); /* the round trip is measured, nothing else */
    expect_silence(&end);
    end_fini(&end);
}

static void ignores_late_frames_of_finished_and_unknown_streams(void **state)
{
    (void)state;
    struct end end;
    end_init(&end, MUXER_YAMUX, false, NULL);
    assert_int_equal(feed(&end, UPDATE, SYN | FIN, 1, 0), STATUS_OK);
    muxer_stream_close_write(end.streams->stream);
    uint8_t out[64];
    assert_int_equal(end_output(&end, out, sizeof(out)), 24);
    assert_int_equal(end.streams->closed, 1);
    assert_int_equal(muxer_stream_count(end.muxer), 0);

    static const uint32_t ids[] = {1, 99, 2, 4000000000U};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        assert_int_equal(feed(&end, UPDATE, 0, ids[i], 1000), STATUS_OK);
        assert_int_equal(feed(&end, UPDATE, ACK, ids[i], 0), STATUS_OK);
        assert_int_equal(feed(&end, UPDATE, FIN, ids[i], 0), STATUS_OK);
        assert_int_equal(feed(&end, DATA, FIN, ids[i], 0), STATUS_OK);
        assert_int_equal(feed(&end, DATA, 0, ids[i], 5), STATUS_OK);
        assert_int_equal(end_receive(&end, "12345", 5, 2), STATUS_OK);
        assert_int_equal(feed(&end, UPDATE, RST, ids[i], 0), STATUS_OK);
    }
    expect_silence(&end);
    /* and the connection lives */
    assert_int_equal(feed(&end, DATA, SYN, 3, 2), STATUS_OK);
    assert_int_equal(end_receive(&end, "ok", 2, 0), STATUS_OK);
    assert_memory_equal(end.streams->bytes, "ok", 2);
    end_fini(&end);
}

static void ignores_data_after_the_half_close_of_an_open_stream(void **state)
{
    (void)state;
    struct end end;
    end_init(&end, MUXER_YAMUX, false, NULL);
    assert_int_equal(feed(&end, DATA, SYN | FIN, 1, 2), STATUS_OK);
    assert_int_equal(end_receive(&end, "ab", 2, 0), STATUS_OK);
    assert_int_equal(end.streams->remote_closed, 1);
    assert_int_equal(feed(&end, DATA, FIN, 1, 3), STATUS_OK);
    assert_int_equal(end_receive(&end, "cde", 3, 0), STATUS_OK);
    assert_int_equal(end.streams->length, 2);
    assert_int_equal(end.streams->remote_closed, 1);
    assert_int_equal(end_write(end.streams, "still open", 10), STATUS_OK);
    end_fini(&end);
}

static void delivers_the_data_of_a_frame_before_its_half_close(void **state)
{
    (void)state;
    struct end end;
    end_init(&end, MUXER_YAMUX, false, NULL);
    assert_int_equal(feed(&end, DATA, SYN | FIN, 1, 4), STATUS_OK);
    assert_int_equal(end_receive(&end, "abc", 3, 0), STATUS_OK);
    assert_int_equal(end.streams->remote_closed, 0);
    assert_int_equal(end_receive(&end, "d", 1, 0), STATUS_OK);
    assert_int_equal(end.streams->length, 4);
    assert_int_equal(end.streams->remote_closed, 1);
    end_fini(&end);
}

static void fails_with_a_protocol_error(
        unsigned version_and_type, unsigned flags, uint32_t id, bool is_initiator)
{
    uint8_t frame[12];
    struct end end;
    end_init(&end, MUXER_YAMUX, is_initiator, NULL);
    put_frame(frame, version_and_type & 0xff, flags, id, 0);
    frame[0] = (uint8_t)(version_and_type >> 8);
    assert_int_equal(end_receive(&end, frame, sizeof(frame), 0), STATUS_BAD_FRAME);
    expect_frame(&end, AWAY, 0, 0, 1);
    end_fini(&end);
}

static void refuses_what_the_specification_does_not_allow(void **state)
{
    (void)state;
    fails_with_a_protocol_error(0x100 | DATA, 0, 1, false); /* another version */
    fails_with_a_protocol_error(4, 0, 1, false);            /* no such type */
    fails_with_a_protocol_error(DATA, 0, 0, false);         /* stream 0 is the session */
    fails_with_a_protocol_error(UPDATE, SYN, 0, false);
    fails_with_a_protocol_error(UPDATE, SYN, 2, false); /* a dialler's ids are odd */
    fails_with_a_protocol_error(UPDATE, SYN, 1, true);
}

static void refuses_to_open_a_stream_twice(void **state)
{
    (void)state;
    struct end end;
    end_init(&end, MUXER_YAMUX, false, NULL);
    assert_int_equal(feed(&end, UPDATE, SYN, 1, 0), STATUS_OK);
    assert_int_equal(feed(&end, UPDATE, SYN, 1, 0), STATUS_BAD_FRAME);
    end_fini(&end);
}

static void resets_streams_over_the_limit_and_skips_their_data(void **state)
{
    (void)state;
    const struct muxer_options limits = {.streams_max = 2};
    struct end end;
    end_init(&end, MUXER_YAMUX, false, &limits);
    uint8_t out[64];
    assert_int_equal(feed(&end, UPDATE, SYN, 1, 0), STATUS_OK);
    assert_int_equal(feed(&end, UPDATE, SYN, 3, 0), STATUS_OK);
    end_output(&end, out, sizeof(out));
    assert_int_equal(feed(&end, DATA, SYN, 5, 4), STATUS_OK);
    assert_int_equal(end_receive(&end, "lost", 4, 0), STATUS_OK);
    expect_frame(&end, UPDATE, RST, 5, 0);
    assert_int_equal(muxer_stream_count(end.muxer), 2);
    struct end_stream *refused;
    assert_int_equal(end_try_open(&end, &refused), STATUS_LIMIT_REACHED);
    end_fini(&end);
}

static void resets_streams_nobody_accepts_beyond_the_backlog(void **state)
{
    (void)state;
    const struct muxer_options limits = {.inbound_pending_max = 1};
    struct end end;
    end_init(&end, MUXER_YAMUX, false, &limits);
    end.accepts = false;
    assert_int_equal(feed(&end, UPDATE, SYN, 1, 0), STATUS_OK);
    assert_int_equal(feed(&end, UPDATE, SYN, 3, 0), STATUS_OK);
    expect_frame(&end, UPDATE, RST, 3, 0);
    end_accept(end.streams);
    assert_int_equal(feed(&end, UPDATE, SYN, 5, 0), STATUS_OK);
    assert_int_equal(muxer_stream_count(end.muxer), 2);
    end_fini(&end);
}

static void opens_no_more_streams_than_the_peer_may_leave_unacknowledged(void **state)
{
    (void)state;
    struct end end;
    struct end_stream *stream;
    end_init(&end, MUXER_YAMUX, true, NULL);
    for (int i = 0; i < 256; i++) {
        end_open(&end);
    }
    assert_int_equal(end_try_open(&end, &stream), STATUS_LIMIT_REACHED);
    assert_int_equal(feed(&end, UPDATE, ACK, 1, 0), STATUS_OK);
    assert_int_equal(end_try_open(&end, &stream), STATUS_OK);
    end_fini(&end);
}

static void closes_the_connection_of_a_peer_that_reads_no_answers(void **state)
{
    (void)state;
    const struct muxer_options limits = {.answers_max = 100};
    struct end end;
    end_init(&end, MUXER_YAMUX, false, &limits);
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(feed(&end, PING, SYN, 0, i), STATUS_OK);
    }
    assert_int_equal(feed(&end, PING, SYN, 0, 100), STATUS_LIMIT_REACHED);
    expect_frame(&end, AWAY, 0, 0, 1);
    end_fini(&end);
}

static void keeps_what_is_open_and_takes_nothing_new_after_go_away(void **state)
{
    (void)state;
    struct end end;
    struct end_stream *stream;
    end_init(&end, MUXER_YAMUX, false, NULL);
    assert_int_equal(feed(&end, UPDATE, SYN, 1, 0), STATUS_OK);
    struct end_stream *old = end.streams;
    assert_int_equal(feed(&end, AWAY, 0, 0, 0), STATUS_OK);
    assert_int_equal(end.went_away, 1);
    assert_int_equal(end_try_open(&end, &stream), STATUS_CLOSED);
    muxer_go_away(end.muxer, MUXER_GO_AWAY_NORMAL);
    uint8_t out[64];
    end_output(&end, out, sizeof(out));
    assert_int_equal(feed(&end, UPDATE, SYN, 3, 0), STATUS_OK);
    expect_frame(&end, UPDATE, RST, 3, 0);
    assert_int_equal(feed(&end, DATA, 0, 1, 1), STATUS_OK);
    assert_int_equal(end_receive(&end, "x", 1, 0), STATUS_OK);
    assert_int_equal(old->length, 1);
    end_fini(&end);
}

/* What the recorded scenario leaves on each side; see recorded/. */
static void check_listener_of_recording(struct end *end, size_t cut, const char *path)
{
    assert_true(transcript_replay(path, 'd', end, cut));
    assert_int_equal(end->stream_count, 3 + 1); /* the peer's, and ours that it answers */
    const struct end_stream *third = end->streams;
    const struct end_stream *second = third->next;
    const struct end_stream *first = second->next;
    assert_int_equal(third->length, 1);
    assert_int_equal(third->reset, 1);
    assert_int_equal(third->reason, STATUS_RESET);
    assert_int_equal(second->length, 1);
    assert_int_equal(first->length, 5);
    assert_memory_equal(first->bytes, "hello", 5);
    assert_int_equal(first->remote_closed, 1);
    const struct end_stream *ours = first->next;
    assert_int_equal(ours->length, 3);
    assert_memory_equal(ours->bytes, "bye", 3);
    assert_int_equal(ours->remote_closed, 1);
    assert_int_equal(end->went_away, 1);
    assert_int_equal(end->away_reason, MUXER_GO_AWAY_NORMAL);
}

static void check_dialler_of_recording(struct end *end, size_t cut, const char *path)
{
    struct end_stream *first = end_open(end);
    struct end_stream *second = end_open(end);
    assert_true(transcript_replay(path, 'l', end, cut));
    assert_int_equal(first->length, 5);
    assert_memory_equal(first->bytes, "hello", 5);
    assert_int_equal(first->remote_closed, 1);
    assert_int_equal(second->reset, 1);
    const struct end_stream *inbound = end->streams;
    assert_int_equal(inbound->length, 300000);
    for (size_t i = 0; i < inbound->length; i++) {
        assert_int_equal(inbound->bytes[i], 'a' + (int)(i / 50000));
    }
    assert_int_equal(inbound->remote_closed, 1);
}

static void understands_the_javascript_implementations(void **state)
{
    (void)state;
    static const char *const paths[] = {"tests/unit/net_muxer/recorded/yamux_js_7.0.4.txt",
            "tests/unit/net_muxer/recorded/yamux_js_8.0.3.txt"};
    static const size_t cuts[] = {0, 1, 7, 13, 4096};
    for (size_t i = 0; i < 2 * sizeof(cuts) / sizeof(cuts[0]); i++) {
        struct end end;
        end_init(&end, MUXER_YAMUX, false, NULL);
        end_open(&end);
        check_listener_of_recording(&end, cuts[i / 2], paths[i % 2]);
        end_fini(&end);
        end_init(&end, MUXER_YAMUX, true, NULL);
        check_dialler_of_recording(&end, cuts[i / 2], paths[i % 2]);
        end_fini(&end);
    }
}

/* The frames both write for the same acts: opening, data, half-close, in the recording's order. */
static void writes_what_the_javascript_implementation_writes(void **state)
{
    (void)state;
    uint8_t theirs[256];
    size_t length = transcript_load(
            "tests/unit/net_muxer/recorded/yamux_js_8.0.3.txt", 'd', theirs, sizeof(theirs));
    assert_true(length >= 29);
    struct end end;
    end_init(&end, MUXER_YAMUX, true, NULL);
    struct end_stream *stream = end_open(&end);
    assert_int_equal(end_write(stream, "hello", 5), STATUS_OK);
    expect_output(&end, theirs, 29);
    end_fini(&end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(writes_the_frames_of_the_specification),
            cmocka_unit_test(numbers_streams_odd_for_the_dialler_and_even_for_the_listener),
            cmocka_unit_test(acknowledges_a_stream_when_it_gets_an_owner),
            cmocka_unit_test(answers_a_ping_with_its_number),
            cmocka_unit_test(pings_after_silence_and_fails_without_an_answer),
            cmocka_unit_test(closes_with_go_away_exactly_one_byte_over_the_window),
            cmocka_unit_test(refuses_a_frame_larger_than_the_window_by_one),
            cmocka_unit_test(refuses_a_frame_for_no_stream_beyond_any_window),
            cmocka_unit_test(is_chosen_by_the_protocol_id_of_the_specification),
            cmocka_unit_test(grants_a_window_only_from_the_moment_it_is_on_the_wire),
            cmocka_unit_test(grants_nothing_to_a_peer_that_has_closed),
            cmocka_unit_test(ignores_late_frames_of_finished_and_unknown_streams),
            cmocka_unit_test(ignores_data_after_the_half_close_of_an_open_stream),
            cmocka_unit_test(delivers_the_data_of_a_frame_before_its_half_close),
            cmocka_unit_test(refuses_what_the_specification_does_not_allow),
            cmocka_unit_test(refuses_to_open_a_stream_twice),
            cmocka_unit_test(resets_streams_over_the_limit_and_skips_their_data),
            cmocka_unit_test(resets_streams_nobody_accepts_beyond_the_backlog),
            cmocka_unit_test(opens_no_more_streams_than_the_peer_may_leave_unacknowledged),
            cmocka_unit_test(closes_the_connection_of_a_peer_that_reads_no_answers),
            cmocka_unit_test(keeps_what_is_open_and_takes_nothing_new_after_go_away),
            cmocka_unit_test(understands_the_javascript_implementations),
            cmocka_unit_test(writes_what_the_javascript_implementation_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
