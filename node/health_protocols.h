/* SPDX-License-Identifier: MIT */
#pragma once

/* What the reference's health report says of protocols, and of the connection to the network. */

#include "node/health.h"
#include "node/reading.h"

/* Fills in the protocols and the connection. */
void health_list_protocols(
        struct node_health *out, const struct node *node, const struct node_reading *reading);
