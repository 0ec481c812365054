/* SPDX-License-Identifier: MIT */
#include "hash/sha256_ni.h"

#include <immintrin.h>
#include <stdalign.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* The round constants of FIPS 180-4, 4.2.2. */
static const alignas(16) uint32_t round_constants[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf,
        0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
        0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1,
        0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351,
        0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb,
        0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
        0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
        0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814,
        0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/*
 * One stream. The instructions want the eight state words as two vectors, (A B E F) and (C D G H),
 * and the message as words in host order, four a vector; words[] holds the last sixteen.
 */
struct stream {
    __m128i abef;
    __m128i cdgh;
    __m128i words[4];
};

static ALWAYS_INLINE void load_state(struct stream *stream, const uint32_t *state)
{
    __m128i dcba = _mm_loadu_si128((const __m128i *)(const void *)state);
    __m128i hgfe = _mm_loadu_si128((const __m128i *)(const void *)(state + 4));
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1);
    __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    stream->abef = _mm_alignr_epi8(cdab, efgh, 8);
    stream->cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
}

static ALWAYS_INLINE void store_state(const struct stream *stream, uint32_t *state)
{
    __m128i feba = _mm_shuffle_epi32(stream->abef, 0x1b);
    __m128i dchg = _mm_shuffle_epi32(stream->cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

static ALWAYS_INLINE void load_block(struct stream *stream, const uint8_t *block)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    for (size_t i = 0; i < 4; i++) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(block + 16 * i));
        stream->words[i] = _mm_shuffle_epi8(bytes, swap);
    }
}

/* Rounds 4 * quad to 4 * quad + 3. quad is a constant in every call, so nothing of it is left. */
static ALWAYS_INLINE void four_rounds(struct stream *stream, int quad)
{
    __m128i *words = stream->words;
    __m128i now = words[quad % 4];
    if (quad >= 4) {
        __m128i newest = words[(quad + 3) % 4];
        __m128i tail = _mm_alignr_epi8(newest, words[(quad + 2) % 4], 4);
        now = _mm_add_epi32(_mm_sha256msg1_epu32(now, words[(quad + 1) % 4]), tail);
        now = _mm_sha256msg2_epu32(now, newest);
        words[quad % 4] = now;
    }
    const void *constants = round_constants + 4 * (size_t)quad;
    __m128i sum = _mm_add_epi32(now, _mm_load_si128((const __m128i *)constants));
    stream->cdgh = _mm_sha256rnds2_epu32(stream->cdgh, stream->abef, sum);
    sum = _mm_shuffle_epi32(sum, 0x0e);
    stream->abef = _mm_sha256rnds2_epu32(stream->abef, stream->cdgh, sum);
}

static ALWAYS_INLINE void add_state(struct stream *stream, const struct stream *before)
{
    stream->abef = _mm_add_epi32(stream->abef, before->abef);
    stream->cdgh = _mm_add_epi32(stream->cdgh, before->cdgh);
}

#define FOR_EACH_QUAD(DO)                                                                          \
    DO(0)                                                                                          \
    DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)

void sha256_ni_blocks(uint32_t state[SHA256_STATE_WORDS], const uint8_t *blocks, size_t count)
{
    struct stream stream;
    load_state(&stream, state);
    for (; count > 0; count--, blocks += SHA256_BLOCK_BYTES) {
        struct stream before = stream;
        load_block(&stream, blocks);
#define ROUNDS(quad) four_rounds(&stream, quad);
        FOR_EACH_QUAD(ROUNDS)
#undef ROUNDS
        add_state(&stream, &before);
    }
    store_state(&stream, state);
}

void sha256_ni_blocks_pair(uint32_t state_a[SHA256_STATE_WORDS], const uint8_t *blocks_a,
        uint32_t state_b[SHA256_STATE_WORDS], const uint8_t *blocks_b, size_t count)
{
    struct stream a;
    struct stream b;
    load_state(&a, state_a);
    load_state(&b, state_b);
    for (size_t i = 0; i < count; i++) {
        struct stream before_a = a;
        struct stream before_b = b;
        load_block(&a, blocks_a + i * SHA256_BLOCK_BYTES);
        load_block(&b, blocks_b + i * SHA256_BLOCK_BYTES);
#define ROUNDS(quad)                                                                               \
    four_rounds(&a, quad);                                                                         \
    four_rounds(&b, quad);
        FOR_EACH_QUAD(ROUNDS)
#undef ROUNDS
        add_state(&a, &before_a);
        add_state(&b, &before_b);
    }
    store_state(&a, state_a);
    store_state(&b, state_b);
}
