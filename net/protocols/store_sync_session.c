/* SPDX-License-Identifier: MIT */

/*
 * A reconciliation session: payloads go to and fro on one stream, each answered on the sync thread,
 * until one of the two has nothing left to ask.
 */

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "codec/varint.h"
#include "net/protocols/prefixed_reader.h"
#include "net/protocols/store_sync_private.h"
#include "router/sync_job.h"

enum {
    IGNORED_BYTES = 256,
    LINGER_MS = 5 * 1000 /* for the other side to close */
};

struct sync_session {
    struct sync_job job;
    struct io_task back;
    struct store_sync *sync;
    struct sync_peer *peer; /* NULL before the stream is agreed */
    uint64_t connection;
    struct io_loop *loop;
    struct stream *stream; /* NULL: gone */
    struct prefixed_reader reader;
    bool is_ours;
    bool is_counted; /* as a session of the peer */
    bool is_working; /* the job is at the sync thread, which owns the next three then */
    bool is_over;    /* the last payload was written or read */
    bool is_first;   /* no payload yet: ours begins */
    struct reconciliation_answer answer;
    enum status status;
    uint64_t end_ms; /* whatever is still to be said */
    unsigned rounds;
    size_t ids_left;
    size_t bytes;
    size_t they_lack;
    size_t we_lack;
    uint8_t ignored[IGNORED_BYTES];
};

/* sync thread */

/*
 * What was found out that the peer is to send, nobody else is asked for. A session is an asker by its
 * address, which no other has while its question is open, or that other's takes its place.
 */
static void note_wanted(const struct sync_session *session, struct sync_wanted *wanted)
{
    const struct reconciliation_answer *answer = &session->answer;
    uint64_t now_ms = store_sync_now_ms();
    sync_wanted_expect(
            wanted, session->connection, answer->we_lack.ids, answer->we_lack.count, now_ms);
    if (answer->has_asked) {
        sync_wanted_ask(
                wanted, (uintptr_t)session, answer->asked_from_ns, answer->asked_to_ns, now_ms);
    }
}

/* What we keep: the topics that we are in now. *names is to be freed. */
static enum status collect_scope(
        const struct store_sync *sync, struct span **names, struct sync_scope *scope)
{
    const struct topic_registry *topics = sync->options.intake->topics;
    uint32_t count = topic_registry_count(topics);
    *scope = (struct sync_scope){.pubsub_topic_count = 0};
    *names = memory_allocate((count + 1) * sizeof(**names));
    if (*names == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct topic *topic = topic_registry_at(topics, i);
        if (topic_registry_is_subscribed(topics, topic)) {
            (*names)[scope->pubsub_topic_count++] = topic->name;
        }
    }
    scope->pubsub_topics = *names;
    return STATUS_OK;
}

static enum status answer_in_scope(struct sync_session *session, const struct sync_set *set,
        const struct sync_wanted *wanted, const struct sync_scope *scope)
{
    const struct store_sync_options *options = &session->sync->options;
    struct reconciliation_limits limits = session->sync->limits;
    limits.differences_max = session->ids_left;
    limits.wanted = wanted;
    if (scope->pubsub_topic_count == 0) {
        session->answer.is_end = true; /* in no topic, so there is nothing that we would keep */
        session->answer.payload.length = 0;
        return STATUS_OK;
    }
    struct sync_gap window =
            reconciliation_window(clock_wall_ns(), options->range_ns, options->jitter_ns);
    if (session->is_first && session->is_ours) {
        return reconciliation_start(&session->answer, set, scope, window);
    }
    if (!session->is_ours) {
        /* The peer's range may be longer; the jitter makes up for clocks that differ. */
        limits.earliest_ns = window.from_ns - 2 * options->jitter_ns;
    }
    return reconciliation_answer(
            &session->answer, set, scope, prefixed_reader_message(&session->reader), &limits);
}

static void answer_payload(struct sync_job *job, struct sync_set *set)
{
    struct sync_session *session =
            (struct sync_session *)((char *)job - offsetof(struct sync_session, job));
    struct span *names = NULL;
    struct sync_scope scope;
    struct sync_wanted *wanted = sync_set_wanted(set);
    sync_wanted_answered(wanted, (uintptr_t)session);
    session->status = collect_scope(session->sync, &names, &scope);
    if (session->status == STATUS_OK) {
        session->status = answer_in_scope(session, set, wanted, &scope);
    }
    if (session->status == STATUS_OK) {
        note_wanted(session, wanted);
    }
    memory_free(names);
    io_loop_post(session->loop, &session->back);
}

