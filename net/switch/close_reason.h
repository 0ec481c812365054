/* SPDX-License-Identifier: MIT */
#pragma once

/* Why a connection was refused or ended: a row of close_reason.def, each with its own counter. */

#include <stdbool.h>

#include "base/metrics.h"
#include "base/status.h"

enum close_reason {
#define CLOSE_REASON(id, is_fault, text) CLOSE_##id,
#include "net/switch/close_reason.def"
#undef CLOSE_REASON
    CLOSE_REASON_COUNT
};

const char *close_reason_text(enum close_reason reason);
enum metric close_reason_metric(enum close_reason reason);

/* Whether an operator wants a line about it: not for connections that end in an orderly way. */
bool close_reason_is_fault(enum close_reason reason);

/* The reason that a failure of handshake, muxer or transport stands for. */
enum close_reason close_reason_from_status(enum status status, bool is_upgraded);
