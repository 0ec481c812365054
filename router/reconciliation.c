/* SPDX-License-Identifier: MIT */
#include "router/reconciliation.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "router/sync_payload.h"

enum {
    MEBIBYTE = 1024 * 1024,
    FIRST_ID_CAPACITY = 64,
    FINGERPRINT_RANGE_BYTES = SYNC_BOUND_MAX_BYTES + ID_HASH_BYTES,
    ITEM_SET_RANGE_BYTES = SYNC_BOUND_MAX_BYTES + 10 + 1 /* without the items */
};

const struct reconciliation_limits reconciliation_defaults = {
        .incoming_bytes_max = (size_t)8 * MEBIBYTE,
        .outgoing_bytes_aim = (size_t)4 * MEBIBYTE,
        .topics_max = 1024,
        .topic_bytes_max = 1024,
        .ranges_max = 65536,
        .item_set_max = 100,
        .part_item_set_max = 4,
        .list_max = 1000,
        .split_parts = 8,
        .differences_max = 100000,
        .work_max = 4000000,
};

/* One answer in the making. */
struct step {
    struct reconciliation_answer *out;
    const struct reconciliation_limits *limits;
    struct sync_view *view;
    struct sync_payload_writer writer;
    int64_t covered_from_ns;
    enum status status; /* of what the lists of differences need */
};

void reconciliation_answer_fini(struct reconciliation_answer *answer)
{
    memory_free(answer->payload.bytes);
    memory_free(answer->they_lack.ids);
    memory_free(answer->we_lack.ids);
    *answer = (struct reconciliation_answer){.is_end = false};
}

static void reset(struct reconciliation_answer *answer)
{
    answer->payload.length = 0;
    answer->they_lack.count = 0;
    answer->we_lack.count = 0;
    answer->not_asked_count = 0;
    answer->has_asked = false;
    answer->is_end = false;
    answer->is_incomplete = false;
}

struct sync_gap reconciliation_window(int64_t now_ns, int64_t range_ns, int64_t jitter_ns)
{
    int64_t end_ns = now_ns - jitter_ns;
    int64_t start_ns = end_ns - range_ns;
    return (struct sync_gap){.from_ns = start_ns > 0 ? start_ns : 0, .to_ns = end_ns};
}

static void add_difference(struct step *step, struct sync_ids *to, const struct id_key *key)
{
    if (to->count == step->limits->differences_max) {
        step->out->is_incomplete = true;
        return;
    }
    if (to->count == to->capacity) {
        size_t capacity = to->capacity == 0 ? FIRST_ID_CAPACITY : to->capacity * 2;
        struct id_key *grown = memory_resize(to->ids, capacity * sizeof(to->ids[0]));
        if (grown == NULL) {
            step->status = STATUS_NO_MEMORY;
            return;
        }
        to->ids = grown;
        to->capacity = capacity;
    }
    to->ids[to->count++] = *key;
}

static bool has_room(const struct step *step, size_t more)
{
    size_t aim = step->limits->outgoing_bytes_aim;
    return more <= aim && step->writer.out->length <= aim - more;
}

static bool is_over_work(const struct step *step)
{
    return sync_view_work(step->view) > step->limits->work_max;
}

/* Left to another session, and said so. */
static void leave_out(struct step *step, const struct sync_range *range)
{
    step->out->is_incomplete = true;
    sync_payload_skip(&step->writer, &range->to);
}

static size_t item_set_bytes(size_t count)
{
    return ITEM_SET_RANGE_BYTES + count * SYNC_ITEM_MAX_BYTES;
}

/* The peer will send what we do not list in this range. */
static void note_asked(struct step *step, const struct sync_range *range)
{
    struct reconciliation_answer *out = step->out;
    int64_t from_ns = range->from.timestamp_ns;
    int64_t to_ns = range->to.timestamp_ns;
    out->asked_from_ns =
            out->has_asked && out->asked_from_ns < from_ns ? out->asked_from_ns : from_ns;
    out->asked_to_ns = out->has_asked && out->asked_to_ns > to_ns ? out->asked_to_ns : to_ns;
    out->has_asked = true;
}

static bool is_wanted(const struct step *step, const struct id_key *key)
{
    return step->limits->wanted != NULL && sync_wanted_contains(step->limits->wanted, key);
}

/* What we have not listed there would be sent to us though another peer is to send it. */
static bool has_wanted(const struct step *step, const struct sync_range *range)
{
    return step->limits->wanted != NULL &&
           sync_wanted_has_between(
                   step->limits->wanted, range->from.timestamp_ns, range->to.timestamp_ns);
}