/* io thread */

static void free_session(struct sync_session *session)
{
    if (session->is_counted) {
        /* relaxed: a bound that is approximate while sessions begin */
        atomic_fetch_sub_explicit(&session->sync->session_count, 1, memory_order_relaxed);
    }
    prefixed_reader_fini(&session->reader);
    reconciliation_answer_fini(&session->answer);
    memory_free(session);
}

static void post_job(struct sync_session *session)
{
    session->is_working = true;
    session->job.needs_whole_set = true;
    session->job.run = answer_payload;
    store_sync_begin_job(session->sync);
    inbox_push(session->sync->options.sync_jobs, &session->job.link);
    inbox_wake(session->sync->options.sync_jobs);
}

/* What came of it, by the bounds that the reference has for it. */
static void observe(const struct sync_session *session)
{
    static const uint64_t rounds[] = {1, 2, 3, 5, 8, 13};
    static const uint64_t differences[] = {0, 10, 50, 100, 500, 1000, 5000};
    if (session->is_over) {
        histogram_observe(METRIC_SYNC_ROUNDTRIPS_LE_1, rounds, sizeof(rounds) / sizeof(rounds[0]),
                session->rounds);
        histogram_observe(METRIC_SYNC_DIFFERENCES_LE_0, differences,
                sizeof(differences) / sizeof(differences[0]),
                session->they_lack + session->we_lack);
    }
}

static void count_end(enum status reason, bool is_over)
{
    if (is_over) {
        metrics_add(METRIC_SYNC_SESSIONS_ENDED, 1);
    } else if (reason == STATUS_BUSY) {
        metrics_add(METRIC_SYNC_SESSIONS_BUSY, 1);
    } else if (reason == STATUS_LIMIT_REACHED || reason == STATUS_TOO_LARGE) {
        metrics_add(METRIC_SYNC_SESSIONS_LIMIT, 1);
    } else if (reason == STATUS_BAD_FIELD || reason == STATUS_BAD_VARINT ||
               reason == STATUS_TRUNCATED) {
        metrics_add(METRIC_SYNC_SESSIONS_MALFORMED, 1);
    } else {
        metrics_add(METRIC_SYNC_SESSIONS_FAILED, 1);
    }
}

static void log_end(const struct sync_session *session, enum status reason)
{
    static struct log_limit limit;
    bool has_differences = session->they_lack + session->we_lack > 0;
    log_write_limited(&limit, has_differences || !session->is_over ? LOG_INFO : LOG_DEBUG, "sync",
            "session %s: %s after %u payloads and %zu bytes; %zu messages to send, %zu to come",
            session->is_ours ? "of ours" : "of a peer",
            session->is_over ? "ended" : status_text(reason), session->rounds, session->bytes,
            session->they_lack, session->we_lack);
}

/* The peer may send what we lack for a while; what it lacks goes on being sent. */
static void leave_peer(struct sync_session *session)
{
    struct sync_peer *peer = session->peer;
    if (peer == NULL) {
        return;
    }
    peer->session_count--;
    peer->grace_end_ms = store_sync_now_ms() + STORE_SYNC_GRACE_MS;
    if (!peer->is_gone) {
        store_sync_pump(peer);
    }
    session->peer = NULL;
    store_sync_unref_peer(peer);
}

static void on_closed(struct stream *stream, enum status reason)
{
    struct sync_session *session = stream_context(stream);
    if (session == NULL) {
        return;
    }
    session->stream = NULL;
    count_end(reason, session->is_over);
    observe(session);
    log_end(session, reason);
    leave_peer(session);
    if (session->is_ours) {
        store_sync_session_over(session->sync, session->is_over      ? STATUS_OK
                                               : reason == STATUS_OK ? STATUS_CLOSED
                                                                     : reason);
    }
    if (!session->is_working) {
        free_session(session);
    }
}

/* The payload is the muxer's from here on. */
static enum status write_payload(struct sync_session *session)
{
    struct sync_bytes *payload = &session->answer.payload;
    uint8_t *header = memory_allocate(VARINT_MAX_BYTES);
    if (header == NULL) {
        return STATUS_NO_MEMORY;
    }
    size_t header_length = (size_t)(varint_write(header, payload->length) - header);
    struct muxer_piece pieces[] = {
            {.bytes = span_of(header, header_length), .release = memory_free, .owner = header},
            {.bytes = span_of(payload->bytes, payload->length),
                    .release = memory_free,
                    .owner = payload->bytes}};
    enum status status = stream_write(session->stream, pieces, 2);
    if (status != STATUS_OK) {
        memory_free(header);
        return status;
    }
    session->bytes += payload->length;
    metrics_add(METRIC_SYNC_BYTES_OUT, payload->length);
    *payload = (struct sync_bytes){.length = 0};
    return STATUS_OK;
}

