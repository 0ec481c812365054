/* SPDX-License-Identifier: MIT */

/* Texts: metrics, health, version, hashes. */

#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "node/api_private.h"
#include "node/health.h"
#include "node/metrics_export.h"

const char *sluice_version(void)
{
    return SLUICE_VERSION;
}

const char *sluice_hash_text(char out[SLUICE_HASH_TEXT_SIZE], const uint8_t hash[SLUICE_HASH_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    char *to = out;
    *to++ = '0';
    *to++ = 'x';
    for (size_t i = 0; i < SLUICE_HASH_BYTES; i++) {
        *to++ = digits[hash[i] >> 4];
        *to++ = digits[hash[i] & 15];
    }
    *to = '\0';
    return out;
}

static enum metrics_names names_of(const struct options *options)
{
    const char *text = options_text(options, "metrics-names");
    if (strcmp(text, "both") == 0) {
        return METRICS_NAMES_BOTH;
    }
    return strcmp(text, "logos_delivery") == 0 ? METRICS_NAMES_LOGOS_DELIVERY : METRICS_NAMES_WAKU;
}

enum sluice_result sluice_node_metrics(char **out, struct sluice_node *node)
{
    const struct options *options = node->options->options;
    struct service_peers *peers = calloc(1, sizeof(*peers));
    struct metrics_export_options wanted = {.names = names_of(options), .service_peers = peers};
    size_t length;
    if (peers == NULL) {
        return SLUICE_NO_MEMORY;
    }
    if (options_flag(options, "network")) {
        service_peers_read(peers, options);
    }
    char *text = metrics_export(node->node, &wanted, &length);
    free(peers);
    if (text == NULL) {
        return SLUICE_NO_MEMORY;
    }
    *out = text;
    return SLUICE_OK;
}

enum sluice_result sluice_node_health(char **out, const struct sluice_node *node)
{
    char *text = node_health_text(node->node);
    if (text == NULL) {
        return SLUICE_NO_MEMORY;
    }
    *out = text;
    return SLUICE_OK;
}

void sluice_text_destroy(char **text)
{
    free(*text);
    *text = NULL;
}
