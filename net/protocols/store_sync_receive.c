/* SPDX-License-Identifier: MIT */

/*
 * What a peer sends us by transfer: each message is read into a frame of the budget and posted to its
 * lane, as fast as frames and archive have room; until then the stream waits.
 */

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/protocols/prefixed_reader.h"
#include "net/protocols/store_sync_private.h"
#include "net/protocols/transfer_message.h"
#include "router/sync_job.h"

enum {
    SLACK_BYTES = 64 * 1024,  /* of a frame beyond its message */
    IDLE_MS = 60 * 1000,      /* between two messages */
    RETRY_MS = 20,            /* while one waits */
    MPLEX_PATIENCE_MS = 5000, /* there the whole connection waits with a stream */
};

struct sync_receiving {
    TAILQ_ENTRY(sync_receiving) link; /* while it waits */
    struct sync_peer *peer;           /* a reference */
    struct stream *stream;
    struct prefixed_reader reader;
    struct frame *frame; /* what is read into; NULL: nothing yet */
    bool is_waiting;
    uint64_t waiting_since_ms;
};

static struct store_sync *sync_of(const struct sync_receiving *receiving)
{
    return receiving->peer->shard->sync;
}

/* That a connection has nothing more for us, on its way to the sync thread. */
struct peer_end {
    struct sync_job job;
    struct store_sync *sync;
    uint64_t connection;
};

static void run_peer_end(struct sync_job *job, struct sync_set *set)
{
    struct peer_end *end = (struct peer_end *)((char *)job - offsetof(struct peer_end, job));
    struct store_sync *sync = end->sync;
    sync_wanted_peer_ended(sync_set_wanted(set), end->connection, store_sync_now_ms());
    memory_free(end);
    store_sync_end_job(sync);
}

/* Without memory for it the patience runs out. */
void store_sync_peer_ended(struct store_sync *sync, uint64_t connection)
{
    struct peer_end *end = memory_allocate_zeroed(sizeof(*end));
    if (end == NULL) {
        return;
    }
    end->job.run = run_peer_end;
    end->sync = sync;
    end->connection = connection;
    store_sync_begin_job(sync);
    inbox_push(sync->options.sync_jobs, &end->job.link);
    inbox_wake(sync->options.sync_jobs);
}

static void start_reading(struct sync_receiving *receiving)
{
    size_t max = sync_of(receiving)->options.message_bytes_max + SLACK_BYTES;
    receiving->frame = NULL;
    prefixed_reader_init(&receiving->reader, max);
}

static void stop_waiting(struct sync_receiving *receiving)
{
    if (receiving->is_waiting) {
        receiving->is_waiting = false;
        TAILQ_REMOVE(&receiving->peer->shard->waiting, receiving, link);
    }
}

static bool is_expected(const struct sync_peer *peer)
{
    return peer != NULL && (peer->session_count > 0 || store_sync_now_ms() < peer->grace_end_ms);
}

static enum status on_opened(struct stream *stream)
{
    struct store_sync *sync = stream_context(stream);
    uint64_t connection = connection_id(stream_connection(stream));
    struct sync_peer *peer =
            store_sync_find_peer(store_sync_shard_of(sync, connection), connection);
    stream_set_context(stream, NULL);
    if (!is_expected(peer)) {
        metrics_add(METRIC_SYNC_REFUSED_NO_SESSION, 1);
        return STATUS_CLOSED;
    }
    struct sync_receiving *receiving = memory_allocate_zeroed(sizeof(*receiving));
    if (receiving == NULL) {
        return STATUS_NO_MEMORY;
    }
    receiving->peer = peer;
    receiving->stream = stream;
    peer->receiving_count++;
    peer->last_incoming_ms = store_sync_now_ms();
    store_sync_ref_peer(peer);
    start_reading(receiving);
    stream_set_context(stream, receiving);
    stream_set_timeout(stream, IDLE_MS);
    return STATUS_OK;
}

static void on_retry(uv_timer_t *timer);

/* Finds the frame that is about to come a place; else the stream waits. */
static void place(struct sync_receiving *receiving)
{
    const struct store_sync_options *options = &sync_of(receiving)->options;
    bool has_room = options->has_room(options->room_context);
    receiving->frame = has_room ? frame_try_create(options->budget, FRAME_BUDGET_PARTIAL,
                                          receiving->reader.length)
                                : NULL;
    if (receiving->frame != NULL) {
        stop_waiting(receiving);
        prefixed_reader_place(&receiving->reader, frame_bytes(receiving->frame));
        stream_set_timeout(receiving->stream, STORE_SYNC_STEP_TIMEOUT_MS);
    } else if (!receiving->is_waiting) {
        receiving->is_waiting = true;
        receiving->waiting_since_ms = store_sync_now_ms();
        TAILQ_INSERT_TAIL(&receiving->peer->shard->waiting, receiving, link);
        stream_set_timeout(receiving->stream, 0);
        uv_timer_start(&receiving->peer->shard->retry, on_retry, RETRY_MS, RETRY_MS);
    }
}

