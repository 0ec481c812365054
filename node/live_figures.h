/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The figures of the live page and of `sluice top`, as one line of JSON. Rates are those of the watch's
 * last period, a second each; times are in milliseconds, since 1970 where they are points in time.
 *
 * Thread: the watch's.
 */

#include "base/attributes.h"
#include "node/health.h"
#include "node/live_subscribers.h"
#include "node/watch.h"

/* To be freed by free(); NULL: no memory. */
MUST_USE char *live_figures(
        struct node *node, const struct watch_tick *tick, struct live_subscribers *subscribers);
MUST_USE char *live_figures_of_part(enum health_part part, const struct health_part_state *state);
