/* SPDX-License-Identifier: MIT */

/* sluice archive backup|verify|import: care of an archive's files. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "archive/backup.h"
#include "archive/import.h"
#include "archive/verify.h"
#include "tools/sluice/command_options.h"
#include "tools/sluice/commands.h"

enum {
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    FINDINGS_SHOWN = 20
};

static const struct option_spec backup_specs[] = {
        {"archive", OPTION_TEXT, "", 0, 0, "Backup",
                "sqlite://PATH of the archive; a node may be using it"},
        {"to", OPTION_TEXT, "", 0, 0, "Backup", "sqlite://PATH of the copy; nothing may be there"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

static const struct option_spec verify_specs[] = {
        {"archive", OPTION_TEXT, "", 0, 0, "Verify",
                "sqlite://PATH; it is only read, and a node may be using it"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

static const struct option_spec import_specs[] = {
        {"from", OPTION_TEXT, "", 0, 0, "Import",
                "sqlite://PATH of a database of nwaku (logos-delivery) or of another archive; only "
                "read"},
        {"archive", OPTION_TEXT, "", 0, 0, "Import",
                "sqlite://PATH of the archive that gets the messages; made when it is not there, "
                "and "
                "no node may be using it"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

static int complain(const char *command, const struct archive_error *error)
{
    fprintf(stderr, "sluice archive %s: %s\n", command, error->text);
    return EXIT_FAILED;
}

static int run_backup(const struct options *options)
{
    struct archive_backup_result result;
    struct archive_error error = {.text = ""};
    const char *to = options_text(options, "to");
    if (archive_backup(options_text(options, "archive"), to, NULL, &result, &error) != STATUS_OK) {
        return complain("backup", &error);
    }
    printf("%s: %" PRIu64 " messages, %" PRIu64 " segments of %" PRIu64 " bytes\n", to,
            result.messages, result.segments, result.bytes);
    return 0;
}

static void print_finding(void *context, bool is_problem, const char *text)
{
    unsigned *shown = context;
    if (++*shown <= FINDINGS_SHOWN) {
        printf("%s: %s\n", is_problem ? "problem" : "note", text);
    } else if (*shown == FINDINGS_SHOWN + 1) {
        printf("and so on\n");
    }
}

static int run_verify(const struct options *options)
{
    struct archive_verify_result result;
    struct archive_error error = {.text = ""};
    unsigned shown = 0;
    const char *address = options_text(options, "archive");
    if (archive_verify(address, print_finding, &shown, &result, &error) != STATUS_OK) {
        return complain("verify", &error);
    }
    printf("%s: %" PRIu64 " messages in %" PRIu64 " segments, %" PRIu64 " dead records, %" PRIu64
           " bytes read, %" PRIu64 " problems\n",
            address, result.messages, result.segments, result.dead, result.bytes, result.problems);
    return result.problems == 0 ? 0 : EXIT_FAILED;
}

static int run_import(const struct options *options)
{
    struct archive_import_result result;
    struct archive_error error = {.text = ""};
    struct archive *archive = NULL;
    const char *address = options_text(options, "archive");
    if (archive_path_of(address) == NULL) {
        snprintf(error.text, sizeof(error.text), "'%.400s': not sqlite://PATH", address);
        return complain("import", &error);
    }
    enum status status = archive_open(&archive, address, NULL, &error);
    if (status == STATUS_OK) {
        status = archive_import(archive, options_text(options, "from"), &result, &error);
    }
    archive_close(&archive);
    if (status != STATUS_OK) {
        return complain("import", &error);
    }
    printf("%s: %" PRIu64 " messages read, %" PRIu64 " stored, %" PRIu64 " were there, %" PRIu64
           " could not be read, %" PRIu64 " had another hash\n",
            address, result.read, result.stored, result.duplicates, result.bad,
            result.other_hashes);
    return 0;
}

static const struct {
    const char *name;
    const char *usage;
    const struct option_spec *specs;
    int (*run)(const struct options *options);
} verbs[] = {
        {"backup", "archive backup --archive=sqlite://PATH --to=sqlite://PATH", backup_specs,
                run_backup},
        {"verify", "archive verify --archive=sqlite://PATH", verify_specs, run_verify},
        {"import", "archive import --from=sqlite://PATH --archive=sqlite://PATH", import_specs,
                run_import},
};

enum {
    VERBS = sizeof(verbs) / sizeof(verbs[0])
};

static int print_usage(FILE *out, int exit_status)
{
    for (size_t i = 0; i < VERBS; i++) {
        fprintf(out, "%s sluice %s\n", i == 0 ? "usage:" : "      ", verbs[i].usage);
    }
    return exit_status;
}

/* Every option of a verb has to be given. */
static bool has_all(
        const struct options *options, const struct option_spec *specs, const char *verb)
{
    for (; specs->name != NULL; specs++) {
        if (options_text(options, specs->name)[0] == '\0') {
            fprintf(stderr, "sluice archive %s: --%s=sqlite://PATH is needed\n", verb, specs->name);
            return false;
        }
    }
    return true;
}

static int run_verb(size_t verb, int argc, char **argv)
{
    int exit_status = EXIT_USAGE;
    struct options *options =
            command_parse(verbs[verb].usage, verbs[verb].specs, argc, argv, &exit_status);
    if (options == NULL) {
        return exit_status;
    }
    exit_status = EXIT_USAGE;
    if (options_positional_count(options) > 0) {
        fprintf(stderr, "sluice archive %s: unexpected argument \"%s\"\n", verbs[verb].name,
                options_positional(options, 0));
    } else if (has_all(options, verbs[verb].specs, verbs[verb].name)) {
        exit_status = verbs[verb].run(options);
    }
    options_destroy(&options);
    return exit_status;
}

int command_archive(int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "--help") == 0) {
        return print_usage(stdout, 0);
    }
    for (size_t i = 0; argc > 0 && i < VERBS; i++) {
        if (strcmp(argv[0], verbs[i].name) == 0) {
            return run_verb(i, argc - 1, argv + 1);
        }
    }
    return print_usage(stderr, EXIT_USAGE);
}
