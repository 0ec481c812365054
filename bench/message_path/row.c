/* SPDX-License-Identifier: MIT */
#include "bench/message_path/row.h"

#include <stdlib.h>
#include <string.h>

void row_print_header(FILE *out)
{
    fprintf(out, "scenario,msgs,payload_profile,wall_ms,msg_per_s,ns_per_msg_p50,ns_per_msg_p99,"
                 "decodes_per_msg,hashes_per_msg,hashed_MB,decoded_MB,occupied_mem_delta_MB,"
                 "gc_collections,id_hashes_per_msg,copies_per_msg,copied_MB,allocs_per_msg,"
                 "allocated_MB,peak_rss_MB,cpu_us_per_msg,limit_msg_per_s,share_of_limit\n");
}

void row_print_sample(
        FILE *out, const struct row *row, const struct row_sample *sample, const char *suffix)
{
    fprintf(out,
            "%s%s,%zu,10/50/150kB@25/50/25,%.3f,%.1f,%.0f,%.0f,%.3f,%.3f,%.2f,%.2f,%.2f,%.0f,"
            "%.3f,%.3f,%.2f,%.3f,%.2f,%.1f,%.2f,%.1f,%.3f\n",
            row->name, suffix, row->messages, sample->wall_ms, sample->msg_per_s,
            sample->ns_per_msg_p50, sample->ns_per_msg_p99, sample->decodes_per_msg,
            sample->hashes_per_msg, sample->hashed_mb, sample->decoded_mb,
            sample->occupied_mem_delta_mb, sample->gc_collections, sample->id_hashes_per_msg,
            sample->copies_per_msg, sample->copied_mb, sample->allocs_per_msg, sample->allocated_mb,
            sample->peak_rss_mb, sample->cpu_us_per_msg, sample->limit_msg_per_s,
            sample->share_of_limit);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double median_of(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare_doubles);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double column(const struct row_sample *sample, size_t index)
{
    double values[ROW_COLUMNS];
    memcpy(values, sample, sizeof(values));
    return values[index];
}

struct row_sample row_median(const struct row *row)
{
    double medians[ROW_COLUMNS];
    for (size_t i = 0; i < ROW_COLUMNS; i++) {
        double values[ROUNDS_MAX];
        for (size_t s = 0; s < row->count; s++) {
            values[s] = column(&row->samples[s], i);
        }
        medians[i] = median_of(values, row->count);
    }
    struct row_sample result;
    memcpy(&result, medians, sizeof(result));
    return result;
}

double row_least(const struct row *row)
{
    double least = row->samples[0].msg_per_s;
    for (size_t i = 1; i < row->count; i++) {
        least = row->samples[i].msg_per_s < least ? row->samples[i].msg_per_s : least;
    }
    return least;
}

double row_most(const struct row *row)
{
    double most = row->samples[0].msg_per_s;
    for (size_t i = 1; i < row->count; i++) {
        most = row->samples[i].msg_per_s > most ? row->samples[i].msg_per_s : most;
    }
    return most;
}

double row_spread(const struct row *row)
{
    return (row_most(row) - row_least(row)) / row_median(row).msg_per_s;
}
