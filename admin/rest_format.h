/* SPDX-License-Identifier: MIT */
#pragma once

/* Messages and pages of messages as REST writes them. */

#include "admin/rest_cache.h"
#include "admin/rest_text.h"
#include "archive/archive_query.h"
#include "codec/waku_message.h"

/* Which fields, in which order: proof always, never, or when there is one. */
enum rest_form {
    REST_FORM_RELAY,
    REST_FORM_FILTER,
    REST_FORM_STORE
};

void rest_add_message(
        struct rest_text *text, const struct waku_message_view *fields, enum rest_form form);

/* The whole batch as a list. */
void rest_add_batch(struct rest_text *text, const struct rest_cached *batch, enum rest_form form);

/* One message of a page of the store; is_first: no comma before it. False: its bytes are none. */
bool rest_add_row(
        struct rest_text *text, const struct archive_row *row, bool has_data, bool is_first);
