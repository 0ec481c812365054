/* SPDX-License-Identifier: MIT */
#pragma once

/* Messages, archives in folders of their own, and what a page should be according to a plain model. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/archive.h"
#include "queues/envelope.h"

enum {
    FIXTURE_PUBSUB_TOPICS = 3,
    FIXTURE_CONTENT_TOPICS = 4
};

struct fixture_message {
    unsigned number; /* makes the payload, and so the hash */
    int64_t timestamp_ns;
    unsigned pubsub;
    unsigned content;
    size_t payload_bytes; /* at least 8 */
};

struct span fixture_pubsub_topic(unsigned i);
struct span fixture_content_topic(unsigned i);

/* One reference, with the real message hash. */
struct envelope *fixture_envelope(const struct fixture_message *message);

/* Makes and puts one message; returns its hash in hash when it is not NULL. */
void fixture_put(struct archive *archive, const struct fixture_message *message, uint8_t *hash);

/* Steps of max_rows until there is nothing more to do; returns how many messages went. */
size_t fixture_prune(
        struct archive *archive, const struct archive_prune_limits *limits, size_t max_rows);

/* For archive_verify: prints the finding, and fails when it is a problem. */
void fixture_fail_on_problem(void *context, bool is_problem, const char *text);

/* A new folder under the temporary directory, and its end with all that is in it. */
void fixture_make_folder(char out[256]);
void fixture_remove_folder(const char *folder);

/* "sqlite://FOLDER/archive.db" and so on. */
struct fixture_archive {
    char folder[256];
    char address[300];
    struct archive *archive;
    struct archive_reader *reader;
};

/* kind: "memory", "sqlite-memory" or "sqlite-disk". options may be NULL. */
void fixture_open(
        struct fixture_archive *fixture, const char *kind, const struct archive_options *options);
void fixture_reopen(struct fixture_archive *fixture, const struct archive_options *options);
void fixture_close(struct fixture_archive *fixture);

/* All that a page shows. */
struct fixture_page {
    size_t count;
    uint8_t (*hashes)[MESSAGE_HASH_BYTES];
    bool has_cursor;
    uint8_t cursor[MESSAGE_HASH_BYTES];
};

enum status fixture_query(struct archive_reader *reader, const struct archive_query *query,
        struct fixture_page *page);
void fixture_page_free(struct fixture_page *page);

/* The naive archive: a list, sorted and filtered from the beginning for every query. */
struct model_row {
    struct fixture_message message;
    uint8_t hash[MESSAGE_HASH_BYTES];
};

struct model {
    struct model_row *rows;
    size_t count;
};

void model_add(struct model *model, const struct fixture_message *message, const uint8_t *hash);
void model_prune(struct model *model, int64_t oldest_ns);
void model_free(struct model *model);

/* False when the model does not know the cursor. */
bool model_query(
        const struct model *model, const struct archive_query *query, struct fixture_page *page);
