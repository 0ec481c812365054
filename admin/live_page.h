/* SPDX-License-Identifier: MIT */
#pragma once

/* The live page, admin/live_page.html, as part of the program. */

#include <stddef.h>

extern const unsigned char live_page[];
extern const size_t live_page_length;
