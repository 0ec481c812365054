/* SPDX-License-Identifier: MIT */
#include "archive/selection.h"

#include <string.h>

#include "base/clock.h"

static enum status check_query(const struct archive_query *query)
{
    static const uint8_t zero[MESSAGE_HASH_BYTES];
    if (query->hash_count > 0 &&
            (query->pubsub_topic.length > 0 || query->content_topic_count > 0)) {
        return STATUS_BAD_QUERY;
    }
    for (size_t i = 0; i < query->hash_count; i++) {
        if (query->hashes[i].length != MESSAGE_HASH_BYTES) {
            return STATUS_BAD_QUERY;
        }
    }
    if (query->has_cursor && (query->cursor.length != MESSAGE_HASH_BYTES ||
                                     memcmp(query->cursor.bytes, zero, sizeof(zero)) == 0)) {
        return STATUS_BAD_CURSOR;
    }
    return STATUS_OK;
}

/* The key that follows key immediately; false when there is none. */
static bool step_up(struct id_key *key)
{
    for (size_t i = ID_HASH_BYTES; i-- > 0;) {
        if (++key->hash[i] != 0) {
            return true;
        }
    }
    if (key->timestamp_ns == INT64_MAX) {
        return false;
    }
    key->timestamp_ns++;
    return true;
}

/* Nothing is below the lowest key. */
static void make_empty(struct archive_selection *selection)
{
    selection->lower = (struct id_key){.timestamp_ns = INT64_MIN};
    selection->upper = selection->lower;
    selection->is_upper_open = false;
}

enum status selection_init(struct archive_selection *selection, const struct archive_query *query)
{
    enum status status = check_query(query);
    if (status != STATUS_OK) {
        return status;
    }
    *selection = (struct archive_selection){
            .query = query, .lower.timestamp_ns = INT64_MIN, .is_upper_open = true};
    uint64_t max = query->max_limit == 0 ? ARCHIVE_PAGE_MAX : query->max_limit;
    uint64_t limit = query->limit == 0 ? ARCHIVE_PAGE_DEFAULT : query->limit;
    limit = limit < max ? limit : max;
    selection->limit = (size_t)(limit < SELECTION_MAX_LIMIT ? limit : SELECTION_MAX_LIMIT);
    if (query->has_time_start) {
        selection->lower.timestamp_ns = query->time_start_ns;
    }
    if (query->has_time_end && query->time_end_ns < INT64_MAX) {
        selection->upper.timestamp_ns = query->time_end_ns + 1;
        selection->is_upper_open = false;
    }
    return STATUS_OK;
}

void selection_start_behind(struct archive_selection *selection, const struct id_key *key)
{
    if (selection->query->is_backward) {
        if (selection->is_upper_open || id_key_compare(key, &selection->upper) < 0) {
            selection->upper = *key;
            selection->is_upper_open = false;
        }
        return;
    }
    struct id_key next = *key;
    if (!step_up(&next)) {
        make_empty(selection);
    } else if (id_key_compare(&next, &selection->lower) > 0) {
        selection->lower = next;
    }
}

bool selection_has(const struct archive_selection *selection, const struct id_key *key)
{
    return id_key_compare(key, &selection->lower) >= 0 &&
           (selection->is_upper_open || id_key_compare(key, &selection->upper) < 0);
}

bool selection_is_late(const struct archive_selection *selection)
{
    uint64_t deadline = selection->query->deadline_ns;
    const atomic_bool *abandoned = selection->query->abandoned;
    /* relaxed: it only saves work */
    if (abandoned != NULL && atomic_load_explicit(abandoned, memory_order_relaxed)) {
        return true;
    }
    return deadline != 0 && clock_monotonic_ns() >= deadline;
}
