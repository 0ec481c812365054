/* SPDX-License-Identifier: MIT */
#include "admin/config_preset.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "archive/retention_policy.h"

struct preset {
    const char *name;
    const char *other_name;
    const char *cluster;
    const char *shards;
    const char *message_size;
    const char *obstacle;
};

struct entry {
    const char *preset;
    const char *address;
};

static const struct preset presets[] = {
#define PRESET(...) {__VA_ARGS__},
#include "admin/presets.def"
};

static const struct entry entries[] = {
#define ENTRY(...) {__VA_ARGS__},
#include "admin/presets.def"
};

enum {
    PRESET_COUNT = sizeof(presets) / sizeof(presets[0]),
    ENTRY_COUNT = sizeof(entries) / sizeof(entries[0])
};

static const struct preset *find_preset(const char *name)
{
    for (size_t i = 0; i < PRESET_COUNT; i++) {
        if (strcasecmp(presets[i].name, name) == 0 ||
                strcasecmp(presets[i].other_name, name) == 0) {
            return &presets[i];
        }
    }
    return NULL;
}

static enum status fill_in(struct options *options, const char *name, const char *text,
        const struct config_reporter *reporter)
{
    struct options_error error;
    enum status status = options_set_from(options, OPTION_FROM_PRESET, name, text, &error);
    if (status != STATUS_OK) {
        config_report(reporter, CONFIG_ERROR, "--preset: %s", error.text);
    } else if (options_source(options, name) != OPTION_FROM_PRESET) {
        config_report(
                reporter, CONFIG_NOTE, "--%s stays as it is set; the preset says %s", name, text);
    }
    return status;
}

/* Beside the static nodes that are there, whoever named them. */
static enum status add_static_node(
        struct options *options, const char *address, const struct config_reporter *reporter)
{
    struct options_error error;
    enum option_source source = options_source(options, "staticnode");
    if (source == OPTION_FROM_DEFAULT) {
        source = OPTION_FROM_PRESET;
    }
    enum status status = options_set_from(options, source, "staticnode", address, &error);
    if (status != STATUS_OK) {
        config_report(reporter, CONFIG_ERROR, "%s", error.text);
    }
    return status;
}

static enum status apply(struct options *options, const struct preset *preset,
        const struct config_reporter *reporter)
{
    const char *const values[][2] = {{"cluster-id", preset->cluster},
            {"num-shards-in-network", preset->shards}, {"max-msg-size", preset->message_size}};
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < sizeof(values) / sizeof(values[0]); i++) {
        status = fill_in(options, values[i][0], values[i][1], reporter);
    }
    for (size_t i = 0; status == STATUS_OK && i < ENTRY_COUNT; i++) {
        if (strcmp(entries[i].preset, preset->name) == 0) {
            status = add_static_node(options, entries[i].address, reporter);
        }
    }
    return status;
}

static enum status apply_named(
        struct options *options, const char *name, const struct config_reporter *reporter)
{
    const struct preset *preset = find_preset(name);
    if (preset == NULL) {
        char known[128] = "";
        size_t length = 0;
        for (size_t i = 0; i < PRESET_COUNT; i++) {
            length += (size_t)snprintf(known + length, sizeof(known) - length, "%s%s",
                    i > 0 ? ", " : "", presets[i].name);
        }
        config_report(reporter, CONFIG_ERROR, "--preset=%.80s is none of %s", name, known);
        return STATUS_NOT_FOUND;
    }
    if (preset->obstacle != NULL) {
        config_report(reporter, CONFIG_ERROR, "--preset=%s: %s", preset->name, preset->obstacle);
        return STATUS_UNSUPPORTED;
    }
    return apply(options, preset, reporter);
}

static enum status apply_entry_nodes(
        struct options *options, const struct config_reporter *reporter)
{
    enum status status = STATUS_OK;
    size_t count = options_list_count(options, "entry-node");
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        const char *text = options_list_item(options, "entry-node", i);
        if (text[0] != '/') {
            config_report(reporter, CONFIG_ERROR,
                    "--entry-node=%.120s: only multiaddrs are taken; discovery by ENR and DNS is "
                    "not "
                    "there",
                    text);
            return STATUS_UNSUPPORTED;
        }
        status = add_static_node(options, text, reporter);
    }
    return status;
}

/*
 * In the reference the numbers of two clusters bring a preset along. Here the second brings what is a
 * fact of its network, in which shard a content topic is; whom to dial is left to the operator.
 */
static enum status judge_cluster(struct options *options, const struct config_reporter *reporter)
{
    uint64_t cluster = options_number(options, "cluster-id");
    if (cluster == 1 && options_flag(options, "network")) {
        config_report(reporter, CONFIG_ERROR,
                "--cluster-id=1 is The Waku Network: its messages carry RLN proofs, which this "
                "node "
                "cannot check");
        return STATUS_UNSUPPORTED;
    }
    if (cluster == 2 && options_text(options, "preset")[0] == '\0') {
        config_report(reporter, CONFIG_NOTE,
                "--cluster-id=2 brings the shards of logos.dev along, but not its entry nodes, "
                "which "
                "the reference dials: say --preset=logos.dev for them");
        if (!options_is_set(options, "num-shards-in-network")) {
            return fill_in(
                    options, "num-shards-in-network", find_preset("logos.dev")->shards, reporter);
        }
    }
    return STATUS_OK;
}

/* As in the reference a node without --store keeps nothing; --archive is ours and prevails. */
static enum status apply_store(struct options *options, const struct config_reporter *reporter)
{
    struct options_error error;
    const char *archive =
            options_flag(options, "store") ? options_text(options, "store-message-db-url") : "none";
    enum status status = options_set_from(options, OPTION_FROM_PRESET, "archive", archive, &error);
    if (status != STATUS_OK) {
        config_report(reporter, CONFIG_ERROR, "%s", error.text);
    }
    return status;
}

static enum status judge_retention(
        const struct options *options, const struct config_reporter *reporter)
{
    static const char name[] = "store-message-retention-policy";
    struct retention_policy policy;
    char why[400];
    enum status status =
            retention_policy_parse(&policy, options_text(options, name), why, sizeof(why));
    if (status != STATUS_OK) {
        config_report(reporter, CONFIG_ERROR, "--%s: %s", name, why);
    }
    return status;
}

enum status config_preset_apply(struct options *options, const struct config_reporter *reporter)
{
    const char *name = options_text(options, "preset");
    enum status status = name[0] != '\0' ? apply_named(options, name, reporter) : STATUS_OK;
    if (status == STATUS_OK) {
        status = apply_entry_nodes(options, reporter);
    }
    if (status == STATUS_OK) {
        status = judge_cluster(options, reporter);
    }
    if (status == STATUS_OK) {
        status = judge_retention(options, reporter);
    }
    return status == STATUS_OK ? apply_store(options, reporter) : status;
}
