/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Results of operations that can fail for a reason the caller cannot prevent.
 * "Full", "empty" and "would block" are not failures: those functions are named try_ and return
 * bool or NULL. A broken invariant is not a failure either: it is an assert.
 */

enum status {
#define STATUS(id, text) STATUS_##id,
#include "base/status.def"
#undef STATUS
};

const char *status_text(enum status status);
