/* SPDX-License-Identifier: MIT */

/* Windows, fairness and bounds, on simulated links: what broke in other implementations. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/net_muxer/muxer_end.h"
#include "tests/unit/net_muxer/pipe.h"

enum {
    WINDOW = 262144,
    FRAME_MAX = 65519
};

struct link {
    struct end a;
    struct end b;
    struct pipe from_a;
    struct pipe from_b;
};

static const enum muxer_kind kinds[] = {MUXER_YAMUX, MUXER_MPLEX};

static struct link *link_create(
        enum muxer_kind kind, size_t capacity, const struct muxer_options *limits)
{
    struct link *link = calloc(1, sizeof(*link));
    assert_non_null(link);
    end_init(&link->a, kind, true, limits);
    end_init(&link->b, kind, false, limits);
    link->from_a.capacity = capacity;
    link->from_b.capacity = capacity;
    return link;
}

static void link_destroy(struct link *link)
{
    end_fini(&link->a);
    end_fini(&link->b);
    free(link);
}

/* One step of time: what was on the link arrives, then both send what fits. */
static size_t link_step(struct link *link)
{
    size_t before = link->from_a.length + link->from_b.length;
    assert_int_equal(pipe_drain(&link->from_a, &link->b, PIPE_MAX), STATUS_OK);
    assert_int_equal(pipe_drain(&link->from_b, &link->a, PIPE_MAX), STATUS_OK);
    return before + pipe_fill(&link->from_a, &link->a) + pipe_fill(&link->from_b, &link->b);
}

static size_t link_run(struct link *link)
{
    size_t steps = 0;
    while (link_step(link) > 0) {
        steps++;
    }
    return steps;
}

/* Twelve echo streams each way over 10 KiB; the inbound sides echo. */
static void carries_echo_streams_both_ways_over_a_small_link(void **state)
{
    (void)state;
    enum {
        STREAMS_BOTH = 24,
        BYTES = 300000
    };
    for (int i = 0; i < 2; i++) {
        struct link *link = link_create(kinds[i], 10240, NULL);
        struct end_stream *streams[STREAMS_BOTH];
        link->a.inbound_echoes = true;
        link->b.inbound_echoes = true;
        for (size_t k = 0; k < STREAMS_BOTH; k++) {
            streams[k] = end_open(k % 2 == 0 ? &link->a : &link->b);
            assert_int_equal(end_write_pattern(streams[k], k, BYTES), STATUS_OK);
            muxer_stream_close_write(streams[k]->stream);
        }
        link_run(link);
        for (size_t k = 0; k < STREAMS_BOTH; k++) {
            assert_int_equal(streams[k]->length, BYTES);
            assert_true(end_has_pattern(streams[k], k));
            assert_int_equal(streams[k]->closed, 1);
        }
        link_destroy(link);
    }
}

/* Steps until twelve transfers are done, while one more reader is stopped or not. */
static size_t steps_with_reader_stopped(bool is_stopped)
{
    enum {
        STREAMS = 12,
        BYTES = 400000
    };
    struct link *link = link_create(MUXER_YAMUX, 10240, NULL);
    struct end_stream *extra = end_open(&link->a);
    link_run(link);
    link->b.streams->is_stopped = is_stopped;
    size_t steps = 0;
    assert_int_equal(end_write_pattern(extra, 0, BYTES), STATUS_OK);
    for (size_t k = 0; k < STREAMS; k++) {
        struct end_stream *stream = end_open(&link->a);
        assert_int_equal(end_write_pattern(stream, k, BYTES), STATUS_OK);
        muxer_stream_close_write(stream->stream);
    }
    bool is_done = false;
    while (!is_done) {
        assert_true(link_step(link) > 0);
        steps++;
        is_done = link->b.stream_count == STREAMS + 1;
        for (struct end_stream *each = link->b.streams; each != NULL; each = each->next) {
            is_done = is_done && (each->remote_closed == 1 || each->next == NULL);
        }
    }
    assert_true(!is_stopped || muxer_held(link->b.muxer) <= WINDOW);
    link_destroy(link);
    return steps;
}

