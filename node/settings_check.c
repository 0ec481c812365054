/* SPDX-License-Identifier: MIT */

/* What can be said of options without opening or making anything. */

#include <stdio.h>
#include <string.h>

#include "admin/http_server.h"
#include "net/peer_manager/peer_slots.h"
#include "node/network_settings_private.h"
#include "node/node_private.h"
#include "node/protected_shards.h"

/* An address that nobody listens on is looked at as well: it is wrong all the same. */
static enum status check_server_address(
        const struct options *options, const char *name, struct node_error *error)
{
    const char *text = options_text(options, name);
    return http_server_takes_address(text)
                   ? STATUS_OK
                   : settings_refuse(error, name, text, "is no IPv4 or IPv6 address");
}

static enum status check_archive(const struct options *options, struct node_error *error)
{
    const char *address = options_text(options, "archive");
    if (strcmp(address, "none") == 0 || archive_takes_address(address)) {
        return STATUS_OK;
    }
    return settings_refuse(error, node_archive_option(options), address,
            "is not sqlite://PATH, sqlite://:memory:, memory or none");
}

static enum status check_protected_shards(const struct options *options, struct node_error *error)
{
    struct protected_shards *shards;
    enum status status = protected_shards_create(&shards, options, error);
    if (status == STATUS_OK) {
        protected_shards_destroy(&shards);
    }
    return status;
}

static enum status check_network(const struct options *options, struct node_error *error)
{
    static const char ratio[] = "relay-service-ratio";
    struct peer_slots slots;
    enum status status = network_settings_check(options, error);
    if (status == STATUS_OK &&
            peer_slots_init(&slots, 1, options_text(options, ratio)) != STATUS_OK) {
        status = settings_refuse(
                error, ratio, options_text(options, ratio), "is not RELAY:SERVICE, such as 50:50");
    }
    return status;
}

enum status node_check_options(const struct options *options, struct node_error *error)
{
    struct node_settings settings;
    enum status status = node_settings_read(&settings, options, error);
    if (status == STATUS_OK) {
        status = node_check_pin(options, error);
    }
    if (status == STATUS_OK) {
        status = check_archive(options, error);
    }
    if (status == STATUS_OK) {
        status = check_protected_shards(options, error);
    }
    if (status == STATUS_OK) {
        status = check_server_address(options, "rest-address", error);
    }
    if (status == STATUS_OK) {
        status = check_server_address(options, "metrics-server-address", error);
    }
    if (status == STATUS_OK && options_flag(options, "network")) {
        status = check_network(options, error);
    }
    return status;
}
