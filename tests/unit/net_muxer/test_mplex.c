/* SPDX-License-Identifier: MIT */

/*
 * Mplex against the bytes of its specification (github.com/libp2p/specs, mplex) and against
 * conversations recorded from the JavaScript implementation.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/net_muxer/muxer_end.h"
#include "tests/unit/net_muxer/transcript.h"

static const uint8_t zeros[1 << 20];

static void expect_output(struct end *end, const void *bytes, size_t length)
{
    uint8_t out[4096];
    assert_int_equal(end_output(end, out, sizeof(out)), length);
    assert_memory_equal(out, bytes, length);
}

static enum status feed(struct end *end, const void *bytes, size_t length)
{
    return end_receive(end, bytes, length, 0);
}

static void writes_the_frames_of_the_specification(void **state)
{
    (void)state;
    struct end end;
    end_init(&end, MUXER_MPLEX, true, NULL);
    struct end_stream *first = end_open(&end);
    struct end_stream *second = end_open(&end);
    assert_int_equal(end_write(second, "hi", 2), STATUS_OK);
    /* new streams 0 and 1, then a message of the initiator */
    static const uint8_t opened[] = {0, 0, 1 << 3, 0, 1 << 3 | 2, 2, 'h', 'i'};
    expect_output(&end, opened, sizeof(opened));
    muxer_stream_close_write(second->stream);
    static const uint8_t closed[] = {1 << 3 | 4, 0};
    expect_output(&end, closed, sizeof(closed));
    muxer_stream_reset(first->stream);
    static const uint8_t was_reset[] = {6, 0};
    expect_output(&end, was_reset, sizeof(was_reset));
    end_fini(&end);
}

static void answers_as_receiver_on_streams_of_the_peer(void **state)
{
    (void)state;
    /* stream 20 is called "name"; 20 << 3 takes two bytes */
    static const uint8_t in[] = {0xa0, 1, 4, 'n', 'a', 'm', 'e', 0xa2, 1, 2, 'h', 'i', 0xa4, 1, 0};
    struct end end;
    end_init(&end, MUXER_MPLEX, false, NULL);
    end.inbound_echoes = true;
    for (size_t i = 0; i < sizeof(in); i++) {
        assert_int_equal(feed(&end, in + i, 1), STATUS_OK);
    }
    assert_int_equal(muxer_stream_id(end.streams->stream), 20);
    assert_int_equal(end.streams->length, 2);
    assert_int_equal(end.streams->remote_closed, 1);
    /* "h" and "i" came apart, but wait for the output together */
    static const uint8_t out[] = {0xa1, 1, 2, 'h', 'i', 0xa3, 1, 0};
    expect_output(&end, out, sizeof(out));
    assert_int_equal(end.streams->closed, 1);
    end_fini(&end);
}

static void keeps_equal_ids_of_both_sides_apart(void **state)
{
    (void)state;
    static const uint8_t in[] = {0, 0, /* their stream 0 */
            2, 1, 'a',                 /* on theirs */
            1, 1, 'b',                 /* on ours */
            5, 0};                     /* reset of ours */
    struct end end;
    end_init(&end, MUXER_MPLEX, true, NULL);
    struct end_stream *ours = end_open(&end);
    assert_int_equal(feed(&end, in, sizeof(in)), STATUS_OK);
    assert_int_equal(end.streams->length, 1);
    assert_int_equal(end.streams->bytes[0], 'a');
    assert_int_equal(end.streams->reset, 0);
    assert_int_equal(ours->length, 1);
    assert_int_equal(ours->bytes[0], 'b');
    assert_int_equal(ours->reset, 1);
    end_fini(&end);
}

static void ignores_late_frames_of_finished_and_unknown_streams(void **state)
{
    (void)state;
    static const uint8_t in[] = {0x0a, 3, 'a', 'b', 'c', 0x09, 1, 'x', 0x0b, 0, 0x0c, 0, 0x0d, 0,
            0x0e, 0, 0x10, 0, 0x14, 0, 0x12, 1, 'y', 0x14, 0};
    struct end end;
    end_init(&end, MUXER_MPLEX, false, NULL);
    assert_int_equal(feed(&end, in, sizeof(in)), STATUS_OK);
    assert_int_equal(end.stream_count, 1);
    assert_int_equal(end.streams->length, 0);
    assert_int_equal(end.streams->remote_closed, 1);
    end_fini(&end);
}

