/* SPDX-License-Identifier: MIT */
#pragma once

/* For node/network_settings*.c only. */

#include "node/network_settings.h"

/*
 * Say in the error what is wrong with an option's text. The first returns BAD_ARGUMENT, the second
 * the status given.
 */
enum status settings_refuse(
        struct node_error *error, const char *name, const char *text, const char *why);
enum status settings_refuse_status(
        struct node_error *error, const char *name, const char *text, enum status status);

/* node/network_settings_addresses.c: listeners, announced addresses, nodes to dial. */
MUST_USE enum status network_settings_read_addresses(
        struct network_settings *out, const struct options *options, struct node_error *error);
