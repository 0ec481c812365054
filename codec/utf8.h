/* SPDX-License-Identifier: MIT */
#pragma once

/* Whether bytes are UTF-8, as protobuf asks of the content of a string field. */

#include <stdbool.h>

#include "base/span.h"

/* No surrogates, no overlong forms, nothing above U+10FFFF. */
bool utf8_is_valid(struct span text);
