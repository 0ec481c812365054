/* SPDX-License-Identifier: MIT */
#include "archive/retention.h"

#include "base/clock.h"
#include "base/log.h"

enum {
    MIN_STEP_ROWS = 16,
    FIRST_STEP_ROWS = 64,
    MAX_STEP_ROWS = 4096,
    MAX_PAUSE_STEPS = 4, /* aimed lengths of a step; a longer pause would let too many rows come */
    PACE_PART =
            4, /* a step takes as many rows as were stored since the last one, and this part more */
    MAX_PACE_ROWS = 5120 /* and no more for that: a step that is too long lets more rows wait */
};

static const uint64_t look_every_ns = NANOSECONDS_PER_SECOND;
static const int64_t largest_step_ns = 3600LL * NANOSECONDS_PER_SECOND;
static const uint64_t doubt_ns = 600ULL * NANOSECONDS_PER_SECOND;

struct retention_time retention_now(void)
{
    return (struct retention_time){clock_wall_ns(), clock_monotonic_ns()};
}

void retention_init(struct retention *retention, struct archive *archive,
        const struct retention_policy *policy, struct retention_time now)
{
    *retention = (struct retention){
            .archive = archive, .policy = *policy, .base = now, .step_rows = FIRST_STEP_ROWS};
    bool has_work = archive != NULL && !retention_policy_keeps_all(policy);
    retention->due_ns = has_work ? now.monotonic_ns : UINT64_MAX;
}

uint64_t retention_due_ns(const struct retention *retention)
{
    return retention->due_ns;
}

void retention_note_batch(struct retention *retention, size_t count, uint64_t monotonic_ns)
{
    retention->put_rows += count;
    bool is_bounded = retention->policy.max_count != 0 || retention->policy.max_bytes != 0;
    if (is_bounded && retention->due_ns > monotonic_ns &&
            retention->due_ns - monotonic_ns > RETENTION_STEP_NS * 20) {
        retention->due_ns = monotonic_ns;
    }
}

/* The wall clock, or what it would show had it not stepped. */
static int64_t believed_wall_ns(struct retention *retention, struct retention_time now)
{
    int64_t elapsed = (int64_t)(now.monotonic_ns - retention->base.monotonic_ns);
    int64_t expected = retention->base.wall_ns + elapsed;
    if (now.wall_ns - expected <= largest_step_ns) {
        retention->doubted_since_ns = 0;
        retention->base = now;
        return now.wall_ns;
    }
    if (retention->doubted_since_ns == 0) {
        retention->doubted_since_ns = now.monotonic_ns;
        log_write(LOG_WARN, "archive",
                "the clock went forward by %lld s: nothing is removed for its age until it has "
                "stayed there for ten minutes",
                (long long)((now.wall_ns - expected) / NANOSECONDS_PER_SECOND));
    }
    if (now.monotonic_ns - retention->doubted_since_ns < doubt_ns) {
        return expected;
    }
    retention->doubted_since_ns = 0;
    retention->base = now;
    return now.wall_ns;
}

int64_t retention_oldest_ns(struct retention *retention, struct retention_time now)
{
    uint64_t age_s = retention->policy.max_age_s;
    if (age_s == 0) {
        return INT64_MIN;
    }
    return believed_wall_ns(retention, now) - (int64_t)(age_s * NANOSECONDS_PER_SECOND);
}

static void choose_next(struct retention *retention, const struct archive_prune_result *result,
        uint64_t began_ns, bool are_inserts_waiting)
{
    uint64_t now = clock_monotonic_ns();
    uint64_t taken = now - began_ns;
    if (taken > 2 * RETENTION_STEP_NS && retention->step_rows > MIN_STEP_ROWS) {
        retention->step_rows /= 2;
    } else if (taken < RETENTION_STEP_NS / 2 && result->removed >= retention->step_rows &&
               retention->step_rows < MAX_STEP_ROWS) {
        retention->step_rows *= 2;
    }
    retention->due_ns = now + look_every_ns;
    if (result->has_more) {
        uint64_t pause = taken < MAX_PAUSE_STEPS * RETENTION_STEP_NS
                                 ? taken
                                 : MAX_PAUSE_STEPS * RETENTION_STEP_NS;
        retention->due_ns = are_inserts_waiting ? now + pause : now;
    }
}

enum status retention_step(struct retention *retention, bool are_inserts_waiting, size_t *removed)
{
    const struct retention_policy *policy = &retention->policy;
    struct retention_time now = retention_now();
    struct archive_prune_result result;
    struct archive_prune_limits limits = archive_prune_nothing;
    limits.oldest_ns = retention_oldest_ns(retention, now);
    limits.max_count = policy->max_count != 0 ? policy->max_count : limits.max_count;
    limits.max_size_bytes = policy->max_bytes != 0 ? policy->max_bytes : limits.max_size_bytes;
    size_t pace = retention->put_rows + (retention->put_rows + PACE_PART - 1) / PACE_PART;
    pace = pace < MAX_PACE_ROWS ? pace : MAX_PACE_ROWS;
    size_t rows = retention->step_rows > pace ? retention->step_rows : pace;
    limits.until_ns = now.monotonic_ns + RETENTION_STEP_NS;
    limits.least_rows = pace;
    enum status status = archive_prune(retention->archive, &limits, rows, &result);
    retention->put_rows = 0;
    *removed = result.removed;
    if (status != STATUS_OK) {
        result.has_more = false;
    }
    choose_next(retention, &result, now.monotonic_ns, are_inserts_waiting);
    return status;
}
