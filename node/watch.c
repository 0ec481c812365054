/* SPDX-License-Identifier: MIT */
#include "node/watch.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "node/health_protocols.h"
#include "node/node_private.h"

static void say(char *why, size_t size, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

static void say(char *why, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, size, format, arguments);
    va_end(arguments);
}

/* Why each part is in trouble now, "" when it is not. */
struct verdicts {
    char why[HEALTH_PARTS][sizeof(((struct health_part_state *)NULL)->why)];
};

static void judge_archive(struct verdicts *out, const struct node_reading *reading)
{
    const struct archive_reading *archive = &reading->archive;
    if (archive->is_there && archive->health != STATUS_OK) {
        say(out->why[HEALTH_ARCHIVE], sizeof(out->why[0]),
                "%s; %" PRIu64 " messages wait, %" PRIu64 " dropped in all",
                status_text(archive->health), archive->held,
                reading_dropped(reading, LEDGER_STAGE_ARCHIVE));
    }
    if (archive->spilled > 0) {
        say(out->why[HEALTH_SPILL], sizeof(out->why[0]),
                "%" PRIu64 " messages wait in the spill file", archive->spilled);
    }
}

static void judge_peers(struct verdicts *out, const struct node_reading *reading)
{
    if (reading->relay.is_there && reading->relay.peers == 0) {
        say(out->why[HEALTH_PEERS], sizeof(out->why[0]),
                "no peer to relay with (%" PRIu64 " connections)", reading->connections);
    }
}

static void judge_clock(struct verdicts *out, const struct node_reading *reading)
{
    int64_t limit_ns = HEALTH_OFFSET_MAX_MS * (int64_t)NANOSECONDS_PER_MILLISECOND;
    int64_t offset_ns = reading->offset_median_ns;
    if (reading->offset_samples >= HEALTH_OFFSET_SAMPLES_MIN &&
            (offset_ns > limit_ns || offset_ns < -limit_ns)) {
        say(out->why[HEALTH_CLOCK], sizeof(out->why[0]),
                "the last messages are %.1f s %s this clock (median of %zu)",
                (double)(offset_ns > 0 ? offset_ns : -offset_ns) / NANOSECONDS_PER_SECOND,
                offset_ns > 0 ? "ahead of" : "behind", reading->offset_samples);
    }
}

/* What only shows by what was lost. */
static void judge_drops(struct watch *watch, struct verdicts *out,
        const struct node_reading *reading, enum health_part part, uint64_t dropped)
{
    if (dropped > watch->dropped_before[part]) {
        watch->dropped_at_ns[part] = reading->monotonic_ns;
        watch->dropped_before[part] = dropped;
    }
    uint64_t quiet_ns = HEALTH_QUIET_MS * (uint64_t)NANOSECONDS_PER_MILLISECOND;
    bool is_recent = watch->dropped_at_ns[part] != 0 &&
                     reading->monotonic_ns - watch->dropped_at_ns[part] < quiet_ns;
    if (is_recent && out->why[part][0] == '\0') {
        say(out->why[part], sizeof(out->why[0]), "%" PRIu64 " in all, the last %" PRIu64 " s ago",
                dropped,
                (reading->monotonic_ns - watch->dropped_at_ns[part]) / NANOSECONDS_PER_SECOND);
    }
}

static void judge_all_drops(
        struct watch *watch, struct verdicts *out, const struct node_reading *reading)
{
    const uint64_t *metrics = reading->metrics;
    judge_drops(watch, out, reading, HEALTH_SPILL, metrics[LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE]);
    judge_drops(watch, out, reading, HEALTH_MEMORY, metrics[METRIC_FRAMES_WITHOUT_CREDIT]);
    judge_drops(watch, out, reading, HEALTH_OUTBOUND, metrics[LEDGER_RELAY_OUT_OUTBOUND_BUDGET]);
    judge_drops(watch, out, reading, HEALTH_EVENT, reading_dropped(reading, LEDGER_STAGE_EVENT));
    judge_drops(watch, out, reading, HEALTH_FILTER, reading_dropped(reading, LEDGER_STAGE_FILTER));
    judge_drops(watch, out, reading, HEALTH_SYNC, reading_dropped(reading, LEDGER_STAGE_SYNC));
}

