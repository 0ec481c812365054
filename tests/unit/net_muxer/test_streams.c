/* SPDX-License-Identifier: MIT */

/* The life of streams in both protocols: half-close and reset in every order, and from callbacks. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/net_muxer/muxer_end.h"

struct pair {
    struct end a;
    struct end b;
};

static void pair_init(struct pair *pair, enum muxer_kind kind)
{
    end_init(&pair->a, kind, true, NULL);
    end_init(&pair->b, kind, false, NULL);
}

static void pair_fini(struct pair *pair)
{
    end_fini(&pair->a);
    end_fini(&pair->b);
}

static void exchange(struct pair *pair)
{
    assert_true(end_exchange(&pair->a, &pair->b));
}

/* Both ends of a stream that a opened and b knows of. */
static void open_both(struct pair *pair, struct end_stream **a, struct end_stream **b)
{
    *a = end_open(&pair->a);
    exchange(pair);
    *b = pair->b.streams;
}

enum act {
    CLOSE_A,
    CLOSE_B,
    RESET_A,
    RESET_B
};

static void perform(enum act act, struct end_stream *a, struct end_stream *b)
{
    struct end_stream *stream = act == CLOSE_A || act == RESET_A ? a : b;
    if (stream->stream == NULL) {
        return;
    }
    if (act == CLOSE_A || act == CLOSE_B) {
        muxer_stream_close_write(stream->stream);
    } else {
        muxer_stream_reset(stream->stream);
        stream->stream = NULL;
    }
}

static void check_end(const struct end_stream *stream, const enum act acts[2], enum act own_reset)
{
    bool resets_itself = acts[0] == own_reset || acts[1] == own_reset;
    assert_true(stream->stream == NULL);
    /* one last event, or none for who reset it before it could come */
    assert_true(stream->closed + stream->reset <= 1);
    assert_true(stream->closed + stream->reset == 1 || resets_itself);
    assert_true(stream->remote_closed <= 1);
}

static void try_two_acts(enum muxer_kind kind, const enum act acts[2], bool exchange_between)
{
    struct pair pair;
    struct end_stream *a;
    struct end_stream *b;
    pair_init(&pair, kind);
    open_both(&pair, &a, &b);
    assert_int_equal(end_write(a, "from a", 6), STATUS_OK);
    assert_int_equal(end_write(b, "from b", 6), STATUS_OK);
    exchange(&pair);
    perform(acts[0], a, b);
    if (exchange_between) {
        exchange(&pair);
    }
    perform(acts[1], a, b);
    exchange(&pair);
    if (acts[0] != acts[1] || acts[0] == RESET_A || acts[0] == RESET_B) {
        check_end(a, acts, RESET_A);
        check_end(b, acts, RESET_B);
        assert_int_equal(muxer_stream_count(pair.a.muxer), 0);
        assert_int_equal(muxer_stream_count(pair.b.muxer), 0);
    } else {
        assert_int_equal(muxer_stream_count(pair.a.muxer), 1);
        assert_int_equal(muxer_stream_count(pair.b.muxer), 1);
    }
    assert_int_equal(a->length, 6);
    assert_int_equal(b->length, 6);
    pair_fini(&pair);
}

static void ends_once_in_every_order_of_half_close_and_reset(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * 2 * 16; i++) {
        const enum act acts[2] = {(enum act)(i & 3), (enum act)(i >> 2 & 3)};
        try_two_acts((i & 16) != 0 ? MUXER_MPLEX : MUXER_YAMUX, acts, (i & 32) != 0);
    }
}

static const enum muxer_kind kinds[] = {MUXER_YAMUX, MUXER_MPLEX};

static void delivers_what_was_written_before_the_half_close(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pair pair;
        pair_init(&pair, kinds[i]);
        struct end_stream *a = end_open(&pair.a);
        pair.b.inbound_echoes = true;
        assert_int_equal(end_write_pattern(a, 0, 1000000), STATUS_OK);
        muxer_stream_close_write(a->stream);
        assert_int_equal(end_write(a, "x", 1), STATUS_CLOSED);
        exchange(&pair);
        assert_int_equal(a->length, 1000000);
        assert_true(end_has_pattern(a, 0));
        assert_int_equal(a->closed, 1);
        assert_int_equal(pair.b.streams->closed, 1);
        pair_fini(&pair);
    }
}