/* He sends all that he has there; his list tells what that is. */
static void write_empty_set(struct step *step, const struct sync_range *range)
{
    sync_payload_item_set(&step->writer, &range->to, 0);
    sync_payload_item_set_end(&step->writer, step->limits->wanted == NULL);
    note_asked(step, range);
}

static void write_our_set(struct step *step, const struct sync_range *range, size_t count)
{
    struct id_key key;
    sync_payload_item_set(&step->writer, &range->to, count);
    sync_view_seek(step->view, range);
    while (sync_view_next(step->view, &key)) {
        sync_payload_item(&step->writer, &key);
    }
    sync_payload_item_set_end(&step->writer, false);
    note_asked(step, range);
}

/* A range as small as it gets, or left as a fingerprint for the next round to look into. */
static void write_unsplit(struct step *step, const struct sync_range *range,
        const struct id_summary *ours, size_t item_set_max)
{
    if (ours->count == 0) {
        write_empty_set(step, range);
    } else if (ours->count <= item_set_max && has_room(step, item_set_bytes(ours->count))) {
        write_our_set(step, range, ours->count);
    } else {
        sync_payload_fingerprint(&step->writer, &range->to, ours->fingerprint);
    }
}

/*
 * Parts of equal time, the remainder to the first ones. Of eight parts at least one differs, seldom all
 * of them: a fingerprint each costs a round more and far fewer bytes than all their ids.
 */
static void split(struct step *step, const struct sync_range *range)
{
    int64_t parts = (int64_t)step->limits->split_parts;
    int64_t span_ns = range->to.timestamp_ns - range->from.timestamp_ns;
    struct sync_range part = {.to.timestamp_ns = range->from.timestamp_ns};
    for (int64_t i = 0; i < parts; i++) {
        part.from.timestamp_ns = part.to.timestamp_ns;
        part.to.timestamp_ns += span_ns / parts + (i < span_ns % parts ? 1 : 0);
        struct id_summary ours;
        sync_view_summarise(step->view, &part, &ours);
        if (has_wanted(step, &part)) {
            sync_payload_fingerprint(&step->writer, &part.to, ours.fingerprint);
        } else {
            write_unsplit(step, &part, &ours, step->limits->part_item_set_max);
        }
    }
}

static void split_or_wait(
        struct step *step, const struct sync_range *range, const struct id_summary *ours)
{
    if (has_room(step, step->limits->split_parts * FINGERPRINT_RANGE_BYTES)) {
        split(step, range);
    } else {
        sync_payload_fingerprint(&step->writer, &range->to, ours->fingerprint);
    }
}

/* Too many ids for an item set in a span that cannot be split: as many as may be sent at all. */
static void write_indivisible(
        struct step *step, const struct sync_range *range, const struct id_summary *ours)
{
    if (has_room(step, item_set_bytes(ours->count))) {
        write_our_set(step, range, ours->count);
    } else if (item_set_bytes(ours->count) > step->limits->outgoing_bytes_aim / 2) {
        leave_out(step, range);
    } else {
        sync_payload_fingerprint(&step->writer, &range->to, ours->fingerprint);
    }
}

static void compare_fingerprints(struct step *step, const struct sync_payload_range *theirs)
{
    const struct sync_range *range = &theirs->bounds;
    if (is_over_work(step)) {
        leave_out(step, range);
        return;
    }
    struct id_summary ours;
    sync_view_summarise(step->view, range, &ours);
    int64_t span_ns = range->to.timestamp_ns - range->from.timestamp_ns;
    bool is_divisible = span_ns >= (int64_t)step->limits->split_parts;
    if (memcmp(ours.fingerprint, theirs->fingerprint, ID_HASH_BYTES) == 0) {
        sync_payload_skip(&step->writer, &range->to);
    } else if (is_divisible &&
               (ours.count > step->limits->item_set_max || has_wanted(step, range))) {
        split_or_wait(step, range, &ours);
    } else if (ours.count <= step->limits->item_set_max) {
        write_unsplit(step, range, &ours, step->limits->item_set_max);
    } else {
        write_indivisible(step, range, &ours);
    }
}

/* What a walk over both sets side by side is for. */
enum merge_purpose {
    MERGE_REPORT,       /* the differences go into the answer */
    MERGE_WRITE_OURS,   /* all our ids go into the payload */
    MERGE_WRITE_COMMON, /* only those that both have */
};

struct merge_counts {
    size_t ours;   /* what they list and others are to send us counts as ours */
    size_t common; /* and as common */
    size_t wanted; /* so many */
};

