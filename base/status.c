/* SPDX-License-Identifier: MIT */
#include "base/status.h"

static const char *const texts[] = {
#define STATUS(id, text) [STATUS_##id] = text,
#include "base/status.def"
#undef STATUS
};

const char *status_text(enum status status)
{
    return texts[status];
}