static void tells_when_a_pending_stream_is_gone(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pair pair;
        struct end_stream *a;
        struct end_stream *b;
        pair_init(&pair, kinds[i]);
        pair.b.accepts = false;
        open_both(&pair, &a, &b);
        muxer_stream_reset(a->stream);
        exchange(&pair);
        assert_int_equal(b->reset, 1);
        a = end_open(&pair.a);
        exchange(&pair);
        muxer_destroy(&pair.b.muxer);
        assert_int_equal(pair.b.streams->reset, 1);
        pair_fini(&pair);
    }
}

static void keeps_order_when_bytes_come_before_the_resume(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pair pair;
        struct end_stream *a;
        struct end_stream *b;
        pair_init(&pair, kinds[i]);
        pair.b.inbound_stops = true;
        open_both(&pair, &a, &b);
        assert_int_equal(end_write_pattern(a, 0, 10), STATUS_OK);
        exchange(&pair);
        b->is_stopped = false;
        assert_int_equal(end_write_pattern(a, 10, 10), STATUS_OK);
        exchange(&pair);
        assert_int_equal(b->length, 0);
        muxer_stream_resume(b->stream);
        assert_int_equal(b->length, 20);
        assert_true(end_has_pattern(b, 0));
        pair_fini(&pair);
    }
}

static void holds_the_half_close_until_held_bytes_are_delivered(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pair pair;
        pair_init(&pair, kinds[i]);
        pair.b.inbound_stops = true;
        struct end_stream *a = end_open(&pair.a);
        assert_int_equal(end_write_pattern(a, 0, 5000), STATUS_OK);
        muxer_stream_close_write(a->stream);
        exchange(&pair);
        struct end_stream *b = pair.b.streams;
        assert_int_equal(muxer_held(pair.b.muxer), 5000);
        assert_int_equal(b->remote_closed, 0);
        b->is_stopped = false;
        b->reserve_max = 7;
        muxer_stream_resume(b->stream);
        assert_int_equal(b->length, 5000);
        assert_true(end_has_pattern(b, 0));
        assert_int_equal(b->remote_closed, 1);
        assert_int_equal(muxer_held(pair.b.muxer), 0);
        pair_fini(&pair);
    }
}

static void says_nothing_of_a_stream_that_is_reset_before_it_was_sent(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pair pair;
        pair_init(&pair, kinds[i]);
        struct end_stream *a = end_open(&pair.a);
        assert_int_equal(end_write(a, "never", 5), STATUS_OK);
        muxer_stream_reset(a->stream);
        assert_int_equal(pair.a.pieces_released, 1);
        assert_false(muxer_wants_output(pair.a.muxer));
        pair_fini(&pair);
    }
}

static void releases_each_piece_once_it_is_sent(void **state)
{
    (void)state;
    uint8_t out[1024];
    struct end a;
    end_init(&a, MUXER_MPLEX, true, NULL);
    struct end_stream *stream = end_open(&a);
    assert_int_equal(end_write_pattern(stream, 0, 1500), STATUS_OK);
    assert_int_equal(end_write_pattern(stream, 0, 10), STATUS_OK);
    assert_int_equal(end_write(stream, NULL, 0), STATUS_OK);
    assert_int_equal(a.pieces_released, 1); /* the empty one */
    assert_int_equal(muxer_stream_queued(stream->stream), 1510);
    assert_true(end_output(&a, out, sizeof(out)) > 1000);
    assert_int_equal(a.pieces_released, 1);
    assert_true(end_output(&a, out, sizeof(out)) > 0);
    assert_int_equal(a.pieces_released, 3);
    assert_int_equal(muxer_queued(a.muxer), 0);
    end_fini(&a);
}