static void found_ours(struct step *step, enum merge_purpose purpose, const struct id_key *key)
{
    if (purpose == MERGE_REPORT) {
        add_difference(step, &step->out->they_lack, key);
    } else if (purpose == MERGE_WRITE_OURS) {
        sync_payload_item(&step->writer, key);
    }
}

/* Ids that the range or our set does not cover are none that we lack. */
static bool is_covered(
        const struct step *step, const struct id_key *key, const struct sync_range *range)
{
    return id_key_compare(key, &range->from) >= 0 && id_key_compare(key, &range->to) <= 0 &&
           key->timestamp_ns >= step->covered_from_ns;
}

/* True when the peer is told that we need not have it: it is to come from another one. */
static bool found_theirs(struct step *step, enum merge_purpose purpose, const struct id_key *key,
        const struct sync_range *range)
{
    if (!is_covered(step, key, range)) {
        return false;
    }
    if (is_wanted(step, key)) {
        if (purpose != MERGE_REPORT) {
            sync_payload_item(&step->writer, key);
        }
        return true;
    }
    if (purpose == MERGE_REPORT) {
        add_difference(step, &step->out->we_lack, key);
    }
    return false;
}

static struct merge_counts merge(
        struct step *step, const struct sync_payload_range *theirs, enum merge_purpose purpose)
{
    struct merge_counts counts = {.ours = 0};
    struct sync_item_walk walk = {.position = 0};
    struct id_key ours;
    sync_view_seek(step->view, &theirs->bounds);
    bool has_ours = sync_view_next(step->view, &ours);
    bool has_theirs = sync_item_next(&walk, theirs);
    while (has_ours || has_theirs) {
        int order = !has_ours ? 1 : !has_theirs ? -1 : id_key_compare(&ours, &walk.key);
        if (order < 0) {
            found_ours(step, purpose, &ours);
        } else if (order > 0) {
            counts.wanted += found_theirs(step, purpose, &walk.key, &theirs->bounds);
        } else if (purpose != MERGE_REPORT) {
            sync_payload_item(&step->writer, &ours);
        }
        counts.ours += order <= 0;
        counts.common += order == 0;
        if (order <= 0) {
            has_ours = sync_view_next(step->view, &ours);
        }
        if (order >= 0) {
            has_theirs = sync_item_next(&walk, theirs);
        }
    }
    counts.ours += counts.wanted;
    counts.common += counts.wanted;
    return counts;
}

static void compare_item_sets(struct step *step, const struct sync_payload_range *theirs)
{
    const struct sync_range *range = &theirs->bounds;
    if (is_over_work(step)) {
        leave_out(step, range);
        return;
    }
    struct merge_counts counts = merge(step, theirs, MERGE_REPORT);
    step->out->not_asked_count += counts.wanted;
    if (theirs->is_reconciled) {
        sync_payload_skip(&step->writer, &range->to);
        return;
    }
    bool is_full =
            counts.ours <= step->limits->list_max && has_room(step, item_set_bytes(counts.ours));
    sync_payload_item_set(&step->writer, &range->to, is_full ? counts.ours : counts.common);
    (void)merge(step, theirs, is_full ? MERGE_WRITE_OURS : MERGE_WRITE_COMMON);
    sync_payload_item_set_end(&step->writer, true);
}

/*
 * Leaves the time that we do not cover out of the range: what is older is neither missing here nor to
 * be sent to us. False: nothing of the range is left.
 */
static bool cut_to_covered(struct step *step, struct sync_range *range)
{
    struct id_key covered_from = {.timestamp_ns = step->covered_from_ns};
    if (id_key_compare(&range->to, &covered_from) <= 0) {
        sync_payload_skip(&step->writer, &range->to);
        return false;
    }
    if (id_key_compare(&range->from, &covered_from) < 0) {
        sync_payload_skip(&step->writer, &covered_from);
        range->from = covered_from;
    }
    return true;
}

/* Answers range by range; *has_work: there was one that is not a skip. */
static enum status answer_ranges(
        struct step *step, struct sync_payload_reader *reader, bool *has_work)
{
    size_t count = 0;
    while (sync_payload_has_range(reader)) {
        struct sync_payload_range range;
        enum status status = sync_payload_read_range(reader, &range);
        if (status == STATUS_OK && ++count > step->limits->ranges_max) {
            status = STATUS_TOO_LARGE;
        }
        if (status != STATUS_OK) {
            return status;
        }
        *has_work = *has_work || range.type != SYNC_RANGE_SKIP;
        if (range.type != SYNC_RANGE_SKIP && !cut_to_covered(step, &range.bounds)) {
            continue;
        }
        switch (range.type) {
        case SYNC_RANGE_SKIP:
            sync_payload_skip(&step->writer, &range.bounds.to);
            break;
        case SYNC_RANGE_FINGERPRINT:
            compare_fingerprints(step, &range);
            break;
        case SYNC_RANGE_ITEM_SET:
            compare_item_sets(step, &range);
            break;
        }
    }
    return STATUS_OK;
}

