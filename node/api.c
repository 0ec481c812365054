/* SPDX-License-Identifier: MIT */

/* The public interface: options, and a node from create to destroy. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/config_sources.h"
#include "admin/reference_flags.h"
#include "base/log.h"
#include "node/api_private.h"

_Thread_local const struct sluice_node *api_calling_node;

const char *sluice_result_text(enum sluice_result result)
{
    static const char *const texts[] = {"ok", "bad argument", "not found", "out of memory",
            "limit reached", "not running", "envelopes are still kept", "not from a callback",
            "not supported", "failed", "timed out"};
    size_t i = (size_t)result;
    return i < sizeof(texts) / sizeof(texts[0]) ? texts[i] : "unknown";
}

enum sluice_result api_result(enum status status)
{
    static const struct {
        enum status status;
        enum sluice_result result;
    } rows[] = {{STATUS_OK, SLUICE_OK}, {STATUS_NO_MEMORY, SLUICE_NO_MEMORY},
            {STATUS_BAD_ARGUMENT, SLUICE_BAD_ARGUMENT}, {STATUS_BAD_TOPIC, SLUICE_BAD_ARGUMENT},
            {STATUS_BAD_ADDRESS, SLUICE_BAD_ARGUMENT}, {STATUS_BAD_KEY, SLUICE_BAD_ARGUMENT},
            {STATUS_BAD_FIELD, SLUICE_BAD_ARGUMENT}, {STATUS_TOO_LARGE, SLUICE_BAD_ARGUMENT},
            {STATUS_NOT_FOUND, SLUICE_NOT_FOUND}, {STATUS_LIMIT_REACHED, SLUICE_LIMIT_REACHED},
            {STATUS_UNSUPPORTED, SLUICE_UNSUPPORTED}, {STATUS_BAD_QUERY, SLUICE_BAD_ARGUMENT},
            {STATUS_BAD_CURSOR, SLUICE_BAD_ARGUMENT}, {STATUS_TIMED_OUT, SLUICE_TIMED_OUT}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].status == status) {
            return rows[i].result;
        }
    }
    return SLUICE_FAILED;
}

enum sluice_result api_fail(struct sluice_error *error, enum sluice_result result, const char *text)
{
    if (error != NULL) {
        snprintf(error->text, sizeof(error->text), "%s", text);
    }
    return result;
}

enum sluice_result sluice_options_create(struct sluice_options **out)
{
    const struct option_spec *const tables[] = {options_of_node, reference_flags_table, NULL};
    struct sluice_options *options = calloc(1, sizeof(*options));
    if (options == NULL) {
        return SLUICE_NO_MEMORY;
    }
    if (options_create(&options->options, tables) != STATUS_OK) {
        free(options);
        return SLUICE_NO_MEMORY;
    }
    *out = options;
    return SLUICE_OK;
}

void sluice_options_destroy(struct sluice_options **options)
{
    if (*options == NULL) {
        return;
    }
    options_destroy(&(*options)->options);
    free(*options);
    *options = NULL;
}

enum sluice_result sluice_options_set(struct sluice_options *options, const char *name,
        const char *value, struct sluice_error *error)
{
    struct options_error why = {.text = ""};
    enum status status = options_set(options->options, name, value, &why);
    return status == STATUS_OK ? SLUICE_OK : api_fail(error, api_result(status), why.text);
}

/* The first fault goes to the caller, all of them and the notes to the log. */
static void take_report(void *context, enum config_grade grade, const char *text)
{
    struct sluice_error *error = context;
    if (grade == CONFIG_ERROR && error->text[0] == '\0') {
        (void)api_fail(error, SLUICE_BAD_ARGUMENT, text);
    }
    log_write(grade == CONFIG_ERROR ? LOG_ERROR : LOG_NOTICE, "config", "%s", text);
}

static enum sluice_result settle_options(struct options *options, struct sluice_error *error)
{
    struct sluice_error first = {.text = ""};
    struct config_reporter reporter = {.line = take_report, .context = &first};
    struct config_sources sources = {.argc = 0};
    enum status status = config_load(options, &sources, &reporter);
    return status == STATUS_OK ? SLUICE_OK : api_fail(error, api_result(status), first.text);
}

static void read_options(struct sluice_node *node, const struct options *options)
{
    node->held_max = (size_t)options_number(options, "event-hold-limit");
    node->publishes_max = (size_t)options_number(options, "publish-limit");
    node->calls_max = (size_t)options_number(options, "call-limit");
    node->cluster = (uint16_t)options_number(options, "cluster-id");
    node->shard_count = (uint16_t)options_number(options, "num-shards-in-network");
}