static void one_stopped_reader_does_not_slow_the_others(void **state)
{
    (void)state;
    size_t with = steps_with_reader_stopped(true);
    size_t without = steps_with_reader_stopped(false);
    assert_true(with <= without + without / 20);
}

static void carries_one_write_of_any_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, WINDOW - 1, WINDOW, WINDOW + 1, 1 << 20, 10 << 20};
    for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size = sizes[i / 2];
        struct link *link = link_create(kinds[i % 2], FRAME_MAX, NULL);
        link->b.inbound_echoes = true;
        struct end_stream *stream = end_open(&link->a);
        assert_int_equal(end_write_pattern(stream, 5, size), STATUS_OK);
        muxer_stream_close_write(stream->stream);
        link_run(link);
        assert_int_equal(stream->length, size);
        assert_true(end_has_pattern(stream, 5));
        assert_int_equal(stream->closed, 1);
        link_destroy(link);
    }
}

/* The peer sends as fast as it may; the reader takes 1 KiB a second, and after a minute the rest. */
static void holds_at_most_the_window_for_a_slow_reader(void **state)
{
    (void)state;
    enum {
        BYTES = 1 << 20,
        SECONDS = 60
    };
    struct link *link = link_create(MUXER_YAMUX, FRAME_MAX, NULL);
    struct end_stream *writer = end_open(&link->a);
    link_run(link);
    struct end_stream *reader = link->b.streams;
    reader->has_allowance = true;
    assert_int_equal(end_write_pattern(writer, 0, BYTES), STATUS_OK);
    for (uint64_t second = 1; second <= SECONDS; second++) {
        assert_int_equal(muxer_tick(link->a.muxer, second * 1000000000), STATUS_OK);
        assert_int_equal(muxer_tick(link->b.muxer, second * 1000000000), STATUS_OK);
        link_run(link);
        assert_true(muxer_held(link->b.muxer) <= WINDOW);
        reader->allowance = 1024;
        muxer_stream_resume(reader->stream);
    }
    assert_int_equal(reader->length, SECONDS * 1024);
    assert_int_equal(reader->reset, 0);
    reader->has_allowance = false;
    muxer_stream_resume(reader->stream);
    link_run(link);
    assert_int_equal(reader->length, BYTES);
    assert_true(end_has_pattern(reader, 0));
    link_destroy(link);
}

static void returns_no_credit_before_bytes_are_consumed(void **state)
{
    (void)state;
    struct link *link = link_create(MUXER_YAMUX, FRAME_MAX, NULL);
    struct end_stream *writer = end_open(&link->a);
    link_run(link);
    struct end_stream *reader = link->b.streams;
    reader->keeps = true;
    assert_int_equal(end_write_pattern(writer, 0, (size_t)2 * WINDOW), STATUS_OK);
    link_run(link);
    assert_int_equal(reader->length, WINDOW);
    /* seven eighths may be kept for good, as long as the rest is consumed */
    muxer_stream_consumed(reader->stream, WINDOW / 8);
    link_run(link);
    assert_int_equal(reader->length, WINDOW + WINDOW / 8);
    muxer_stream_consumed(reader->stream, WINDOW / 8 - 1);
    link_run(link);
    assert_int_equal(reader->length, WINDOW + WINDOW / 8);
    muxer_stream_consumed(reader->stream, 1);
    link_run(link);
    assert_int_equal(reader->length, WINDOW + WINDOW / 4);
    link_destroy(link);
}

