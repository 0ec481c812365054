/* SPDX-License-Identifier: MIT */
#include "tools/common/arrivals.h"

#include "base/memory.h"

enum status arrivals_init(struct arrivals *arrivals, size_t receiver_count)
{
    *arrivals =
            (struct arrivals){.receiver_count = receiver_count, .slowest_count = receiver_count};
    if (receiver_count == 0) {
        return STATUS_OK;
    }
    arrivals->counts = memory_allocate_zeroed(receiver_count * sizeof(*arrivals->counts));
    return arrivals->counts == NULL ? STATUS_NO_MEMORY : STATUS_OK;
}

void arrivals_fini(struct arrivals *arrivals)
{
    memory_free(arrivals->counts);
    *arrivals = (struct arrivals){0};
}

static void find_slowest(struct arrivals *arrivals)
{
    arrivals->least = UINT64_MAX;
    for (size_t i = 0; i < arrivals->receiver_count; i++) {
        if (arrivals->counts[i] < arrivals->least) {
            arrivals->least = arrivals->counts[i];
            arrivals->slowest_count = 0;
        }
        arrivals->slowest_count += arrivals->counts[i] == arrivals->least;
    }
}

void arrivals_add(struct arrivals *arrivals, size_t receiver)
{
    uint64_t before = arrivals->counts[receiver]++;
    if (before == arrivals->least && --arrivals->slowest_count == 0) {
        find_slowest(arrivals);
    }
}

void arrivals_write_off(struct arrivals *arrivals, uint64_t sent)
{
    for (size_t i = 0; i < arrivals->receiver_count; i++) {
        if (arrivals->counts[i] < sent) {
            arrivals->counts[i] = sent;
        }
    }
    find_slowest(arrivals);
}

uint64_t arrivals_in_flight(const struct arrivals *arrivals, uint64_t sent)
{
    if (arrivals->receiver_count == 0 || arrivals->least >= sent) {
        return 0;
    }
    return sent - arrivals->least;
}
