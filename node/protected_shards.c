/* SPDX-License-Identifier: MIT */
#include "node/protected_shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "codec/topics.h"
#include "hash/sha256.h"
#include "net/identity/public_key.h"
#include "node/node.h"
#include "queues/topic.h"

enum {
    WINDOW_S = 5 * 60,
    SHARD_MAX = 65535,
    POINT_BYTES = 33,
    LONG_POINT_BYTES = 65,
    SIGNATURE_BYTES = 64,
    TIMESTAMP_BYTES = 8
};

struct protected_shard {
    char topic[SHARD_TOPIC_MAX_BYTES];
    struct public_key key;
};

struct protected_shards {
    size_t count;
    struct protected_shard shards[];
};

static int digit_of(char c)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *found = memchr(digits, c, sizeof(digits) - 1);
    int digit = found != NULL ? (int)(found - digits) : -1;
    return digit < 16 ? digit : digit - 6;
}

/* Returns the bytes written, 0 when it is no hex of at most max bytes. */
static size_t parse_hex(uint8_t *out, size_t max, const char *text)
{
    size_t length = strlen(text);
    if (length % 2 != 0 || length / 2 > max) {
        return 0;
    }
    for (size_t i = 0; i < length; i += 2) {
        int high = digit_of(text[i]);
        int low = digit_of(text[i + 1]);
        if (high < 0 || low < 0) {
            return 0;
        }
        out[i / 2] = (uint8_t)(high << 4 | low);
    }
    return length / 2;
}

/* A point in either form; whether it is on the curve shows when something is verified with it. */
static bool parse_key(struct public_key *out, const char *text)
{
    static const uint8_t hash[SHA256_BYTES] = {1};
    static const uint8_t ones[SIGNATURE_BYTES] = {[31] = 1, [63] = 1};
    uint8_t point[LONG_POINT_BYTES];
    size_t length = parse_hex(point, sizeof(point), text);
    if (length == LONG_POINT_BYTES && point[0] == 4) {
        point[0] = 2 + (point[LONG_POINT_BYTES - 1] & 1);
    } else if (length != POINT_BYTES) {
        return false;
    }
    out->type = KEY_TYPE_SECP256K1;
    out->length = POINT_BYTES;
    memcpy(out->data, point, POINT_BYTES);
    return public_key_verify_digest(out, hash, span_of(ones, sizeof(ones))) != STATUS_BAD_KEY;
}

static bool parse_shard(struct protected_shard *out, const char *text, uint16_t cluster)
{
    char *end;
    unsigned long shard = strtoul(text, &end, 10);
    if (end == text || *end != ':' || text[0] < '0' || text[0] > '9' || shard > SHARD_MAX) {
        return false;
    }
    shard_format(out->topic, (struct shard){.cluster = cluster, .index = (uint16_t)shard});
    const char *key = end + 1;
    return parse_key(&out->key, strncmp(key, "0x", 2) == 0 ? key + 2 : key);
}

enum status protected_shards_create(
        struct protected_shards **out, const struct options *options, struct node_error *error)
{
    size_t count = options_list_count(options, "protected-shard");
    *out = NULL;
    if (count == 0) {
        return STATUS_OK;
    }
    struct protected_shards *shards =
            memory_allocate_zeroed(sizeof(*shards) + count * sizeof(struct protected_shard));
    if (shards == NULL) {
        return STATUS_NO_MEMORY;
    }
    uint16_t cluster = (uint16_t)options_number(options, "cluster-id");
    for (size_t i = 0; i < count; i++) {
        const char *text = options_list_item(options, "protected-shard", i);
        if (!parse_shard(&shards->shards[i], text, cluster)) {
            snprintf(error->text, sizeof(error->text),
                    "--protected-shard=%.200s: is not SHARD:KEY with a public secp256k1 key in hex",
                    text);
            memory_free(shards);
            return STATUS_BAD_ARGUMENT;
        }
    }
    shards->count = count;
    *out = shards;
    return STATUS_OK;
}

void protected_shards_destroy(struct protected_shards **shards)
{
    memory_free(*shards);
    *shards = NULL;
}

/* Others refuse a signature with the larger s. */
static bool has_small_s(struct span signature)
{
    static const uint8_t half_order[32] = {0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x5d, 0x57, 0x6e, 0x73, 0x57, 0xa4, 0x50,
            0x1d, 0xdf, 0xe9, 0x2f, 0x46, 0x68, 0x1b, 0x20, 0xa0};
    return memcmp(signature.bytes + 32, half_order, sizeof(half_order)) <= 0;
}

/* What others have archived is as old as it is. */
static bool is_of_now(const struct frame_part *part, int64_t timestamp_ns)
{
    int64_t now_ns = part->received_ns;
    if (part->origin == ORIGIN_SYNC || part->origin == ORIGIN_RESUME) {
        return timestamp_ns != 0;
    }
    uint64_t distance = timestamp_ns > now_ns ? (uint64_t)timestamp_ns - (uint64_t)now_ns
                                              : (uint64_t)now_ns - (uint64_t)timestamp_ns;
    return timestamp_ns != 0 && distance < (uint64_t)WINDOW_S * NANOSECONDS_PER_SECOND;
}

static bool is_signed(const struct protected_shard *shard, const struct frame_part *part,
        const struct waku_message_view *view)
{
    uint8_t digest[SHA256_BYTES];
    uint8_t timestamp[TIMESTAMP_BYTES];
    uint8_t ephemeral = view->ephemeral;
    if (view->meta.length != SIGNATURE_BYTES || !has_small_s(view->meta) ||
            !is_of_now(part, view->timestamp_ns)) {
        return false;
    }
    for (size_t i = 0; i < TIMESTAMP_BYTES; i++) {
        timestamp[i] = (uint8_t)((uint64_t)view->timestamp_ns >> (8 * i));
    }
    struct span pieces[] = {part->topic->name, view->payload, view->content_topic,
            span_of(timestamp, sizeof(timestamp)), span_of(&ephemeral, 1)};
    sha256(digest, (struct sha256_pieces){pieces, sizeof(pieces) / sizeof(pieces[0])});
    return public_key_verify_digest(&shard->key, digest, view->meta) == STATUS_OK;
}

bool protected_shards_accept(
        void *context, const struct frame_part *part, const struct waku_message_view *view)
{
    const struct protected_shards *shards = context;
    for (size_t i = 0; i < shards->count; i++) {
        if (span_equal(part->topic->name, span_of_text(shards->shards[i].topic))) {
            return is_signed(&shards->shards[i], part, view);
        }
    }
    return true;
}