/* Sends until nothing is queued, at half a round trip a way; the window is all that limits it. */
static void run_with_round_trip(struct link *link, uint64_t half_ns)
{
    uint64_t now = 1;
    uint8_t *frames = malloc((size_t)WINDOW * 80);
    assert_non_null(frames);
    while (muxer_queued(link->a.muxer) > 0) {
        size_t length = 0;
        size_t n;
        while ((n = end_output(&link->a, frames + length, FRAME_MAX)) > 0) {
            length += n;
        }
        now += half_ns;
        assert_int_equal(muxer_tick(link->b.muxer, now), STATUS_OK);
        assert_int_equal(end_receive(&link->b, frames, length, FRAME_MAX), STATUS_OK);
        pipe_fill(&link->from_b, &link->b);
        now += half_ns;
        assert_int_equal(muxer_tick(link->a.muxer, now), STATUS_OK);
        assert_int_equal(pipe_drain(&link->from_b, &link->a, PIPE_MAX), STATUS_OK);
    }
    free(frames);
}

/* What still arrives when the reader stops after a long transfer. */
static size_t window_after_transfer(const struct muxer_options *limits)
{
    struct link *link = link_create(MUXER_YAMUX, FRAME_MAX, limits);
    /* a stream that ends gives back by how much its window was larger */
    struct end_stream *writer = end_open(&link->a);
    assert_int_equal(end_write_pattern(writer, 0, 20 << 20), STATUS_OK);
    run_with_round_trip(link, 50000000);
    muxer_stream_reset(writer->stream);
    writer = end_open(&link->a);
    assert_int_equal(end_write_pattern(writer, 0, 60 << 20), STATUS_OK);
    run_with_round_trip(link, 50000000);
    link_run(link);
    link->b.streams->is_stopped = true;
    assert_int_equal(end_write_pattern(writer, 0, 32 << 20), STATUS_OK);
    link_run(link);
    size_t window = muxer_held(link->b.muxer);
    link_destroy(link);
    return window;
}

static void enlarges_the_window_that_limits_the_sender_up_to_its_cap(void **state)
{
    (void)state;
    const struct muxer_options small = {.window_max = 1 << 20};
    const struct muxer_options shared = {.window_growth_max = 100000};
    /* up to half a window is consumed but not announced yet */
    assert_in_range(window_after_transfer(NULL), 8 << 20, 16 << 20);
    assert_in_range(window_after_transfer(&small), 1 << 19, 1 << 20);
    assert_in_range(window_after_transfer(&shared), (WINDOW + 100000) / 2, WINDOW + 100000);
}

/* A window takes ten round trips here: not the window but the reader is the limit. */
static void leaves_the_window_of_a_reader_that_takes_its_time(void **state)
{
    (void)state;
    struct link *link = link_create(MUXER_YAMUX, FRAME_MAX, NULL);
    struct end_stream *writer = end_open(&link->a);
    assert_int_equal(end_write_pattern(writer, 0, 8 << 20), STATUS_OK);
    link->b.inbound_stops = true;
    link_step(link);
    link_step(link);
    struct end_stream *reader = link->b.streams;
    reader->is_stopped = false;
    reader->has_allowance = true;
    for (uint64_t trip = 1; trip <= 200; trip++) {
        assert_int_equal(muxer_tick(link->b.muxer, trip * 100000000), STATUS_OK);
        assert_int_equal(pipe_drain(&link->from_a, &link->b, PIPE_MAX), STATUS_OK);
        reader->allowance = WINDOW / 10;
        muxer_stream_resume(reader->stream);
        pipe_fill(&link->from_b, &link->b);
        assert_int_equal(pipe_drain(&link->from_b, &link->a, PIPE_MAX), STATUS_OK);
        while (pipe_fill(&link->from_a, &link->a) > 0) {
            assert_int_equal(pipe_drain(&link->from_a, &link->b, PIPE_MAX), STATUS_OK);
        }
        assert_true(muxer_held(link->b.muxer) <= WINDOW);
    }
    assert_true(reader->length > (size_t)10 * WINDOW);
    assert_true(muxer_rtt_ns(link->b.muxer) != UINT64_MAX);
    link_destroy(link);
}