static struct sluice_node *allocate(void)
{
    size_t size = (sizeof(struct sluice_node) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct sluice_node *node = aligned_alloc(CACHE_LINE, size);
    if (node == NULL) {
        return NULL;
    }
    memset(node, 0, size);
    if (pthread_mutex_init(&node->control, NULL) != 0) {
        free(node);
        return NULL;
    }
    parking_init(&node->progress);
    atomic_init(&node->calling, NULL);
    atomic_init(&node->inside, 0);
    atomic_init(&node->state, NODE_CREATED);
    atomic_init(&node->publishes, 0);
    atomic_init(&node->held_bytes, 0);
    atomic_init(&node->calls, 0);
    atomic_init(&node->peer_events, 0);
    atomic_init(&node->pushed_wanted, 0);
    atomic_init(&node->is_ending, false);
    for (size_t i = 0; i < API_SUBSCRIPTIONS_MAX; i++) {
        atomic_init(&node->subscriptions[i].state, SUBSCRIPTION_FREE);
        node->subscriptions[i].node = node;
    }
    return node;
}

static void release(struct sluice_node *node)
{
    api_free_subscriptions(node);
    pthread_mutex_destroy(&node->control);
    free(node);
}

enum sluice_result sluice_node_create(
        struct sluice_node **out, struct sluice_options *options, struct sluice_error *error)
{
    enum sluice_result result = settle_options(options->options, error);
    if (result != SLUICE_OK) {
        return result;
    }
    struct sluice_node *node = allocate();
    if (node == NULL) {
        return api_fail(error, SLUICE_NO_MEMORY, "out of memory");
    }
    struct node_hooks hooks = {.event = api_take_event,
            .event_context = node,
            .verdict = api_take_verdict,
            .verdict_context = node,
            .pushed = api_take_pushed,
            .pushed_context = node,
            .asks_archive = true,
            .is_watched = true,
            .has_network = options_flag(options->options, "network")};
    struct node_error why = {.text = ""};
    read_options(node, options->options);
    enum status status = node_create(&node->node, options->options, &hooks, &why);
    if (status != STATUS_OK) {
        release(node);
        return api_fail(error, api_result(status), why.text);
    }
    node->options = options;
    *out = node;
    return SLUICE_OK;
}

/*
 * The node's threads, and those that they start, take no signal that the host's should; a closed
 * socket is an error of write. What a thread's own fault raises still reaches it.
 */
static enum status start_without_signals(struct sluice_node *node, struct node_error *why)
{
    static const int own_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t blocked;
    sigset_t before;
    (void)sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(own_faults) / sizeof(own_faults[0]); i++) {
        (void)sigdelset(&blocked, own_faults[i]);
    }
    if (pthread_sigmask(SIG_BLOCK, &blocked, &before) != 0) {
        return STATUS_SYSTEM;
    }
    enum status status = node_start(node->node, why);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

enum sluice_result sluice_node_start(struct sluice_node *node, struct sluice_error *error)
{
    struct node_error why = {.text = ""};
    if (atomic_load_explicit(&node->state, memory_order_seq_cst) != NODE_CREATED) {
        return api_fail(error, SLUICE_BAD_ARGUMENT, "a node starts once");
    }
    enum status status = start_without_signals(node, &why);
    if (status != STATUS_OK) {
        atomic_store_explicit(&node->state, NODE_STOPPED, memory_order_seq_cst);
        return api_fail(error, api_result(status), why.text);
    }
    /* Before others may subscribe: who is faster than this would be told of twice, no more. */
    atomic_store_explicit(&node->state, NODE_RUNNING, memory_order_seq_cst);
    enum sluice_result result = api_join_subscribed(node);
    if (result != SLUICE_OK) {
        (void)sluice_node_stop(node);
        return api_fail(error, result, "the subscribed topics cannot be joined");
    }
    return SLUICE_OK;
}

bool api_enter(struct sluice_node *node)
{
    atomic_fetch_add_explicit(&node->inside, 1, memory_order_seq_cst);              /* GATE */
    if (atomic_load_explicit(&node->state, memory_order_seq_cst) == NODE_RUNNING) { /* GATE */
        return true;
    }
    api_leave(node);
    return false;
}

void api_leave(struct sluice_node *node)
{
    atomic_fetch_sub_explicit(&node->inside, 1, memory_order_seq_cst); /* GATE */
    if (atomic_load_explicit(&node->state, memory_order_seq_cst) != NODE_RUNNING) {
        parking_wake(&node->progress);
    }
}

void api_wait(struct sluice_node *node,
        bool (*is_over)(const struct sluice_node *node, void *context), void *context)
{
    while (!is_over(node, context)) {
        uint32_t ticket = parking_prepare(&node->progress);
        if (is_over(node, context)) {
            parking_cancel(&node->progress, ticket);
            return;
        }
        parking_wait(&node->progress, ticket, UINT64_MAX);
    }
}

static bool is_left(const struct sluice_node *node, void *context)
{
    (void)context;
    return atomic_load_explicit(&node->inside, memory_order_seq_cst) == 0; /* GATE */
}

enum sluice_result sluice_node_stop(struct sluice_node *node)
{
    int running = NODE_RUNNING;
    if (api_calling_node == node) {
        return SLUICE_WRONG_THREAD;
    }
    if (!atomic_compare_exchange_strong_explicit(&node->state, &running, NODE_STOPPED,
                memory_order_seq_cst, memory_order_seq_cst)) { /* GATE */
        return SLUICE_OK;
    }
    /* relaxed: queries look at it now and then */
    atomic_store_explicit(&node->is_ending, true, memory_order_relaxed);
    api_wait(node, is_left, NULL);
    node_stop(node->node);
    return SLUICE_OK;
}

enum sluice_result sluice_node_destroy(struct sluice_node **node_pointer)
{
    struct sluice_node *node = *node_pointer;
    if (node == NULL) {
        return SLUICE_OK;
    }
    enum sluice_result result = sluice_node_stop(node);
    if (result != SLUICE_OK) {
        return result;
    }
    /* acquire: pairs with the release of the last unref, which touches the node no more */
    if (atomic_load_explicit(&node->held_bytes, memory_order_acquire) != 0) {
        return SLUICE_HELD;
    }
    node_destroy(&node->node);
    sluice_options_destroy(&node->options);
    release(node);
    *node_pointer = NULL;
    return SLUICE_OK;
}

static sluice_log_sink *host_sink;

static void pass_line(void *context, enum log_level level, const char *module, const char *line)
{
    host_sink(context, (enum sluice_log_level)level, module, line);
}

void sluice_log_set_sink(sluice_log_sink *sink, void *context, enum sluice_log_level level)
{
    log_set_sink(NULL, NULL);
    host_sink = sink;
    log_set_level((enum log_level)level);
    if (sink != NULL) {
        log_set_sink(pass_line, context);
    }
}
