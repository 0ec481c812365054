/* SPDX-License-Identifier: MIT */
#include "net/switch/close_reason.h"

struct reason_row {
    const char *text;
    enum metric metric;
    bool is_fault;
};

static const struct reason_row rows[] = {
#define CLOSE_REASON(id, fault, words)                                                             \
    [CLOSE_##id] = {.text = words, .metric = METRIC_NET_CLOSED_##id, .is_fault = fault},
#include "net/switch/close_reason.def"
#undef CLOSE_REASON
};

const char *close_reason_text(enum close_reason reason)
{
    return rows[reason].text;
}

enum metric close_reason_metric(enum close_reason reason)
{
    return rows[reason].metric;
}

bool close_reason_is_fault(enum close_reason reason)
{
    return rows[reason].is_fault;
}

static enum close_reason reason_of_upgrade(enum status status)
{
    switch ((int)status) {
    case STATUS_CLOSED:
    case STATUS_RESET:
        return CLOSE_LEFT_EARLY;
    case STATUS_UNREACHABLE:
    case STATUS_TIMED_OUT:
        return CLOSE_UNREACHABLE;
    case STATUS_BAD_SIGNATURE:
    case STATUS_BAD_KEY:
        return CLOSE_BAD_IDENTITY;
    case STATUS_WRONG_PEER:
        return CLOSE_WRONG_PEER;
    case STATUS_NO_MEMORY:
    case STATUS_SYSTEM:
        return CLOSE_NO_MEMORY;
    default:
        return CLOSE_BAD_HANDSHAKE;
    }
}

enum close_reason close_reason_from_status(enum status status, bool is_upgraded)
{
    if (!is_upgraded) {
        return reason_of_upgrade(status);
    }
    switch ((int)status) {
    case STATUS_CLOSED:
        return CLOSE_PEER_CLOSED;
    case STATUS_RESET:
        return CLOSE_PEER_RESET;
    case STATUS_WINDOW_OVERRUN:
        return CLOSE_WINDOW_OVERRUN;
    case STATUS_LIMIT_REACHED:
        return CLOSE_ANSWERS_UNREAD;
    case STATUS_TIMED_OUT:
        return CLOSE_PING_TIMED_OUT;
    case STATUS_NO_MEMORY:
        return CLOSE_NO_MEMORY;
    default:
        return CLOSE_BAD_FRAME;
    }
}
