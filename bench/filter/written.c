/* SPDX-License-Identifier: MIT */

/* Wraps what the muxer calls when a secure frame has been sealed (see the linker's options). */

#include "base/clock.h"
#include "bench/filter/filter_bench.h"
#include "net/muxer/piece_queue.h"

atomic_bool filter_bench_is_measuring;
struct histogram filter_bench_written_ns;

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker chooses these names */
void __real_piece_queue_release_sent(struct piece_queue *queue);
void __wrap_piece_queue_release_sent(struct piece_queue *queue);

void __wrap_piece_queue_release_sent(struct piece_queue *queue)
{
    bool is_measuring = atomic_load(&filter_bench_is_measuring);
    for (uint32_t i = 0; is_measuring && i < queue->sent; i++) {
        struct span bytes = queue->slots[(queue->head + i) & (queue->capacity - 1)].bytes;
        struct span content_topic;
        uint64_t head[2];
        if (filter_bench_read_head(head, &content_topic, bytes)) {
            histogram_add(&filter_bench_written_ns, clock_monotonic_ns() - head[1]);
        }
    }
    __real_piece_queue_release_sent(queue);
}
/* NOLINTEND(bugprone-reserved-identifier) */
