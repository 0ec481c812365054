/* SPDX-License-Identifier: MIT */
#include "node/io_role.h"

static size_t turn(void *context)
{
    struct io_role *role = context;
    size_t done = role->has_events ? 1 : 0;
    role->has_events = false;
    io_loop_turn(role->loop);
    return done;
}

static void wait_for_events(void *context, uint64_t timeout_ns)
{
    struct io_role *role = context;
    role->has_events = io_loop_wait(role->loop, timeout_ns);
}

static void wake(void *context)
{
    struct io_role *role = context;
    io_loop_wake(role->loop);
}

struct worker_role io_role_of(struct io_role *role, const char *name)
{
    return (struct worker_role){
            .name = name, .context = role, .turn = turn, .wait = wait_for_events, .wake = wake};
}