/* The difference between the stream of end that received most and the one that received least. */
static size_t spread_of(const struct end *end)
{
    size_t least = SIZE_MAX;
    size_t most = 0;
    for (const struct end_stream *each = end->streams; each != NULL; each = each->next) {
        least = each->length < least ? each->length : least;
        most = each->length > most ? each->length : most;
    }
    return most - least;
}

static void takes_turns_between_streams_that_all_have_bytes(void **state)
{
    (void)state;
    enum {
        STREAMS = 5
    };
    for (int i = 0; i < 2; i++) {
        struct link *link = link_create(kinds[i], FRAME_MAX, NULL);
        for (size_t k = 0; k < STREAMS; k++) {
            assert_int_equal(end_write_pattern(end_open(&link->a), k, 200000), STATUS_OK);
        }
        for (int round = 0; round < 10; round++) {
            link_step(link);
            assert_true(spread_of(&link->b) <= (size_t)2 * 16384);
        }
        assert_true(link->b.streams->length > 0);
        link_destroy(link);
    }
}

static void control_frames_pass_queued_data(void **state)
{
    (void)state;
    static const uint8_t ping[] = {0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9};
    static const uint8_t pong[] = {0, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9};
    uint8_t out[1000];
    struct end a;
    end_init(&a, MUXER_YAMUX, true, NULL);
    struct end_stream *stream = end_open(&a);
    assert_int_equal(end_write_pattern(stream, 0, 200000), STATUS_OK);
    assert_true(end_output(&a, out, sizeof(out)) > 900);
    assert_int_equal(end_receive(&a, ping, sizeof(ping), 0), STATUS_OK);
    assert_true(end_output(&a, out, sizeof(out)) > 900);
    assert_memory_equal(out, pong, sizeof(pong));
    end_fini(&a);
}

/* Output in frames of every small size, and input cut at every place, give the same bytes. */
static void survives_a_cut_at_every_offset(void **state)
{
    (void)state;
    static uint8_t wire[8192];
    for (size_t i = 0; i < 600; i++) {
        size_t max_bytes = 32 + i / 2;
        size_t length = 0;
        size_t n;
        struct end a;
        struct end b;
        end_init(&a, kinds[i % 2], true, NULL);
        end_init(&b, kinds[i % 2], false, NULL);
        struct end_stream *first = end_open(&a);
        struct end_stream *second = end_open(&a);
        assert_int_equal(end_write_pattern(first, 1, 100), STATUS_OK);
        assert_int_equal(end_write_pattern(first, 101, 57), STATUS_OK);
        assert_int_equal(end_write_pattern(second, 2, 300), STATUS_OK);
        muxer_stream_close_write(first->stream);
        muxer_stream_close_write(second->stream);
        while ((n = end_output(&a, wire + length, max_bytes)) > 0) {
            length += n;
        }
        size_t cut = (i / 2) % length;
        assert_int_equal(end_receive(&b, wire, cut, 0), STATUS_OK);
        assert_int_equal(end_receive(&b, wire + cut, length - cut, 0), STATUS_OK);
        const struct end_stream *second_at_b = b.streams;
        const struct end_stream *first_at_b = b.streams->next;
        assert_int_equal(first_at_b->length, 157);
        assert_true(end_has_pattern(first_at_b, 1));
        assert_int_equal(second_at_b->length, 300);
        assert_true(end_has_pattern(second_at_b, 2));
        assert_int_equal(first_at_b->remote_closed + second_at_b->remote_closed, 2);
        end_fini(&a);
        end_fini(&b);
    }
}

