/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Outgoing bytes in their order, made on one thread and sent on another: stored messages that have an
 * envelope are sent from it, everything else lies in chunks that never move.
 *
 * Thread: one at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include "archive/archive_query.h"
#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/muxer/muxer.h"

struct piece_list;

/* segments_max: bytes that lie together, and messages, there may be so many of both. */
MUST_USE enum status piece_list_create(struct piece_list **out, size_t segments_max);

/* Counted: pieces that were handed out keep it as well. NULL is accepted. */
void piece_list_unref(struct piece_list *CONSUMED list);

/* A place for up to length bytes, NULL without memory; then how far it was written. */
uint8_t *BORROWED piece_list_room(struct piece_list *list, size_t length);
MUST_USE enum status piece_list_add_written(struct piece_list *list, const uint8_t *end);

/* The row's message: by reference where it has an envelope, else a copy. */
MUST_USE enum status piece_list_add_message(struct piece_list *list, const struct archive_row *row);

size_t piece_list_length(const struct piece_list *list);

/* The next pieces, up to max; 0: all have been handed out. */
size_t piece_list_next(struct piece_list *list, struct muxer_piece pieces[], size_t max);
