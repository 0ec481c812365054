/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The event loop of one io thread: libuv's loop, a way in for other threads, and the buffer that all
 * its sockets read into.
 *
 * Progress:  post and wake never block.
 * Lifetime:  every socket, timer and task of the loop is gone before destroy.
 *
 *                        any thread   the io thread
 *   post, wake               x              x
 *   all others                              x
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/attributes.h"
#include "base/status.h"
#include "queues/inbox.h"

enum {
    IO_LOOP_BUFFER_BYTES = 256 * 1024,
    IO_LOOP_LINGERING_MAX = 64
};

/* Something to be done on the io thread; embedded in whoever asks for it. */
struct io_task {
    struct inbox_link link;
    /* Owns the task. */
    void (*run)(struct io_task *CONSUMED task);
};

struct io_loop;

/* index: position among the io threads, below 256. */
MUST_USE enum status io_loop_create(struct io_loop **out, unsigned index);

/* Runs what is posted and what is closing, then frees. NULL content is accepted. */
void io_loop_destroy(struct io_loop **loop);

/*
 * Sleeps until there is something to do, a wake, or timeout_ns have passed; runs nothing. Until it
 * returns the thread may be RCU-offline. True when a turn has something to run.
 */
bool io_loop_wait(struct io_loop *loop, uint64_t timeout_ns);

/* Runs every callback that is due, without waiting. The first one blocks SIGPIPE on its thread. */
void io_loop_turn(struct io_loop *loop);

/* Whether a turn has to come before the next wait. */
bool io_loop_has_work(const struct io_loop *loop);

/* Waits as long as it takes, then a turn. */
void io_loop_run_once(struct io_loop *loop);

void io_loop_wake(struct io_loop *loop);

/* What a task posts runs in a later turn: the sockets have theirs between the two. */
void io_loop_post(struct io_loop *loop, struct io_task *CONSUMED task);

unsigned io_loop_index(const struct io_loop *loop);
uint64_t io_loop_now_ms(const struct io_loop *loop);
uv_loop_t *BORROWED io_loop_uv(struct io_loop *loop);

/* IO_LOOP_BUFFER_BYTES, each; what is in them is valid only inside one callback. */
uint8_t *BORROWED io_loop_input_buffer(struct io_loop *loop);
uint8_t *BORROWED io_loop_output_buffer(struct io_loop *loop);

/*
 * Sockets that nobody owns any more and that still wait for the peer to take what was sent last.
 * False when there are as many as may be (IO_LOOP_LINGERING_MAX): peers that are refused and do not
 * leave must not use up the descriptors.
 */
MUST_USE bool io_loop_try_begin_linger(struct io_loop *loop);
void io_loop_end_linger(struct io_loop *loop);

/* Bytes that sockets of this loop could not send yet. */
size_t io_loop_bytes_in_flight(const struct io_loop *loop);
void io_loop_add_in_flight(struct io_loop *loop, size_t bytes);
void io_loop_remove_in_flight(struct io_loop *loop, size_t bytes);
