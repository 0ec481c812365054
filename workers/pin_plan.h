/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which processors each role's threads run on, from --pin:
 *
 *   none                       anywhere
 *   auto                       one physical core a thread, decode first, the others on cores that share
 *                              its last-level cache; the reclaimer, io and whatever has no core of its
 *                              own run on the cores left over. With fewer cores than threads only
 *                              decode is pinned. With one core nothing is.
 *   decode:0,archive:1,filter:2-3   these roles there, each thread of a role on one of its processors
 *                              in turn; roles that are not named run anywhere else
 *
 * Thread: one, before the workers start.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/attributes.h"
#include "base/cpu_set.h"
#include "base/status.h"

enum {
    PIN_ROLES_MAX = 16
};

/* A role as the plan sees it; priority 0 gets a core first, negative: never pinned by auto. */
struct pin_role {
    const char *name;
    size_t thread_count;
    int auto_priority;
};

struct pin_plan {
    size_t role_count;
    struct cpu_set named[PIN_ROLES_MAX]; /* empty: not pinned */
    struct cpu_set floating;             /* for everything that is not pinned */
    bool has_core_per_thread;            /* each thread of a priority >= 0 has its own */
};

struct pin_error {
    char text[200];
};

/*
 * STATUS_BAD_ARGUMENT when text does not parse, names a role that is not there, or a processor that
 * does not exist or that this process may not use; the error says which.
 */
MUST_USE enum status pin_plan_make(struct pin_plan *out, const char *text,
        const struct pin_role roles[], size_t role_count, struct pin_error *error);

/* The processors of thread number thread of roles[role]. */
void pin_plan_cpus(struct cpu_set *out, const struct pin_plan *plan, size_t role, size_t thread);
