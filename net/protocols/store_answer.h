/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The bytes of a page of stored messages, as a list of pieces.
 *
 * Thread: made on the query thread, then sent on the io thread; one at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/archive_query.h"
#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/muxer/muxer.h"

struct store_answer;

/* With the head of an answer of code 200 already in it. */
MUST_USE enum status store_answer_create(struct store_answer **out, struct span request_id);

/* The bytes of pieces that were handed out stay until those are released. */
void store_answer_destroy(struct store_answer **answer);

MUST_USE enum status store_answer_add(
        struct store_answer *answer, const struct archive_row *row, bool has_data);
MUST_USE enum status store_answer_finish(
        struct store_answer *answer, const struct archive_page *page);

size_t store_answer_length(const struct store_answer *answer);
size_t store_answer_rows(const struct store_answer *answer);

/* What adding the row would make of the length. */
size_t store_answer_length_with(
        const struct store_answer *answer, const struct archive_row *row, bool has_data);

/* The next pieces, up to max; 0: all have been handed out. */
size_t store_answer_next_pieces(
        struct store_answer *answer, struct muxer_piece pieces[], size_t max);
