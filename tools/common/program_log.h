/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The log of a program: where --log-file says, else standard error, as --log-format says, lines of
 * --log-level and above. Nobody who logs waits for it (admin/log_writer.h).
 *
 * Thread: the main one; start before others, stop after they have ended.
 */

#include <stdbool.h>

#include "base/attributes.h"
#include "base/options.h"

/* options has the node's table. False and one line on standard error when one of them is wrong. */
MUST_USE bool program_log_start(const struct options *options);

/* For programs that report what came of a run themselves: no lines unless some option asks for them. */
MUST_USE bool program_log_start_on_request(const struct options *options);

/* Opens --log-file again, for SIGHUP; not from a signal handler. */
void program_log_reopen(void);

/* Writes what is queued. Without a start: nothing. */
void program_log_stop(void);
