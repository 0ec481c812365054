/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "base/memory.h"
#include "base/metrics.h"
#include "net/muxer/muxer_private.h"

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

/* After so long without output the scratch memory is given back. */
#define SCRATCH_IDLE_NS UINT64_C(1000000000)

#define KEEP_ALIVE_NS   UINT64_C(30000000000)
#define PING_TIMEOUT_NS UINT64_C(20000000000)

const char *muxer_protocol_id(enum muxer_kind kind)
{
    switch (kind) {
    case MUXER_YAMUX:
        return yamux_protocol.id;
    case MUXER_MPLEX:
        return mplex_protocol.id;
    }
    return NULL;
}

bool muxer_kind_from_protocol_id(enum muxer_kind *out, struct span id)
{
    for (enum muxer_kind kind = MUXER_YAMUX; kind <= MUXER_MPLEX; kind++) {
        if (span_equal(id, span_of_text(muxer_protocol_id(kind)))) {
            *out = kind;
            return true;
        }
    }
    return false;
}

static void default_size(size_t *option, size_t value)
{
    if (*option == 0) {
        *option = value;
    }
}

static void fill_defaults(struct muxer_options *options)
{
    default_size(&options->streams_max, 1024);
    default_size(&options->inbound_pending_max, 256);
    default_size(&options->unacknowledged_max, 256);
    default_size(&options->queued_bytes_max, MIB(64));
    default_size(&options->low_water_bytes, KIB(64));
    default_size(&options->quantum_bytes, KIB(16));
    default_size(&options->answers_max, 1024);
    default_size(&options->window_max, MIB(16));
    default_size(&options->window_growth_max, MIB(16));
    default_size(&options->stream_held_max, MIB(4));
    default_size(&options->held_bytes_max, MIB(64));
    if (options->window_max < YAMUX_INITIAL_WINDOW) {
        options->window_max = YAMUX_INITIAL_WINDOW;
    }
    if (options->keep_alive_ns == 0) {
        options->keep_alive_ns = KEEP_ALIVE_NS;
    }
    if (options->ping_timeout_ns == 0) {
        options->ping_timeout_ns = PING_TIMEOUT_NS;
    }
}

enum status muxer_create(struct muxer **out, enum muxer_kind kind, bool is_initiator,
        const struct muxer_options *options)
{
    struct muxer *muxer = memory_allocate_zeroed(sizeof(*muxer));
    if (muxer == NULL) {
        return STATUS_NO_MEMORY;
    }
    muxer->protocol = kind == MUXER_YAMUX ? &yamux_protocol : &mplex_protocol;
    muxer->options = *options;
    fill_defaults(&muxer->options);
    muxer->is_initiator = is_initiator;
    muxer->rtt_ns = UINT64_MAX;
    muxer->next_id = is_initiator ? 1 : 2;
    if (kind == MUXER_MPLEX) {
        muxer->next_id = 0;
    }
    TAILQ_INIT(&muxer->ready);
    TAILQ_INIT(&muxer->control);
    SLIST_INIT(&muxer->touched);
    SLIST_INIT(&muxer->dead);
    *out = muxer;
    return STATUS_OK;
}

void muxer_destroy(struct muxer **muxer)
{
    struct muxer *dying = *muxer;
    *muxer = NULL;
    if (dying == NULL || dying->is_dying) {
        return;
    }
    muxer_enter(dying);
    dying->is_dying = true;
    enum status reason = dying->failure == STATUS_OK ? STATUS_CLOSED : dying->failure;
    struct muxer_stream *stream;
    while ((stream = stream_table_find_any(&dying->streams)) != NULL) {
        muxer_stream_end(stream, reason);
    }
    muxer_leave(dying);
}

static void free_muxer(struct muxer *muxer)
{
    stream_table_fini(&muxer->streams);
    answer_queue_fini(&muxer->answers);
    memory_free(muxer->scratch);
    memory_free(muxer);
}

void muxer_enter(struct muxer *muxer)
{
    muxer->depth++;
}

/* Tells the connection what changed during the call; true when it told something. */
static bool notify(struct muxer *muxer)
{
    if (muxer->is_dying) {
        return false;
    }
    const struct muxer_events *events = &muxer->options.events;
    bool should_pause = muxer->over_mark_count > 0 || muxer->holds_too_much;
    if (should_pause != muxer->is_paused) {
        muxer->is_paused = should_pause;
        if (events->pause != NULL) {
            events->pause(muxer->options.context, should_pause);
        }
        return true;
    }
    if (!muxer->output_was_told && !muxer->output_is_open && muxer_wants_output(muxer)) {
        muxer->output_was_told = true;
        if (events->output_ready != NULL) {
            events->output_ready(muxer->options.context);
        }
        return true;
    }
    return false;
}

