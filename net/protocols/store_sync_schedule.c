/* SPDX-License-Identifier: MIT */

/* With whom and when a session of ours begins. All on the control thread, unless it says otherwise. */

#include "base/memory.h"
#include "net/protocols/store_sync_private.h"

enum {
    TICK_MS = 200
};

static struct sync_candidate *candidate_of(struct io_task *task, size_t offset)
{
    return (struct sync_candidate *)((char *)task - offset);
}

static void run_add(struct io_task *task)
{
    struct sync_candidate *candidate = candidate_of(task, offsetof(struct sync_candidate, add));
    TAILQ_INSERT_TAIL(&candidate->sync->candidates, candidate, link);
}

static void run_remove(struct io_task *task)
{
    struct sync_candidate *candidate = candidate_of(task, offsetof(struct sync_candidate, remove));
    TAILQ_REMOVE(&candidate->sync->candidates, candidate, link);
    memory_free(candidate);
}

static struct io_loop *control_loop(const struct store_sync *sync)
{
    return switch_control_loop(sync->options.net_switch);
}

/* io thread; the tasks of one thread are carried out in order */
void store_sync_add_candidate(struct sync_candidate *candidate)
{
    candidate->add.run = run_add;
    io_loop_post(control_loop(candidate->sync), &candidate->add);
}

/* io thread */
void store_sync_remove_candidate(struct sync_candidate *candidate)
{
    candidate->remove.run = run_remove;
    io_loop_post(control_loop(candidate->sync), &candidate->remove);
}

static void run_over(struct io_task *task)
{
    struct store_sync *sync =
            (struct store_sync *)((char *)task - offsetof(struct store_sync, over));
    uint64_t retry_ms = store_sync_now_ms() + STORE_SYNC_RETRY_MS;
    sync->is_asking = false;
    if (sync->outcome != STATUS_OK && sync->options.interval_ms > 0 && retry_ms < sync->due_ms) {
        sync->due_ms = retry_ms;
    }
}

/* any thread */
void store_sync_session_over(struct store_sync *sync, enum status status)
{
    sync->outcome = status;
    sync->over.run = run_over;
    io_loop_post(control_loop(sync), &sync->over);
}

/* any thread */
void store_sync_now(struct store_sync *sync)
{
    /* relaxed: the next tick sees it */
    atomic_store_explicit(&sync->is_wanted, true, memory_order_relaxed);
}

static void begin(struct store_sync *sync, uint64_t now_ms)
{
    struct sync_candidate *candidate = TAILQ_FIRST(&sync->candidates);
    uint64_t interval_ms = sync->options.interval_ms;
    TAILQ_REMOVE(&sync->candidates, candidate, link);
    TAILQ_INSERT_TAIL(&sync->candidates, candidate, link);
    atomic_store_explicit(&sync->is_wanted, false, memory_order_relaxed);
    sync->is_asking = true;
    sync->due_ms = interval_ms > 0 ? now_ms + interval_ms : UINT64_MAX;
    enum status status = switch_run_on_connection(
            sync->options.net_switch, candidate->connection, store_sync_begin_session, sync);
    if (status != STATUS_OK) {
        store_sync_session_over(sync, status);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct store_sync *sync = timer->data;
    uint64_t now_ms = store_sync_now_ms();
    bool is_due =
            now_ms >= sync->due_ms || atomic_load_explicit(&sync->is_wanted, memory_order_relaxed);
    if (is_due && !sync->is_asking && !TAILQ_EMPTY(&sync->candidates)) {
        begin(sync, now_ms);
    }
}

void store_sync_schedule_init(struct store_sync *sync)
{
    TAILQ_INIT(&sync->candidates);
    sync->due_ms = sync->options.interval_ms > 0 ? 0 : UINT64_MAX;
    /* libuv's documentation: both always succeed. */
    uv_timer_init(io_loop_uv(control_loop(sync)), &sync->tick);
    sync->tick.data = sync;
    uv_timer_start(&sync->tick, on_tick, TICK_MS, TICK_MS);
}

static void on_tick_closed(uv_handle_t *handle)
{
    struct store_sync *sync = handle->data;
    sync->is_tick_closed = true;
}

void store_sync_schedule_fini(struct store_sync *sync)
{
    struct sync_candidate *candidate;
    uv_close((uv_handle_t *)&sync->tick, on_tick_closed);
    while (!sync->is_tick_closed) {
        io_loop_turn(control_loop(sync));
    }
    while ((candidate = TAILQ_FIRST(&sync->candidates)) != NULL) {
        TAILQ_REMOVE(&sync->candidates, candidate, link);
        memory_free(candidate);
    }
}
