/* SPDX-License-Identifier: MIT */
#include "hash/sha256_pair.h"

#include <string.h>

#include "base/memory.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <pthread.h>

#include "hash/sha256_ni.h"

/* Gives a stream's bytes as runs of whole blocks, each where it lies unless it crosses a border. */
struct block_reader {
    struct sha256_pieces pieces; /* those not yet begun */
    struct span rest;            /* of the piece begun */
    uint64_t length_bytes;       /* read so far */
    bool is_padded;              /* the padding was given out: nothing follows */
    const uint8_t *run;          /* the blocks at hand */
    size_t run_blocks;           /* 0: the stream is done */
    uint8_t staging[2 * SHA256_BLOCK_BYTES];
    uint32_t state[SHA256_STATE_WORDS];
};

static void take(struct block_reader *reader, size_t length)
{
    reader->rest.bytes += length;
    reader->rest.length -= length;
    reader->length_bytes += length;
}

/* False when no byte is left. */
static bool has_rest(struct block_reader *reader)
{
    while (reader->rest.length == 0 && reader->pieces.count > 0) {
        reader->rest = *reader->pieces.spans;
        reader->pieces.spans++;
        reader->pieces.count--;
    }
    return reader->rest.length > 0;
}

static void pad(struct block_reader *reader, size_t used)
{
    size_t blocks = used < SHA256_BLOCK_BYTES - sizeof(uint64_t) ? 1 : 2;
    size_t end = blocks * SHA256_BLOCK_BYTES;
    memset(reader->staging + used, 0, end - used);
    reader->staging[used] = 0x80;
    uint64_t bits = reader->length_bytes * 8;
    for (size_t i = 1; i <= sizeof(bits); i++) {
        reader->staging[end - i] = (uint8_t)bits;
        bits >>= 8;
    }
    reader->is_padded = true;
    reader->run_blocks = blocks;
}

/* Puts the next block together from the ends of several pieces, or ends the stream. */
static void stage(struct block_reader *reader)
{
    size_t used = 0;
    while (used < SHA256_BLOCK_BYTES && has_rest(reader)) {
        size_t room = SHA256_BLOCK_BYTES - used;
        size_t part = reader->rest.length < room ? reader->rest.length : room;
        memcpy(reader->staging + used, reader->rest.bytes, part);
        take(reader, part);
        used += part;
    }
    reader->run = reader->staging;
    reader->run_blocks = 1;
    if (used < SHA256_BLOCK_BYTES) {
        pad(reader, used);
    }
}

static void read_run(struct block_reader *reader)
{
    if (reader->is_padded) {
        reader->run_blocks = 0;
    } else if (has_rest(reader) && reader->rest.length >= SHA256_BLOCK_BYTES) {
        reader->run = reader->rest.bytes;
        reader->run_blocks = reader->rest.length / SHA256_BLOCK_BYTES;
        take(reader, reader->run_blocks * SHA256_BLOCK_BYTES);
    } else {
        stage(reader);
    }
}

static void reader_init(struct block_reader *reader, struct sha256_pieces pieces)
{
    static const uint32_t initial_state[SHA256_STATE_WORDS] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
            0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    reader->pieces = pieces;
    reader->rest = span_of(NULL, 0);
    reader->length_bytes = 0;
    reader->is_padded = false;
    memcpy(reader->state, initial_state, sizeof(initial_state));
    read_run(reader);
}

static void advance(struct block_reader *reader, size_t blocks)
{
    reader->run += blocks * SHA256_BLOCK_BYTES;
    reader->run_blocks -= blocks;
    if (reader->run_blocks == 0) {
        read_run(reader);
    }
}

static void deliver(const struct block_reader *reader, struct sha256_task *task)
{
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        task->digest[i] = (uint8_t)(reader->state[i / 4] >> (24 - 8 * (i % 4)));
    }
    task->is_done = true;
}

/* One of the two that run side by side. */
struct stream {
    struct block_reader reader;
    struct sha256_task *task; /* NULL: it has none */
};

