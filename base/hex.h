/* SPDX-License-Identifier: MIT */
#pragma once

/* Bytes as lower-case hexadecimal text and back. */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

/* 0 to 15, of either case; -1: no digit. */
int hex_digit(char digit);

/* out has room for 2 * bytes.length + 1 characters. */
void hex_encode(char *out, struct span bytes);

/*
 * text is exactly 2 * length digits of either case, optionally behind "0x". STATUS_BAD_ARGUMENT
 * otherwise.
 */
MUST_USE enum status hex_decode(uint8_t *out, size_t length, const char *text);
