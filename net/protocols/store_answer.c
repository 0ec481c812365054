/* SPDX-License-Identifier: MIT */
#include "net/protocols/store_answer.h"

#include "base/memory.h"
#include "net/protocols/piece_list.h"
#include "net/protocols/service_code.h"
#include "net/protocols/store_message.h"

enum {
    CURSOR_BYTES = 64,
    SEGMENTS_MAX = 4 * ARCHIVE_PAGE_MAX + 4 /* more than a page ever has */
};

struct store_answer {
    size_t row_count;
    struct piece_list *pieces;
};

enum status store_answer_create(struct store_answer **out, struct span request_id)
{
    struct store_answer *answer = memory_allocate_zeroed(sizeof(*answer));
    if (answer == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = piece_list_create(&answer->pieces, SEGMENTS_MAX);
    if (status == STATUS_OK) {
        uint8_t *to = piece_list_room(answer->pieces, STORE_ANSWER_HEAD_MAX);
        status =
                to == NULL
                        ? STATUS_NO_MEMORY
                        : piece_list_add_written(answer->pieces,
                                  store_write_head(to, request_id, SERVICE_OK, span_of_text("OK")));
    }
    if (status != STATUS_OK) {
        store_answer_destroy(&answer);
        return status;
    }
    *out = answer;
    return STATUS_OK;
}

void store_answer_destroy(struct store_answer **answer)
{
    if (*answer != NULL) {
        piece_list_unref((*answer)->pieces);
        memory_free(*answer);
        *answer = NULL;
    }
}

enum status store_answer_add(
        struct store_answer *answer, const struct archive_row *row, bool has_data)
{
    struct piece_list *pieces = answer->pieces;
    uint8_t *to = piece_list_room(pieces, STORE_ENTRY_HEAD_MAX);
    if (to == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = piece_list_add_written(pieces, store_write_entry_head(to, row, has_data));
    if (status == STATUS_OK && has_data) {
        status = piece_list_add_message(pieces, row);
    }
    if (status == STATUS_OK && has_data) {
        to = piece_list_room(pieces, store_entry_tail_size(row));
        status = to == NULL ? STATUS_NO_MEMORY
                            : piece_list_add_written(pieces, store_write_entry_tail(to, row));
    }
    answer->row_count += status == STATUS_OK;
    return status;
}

enum status store_answer_finish(struct store_answer *answer, const struct archive_page *page)
{
    if (!page->has_cursor) {
        return STATUS_OK;
    }
    uint8_t *to = piece_list_room(answer->pieces, CURSOR_BYTES);
    return to == NULL
                   ? STATUS_NO_MEMORY
                   : piece_list_add_written(answer->pieces, store_write_cursor(to, page->cursor));
}

size_t store_answer_length(const struct store_answer *answer)
{
    return piece_list_length(answer->pieces);
}

size_t store_answer_rows(const struct store_answer *answer)
{
    return answer->row_count;
}

size_t store_answer_length_with(
        const struct store_answer *answer, const struct archive_row *row, bool has_data)
{
    size_t added = STORE_ENTRY_HEAD_MAX + CURSOR_BYTES;
    if (has_data) {
        added += row->message.length + store_entry_tail_size(row);
    }
    return store_answer_length(answer) + added;
}

size_t store_answer_next_pieces(
        struct store_answer *answer, struct muxer_piece pieces[], size_t max)
{
    return piece_list_next(answer->pieces, pieces, max);
}
