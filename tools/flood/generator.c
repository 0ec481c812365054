/* SPDX-License-Identifier: MIT */
#include "tools/flood/generator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/options.h"
#include "codec/gossip_writer.h"
#include "codec/varint.h"
#include "codec/waku_message.h"

enum {
    POOL_BYTES = 1 << 20,
    CHECKED_FROM = GENERATOR_PAYLOAD_MIN,
    TOPIC_BYTES = 64,
    HEADER_BYTES_MAX = 256
};

static const char content_prefix[] = "/flood/1/";

struct generator {
    struct generator_options options;
    size_t sizes[GENERATOR_SIZES_MAX];
    uint32_t weights[GENERATOR_SIZES_MAX];
    size_t size_count;
    uint32_t weight_total;
    char (*pubsub_topics)[TOPIC_BYTES];
    char (*content_topics)[TOPIC_BYTES];
    uint8_t *pool; /* POOL_BYTES, then as much as the largest payload again */
};

static uint64_t mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15ULL;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ value >> 27) * 0x94d049bb133111ebULL;
    return value ^ value >> 31;
}

static enum status parse_one_size(struct generator *generator, char *item)
{
    char *colon = strchr(item, ':');
    uint64_t size;
    if (colon == NULL || generator->size_count == GENERATOR_SIZES_MAX) {
        return STATUS_BAD_ARGUMENT;
    }
    *colon = '\0';
    char *end;
    unsigned long weight = strtoul(colon + 1, &end, 10);
    if (options_parse_bytes(&size, item) != STATUS_OK || size < GENERATOR_PAYLOAD_MIN ||
            size > (64U << 20) || *end != '\0' || weight == 0 || weight > 1000000) {
        return STATUS_BAD_ARGUMENT;
    }
    generator->sizes[generator->size_count] = (size_t)size;
    generator->weights[generator->size_count++] = (uint32_t)weight;
    generator->weight_total += (uint32_t)weight;
    return STATUS_OK;
}

static enum status parse_sizes(struct generator *generator, const char *text)
{
    char copy[256];
    char *cursor = copy;
    char *item;
    enum status status = STATUS_OK;
    snprintf(copy, sizeof(copy), "%s", text);
    while (status == STATUS_OK && (item = strsep(&cursor, ",")) != NULL) {
        status = parse_one_size(generator, item);
    }
    return generator->size_count == 0 ? STATUS_BAD_ARGUMENT : status;
}

static enum status fill_pool(struct generator *generator)
{
    size_t largest = 0;
    for (size_t i = 0; i < generator->size_count; i++) {
        largest = generator->sizes[i] > largest ? generator->sizes[i] : largest;
    }
    size_t bytes = (POOL_BYTES + largest + 7) / 8 * 8;
    generator->pool = malloc(bytes);
    if (generator->pool == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = mix(generator->options.seed + i);
        memcpy(generator->pool + i, &word, sizeof(word));
    }
    return STATUS_OK;
}

static enum status name_topics(struct generator *generator)
{
    const struct generator_options *options = &generator->options;
    generator->pubsub_topics = calloc(options->pubsub_topics, TOPIC_BYTES);
    generator->content_topics = calloc(options->content_topics, TOPIC_BYTES);
    if (generator->pubsub_topics == NULL || generator->content_topics == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < options->pubsub_topics; i++) {
        snprintf(generator->pubsub_topics[i], TOPIC_BYTES, "/waku/2/rs/%u/%u",
                (unsigned)options->cluster, i);
    }
    for (uint32_t i = 0; i < options->content_topics; i++) {
        snprintf(generator->content_topics[i], TOPIC_BYTES, "%stopic-%u/proto", content_prefix, i);
    }
    return STATUS_OK;
}

enum status generator_create(struct generator **out, const struct generator_options *options)
{
    if (options->pubsub_topics == 0 || options->content_topics == 0) {
        return STATUS_BAD_ARGUMENT;
    }
    struct generator *generator = calloc(1, sizeof(*generator));
    if (generator == NULL) {
        return STATUS_NO_MEMORY;
    }
    generator->options = *options;
    enum status status = parse_sizes(generator, options->sizes);
    if (status == STATUS_OK) {
        status = fill_pool(generator);
    }
    if (status == STATUS_OK) {
        status = name_topics(generator);
    }
    if (status != STATUS_OK) {
        generator_destroy(&generator);
        return status;
    }
    *out = generator;
    return STATUS_OK;
}

void generator_destroy(struct generator **generator)
{
    if (*generator == NULL) {
        return;
    }
    free((*generator)->pubsub_topics);
    free((*generator)->content_topics);
    free((*generator)->pool);
    free(*generator);
    *generator = NULL;
}

