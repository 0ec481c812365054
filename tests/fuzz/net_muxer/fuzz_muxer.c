/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/net_muxer/fuzz_muxer.h"

#include <string.h>

#include "tests/support/require.h"
#include "tests/unit/net_muxer/muxer_end.h"

enum {
    STREAMS_MAX = 64,
    OUTBOUND = 3
};

/* Nothing but the peer's bytes ends a stream: the two runs that are compared have room for all. */
static const struct muxer_options roomy = {.streams_max = STREAMS_MAX,
        .stream_held_max = SIZE_MAX / 2,
        .held_bytes_max = SIZE_MAX / 2};
static const struct muxer_options tight = {.streams_max = 8,
        .inbound_pending_max = 2,
        .answers_max = 16,
        .queued_bytes_max = 10000,
        .low_water_bytes = 100,
        .stream_held_max = 3000,
        .held_bytes_max = 5000};

struct driver {
    uint32_t random;
    const uint8_t *bytes;
    size_t length;
};

static struct driver *current;

static uint32_t random_below(struct driver *driver, uint32_t limit)
{
    driver->random = driver->random * 1664525U + 1013904223U;
    return (driver->random >> 8) % limit;
}

static void open_some(struct end *end)
{
    for (int i = 0; i < OUTBOUND; i++) {
        end_open(end);
    }
}

static enum status run_whole(struct driver *driver, struct end *end)
{
    open_some(end);
    return end_receive(end, driver->bytes, driver->length, 0);
}

static void choose_reserve(struct end_stream *stream)
{
    static const size_t reserves[] = {0, 1, 2, 100};
    stream->reserve_max = reserves[random_below(current, 4)];
    stream->is_stopped = random_below(current, 3) == 0;
}

static void resume(struct end_stream *stream)
{
    if (stream->stream == NULL) {
        return;
    }
    if (!stream->is_accepted) {
        end_accept(stream);
    }
    stream->is_stopped = false;
    muxer_stream_resume(stream->stream);
}

static void resume_all(struct end *end)
{
    for (struct end_stream *each = end->streams; each != NULL; each = each->next) {
        resume(each);
    }
}

static enum status run_cut(struct driver *driver, struct end *end)
{
    enum status status = STATUS_OK;
    size_t at = 0;
    end->on_opened = choose_reserve;
    open_some(end);
    while (at < driver->length && status == STATUS_OK) {
        size_t n = 1 + random_below(driver, 40);
        n = n < driver->length - at ? n : driver->length - at;
        status = end_receive(end, driver->bytes + at, n, 0);
        at += n;
        if (random_below(driver, 8) == 0) {
            resume_all(end);
        }
        for (struct end_stream *each = end->streams; each != NULL; each = each->next) {
            choose_reserve(each);
        }
    }
    resume_all(end);
    return status;
}

/* A stream may be reset while it is stopped: then what it held is lost, in the second run only. */
static bool agree(const struct end_stream *whole, const struct end_stream *cut)
{
    bool is_reset = whole->reset > 0;
    return whole->id == cut->id && whole->is_outbound == cut->is_outbound &&
           whole->reset == cut->reset &&
           (cut->length == whole->length || (is_reset && cut->length < whole->length)) &&
           (cut->length == 0 || memcmp(whole->bytes, cut->bytes, cut->length) == 0) &&
           (whole->remote_closed == cut->remote_closed || is_reset);
}

static void compare(const struct end *whole, const struct end *cut)
{
    REQUIRE(whole->stream_count == cut->stream_count);
    const struct end_stream *a = whole->streams;
    const struct end_stream *b = cut->streams;
    bool all_agree = true;
    for (; a != NULL; a = a->next, b = b->next) {
        all_agree = all_agree && agree(a, b);
    }
    REQUIRE(all_agree);
    REQUIRE(whole->went_away == cut->went_away);
    REQUIRE(muxer_held(cut->muxer) == 0);
}

static void act_on(struct end_stream *stream)
{
    uint8_t frame[512];
    switch (random_below(current, 12)) {
    case 0:
        muxer_stream_reset(stream->stream);
        stream->stream = NULL;
        break;
    case 1:
        muxer_stream_close_write(stream->stream);
        break;
    case 2:
    case 3:
        (void)!end_write_pattern(stream, 0, random_below(current, 2000));
        break;
    case 4:
        end_output(stream->end, frame, random_below(current, sizeof(frame)));
        break;
    case 5:
        if (stream->is_accepted) {
            muxer_stream_resume(stream->stream);
        }
        break;
    case 6:
        if (!stream->is_accepted) {
            end_accept(stream);
        }
        break;
    default:
        break;
    }
}

static void act_on_all(struct end *end)
{
    for (struct end_stream *each = end->streams; each != NULL; each = each->next) {
        if (each->stream != NULL) {
            act_on(each);
        }
    }
}

static void act_on_opened(struct end_stream *stream)
{
    choose_reserve(stream);
    stream->on_commit = act_on;
    stream->on_remote_closed = act_on;
    if (random_below(current, 3) > 0) {
        end_accept(stream);
    }
    act_on(stream);
}

static void check_limits(const struct end *end)
{
    REQUIRE(muxer_stream_count(end->muxer) <= tight.streams_max);
    REQUIRE(muxer_held(end->muxer) <= tight.held_bytes_max);
    REQUIRE(muxer_queued(end->muxer) <= tight.queued_bytes_max);
}

static void run_busy(struct driver *driver, struct end *end)
{
    size_t at = 0;
    enum status status = STATUS_OK;
    end->accepts = false;
    end->on_opened = act_on_opened;
    open_some(end);
    while (at < driver->length && status == STATUS_OK) {
        size_t n = 1 + random_below(driver, 100);
        n = n < driver->length - at ? n : driver->length - at;
        status = end_receive(end, driver->bytes + at, n, 0);
        at += n;
        act_on_all(end);
        check_limits(end);
    }
}

void fuzz_muxer(enum muxer_kind kind, const uint8_t *data, size_t size)
{
    if (size < 2) {
        return;
    }
    struct driver driver = {
            .random = (uint32_t)data[0] << 8 | data[1], .bytes = data + 2, .length = size - 2};
    bool is_initiator = data[0] % 2 == 1;
    struct end whole;
    struct end cut;
    struct end busy;
    current = &driver;
    end_init(&whole, kind, is_initiator, &roomy);
    end_init(&cut, kind, is_initiator, &roomy);
    end_init(&busy, kind, is_initiator, &tight);
    enum status expected = run_whole(&driver, &whole);
    enum status status = run_cut(&driver, &cut);
    REQUIRE(status == expected);
    compare(&whole, &cut);
    run_busy(&driver, &busy);
    end_fini(&whole);
    end_fini(&cut);
    end_fini(&busy);
}
