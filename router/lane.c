/* SPDX-License-Identifier: MIT */
#include "router/lane.h"

#include <string.h>

#include "base/memory.h"
#include "codec/waku_message.h"
#include "hash/fast_key.h"
#include "hash/message_hash.h"
#include "hash/message_id.h"
#include "hash/refusal_cache.h"
#include "hash/seen_set.h"
#include "router/recent.h"

struct lane {
    struct lane_options options;
    struct seen_set *seen;
    struct refusal_cache *refusals;
    struct refusal_cache *transfers; /* what came by sync a moment ago and was taken */
    struct recent *recent;
    struct sha256_pair *hashes; /* of messages that have no id */
    struct traffic traffic;
};

enum status lane_create(struct lane **out, const struct lane_options *options)
{
    struct lane *lane = memory_allocate_aligned(CACHE_LINE, sizeof(*lane));
    if (lane == NULL) {
        return STATUS_NO_MEMORY;
    }
    memset(lane, 0, sizeof(*lane));
    lane->options = *options;
    enum status status =
            seen_set_create(&lane->seen, options->seen_limit_bytes, options->seen_window_ns);
    if (status == STATUS_OK) {
        status = refusal_cache_create(
                &lane->refusals, REFUSAL_CACHE_DEFAULT_ENTRIES, REFUSAL_CACHE_DEFAULT_WINDOW_NS);
    }
    if (status == STATUS_OK) {
        status = refusal_cache_create(
                &lane->transfers, REFUSAL_CACHE_DEFAULT_ENTRIES, REFUSAL_CACHE_DEFAULT_WINDOW_NS);
    }
    if (status == STATUS_OK) {
        status = recent_create(&lane->recent, options->recent_limit_bytes);
    }
    if (status == STATUS_OK) {
        status = sha256_pair_create(&lane->hashes);
    }
    if (status != STATUS_OK) {
        lane_destroy(&lane);
        return status;
    }
    *out = lane;
    return STATUS_OK;
}

void lane_destroy(struct lane **lane)
{
    if (*lane == NULL) {
        return;
    }
    sha256_pair_destroy(&(*lane)->hashes);
    recent_destroy(&(*lane)->recent);
    refusal_cache_destroy(&(*lane)->transfers);
    refusal_cache_destroy(&(*lane)->refusals);
    seen_set_destroy(&(*lane)->seen);
    memory_free(*lane);
    *lane = NULL;
}

struct traffic *lane_traffic(struct lane *lane)
{
    return &lane->traffic;
}

static bool skips_relay_checks(const struct frame_part *part)
{
    return part->origin == ORIGIN_SYNC || part->origin == ORIGIN_RESUME;
}

static struct lane_decision refuse(enum metric reason)
{
    metrics_add(reason, 1);
    return (struct lane_decision){.verdict = LANE_REFUSED, .reason = reason};
}

/* A copy keeps its message in the seen set for another window, as on all nodes of this network. */
static struct lane_decision duplicate(struct lane *lane, const struct topic *topic, uint64_t key)
{
    seen_set_renew(lane->seen, topic->index, key);
    metrics_add(LEDGER_INTAKE_DUPLICATE, 1);
    return (struct lane_decision){.verdict = LANE_DUPLICATE, .reason = LEDGER_INTAKE_DUPLICATE};
}

/* Refuses for what the bytes themselves say, and remembers it. */
static struct lane_decision refuse_bytes(
        struct lane *lane, const struct frame_part *part, enum metric reason)
{
    refusal_cache_insert(lane->refusals, fast_key_wide(part->topic->index, part->message),
            (uint32_t)reason + 1, part->received_monotonic_ns);
    return refuse(reason);
}

static enum metric reason_of(enum status status)
{
    if (status == STATUS_PAYLOAD_MISSING) {
        return LEDGER_INTAKE_PAYLOAD_MISSING;
    }
    if (status == STATUS_CONTENT_TOPIC_MISSING) {
        return LEDGER_INTAKE_CONTENT_TOPIC_MISSING;
    }
    if (status == STATUS_META_TOO_LONG) {
        return LEDGER_INTAKE_META_TOO_LONG;
    }
    if (status == STATUS_BAD_TOPIC) {
        return LEDGER_INTAKE_CONTENT_TOPIC_NOT_UTF8;
    }
    return LEDGER_INTAKE_NOT_DECODABLE;
}