static size_t less(size_t left, size_t used)
{
    return left > used ? left - used : 0;
}

/* The peer's time for the next payload. False: the session's is over, and so is the session. */
static bool wait_for_payload(struct sync_session *session)
{
    uint64_t now_ms = store_sync_now_ms();
    if (now_ms >= session->end_ms) {
        stream_reset(session->stream, STATUS_LIMIT_REACHED);
        return false;
    }
    uint64_t left_ms = session->end_ms - now_ms;
    stream_set_timeout(session->stream,
            left_ms < STORE_SYNC_STEP_TIMEOUT_MS ? left_ms : STORE_SYNC_STEP_TIMEOUT_MS);
    return true;
}

static void take_differences(struct sync_session *session)
{
    struct reconciliation_answer *answer = &session->answer;
    size_t larger = answer->we_lack.count > answer->they_lack.count ? answer->we_lack.count
                                                                    : answer->they_lack.count;
    session->they_lack += answer->they_lack.count;
    session->we_lack += answer->we_lack.count;
    session->ids_left = less(session->ids_left, larger);
    session->peer->awaited += answer->we_lack.count;
    session->peer->last_incoming_ms = store_sync_now_ms();
    metrics_add(METRIC_SYNC_THEY_LACK, answer->they_lack.count);
    metrics_add(METRIC_SYNC_WE_LACK, answer->we_lack.count);
    metrics_add(METRIC_SYNC_NOT_ASKED, answer->not_asked_count);
    metrics_add(METRIC_SYNC_INCOMPLETE, answer->is_incomplete);
    store_sync_send(session->peer, &answer->they_lack);
}

static void go_on(struct sync_session *session)
{
    struct stream *stream = session->stream;
    enum status status = session->status;
    if (status == STATUS_OK) {
        take_differences(session);
        if (session->answer.payload.length > 0) {
            status = write_payload(session);
        }
    }
    if (status != STATUS_OK) {
        stream_reset(stream, status);
        return;
    }
    prefixed_reader_fini(&session->reader);
    prefixed_reader_init(&session->reader, session->sync->options.payload_bytes_max);
    session->is_first = false;
    session->is_over = session->answer.is_end;
    if (session->is_over) {
        stream_close_write(stream);
        stream_set_timeout(stream, LINGER_MS);
    } else if (!wait_for_payload(session)) {
        return;
    }
    stream_resume(stream);
}

static void run_back(struct io_task *task)
{
    struct sync_session *session =
            (struct sync_session *)((char *)task - offsetof(struct sync_session, back));
    struct store_sync *sync = session->sync;
    session->is_working = false;
    if (session->stream != NULL) {
        go_on(session);
    } else {
        free_session(session);
    }
    store_sync_end_job(sync);
}

static struct sync_session *make_session(struct store_sync *sync, bool is_ours)
{
    struct sync_session *session = memory_allocate_zeroed(sizeof(*session));
    if (session != NULL) {
        session->sync = sync;
        session->is_ours = is_ours;
        session->is_first = true;
        session->ids_left = sync->options.session_ids_max;
        session->back.run = run_back;
        prefixed_reader_init(&session->reader, sync->options.payload_bytes_max);
    }
    return session;
}

static enum status join_peer(struct sync_session *session, struct stream *stream)
{
    struct connection *connection = stream_connection(stream);
    struct store_sync *sync = session->sync;
    struct sync_shard *shard = store_sync_shard_of(sync, connection_id(connection));
    /* relaxed: see free_session */
    size_t count = atomic_fetch_add_explicit(&sync->session_count, 1, memory_order_relaxed);
    session->is_counted = true;
    session->stream = stream;
    session->loop = shard->loop;
    session->connection = connection_id(connection);
    if (count >= sync->options.sessions_max) {
        return STATUS_BUSY;
    }
    session->peer = store_sync_know_peer(shard, connection_id(connection));
    if (session->peer == NULL) {
        return STATUS_NO_MEMORY;
    }
    store_sync_ref_peer(session->peer);
    session->peer->session_count++;
    session->peer->incoming_left = sync->options.session_ids_max;
    session->peer->awaited = 0;
    session->end_ms = store_sync_now_ms() + sync->options.session_time_ms;
    (void)wait_for_payload(session); /* it has just begun */
    return STATUS_OK;
}

