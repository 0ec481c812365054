/* SPDX-License-Identifier: MIT */
#include "net/protocols/relay_queue.h"

/*
 * Ordering: the budget's counters are relaxed. They guard no other memory; each thread gives back what
 * it has taken.
 */

enum {
    UNSETTLED_MAX = 16 /* messages at the head of a queue that may pin frames of any size */
};

const struct relay_queue_reasons relay_queue_reasons_of_relay = {
        .stale = (enum metric)LEDGER_RELAY_OUT_STALE,
        .queue_full = (enum metric)LEDGER_RELAY_OUT_QUEUE_FULL,
        .outbound_budget = (enum metric)LEDGER_RELAY_OUT_OUTBOUND_BUDGET,
};

const struct relay_queue_reasons relay_queue_reasons_of_filter = {
        .stale = (enum metric)LEDGER_FILTER_OUT_STALE,
        .queue_full = (enum metric)LEDGER_FILTER_OUT_QUEUE_FULL,
        .outbound_budget = (enum metric)LEDGER_FILTER_OUT_OUTBOUND_BUDGET,
};

void relay_queue_init(struct relay_queue *queue, const struct relay_queue_limits *limits,
        struct relay_budget *budget)
{
    *queue = (struct relay_queue){.limits = limits, .budget = budget};
}

static void append(struct relay_ticket_list *list, struct relay_ticket *ticket, size_t bytes)
{
    ticket->next = NULL;
    if (list->last != NULL) {
        list->last->next = ticket;
    } else {
        list->first = ticket;
    }
    list->last = ticket;
    list->bytes += bytes;
    list->count++;
}

static struct relay_ticket *take_first(struct relay_ticket_list *list, size_t overhead)
{
    struct relay_ticket *ticket = list->first;
    if (ticket != NULL) {
        list->first = ticket->next;
        list->last = list->first == NULL ? NULL : list->last;
        list->bytes -= relay_parcel_bytes(ticket->parcel) + overhead;
        list->count--;
    }
    return ticket;
}

static bool try_charge(struct relay_queue *queue, size_t bytes)
{
    struct relay_budget *budget = queue->budget;
    /* relaxed: see top */
    size_t before = atomic_fetch_add_explicit(&budget->bytes, bytes, memory_order_relaxed);
    if (before + bytes > budget->bytes_max) {
        atomic_fetch_sub_explicit(&budget->bytes, bytes, memory_order_relaxed);
        return false;
    }
    atomic_fetch_add_explicit(queue->limits->held, 1, memory_order_relaxed);
    return true;
}

/* What a waiting message counts for. */
static size_t charge_of(const struct relay_queue *queue, const struct relay_ticket *ticket)
{
    return relay_parcel_bytes(ticket->parcel) + queue->limits->message_overhead;
}

static struct relay_ticket *take_message(struct relay_queue *queue)
{
    struct relay_ticket *ticket = take_first(&queue->messages, queue->limits->message_overhead);
    if (ticket != NULL) {
        /* relaxed: see top */
        atomic_fetch_sub_explicit(
                &queue->budget->bytes, charge_of(queue, ticket), memory_order_relaxed);
        atomic_fetch_sub_explicit(queue->limits->held, 1, memory_order_relaxed);
    }
    return ticket;
}

static void drop(struct relay_queue *queue, struct relay_ticket *ticket, enum metric reason)
{
    metrics_add(reason, 1);
    queue->dropped++;
    relay_parcel_unref(ticket->parcel);
}

bool relay_queue_is_stale(
        const struct relay_queue *queue, const struct relay_ticket *ticket, uint64_t now_ns)
{
    uint64_t made_ns = ticket->parcel->made_ns;
    return !ticket->parcel->is_control && now_ns > made_ns &&
           now_ns - made_ns > queue->limits->age_max_ns;
}

