/* SPDX-License-Identifier: MIT */
#include "tools/sluice/key_options.h"

#include <string.h>

enum status key_type_from_name(enum key_type *out, const char *name)
{
    if (strcmp(name, "ed25519") == 0) {
        *out = KEY_TYPE_ED25519;
    } else if (strcmp(name, "secp256k1") == 0) {
        *out = KEY_TYPE_SECP256K1;
    } else {
        return STATUS_BAD_ARGUMENT;
    }
    return STATUS_OK;
}

enum status identity_from_options(struct identity **out, const struct options *options)
{
    enum key_type type;
    if (options_is_set(options, "key")) {
        return identity_load(out, options_text(options, "key"));
    }
    if (options_is_set(options, "nodekey")) {
        return identity_create_from_hex(out, span_of_text(options_text(options, "nodekey")));
    }
    enum status status = key_type_from_name(&type, options_text(options, "key-type"));
    return status == STATUS_OK ? identity_create(out, type) : status;
}
