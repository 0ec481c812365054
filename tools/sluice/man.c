/* SPDX-License-Identifier: MIT */

/* sluice man: the manual page, from the tables that --help is made of. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "admin/reference_flags.h"
#include "base/options.h"
#include "base/version.h"
#include "tools/sluice/commands.h"

/* As roff takes it: no escapes, no requests, hyphens that can be searched for. */
static void print_text(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        bool begins_line = at == text || at[-1] == '\n';
        if (begins_line && (*at == '.' || *at == '\'')) {
            fputs("\\&", stdout);
        }
        if (*at == '\\') {
            fputs("\\e", stdout);
        } else if (*at == '-') {
            fputs("\\-", stdout);
        } else {
            fputc(*at, stdout);
        }
    }
}

static void print_paragraph(const char *text)
{
    print_text(text);
    puts("");
}

static void print_range(const struct option_spec *spec)
{
    if (spec->max == 0) {
        return;
    }
    switch (spec->type) {
    case OPTION_SECONDS:
        printf(" From %" PRIu64 " ms to %" PRIu64 " ms.", spec->min, spec->max);
        break;
    case OPTION_BYTES:
        printf(" From %" PRIu64 " to %" PRIu64 " bytes.", spec->min, spec->max);
        break;
    case OPTION_NUMBER:
    case OPTION_BOOL:
    case OPTION_TEXT:
    case OPTION_LIST:
        printf(" From %" PRIu64 " to %" PRIu64 ".", spec->min, spec->max);
        break;
    }
}

static void print_option(const struct option_spec *spec)
{
    static const char *const placeholders[] = {[OPTION_BOOL] = "true|false",
            [OPTION_NUMBER] = "N",
            [OPTION_BYTES] = "SIZE",
            [OPTION_SECONDS] = "TIME",
            [OPTION_TEXT] = "TEXT",
            [OPTION_LIST] = "TEXT"};
    printf(".TP\n\\fB\\-\\-");
    print_text(spec->name);
    printf("\\fR=\\fI%s\\fR%s\n", placeholders[spec->type],
            spec->type == OPTION_LIST ? ", several times" : "");
    print_text(spec->help);
    printf(".");
    print_range(spec);
    if (spec->fallback[0] != '\0') {
        printf(" Default: ");
        print_text(spec->fallback);
        printf(".");
    }
    puts("");
}

static void print_options(void)
{
    const char *group = "";
    puts(".SH OPTIONS");
    print_paragraph("Each may be given as --name=value, --name:value or --name value, in the file "
                    "of --config-file (TOML, the same names), or in the environment: "
                    "SLUICE_TCP_PORT, else WAKUNODE2_TCP_PORT, for --tcp-port. The command line "
                    "prevails over the environment, that over the file, that over a preset. Sizes "
                    "are numbers with B, KiB, MiB, GiB (or KB, MB, GB, powers of 1000); times have "
                    "ms, s, m or h, and are seconds without.");
    for (const struct option_spec *spec = options_of_node; spec->name != NULL; spec++) {
        if (strcmp(group, spec->group) != 0) {
            group = spec->group;
            printf(".SS ");
            print_paragraph(group);
        }
        print_option(spec);
    }
}

static void print_reference_flags(void)
{
    puts(".SH FLAGS OF THE REFERENCE");
    print_paragraph("These are taken, so that command lines and files of the network's reference "
                    "node need no change, and do nothing. Where that would change what an operator "
                    "relies on, setting them is refused; sluice config check FILE tells.");
    for (const struct option_spec *spec = reference_flags_table; spec->name != NULL; spec++) {
        printf(".TP\n\\fB\\-\\-");
        print_text(spec->name);
        printf("\\fR\n");
        print_text(spec->help);
        puts(".");
    }
}

static void print_commands(void)
{
    puts(".SH COMMANDS");
    for (size_t i = 0; i < command_count; i++) {
        printf(".TP\n\\fB%s\\fR\n", command_table[i].name);
        print_text(command_table[i].help);
        puts(".");
    }
    puts(".PP\nEach has \\fB\\-\\-help\\fR.");
}

static void print_end(void)
{
    puts(".SH SIGNALS\n.TP\nTERM, INT\nEnd in an orderly way: connections are closed, what is in "
         "the "
         "queues is\nstored or goes to the spill file.\n.TP\nHUP\nOpen the log file of "
         "\\-\\-log\\-file again.");
    puts(".SH EXIT STATUS\n0 when all went well, 1 when something failed, 2 when it was called or\n"
         "configured wrongly; one line on standard error says why.");
    puts(".SH FILES\n.TP\n/etc/sluice/sluice.toml\nThe configuration that the systemd unit names.\n"
         ".TP\n/var/lib/sluice\nIts archive, key and spill file.");
    puts(".SH SEE ALSO\nThe documents in /usr/share/doc/sluice: quick\\-start, moving\\-over, "
         "tuning, troubleshooting.");
}

int command_man(int argc, char **argv)
{
    if (argc != 0) {
        bool is_help = strcmp(argv[0], "--help") == 0;
        fputs("usage: sluice man\nPrints the manual page: sluice man | man -l -\n",
                is_help ? stdout : stderr);
        return is_help ? 0 : 2;
    }
    printf(".TH SLUICE 1 \"\" \"sluice %s\" \"Sluice\"\n", SLUICE_VERSION);
    puts(".SH NAME\nsluice \\- a message router for the Waku v2 / Logos Messaging network");
    puts(".SH SYNOPSIS\n\\fBsluice\\fR [\\fBrun\\fR] [\\fIOPTIONS\\fR]\n.br\n"
         "\\fBsluice\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]");
    puts(".SH DESCRIPTION");
    print_paragraph("Relays, stores and serves messages, as a node of the network. It prints the "
                    "multiaddrs that it listens on, then READY; log lines go to standard error.");
    print_commands();
    print_options();
    print_reference_flags();
    print_end();
    return fflush(stdout) == 0 ? 0 : 1;
}
