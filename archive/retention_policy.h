/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What --store-message-retention-policy says about how long messages are kept, in the reference's
 * words: any of
 *
 *   time:SECONDS     messages whose timestamp is older go
 *   capacity:COUNT   the oldest beyond that many go
 *   size:N(MB|GB)    the oldest go while the archive takes more (also KB, TB; powers of 1024; N may have
 *                    decimals)
 *
 * joined by ";", each kind once: a message goes when any of them says so. Case and blanks do not
 * matter. "none" and "" keep everything. A number of 0, which would keep nothing, is refused, so is a
 * size below a megabyte.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"

struct retention_policy {
    uint64_t max_age_s; /* 0: any age */
    uint64_t max_count; /* 0: any number */
    uint64_t max_bytes; /* 0: any size */
};

enum {
    RETENTION_MIN_BYTES = 1 << 20
};

/* STATUS_BAD_ARGUMENT; why then says in one line what is wrong. */
MUST_USE enum status retention_policy_parse(
        struct retention_policy *out, const char *text, char *why, size_t why_size);

bool retention_policy_keeps_all(const struct retention_policy *policy);

/* How large segment files may be (archive_options.segment_bytes) for space to be given back in time. */
uint64_t retention_policy_segment_bytes(const struct retention_policy *policy);