/* How well the senders' clocks agree with ours; a local publisher's is ours. */
static void note_offset(struct lane *lane, const struct frame_part *part, int64_t timestamp)
{
    int64_t offset;
    if (part->origin == ORIGIN_MESH && timestamp != 0 &&
            !__builtin_sub_overflow(timestamp, part->received_ns, &offset)) {
        traffic_note_offset(&lane->traffic, offset);
    }
}

/* What comes by sync or resume may be as old as it likes; the future is none of its business. */
static bool is_in_range(const struct lane *lane, const struct frame_part *part, int64_t timestamp)
{
    /* Unsigned difference: no overflow, whatever the sender wrote. */
    uint64_t distance = timestamp > part->received_ns
                                ? (uint64_t)timestamp - (uint64_t)part->received_ns
                                : (uint64_t)part->received_ns - (uint64_t)timestamp;
    bool is_of_past = timestamp <= part->received_ns;
    return distance <= lane->options.timestamp_tolerance_ns ||
           (is_of_past && skips_relay_checks(part));
}

/* True when the message was accepted before. known: its id, where it had to be computed. */
static bool is_seen(struct lane *lane, const struct frame_part *part, uint64_t key,
        uint8_t id[SHA256_BYTES], bool *known)
{
    const uint8_t *entry = seen_set_find_fast(lane->seen, part->topic->index, key);
    if (entry == NULL || !lane->options.has_message_ids) {
        return false;
    }
    message_id(id, part->message);
    *known = true;
    return memcmp(entry, id, SHA256_BYTES) == 0 ||
           seen_set_contains(lane->seen, part->topic->index, id);
}

static struct envelope *make_envelope(
        const struct frame_part *part, const struct waku_message_view *view)
{
    frame_ref(part->frame);
    struct envelope *envelope =
            part->is_embedded ? envelope_create_inside(part->frame) : envelope_create(part->frame);
    if (envelope == NULL) {
        frame_unref(part->frame);
        return NULL;
    }
    envelope->topic = part->topic;
    envelope->message = part->message;
    envelope->payload = view->payload;
    envelope->content_topic = view->content_topic;
    envelope->meta = view->meta;
    envelope->timestamp_ns = view->timestamp_ns;
    envelope->received_ns = part->received_ns;
    envelope->received_monotonic_ns = part->received_monotonic_ns;
    envelope->connection = part->connection;
    envelope->completion = part->completion;
    envelope->version = view->version;
    envelope->origin = part->origin;
    envelope->is_ephemeral = view->ephemeral;
    return envelope;
}

static struct message_hash_input hash_input_of(const struct envelope *envelope)
{
    return (struct message_hash_input){
            .pubsub_topic = envelope->topic->name,
            .payload = envelope->payload,
            .content_topic = envelope->content_topic,
            .meta = envelope->meta,
            .timestamp_ns = envelope->timestamp_ns,
    };
}

bool lane_can_wait(const struct lane_pending *pending)
{
    return !pending->wants_id;
}

void lane_hash(struct lane_pending *pending)
{
    struct envelope *envelope = pending->envelope;
    struct message_hash_input input = hash_input_of(envelope);
    if (pending->wants_id) {
        message_hash_and_id(envelope->hash, envelope->id, &input, envelope->message);
    } else {
        message_hash(envelope->hash, &input);
    }
}

void lane_hash_start(struct lane *lane, struct lane_pending *pending)
{
    struct message_hash_input input = hash_input_of(pending->envelope);
    message_hash_start(lane->hashes, &pending->hash, pending->envelope->hash, &input);
}

bool lane_is_hashed(const struct lane_pending *pending)
{
    return message_hash_is_done(&pending->hash);
}

void lane_hash_end(struct lane *lane, const struct lane_pending *pending)
{
    message_hash_finish(lane->hashes, &pending->hash);
}

