/* SPDX-License-Identifier: MIT */
#include "codec/utf8.h"

/* What a lead byte allows: how many bytes follow, and the range of the first of them. */
struct sequence {
    uint8_t first_lead;
    uint8_t last_lead;
    uint8_t following;
    uint8_t second_min;
    uint8_t second_max;
};

/* Table 3-7 of the Unicode standard. */
static const struct sequence sequences[] = {
        {0xc2, 0xdf, 1, 0x80, 0xbf},
        {0xe0, 0xe0, 2, 0xa0, 0xbf},
        {0xe1, 0xec, 2, 0x80, 0xbf},
        {0xed, 0xed, 2, 0x80, 0x9f},
        {0xee, 0xef, 2, 0x80, 0xbf},
        {0xf0, 0xf0, 3, 0x90, 0xbf},
        {0xf1, 0xf3, 3, 0x80, 0xbf},
        {0xf4, 0xf4, 3, 0x80, 0x8f},
};

static const struct sequence *find_sequence(uint8_t lead)
{
    for (size_t i = 0; i < sizeof(sequences) / sizeof(sequences[0]); i++) {
        if (lead >= sequences[i].first_lead && lead <= sequences[i].last_lead) {
            return &sequences[i];
        }
    }
    return NULL;
}

/* The bytes of the character at the front of text, which is not ASCII; 0 when it is none. */
static size_t character_size(struct span text)
{
    const struct sequence *sequence = find_sequence(text.bytes[0]);
    if (sequence == NULL || text.length <= sequence->following) {
        return 0;
    }
    if (text.bytes[1] < sequence->second_min || text.bytes[1] > sequence->second_max) {
        return 0;
    }
    for (size_t i = 2; i <= sequence->following; i++) {
        if ((text.bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return (size_t)sequence->following + 1;
}

static bool is_ascii_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    return (word & 0x8080808080808080U) == 0;
}

bool utf8_is_valid(struct span text)
{
    while (text.length > 0) {
        size_t size = 1;
        if (text.length >= sizeof(uint64_t) && is_ascii_word(text.bytes)) {
            size = sizeof(uint64_t);
        } else if (text.bytes[0] >= 0x80) {
            size = character_size(text);
        }
        if (size == 0) {
            return false;
        }
        text.bytes += size;
        text.length -= size;
    }
    return true;
}
