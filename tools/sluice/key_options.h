/* SPDX-License-Identifier: MIT */
#pragma once

/* The options by which subcommands are told who they are. */

#include "base/options.h"
#include "net/identity/identity.h"

/* To be put in a table of option_spec. */
#define KEY_OPTIONS                                                                                \
    {"key", OPTION_TEXT, "", 0, 0, "Key", "key file; without one the key is new and not kept"},    \
            {"nodekey", OPTION_TEXT, "", 0, 0, "Key", "secp256k1 secret as 64 hex digits"},        \
    {                                                                                              \
        "key-type", OPTION_TEXT, "secp256k1", 0, 0, "Key",                                         \
                "type of a new key: secp256k1 or ed25519"                                          \
    }

/* STATUS_BAD_ARGUMENT for a type that is none. */
MUST_USE enum status key_type_from_name(enum key_type *out, const char *name);

/* From --key, --nodekey or --key-type, in this order. */
MUST_USE enum status identity_from_options(struct identity **out, const struct options *options);
