/* SPDX-License-Identifier: MIT */

/*
 * Two muxers and a small link, driven by random acts from a seed. The model is what was asked for:
 * every byte that arrives is the next one its stream wrote; when nothing is reset, all of them and
 * each half-close arrive; every stream ends as its acts say; nothing is left behind.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/net_muxer/muxer_end.h"
#include "tests/unit/net_muxer/pipe.h"

enum {
    SEEDS = 60,
    ACTS = 600,
    STREAMS_MAX = 400
};

/* What the model knows of one end of a stream, in the order of end->streams. */
struct side {
    struct end_stream *stream;
    uint64_t written;
    bool has_closed;
    bool has_reset;
};

struct model {
    uint64_t random;
    uint64_t now;
    struct end ends[2];
    struct pipe from[2];
    struct side sides[2][STREAMS_MAX];
    size_t side_counts[2];
};

static struct model *current;

static uint32_t random_below(struct model *model, uint32_t limit)
{
    model->random = model->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(model->random >> 33) % limit;
}

static size_t index_of(const struct model *model, const struct end *end)
{
    return end == &model->ends[0] ? 0 : 1;
}

/* Both ends of a stream and both directions have patterns of their own. */
static uint64_t pattern_start(const struct model *model, const struct end_stream *sender)
{
    uint64_t opener = index_of(model, sender->end) ^ (sender->is_outbound ? 0U : 1U);
    return (sender->id * 4 + opener * 2 + (sender->is_outbound ? 1U : 0U)) << 32;
}

static struct side *find_side(struct model *model, const struct end_stream *stream)
{
    size_t i = index_of(model, stream->end);
    for (size_t k = 0; k < model->side_counts[i]; k++) {
        if (model->sides[i][k].stream == stream) {
            return &model->sides[i][k];
        }
    }
    return NULL;
}

static void add_side(struct model *model, struct end_stream *stream)
{
    size_t i = index_of(model, stream->end);
    assert_true(model->side_counts[i] < STREAMS_MAX);
    model->sides[i][model->side_counts[i]++] = (struct side){.stream = stream};
}

static void do_write(struct model *model, struct side *side, size_t n)
{
    uint64_t start = pattern_start(model, side->stream) + side->written;
    enum status status = end_write_pattern(side->stream, start, n);
    if (status == STATUS_OK) {
        side->written += n;
    } else {
        assert_true(side->has_closed);
    }
}

static void do_reset(struct side *side)
{
    muxer_stream_reset(side->stream->stream);
    side->stream->stream = NULL;
    side->has_reset = true;
}

static void do_close(struct side *side)
{
    muxer_stream_close_write(side->stream->stream);
    side->has_closed = true;
}

/* In the middle of a delivery, now and then, anything may happen. */
static void act_inside(struct end_stream *stream)
{
    struct model *model = current;
    struct side *side = find_side(model, stream);
    switch (random_below(model, 40)) {
    case 0:
        do_reset(side);
        break;
    case 1:
        do_close(side);
        break;
    case 2:
        do_write(model, side, random_below(model, 3000));
        break;
    default:
        break;
    }
}

static void configure(struct model *model, struct end_stream *stream)
{
    static const size_t reserves[] = {0, 0, 1000, 7, 1};
    stream->reserve_max = reserves[random_below(model, 5)];
    stream->is_stopped = random_below(model, 8) == 0;
    stream->on_commit = act_inside;
}

static void on_opened(struct end_stream *stream)
{
    struct model *model = current;
    add_side(model, stream);
    configure(model, stream);
    if (random_below(model, 2) == 0) {
        end_accept(stream);
    }
}

static void act_open(struct model *model, size_t i)
{
    struct end_stream *stream;
    if (model->side_counts[0] > STREAMS_MAX / 2 || model->side_counts[1] > STREAMS_MAX / 2) {
        return;
    }
    if (end_try_open(&model->ends[i], &stream) == STATUS_OK) {
        add_side(model, stream);
        configure(model, stream);
    }
}

static void accept_and_resume(struct end_stream *stream)
{
    if (!stream->is_accepted) {
        end_accept(stream);
    }
    stream->is_stopped = false;
    muxer_stream_resume(stream->stream);
}

static void act_on_stream(struct model *model, size_t i)
{
    if (model->side_counts[i] == 0) {
        return;
    }
    struct side *side = &model->sides[i][random_below(model, (uint32_t)model->side_counts[i])];
    if (side->stream->stream == NULL) {
        return;
    }
    switch (random_below(model, 10)) {
    case 0:
        do_close(side);
        break;
    case 1:
        if (random_below(model, 3) == 0) {
            do_reset(side);
        }
        break;
    case 2:
        side->stream->is_stopped = true;
        break;
    case 3:
    case 4:
        accept_and_resume(side->stream);
        break;
    case 5:
        do_write(model, side, random_below(model, 400000));
        break;
    default:
        do_write(model, side, random_below(model, 5000));
        break;
    }
}

