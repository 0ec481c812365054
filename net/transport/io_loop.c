/* SPDX-License-Identifier: MIT */
#include "net/transport/io_loop.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include "base/clock.h"
#include "base/memory.h"

struct io_loop {
    uv_loop_t uv;
    uv_async_t wake;
    struct inbox *inbox;
    unsigned index;
    bool has_blocked_signals; /* on the thread that runs it */
    unsigned lingering_count;
    size_t in_flight_bytes;
    uint8_t *input;
    uint8_t *output;
};

static bool try_run_task(struct io_loop *loop)
{
    struct inbox_link *link = inbox_try_pop(loop->inbox);
    if (link == NULL) {
        return false;
    }
    struct io_task *task = (struct io_task *)((char *)link - offsetof(struct io_task, link));
    task->run(task);
    return true;
}

/* Those that are there. What they post in turn comes after the sockets' turn. */
static void on_wake(uv_async_t *handle)
{
    struct io_loop *loop = handle->data;
    size_t count = inbox_depth_estimate(loop->inbox);
    while (count > 0 && try_run_task(loop)) {
        count--;
    }
    if (!inbox_is_empty(loop->inbox)) {
        io_loop_wake(loop);
    }
}

static enum status start(struct io_loop *loop)
{
    if (uv_loop_init(&loop->uv) != 0) {
        return STATUS_SYSTEM;
    }
    if (uv_async_init(&loop->uv, &loop->wake, on_wake) != 0) {
        uv_loop_close(&loop->uv);
        return STATUS_SYSTEM;
    }
    loop->wake.data = loop;
    return STATUS_OK;
}

enum status io_loop_create(struct io_loop **out, unsigned index)
{
    struct io_loop *loop = memory_allocate_zeroed(sizeof(*loop));
    if (loop == NULL) {
        return STATUS_NO_MEMORY;
    }
    loop->index = index;
    loop->input = memory_allocate(IO_LOOP_BUFFER_BYTES);
    loop->output = memory_allocate(IO_LOOP_BUFFER_BYTES);
    enum status status = STATUS_NO_MEMORY;
    if (loop->input == NULL || loop->output == NULL) {
        goto fail;
    }
    status = inbox_create(&loop->inbox);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = start(loop);
    if (status != STATUS_OK) {
        goto fail;
    }
    *out = loop;
    return STATUS_OK;
fail:
    if (loop->inbox != NULL) {
        inbox_destroy(&loop->inbox);
    }
    memory_free(loop->output);
    memory_free(loop->input);
    memory_free(loop);
    return status;
}

void io_loop_destroy(struct io_loop **loop_pointer)
{
    struct io_loop *loop = *loop_pointer;
    if (loop == NULL) {
        return;
    }
    while (try_run_task(loop)) {
    }
    uv_close((uv_handle_t *)&loop->wake, NULL);
    /* What sockets and timers still have to finish: their close callbacks. */
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    int result = uv_loop_close(&loop->uv);
    assert(result == 0);
    (void)result;
    inbox_destroy(&loop->inbox);
    memory_free(loop->output);
    memory_free(loop->input);
    memory_free(loop);
    *loop_pointer = NULL;
}

static int timeout_in_ms(uint64_t timeout_ns)
{
    uint64_t ms = timeout_ns / NANOSECONDS_PER_MILLISECOND;
    return timeout_ns == UINT64_MAX || ms > INT_MAX ? -1 : (int)ms;
}

/*
 * A poll of libuv's own descriptor and not uv_run(ONCE), because libuv calls back from inside its
 * wait: nothing of ours would run between the waking and the first callback.
 */
bool io_loop_wait(struct io_loop *loop, uint64_t timeout_ns)
{
    uv_update_time(&loop->uv);
    int own_ms = uv_backend_timeout(&loop->uv);
    int asked_ms = timeout_in_ms(timeout_ns);
    int timeout_ms = own_ms < 0 || (asked_ms >= 0 && asked_ms < own_ms) ? asked_ms : own_ms;
    if (timeout_ms == 0) {
        return own_ms == 0;
    }
    struct pollfd descriptor = {.fd = uv_backend_fd(&loop->uv), .events = POLLIN};
    int result = poll(&descriptor, 1, timeout_ms);
    assert(result >= 0 || errno == EINTR);
    return result > 0;
}

/*
 * A write to a socket whose peer has gone raises SIGPIPE in the thread that writes, and libuv writes
 * without asking for none. The disposition belongs to the host of the library, the mask of this
 * thread does not.
 */
static void block_broken_pipes(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    int result = pthread_sigmask(SIG_BLOCK, &signals, NULL);
    assert(result == 0);
    (void)result;
}

void io_loop_turn(struct io_loop *loop)
{
    if (!loop->has_blocked_signals) {
        loop->has_blocked_signals = true;
        block_broken_pipes();
    }
    uv_run(&loop->uv, UV_RUN_NOWAIT);
}

bool io_loop_has_work(const struct io_loop *loop)
{
    return uv_backend_timeout(&loop->uv) == 0;
}

void io_loop_run_once(struct io_loop *loop)
{
    (void)io_loop_wait(loop, UINT64_MAX);
    io_loop_turn(loop);
}

void io_loop_wake(struct io_loop *loop)
{
    int result = uv_async_send(&loop->wake);
    assert(result == 0);
    (void)result;
}

void io_loop_post(struct io_loop *loop, struct io_task *task)
{
    inbox_push(loop->inbox, &task->link);
    io_loop_wake(loop);
}

unsigned io_loop_index(const struct io_loop *loop)
{
    return loop->index;
}

uint64_t io_loop_now_ms(const struct io_loop *loop)
{
    return uv_now(&loop->uv);
}

uv_loop_t *io_loop_uv(struct io_loop *loop)
{
    return &loop->uv;
}

uint8_t *io_loop_input_buffer(struct io_loop *loop)
{
    return loop->input;
}

uint8_t *io_loop_output_buffer(struct io_loop *loop)
{
    return loop->output;
}

bool io_loop_try_begin_linger(struct io_loop *loop)
{
    if (loop->lingering_count == IO_LOOP_LINGERING_MAX) {
        return false;
    }
    loop->lingering_count++;
    return true;
}

void io_loop_end_linger(struct io_loop *loop)
{
    assert(loop->lingering_count > 0);
    loop->lingering_count--;
}

size_t io_loop_bytes_in_flight(const struct io_loop *loop)
{
    return loop->in_flight_bytes;
}

void io_loop_add_in_flight(struct io_loop *loop, size_t bytes)
{
    loop->in_flight_bytes += bytes;
}

void io_loop_remove_in_flight(struct io_loop *loop, size_t bytes)
{
    assert(bytes <= loop->in_flight_bytes);
    loop->in_flight_bytes -= bytes;
}
