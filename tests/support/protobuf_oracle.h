/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * protobuf-c as the yardstick of the hand-written decoders. They differ from it in three ways, and
 * this is where each of them is pinned down:
 *
 * 1. A known field with a wire type that is not its own: protobuf-c refuses the message (and reads a
 *    bool out of anything); here it is an unknown field, as in protobuf's own parsers and in nim.
 *    The oracle takes such fields out, and then both must agree on what is left.
 * 2. A varint with bits past the 64th: protobuf-c drops them; here it is refused, as in nim and go.
 * 3. Field number 0 written with more than one byte: protobuf-c takes it for an unknown field and
 *    refuses only the one-byte form; here both are refused, as the specification says.
 */

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/span.h"

enum oracle_verdict {
    ORACLE_GOOD,
    ORACLE_MALFORMED,   /* protobuf-c refuses it, apart from difference 1 */
    ORACLE_REFUSED_HERE /* difference 2 or 3 */
};

/*
 * Judges bytes as a message of descriptor, down to its innermost messages. When it is good, *out is a
 * block (free) of *out_length bytes without the fields of difference 1, *dropped of them on the
 * outermost level; protobuf-c takes those bytes.
 */
enum oracle_verdict oracle_clean(const ProtobufCMessageDescriptor *descriptor, struct span bytes,
        uint8_t **out, size_t *out_length, size_t *dropped);