static void act_on_link(struct model *model, size_t i)
{
    model->now += random_below(model, 1000000);
    assert_int_equal(muxer_tick(model->ends[i].muxer, model->now), STATUS_OK);
    if (random_below(model, 2) == 0) {
        model->from[i].capacity = 64 + random_below(model, PIPE_MAX - 64);
        if (model->from[i].capacity > model->from[i].length) {
            pipe_fill(&model->from[i], &model->ends[i]);
        }
    } else {
        size_t n = random_below(model, 70000);
        assert_int_equal(pipe_drain(&model->from[i], &model->ends[1 - i], n), STATUS_OK);
    }
}

static void act(struct model *model)
{
    size_t i = random_below(model, 2);
    uint32_t choice = random_below(model, 20);
    if (choice == 0) {
        act_open(model, i);
    } else if (choice < 9) {
        act_on_stream(model, i);
    } else {
        act_on_link(model, i);
    }
}

static void resume_all(struct model *model, size_t i)
{
    for (size_t k = 0; k < model->side_counts[i]; k++) {
        struct end_stream *stream = model->sides[i][k].stream;
        if (stream->stream != NULL) {
            accept_and_resume(stream);
        }
    }
}

/* Every reader reads on and the link carries all there is. */
static void settle(struct model *model)
{
    bool moved = true;
    while (moved) {
        moved = false;
        for (size_t i = 0; i < 2; i++) {
            struct pipe *pipe = &model->from[i];
            pipe->capacity = PIPE_MAX;
            resume_all(model, i);
            pipe_fill(pipe, &model->ends[i]);
            moved = moved || pipe->length > 0;
            assert_int_equal(pipe_drain(pipe, &model->ends[1 - i], PIPE_MAX), STATUS_OK);
        }
    }
}

static struct side *find_partner(struct model *model, const struct side *side)
{
    size_t other = 1 - index_of(model, side->stream->end);
    for (size_t k = 0; k < model->side_counts[other]; k++) {
        struct side *each = &model->sides[other][k];
        if (each->stream->id == side->stream->id &&
                each->stream->is_outbound != side->stream->is_outbound) {
            return each;
        }
    }
    return NULL;
}

static void check_direction(struct model *model, const struct side *from, const struct side *to)
{
    bool is_cut =
            from->has_reset || to->has_reset || from->stream->reset > 0 || to->stream->reset > 0;
    assert_true(to->stream->length <= from->written);
    assert_true(end_has_pattern(to->stream, pattern_start(model, from->stream)));
    assert_true(to->stream->remote_closed <= (from->has_closed ? 1U : 0U));
    if (!is_cut) {
        assert_int_equal(to->stream->length, from->written);
        assert_int_equal(to->stream->remote_closed, from->has_closed ? 1 : 0);
    }
    if (from->has_reset) {
        assert_true(to->has_reset || to->stream->closed + to->stream->reset == 1);
    }
    if (from->stream->reset > 0) {
        assert_int_equal(from->stream->reason, STATUS_RESET);
        assert_true(to->has_reset);
    }
}

static void check_side(struct model *model, const struct side *side)
{
    const struct side *partner = find_partner(model, side);
    assert_true(side->stream->closed + side->stream->reset <= 1);
    if (partner != NULL) {
        check_direction(model, side, partner);
        assert_int_equal(side->stream->stream != NULL, partner->stream->stream != NULL);
    } else {
        /* refused for a limit, or reset before the peer heard of it */
        assert_true(side->stream->reset == 1 || side->has_reset);
    }
}

static void check(struct model *model)
{
    for (size_t i = 0; i < 2; i++) {
        size_t open = 0;
        for (size_t k = 0; k < model->side_counts[i]; k++) {
            check_side(model, &model->sides[i][k]);
            open += model->sides[i][k].stream->stream != NULL;
        }
        const struct end *end = &model->ends[i];
        assert_int_equal(muxer_stream_count(end->muxer), open);
        assert_int_equal(muxer_held(end->muxer), 0);
        assert_int_equal(muxer_queued(end->muxer), 0);
        assert_false(end->is_paused);
        assert_int_equal(end->pieces_released, end->pieces_written);
    }
}

static void run(enum muxer_kind kind, uint64_t seed)
{
    const struct muxer_options limits = {
            .streams_max = 24, .inbound_pending_max = 12, .stream_held_max = 64 << 20};
    struct model *model = calloc(1, sizeof(*model));
    assert_non_null(model);
    current = model;
    model->random = seed;
    for (size_t i = 0; i < 2; i++) {
        end_init(&model->ends[i], kind, i == 0, &limits);
        model->ends[i].accepts = false;
        model->ends[i].on_opened = on_opened;
        model->from[i].capacity = PIPE_MAX;
    }
    for (int i = 0; i < ACTS; i++) {
        act(model);
    }
    settle(model);
    check(model);
    end_fini(&model->ends[0]);
    end_fini(&model->ends[1]);
    free(model);
}

static void yamux_agrees_with_the_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run(MUXER_YAMUX, seed);
    }
}

static void mplex_agrees_with_the_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run(MUXER_MPLEX, seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(yamux_agrees_with_the_model),
            cmocka_unit_test(mplex_agrees_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
