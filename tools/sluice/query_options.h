/* SPDX-License-Identifier: MIT */
#pragma once

/* What is asked of an archive or of a node's store, as options of a command. */

#include <stdbool.h>
#include <stdint.h>

#include "archive/archive_query.h"
#include "base/options.h"

enum {
    QUERY_LISTED_MAX = 4096
};

/* To be put in a table of option_spec. */
#define QUERY_OPTIONS                                                                              \
    {"pubsub-topic", OPTION_TEXT, "", 0, 0, "Query", "messages of this pubsub topic"},             \
            {"content-topic", OPTION_LIST, "", 0, 0, "Query",                                      \
                    "messages of one of these content topics"},                                    \
            {"start", OPTION_TEXT, "", 0, 0, "Query", "from this timestamp on, ns since 1970"},    \
            {"end", OPTION_TEXT, "", 0, 0, "Query", "up to and including this timestamp"},         \
            {"hash", OPTION_LIST, "", 0, 0, "Query",                                               \
                    "the messages with these hashes, 64 hex digits"},                              \
            {"cursor", OPTION_TEXT, "", 0, 0, "Query", "the page behind this message hash"},       \
            {"backward", OPTION_BOOL, "false", 0, 0, "Query", "the newest page first"},            \
    {                                                                                              \
        "json", OPTION_BOOL, "false", 0, 0, "Query", "print one JSON object"                       \
    }

/* The query, without a limit, and the bytes behind its spans; the texts belong to the options. */
struct query_arguments {
    struct archive_query query;
    struct span topics[QUERY_LISTED_MAX];
    struct span hashes[QUERY_LISTED_MAX];
    uint8_t hash_bytes[QUERY_LISTED_MAX][MESSAGE_HASH_BYTES];
    uint8_t cursor[MESSAGE_HASH_BYTES];
};

/* False after a complaint on standard error in the name of command. */
bool query_arguments_read(
        struct query_arguments *out, const struct options *options, const char *command);
