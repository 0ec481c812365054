/* SPDX-License-Identifier: MIT */
#pragma once

/* Tells the service manager (systemd, sd_notify(3)) how the program is; without one, nobody. */

/* "READY=1", "STOPPING=1", "RELOADING=1", ... Thread: any. */
void service_manager_tell(const char *state);
