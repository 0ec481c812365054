/* SPDX-License-Identifier: MIT */
#include "codec/topics.h"

#include <assert.h>
#include <stdio.h>

#include <openssl/evp.h>

enum {
    CONTENT_TOPIC_PARTS = 4,
    SHA256_BYTES = 32
};

static const char shard_prefix[] = "/waku/2/rs/";

/* Takes what stands before the next slash, or all, off the front of rest; the slash goes too. */
static struct span take_part(struct span *rest, bool *ended)
{
    const uint8_t *slash = rest->length > 0 ? memchr(rest->bytes, '/', rest->length) : NULL;
    *ended = slash == NULL;
    struct span part = *rest;
    if (slash != NULL) {
        part.length = (size_t)(slash - rest->bytes);
        rest->bytes += part.length + 1;
        rest->length -= part.length + 1;
    } else {
        *rest = span_of(NULL, 0);
    }
    return part;
}

static bool parse_number(uint16_t *out, struct span digits)
{
    uint32_t value = 0;
    if (digits.length == 0 || (digits.bytes[0] == '0' && digits.length > 1)) {
        return false;
    }
    for (size_t i = 0; i < digits.length; i++) {
        if (digits.bytes[i] < '0' || digits.bytes[i] > '9') {
            return false;
        }
        value = value * 10 + (uint32_t)(digits.bytes[i] - '0');
        if (value > UINT16_MAX) {
            return false;
        }
    }
    *out = (uint16_t)value;
    return true;
}

enum status shard_parse(struct shard *out, struct span topic)
{
    struct span prefix = span_of(shard_prefix, sizeof(shard_prefix) - 1);
    struct shard shard;
    bool ended;
    if (topic.length < prefix.length || !span_equal(span_of(topic.bytes, prefix.length), prefix)) {
        return STATUS_BAD_TOPIC;
    }
    struct span rest = span_of(topic.bytes + prefix.length, topic.length - prefix.length);
    if (!parse_number(&shard.cluster, take_part(&rest, &ended)) || ended ||
            !parse_number(&shard.index, rest)) {
        return STATUS_BAD_TOPIC;
    }
    *out = shard;
    return STATUS_OK;
}

size_t shard_format(char out[SHARD_TOPIC_MAX_BYTES], struct shard shard)
{
    return (size_t)snprintf(out, SHARD_TOPIC_MAX_BYTES, "%s%u/%u", shard_prefix,
            (unsigned)shard.cluster, (unsigned)shard.index);
}

static enum status check_generation(struct span generation)
{
    bool is_zero = true;
    if (generation.length == 0) {
        return STATUS_BAD_TOPIC;
    }
    for (size_t i = 0; i < generation.length; i++) {
        if (generation.bytes[i] < '0' || generation.bytes[i] > '9') {
            return STATUS_BAD_TOPIC;
        }
        is_zero = is_zero && generation.bytes[i] == '0';
    }
    return is_zero ? STATUS_OK : STATUS_UNSUPPORTED;
}

/* Returns the number of parts, of which at most capacity are stored. */
static size_t split(struct span *parts, size_t capacity, struct span rest)
{
    size_t count = 0;
    bool ended = false;
    while (!ended) {
        struct span part = take_part(&rest, &ended);
        if (count < capacity) {
            parts[count] = part;
        }
        count++;
    }
    return count;
}

enum status content_topic_parse(struct content_topic *out, struct span topic)
{
    struct span parts[CONTENT_TOPIC_PARTS + 1];
    if (topic.length == 0 || topic.bytes[0] != '/') {
        return STATUS_BAD_TOPIC;
    }
    size_t count =
            split(parts, CONTENT_TOPIC_PARTS + 1, span_of(topic.bytes + 1, topic.length - 1));
    if (count != CONTENT_TOPIC_PARTS && count != CONTENT_TOPIC_PARTS + 1) {
        return STATUS_BAD_TOPIC;
    }
    bool has_generation = count > CONTENT_TOPIC_PARTS;
    enum status status = has_generation ? check_generation(parts[0]) : STATUS_OK;
    const struct span *named = parts + (has_generation ? 1 : 0);
    for (size_t i = 0; i < CONTENT_TOPIC_PARTS; i++) {
        if (named[i].length == 0) {
            status = STATUS_BAD_TOPIC;
        }
    }
    *out = (struct content_topic){.application = named[0],
            .version = named[1],
            .name = named[2],
            .encoding = named[3],
            .has_generation = has_generation};
    return status;
}

/*
 * OpenSSL directly: hash/ is a folder of the same layer, and a function pointer would be handed
 * through every caller for the one digest that the specification names. Not on the message path.
 */
static bool digest(uint8_t out[SHA256_BYTES], struct span first, struct span second)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_done = context != NULL && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
                   EVP_DigestUpdate(context, first.bytes, first.length) == 1 &&
                   EVP_DigestUpdate(context, second.bytes, second.length) == 1 &&
                   EVP_DigestFinal_ex(context, out, NULL) == 1;
    EVP_MD_CTX_free(context);
    return is_done;
}

enum status content_topic_shard(
        uint16_t *out, const struct content_topic *topic, uint16_t shard_count)
{
    uint8_t sum[SHA256_BYTES];
    uint64_t last = 0;
    assert(shard_count > 0);
    if (!digest(sum, topic->application, topic->version)) {
        return STATUS_SYSTEM;
    }
    for (size_t i = SHA256_BYTES - sizeof(last); i < SHA256_BYTES; i++) {
        last = last << 8 | sum[i];
    }
    *out = (uint16_t)(last % shard_count);
    return STATUS_OK;
}
