/* SPDX-License-Identifier: MIT */
#include "tools/common/process_meter.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PATH_BYTES = 300,
    TCP_LISTEN = 0x0a
};

static FILE *open_of(pid_t pid, const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return fopen(path, "r");
}

/* The name of a process may hold spaces and brackets: what counts is behind the last one. */
static bool read_cpu(struct process_reading *out, pid_t pid)
{
    char line[1024];
    uint64_t user;
    uint64_t kernel;
    FILE *file = open_of(pid, "stat");
    if (file == NULL) {
        return false;
    }
    bool is_read = fgets(line, sizeof(line), file) != NULL;
    fclose(file);
    char *rest = is_read ? strrchr(line, ')') : NULL;
    if (rest == NULL ||
            sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64,
                    &user, &kernel) != 2) {
        return false;
    }
    out->cpu_ns = (user + kernel) * (1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK));
    return true;
}

static bool read_memory(struct process_reading *out, pid_t pid)
{
    char line[256];
    FILE *file = open_of(pid, "status");
    if (file == NULL) {
        return false;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        uint64_t value;
        if (sscanf(line, "VmHWM: %" SCNu64 " kB", &value) == 1) {
            out->peak_rss_bytes = value * 1024;
        } else if (sscanf(line, "VmRSS: %" SCNu64 " kB", &value) == 1) {
            out->rss_bytes = value * 1024;
        } else if (sscanf(line, "Threads: %" SCNu64, &value) == 1) {
            out->threads = value;
        }
    }
    fclose(file);
    return out->rss_bytes > 0;
}

bool process_read(struct process_reading *out, pid_t pid)
{
    *out = (struct process_reading){0};
    return pid > 0 && read_cpu(out, pid) && read_memory(out, pid);
}

/* The inode of the socket that listens; 0: none. */
static uint64_t listener_inode(const char *table, uint16_t port)
{
    char line[512];
    uint64_t inode = 0;
    FILE *file = fopen(table, "r");
    while (file != NULL && inode == 0 && fgets(line, sizeof(line), file) != NULL) {
        unsigned local;
        unsigned state;
        uint64_t found;
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*s %*s %" SCNu64,
                    &local, &state, &found) == 3 &&
                local == port && state == TCP_LISTEN) {
            inode = found;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return inode;
}

static bool has_socket(pid_t pid, const char *wanted)
{
    char folder[PATH_BYTES];
    bool found = false;
    snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    while (directory != NULL && !found && (entry = readdir(directory)) != NULL) {
        char target[PATH_BYTES];
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);
        if (length > 0) {
            target[length] = '\0';
            found = strcmp(target, wanted) == 0;
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return found;
}

pid_t process_find_listener(uint16_t port)
{
    char wanted[64];
    pid_t found = 0;
    uint64_t inode = listener_inode("/proc/net/tcp", port);
    inode = inode != 0 ? inode : listener_inode("/proc/net/tcp6", port);
    if (inode == 0) {
        return 0;
    }
    snprintf(wanted, sizeof(wanted), "socket:[%" PRIu64 "]", inode);
    DIR *directory = opendir("/proc");
    const struct dirent *entry;
    while (directory != NULL && found == 0 && (entry = readdir(directory)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0]) != 0) {
            pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
            found = has_socket(pid, wanted) ? pid : 0;
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return found;
}