static enum status post(struct sync_receiving *receiving)
{
    struct store_sync *sync = sync_of(receiving);
    struct transfer_message transfer;
    struct frame *frame = receiving->frame;
    struct span bytes = prefixed_reader_message(&receiving->reader);
    enum status status = transfer_message_read(&transfer, bytes);
    if (status != STATUS_OK) {
        metrics_add(METRIC_SYNC_REFUSED_MALFORMED, 1);
        return status;
    }
    const struct topic *topic =
            topic_registry_find_subscribed(sync->options.intake->topics, transfer.pubsub_topic);
    metrics_add(METRIC_SYNC_MESSAGES_IN, 1);
    metrics_add(METRIC_SYNC_TRANSFER_BYTES_IN, bytes.length);
    if (topic == NULL) {
        metrics_add(METRIC_SYNC_REFUSED_TOPIC, 1);
        return STATUS_OK;
    }
    struct intake_source source = {.received_ns = clock_wall_ns(),
            .received_monotonic_ns = clock_monotonic_ns(),
            .connection = receiving->peer->connection,
            .origin = ORIGIN_SYNC};
    struct local_message message = {.topic = topic, .bytes = transfer.message};
    status = intake_post_part(sync->options.intake, frame, &message, &source);
    receiving->frame = status == STATUS_OK ? NULL : frame;
    return status;
}

/* A whole message is there. */
static void take_message(struct sync_receiving *receiving)
{
    struct sync_peer *peer = receiving->peer;
    enum status status = STATUS_LIMIT_REACHED;
    if (peer->incoming_left > 0) {
        peer->incoming_left--;
        peer->awaited -= peer->awaited > 0;
        peer->last_incoming_ms = store_sync_now_ms();
        status = post(receiving);
    } else {
        metrics_add(METRIC_SYNC_REFUSED_OVER_LIMIT, 1);
    }
    if (receiving->frame != NULL) {
        frame_unref(receiving->frame);
    }
    prefixed_reader_fini(&receiving->reader);
    start_reading(receiving);
    if (status != STATUS_OK) {
        stream_reset(receiving->stream, status);
        return;
    }
    stream_set_timeout(receiving->stream, IDLE_MS);
}

static size_t on_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct sync_receiving *receiving = stream_context(stream);
    return receiving->is_waiting ? 0 : prefixed_reader_reserve(&receiving->reader, wanted, to);
}

static void on_commit(struct stream *stream, size_t n)
{
    struct sync_receiving *receiving = stream_context(stream);
    stream_consumed(stream, n);
    enum status status = prefixed_reader_commit(&receiving->reader, n);
    if (status != STATUS_OK) {
        metrics_add(status == STATUS_TOO_LARGE ? METRIC_SYNC_REFUSED_TOO_LARGE
                                               : METRIC_SYNC_REFUSED_MALFORMED,
                1);
        stream_reset(stream, status);
    } else if (prefixed_reader_is_done(&receiving->reader)) {
        take_message(receiving);
    } else if (prefixed_reader_is_unplaced(&receiving->reader)) {
        place(receiving);
    }
}

static void on_remote_closed(struct stream *stream)
{
    stream_close_write(stream);
}

static void on_closed(struct stream *stream, enum status reason)
{
    struct sync_receiving *receiving = stream_context(stream);
    (void)reason;
    if (receiving == NULL) {
        return;
    }
    stop_waiting(receiving);
    prefixed_reader_fini(&receiving->reader);
    if (receiving->frame != NULL) {
        frame_unref(receiving->frame);
    }
    receiving->peer->receiving_count--;
    if (receiving->peer->receiving_count == 0 && receiving->peer->session_count == 0) {
        store_sync_peer_ended(receiving->peer->shard->sync, receiving->peer->connection);
    }
    store_sync_unref_peer(receiving->peer);
    memory_free(receiving);
}

const struct stream_events store_sync_receive_events = {
        .opened = on_opened,
        .reserve = on_reserve,
        .commit = on_commit,
        .remote_closed = on_remote_closed,
        .closed = on_closed,
};

static bool is_late(const struct sync_receiving *receiving)
{
    const char *muxer = connection_muxer(stream_connection(receiving->stream));
    return strcmp(muxer, muxer_protocol_id(MUXER_MPLEX)) == 0 &&
           store_sync_now_ms() - receiving->waiting_since_ms > MPLEX_PATIENCE_MS;
}

/* Those that find no room stay where they are in the list. */
static void on_retry(uv_timer_t *timer)
{
    struct sync_shard *shard = timer->data;
    struct sync_receiving *receiving = TAILQ_FIRST(&shard->waiting);
    while (receiving != NULL) {
        struct sync_receiving *next = TAILQ_NEXT(receiving, link);
        place(receiving);
        if (!receiving->is_waiting) {
            stream_resume(receiving->stream);
        } else if (is_late(receiving)) {
            metrics_add(METRIC_SYNC_REFUSED_SLOW, 1);
            stop_waiting(receiving);
            stream_reset(receiving->stream, STATUS_BUSY);
        }
        receiving = next;
    }
    if (TAILQ_EMPTY(&shard->waiting)) {
        uv_timer_stop(timer);
    }
}
