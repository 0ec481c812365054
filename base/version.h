/* SPDX-License-Identifier: MIT */
#pragma once

/* The version of Sluice; CMakeLists.txt reads it from here. */

#define SLUICE_VERSION "0.1.0"