static void keeps_spans_valid_when_their_stream_is_reset_before_done(void **state)
{
    (void)state;
    struct end a;
    struct span pieces[8];
    end_init(&a, MUXER_YAMUX, true, NULL);
    struct end_stream *stream = end_open(&a);
    assert_int_equal(end_write_pattern(stream, 0, 3000), STATUS_OK);
    assert_int_equal(muxer_output(a.muxer, pieces, 8, 2000), 2);
    muxer_stream_reset(stream->stream);
    assert_int_equal(a.pieces_released, 0);
    for (size_t i = 0; i < pieces[1].length; i++) {
        assert_int_equal(pieces[1].bytes[i], end_pattern(i));
    }
    muxer_output_done(a.muxer);
    assert_int_equal(a.pieces_released, 1);
    end_fini(&a);
}

static void refuses_to_queue_more_than_the_limit_and_takes_nothing(void **state)
{
    (void)state;
    const struct muxer_options limits = {.queued_bytes_max = 1000};
    struct end a;
    end_init(&a, MUXER_YAMUX, true, &limits);
    struct end_stream *first = end_open(&a);
    struct end_stream *second = end_open(&a);
    assert_int_equal(end_write_pattern(first, 0, 600), STATUS_OK);
    assert_int_equal(end_write_pattern(second, 0, 401), STATUS_LIMIT_REACHED);
    assert_int_equal(end_write_pattern(second, 0, 400), STATUS_OK);
    assert_int_equal(muxer_queued(a.muxer), 1000);
    muxer_stream_reset(first->stream);
    assert_int_equal(muxer_queued(a.muxer), 400);
    end_fini(&a);
}

static void tells_when_queued_bytes_fall_below_the_mark(void **state)
{
    (void)state;
    uint8_t out[2000];
    const struct muxer_options limits = {.low_water_bytes = 1000};
    struct end a;
    end_init(&a, MUXER_MPLEX, true, &limits);
    struct end_stream *stream = end_open(&a);
    assert_int_equal(end_write_pattern(stream, 0, 999), STATUS_OK);
    end_output(&a, out, sizeof(out));
    assert_int_equal(stream->writable, 0);
    assert_int_equal(end_write_pattern(stream, 0, 4000), STATUS_OK);
    end_output(&a, out, sizeof(out));
    assert_int_equal(stream->writable, 0);
    end_output(&a, out, sizeof(out));
    assert_int_equal(stream->writable, 1);
    end_output(&a, out, sizeof(out));
    assert_int_equal(stream->writable, 1);
    end_fini(&a);
}

static void tells_of_output_once_until_it_ran_dry(void **state)
{
    (void)state;
    uint8_t out[64];
    struct end a;
    end_init(&a, MUXER_YAMUX, true, NULL);
    struct end_stream *stream = end_open(&a);
    assert_int_equal(a.output_ready, 1);
    assert_int_equal(end_write_pattern(stream, 0, 100), STATUS_OK);
    assert_int_equal(a.output_ready, 1);
    while (end_output(&a, out, sizeof(out)) > 0) {
    }
    assert_int_equal(end_write_pattern(stream, 0, 100), STATUS_OK);
    assert_int_equal(a.output_ready, 2);
    end_fini(&a);
}

static void resets_every_stream_when_destroyed(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pair pair;
        struct end_stream *a;
        struct end_stream *b;
        pair_init(&pair, kinds[i]);
        open_both(&pair, &a, &b);
        assert_int_equal(end_write_pattern(a, 0, 100), STATUS_OK);
        muxer_destroy(&pair.a.muxer);
        assert_null(pair.a.muxer);
        assert_int_equal(a->reset, 1);
        assert_int_equal(a->reason, STATUS_CLOSED);
        assert_int_equal(pair.a.pieces_released, 1);
        pair_fini(&pair);
    }
}

/* ---- from callbacks ---- */

static void reset_self(struct end_stream *stream)
{
    muxer_stream_reset(stream->stream);
    stream->stream = NULL;
}

static void reset_all(struct end_stream *stream)
{
    for (struct end_stream *each = stream->end->streams; each != NULL; each = each->next) {
        if (each->stream != NULL) {
            reset_self(each);
        }
    }
}

static void destroy(struct end_stream *stream)
{
    muxer_destroy(&stream->end->muxer);
}

static void close_self(struct end_stream *stream)
{
    muxer_stream_close_write(stream->stream);
}