/* Without message ids (no relay) the message hash is what makes a copy; it was just computed. */
static bool is_seen_by_hash(const struct lane *lane, const struct envelope *envelope)
{
    return !lane->options.has_message_ids &&
           seen_set_contains(lane->seen, envelope->topic->index, envelope->hash);
}

static void remember(struct lane *lane, struct envelope *envelope, uint64_t key)
{
    const uint8_t *name = lane->options.has_message_ids ? envelope->id : envelope->hash;
    /* Without memory for it the message is relayed all the same; a copy may pass once more. */
    (void)!seen_set_insert(
            lane->seen, envelope->topic->index, name, key, envelope->received_monotonic_ns);
    recent_add(lane->recent, envelope, key);
}

struct lane_decision lane_finish(struct lane *lane, struct lane_pending *pending)
{
    struct envelope *envelope = pending->envelope;
    bool is_live = envelope->origin != ORIGIN_SYNC && envelope->origin != ORIGIN_RESUME;
    if (is_live && is_seen_by_hash(lane, envelope)) {
        struct lane_decision decision = duplicate(lane, envelope->topic, pending->key);
        envelope_unref(envelope);
        return decision;
    }
    if (is_live) {
        remember(lane, envelope, pending->key);
        traffic_accepted(&lane->traffic, envelope->topic, envelope->message.length,
                envelope->payload.length);
    }
    metrics_add(LEDGER_INTAKE_DELIVERED, 1);
    return (struct lane_decision){
            .verdict = LANE_NEW, .reason = LEDGER_INTAKE_DELIVERED, .envelope = envelope};
}

/* True when it is refused. */
static bool decode(struct lane *lane, const struct frame_part *part, struct lane_decision *decision,
        struct lane_pending *pending)
{
    struct waku_message_view view;
    enum status status = STATUS_OK;
    if (part->fields != NULL) {
        view = *(const struct waku_message_view *)part->fields;
    } else {
        status = waku_message_decode(&view, part->message);
    }
    if (status == STATUS_OK) {
        status = waku_message_check(&view, &waku_message_limits_default);
    }
    if (status != STATUS_OK) {
        *decision = refuse_bytes(lane, part, reason_of(status));
        return true;
    }
    note_offset(lane, part, view.timestamp_ns);
    bool in_range = is_in_range(lane, part, view.timestamp_ns);
    if (!in_range && lane->options.refuses_timestamps && !skips_relay_checks(part)) {
        *decision = refuse_bytes(lane, part, LEDGER_INTAKE_TIMESTAMP_OUT_OF_RANGE);
        return true;
    }
    if (lane->options.accepts != NULL &&
            !lane->options.accepts(lane->options.accepts_context, part, &view)) {
        *decision = refuse_bytes(lane, part, LEDGER_INTAKE_NOT_SIGNED);
        return true;
    }
    pending->envelope = make_envelope(part, &view);
    if (pending->envelope == NULL) {
        *decision = refuse(LEDGER_INTAKE_NO_MEMORY);
        return true;
    }
    pending->envelope->is_timestamp_in_range = in_range;
    metrics_add(METRIC_UNKNOWN_FIELDS, view.unknown_field_count > 0);
    return false;
}

/*
 * The reason + 1 of a refusal of these very bytes, or 0. Only a likely hit costs a pass over them. What
 * relay refused for its time (a signature has one, too) may still come by sync.
 */
static uint32_t refused_before(struct lane *lane, const struct frame_part *part, uint64_t key)
{
    if (!refusal_cache_may_have(lane->refusals, key, part->received_monotonic_ns)) {
        return 0;
    }
    uint32_t reason = refusal_cache_find(lane->refusals,
            fast_key_wide(part->topic->index, part->message), part->received_monotonic_ns);
    bool is_of_time = reason == (uint32_t)LEDGER_INTAKE_TIMESTAMP_OUT_OF_RANGE + 1 ||
                      reason == (uint32_t)LEDGER_INTAKE_NOT_SIGNED + 1;
    return is_of_time && skips_relay_checks(part) ? 0 : reason;
}