struct sha256_pair {
    struct stream streams[2];
};

static void deliver_when_done(struct stream *stream)
{
    if (stream->reader.run_blocks == 0) {
        deliver(&stream->reader, stream->task);
        stream->task = NULL;
    }
}

static void finish_alone(struct stream *stream)
{
    while (stream->task != NULL) {
        size_t blocks = stream->reader.run_blocks;
        sha256_ni_blocks(stream->reader.state, stream->reader.run, blocks);
        advance(&stream->reader, blocks);
        deliver_when_done(stream);
    }
}

/* Until one of them is done. */
static void advance_both(struct stream *first, struct stream *second)
{
    struct block_reader *a = &first->reader;
    struct block_reader *b = &second->reader;
    while (a->run_blocks > 0 && b->run_blocks > 0) {
        size_t blocks = a->run_blocks < b->run_blocks ? a->run_blocks : b->run_blocks;
        sha256_ni_blocks_pair(a->state, a->run, b->state, b->run, blocks);
        advance(a, blocks);
        advance(b, blocks);
    }
    deliver_when_done(first);
    deliver_when_done(second);
}

static void start(struct sha256_pair *pair, struct sha256_task *task)
{
    struct stream *streams = pair->streams;
    if (streams[0].task != NULL && streams[1].task != NULL) {
        advance_both(&streams[0], &streams[1]);
    }
    struct stream *stream = streams[0].task == NULL ? &streams[0] : &streams[1];
    reader_init(&stream->reader, task->pieces);
    stream->task = task;
}

static void finish(struct sha256_pair *pair, const struct sha256_task *task)
{
    struct stream *streams = pair->streams;
    if (streams[0].task != NULL && streams[1].task != NULL && !task->is_done) {
        advance_both(&streams[0], &streams[1]);
    }
    if (!task->is_done) {
        finish_alone(streams[0].task == task ? &streams[0] : &streams[1]);
    }
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_sha_ni;

static void ask_processor(void)
{
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    bool has_sse41 = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_SSE4_1) != 0 &&
                     (ecx & bit_SSSE3) != 0;
    has_sha_ni = has_sse41 && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
                 (ebx & bit_SHA) != 0;
}

bool sha256_pair_is_side_by_side(void)
{
    pthread_once(&once, ask_processor);
    return has_sha_ni;
}

#else

struct sha256_pair {
    char nothing;
};

bool sha256_pair_is_side_by_side(void)
{
    return false;
}

static void start(struct sha256_pair *pair, struct sha256_task *task)
{
    (void)pair;
    (void)task;
}

static void finish(struct sha256_pair *pair, const struct sha256_task *task)
{
    (void)pair;
    (void)task;
}

#endif

enum status sha256_pair_create(struct sha256_pair **out)
{
    *out = memory_allocate_zeroed(sizeof(**out));
    return *out == NULL ? STATUS_NO_MEMORY : STATUS_OK;
}

void sha256_pair_destroy(struct sha256_pair **pair)
{
    memory_free(*pair);
    *pair = NULL;
}

void sha256_pair_start(struct sha256_pair *pair, struct sha256_task *task)
{
    task->is_done = false;
    if (sha256_pair_is_side_by_side()) {
        start(pair, task);
    } else {
        sha256(task->digest, task->pieces);
        task->is_done = true;
    }
}

void sha256_pair_finish(struct sha256_pair *pair, const struct sha256_task *task)
{
    if (!task->is_done) {
        finish(pair, task);
    }
}

void sha256_both(uint8_t digest_a[SHA256_BYTES], struct sha256_pieces a,
        uint8_t digest_b[SHA256_BYTES], struct sha256_pieces b)
{
    struct sha256_pair pair = {0};
    struct sha256_task first = {.pieces = a, .digest = digest_a};
    struct sha256_task second = {.pieces = b, .digest = digest_b};
    sha256_pair_start(&pair, &first);
    sha256_pair_start(&pair, &second);
    sha256_pair_finish(&pair, &first);
    sha256_pair_finish(&pair, &second);
}
