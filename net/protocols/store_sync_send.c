/* SPDX-License-Identifier: MIT */

/*
 * What a peer was found to lack, on a transfer stream of ours: read from the archive on the query
 * thread, a few messages at a time, when those before have gone out.
 */

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/protocols/exchange_private.h"
#include "net/protocols/piece_list.h"
#include "net/protocols/store_sync_private.h"
#include "net/protocols/transfer_message.h"
#include "router/sync_job.h"
#include "router/topic_registry.h"

enum {
    STEP_IDS = 16, /* read at a time */
    STEP_SEGMENTS = 2 * STEP_IDS + 1,
    QUEUED_MAX = 128 * 1024, /* above the mark at which the stream asks for more */
    PIECES = 16,
    QUERY_PATIENCE_S = 10
};

/* Some messages for a peer, on their way to the query thread and back. */
struct sending_step {
    struct archive_job archive_job;
    struct io_task back;
    struct sync_job forget; /* then to the sync thread, with what the archive does not have */
    struct store_sync *sync;
    struct sync_peer *peer; /* a reference */
    struct io_loop *loop;
    size_t count;
    struct id_key ids[STEP_IDS];
    bool is_found[STEP_IDS];
    struct piece_list *pieces; /* NULL: it failed */
    enum status status;
    size_t message_count;
    size_t too_large_count;
};

/* sync thread */

/* Not in the archive: gone by retention, dropped, or not there yet, which filling the gap will show. */
static void forget_missing(struct sync_job *job, struct sync_set *set)
{
    struct sending_step *step =
            (struct sending_step *)((char *)job - offsetof(struct sending_step, forget));
    struct store_sync *sync = step->sync;
    for (size_t i = 0; i < step->count; i++) {
        if (!step->is_found[i] && sync_set_remove(set, &step->ids[i])) {
            metrics_add(METRIC_SYNC_FORGOTTEN, 1);
            sync_set_mark_incomplete(set, step->ids[i].timestamp_ns, step->ids[i].timestamp_ns);
        }
    }
    memory_free(step);
    store_sync_end_job(sync);
}

/* query thread */