/* Buries one dead stream unless its bytes are still given out. */
static bool bury_one(struct muxer *muxer)
{
    struct muxer_stream *stream = SLIST_FIRST(&muxer->dead);
    if (stream == NULL || (muxer->output_is_open && !muxer->is_dying)) {
        return false;
    }
    SLIST_REMOVE_HEAD(&muxer->dead, dead_link);
    muxer_stream_bury(stream);
    return true;
}

void muxer_leave(struct muxer *muxer)
{
    if (muxer->depth == 1) {
        /* Both call out, which may bring new work for both; each round ends one thing. */
        while (bury_one(muxer) || notify(muxer)) {
        }
    }
    muxer->depth--;
    if (muxer->depth == 0 && muxer->is_dying) {
        free_muxer(muxer);
    }
}

void muxer_fail(struct muxer *muxer, enum status status, enum muxer_go_away reason)
{
    if (muxer->failure == STATUS_OK) {
        metrics_add(METRIC_MUXER_FAILURES, 1);
        muxer->failure = status;
        muxer->is_going_away = true;
        muxer->go_away_unsent = muxer->protocol->has_windows;
        muxer->go_away_reason = reason;
    }
}

void muxer_go_away(struct muxer *muxer, enum muxer_go_away reason)
{
    if (muxer->is_going_away) {
        return;
    }
    muxer_enter(muxer);
    muxer->is_going_away = true;
    muxer->go_away_unsent = muxer->protocol->has_windows;
    muxer->go_away_reason = reason;
    muxer_leave(muxer);
}

void muxer_answer(struct muxer *muxer, enum answer_kind kind, uint64_t value)
{
    if (muxer->answers.count >= muxer->options.answers_max) {
        muxer_fail(muxer, STATUS_LIMIT_REACHED, MUXER_GO_AWAY_PROTOCOL_ERROR);
        return;
    }
    const struct muxer_answer answer = {.kind = kind, .value = value};
    if (answer_queue_push(&muxer->answers, answer) != STATUS_OK) {
        muxer_fail(muxer, STATUS_NO_MEMORY, MUXER_GO_AWAY_INTERNAL_ERROR);
    }
}

void muxer_want_ping(struct muxer *muxer)
{
    if (muxer->ping_unsent || muxer->ping_is_out) {
        return;
    }
    muxer->ping_number++;
    muxer->ping_unsent = true;
    muxer->ping_wanted_ns = muxer->now_ns;
}

void muxer_take_ping_answer(struct muxer *muxer, uint32_t number)
{
    if (!muxer->ping_is_out || number != muxer->ping_number) {
        return;
    }
    muxer->ping_is_out = false;
    muxer->rtt_ns = muxer->now_ns - muxer->ping_sent_ns;
    muxer->rtt_measured_ns = muxer->now_ns;
}

void muxer_take_go_away(struct muxer *muxer, uint32_t reason)
{
    muxer->peer_is_away = true;
    if (muxer->options.events.peer_went_away != NULL) {
        muxer->options.events.peer_went_away(muxer->options.context, reason);
    }
}

static bool ping_is_late(const struct muxer *muxer)
{
    if (!muxer->ping_unsent && !muxer->ping_is_out) {
        return false;
    }
    uint64_t quiet_since =
            muxer->heard_ns > muxer->ping_wanted_ns ? muxer->heard_ns : muxer->ping_wanted_ns;
    return muxer->now_ns - quiet_since >= muxer->options.ping_timeout_ns;
}

enum status muxer_tick(struct muxer *muxer, uint64_t now_ns)
{
    if (muxer->heard_ns == 0) {
        muxer->heard_ns = now_ns;
    }
    muxer->now_ns = now_ns;
    if (muxer->scratch != NULL && !muxer->output_is_open &&
            now_ns - muxer->scratch_used_ns >= SCRATCH_IDLE_NS) {
        memory_free(muxer->scratch);
        muxer->scratch = NULL;
    }
    if (muxer->failure != STATUS_OK || !muxer->protocol->has_windows) {
        return muxer->failure;
    }
    muxer_enter(muxer);
    if (ping_is_late(muxer)) {
        muxer_fail(muxer, STATUS_TIMED_OUT, MUXER_GO_AWAY_NORMAL);
    } else if (now_ns - muxer->heard_ns >= muxer->options.keep_alive_ns) {
        muxer_want_ping(muxer);
    }
    enum status status = muxer->failure;
    muxer_leave(muxer);
    return status;
}

size_t muxer_stream_count(const struct muxer *muxer)
{
    return muxer->streams.count;
}

size_t muxer_queued(const struct muxer *muxer)
{
    return muxer->queued_bytes;
}

size_t muxer_held(const struct muxer *muxer)
{
    return muxer->held_bytes;
}

uint64_t muxer_rtt_ns(const struct muxer *muxer)
{
    return muxer->rtt_ns;
}
