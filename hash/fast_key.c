/* SPDX-License-Identifier: MIT */
#include "hash/fast_key.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#include "base/attributes.h"

enum {
    SECRET_BYTES = 192, /* what XXH3 recommends; its least is 136 */
    SAMPLED_FROM_BYTES = 1024,
    SAMPLE_END_BYTES = 256,
    SAMPLE_CHUNKS = 16,
    SAMPLE_CHUNK_BYTES = 32,
    SAMPLE_BYTES = 8 + 2 * SAMPLE_END_BYTES + SAMPLE_CHUNKS * SAMPLE_CHUNK_BYTES,
    GETRANDOM_BYTES = 256 /* what is never cut short */
};

/* Written once, before the first key. */
static struct {
    uint64_t topic_factor; /* odd, so that every topic gets a mask of its own */
    uint32_t places[SAMPLE_CHUNKS];
    uint8_t bytes[SECRET_BYTES];
} secret;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void draw_secret(void)
{
    uint8_t *at = (uint8_t *)&secret;
    for (size_t left = sizeof(secret); left > 0;) {
        size_t step = left < GETRANDOM_BYTES ? left : GETRANDOM_BYTES;
        ssize_t drawn = getrandom(at, step, 0);
        assert(drawn == (ssize_t)step);
        (void)drawn;
        at += step;
        left -= step;
    }
    secret.topic_factor |= 1;
}

static void prepare(void)
{
    pthread_once(&once, draw_secret);
}

static uint64_t topic_mask(uint32_t topic)
{
    return ((uint64_t)topic + 1) * secret.topic_factor;
}

/* Length, both ends and some chunks at places that only this process knows. */
static uint64_t sample_key(struct span message)
{
    uint8_t sample[SAMPLE_BYTES];
    uint8_t *end = sample;
    uint64_t length = message.length;
    memcpy(end, &length, sizeof(length));
    end += sizeof(length);
    memcpy(end, message.bytes, SAMPLE_END_BYTES);
    end += SAMPLE_END_BYTES;
    memcpy(end, message.bytes + message.length - SAMPLE_END_BYTES, SAMPLE_END_BYTES);
    end += SAMPLE_END_BYTES;
    size_t places = message.length - SAMPLE_CHUNK_BYTES;
    for (size_t i = 0; i < SAMPLE_CHUNKS; i++) {
        memcpy(end, message.bytes + secret.places[i] % places, SAMPLE_CHUNK_BYTES);
        end += SAMPLE_CHUNK_BYTES;
    }
    return XXH3_64bits_withSecret(sample, sizeof(sample), secret.bytes, SECRET_BYTES);
}

uint64_t fast_key(uint32_t topic, struct span message)
{
    prepare();
    uint64_t key =
            message.length <= SAMPLED_FROM_BYTES ? fast_key_of_bytes(message) : sample_key(message);
    return key ^ topic_mask(topic);
}

static void prefetch_range(const uint8_t *bytes, size_t length)
{
    for (size_t at = 0; at < length; at += CACHE_LINE) {
        __builtin_prefetch(bytes + at);
    }
}

void fast_key_prefetch(struct span message)
{
    prepare();
    if (message.length <= SAMPLED_FROM_BYTES) {
        prefetch_range(message.bytes, message.length);
        return;
    }
    prefetch_range(message.bytes, SAMPLE_END_BYTES);
    prefetch_range(message.bytes + message.length - SAMPLE_END_BYTES, SAMPLE_END_BYTES);
    size_t places = message.length - SAMPLE_CHUNK_BYTES;
    for (size_t i = 0; i < SAMPLE_CHUNKS; i++) {
        __builtin_prefetch(message.bytes + secret.places[i] % places);
    }
}

uint64_t fast_key_of_bytes(struct span bytes)
{
    prepare();
    return XXH3_64bits_withSecret(bytes.bytes, bytes.length, secret.bytes, SECRET_BYTES);
}

struct wide_key fast_key_wide(uint32_t topic, struct span message)
{
    prepare();
    /* The upper half of the 128-bit hash: for short messages the lower is fast_key itself. */
    XXH128_hash_t hash =
            XXH3_128bits_withSecret(message.bytes, message.length, secret.bytes, SECRET_BYTES);
    return (struct wide_key){
            .low = fast_key(topic, message), .high = hash.high64 ^ topic_mask(topic)};
}
