/* SPDX-License-Identifier: MIT */
#pragma once

/* Reading base32 as CIDs have it: RFC 4648, either case, no padding, spare bits zero. */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

/* STATUS_BAD_FIELD when it is no base32, STATUS_TOO_LARGE when it has more than capacity bytes. */
MUST_USE enum status base32_decode(
        uint8_t *out, size_t capacity, size_t *out_length, struct span text);
