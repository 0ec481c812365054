/* SPDX-License-Identifier: MIT */

/*
 * The way out. One call makes the plaintext of one secure frame: first what is not data, then the
 * streams that have bytes and window, each at most a quantum before the next one's turn.
 */

#include <assert.h>

#include "base/memory.h"
#include "net/muxer/muxer_private.h"

enum {
    SCRATCH_BYTES = MUXER_HEADER_MAX * MUXER_FRAMES_MAX
};

struct output {
    struct muxer *muxer;
    struct span *pieces;
    size_t max_pieces;
    size_t count;
    size_t bytes_left;
    uint8_t *header; /* where the next header goes */
    uint8_t *headers_end;
};

static bool has_room(const struct output *output)
{
    return output->count < output->max_pieces && output->bytes_left >= MUXER_HEADER_MAX &&
           output->headers_end - output->header >= MUXER_HEADER_MAX;
}

/* True when the next header lies right behind the last span, and so needs none of its own. */
static bool header_continues(const struct output *output)
{
    if (output->count == 0) {
        return false;
    }
    struct span last = output->pieces[output->count - 1];
    return last.bytes + last.length == output->header;
}

/* n bytes were written at output->header; there is room for them. */
static void add_header(struct output *output, size_t n)
{
    if (n == 0) {
        return;
    }
    if (header_continues(output)) {
        output->pieces[output->count - 1].length += n;
    } else {
        output->pieces[output->count++] = span_of(output->header, n);
    }
    output->header += n;
    output->bytes_left -= n;
}

static size_t write_ping(const struct muxer *muxer, uint8_t *out)
{
    const struct muxer_answer ping = {.kind = ANSWER_PING_REQUEST, .value = muxer->ping_number};
    return muxer->protocol->write_answer(&ping, out);
}

static size_t write_go_away(const struct muxer *muxer, uint8_t *out)
{
    const struct muxer_answer away = {.kind = ANSWER_GO_AWAY, .value = muxer->go_away_reason};
    return muxer->protocol->write_answer(&away, out);
}

static void give_session(struct output *output)
{
    struct muxer *muxer = output->muxer;
    if (muxer->go_away_unsent && has_room(output)) {
        add_header(output, write_go_away(muxer, output->header));
        muxer->go_away_unsent = false;
    }
    if (muxer->failure != STATUS_OK) {
        return;
    }
    if (muxer->ping_unsent && has_room(output)) {
        add_header(output, write_ping(muxer, output->header));
        muxer->ping_unsent = false;
        muxer->ping_is_out = true;
        muxer->ping_sent_ns = muxer->now_ns;
    }
    struct muxer_answer answer;
    while (has_room(output) && answer_queue_try_pop(&muxer->answers, &answer)) {
        add_header(output, muxer->protocol->write_answer(&answer, output->header));
    }
}

static void give_control(struct output *output)
{
    struct muxer *muxer = output->muxer;
    while (!TAILQ_EMPTY(&muxer->control) && has_room(output)) {
        struct muxer_stream *stream = TAILQ_FIRST(&muxer->control);
        TAILQ_REMOVE(&muxer->control, stream, control_link);
        stream->is_in_control = false;
        add_header(output, muxer->protocol->write_control(stream, output->header));
    }
}

static void touch(struct muxer_stream *stream)
{
    if (!stream->is_touched) {
        stream->is_touched = true;
        SLIST_INSERT_HEAD(&stream->muxer->touched, stream, touched_link);
    }
}

/* One data frame. Its spans are known before its header, which stands in front of them. */
static void give_data(struct output *output, struct muxer_stream *stream, size_t max)
{
    bool continues = header_continues(output);
    size_t at = output->count + (continues ? 0 : 1);
    size_t length = 0;
    size_t limit = muxer_stream_sendable(stream);
    limit = limit < max ? limit : max;
    while (length < limit && at < output->max_pieces) {
        struct span bytes = piece_queue_take(&stream->out, limit - length);
        output->pieces[at++] = bytes;
        length += bytes.length;
    }
    size_t header = stream->muxer->protocol->write_data_header(stream, length, output->header);
    add_header(output, header);
    output->count = at;
    output->bytes_left -= length;
    stream->muxer->queued_bytes -= length;
    if (stream->muxer->protocol->has_windows) {
        stream->send_window -= length;
    }
}

