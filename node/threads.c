/* SPDX-License-Identifier: MIT */

/* One worker for each thread of node/pipeline.def, pinned as --pin says. */

#include <stdio.h>
#include <string.h>

#include "node/node_private.h"

struct role_row {
    const char *name;
    const char *count_option; /* NULL: one */
    int auto_priority;
};

static const struct role_row role_rows[NODE_ROLES] = {
#define ROLE(id, name, count, priority, duty) {name, count, priority},
#include "node/pipeline.def"
};

const char *node_role_name(enum node_role role)
{
    return role_rows[role].name;
}

bool node_role_from_name(enum node_role *out, const char *name)
{
    for (size_t i = 0; i < NODE_ROLES; i++) {
        if (strcmp(role_rows[i].name, name) == 0) {
            *out = (enum node_role)i;
            return true;
        }
    }
    return false;
}

static bool has_role(const struct node *node, enum node_role role)
{
    if (role == NODE_ROLE_ARCHIVE || role == NODE_ROLE_TEND) {
        return node->archive != NULL;
    }
    if (role == NODE_ROLE_QUERY) {
        bool is_served = node->network != NULL && network_has_store(node->network);
        return node->archive != NULL &&
               (is_served || node->rest != NULL || node->hooks.asks_archive);
    }
    if (role == NODE_ROLE_REST || role == NODE_ROLE_WAIT) {
        return node->rest != NULL;
    }
    if (role == NODE_ROLE_SPILL) {
        return node->spill != NULL;
    }
    if (role == NODE_ROLE_METRICS) {
        return node->metrics_server != NULL;
    }
    if (role == NODE_ROLE_WATCH) {
        return node->network != NULL || node->metrics_server != NULL || node->rest != NULL ||
               node->hooks.is_watched;
    }
    if (role == NODE_ROLE_IO) {
        return node->network != NULL;
    }
    return true;
}

static size_t thread_count_of(
        const struct node *node, const struct options *options, enum node_role role)
{
    if (!has_role(node, role)) {
        return 0;
    }
    const char *option = role_rows[role].count_option;
    if (role == NODE_ROLE_QUERY) {
        return node->settings.query_count; /* the option may leave it to the machine */
    }
    return option == NULL ? 1 : (size_t)options_number(options, option);
}

static struct worker_role role_of(
        struct node *node, enum node_role role, size_t index, const char *name)
{
    switch (role) {
    case NODE_ROLE_DECODE:
        return decode_worker_role(&node->lanes[index].worker, name);
    case NODE_ROLE_ARCHIVE:
        return archive_stage_archive_role(&node->archive_stage, name);
    case NODE_ROLE_TEND:
        return tend_worker_role(&node->tend_worker, name);
    case NODE_ROLE_FILTER:
        return filter_worker_role(&node->filters[index].worker, name);
    case NODE_ROLE_SYNC:
        return sync_worker_role(&node->sync_worker, name);
    case NODE_ROLE_IO:
        return network_io_role(node->network, index, name);
    case NODE_ROLE_QUERY:
        return query_worker_role(&node->query_workers[index], name);
    case NODE_ROLE_METRICS:
        return metrics_server_role(node->metrics_server, name);
    case NODE_ROLE_WATCH:
        return watch_role(&node->watch, name);
    case NODE_ROLE_EVENT:
        return event_worker_role(&node->event_worker, name);
    case NODE_ROLE_REST:
        return rest_http_role(node->rest, name);
    case NODE_ROLE_WAIT:
        return rest_wait_role(node->rest, name);
    case NODE_ROLE_SPILL:
    case NODE_ROLES:
        break;
    }
    return archive_stage_spill_role(&node->archive_stage, name);
}

static enum status make_thread(struct node *node, enum node_role role, size_t index, size_t count)
{
    struct node_thread *thread = &node->threads[node->thread_count];
    thread->role = role;
    thread->index = index;
    if (count > 1) {
        snprintf(thread->name, sizeof(thread->name), "%s-%u", role_rows[role].name,
                (unsigned)(index % 100));
    } else {
        snprintf(thread->name, sizeof(thread->name), "%s", role_rows[role].name);
    }
    struct cpu_set cpus;
    pin_plan_cpus(&cpus, &node->pins, role, index);
    struct worker_options options = {
            .cpus = &cpus, .idle = node->settings.idle, .metrics = node->metrics};
    /* Spinning is for threads that have a core of their own. */
    if (options.idle == IDLE_AUTO && !node->pins.has_core_per_thread) {
        options.idle = IDLE_PARK;
    }
    struct worker_role hooks = role_of(node, role, index, thread->name);
    enum status status = worker_create(&thread->worker, &hooks, &options);
    node->thread_count += status == STATUS_OK;
    return status;
}

/* How many threads a role has does not matter to whether --pin can be read. */
enum status node_check_pin(const struct options *options, struct node_error *error)
{
    struct pin_role roles[NODE_ROLES];
    struct pin_plan plan;
    struct pin_error pin_error;
    for (size_t i = 0; i < NODE_ROLES; i++) {
        roles[i] = (struct pin_role){.name = role_rows[i].name, .thread_count = 1};
    }
    enum status status =
            pin_plan_make(&plan, options_text(options, "pin"), roles, NODE_ROLES, &pin_error);
    if (status != STATUS_OK) {
        snprintf(error->text, sizeof(error->text), "%s", pin_error.text);
    }
    return status;
}

static enum status plan_pins(
        struct node *node, const struct options *options, struct node_error *error)
{
    struct pin_role roles[NODE_ROLES];
    struct pin_error pin_error;
    for (size_t i = 0; i < NODE_ROLES; i++) {
        roles[i] = (struct pin_role){
                .name = role_rows[i].name,
                .thread_count = thread_count_of(node, options, (enum node_role)i),
                .auto_priority = role_rows[i].auto_priority,
        };
    }
    enum status status =
            pin_plan_make(&node->pins, options_text(options, "pin"), roles, NODE_ROLES, &pin_error);
    if (status != STATUS_OK) {
        snprintf(error->text, sizeof(error->text), "%s", pin_error.text);
    }
    return status;
}

enum status node_make_threads(
        struct node *node, const struct options *options, struct node_error *error)
{
    enum status status = plan_pins(node, options, error);
    for (size_t role = 0; status == STATUS_OK && role < NODE_ROLES; role++) {
        size_t count = thread_count_of(node, options, (enum node_role)role);
        for (size_t i = 0; status == STATUS_OK && i < count; i++) {
            status = make_thread(node, (enum node_role)role, i, count);
        }
    }
    return status;
}

void node_stall(struct node *node, enum node_role role, uint64_t until_ns)
{
    for (size_t i = 0; i < node->thread_count; i++) {
        if (node->threads[i].role == role) {
            worker_stall(node->threads[i].worker, until_ns);
        }
    }
}

size_t node_role_busy(const struct node *node, enum node_role role, uint64_t *busy_ns)
{
    size_t count = 0;
    *busy_ns = 0;
    for (size_t i = 0; i < node->thread_count; i++) {
        if (node->threads[i].role == role && worker_is_started(node->threads[i].worker)) {
            uint64_t busy;
            uint64_t total;
            worker_times(node->threads[i].worker, &busy, &total);
            *busy_ns += busy;
            count++;
        }
    }
    return count;
}
