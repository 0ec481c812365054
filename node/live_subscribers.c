/* SPDX-License-Identifier: MIT */
#include "node/live_subscribers.h"

#include "net/protocols/filter.h"

void live_subscribers_init(struct live_subscribers *subscribers)
{
    (void)pthread_mutex_init(&subscribers->lock, NULL); /* it does not fail (glibc) */
    for (size_t i = 0; i < FILTER_THREADS_MAX; i++) {
        subscribers->surveys[i].owner = subscribers;
        atomic_init(&subscribers->surveys[i].is_asked, false);
    }
}

void live_subscribers_fini(struct live_subscribers *subscribers)
{
    pthread_mutex_destroy(&subscribers->lock);
}

static bool is_before(const struct live_subscriber *a, const struct live_subscriber *b)
{
    if (a->waiting_bytes != b->waiting_bytes) {
        return a->waiting_bytes > b->waiting_bytes;
    }
    return a->dropped > b->dropped;
}

static void add_row(struct live_subscriber_list *list, const struct live_subscriber *row)
{
    size_t place = list->count;
    while (place > 0 && is_before(row, &list->rows[place - 1])) {
        place--;
    }
    if (place == LIVE_SUBSCRIBERS_SHOWN) {
        return;
    }
    list->count += list->count < LIVE_SUBSCRIBERS_SHOWN;
    for (size_t i = list->count - 1; i > place; i--) {
        list->rows[i] = list->rows[i - 1];
    }
    list->rows[place] = *row;
}

static void add_subscriber(struct live_subscriber_list *list, const struct subscription_view *view)
{
    struct filter_subscriber_state state;
    if (view->entry.context == NULL) {
        return; /* in this process, no peer */
    }
    filter_subscriber_read(view->entry.context, &state);
    struct live_subscriber row = {.peer = state.peer,
            .is_connected = state.connection != 0,
            .waiting = state.queue_messages,
            .waiting_bytes = state.queue_bytes,
            .sent = state.sent,
            .dropped = state.dropped};
    add_row(list, &row);
}

/* On a filter thread. */
static void look(struct filter_request *request, struct subscriptions *subscriptions)
{
    struct live_survey *survey = (struct live_survey *)request;
    struct live_subscribers *owner = survey->owner;
    struct subscription_view view;
    bool is_found = true;
    for (size_t i = 0; i < LIVE_SUBSCRIBERS_STEP && is_found; i++) {
        is_found = subscriptions_next(subscriptions, survey->next_id, &view);
        if (is_found) {
            add_subscriber(&survey->now, &view);
            is_found = view.entry.id != UINT64_MAX;
            survey->next_id = view.entry.id + 1;
        }
    }
    if (!is_found) { /* it has seen all of them */
        pthread_mutex_lock(&owner->lock);
        owner->lists[survey - owner->surveys] = survey->now;
        pthread_mutex_unlock(&owner->lock);
        survey->now.count = 0;
        survey->next_id = 0;
    }
    atomic_store_explicit(&survey->is_asked, false, memory_order_release); /* ASKED */
}

void live_subscribers_ask(
        struct live_subscribers *subscribers, const struct filter_link *filter_link)
{
    for (size_t i = 0; i < filter_link->count; i++) {
        struct live_survey *survey = &subscribers->surveys[i];
        if (atomic_load_explicit(&survey->is_asked, memory_order_acquire)) { /* ASKED */
            continue;
        }
        atomic_store_explicit(&survey->is_asked, true, memory_order_release); /* ASKED */
        survey->request.carry_out = look;
        filter_link_post(filter_link, i, &survey->request);
    }
}

static json_t *json_of_row(const struct live_subscriber *row)
{
    char peer[PEER_ID_TEXT_SIZE];
    return json_pack("{s:s, s:b, s:I, s:I, s:I, s:I}", "peer", peer_id_print(peer, &row->peer),
            "connected", (int)row->is_connected, "waiting", (json_int_t)row->waiting,
            "waitingBytes", (json_int_t)row->waiting_bytes, "sent", (json_int_t)row->sent,
            "dropped", (json_int_t)row->dropped);
}

json_t *live_subscribers_json(struct live_subscribers *subscribers)
{
    struct live_subscriber_list all = {.count = 0};
    json_t *list = json_array();
    pthread_mutex_lock(&subscribers->lock);
    for (size_t i = 0; i < FILTER_THREADS_MAX; i++) {
        for (size_t k = 0; k < subscribers->lists[i].count; k++) {
            add_row(&all, &subscribers->lists[i].rows[k]);
        }
    }
    pthread_mutex_unlock(&subscribers->lock);
    for (size_t i = 0; i < all.count; i++) {
        json_array_append_new(list, json_of_row(&all.rows[i]));
    }
    return list;
}
