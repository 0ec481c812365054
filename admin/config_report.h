/* SPDX-License-Identifier: MIT */
#pragma once

/* How whoever reads a configuration tells the operator about it: one line at a time. */

enum config_grade {
    CONFIG_NOTE, /* the node starts all the same */
    CONFIG_ERROR /* it does not */
};

struct config_reporter {
    void (*line)(void *context, enum config_grade grade, const char *text);
    void *context;
};

void config_report(const struct config_reporter *reporter, enum config_grade grade,
        const char *format, ...) __attribute__((format(printf, 3, 4)));