static void try_from_commit(enum muxer_kind kind, void (*act)(struct end_stream *))
{
    struct pair pair;
    struct end_stream *a;
    struct end_stream *b;
    uint8_t frame[4096];
    pair_init(&pair, kind);
    open_both(&pair, &a, &b);
    struct end_stream *other = end_open(&pair.a);
    exchange(&pair);
    b->on_commit = act;
    b->reserve_max = 100;
    assert_int_equal(end_write_pattern(a, 0, 1000), STATUS_OK);
    assert_int_equal(end_write_pattern(other, 0, 500), STATUS_OK);
    size_t n = end_output(&pair.a, frame, sizeof(frame));
    enum status status = end_receive(&pair.b, frame, n, 0);
    if (act == destroy) {
        assert_int_equal(status, STATUS_CLOSED);
        assert_int_equal(b->reset, 1);
        assert_int_equal(b->length, 100);
    } else {
        assert_int_equal(status, STATUS_OK);
        exchange(&pair);
        assert_int_equal(b->length, act == close_self ? 1000 : 100);
        assert_int_equal(pair.b.streams->length, act == reset_all ? 0 : 500);
        assert_int_equal(a->reset, act != close_self);
        assert_int_equal(a->remote_closed, act == close_self);
    }
    pair_fini(&pair);
}

static void may_close_reset_and_destroy_inside_commit(void **state)
{
    (void)state;
    static void (*const acts[])(struct end_stream *) = {close_self, reset_self, reset_all, destroy};
    for (size_t i = 0; i < 8; i++) {
        try_from_commit(kinds[i % 2], acts[i / 2]);
    }
}

static void stop_self(struct end_stream *stream)
{
    stream->is_stopped = true;
    reset_self(stream);
}

static void may_reset_and_destroy_inside_reserve(void **state)
{
    (void)state;
    static void (*const acts[])(struct end_stream *) = {reset_self, stop_self, destroy};
    for (size_t i = 0; i < 6; i++) {
        struct pair pair;
        struct end_stream *a;
        struct end_stream *b;
        uint8_t frame[256];
        pair_init(&pair, kinds[i % 2]);
        open_both(&pair, &a, &b);
        b->on_reserve = acts[i / 2];
        assert_int_equal(end_write(a, "lost", 4), STATUS_OK);
        size_t n = end_output(&pair.a, frame, sizeof(frame));
        assert_int_equal(end_receive(&pair.b, frame, n, 0), i / 2 == 2 ? STATUS_CLOSED : STATUS_OK);
        assert_int_equal(b->length, 0);
        assert_true(pair.b.muxer == NULL || muxer_held(pair.b.muxer) == 0);
        pair_fini(&pair);
    }
}

static void may_reset_and_destroy_while_held_bytes_are_delivered(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct pair pair;
        struct end_stream *a;
        struct end_stream *b;
        pair_init(&pair, kinds[i % 2]);
        pair.b.inbound_stops = true;
        open_both(&pair, &a, &b);
        assert_int_equal(end_write_pattern(a, 0, 10000), STATUS_OK);
        exchange(&pair);
        b->is_stopped = false;
        b->reserve_max = 10;
        b->on_commit = i < 2 ? reset_self : destroy;
        muxer_stream_resume(b->stream);
        assert_int_equal(b->length, 10);
        pair_fini(&pair);
    }
}

static void may_reset_and_destroy_when_told_of_a_half_close(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct pair pair;
        struct end_stream *a;
        struct end_stream *b;
        uint8_t frame[256];
        pair_init(&pair, kinds[i % 2]);
        open_both(&pair, &a, &b);
        b->on_remote_closed = i < 2 ? reset_self : destroy;
        muxer_stream_close_write(a->stream);
        size_t n = end_output(&pair.a, frame, sizeof(frame));
        assert_int_equal(end_receive(&pair.b, frame, n, 0), i < 2 ? STATUS_OK : STATUS_CLOSED);
        assert_int_equal(b->remote_closed, 1);
        pair_fini(&pair);
    }
}

