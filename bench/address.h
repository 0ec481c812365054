/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/attributes.h"
#include "base/status.h"
#include "net/identity/multiaddr.h"

/*
 * The address that the parent of a benchmark's second process writes to a pipe, to the pipe's end. Errors
 * as of multiaddr_parse. Thread: any.
 */
MUST_USE enum status bench_read_address(int descriptor, struct multiaddr *out);