static void gives_nothing_without_room_for_a_frame(void **state)
{
    (void)state;
    struct span pieces[4];
    struct end a;
    end_init(&a, MUXER_YAMUX, true, NULL);
    struct end_stream *stream = end_open(&a);
    assert_int_equal(end_write_pattern(stream, 0, 100), STATUS_OK);
    assert_int_equal(muxer_output(a.muxer, pieces, 4, 31), 0);
    assert_int_equal(muxer_output(a.muxer, pieces, 1, 1000), 0);
    assert_true(muxer_wants_output(a.muxer));
    assert_int_equal(muxer_output(a.muxer, pieces, 2, 1000), 2);
    muxer_output_done(a.muxer);
    end_fini(&a);
}

/* One exchange in ten is cut off half-way. */
static void exchange_once(struct link *link, int cycle)
{
    struct end_stream *stream = end_open(&link->a);
    assert_int_equal(end_write_pattern(stream, 0, 100), STATUS_OK);
    if (cycle % 10 == 9) {
        link_step(link);
        muxer_stream_reset(stream->stream);
        stream->stream = NULL;
    } else {
        muxer_stream_close_write(stream->stream);
    }
}

static void exchange_some(struct link *link, int cycle, int count)
{
    for (int k = 0; k < count; k++) {
        exchange_once(link, cycle + k);
    }
    link_run(link);
}

static void open_streams_never_exceed_those_in_flight(void **state)
{
    (void)state;
    enum {
        CYCLES = 10000,
        IN_FLIGHT = 4
    };
    for (int i = 0; i < 2; i++) {
        struct link *link = link_create(kinds[i], 10240, NULL);
        link->b.inbound_echoes = true;
        for (int cycle = 0; cycle < CYCLES; cycle += IN_FLIGHT) {
            exchange_some(link, cycle, IN_FLIGHT);
            assert_int_equal(muxer_stream_count(link->a.muxer), 0);
            assert_int_equal(muxer_stream_count(link->b.muxer), 0);
        }
        assert_in_range(link->a.open_max, 1, IN_FLIGHT);
        assert_in_range(link->b.open_max, 1, IN_FLIGHT);
        assert_int_equal(muxer_queued(link->a.muxer) + muxer_queued(link->b.muxer), 0);
        assert_int_equal(muxer_held(link->a.muxer) + muxer_held(link->b.muxer), 0);
        link_destroy(link);
    }
}

static void pauses_and_then_resets_when_all_streams_together_hold_too_much(void **state)
{
    (void)state;
    const struct muxer_options limits = {.held_bytes_max = (size_t)2 * WINDOW};
    struct link *link = link_create(MUXER_YAMUX, FRAME_MAX, &limits);
    struct end_stream *streams[3];
    link->b.inbound_stops = true;
    for (size_t k = 0; k < 3; k++) {
        streams[k] = end_open(&link->a);
        assert_int_equal(end_write_pattern(streams[k], 0, 200000), STATUS_OK);
    }
    link_run(link);
    assert_true(link->b.pauses > 0);
    assert_int_equal(streams[0]->reset + streams[1]->reset + streams[2]->reset, 1);
    assert_int_equal(muxer_held(link->b.muxer), 400000);
    link_destroy(link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(carries_echo_streams_both_ways_over_a_small_link),
            cmocka_unit_test(one_stopped_reader_does_not_slow_the_others),
            cmocka_unit_test(carries_one_write_of_any_size),
            cmocka_unit_test(holds_at_most_the_window_for_a_slow_reader),
            cmocka_unit_test(returns_no_credit_before_bytes_are_consumed),
            cmocka_unit_test(enlarges_the_window_that_limits_the_sender_up_to_its_cap),
            cmocka_unit_test(leaves_the_window_of_a_reader_that_takes_its_time),
            cmocka_unit_test(takes_turns_between_streams_that_all_have_bytes),
            cmocka_unit_test(control_frames_pass_queued_data),
            cmocka_unit_test(survives_a_cut_at_every_offset),
            cmocka_unit_test(gives_nothing_without_room_for_a_frame),
            cmocka_unit_test(open_streams_never_exceed_those_in_flight),
            cmocka_unit_test(pauses_and_then_resets_when_all_streams_together_hold_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
