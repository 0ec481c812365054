/* SPDX-License-Identifier: MIT */
#include "admin/config_limits.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MEBIBYTE = 1024 * 1024
};

enum occasion {
    OCCASION_EITHER,
    OCCASION_FIRST
};

static const struct {
    const char *option;
    const char *other;
    enum occasion occasion;
    const char *why;
} pairs[] = {
#define AT_MOST(option, other, when, why) {option, other, OCCASION_##when, why},
#include "admin/config_limits.def"
};

static const struct {
    const char *option;
    const char *needed;
    const char *why;
} needs[] = {
#define NEEDS(option, needed, why) {option, needed, why},
#include "admin/config_limits.def"
};

static const struct {
    const char *option;
    const char *enabler;
} ports[] = {
#define DISTINCT_PORTS(option, enabler) {option, enabler},
#include "admin/config_limits.def"
};

enum {
    PAIR_COUNT = sizeof(pairs) / sizeof(pairs[0]),
    NEED_COUNT = sizeof(needs) / sizeof(needs[0]),
    PORT_COUNT = sizeof(ports) / sizeof(ports[0])
};

static const char *const budgets[] = {
        "memory-budget", "outbound-budget", "connection-buffer-limit", "store-answers-limit"};

/* By the operator, not by a preset. An option that no table has is not set. */
static bool is_set(const struct options *options, const char *name)
{
    return options_find_spec(options, name) != NULL &&
           options_source(options, name) > OPTION_FROM_PRESET;
}

static void check_pair(
        const struct options *options, size_t i, const struct config_reporter *reporter)
{
    uint64_t value = options_number(options, pairs[i].option);
    uint64_t other = options_number(options, pairs[i].other);
    bool is_meant = is_set(options, pairs[i].option) ||
                    (pairs[i].occasion == OCCASION_EITHER && is_set(options, pairs[i].other));
    if (is_meant && value != 0 && other != 0 && value > other) {
        config_report(reporter, CONFIG_NOTE, "--%s (%" PRIu64 ") is above --%s (%" PRIu64 "): %s",
                pairs[i].option, value, pairs[i].other, other, pairs[i].why);
    }
}

/* A switch may be one of the reference's that does nothing here: that is named elsewhere. */
static bool is_on(const struct options *options, const char *name)
{
    const struct option_spec *spec = options_find_spec(options, name);
    if (spec == NULL) {
        return true;
    }
    switch (spec->type) {
    case OPTION_BOOL:
        return options_flag(options, name);
    case OPTION_LIST:
        return options_list_count(options, name) > 0;
    case OPTION_TEXT:
        return options_text(options, name)[0] != '\0' &&
               strcmp(options_text(options, name), "none") != 0;
    case OPTION_NUMBER:
    case OPTION_BYTES:
    case OPTION_SECONDS:
        return options_number(options, name) != 0;
    }
    return true;
}

static void check_need(
        const struct options *options, size_t i, const struct config_reporter *reporter)
{
    if (is_set(options, needs[i].option) && is_on(options, needs[i].option) &&
            !is_on(options, needs[i].needed)) {
        config_report(reporter, CONFIG_NOTE, "--%s is set and --%s is not: %s", needs[i].option,
                needs[i].needed, needs[i].why);
    }
}

/* 0: nobody listens there, or on any port. The reference's flags are texts. */
static uint64_t port_of(const struct options *options, size_t i)
{
    const struct option_spec *spec = options_find_spec(options, ports[i].option);
    bool is_listened = ports[i].enabler[0] == '\0' || is_on(options, ports[i].enabler);
    if (spec == NULL || !is_listened) {
        return 0;
    }
    return spec->type == OPTION_TEXT ? strtoull(options_text(options, ports[i].option), NULL, 10)
                                     : options_number(options, ports[i].option);
}

/* Against those before it in the table. */
static void check_port(
        const struct options *options, size_t i, const struct config_reporter *reporter)
{
    uint64_t port = port_of(options, i);
    for (size_t k = 0; port != 0 && k < i; k++) {
        if (port == port_of(options, k)) {
            config_report(reporter, CONFIG_NOTE, "--%s and --%s are both %" PRIu64, ports[k].option,
                    ports[i].option, port);
        }
    }
}

void config_limits_check(const struct options *options, const struct config_reporter *reporter)
{
    for (size_t i = 0; i < PAIR_COUNT; i++) {
        check_pair(options, i, reporter);
    }
    for (size_t i = 0; i < NEED_COUNT; i++) {
        check_need(options, i, reporter);
    }
    for (size_t i = 0; i < PORT_COUNT; i++) {
        check_port(options, i, reporter);
    }
}

void config_memory_check(const struct options *options, uint64_t machine_bytes,
        const struct config_reporter *reporter)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
        sum += options_number(options, budgets[i]);
    }
    if (strcmp(options_text(options, "archive"), "memory") == 0) {
        sum += options_number(options, "archive-memory-limit");
    }
    if (machine_bytes != 0 && sum > machine_bytes) {
        config_report(reporter, CONFIG_NOTE,
                "the budgets (--memory-budget, --outbound-budget, --connection-buffer-limit, "
                "--store-answers-limit, a memory archive's --archive-memory-limit) are %" PRIu64
                " MiB together, and there are %" PRIu64 " MiB",
                sum / MEBIBYTE, machine_bytes / MEBIBYTE);
    }
}

/* Of the control group this process starts in, as containers and units have it; 0: no limit. */
static uint64_t group_limit(void)
{
    char text[64] = "";
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "re");
    if (file == NULL) {
        return 0;
    }
    bool is_read = fgets(text, sizeof(text), file) != NULL;
    fclose(file);
    return is_read ? strtoull(text, NULL, 10) : 0; /* "max" is 0 */
}

uint64_t config_machine_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t machine = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
    uint64_t group = group_limit();
    return group != 0 && (machine == 0 || group < machine) ? group : machine;
}
