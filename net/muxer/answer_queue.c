/* SPDX-License-Identifier: MIT */
#include "net/muxer/answer_queue.h"

#include "base/memory.h"

enum {
    FIRST_CAPACITY = 8
};

static struct muxer_answer *answer_at(const struct answer_queue *queue, size_t i)
{
    return &queue->slots[(queue->head + i) & (queue->capacity - 1)];
}

static enum status grow(struct answer_queue *queue)
{
    size_t capacity = queue->capacity == 0 ? FIRST_CAPACITY : queue->capacity * 2;
    struct muxer_answer *slots = memory_allocate(capacity * sizeof(*slots));
    if (slots == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < queue->count; i++) {
        slots[i] = *answer_at(queue, i);
    }
    memory_free(queue->slots);
    queue->slots = slots;
    queue->capacity = capacity;
    queue->head = 0;
    return STATUS_OK;
}

enum status answer_queue_push(struct answer_queue *queue, struct muxer_answer answer)
{
    if (queue->count == queue->capacity) {
        enum status status = grow(queue);
        if (status != STATUS_OK) {
            return status;
        }
    }
    *answer_at(queue, queue->count) = answer;
    queue->count++;
    return STATUS_OK;
}

bool answer_queue_try_pop(struct answer_queue *queue, struct muxer_answer *out)
{
    if (queue->count == 0) {
        return false;
    }
    *out = *answer_at(queue, 0);
    queue->head = (queue->head + 1) & (queue->capacity - 1);
    queue->count--;
    if (queue->count == 0 && queue->capacity > FIRST_CAPACITY) {
        answer_queue_fini(queue);
    }
    return true;
}

void answer_queue_fini(struct answer_queue *queue)
{
    memory_free(queue->slots);
    *queue = (struct answer_queue){0};
}
