/* SPDX-License-Identifier: MIT */
#pragma once

/* The version of Sluice; CMakeLists.txt reads it from here. */

#define SLUICE_VERSION "0.1.0"

/*
 * The release of logos-delivery whose REST API, metrics and protocols this version follows. Clients
 * choose by it what they may ask for.
 */
#define SLUICE_REFERENCE_VERSION "0.38.1"

/* What /version and waku_version say: the reference's release first, as in its own git description. */
#define SLUICE_API_VERSION "v" SLUICE_REFERENCE_VERSION "-sluice-" SLUICE_VERSION
