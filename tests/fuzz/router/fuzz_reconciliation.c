/* SPDX-License-Identifier: MIT */

/*
 * Any payload is either refused or answered within the limits, and what is answered is a payload that
 * the other side of this code takes. The first byte chooses our scope and the limits.
 */

#include <assert.h>
#include <stdlib.h>

#include "router/reconciliation.h"
#include "tests/support/sync_ids.h"

enum {
    IDS = 600,
    SMALL_AIM = 4096,
    DIFFERENCES_MAX = 500
};

static struct topic topics[2];

static struct sync_set *make_set(void)
{
    struct sync_set *set = NULL;
    topics[0] = (struct topic){.index = 0, .name = span_of_text("t0")};
    topics[1] = (struct topic){.index = 1, .name = span_of_text("t1")};
    if (sync_set_create(&set, IDS) != STATUS_OK) {
        abort();
    }
    uint64_t random = 5;
    for (uint64_t i = 0; i < IDS; i++) {
        /* from 1970 on, where short payloads reach, half of them within 16 ns */
        int64_t timestamp_ns = (int64_t)(next_random(&random) % (i % 2 == 0 ? 16 : 100000));
        struct id_record record =
                make_record(timestamp_ns, i, &topics[i % 2], i % 3 == 0 ? "c0" : "c1");
        if (sync_set_insert(set, &record) != SYNC_INSERTED) {
            abort();
        }
    }
    return set;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sync_set *set;
    static struct reconciliation_answer first;
    static struct reconciliation_answer second;
    if (set == NULL) {
        set = make_set();
    }
    if (size == 0) {
        return 0;
    }
    struct span names[] = {topics[0].name, span_of_text("c1")};
    struct sync_scope scope = {
            .pubsub_topics = &names[0],
            .pubsub_topic_count = data[0] & 1U,
            .content_topics = &names[1],
            .content_topic_count = (data[0] >> 1) & 1U,
    };
    struct reconciliation_limits limits = reconciliation_defaults;
    limits.topics_max = 8;
    limits.differences_max = DIFFERENCES_MAX;
    limits.outgoing_bytes_aim = (data[0] & 4U) != 0 ? SMALL_AIM : limits.outgoing_bytes_aim;
    limits.work_max = (data[0] & 8U) != 0 ? 1000 : limits.work_max;
    struct span payload = span_of(data + 1, size - 1);
    if (reconciliation_answer(&first, set, &scope, payload, &limits) != STATUS_OK) {
        assert(first.payload.length == 0 && first.they_lack.count == 0);
        return 0;
    }
    assert(first.they_lack.count <= DIFFERENCES_MAX && first.we_lack.count <= DIFFERENCES_MAX);
    assert(first.payload.length <= limits.outgoing_bytes_aim + 2 * size + 128);
    assert(first.payload.length > 0 || first.is_end);
    limits.ranges_max *= limits.split_parts;
    enum status status = reconciliation_answer(
            &second, set, &scope, span_of(first.payload.bytes, first.payload.length), &limits);
    assert(status == STATUS_OK);
    (void)status;
    return 0;
}