static enum status answer_in_view(
        struct step *step, const struct sync_scope *ours, struct sync_payload_reader *reader)
{
    bool has_work = false;
    enum status status = sync_payload_read_start(reader);
    if (status != STATUS_OK) {
        return status;
    }
    sync_payload_begin(&step->writer, &step->out->payload, ours, reader->last_ns);
    status = answer_ranges(step, reader, &has_work);
    if (status == STATUS_OK) {
        status = step->status;
    }
    if (status == STATUS_OK) {
        status = sync_payload_finish(&step->writer);
    }
    if (status == STATUS_OK && !has_work) {
        step->out->payload.length = 0; /* a payload of skips ends the session and has no answer */
    }
    step->out->is_end = !has_work || !step->writer.has_ranges;
    return status;
}

static enum status answer_disjoint(struct reconciliation_answer *out)
{
    static const struct sync_scope everything;
    struct sync_payload_writer writer;
    sync_payload_begin(&writer, &out->payload, &everything, 0);
    out->is_end = true;
    return sync_payload_finish(&writer);
}

/* topics: room for twice topics_max. */
static enum status answer_with_topics(struct step *step, const struct sync_set *set,
        const struct sync_scope *ours, struct span incoming, struct span *topics)
{
    const struct reconciliation_limits *limits = step->limits;
    struct span *content_topics = topics + limits->topics_max;
    struct sync_payload_reader reader = {.bytes = incoming};
    struct sync_scope theirs = {.pubsub_topics = topics, .content_topics = content_topics};
    enum status status = sync_payload_read_topics(&reader, topics, limits->topics_max,
            &theirs.pubsub_topic_count, limits->topic_bytes_max);
    if (status == STATUS_OK) {
        status = sync_payload_read_topics(&reader, content_topics, limits->topics_max,
                &theirs.content_topic_count, limits->topic_bytes_max);
    }
    if (status == STATUS_OK) {
        status = sync_view_create(&step->view, set, ours, &theirs);
    }
    if (status != STATUS_OK) {
        return status;
    }
    status = sync_view_is_disjoint(step->view) ? answer_disjoint(step->out)
                                               : answer_in_view(step, ours, &reader);
    sync_view_destroy(&step->view);
    return status;
}

enum status reconciliation_answer(struct reconciliation_answer *out, const struct sync_set *set,
        const struct sync_scope *scope, struct span incoming,
        const struct reconciliation_limits *limits)
{
    reset(out);
    if (incoming.length > limits->incoming_bytes_max) {
        return STATUS_TOO_LARGE;
    }
    if (sync_payload_is_end(incoming)) {
        out->is_end = true;
        return STATUS_OK;
    }
    struct span *topics = memory_allocate(2 * limits->topics_max * sizeof(topics[0]));
    if (topics == NULL) {
        return STATUS_NO_MEMORY;
    }
    int64_t covered_from_ns = sync_set_covered_from(set);
    struct step step = {
            .out = out,
            .limits = limits,
            .covered_from_ns =
                    covered_from_ns > limits->earliest_ns ? covered_from_ns : limits->earliest_ns,
    };
    enum status status = answer_with_topics(&step, set, scope, incoming, topics);
    memory_free(topics);
    if (status != STATUS_OK) {
        reset(out);
    }
    return status;
}

enum status reconciliation_start(struct reconciliation_answer *out, const struct sync_set *set,
        const struct sync_scope *scope, struct sync_gap window)
{
    reset(out);
    if (window.from_ns < 0 || window.from_ns >= window.to_ns) {
        return STATUS_BAD_ARGUMENT;
    }
    struct sync_view *view = NULL;
    enum status status = sync_view_create(&view, set, scope, NULL);
    if (status != STATUS_OK) {
        return status;
    }
    /* The upper bound's hash is not sent, so it is zero for the peer and must be for us. */
    struct sync_range range = {
            .from.timestamp_ns = window.from_ns,
            .to.timestamp_ns = window.to_ns,
    };
    struct id_summary ours;
    struct sync_payload_writer writer;
    sync_view_summarise(view, &range, &ours);
    sync_payload_begin(&writer, &out->payload, scope, window.from_ns);
    sync_payload_fingerprint(&writer, &range.to, ours.fingerprint);
    sync_view_destroy(&view);
    return sync_payload_finish(&writer);
}
