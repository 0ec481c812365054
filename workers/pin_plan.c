/* SPDX-License-Identifier: MIT */
#include "workers/pin_plan.h"

#include <assert.h>
#include <hwloc.h>
#include <stdio.h>
#include <string.h>

/* Removes members of remove from set; leaves set alone if nothing would be left. */
static void exclude(struct cpu_set *set, const struct cpu_set *remove)
{
    struct cpu_set rest;
    cpu_set_clear(&rest);
    for (int cpu = cpu_set_next(set, 0); cpu >= 0; cpu = cpu_set_next(set, cpu + 1)) {
        if (!cpu_set_contains(remove, cpu)) {
            cpu_set_add(&rest, cpu);
        }
    }
    if (cpu_set_count(&rest) > 0) {
        *set = rest;
    }
}

static void add_all(struct cpu_set *set, const struct cpu_set *members)
{
    for (int cpu = cpu_set_next(members, 0); cpu >= 0; cpu = cpu_set_next(members, cpu + 1)) {
        cpu_set_add(set, cpu);
    }
}

static void leave_the_rest_to_others(struct pin_plan *plan)
{
    struct cpu_set pinned;
    cpu_set_clear(&pinned);
    for (size_t i = 0; i < plan->role_count; i++) {
        add_all(&pinned, &plan->named[i]);
    }
    exclude(&plan->floating, &pinned);
}