static enum status on_theirs_opened(struct stream *stream)
{
    struct store_sync *sync = stream_context(stream);
    const struct peer_id *peer = connection_peer(stream_connection(stream));
    struct sync_session *session = make_session(sync, false);
    stream_set_context(stream, session);
    if (session == NULL) {
        return STATUS_NO_MEMORY;
    }
    session->stream = stream;
    bool is_admitted = rate_limiter_admit(
            sync->peer_sessions, span_of(peer->bytes, peer->length), clock_monotonic_ns());
    return is_admitted ? join_peer(session, stream) : STATUS_BUSY;
}

static enum status on_ours_opened(struct stream *stream)
{
    struct sync_session *session = stream_context(stream);
    enum status status = join_peer(session, stream);
    if (status == STATUS_OK) {
        post_job(session);
    }
    return status;
}

static size_t on_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct sync_session *session = stream_context(stream);
    if (session->is_over) {
        *to = session->ignored;
        return sizeof(session->ignored);
    }
    return session->is_working ? 0 : prefixed_reader_reserve(&session->reader, wanted, to);
}

static void on_commit(struct stream *stream, size_t n)
{
    struct sync_session *session = stream_context(stream);
    stream_consumed(stream, n);
    if (session->is_over) {
        return;
    }
    enum status status = prefixed_reader_commit(&session->reader, n);
    if (status == STATUS_OK && !prefixed_reader_is_done(&session->reader)) {
        return;
    }
    if (status == STATUS_OK && ++session->rounds > session->sync->options.rounds_max) {
        status = STATUS_LIMIT_REACHED;
    }
    if (status != STATUS_OK) {
        stream_reset(stream, status);
        return;
    }
    session->bytes += session->reader.length;
    metrics_add(METRIC_SYNC_ROUNDS, 1);
    metrics_add(METRIC_SYNC_BYTES_IN, session->reader.length);
    /* What was counted down while the peer wrote is ours now. */
    if (wait_for_payload(session)) {
        post_job(session);
    }
}

static void on_remote_closed(struct stream *stream)
{
    struct sync_session *session = stream_context(stream);
    if (session->is_working) {
        return; /* what it said last may have been the end */
    }
    if (session->is_over) {
        stream_close_write(stream);
    } else {
        stream_reset(stream, STATUS_CLOSED);
    }
}

const struct stream_events store_sync_session_events = {
        .opened = on_theirs_opened,
        .reserve = on_reserve,
        .commit = on_commit,
        .remote_closed = on_remote_closed,
        .closed = on_closed,
};

static const struct stream_events ours = {
        .opened = on_ours_opened,
        .reserve = on_reserve,
        .commit = on_commit,
        .remote_closed = on_remote_closed,
        .closed = on_closed,
};

/* A session now would find the same differences once more. */
static bool is_busy_with(const struct sync_peer *peer)
{
    bool is_sending = peer->outgoing.stream != NULL || peer->outgoing.queued > 0;
    bool is_receiving = peer->awaited > 0 || peer->receiving_count > 0;
    return peer->session_count > 0 || is_sending ||
           (is_receiving && store_sync_now_ms() - peer->last_incoming_ms < STORE_SYNC_QUIET_MS);
}

void store_sync_begin_session(void *context, struct connection *connection)
{
    static const char *const protocols[] = {RECONCILIATION_PROTOCOL_ID};
    struct store_sync *sync = context;
    struct sync_peer *peer = NULL;
    if (connection != NULL) {
        uint64_t id = connection_id(connection);
        peer = store_sync_find_peer(store_sync_shard_of(sync, id), id);
    }
    if (peer != NULL && is_busy_with(peer)) {
        store_sync_session_over(sync, STATUS_BUSY);
        return;
    }
    struct sync_session *session = connection == NULL ? NULL : make_session(sync, true);
    if (session == NULL) {
        store_sync_session_over(sync, connection == NULL ? STATUS_CLOSED : STATUS_NO_MEMORY);
        return;
    }
    struct stream_request request = {
            .protocols = protocols, .protocol_count = 1, .events = &ours, .context = session};
    enum status status = connection_open_stream(connection, &request, NULL);
    if (status != STATUS_OK) {
        free_session(session);
        store_sync_session_over(sync, status);
    }
}