static void refuses(const void *bytes, size_t length)
{
    struct end end;
    end_init(&end, MUXER_MPLEX, false, NULL);
    assert_int_equal(feed(&end, bytes, length), STATUS_BAD_FRAME);
    assert_false(muxer_wants_output(end.muxer));
    end_fini(&end);
}

static void refuses_what_the_specification_does_not_allow(void **state)
{
    (void)state;
    static const uint8_t flag_7[] = {7, 0};
    static const uint8_t over_a_mebibyte[] = {2, 0x81, 0x80, 0x40};
    static const uint8_t length_without_end[] = {2, 0x80, 0x80, 0x80, 0x80, 0};
    static const uint8_t id_of_ten_bytes[] = {
            0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0};
    static const uint8_t opened_twice[] = {0, 0, 0, 0};
    refuses(flag_7, sizeof(flag_7));
    refuses(over_a_mebibyte, sizeof(over_a_mebibyte));
    refuses(length_without_end, sizeof(length_without_end));
    refuses(id_of_ten_bytes, sizeof(id_of_ten_bytes));
    refuses(opened_twice, sizeof(opened_twice));
}

static void takes_the_largest_id_and_the_largest_message(void **state)
{
    (void)state;
    static const uint8_t open[] = {0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0};
    static const uint8_t message[] = {
            0xfa, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x80, 0x80, 0x40};
    struct end end;
    end_init(&end, MUXER_MPLEX, false, NULL);
    assert_int_equal(feed(&end, open, sizeof(open)), STATUS_OK);
    assert_true(muxer_stream_id(end.streams->stream) == (UINT64_C(1) << 60) - 1);
    assert_int_equal(feed(&end, message, sizeof(message)), STATUS_OK);
    assert_int_equal(feed(&end, zeros, sizeof(zeros)), STATUS_OK);
    assert_int_equal(end.streams->length, sizeof(zeros));
    muxer_stream_reset(end.streams->stream);
    static const uint8_t reset[] = {0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0};
    expect_output(&end, reset, sizeof(reset));
    end_fini(&end);
}

/* One message of n zero bytes on the peer's stream 0. */
static enum status feed_message(struct end *end, size_t n)
{
    const uint8_t header[] = {2, (uint8_t)(n | 0x80), (uint8_t)(n >> 7 | 0x80), (uint8_t)(n >> 14)};
    enum status status = feed(end, header, sizeof(header));
    return status == STATUS_OK ? feed(end, zeros, n) : status;
}

static void asks_for_a_pause_and_then_resets_the_stream_nobody_reads(void **state)
{
    (void)state;
    static const uint8_t open[] = {0, 0, 8, 0};
    const struct muxer_options limits = {.stream_held_max = 400000};
    struct end end;
    end_init(&end, MUXER_MPLEX, false, &limits);
    end.inbound_stops = true;
    assert_int_equal(feed(&end, open, sizeof(open)), STATUS_OK);
    struct end_stream *slow = end.streams->next;
    assert_int_equal(feed_message(&end, 100000), STATUS_OK);
    assert_false(end.is_paused);
    assert_int_equal(feed_message(&end, 1), STATUS_OK);
    assert_true(end.is_paused);
    /* what was on its way is still taken, up to the cap */
    assert_int_equal(feed_message(&end, 299999), STATUS_OK);
    assert_int_equal(muxer_held(end.muxer), 400000);
    assert_int_equal(slow->reset, 0);
    assert_int_equal(feed_message(&end, 1), STATUS_OK);
    assert_int_equal(slow->reset, 1);
    assert_int_equal(slow->reason, STATUS_LIMIT_REACHED);
    assert_false(end.is_paused);
    assert_int_equal(muxer_held(end.muxer), 0);
    static const uint8_t reset[] = {5, 0};
    expect_output(&end, reset, sizeof(reset));
    end_fini(&end);
}