void relay_queue_expire(struct relay_queue *queue, uint64_t now_ns)
{
    while (queue->messages.first != NULL &&
            relay_queue_is_stale(queue, queue->messages.first, now_ns)) {
        drop(queue, take_message(queue), queue->limits->reasons->stale);
    }
}

static void push_control(struct relay_queue *queue, struct relay_ticket *ticket)
{
    append(&queue->control, ticket, relay_parcel_bytes(ticket->parcel));
    while (queue->control.bytes > queue->limits->control_bytes_max) {
        drop(queue, take_first(&queue->control, 0), METRIC_RELAY_CONTROL_DROPPED);
    }
}

/* Own messages give way, never those of other peers. */
static bool make_room(struct relay_queue *queue, size_t bytes)
{
    size_t max = queue->limits->message_bytes_max;
    while (queue->messages.first != NULL && queue->messages.bytes + bytes > max) {
        drop(queue, take_message(queue), queue->limits->reasons->queue_full);
    }
    return bytes <= max;
}

static bool charge(struct relay_queue *queue, size_t bytes)
{
    while (!try_charge(queue, bytes)) {
        if (queue->messages.first == NULL) {
            return false;
        }
        drop(queue, take_message(queue), queue->limits->reasons->outbound_budget);
    }
    return true;
}

void relay_queue_push(struct relay_queue *queue, struct relay_ticket *ticket, uint64_t now_ns)
{
    size_t bytes = charge_of(queue, ticket);
    const struct relay_queue_reasons *reasons = queue->limits->reasons;
    if (ticket->parcel->is_control) {
        push_control(queue, ticket);
        return;
    }
    relay_queue_expire(queue, now_ns);
    if (relay_queue_is_stale(queue, ticket, now_ns)) {
        drop(queue, ticket, reasons->stale);
    } else if (!make_room(queue, bytes)) {
        drop(queue, ticket, reasons->queue_full);
    } else if (!charge(queue, bytes)) {
        drop(queue, ticket, reasons->outbound_budget);
    } else {
        bool is_late = queue->messages.count >= UNSETTLED_MAX;
        append(&queue->messages, is_late ? relay_ticket_settle(ticket) : ticket, bytes);
    }
}

void relay_queue_put_back(struct relay_queue *queue, struct relay_ticket *ticket)
{
    struct relay_ticket_list *list = &queue->messages;
    size_t bytes = charge_of(queue, ticket);
    if (list->bytes + bytes > queue->limits->message_bytes_max) {
        drop(queue, ticket, queue->limits->reasons->queue_full);
    } else if (!try_charge(queue, bytes)) {
        drop(queue, ticket, queue->limits->reasons->outbound_budget);
    } else {
        ticket->next = list->first;
        list->first = ticket;
        list->last = list->last == NULL ? ticket : list->last;
        list->bytes += bytes;
        list->count++;
    }
}

void relay_queue_settle(struct relay_queue *queue)
{
    struct relay_ticket_list *list = &queue->messages;
    struct relay_ticket **place = &list->first;
    for (size_t i = 0; i < UNSETTLED_MAX && *place != NULL; i++) {
        struct relay_ticket *next = (*place)->next;
        struct relay_ticket *settled = relay_ticket_settle(*place);
        settled->next = next;
        *place = settled;
        list->last = next == NULL ? settled : list->last;
        place = &settled->next;
    }
}

struct relay_ticket *relay_queue_try_pop(struct relay_queue *queue, uint64_t now_ns)
{
    struct relay_ticket *ticket = take_first(&queue->control, 0);
    if (ticket == NULL) {
        relay_queue_expire(queue, now_ns);
        ticket = take_message(queue);
    }
    return ticket;
}

void relay_queue_clear(struct relay_queue *queue, enum metric reason)
{
    struct relay_ticket *ticket;
    while ((ticket = take_first(&queue->control, 0)) != NULL) {
        drop(queue, ticket, METRIC_RELAY_CONTROL_DROPPED);
    }
    while ((ticket = take_message(queue)) != NULL) {
        drop(queue, ticket, reason);
    }
}
