/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The io role: a worker whose turns are the callbacks of an io loop, and whose sleep is the wait for
 * its events.
 */

#include <stdbool.h>

#include "net/transport/io_loop.h"
#include "workers/worker.h"

struct io_role {
    struct io_loop *BORROWED loop;
    bool has_events; /* the wait has found some */
};

/* context: the io_role. It ends on a stop request, whatever the loop still has to do. */
struct worker_role io_role_of(struct io_role *role, const char *name);
