/* SPDX-License-Identifier: MIT */
#include "hash/fast_key.h"

#include <assert.h>
#include <pthread.h>
#include <sys/random.h>
#include <xxhash.h>

enum {
    SECRET_BYTES = 192 /* what XXH3 recommends; its least is 136 */
};

/* Written once, before the first key. */
static struct {
    uint64_t topic_factor; /* odd, so that every topic gets a mask of its own */
    uint8_t bytes[SECRET_BYTES];
} secret;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void draw_secret(void)
{
    /* A request this short is never cut nor interrupted once the kernel's pool is ready. */
    ssize_t drawn = getrandom(&secret, sizeof(secret), 0);
    assert(drawn == (ssize_t)sizeof(secret));
    (void)drawn;
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

uint64_t fast_key(uint32_t topic, struct span message)
{
    return fast_key_of_bytes(message) ^ topic_mask(topic);
}

uint64_t fast_key_of_bytes(struct span bytes)
{
    prepare();
    return XXH3_64bits_withSecret(bytes.bytes, bytes.length, secret.bytes, SECRET_BYTES);
}

struct wide_key fast_key_wide(uint32_t topic, struct span message)
{
    prepare();
    XXH128_hash_t hash =
            XXH3_128bits_withSecret(message.bytes, message.length, secret.bytes, SECRET_BYTES);
    uint64_t mask = topic_mask(topic);
    return (struct wide_key){.low = hash.low64 ^ mask, .high = hash.high64 ^ mask};
}
