/* SPDX-License-Identifier: MIT */

/* Topics: what is parsed can be put together again to the same name. */

#include "codec/topics.h"

#include <string.h>

#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_shard(struct span name)
{
    char text[SHARD_TOPIC_MAX_BYTES];
    struct shard shard;
    if (shard_parse(&shard, name) == STATUS_OK) {
        size_t length = shard_format(text, shard);
        REQUIRE(length == strlen(text));
        REQUIRE(span_equal(name, span_of(text, length)));
    }
}

static uint8_t *append(uint8_t *at, struct span part)
{
    *at++ = '/';
    memcpy(at, part.bytes, part.length);
    return at + part.length;
}

static void check_content_topic(struct span name)
{
    struct content_topic topic;
    uint16_t shard = UINT16_MAX;
    if (content_topic_parse(&topic, name) != STATUS_OK) {
        return;
    }
    uint8_t *whole = malloc(name.length);
    REQUIRE(whole != NULL);
    uint8_t *end = append(whole, topic.application);
    end = append(end, topic.version);
    end = append(end, topic.name);
    end = append(end, topic.encoding);
    size_t length = (size_t)(end - whole);
    REQUIRE(topic.has_generation ? length + 1 < name.length : length == name.length);
    REQUIRE(memcmp(name.bytes + name.length - length, whole, length) == 0);
    REQUIRE(content_topic_shard(&shard, &topic, 8) == STATUS_OK && shard < 8);
    free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_shard(span_of(data, size));
    check_content_topic(span_of(data, size));
    return 0;
}
