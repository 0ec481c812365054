/* SPDX-License-Identifier: MIT */
#pragma once

/* Removes a benchmark's folder with all that is in it; it need not be there. Thread: any. */
void bench_remove_folder(const char *path);
