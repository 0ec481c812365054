/* SPDX-License-Identifier: MIT */
#pragma once

/* cmocka.h needs these before it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
