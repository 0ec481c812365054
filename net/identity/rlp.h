/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Recursive Length Prefix, as far as node records have it: strings, and lists that are read item by
 * item.
 *
 * Specification: Ethereum yellow paper, appendix B.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

enum {
    RLP_HEAD_MAX = 3 /* in front of up to 65535 bytes */
};

/*
 * Takes one item off the front of rest; its content is *out. STATUS_TRUNCATED, STATUS_BAD_FIELD: not in
 * its shortest form, or longer than 65535 bytes.
 */
MUST_USE enum status rlp_read(struct span *out, bool *is_list, struct span *rest);

/* Each returns the place behind what it wrote. */
uint8_t *rlp_write_head(uint8_t *to, size_t length, bool is_list);
uint8_t *rlp_write_string(uint8_t *to, struct span string);
uint8_t *rlp_write_number(uint8_t *to, uint64_t number);
