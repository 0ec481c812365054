/* SPDX-License-Identifier: MIT */
#include "net/muxer/piece_queue.h"

#include <assert.h>

#include "base/memory.h"

enum {
    FIRST_CAPACITY = 4,
    PIECES_MAX = 65536 /* so that a queue of tiny pieces cannot outgrow the limit on bytes */
};

static struct muxer_piece *piece_at(const struct piece_queue *queue, uint32_t i)
{
    return &queue->slots[(queue->head + i) & (queue->capacity - 1)];
}

enum status piece_queue_prepare(struct piece_queue *queue, size_t count)
{
    if (count > PIECES_MAX - queue->count) {
        return STATUS_LIMIT_REACHED;
    }
    uint32_t needed = queue->count + (uint32_t)count;
    if (needed <= queue->capacity) {
        return STATUS_OK;
    }
    uint32_t capacity = queue->capacity == 0 ? FIRST_CAPACITY : queue->capacity;
    while (capacity < needed) {
        capacity *= 2;
    }
    struct muxer_piece *slots = memory_allocate(capacity * sizeof(*slots));
    if (slots == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < queue->count; i++) {
        slots[i] = *piece_at(queue, i);
    }
    memory_free(queue->slots);
    queue->slots = slots;
    queue->capacity = capacity;
    queue->head = 0;
    return STATUS_OK;
}

void piece_queue_push(struct piece_queue *queue, const struct muxer_piece *piece)
{
    assert(queue->count < queue->capacity);
    *piece_at(queue, queue->count) = *piece;
    queue->count++;
    queue->unsent_bytes += piece->bytes.length;
}

struct span piece_queue_take(struct piece_queue *queue, size_t max)
{
    while (queue->sent < queue->count && max > 0) {
        struct span bytes = piece_at(queue, queue->sent)->bytes;
        size_t rest = bytes.length - queue->offset;
        size_t n = rest < max ? rest : max;
        struct span taken = {.length = n};
        if (n > 0) {
            taken.bytes = bytes.bytes + queue->offset;
        }
        queue->offset += n;
        queue->unsent_bytes -= n;
        if (n == rest) {
            queue->sent++;
            queue->offset = 0;
        }
        if (n > 0) {
            return taken;
        }
    }
    return (struct span){0};
}

static void release_first(struct piece_queue *queue)
{
    struct muxer_piece piece = *piece_at(queue, 0);
    queue->head = (queue->head + 1) & (queue->capacity - 1);
    queue->count--;
    if (piece.release != NULL) {
        piece.release(piece.owner);
    }
}

void piece_queue_release_sent(struct piece_queue *queue)
{
    while (queue->sent > 0) {
        queue->sent--;
        release_first(queue);
    }
}

void piece_queue_fini(struct piece_queue *queue)
{
    while (queue->count > 0) {
        release_first(queue);
    }
    memory_free(queue->slots);
    *queue = (struct piece_queue){0};
}
