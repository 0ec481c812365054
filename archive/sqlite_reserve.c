/* SPDX-License-Identifier: MIT */
#include "archive/sqlite_reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const uint64_t reserve_bytes = 8 << 20; /* twice what a tender leaves in the journal */

enum {
    DISK_SHARE = 8 /* it takes no more than that part of a small disk */
};

static uint64_t bytes_of(int fd)
{
    struct statvfs facts;
    if (fstatvfs(fd, &facts) < 0) {
        return 0;
    }
    uint64_t share = (uint64_t)facts.f_blocks * facts.f_frsize / DISK_SHARE;
    return share < reserve_bytes ? share : reserve_bytes;
}

void sqlite_reserve_init(struct sqlite_reserve *reserve, const char *folder)
{
    char path[PATH_MAX];
    *reserve = (struct sqlite_reserve){.fd = -1};
    if (folder == NULL) {
        return;
    }
    snprintf(path, sizeof(path), "%s/.reserve", folder);
    reserve->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    /* A disk that is full already refuses what is to be stored, not the start. */
    enum status status = sqlite_reserve_hold(reserve);
    (void)status;
}

void sqlite_reserve_fini(struct sqlite_reserve *reserve)
{
    if (reserve->fd >= 0) {
        close(reserve->fd);
        reserve->fd = -1;
    }
}

enum status sqlite_reserve_hold(struct sqlite_reserve *reserve)
{
    if (reserve->fd < 0 || reserve->is_held) {
        return STATUS_OK;
    }
    int result;
    do {
        result = fallocate(reserve->fd, 0, 0, (off_t)bytes_of(reserve->fd));
    } while (result < 0 && errno == EINTR);
    if (result == 0) {
        reserve->is_held = true;
        return STATUS_OK;
    }
    if (errno == ENOSPC || errno == EDQUOT) {
        /* What it got on the way is wanted by others. */
        result = ftruncate(reserve->fd, 0);
        return STATUS_DISK_FULL;
    }
    sqlite_reserve_fini(reserve);
    return STATUS_OK;
}

bool sqlite_reserve_give_up(struct sqlite_reserve *reserve)
{
    if (reserve->fd < 0 || !reserve->is_held) {
        return false;
    }
    reserve->is_held = false;
    return ftruncate(reserve->fd, 0) == 0;
}
