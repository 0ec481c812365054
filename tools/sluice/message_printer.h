/* SPDX-License-Identifier: MIT */
#pragma once

/* Prints stored messages, a line each or together as one JSON object. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

struct message_printer {
    json_t *messages; /* NULL: text */
};

void message_printer_init(struct message_printer *printer, bool is_json);
void message_printer_fini(struct message_printer *printer);

/* STATUS_DAMAGED when message is no WakuMessage. */
MUST_USE enum status message_printer_add(struct message_printer *printer, struct span hash,
        struct span pubsub_topic, struct span message);

/* cursor: empty when there is none. */
void message_printer_end(const struct message_printer *printer, uint64_t count, struct span cursor);