static int find_role(const struct pin_role roles[], size_t count, const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(roles[i].name) == length && memcmp(roles[i].name, name, length) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* Where the processor list ends: before a comma that a "role:" follows, or at the end. */
static const char *end_of_list(const char *list)
{
    const char *comma = list;
    while ((comma = strchr(comma, ',')) != NULL) {
        comma++;
        if (*comma != '\0' && (*comma < '0' || *comma > '9')) {
            return comma - 1;
        }
    }
    return list + strlen(list);
}

static enum status parse_item(struct pin_plan *plan, const char **cursor,
        const struct pin_role roles[], struct pin_error *error)
{
    char list[512];
    const char *colon = strchr(*cursor, ':');
    if (colon == NULL) {
        snprintf(error->text, sizeof(error->text),
                "--pin: \"%.60s\" is neither none, auto nor ROLE:CPUS", *cursor);
        return STATUS_BAD_ARGUMENT;
    }
    int role = find_role(roles, plan->role_count, *cursor, (size_t)(colon - *cursor));
    if (role < 0) {
        snprintf(error->text, sizeof(error->text), "--pin: there is no role \"%.*s\"",
                (int)(colon - *cursor), *cursor);
        return STATUS_BAD_ARGUMENT;
    }
    if (cpu_set_count(&plan->named[role]) > 0) {
        snprintf(
                error->text, sizeof(error->text), "--pin: \"%s\" is named twice", roles[role].name);
        return STATUS_BAD_ARGUMENT;
    }
    const char *end = end_of_list(colon + 1);
    int length = snprintf(list, sizeof(list), "%.*s", (int)(end - colon - 1), colon + 1);
    struct cpu_set cpus;
    if (length >= (int)sizeof(list) || cpu_set_parse(&cpus, list) != STATUS_OK) {
        snprintf(error->text, sizeof(error->text),
                "--pin: \"%.60s\" is no list of processors such as 0 or 2-3", list);
        return STATUS_BAD_ARGUMENT;
    }
    int missing;
    if (!cpu_set_within(&cpus, &plan->floating, &missing)) {
        snprintf(error->text, sizeof(error->text),
                "--pin: processor %d does not exist or is not allowed for this process", missing);
        return STATUS_BAD_ARGUMENT;
    }
    plan->named[role] = cpus;
    *cursor = *end == ',' ? end + 1 : end;
    return STATUS_OK;
}

static int first_allowed(hwloc_obj_t core, const struct cpu_set *allowed)
{
    int cpu = hwloc_bitmap_first(core->cpuset);
    while (cpu >= 0 && !cpu_set_contains(allowed, cpu)) {
        cpu = hwloc_bitmap_next(core->cpuset, cpu);
    }
    return cpu;
}

/* The first allowed processor of each core, those under one last-level cache next to each other. */
static size_t list_cores(int *cores, size_t capacity, const struct cpu_set *allowed)
{
    hwloc_topology_t topology;
    size_t count = 0;
    if (hwloc_topology_init(&topology) != 0) {
        return 0;
    }
    hwloc_obj_t core = NULL;
    bool is_loaded = hwloc_topology_load(topology) == 0;
    while (is_loaded &&
            (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != NULL) {
        int cpu = first_allowed(core, allowed);
        if (cpu >= 0 && count < capacity) {
            cores[count++] = cpu;
        }
    }
    hwloc_topology_destroy(topology);
    return count;
}

static size_t count_pinnable(const struct pin_role roles[], size_t role_count)
{
    size_t threads = 0;
    for (size_t i = 0; i < role_count; i++) {
        threads += roles[i].auto_priority >= 0 ? roles[i].thread_count : 0;
    }
    return threads;
}

static int lowest_priority(const struct pin_role roles[], size_t role_count)
{
    int lowest = 0;
    for (size_t i = 0; i < role_count; i++) {
        lowest = roles[i].auto_priority > lowest ? roles[i].auto_priority : lowest;
    }
    return lowest;
}

/* To every thread of the roles of that priority, while one is left over; returns how many are left. */
static size_t give_cores(struct pin_plan *plan, const struct pin_role roles[], int priority,
        const int *cores, size_t free_cores)
{
    for (size_t i = 0; i < plan->role_count; i++) {
        size_t threads = roles[i].auto_priority == priority ? roles[i].thread_count : 0;
        for (; threads > 0 && free_cores > 1; threads--) {
            cpu_set_add(&plan->named[i], cores[--free_cores]);
        }
    }
    return free_cores;
}

/*
 * Cores are taken from the end of the list: interrupts and other programs gather on the first ones,
 * which stay with the reclaimer, io and the rest.
 */
static void plan_auto(struct pin_plan *plan, const struct pin_role roles[])
{
    int cores[CPU_SETSIZE];
    size_t free_cores = list_cores(cores, CPU_SETSIZE, &plan->floating);
    size_t pinnable = count_pinnable(roles, plan->role_count);
    plan->has_core_per_thread = free_cores > pinnable;
    int last = plan->has_core_per_thread ? lowest_priority(roles, plan->role_count) : 0;
    for (int priority = 0; priority <= last; priority++) {
        free_cores = give_cores(plan, roles, priority, cores, free_cores);
    }
    leave_the_rest_to_others(plan);
}

enum status pin_plan_make(struct pin_plan *out, const char *text, const struct pin_role roles[],
        size_t role_count, struct pin_error *error)
{
    assert(role_count <= PIN_ROLES_MAX);
    memset(out, 0, sizeof(*out));
    out->role_count = role_count;
    if (cpu_set_allowed(&out->floating) != STATUS_OK) {
        snprintf(error->text, sizeof(error->text), "--pin: cannot read the allowed processors");
        return STATUS_SYSTEM;
    }
    if (strcmp(text, "none") == 0) {
        return STATUS_OK;
    }
    if (strcmp(text, "auto") == 0) {
        plan_auto(out, roles);
        return STATUS_OK;
    }
    const char *cursor = text;
    do {
        enum status status = parse_item(out, &cursor, roles, error);
        if (status != STATUS_OK) {
            return status;
        }
    } while (*cursor != '\0');
    leave_the_rest_to_others(out);
    return STATUS_OK;
}

void pin_plan_cpus(struct cpu_set *out, const struct pin_plan *plan, size_t role, size_t thread)
{
    const struct cpu_set *named = &plan->named[role];
    int count = cpu_set_count(named);
    if (count == 0) {
        *out = plan->floating;
        return;
    }
    int cpu = cpu_set_next(named, 0);
    for (size_t i = 0; i < thread % (size_t)count; i++) {
        cpu = cpu_set_next(named, cpu + 1);
    }
    cpu_set_clear(out);
    cpu_set_add(out, cpu);
}