/* Only the last of several ready streams may use all the room. */
static size_t turn_bytes(const struct output *output, const struct muxer_stream *stream)
{
    size_t room = output->bytes_left - MUXER_HEADER_MAX;
    size_t quantum = output->muxer->options.quantum_bytes;
    bool is_alone = TAILQ_NEXT(stream, ready_link) == NULL;
    return is_alone || room < quantum ? room : quantum;
}

static void give_streams(struct output *output)
{
    struct muxer *muxer = output->muxer;
    while (!TAILQ_EMPTY(&muxer->ready) && has_room(output)) {
        struct muxer_stream *stream = TAILQ_FIRST(&muxer->ready);
        size_t max = turn_bytes(output, stream);
        bool has_bytes = stream->out.unsent_bytes > 0;
        size_t spans = header_continues(output) ? 1 : 2;
        if (has_bytes && (max == 0 || output->max_pieces - output->count < spans)) {
            return;
        }
        if (has_bytes) {
            give_data(output, stream, max);
        } else {
            add_header(output, muxer->protocol->write_close(stream, output->header));
            stream->close_sent = true;
        }
        touch(stream);
        TAILQ_REMOVE(&muxer->ready, stream, ready_link);
        stream->is_ready = false;
        muxer_stream_update_ready(stream);
    }
}

bool muxer_wants_output(const struct muxer *muxer)
{
    if (muxer->failure != STATUS_OK) {
        return muxer->go_away_unsent;
    }
    return muxer->go_away_unsent || muxer->ping_unsent || muxer->answers.count > 0 ||
           !TAILQ_EMPTY(&muxer->control) || !TAILQ_EMPTY(&muxer->ready);
}

size_t muxer_output(struct muxer *muxer, struct span pieces[], size_t max_pieces, size_t max_bytes)
{
    if (muxer->output_is_open || muxer->is_dying || !muxer_wants_output(muxer)) {
        muxer->output_was_told = muxer->output_was_told && muxer->output_is_open;
        return 0;
    }
    if (max_pieces < 2 || max_bytes < MUXER_OUTPUT_MIN) {
        return 0;
    }
    if (muxer->scratch == NULL) {
        muxer->scratch = memory_allocate(SCRATCH_BYTES);
        if (muxer->scratch == NULL) {
            muxer_fail(muxer, STATUS_NO_MEMORY, MUXER_GO_AWAY_INTERNAL_ERROR);
            return 0;
        }
    }
    struct output output = {
            .muxer = muxer,
            .pieces = pieces,
            .max_pieces = max_pieces,
            .bytes_left = max_bytes,
            .header = muxer->scratch,
            .headers_end = muxer->scratch + SCRATCH_BYTES,
    };
    give_session(&output);
    if (muxer->failure == STATUS_OK) {
        /* Ends before its list does only without room, so that no data passes its stream's open. */
        give_control(&output);
        give_streams(&output);
    }
    muxer->output_is_open = output.count > 0;
    muxer->scratch_used_ns = muxer->now_ns;
    return output.count;
}

static void finish_stream(struct muxer_stream *stream)
{
    piece_queue_release_sent(&stream->out);
    if (stream->is_dead) {
        return;
    }
    if (stream->is_full && stream->out.unsent_bytes < stream->muxer->options.low_water_bytes) {
        stream->is_full = false;
        if (stream->events != NULL && !stream->is_closing) {
            stream->events->writable(stream->context);
        }
    }
    if (!stream->is_dead) {
        muxer_stream_end_if_finished(stream);
    }
}

void muxer_output_done(struct muxer *muxer)
{
    if (!muxer->output_is_open) {
        return;
    }
    /* It stays open over the callbacks, so that none of them gets spans while others end. */
    muxer_enter(muxer);
    struct muxer_stream *stream;
    while ((stream = SLIST_FIRST(&muxer->touched)) != NULL) {
        SLIST_REMOVE_HEAD(&muxer->touched, touched_link);
        stream->is_touched = false;
        if (!stream->is_dead) {
            finish_stream(stream);
        }
    }
    muxer->output_is_open = false;
    if (!muxer_wants_output(muxer)) {
        muxer->output_was_told = false;
    }
    muxer_leave(muxer);
}
