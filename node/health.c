/* SPDX-License-Identifier: MIT */
#include "node/health.h"

#include <string.h>

#include "node/node_private.h"

static const struct {
    const char *name;
    const char *meaning;
} parts[HEALTH_PARTS] = {
#define HEALTH_PART(id, name, help) {name, help},
#include "node/health.def"
};

const char *health_part_name(enum health_part part)
{
    return parts[part].name;
}

const char *health_part_meaning(enum health_part part)
{
    return parts[part].meaning;
}

void node_health(const struct node *node, struct node_health *out)
{
    /* The lock is no part of what a reader sees. */
    struct watch *watch = (struct watch *)&node->watch;
    pthread_mutex_lock(&watch->lock);
    *out = watch->health;
    pthread_mutex_unlock(&watch->lock);
    /* relaxed: the node runs a moment before it is looked at */
    bool has_started = atomic_load_explicit(&node->started_ns, memory_order_relaxed) != 0;
    if (has_started && strcmp(out->node, "INITIALIZING") == 0) {
        out->node = "READY";
    }
}