static void may_refuse_and_destroy_when_a_stream_is_opened(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct pair pair;
        uint8_t frame[256];
        pair_init(&pair, kinds[i % 2]);
        pair.b.on_opened = i < 2 ? reset_self : destroy;
        struct end_stream *a = end_open(&pair.a);
        assert_int_equal(end_write(a, "data", 4), STATUS_OK);
        size_t n = end_output(&pair.a, frame, sizeof(frame));
        assert_int_equal(end_receive(&pair.b, frame, n, 0), i < 2 ? STATUS_OK : STATUS_CLOSED);
        assert_int_equal(pair.b.streams->length, 0);
        if (i < 2) {
            exchange(&pair);
            assert_int_equal(a->reset, 1);
        }
        pair_fini(&pair);
    }
}

static void open_another(struct end_stream *stream)
{
    stream->on_gone = NULL;
    struct end_stream *next = end_open(stream->end);
    assert_int_equal(end_write(next, "again", 5), STATUS_OK);
}

static void may_open_and_write_when_another_stream_ends(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pair pair;
        struct end_stream *a;
        struct end_stream *b;
        pair_init(&pair, kinds[i]);
        open_both(&pair, &a, &b);
        a->on_gone = open_another;
        reset_self(b);
        exchange(&pair);
        assert_int_equal(a->reset, 1);
        assert_int_equal(pair.b.stream_count, 2);
        assert_int_equal(pair.b.streams->length, 5);
        pair_fini(&pair);
    }
}

static void destroy_end(struct end *end)
{
    end->on_release = NULL;
    end->on_output_ready = NULL;
    muxer_destroy(&end->muxer);
}

static void may_destroy_when_a_piece_is_released(void **state)
{
    (void)state;
    uint8_t frame[2048];
    struct span pieces[8];
    struct end a;
    end_init(&a, MUXER_YAMUX, true, NULL);
    struct end_stream *stream = end_open(&a);
    assert_int_equal(end_write_pattern(stream, 0, 100), STATUS_OK);
    assert_int_equal(end_write_pattern(stream, 0, 10000), STATUS_OK);
    a.on_release = destroy_end;
    struct muxer *muxer = a.muxer;
    assert_true(muxer_output(muxer, pieces, 8, sizeof(frame)) > 0);
    muxer_output_done(muxer);
    assert_null(a.muxer);
    assert_int_equal(stream->reset, 1);
    end_fini(&a);
}

static void may_destroy_when_told_of_output(void **state)
{
    (void)state;
    struct end b;
    static const uint8_t ping[] = {0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7};
    end_init(&b, MUXER_YAMUX, false, NULL);
    b.on_output_ready = destroy_end;
    assert_int_equal(end_receive(&b, ping, sizeof(ping), 0), STATUS_OK);
    assert_null(b.muxer);
    end_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(ends_once_in_every_order_of_half_close_and_reset),
            cmocka_unit_test(delivers_what_was_written_before_the_half_close),
            cmocka_unit_test(tells_when_a_pending_stream_is_gone),
            cmocka_unit_test(keeps_order_when_bytes_come_before_the_resume),
            cmocka_unit_test(holds_the_half_close_until_held_bytes_are_delivered),
            cmocka_unit_test(says_nothing_of_a_stream_that_is_reset_before_it_was_sent),
            cmocka_unit_test(releases_each_piece_once_it_is_sent),
            cmocka_unit_test(keeps_spans_valid_when_their_stream_is_reset_before_done),
            cmocka_unit_test(refuses_to_queue_more_than_the_limit_and_takes_nothing),
            cmocka_unit_test(tells_when_queued_bytes_fall_below_the_mark),
            cmocka_unit_test(tells_of_output_once_until_it_ran_dry),
            cmocka_unit_test(resets_every_stream_when_destroyed),
            cmocka_unit_test(may_close_reset_and_destroy_inside_commit),
            cmocka_unit_test(may_reset_and_destroy_inside_reserve),
            cmocka_unit_test(may_reset_and_destroy_while_held_bytes_are_delivered),
            cmocka_unit_test(may_reset_and_destroy_when_told_of_a_half_close),
            cmocka_unit_test(may_refuse_and_destroy_when_a_stream_is_opened),
            cmocka_unit_test(may_open_and_write_when_another_stream_ends),
            cmocka_unit_test(may_destroy_when_a_piece_is_released),
            cmocka_unit_test(may_destroy_when_told_of_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
