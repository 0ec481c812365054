/* SPDX-License-Identifier: MIT */

/* sluice key new|show: key files and the peer ids they stand for. */

#include <stdio.h>
#include <string.h>

#include "net/identity/identity.h"
#include "tools/sluice/command_options.h"
#include "tools/sluice/commands.h"
#include "tools/sluice/key_options.h"

static const char usage[] = "key new|show FILE [OPTIONS]";

static const struct option_spec specs[] = {
        {"type", OPTION_TEXT, "secp256k1", 0, 0, "Key",
                "type of a new key: secp256k1 (as Waku nodes have) or ed25519"},
        {"nodekey", OPTION_TEXT, "", 0, 0, "Key",
                "show: instead of a file, a secp256k1 secret as 64 hex digits"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

static int complain(const char *what, enum status status)
{
    fprintf(stderr, "sluice key: %s: %s\n", what, status_text(status));
    return 1;
}

static int print_identity(const struct identity *identity)
{
    char peer[PEER_ID_TEXT_SIZE];
    printf("%s\n", peer_id_print(peer, identity_peer_id(identity)));
    printf("type: %s\n", key_type_name(identity_public_key(identity)->type));
    return 0;
}

static int make_key(const struct options *options, const char *path)
{
    const char *type = options_text(options, "type");
    enum key_type parsed;
    struct identity *identity;
    if (key_type_from_name(&parsed, type) != STATUS_OK) {
        fprintf(stderr, "sluice key: no key type %s\n", type);
        return 2;
    }
    enum status status = identity_create(&identity, parsed);
    if (status != STATUS_OK) {
        return complain("new key", status);
    }
    status = identity_save(identity, path);
    int result = status == STATUS_OK ? print_identity(identity) : complain(path, status);
    identity_destroy(&identity);
    return result;
}

static int show_key(const struct options *options, const char *path)
{
    const char *hex = options_text(options, "nodekey");
    struct identity *identity;
    enum status status = path == NULL ? identity_create_from_hex(&identity, span_of_text(hex))
                                      : identity_load(&identity, path);
    if (status != STATUS_OK) {
        return complain(path == NULL ? "--nodekey" : path, status);
    }
    int result = print_identity(identity);
    identity_destroy(&identity);
    return result;
}

static int run(const struct options *options)
{
    size_t count = options_positional_count(options);
    const char *verb = count > 0 ? options_positional(options, 0) : "";
    const char *path = count > 1 ? options_positional(options, 1) : NULL;
    if (strcmp(verb, "new") == 0 && path != NULL) {
        return make_key(options, path);
    }
    if (strcmp(verb, "show") == 0 && (path != NULL || options_is_set(options, "nodekey"))) {
        return show_key(options, path);
    }
    fprintf(stderr, "usage: sluice %s\n", usage);
    return 2;
}

int command_key(int argc, char **argv)
{
    int exit_status;
    struct options *options = command_parse(usage, specs, argc, argv, &exit_status);
    if (options == NULL) {
        return exit_status;
    }
    exit_status = run(options);
    options_destroy(&options);
    return exit_status;
}
