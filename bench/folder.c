/* SPDX-License-Identifier: MIT */
#include "bench/folder.h"

#include <ftw.h>
#include <stdio.h>

enum {
    DEPTH_MAX = 16
};

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts;
    (void)kind;
    (void)place;
    return remove(path);
}

void bench_remove_folder(const char *path)
{
    (void)nftw(path, remove_entry, DEPTH_MAX, FTW_DEPTH | FTW_PHYS);
}
