/* SPDX-License-Identifier: MIT */
#include "bench/message_path/meter.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/message_path/copy_count.h"
#include "queues/frame_heap.h"

#if SLUICE_JEMALLOC
#include <jemalloc/jemalloc.h>

static double heap_number(const char *name)
{
    size_t value = 0;
    size_t length = sizeof(value);
    return mallctl(name, &value, &length, NULL, 0) == 0 ? (double)value : 0;
}

static void read_heap(struct meter *out)
{
    uint64_t epoch = 1;
    size_t length = sizeof(epoch);
    mallctl("epoch", &epoch, &length, &epoch, length);
    out->allocated_bytes = heap_number("stats.allocated");
    out->active_bytes = heap_number("stats.active");
    out->resident_bytes = heap_number("stats.resident");
}
#else
static void read_heap(struct meter *out)
{
    out->allocated_bytes = 0;
    out->active_bytes = 0;
    out->resident_bytes = 0;
}
#endif

static void add_frame_heap(struct meter *out)
{
    const struct frame_heap *heap = frame_heap_of_process();
    double held = heap != NULL ? (double)frame_heap_held_bytes(heap) : 0;
    out->held_bytes = out->allocated_bytes + held;
    out->allocated_bytes += heap != NULL ? (double)frame_heap_used_bytes(heap) : 0;
    out->active_bytes += held;
    out->resident_bytes += held;
}

static double read_rss(void)
{
    double pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL) {
        if (fscanf(file, "%*s %lf", &pages) != 1) {
            pages = 0;
        }
        fclose(file);
    }
    return pages * (double)sysconf(_SC_PAGESIZE);
}

void meter_read(struct meter *out)
{
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    out->wall_ns = clock_monotonic_ns();
    out->cpu_ns = (uint64_t)cpu.tv_sec * NANOSECONDS_PER_SECOND + (uint64_t)cpu.tv_nsec;
    out->wrapped_copies = copy_count();
    out->rss_bytes = read_rss();
    read_heap(out);
    add_frame_heap(out);
}

void meter_reset_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file != NULL) {
        fputs("5\n", file);
        fclose(file);
    }
}

double meter_peak_rss_mb(void)
{
    char line[128];
    double kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "VmHWM: %lf kB", &kib) == 1) {
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib * 1024 / 1e6;
}

bool meter_counts_copies(void)
{
    return copy_count_is_on();
}
