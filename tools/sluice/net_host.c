/* SPDX-License-Identifier: MIT */
#include "tools/sluice/net_host.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "net/protocols/echo.h"

struct io_thread {
    struct net_host *host;
    struct io_loop *loop;
    pthread_t thread;
};

struct net_host {
    struct metrics *metrics;
    struct net_switch *net_switch;
    struct identify *identify;
    struct io_thread threads[NET_HOST_THREADS_MAX];
    unsigned thread_count;
    unsigned started_count;
    atomic_bool is_over;
};

static void *run_thread(void *argument)
{
    struct io_thread *thread = argument;
    struct net_host *host = thread->host;
    enum status status = metrics_attach_thread(host->metrics);
    /* relaxed: nothing is read on the strength of it */
    while (!atomic_load_explicit(&host->is_over, memory_order_relaxed)) {
        io_loop_run_once(thread->loop);
    }
    if (status == STATUS_OK) {
        metrics_detach_thread();
    }
    return NULL;
}

static enum status create_loops(struct net_host *host, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        enum status status = io_loop_create(&host->threads[i].loop, i);
        if (status != STATUS_OK) {
            return status;
        }
        host->threads[i].host = host;
        host->thread_count = i + 1;
    }
    return STATUS_OK;
}

static enum status create_switch(struct net_host *host, const struct net_host_options *options)
{
    struct io_loop *loops[NET_HOST_THREADS_MAX];
    struct switch_options switch_options = options->limits;
    for (unsigned i = 0; i < host->thread_count; i++) {
        loops[i] = host->threads[i].loop;
    }
    switch_options.identity = options->identity;
    switch_options.loops = loops;
    switch_options.loop_count = host->thread_count;
    enum status status = switch_create(&host->net_switch, &switch_options);
    if (status != STATUS_OK) {
        return status;
    }
    status = ping_register(host->net_switch);
    if (status != STATUS_OK) {
        return status;
    }
    struct identify_options identify_options = {
            .net_switch = host->net_switch,
            .agent = options->agent,
            .identified = options->identified,
            .context = options->context,
    };
    return identify_create(&host->identify, &identify_options);
}

enum status net_host_create(struct net_host **out, const struct net_host_options *options)
{
    assert(options->io_threads <= NET_HOST_THREADS_MAX);
    struct net_host *host = memory_allocate_zeroed(sizeof(*host));
    if (host == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = metrics_create(&host->metrics);
    if (status == STATUS_OK) {
        status = create_loops(host, options->io_threads == 0 ? 1 : options->io_threads);
    }
    if (status == STATUS_OK) {
        status = create_switch(host, options);
    }
    if (status != STATUS_OK) {
        net_host_destroy(&host);
        return status;
    }
    *out = host;
    return STATUS_OK;
}

struct net_switch *net_host_switch(const struct net_host *host)
{
    return host->net_switch;
}

struct identify *net_host_identify(const struct net_host *host)
{
    return host->identify;
}

enum status net_host_listen(struct net_host *host, const char *address)
{
    struct multiaddr parsed;
    enum status status = multiaddr_parse(&parsed, span_of_text(address));
    return status == STATUS_OK ? switch_listen(host->net_switch, &parsed) : status;
}

enum status net_host_start(struct net_host *host)
{
    for (unsigned i = 0; i < host->thread_count; i++) {
        struct io_thread *thread = &host->threads[i];
        if (pthread_create(&thread->thread, NULL, run_thread, thread) != 0) {
            return STATUS_SYSTEM;
        }
        host->started_count++;
    }
    return STATUS_OK;
}

uint64_t net_host_metric(const struct net_host *host, enum metric metric)
{
    return metrics_sum(host->metrics, metric);
}

/* The threads that run go on until the switch has stopped; loops without one are run here. */
static void stop_switch(struct net_host *host)
{
    if (host->net_switch != NULL) {
        switch_stop(host->net_switch);
    }
    while (host->net_switch != NULL && !switch_is_stopped(host->net_switch)) {
        for (unsigned i = host->started_count; i < host->thread_count; i++) {
            io_loop_turn(host->threads[i].loop);
        }
        uv_sleep(1);
    }
    /* relaxed: the wake that follows orders it */
    atomic_store_explicit(&host->is_over, true, memory_order_relaxed);
    for (unsigned i = 0; i < host->started_count; i++) {
        io_loop_wake(host->threads[i].loop);
        pthread_join(host->threads[i].thread, NULL);
    }
}

void net_host_destroy(struct net_host **host_pointer)
{
    struct net_host *host = *host_pointer;
    if (host == NULL) {
        return;
    }
    stop_switch(host);
    switch_destroy(&host->net_switch);
    identify_destroy(&host->identify);
    for (unsigned i = 0; i < host->thread_count; i++) {
        io_loop_destroy(&host->threads[i].loop);
    }
    metrics_destroy(&host->metrics);
    memory_free(host);
    *host_pointer = NULL;
}
