/* SPDX-License-Identifier: MIT */
#include "net/peer_manager/peer_slots.h"

#include <assert.h>
#include <stdint.h>

enum {
    OUTBOUND_PART = 3, /* one in so many relay slots */
    DECIMALS_MAX = 6,
    PART_MAX = 1000000
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A decimal number without sign and exponent, in millionths; *end is behind it. */
static bool parse_part(uint64_t *out, const char *text, const char **end)
{
    uint64_t number = 0;
    unsigned decimals = 0;
    if (!is_digit(*text)) {
        return false;
    }
    for (; is_digit(*text) && number <= PART_MAX; text++) {
        number = number * 10 + (uint64_t)(*text - '0');
    }
    bool is_too_large = number > PART_MAX;
    if (*text == '.') {
        for (text++; is_digit(*text) && decimals < DECIMALS_MAX; text++, decimals++) {
            number = number * 10 + (uint64_t)(*text - '0');
        }
    }
    for (; decimals < DECIMALS_MAX; decimals++) {
        number *= 10;
    }
    *out = number;
    *end = text;
    return !is_too_large;
}

enum status peer_slots_init(struct peer_slots *out, size_t total, const char *ratio)
{
    uint64_t relay;
    uint64_t service;
    const char *end;
    if (!parse_part(&relay, ratio, &end) || *end != ':' || !parse_part(&service, end + 1, &end) ||
            *end != '\0' || relay + service == 0) {
        return STATUS_BAD_ARGUMENT;
    }
    uint64_t whole = relay + service;
    out->total = total;
    out->relay = (size_t)((total * relay + whole - 1) / whole);
    out->relay_outbound = out->relay / OUTBOUND_PART;
    out->relay_inbound = out->relay - out->relay_outbound;
    return STATUS_OK;
}

void peer_counts_add(struct peer_counts *counts, enum peer_kind kind, bool is_outbound)
{
    counts->of[kind][is_outbound]++;
}

void peer_counts_remove(struct peer_counts *counts, enum peer_kind kind, bool is_outbound)
{
    assert(counts->of[kind][is_outbound] > 0);
    counts->of[kind][is_outbound]--;
}

static size_t inbound_of(const struct peer_counts *counts)
{
    return counts->of[PEER_UNKNOWN][false] + counts->of[PEER_RELAY][false] +
           counts->of[PEER_SERVICE][false];
}

bool peer_slots_have_room(const struct peer_slots *slots, const struct peer_counts *counts)
{
    return inbound_of(counts) < slots->total - slots->relay_outbound;
}

bool peer_slots_exceeded(const struct peer_slots *slots, const struct peer_counts *counts,
        enum peer_kind kind, bool is_outbound)
{
    switch (kind) {
    case PEER_UNKNOWN:
        return false;
    case PEER_RELAY:
        return is_outbound ? counts->of[PEER_RELAY][true] > slots->relay_outbound
                           : counts->of[PEER_RELAY][false] > slots->relay_inbound;
    case PEER_SERVICE:
        break;
    }
    return counts->of[PEER_SERVICE][false] + counts->of[PEER_SERVICE][true] >
           slots->total - slots->relay;
}

bool peer_slots_want_more(
        const struct peer_slots *slots, const struct peer_counts *counts, size_t dialling)
{
    size_t outbound = counts->of[PEER_RELAY][true] + counts->of[PEER_UNKNOWN][true] + dialling;
    return outbound < slots->relay_outbound;
}