static void ends_the_pause_at_half_of_what_began_it(void **state)
{
    (void)state;
    static const uint8_t open[] = {0, 0};
    const struct muxer_options limits = {.stream_held_max = 400000};
    struct end end;
    end_init(&end, MUXER_MPLEX, false, &limits);
    end.inbound_stops = true;
    assert_int_equal(feed(&end, open, sizeof(open)), STATUS_OK);
    assert_int_equal(feed_message(&end, 150000), STATUS_OK);
    assert_true(end.is_paused);
    end.streams->is_stopped = false;
    end.streams->has_allowance = true;
    end.streams->allowance = 90000;
    muxer_stream_resume(end.streams->stream);
    assert_int_equal(muxer_held(end.muxer), 60000);
    assert_true(end.is_paused);
    end.streams->allowance = 10000;
    muxer_stream_resume(end.streams->stream);
    assert_int_equal(end.streams->length, 100000);
    assert_false(end.is_paused);
    assert_int_equal(end.pauses, 1);
    end_fini(&end);
}

static void resets_streams_over_the_limit(void **state)
{
    (void)state;
    static const uint8_t in[] = {0, 0, 8, 0, 16, 2, 'n', 'o', 18, 1, 'x'};
    static const uint8_t reset[] = {16 | 5, 0};
    const struct muxer_options limits = {.streams_max = 2};
    struct end end;
    end_init(&end, MUXER_MPLEX, false, &limits);
    assert_int_equal(feed(&end, in, sizeof(in)), STATUS_OK);
    assert_int_equal(end.stream_count, 2);
    expect_output(&end, reset, sizeof(reset));
    end_fini(&end);
}

static void check_listener_of_recording(struct end *end, size_t cut, const char *path)
{
    assert_true(transcript_replay(path, 'd', end, cut));
    const struct end_stream *third = end->streams;
    const struct end_stream *second = third->next;
    const struct end_stream *first = second->next;
    const struct end_stream *ours = first->next;
    assert_int_equal(third->length, 1);
    assert_int_equal(third->reset, 1);
    assert_int_equal(second->length, 1);
    assert_int_equal(first->length, 5);
    assert_memory_equal(first->bytes, "hello", 5);
    assert_int_equal(first->remote_closed, 1);
    assert_int_equal(ours->length, 3);
    assert_memory_equal(ours->bytes, "bye", 3);
    assert_int_equal(ours->remote_closed, 1);
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

static void understands_the_javascript_implementation(void **state)
{
    (void)state;
    static const char *const paths[] = {"tests/unit/net_muxer/recorded/mplex_js_11.0.42.txt",
            "tests/unit/net_muxer/recorded/mplex_js_12.0.32.txt"};
    static const size_t cuts[] = {0, 1, 2, 3, 4096};
    for (size_t i = 0; i < 2 * sizeof(cuts) / sizeof(cuts[0]); i++) {
        struct end end;
        end_init(&end, MUXER_MPLEX, false, NULL);
        end_open(&end);
        check_listener_of_recording(&end, cuts[i / 2], paths[i % 2]);
        end_fini(&end);
        end_init(&end, MUXER_MPLEX, true, NULL);
        check_dialler_of_recording(&end, cuts[i / 2], paths[i % 2]);
        end_fini(&end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(writes_the_frames_of_the_specification),
            cmocka_unit_test(answers_as_receiver_on_streams_of_the_peer),
            cmocka_unit_test(keeps_equal_ids_of_both_sides_apart),
            cmocka_unit_test(ignores_late_frames_of_finished_and_unknown_streams),
            cmocka_unit_test(refuses_what_the_specification_does_not_allow),
            cmocka_unit_test(takes_the_largest_id_and_the_largest_message),
            cmocka_unit_test(asks_for_a_pause_and_then_resets_the_stream_nobody_reads),
            cmocka_unit_test(ends_the_pause_at_half_of_what_began_it),
            cmocka_unit_test(resets_streams_over_the_limit),
            cmocka_unit_test(understands_the_javascript_implementation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