static enum status add_message(struct sending_step *step, const struct archive_row *row)
{
    uint8_t *to = piece_list_room(step->pieces, TRANSFER_HEAD_MAX + row->pubsub_topic.length);
    if (to == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = piece_list_add_written(
            step->pieces, transfer_write_head(to, row->pubsub_topic, row->message.length));
    return status == STATUS_OK ? piece_list_add_message(step->pieces, row) : status;
}

static enum status take_row(void *context, const struct archive_row *row)
{
    struct sending_step *step = context;
    for (size_t i = 0; i < step->count; i++) {
        if (memcmp(step->ids[i].hash, row->hash.bytes, ID_HASH_BYTES) == 0) {
            step->is_found[i] = true;
        }
    }
    if (transfer_message_size(row->pubsub_topic, row->message.length) > TRANSFER_BYTES_MAX) {
        step->too_large_count++;
        return STATUS_OK;
    }
    step->message_count++;
    return add_message(step, row);
}

static void read_messages(struct archive_job *job, struct archive_reader *reader)
{
    struct sending_step *step =
            (struct sending_step *)((char *)job - offsetof(struct sending_step, archive_job));
    struct span hashes[STEP_IDS];
    struct archive_page page;
    struct archive_query query = {.hashes = hashes,
            .hash_count = step->count,
            .limit = STEP_IDS,
            .deadline_ns =
                    clock_monotonic_ns() + (uint64_t)QUERY_PATIENCE_S * NANOSECONDS_PER_SECOND,
            .include_data = true};
    for (size_t i = 0; i < step->count; i++) {
        hashes[i] = span_of(step->ids[i].hash, ID_HASH_BYTES);
    }
    step->status = piece_list_create(&step->pieces, STEP_SEGMENTS);
    if (step->status == STATUS_OK) {
        step->status = archive_query(reader, &query, take_row, step, &page);
    }
    io_loop_post(step->loop, &step->back);
}

/* io thread */

static void drop_first_batch(struct sync_outgoing *outgoing)
{
    struct sync_id_batch *batch = outgoing->first;
    outgoing->first = batch->next;
    if (outgoing->first == NULL) {
        outgoing->last = &outgoing->first;
    }
    memory_free(batch->ids);
    memory_free(batch);
}

static void drop_batches(struct sync_outgoing *outgoing)
{
    metrics_add(METRIC_SYNC_UNSENT_PEER_GONE, outgoing->queued);
    while (outgoing->first != NULL) {
        drop_first_batch(outgoing);
    }
    outgoing->queued = 0;
}

/* Whatever of it the peer did not take it may be sent in the next session. */
void store_sync_stop_sending(struct sync_peer *peer)
{
    drop_batches(&peer->outgoing);
    sync_sent_fini(&peer->outgoing.sent, &peer->shard->sync->sent_account);
    piece_list_unref(peer->outgoing.pieces);
    peer->outgoing.pieces = NULL;
}

/* Nothing more for this stream. */
static void let_go(struct sync_outgoing *outgoing)
{
    stream_set_context(outgoing->stream, NULL);
    outgoing->stream = NULL;
    outgoing->is_agreed = false;
}

static enum status on_opened(struct stream *stream)
{
    struct sync_peer *peer = stream_context(stream);
    if (peer == NULL) {
        return STATUS_CLOSED;
    }
    peer->outgoing.is_agreed = true;
    store_sync_pump(peer);
    return STATUS_OK;
}

static void on_writable(struct stream *stream)
{
    struct sync_peer *peer = stream_context(stream);
    if (peer != NULL) {
        store_sync_pump(peer);
    }
}

static void on_closed(struct stream *stream, enum status reason)
{
    struct sync_peer *peer = stream_context(stream);
    (void)reason;
    if (peer != NULL) {
        peer->outgoing.stream = NULL;
        peer->outgoing.is_agreed = false;
        store_sync_stop_sending(peer);
        store_sync_unref_peer(peer);
    }
}

/* The other side has nothing to say on it. */
static const struct stream_events events = {
        .opened = on_opened,
        .writable = on_writable,
        .closed = on_closed,
};

static void open_stream(struct sync_peer *peer)
{
    static const char *const protocols[] = {TRANSFER_PROTOCOL_ID};
    struct stream_request request = {
            .protocols = protocols, .protocol_count = 1, .events = &events, .context = peer};
    struct connection *connection =
            switch_find_connection(peer->shard->sync->options.net_switch, peer->connection);
    enum status status = STATUS_CLOSED;
    if (connection != NULL) {
        status = connection_open_stream(connection, &request, &peer->outgoing.stream);
    }
    if (status != STATUS_OK) {
        peer->outgoing.stream = NULL;
        store_sync_stop_sending(peer);
        return;
    }
    store_sync_ref_peer(peer);
}

/* False when it failed; the stream's end follows. */
static bool write_pieces(struct sync_outgoing *outgoing)
{
    struct muxer_piece pieces[PIECES];
    while (outgoing->pieces != NULL && stream_queued(outgoing->stream) < QUEUED_MAX) {
        size_t count = piece_list_next(outgoing->pieces, pieces, PIECES);
        if (count == 0) {
            piece_list_unref(outgoing->pieces);
            outgoing->pieces = NULL;
            return true;
        }
        enum status status = stream_write(outgoing->stream, pieces, count);
        if (status != STATUS_OK) {
            exchange_release(pieces, count);
            outgoing->is_agreed = false;
            stream_reset(outgoing->stream, status);
            return false;
        }
        stream_set_timeout(outgoing->stream, STORE_SYNC_STEP_TIMEOUT_MS);
    }
    return true;
}

static void take_ids(struct sync_outgoing *outgoing, struct sending_step *step)
{
    while (outgoing->first != NULL && step->count < STEP_IDS) {
        struct sync_id_batch *batch = outgoing->first;
        step->ids[step->count++] = batch->ids[batch->position++];
        outgoing->queued--;
        if (batch->position == batch->count) {
            drop_first_batch(outgoing);
        }
    }
}

static void run_back(struct io_task *task);

static void read_more(struct sync_peer *peer)
{
    struct store_sync *sync = peer->shard->sync;
    struct sending_step *step = memory_allocate_zeroed(sizeof(*step));
    if (step == NULL) {
        stream_reset(peer->outgoing.stream, STATUS_NO_MEMORY);
        return;
    }
    step->sync = sync;
    step->peer = peer;
    step->loop = peer->shard->loop;
    step->archive_job.run = read_messages;
    step->archive_job.origin = peer->connection;
    step->back.run = run_back;
    take_ids(&peer->outgoing, step);
    peer->outgoing.is_reading = true;
    store_sync_ref_peer(peer);
    store_sync_begin_job(sync);
    archive_jobs_post(sync->options.query_jobs, &step->archive_job);
}

static size_t count_missing(const struct sending_step *step)
{
    size_t missing = 0;
    for (size_t i = 0; i < step->count; i++) {
        missing += !step->is_found[i];
    }
    return missing;
}

/* What goes out now, and what does not. */
static void note_sent(struct sending_step *step)
{
    struct sync_sent *sent = &step->peer->outgoing.sent;
    uint64_t now_ms = store_sync_now_ms();
    for (size_t i = 0; i < step->count; i++) {
        if (step->is_found[i]) {
            sync_sent_mark(sent, &step->ids[i], now_ms);
        } else {
            sync_sent_forget(sent, &step->sync->sent_account, &step->ids[i]);
        }
    }
}

/* The step is freed here or on the sync thread. */
static void end_step(struct sending_step *step)
{
    struct store_sync *sync = step->sync;
    size_t missing = step->status == STATUS_OK ? count_missing(step) : 0;
    metrics_add(METRIC_SYNC_UNSENT_NOT_STORED, missing);
    metrics_add(METRIC_SYNC_UNSENT_TOO_LARGE, step->too_large_count);
    if (missing > 0) {
        step->forget.run = forget_missing;
        inbox_push(sync->options.sync_jobs, &step->forget.link);
        inbox_wake(sync->options.sync_jobs);
        return;
    }
    memory_free(step);
    store_sync_end_job(sync);
}

static void run_back(struct io_task *task)
{
    struct sending_step *step =
            (struct sending_step *)((char *)task - offsetof(struct sending_step, back));
    struct sync_peer *peer = step->peer;
    struct sync_outgoing *outgoing = &peer->outgoing;
    outgoing->is_reading = false;
    if (outgoing->stream != NULL && step->status == STATUS_OK) {
        metrics_add(METRIC_SYNC_MESSAGES_OUT, step->message_count);
        metrics_add(METRIC_SYNC_TRANSFER_BYTES_OUT, piece_list_length(step->pieces));
        outgoing->pieces = step->pieces;
        note_sent(step);
        store_sync_pump(peer);
    } else {
        metrics_add(METRIC_SYNC_UNSENT_PEER_GONE, step->message_count);
        piece_list_unref(step->pieces);
        if (outgoing->stream != NULL) {
            stream_reset(outgoing->stream, step->status);
        }
    }
    store_sync_unref_peer(peer);
    end_step(step);
}

void store_sync_pump(struct sync_peer *peer)
{
    struct sync_outgoing *outgoing = &peer->outgoing;
    if (outgoing->stream == NULL && outgoing->queued > 0 && !outgoing->is_reading) {
        open_stream(peer);
    }
    if (outgoing->stream == NULL || !outgoing->is_agreed || !write_pieces(outgoing) ||
            outgoing->pieces != NULL || outgoing->is_reading) {
        return;
    }
    if (outgoing->queued > 0) {
        read_more(peer);
    } else if (peer->session_count == 0) {
        stream_set_timeout(outgoing->stream, STORE_SYNC_STEP_TIMEOUT_MS);
        stream_close_write(outgoing->stream);
        let_go(outgoing);
        store_sync_unref_peer(peer);
    }
}

static void drop_ids(struct sync_peer *peer, const struct sync_ids *ids)
{
    metrics_add(METRIC_SYNC_UNSENT_PEER_GONE, ids->count);
    for (size_t i = 0; i < ids->count; i++) {
        sync_sent_forget(&peer->outgoing.sent, &peer->shard->sync->sent_account, &ids->ids[i]);
    }
}

void store_sync_send(struct sync_peer *peer, struct sync_ids *ids)
{
    struct sync_outgoing *outgoing = &peer->outgoing;
    size_t found = ids->count;
    ids->count = sync_sent_queue(&outgoing->sent, &peer->shard->sync->sent_account, ids->ids, found,
            store_sync_now_ms());
    metrics_add(METRIC_SYNC_NOT_RESENT, found - ids->count);
    struct sync_id_batch *batch = ids->count > 0 ? memory_allocate(sizeof(*batch)) : NULL;
    if (batch == NULL) {
        drop_ids(peer, ids);
        return;
    }
    *batch = (struct sync_id_batch){.ids = ids->ids, .count = ids->count};
    *ids = (struct sync_ids){.count = 0};
    *outgoing->last = batch;
    outgoing->last = &batch->next;
    outgoing->queued += batch->count;
    store_sync_pump(peer);
}
