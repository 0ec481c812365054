/* SPDX-License-Identifier: MIT */
#include "admin/process_figures.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Fields of /proc/self/stat behind the name, counted from the state as 0. */
enum {
    FIELD_USER_TICKS = 11,
    FIELD_SYSTEM_TICKS = 12,
    FIELD_THREADS = 17,
    FIELD_START_TICKS = 19,
    FIELD_VIRTUAL_BYTES = 20,
    FIELD_RESIDENT_PAGES = 21,
    FIELDS = 22
};

static void read_fields(unsigned long long fields[FIELDS])
{
    char line[1024];
    FILE *file = fopen("/proc/self/stat", "re");
    if (file == NULL) {
        return;
    }
    size_t length = fread(line, 1, sizeof(line) - 1, file);
    fclose(file);
    line[length] = '\0';
    char *rest = strrchr(line, ')'); /* the name may hold anything */
    char *place = NULL;
    char *word = rest == NULL ? NULL : strtok_r(rest + 1, " ", &place);
    for (size_t i = 0; i < FIELDS && word != NULL; i++) {
        (void)sscanf(word, "%llu", &fields[i]);
        word = strtok_r(NULL, " ", &place);
    }
}

static uint64_t count_fds(void)
{
    uint64_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL) {
        return 0;
    }
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    closedir(folder);
    return count > 0 ? count - 1 : 0; /* that of the folder itself */
}

/* The start is told in ticks since boot. */
static double start_time(unsigned long long ticks, double ticks_per_second)
{
    struct timespec now;
    struct timespec since_boot;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &since_boot);
    double boot = (double)(now.tv_sec - since_boot.tv_sec) +
                  (double)(now.tv_nsec - since_boot.tv_nsec) / 1e9;
    return boot + (double)ticks / ticks_per_second;
}

void process_figures_read(struct process_figures *out)
{
    unsigned long long fields[FIELDS] = {0};
    double ticks_per_second = (double)sysconf(_SC_CLK_TCK);
    struct rlimit limit = {0};
    read_fields(fields);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    *out = (struct process_figures){
            .cpu_seconds = (double)(fields[FIELD_USER_TICKS] + fields[FIELD_SYSTEM_TICKS]) /
                           ticks_per_second,
            .start_time_seconds = start_time(fields[FIELD_START_TICKS], ticks_per_second),
            .virtual_bytes = fields[FIELD_VIRTUAL_BYTES],
            .resident_bytes = fields[FIELD_RESIDENT_PAGES] * (uint64_t)sysconf(_SC_PAGESIZE),
            .open_fds = count_fds(),
            .max_fds = limit.rlim_cur,
            .threads = fields[FIELD_THREADS],
    };
}