static void log_change(enum health_part part, const struct health_part_state *state)
{
    if (state->is_degraded) {
        log_write(LOG_WARN, "health", "%s is degraded: %s: %s", health_part_name(part),
                health_part_meaning(part), state->why);
    } else {
        log_write(LOG_NOTICE, "health", "%s is well again", health_part_name(part));
    }
}

static bool settle_part(
        struct health_part_state *state, const char *why, const struct node_reading *reading)
{
    bool is_degraded = why[0] != '\0';
    bool has_changed = is_degraded != state->is_degraded;
    if (has_changed || state->since_ns == 0) {
        state->since_ns = reading->wall_ns;
    }
    state->is_degraded = is_degraded;
    snprintf(state->why, sizeof(state->why), "%s", why);
    return has_changed;
}

void watch_judge(struct watch *watch, const struct node_reading *reading, bool *has_changed)
{
    struct verdicts verdicts;
    memset(&verdicts, 0, sizeof(verdicts));
    judge_archive(&verdicts, reading);
    judge_peers(&verdicts, reading);
    judge_clock(&verdicts, reading);
    judge_all_drops(watch, &verdicts, reading);
    struct node_health *health = &watch->health;
    pthread_mutex_lock(&watch->lock);
    health->is_degraded = false;
    for (size_t i = 0; i < HEALTH_PARTS; i++) {
        has_changed[i] = settle_part(&health->parts[i], verdicts.why[i], reading);
        health->is_degraded = health->is_degraded || health->parts[i].is_degraded;
    }
    health->node = reading->is_running ? "READY" : "INITIALIZING";
    health->offset_median_ns = reading->offset_median_ns;
    health->offset_samples = reading->offset_samples;
    health_list_protocols(health, watch->node, reading);
    pthread_mutex_unlock(&watch->lock);
    for (size_t i = 0; i < HEALTH_PARTS; i++) {
        if (has_changed[i]) {
            log_change((enum health_part)i, &health->parts[i]);
        }
    }
}

static void look(struct watch *watch)
{
    struct node_reading *last = watch->reading;
    watch->reading = watch->before;
    watch->before = last;
    node_read(watch->node, watch->reading);
    struct watch_tick tick = {
            .reading = watch->reading, .before = watch->before, .health = &watch->health};
    watch_judge(watch, watch->reading, tick.has_changed);
    if (watch->listener != NULL) {
        watch->listener(watch->listener_context, &tick);
    }
}

static size_t turn(void *context)
{
    struct watch *watch = context;
    uint64_t now = clock_monotonic_ns();
    if (now < watch->next_ns) {
        return 0;
    }
    watch->next_ns = now + WATCH_PERIOD_MS * (uint64_t)NANOSECONDS_PER_MILLISECOND;
    worker_block_begin();
    look(watch);
    worker_block_end();
    return 1;
}

static uint64_t deadline(void *context)
{
    const struct watch *watch = context;
    return watch->next_ns;
}

/* The first look comes before anybody can ask. */
static enum status start(void *context)
{
    (void)turn(context);
    return STATUS_OK;
}

static void stop(void *context)
{
    struct watch *watch = context;
    pthread_mutex_lock(&watch->lock);
    watch->health.node = "SHUTTING_DOWN";
    watch->health.connection = "Disconnected";
    pthread_mutex_unlock(&watch->lock);
}

enum status watch_init(struct watch *watch, struct node *node)
{
    watch->node = node;
    watch->health.node = "INITIALIZING";
    watch->health.connection = "Disconnected";
    parking_init(&watch->parking);
    watch->reading = memory_allocate_zeroed(sizeof(*watch->reading));
    watch->before = memory_allocate_zeroed(sizeof(*watch->before));
    watch->has_lock = pthread_mutex_init(&watch->lock, NULL) == 0;
    bool is_whole = watch->reading != NULL && watch->before != NULL && watch->has_lock;
    return is_whole ? STATUS_OK : STATUS_NO_MEMORY;
}

void watch_fini(struct watch *watch)
{
    if (watch->has_lock) {
        pthread_mutex_destroy(&watch->lock);
        watch->has_lock = false;
    }
    memory_free(watch->reading);
    memory_free(watch->before);
    watch->reading = NULL;
    watch->before = NULL;
}

struct worker_role watch_role(struct watch *watch, const char *name)
{
    return (struct worker_role){.name = name,
            .context = watch,
            .start = start,
            .turn = turn,
            .deadline = deadline,
            .stop = stop,
            .parking = &watch->parking};
}
