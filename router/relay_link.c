/* SPDX-License-Identifier: MIT */
#include "router/relay_link.h"

#include <string.h>

#include "base/memory.h"

/*
 * LAST:    release decrement -> acquire decrement that finds the last one, before the parcel is freed.
 * COMPACT: release exchange of parcel->compact -> acquire load. Who finds it sees the copied message.
 */

/* A message's tickets that are not gone, over all parcels that it has come to stand in. */
struct relay_paced {
    atomic_uint left;
    unsigned enough; /* of left: half of the peers have taken it */
    size_t bytes;    /* of the message */
    struct relay_pace *pace;
};

/* As much as a waiting ticket is counted for. */
static size_t pace_cost(size_t message_bytes)
{
    return message_bytes + RELAY_TICKET_BYTES;
}

/* relaxed: a bound, no order depends on it */
void relay_pace_add(struct relay_pace *pace, size_t message_bytes)
{
    atomic_fetch_add_explicit(&pace->bytes, pace_cost(message_bytes), memory_order_relaxed);
}

void relay_pace_remove(struct relay_pace *pace, size_t message_bytes)
{
    atomic_fetch_sub_explicit(&pace->bytes, pace_cost(message_bytes), memory_order_relaxed);
}

bool relay_pace_is_full(const struct relay_pace *pace)
{
    return pace->bytes_max != 0 &&
           atomic_load_explicit(&pace->bytes, memory_order_relaxed) >= pace->bytes_max;
}

void relay_parcel_set_pace(struct relay_parcel *parcel, struct relay_pace *pace)
{
    struct relay_paced *paced = memory_allocate(sizeof(*paced));
    size_t bytes = parcel->envelope->message.length;
    if (paced == NULL) {
        relay_pace_remove(pace, bytes);
        return;
    }
    atomic_init(&paced->left, (unsigned)parcel->ticket_count);
    paced->enough = (unsigned)parcel->ticket_count / 2;
    paced->bytes = bytes;
    paced->pace = pace;
    parcel->paced = paced;
}

static void end_ticket(struct relay_paced *paced)
{
    if (paced == NULL) {
        return;
    }
    /* LAST, of paced */
    unsigned left = atomic_fetch_sub_explicit(&paced->left, 1, memory_order_acq_rel) - 1;
    if (left == paced->enough) {
        relay_pace_remove(paced->pace, paced->bytes);
    }
    if (left == 0) {
        memory_free(paced);
    }
}

struct lane_event *lane_event_create(enum lane_event_kind kind, uint64_t peer, struct frame *frame)
{
    struct lane_event *event = memory_allocate_zeroed(sizeof(*event));
    if (event == NULL) {
        return NULL;
    }
    event->kind = kind;
    event->peer = peer;
    event->frame = frame;
    if (frame != NULL) {
        frame_ref_carried(frame);
    }
    return event;
}

void lane_event_destroy(struct lane_event *event)
{
    if (event->frame != NULL) {
        frame_unref_carried(event->frame);
    }
    if (event->release != NULL) {
        event->release(event->owner);
    }
    memory_free(event);
}

/* Tickets first, then the header's bytes, all in one block. */
static struct relay_parcel *create_parcel(
        size_t header_bytes, const uint64_t connections[], size_t count, uint64_t now_ns)
{
    size_t tickets = count * sizeof(struct relay_ticket);
    struct relay_parcel *parcel = memory_allocate(sizeof(*parcel) + tickets + header_bytes);
    if (parcel == NULL) {
        return NULL;
    }
    atomic_init(&parcel->references, (unsigned)count);
    parcel->is_control = true;
    parcel->header = (uint8_t *)&parcel->tickets[count];
    parcel->header_length = (uint32_t)header_bytes;
    parcel->envelope = NULL;
    atomic_init(&parcel->compact, NULL);
    parcel->paced = NULL;
    parcel->made_ns = now_ns;
    parcel->ticket_count = count;
    for (size_t i = 0; i < count; i++) {
        parcel->tickets[i].parcel = parcel;
        parcel->tickets[i].next = NULL;
        parcel->tickets[i].connection = connections != NULL ? connections[i] : 0;
    }
    return parcel;
}

struct relay_parcel *relay_parcel_behind_header(struct envelope *envelope, size_t header_bytes,
        const uint64_t connections[], size_t count, uint64_t now_ns)
{
    struct relay_parcel *parcel = create_parcel(header_bytes, connections, count, now_ns);
    if (parcel == NULL) {
        return NULL;
    }
    envelope_ref(envelope);
    parcel->envelope = envelope;
    parcel->is_control = false;
    return parcel;
}

