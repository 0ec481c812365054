/* SPDX-License-Identifier: MIT */
#include "admin/reference_flags.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define GROUP "Flags of the reference that do nothing here"

/* "ON" in the table: what the reference does by default, and this node never. */
#define FALLBACK_BOOL(fallback) "false"
#define FALLBACK_TEXT(fallback) fallback
#define FALLBACK_LIST(fallback) fallback

const struct option_spec reference_flags_table[] = {
#define FLAG(name, type, fallback, treatment, off_switch, why)                                     \
    {name, OPTION_##type, FALLBACK_##type(fallback), 0, 0, GROUP, why},
#include "admin/reference_flags.def"
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

enum treatment {
    TREATMENT_PASSED,
    TREATMENT_NEVER,
    TREATMENT_EMPTY,
    TREATMENT_DEFAULT
};

struct flag {
    const char *name;
    enum option_type type;
    const char *fallback;
    enum treatment treatment;
    const char *off_switch;
    const char *why;
};

static const struct flag flags[] = {
#define FLAG(name, type, fallback, treatment, off_switch, why)                                     \
    {name, OPTION_##type, fallback, TREATMENT_##treatment, off_switch, why},
#include "admin/reference_flags.def"
};

enum {
    FLAG_COUNT = sizeof(flags) / sizeof(flags[0])
};

static bool is_on_in_reference(const struct flag *flag)
{
    return strcmp(flag->fallback, "ON") == 0;
}

static const struct flag *find_flag(const char *name)
{
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        if (strcmp(flags[i].name, name) == 0) {
            return &flags[i];
        }
    }
    return NULL;
}

/* What the operator knows to be off is off, whatever else is said about it. */
static bool is_switched_off(const struct options *options, const struct flag *flag)
{
    const char *name = flag->off_switch;
    if (name[0] == '\0' || options_find_spec(options, name) == NULL) {
        return false;
    }
    const struct flag *other = find_flag(name);
    bool is_known = other == NULL || !is_on_in_reference(other) || options_is_set(options, name);
    return is_known && !options_flag(options, name);
}

/* For TEXT and LIST: nothing, or texts that all are empty. */
static bool is_empty(const struct options *options, const struct flag *flag)
{
    if (flag->type == OPTION_TEXT) {
        return options_text(options, flag->name)[0] == '\0';
    }
    for (size_t i = 0; i < options_list_count(options, flag->name); i++) {
        if (options_list_item(options, flag->name, i)[0] != '\0') {
            return false;
        }
    }
    return true;
}

static bool is_refused(const struct options *options, const struct flag *flag)
{
    if (is_switched_off(options, flag)) {
        return false;
    }
    switch (flag->treatment) {
    case TREATMENT_PASSED:
        return false;
    case TREATMENT_NEVER:
        return options_flag(options, flag->name);
    case TREATMENT_EMPTY:
        return !is_empty(options, flag);
    case TREATMENT_DEFAULT:
        return strcasecmp(options_text(options, flag->name), flag->fallback) != 0;
    }
    return false;
}

static void note_defaults_of_reference(
        const struct options *options, const struct config_reporter *reporter)
{
    char names[512] = "";
    size_t length = 0;
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        if (is_on_in_reference(&flags[i]) && !options_is_set(options, flags[i].name)) {
            int added = snprintf(names + length, sizeof(names) - length, "%s%s",
                    length > 0 ? ", " : "", flags[i].name);
            length += added > 0 ? (size_t)added : 0;
        }
        if (length >= sizeof(names)) {
            break;
        }
    }
    if (length > 0) {
        config_report(reporter, CONFIG_NOTE,
                "the reference has these on by default, this node has them not: %s", names);
    }
}

/* What the reference does unless told not to, and is told not to: as it is here anyway. */
static bool is_declined(const struct options *options, const struct flag *flag)
{
    return is_on_in_reference(flag) && !options_flag(options, flag->name);
}

enum status reference_flags_check(
        const struct options *options, const struct config_reporter *reporter)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        const struct flag *flag = &flags[i];
        if (!options_is_set(options, flag->name)) {
            continue;
        }
        if (is_refused(options, flag)) {
            config_report(reporter, CONFIG_ERROR, "--%s: %s", flag->name, flag->why);
            status = STATUS_UNSUPPORTED;
        } else if (flag->treatment == TREATMENT_PASSED && !is_declined(options, flag)) {
            config_report(reporter, CONFIG_NOTE, "--%s is passed over: %s", flag->name, flag->why);
        }
    }
    note_defaults_of_reference(options, reporter);
    return status;
}
