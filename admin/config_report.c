/* SPDX-License-Identifier: MIT */
#include "admin/config_report.h"

#include <stdarg.h>
#include <stdio.h>

void config_report(
        const struct config_reporter *reporter, enum config_grade grade, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    reporter->line(reporter->context, grade, line);
}