struct relay_parcel *relay_parcel_of_message(
        struct envelope *envelope, const uint64_t connections[], size_t count, uint64_t now_ns)
{
    struct span topic = envelope->topic->name;
    size_t bytes = gossip_publish_header_size(topic, envelope->message.length);
    struct relay_parcel *parcel =
            relay_parcel_behind_header(envelope, bytes, connections, count, now_ns);
    if (parcel != NULL) {
        (void)gossip_publish_header_write(parcel->header, bytes, topic, envelope->message.length);
    }
    return parcel;
}

struct relay_parcel *relay_parcel_of_control(const struct gossip_outgoing *rpc,
        const uint64_t connections[], size_t count, uint64_t now_ns)
{
    size_t bytes = gossip_outgoing_size(rpc);
    if (bytes == 0) {
        return NULL;
    }
    struct relay_parcel *parcel = create_parcel(bytes, connections, count, now_ns);
    if (parcel != NULL) {
        (void)gossip_outgoing_write(parcel->header, bytes, rpc);
    }
    return parcel;
}

void relay_parcel_ref(struct relay_parcel *parcel)
{
    /* relaxed: the caller holds a reference, so it cannot be the last one */
    atomic_fetch_add_explicit(&parcel->references, 1, memory_order_relaxed);
}

static void drop_reference(struct relay_parcel *parcel)
{
    /* LAST */
    if (atomic_fetch_sub_explicit(&parcel->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (parcel->envelope != NULL) {
        envelope_unref(parcel->envelope);
    }
    /* relaxed: ordered by LAST */
    struct envelope *compact = atomic_load_explicit(&parcel->compact, memory_order_relaxed);
    if (compact != NULL) {
        envelope_unref(compact);
    }
    memory_free(parcel);
}

void relay_parcel_unref(struct relay_parcel *parcel)
{
    struct relay_paced *paced = parcel->paced;
    drop_reference(parcel);
    end_ticket(paced);
}

/* The same message behind the same header. */
static struct relay_ticket *make_ticket(
        const struct relay_parcel *parcel, struct envelope *envelope, uint64_t connection)
{
    struct relay_parcel *fresh = relay_parcel_behind_header(
            envelope, parcel->header_length, &connection, 1, parcel->made_ns);
    if (fresh == NULL) {
        return NULL;
    }
    memcpy(fresh->header, parcel->header, parcel->header_length);
    return &fresh->tickets[0];
}

struct relay_ticket *relay_parcel_ticket_again(
        const struct relay_parcel *parcel, uint64_t connection)
{
    return make_ticket(parcel, parcel->envelope, connection);
}

/* The parcel's own; NULL: the message is most of its frame, or there is no memory. */
static struct envelope *find_compact(struct relay_parcel *parcel)
{
    struct envelope *found =
            atomic_load_explicit(&parcel->compact, memory_order_acquire); /* COMPACT */
    if (found != NULL) {
        return found;
    }
    envelope_ref(parcel->envelope);
    struct envelope *made = envelope_compact(parcel->envelope);
    if (made == parcel->envelope) {
        envelope_unref(made);
        return NULL;
    }
    if (atomic_compare_exchange_strong_explicit(&parcel->compact, &found, made,
                memory_order_acq_rel, memory_order_acquire)) { /* COMPACT */
        return made;
    }
    envelope_unref(made); /* another thread was first */
    return found;
}

struct relay_ticket *relay_ticket_settle(struct relay_ticket *ticket)
{
    struct relay_parcel *parcel = ticket->parcel;
    if (parcel->envelope == NULL) {
        return ticket;
    }
    struct envelope *compact = find_compact(parcel);
    if (compact == NULL) {
        frame_uncharge(parcel->envelope->frame);
        return ticket;
    }
    struct relay_ticket *fresh = make_ticket(parcel, compact, ticket->connection);
    if (fresh == NULL) {
        return ticket;
    }
    fresh->parcel->paced = parcel->paced; /* its ticket is not gone */
    drop_reference(parcel);
    return fresh;
}

size_t relay_parcel_bytes(const struct relay_parcel *parcel)
{
    return parcel->header_length +
           (parcel->envelope != NULL ? parcel->envelope->message.length : 0);
}