/* A copy of a message that is held; past its window it is as new as if it were not. */
static bool is_held_copy(struct lane *lane, const struct frame_part *part, uint64_t key)
{
    const struct envelope *held = recent_find(lane->recent, part->topic, part->message, key);
    return held != NULL && (part->received_monotonic_ns - held->received_monotonic_ns <
                                           lane->options.seen_window_ns ||
                                   seen_set_find_fast(lane->seen, part->topic->index, key) != NULL);
}

/* The same bytes that a transfer has brought a moment before, from whomever. */
static bool is_repeated_transfer(struct lane *lane, const struct frame_part *part, uint64_t key)
{
    return part->origin == ORIGIN_SYNC &&
           refusal_cache_may_have(lane->transfers, key, part->received_monotonic_ns) &&
           refusal_cache_find(lane->transfers, fast_key_wide(part->topic->index, part->message),
                   part->received_monotonic_ns) != 0;
}

static struct lane_decision repeated(void)
{
    metrics_add(LEDGER_INTAKE_DUPLICATE, 1);
    metrics_add(METRIC_SYNC_REPEATED, 1);
    return (struct lane_decision){.verdict = LANE_DUPLICATE, .reason = LEDGER_INTAKE_DUPLICATE};
}

/* True when the bytes alone decide: a copy that is held, or something refused before or by size. */
static bool decide_early(struct lane *lane, const struct frame_part *part, uint64_t key,
        struct lane_decision *decision)
{
    if (!skips_relay_checks(part) && is_held_copy(lane, part, key)) {
        *decision = duplicate(lane, part->topic, key);
        return true;
    }
    if (is_repeated_transfer(lane, part, key)) {
        *decision = repeated();
        return true;
    }
    uint32_t reason = refused_before(lane, part, key);
    if (reason != 0) {
        *decision = refuse((enum metric)(reason - 1));
    } else if (part->has_signed_fields) {
        *decision = refuse(LEDGER_INTAKE_SIGNED_FIELDS_PRESENT);
    } else if (part->message.length > lane->options.max_message_bytes) {
        *decision = refuse(LEDGER_INTAKE_TOO_LARGE);
    } else {
        return false;
    }
    return true;
}

bool lane_begin(struct lane *lane, const struct frame_part *part, struct lane_decision *decision,
        struct lane_pending *pending)
{
    uint8_t id[SHA256_BYTES];
    bool id_is_known = false;
    uint64_t key = fast_key(part->topic->index, part->message);
    metrics_add(LEDGER_INTAKE_RECEIVED, 1);
    traffic_arrived(&lane->traffic, part->topic, part->message.length);
    if (decide_early(lane, part, key, decision)) {
        return true;
    }
    if (!skips_relay_checks(part) && is_seen(lane, part, key, id, &id_is_known)) {
        *decision = duplicate(lane, part->topic, key);
        return true;
    }
    if (decode(lane, part, decision, pending)) {
        return true;
    }
    if (part->origin == ORIGIN_SYNC) {
        refusal_cache_insert(lane->transfers, fast_key_wide(part->topic->index, part->message), 1,
                part->received_monotonic_ns);
    }
    pending->key = key;
    pending->wants_id = lane->options.has_message_ids && !skips_relay_checks(part) && !id_is_known;
    if (id_is_known) {
        memcpy(pending->envelope->id, id, SHA256_BYTES);
    }
    return false;
}

struct lane_decision lane_take(struct lane *lane, const struct frame_part *part)
{
    struct lane_decision decision;
    struct lane_pending pending;
    if (lane_begin(lane, part, &decision, &pending)) {
        return decision;
    }
    lane_hash(&pending);
    return lane_finish(lane, &pending);
}

bool lane_has_seen(const struct lane *lane, const struct topic *topic, const uint8_t *id)
{
    return seen_set_contains(lane->seen, topic->index, id);
}

bool lane_expire(struct lane *lane, uint64_t now_monotonic_ns)
{
    return seen_set_expire(lane->seen, now_monotonic_ns);
}

size_t lane_seen_count(const struct lane *lane)
{
    return seen_set_count(lane->seen);
}

size_t lane_recent_bytes(const struct lane *lane)
{
    return recent_bytes(lane->recent);
}