struct span generator_pubsub_topic_at(const struct generator *generator, uint32_t index)
{
    return span_of_text(generator->pubsub_topics[index]);
}

struct span generator_content_topic_at(const struct generator *generator, uint32_t index)
{
    return span_of_text(generator->content_topics[index]);
}

struct span generator_pubsub_topic(const struct generator *generator, uint64_t number)
{
    return generator_pubsub_topic_at(
            generator, (uint32_t)(number % generator->options.pubsub_topics));
}

uint32_t generator_content_topic_index(const struct generator *generator, uint64_t number)
{
    return (uint32_t)(mix(number ^ 0x5bd1e995U) % generator->options.content_topics);
}

struct span generator_content_topic(const struct generator *generator, uint64_t number)
{
    return generator_content_topic_at(generator, generator_content_topic_index(generator, number));
}

size_t generator_payload_size(const struct generator *generator, uint64_t number)
{
    uint32_t draw = (uint32_t)(mix(number + generator->options.seed) % generator->weight_total);
    size_t i = 0;
    while (draw >= generator->weights[i]) {
        draw -= generator->weights[i++];
    }
    return generator->sizes[i];
}

/* payload may be NULL where only sizes are asked for. */
static struct waku_message_view fields_of(
        const struct generator *generator, struct generator_message message, const uint8_t *payload)
{
    return (struct waku_message_view){
            .payload = span_of(payload, generator_payload_size(generator, message.number)),
            .content_topic = generator_content_topic(generator, message.number),
            .timestamp_ns = message.timestamp_ns,
            .has_payload = true,
            .has_content_topic = true,
            .has_timestamp = true,
    };
}

size_t generator_message_size(const struct generator *generator, struct generator_message message)
{
    struct waku_message_view fields = fields_of(generator, message, NULL);
    return waku_message_size(&fields);
}

static size_t prefix_size(size_t header, size_t message)
{
    /* The header begins with the length of all that follows it. */
    size_t prefix = 1;
    while (prefix < 10 && varint_size(header + message - prefix) != prefix) {
        prefix++;
    }
    return prefix;
}

size_t generator_rpc_size(const struct generator *generator, struct generator_message message)
{
    size_t size = generator_message_size(generator, message);
    size_t header =
            gossip_publish_header_size(generator_pubsub_topic(generator, message.number), size);
    return header + size - prefix_size(header, size);
}

/* The message is laid out by the encoder; the payload is then filled in where it came to lie. */
void generator_fill_message(
        const struct generator *generator, struct generator_message message, uint8_t *out)
{
    size_t length = generator_payload_size(generator, message.number);
    const uint8_t *source = generator->pool + mix(message.number) % POOL_BYTES;
    struct waku_message_view fields = fields_of(generator, message, source);
    size_t size = waku_message_size(&fields);
    (void)waku_message_encode(out, size, &fields);
    uint8_t *payload = out + 1 + varint_size(length); /* field 1 comes first: tag, length */
    uint64_t checksum =
            XXH3_64bits_withSeed(payload + CHECKED_FROM, length - CHECKED_FROM, message.number);
    memcpy(payload, &message.number, sizeof(message.number));
    memcpy(payload + sizeof(message.number), &checksum, sizeof(checksum));
}

void generator_fill_rpc(
        const struct generator *generator, struct generator_message message, uint8_t *out)
{
    uint8_t header[HEADER_BYTES_MAX];
    struct span topic = generator_pubsub_topic(generator, message.number);
    size_t size = generator_message_size(generator, message);
    size_t written = gossip_publish_header_write(header, sizeof(header), topic, size);
    size_t prefix = prefix_size(written, size);
    memcpy(out, header + prefix, written - prefix);
    generator_fill_message(generator, message, out + written - prefix);
}

bool generator_check(uint64_t *number, struct span payload)
{
    uint64_t checksum;
    if (payload.length < GENERATOR_PAYLOAD_MIN) {
        return false;
    }
    memcpy(number, payload.bytes, sizeof(*number));
    memcpy(&checksum, payload.bytes + sizeof(*number), sizeof(checksum));
    return checksum == XXH3_64bits_withSeed(payload.bytes + CHECKED_FROM,
                               payload.length - CHECKED_FROM, *number);
}

bool generator_is_ours(struct span content_topic)
{
    size_t length = sizeof(content_prefix) - 1;
    return content_topic.length > length &&
           memcmp(content_topic.bytes, content_prefix, length) == 0;
}
