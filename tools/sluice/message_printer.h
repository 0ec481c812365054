/* SPDX-License-Identifier: MIT */
#pragma once

/* Prints messages: a line of text each, together as one JSON object, or a JSON object on a line each. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

struct message_printer {
    json_t *messages; /* NULL: text */
    bool is_lines;    /* each is printed at once, as JSON with its payload */
};

void message_printer_init(struct message_printer *printer, bool is_json);
/* For messages that come one by one: text, or an object on a line each, with the payload in base64. */
void message_printer_init_lines(struct message_printer *printer, bool is_json);
void message_printer_fini(struct message_printer *printer);

/* STATUS_DAMAGED when message is no WakuMessage. */
MUST_USE enum status message_printer_add(struct message_printer *printer, struct span hash,
        struct span pubsub_topic, struct span message);

/* cursor: empty when there is none. */
void message_printer_end(const struct message_printer *printer, uint64_t count, struct span cursor);
