/* SPDX-License-Identifier: MIT */
#include "hash/keccak256.h"

#include <string.h>

enum {
    LANES = 25,
    ROUNDS = 24,
    RATE = 136
};

static const uint64_t round_constants[ROUNDS] = {0x0000000000000001, 0x0000000000008082,
        0x800000000000808a, 0x8000000080008000, 0x000000000000808b, 0x0000000080000001,
        0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
        0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b,
        0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
        0x000000000000800a, 0x800000008000000a, 0x8000000080008081, 0x8000000000008080,
        0x0000000080000001, 0x8000000080008008};

/* Where rho turns each lane, and where pi moves it, in the order of the walk that starts at lane 1. */
static const unsigned turns[LANES - 1] = {
        1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44};
static const unsigned moves[LANES - 1] = {
        10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1};

static uint64_t turn_left(uint64_t lane, unsigned bits)
{
    return lane << bits | lane >> (64 - bits);
}

static void theta(uint64_t lanes[LANES])
{
    uint64_t columns[5];
    for (size_t x = 0; x < 5; x++) {
        columns[x] = lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20];
    }
    for (size_t x = 0; x < 5; x++) {
        uint64_t change = columns[(x + 4) % 5] ^ turn_left(columns[(x + 1) % 5], 1);
        for (size_t y = 0; y < LANES; y += 5) {
            lanes[y + x] ^= change;
        }
    }
}

static void rho_and_pi(uint64_t lanes[LANES])
{
    uint64_t carried = lanes[1];
    for (size_t i = 0; i < LANES - 1; i++) {
        uint64_t next = lanes[moves[i]];
        lanes[moves[i]] = turn_left(carried, turns[i]);
        carried = next;
    }
}

static void chi(uint64_t lanes[LANES])
{
    for (size_t y = 0; y < LANES; y += 5) {
        uint64_t row[5];
        memcpy(row, lanes + y, sizeof(row));
        for (size_t x = 0; x < 5; x++) {
            lanes[y + x] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5]);
        }
    }
}

static void permute(uint64_t lanes[LANES])
{
    for (size_t round = 0; round < ROUNDS; round++) {
        theta(lanes);
        rho_and_pi(lanes);
        chi(lanes);
        lanes[0] ^= round_constants[round];
    }
}

static void absorb(uint64_t lanes[LANES], const uint8_t block[RATE])
{
    for (size_t i = 0; i < RATE; i++) {
        lanes[i / 8] ^= (uint64_t)block[i] << 8 * (i % 8);
    }
    permute(lanes);
}

void keccak256(uint8_t out[KECCAK256_BYTES], struct span message)
{
    uint64_t lanes[LANES] = {0};
    uint8_t last[RATE] = {0};
    for (; message.length >= RATE; message.bytes += RATE, message.length -= RATE) {
        absorb(lanes, message.bytes);
    }
    if (message.length > 0) {
        memcpy(last, message.bytes, message.length);
    }
    last[message.length] ^= 0x01;
    last[RATE - 1] ^= 0x80;
    absorb(lanes, last);
    for (size_t i = 0; i < KECCAK256_BYTES; i++) {
        out[i] = (uint8_t)(lanes[i / 8] >> 8 * (i % 8));
    }
}
