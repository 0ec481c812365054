/* SPDX-License-Identifier: MIT */

/* What connections and streams cost: memory while idle, copies and allocations while busy. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/metrics.h"
#include "net/muxer/muxer_options.h"

enum {
    FRAME_MAX = 65519,
    PIECES_MAX = 64
};

static uint8_t place[FRAME_MAX];
static uint8_t bytes[1000];

static uint64_t count_of(enum metric metric)
{
    return metrics_sum(NULL, metric);
}

static size_t reserve(void *context, size_t wanted, uint8_t **to)
{
    (void)context;
    (void)wanted;
    *to = place;
    return sizeof(place);
}

static void commit(void *context, size_t n)
{
    muxer_stream_consumed(*(struct muxer_stream **)context, n);
}

static void ignore(void *context)
{
    (void)context;
}

static void ignore_reset(void *context, enum status reason)
{
    (void)context;
    (void)reason;
}

static const struct muxer_stream_events events = {
        .reserve = reserve,
        .commit = commit,
        .remote_closed = ignore,
        .writable = ignore,
        .closed = ignore,
        .reset = ignore_reset,
};

static struct muxer_stream *inbound;

static void opened(void *context, struct muxer_stream *stream)
{
    (void)context;
    inbound = stream;
    muxer_stream_set_events(stream, &events, &inbound);
}

static const struct muxer_options options = {.events = {.stream_opened = opened}};

static void an_idle_connection_takes_less_than_a_kibibyte(void **state)
{
    (void)state;
    struct muxer *muxer;
    struct muxer_stream *stream;
    uint64_t before = count_of(METRIC_ALLOCATED_BYTES);
    assert_int_equal(muxer_create(&muxer, MUXER_YAMUX, true, &options), STATUS_OK);
    assert_int_equal(muxer_open_stream(muxer, &stream, &events, &stream), STATUS_OK);
    assert_int_equal(muxer_open_stream(muxer, &stream, &events, &stream), STATUS_OK);
    assert_in_range(count_of(METRIC_ALLOCATED_BYTES) - before, 1, 1024);
    muxer_destroy(&muxer);
}

static void read_bytes(void *context, uint8_t *to, size_t n)
{
    const uint8_t **from = context;
    memcpy(to, *from, n);
    *from += n;
}

static void move(struct muxer *from, struct muxer *to)
{
    static uint8_t frame[FRAME_MAX];
    struct span pieces[PIECES_MAX];
    size_t count;
    while ((count = muxer_output(from, pieces, PIECES_MAX, FRAME_MAX)) > 0) {
        size_t length = 0;
        for (size_t i = 0; i < count; i++) {
            memcpy(frame + length, pieces[i].bytes, pieces[i].length);
            length += pieces[i].length;
        }
        muxer_output_done(from);
        const uint8_t *next = frame;
        struct muxer_source source = {.remaining = length, .read = read_bytes, .context = &next};
        assert_int_equal(muxer_receive(to, &source), STATUS_OK);
    }
}

static void write_messages(
        struct muxer *a, struct muxer *b, struct muxer_stream *stream, uint64_t now_ns)
{
    const struct muxer_piece piece = {.bytes = span_of(bytes, sizeof(bytes))};
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(muxer_tick(a, now_ns), STATUS_OK);
        assert_int_equal(muxer_stream_write(stream, &piece, 1), STATUS_OK);
        move(a, b);
        move(b, a);
    }
}

static void messages_on_an_open_stream_are_neither_copied_nor_cost_an_allocation(void **state)
{
    (void)state;
    static const enum muxer_kind kinds[] = {MUXER_YAMUX, MUXER_MPLEX};
    for (int i = 0; i < 2; i++) {
        struct muxer *a;
        struct muxer *b;
        struct muxer_stream *stream;
        assert_int_equal(muxer_create(&a, kinds[i], true, &options), STATUS_OK);
        assert_int_equal(muxer_create(&b, kinds[i], false, &options), STATUS_OK);
        assert_int_equal(muxer_open_stream(a, &stream, &events, &stream), STATUS_OK);
        write_messages(a, b, stream, 1);
        uint64_t copies = count_of(METRIC_COPIES);
        uint64_t allocations = count_of(METRIC_ALLOCATIONS);
        write_messages(a, b, stream, 1);
        assert_int_equal(count_of(METRIC_COPIES), copies);
        assert_int_equal(count_of(METRIC_ALLOCATIONS), allocations);
        muxer_destroy(&a);
        muxer_destroy(&b);
    }
}

static void gives_the_output_memory_back_when_idle(void **state)
{
    (void)state;
    struct muxer *a;
    struct muxer *b;
    struct muxer_stream *stream;
    assert_int_equal(muxer_create(&a, MUXER_YAMUX, true, &options), STATUS_OK);
    assert_int_equal(muxer_create(&b, MUXER_YAMUX, false, &options), STATUS_OK);
    assert_int_equal(muxer_open_stream(a, &stream, &events, &stream), STATUS_OK);
    write_messages(a, b, stream, 1);
    uint64_t allocations = count_of(METRIC_ALLOCATIONS);
    write_messages(a, b, stream, 2000000000);
    assert_int_equal(count_of(METRIC_ALLOCATIONS), allocations + 1); /* taken anew, once */
    muxer_destroy(&a);
    muxer_destroy(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(an_idle_connection_takes_less_than_a_kibibyte),
            cmocka_unit_test(messages_on_an_open_stream_are_neither_copied_nor_cost_an_allocation),
            cmocka_unit_test(gives_the_output_memory_back_when_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
