/* SPDX-License-Identifier: MIT */
#include "tools/flood/network.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "tools/flood/common.h"
#include "tools/flood/network_state.h"

enum {
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    TICK_MS = 1,
    PROBE_PERIOD_NS = 100 * NANOSECONDS_PER_MILLISECOND
};

const struct option_spec flood_network_options[] = {
        {"peer", OPTION_LIST, "", 0, 0, "Network",
                "multiaddr of a node to load; several are taken in turn"},
        {"receive-from", OPTION_LIST, "", 0, 0, "Network",
                "multiaddr of a node that receivers are connected to instead"},
        {"publishers", OPTION_NUMBER, "1", 1, 4096, "Network", "peers that publish"},
        {"receivers", OPTION_NUMBER, "1", 0, 4096, "Network",
                "peers that receive; those that do not fit into the mesh of a node (its "
                "--mesh-degree) get a message when they are told of it, once a second, and some "
                "never"},
        {"duration", OPTION_SECONDS, "0", 0, 86400000, "Network",
                "send for that long, however many messages; 0: until --messages are sent"},
        {"cluster-id", OPTION_NUMBER, "66", 0, 65535, "Network",
                "cluster of the shards 0 to --topics - 1"},
        {"max-loss", OPTION_TEXT, "0%", 0, 0, "Network", "deliveries that may be lost, in percent"},
        {"pid", OPTION_LIST, "", 0, 0, "Network",
                "process whose CPU and memory are read; found by --peer's port when not given"},
        {"ready-timeout", OPTION_SECONDS, "30s", 100, 3600000, "Network",
                "time until every publisher reaches every receiver"},
        {"drain", OPTION_SECONDS, "5s", 100, 3600000, "Network",
                "time without any arrival after which what is missing is lost"},
        {"progress", OPTION_BOOL, "false", 0, 0, "Network",
                "a line a second also where standard error is no terminal"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

static void enter(struct network *network, enum network_phase phase)
{
    network->phase = phase;
    network->phase_began_ns = clock_monotonic_ns();
}

static void begin_sending(struct network *network)
{
    network_read_nodes(network, true);
    network->began_ns = clock_monotonic_ns();
    network->wall_base_ns = clock_wall_ns();
    network->cpu_began_ns = network_process_cpu_ns();
    network->last_delivery_ns = network->began_ns;
    network->shown_ns = network->began_ns;
    enter(network, NETWORK_SENDING);
    network_pump(network);
}

static void fail_when_late(struct network *network, uint64_t now_ns, const char *what)
{
    uint64_t limit_ns =
            options_number(network->options, "ready-timeout") * NANOSECONDS_PER_MILLISECOND;
    if (now_ns - network->phase_began_ns > limit_ns) {
        fprintf(stderr, "flood: %s within the --ready-timeout\n", what);
        network->has_failed = true;
    }
}

static bool is_quiet(const struct network *network, uint64_t now_ns)
{
    uint64_t since = network->last_delivery_ns;
    uint64_t limit_ns = options_number(network->options, "drain") * NANOSECONDS_PER_MILLISECOND;
    since = network->phase == NETWORK_DRAINING && since < network->sent_ns ? network->sent_ns
                                                                           : since;
    return now_ns - since > limit_ns;
}

static void go_on_sending(struct network *network, uint64_t now_ns)
{
    if (network_in_flight(network) >= network->window && is_quiet(network, now_ns)) {
        arrivals_write_off(&network->arrivals, network->published);
        network->last_delivery_ns = now_ns;
    }
    network_pump(network);
    if (network_is_all_sent(network, now_ns)) {
        network->sent_ns = now_ns;
        enter(network, NETWORK_DRAINING);
    }
}

static bool has_everything(const struct network *network)
{
    return network->delivered >= network->published * network->receiver_count;
}

/* Without receivers nothing tells when the nodes have got it all but our own streams. */
static bool is_drained(const struct network *network, uint64_t now_ns)
{
    if (network->receiver_count > 0) {
        return has_everything(network) || is_quiet(network, now_ns);
    }
    for (size_t i = 0; i < network->publisher_count; i++) {
        const struct network_peer *publisher = &network->publishers[i];
        if (!publisher->has_ended && light_peer_queued(publisher->peer) > 0) {
            return is_quiet(network, now_ns);
        }
    }
    return true;
}

static void probe_when_due(struct network *network, uint64_t now_ns)
{
    if (now_ns >= network->next_probe_ns) {
        network->next_probe_ns = now_ns + PROBE_PERIOD_NS;
        network_send_probes(network);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct network *network = timer->data;
    uint64_t now = clock_monotonic_ns();
    switch (network->phase) {
    case NETWORK_CONNECTING:
        if (network_all_ready(network)) {
            enter(network, NETWORK_PROBING);
        } else {
            fail_when_late(network, now, "not every peer was connected and told of every topic");
        }
        break;
    case NETWORK_PROBING:
        if (network_all_probed(network)) {
            begin_sending(network);
        } else {
            probe_when_due(network, now);
            fail_when_late(network, now, "not every publisher reached every receiver");
        }
        break;
    case NETWORK_SENDING:
        go_on_sending(network, now);
        break;
    case NETWORK_DRAINING:
        if (is_drained(network, now)) {
            enter(network, NETWORK_OVER);
        }
        break;
    case NETWORK_OVER:
        break;
    }
    network_show_progress(network, network->phase == NETWORK_OVER);
}

static void on_turn_end(uv_check_t *handle)
{
    struct network *network = handle->data;
    network->turn_bytes = 0;
}

static void on_signal(uv_signal_t *handle, int signal_number)
{
    (void)signal_number;
    struct network *network = handle->data;
    network->is_interrupted = true;
    network->has_failed = network->has_failed || network->phase < NETWORK_SENDING;
}

static void start_clocks(struct network *network)
{
    static const int numbers[2] = {SIGINT, SIGTERM};
    uv_loop_t *uv = io_loop_uv(network->loop);
    uv_timer_init(uv, &network->timer);
    network->timer.data = network;
    uv_timer_start(&network->timer, on_tick, 0, TICK_MS);
    uv_check_init(uv, &network->turn_end);
    network->turn_end.data = network;
    uv_check_start(&network->turn_end, on_turn_end);
    for (size_t i = 0; i < 2; i++) {
        uv_signal_init(uv, &network->signals[i]);
        network->signals[i].data = network;
        uv_signal_start(&network->signals[i], on_signal, numbers[i]);
    }
}

static void stop_clocks(struct network *network)
{
    uv_close((uv_handle_t *)&network->timer, NULL);
    uv_close((uv_handle_t *)&network->turn_end, NULL);
    uv_close((uv_handle_t *)&network->signals[0], NULL);
    uv_close((uv_handle_t *)&network->signals[1], NULL);
}

static bool read_settings(struct network *network)
{
    const struct options *options = network->options;
    bool is_timed = options_number(options, "duration") > 0;
    bool is_open = options_flag(options, "open-loop") ||
                   (options_number(options, "rate") > 0 && !options_is_set(options, "window"));
    if (!flood_make_generator(&network->generator, options, options_number(options, "cluster-id"),
                &network->duplicate_percent)) {
        return false;
    }
    if (options_number(options, "topics") > LIGHT_PEER_TOPICS_MAX) {
        fprintf(stderr, "flood: at most %d topics over the network\n", LIGHT_PEER_TOPICS_MAX);
        return false;
    }
    for (uint32_t i = 0; i < options_number(options, "topics"); i++) {
        network->topics[i] = generator_pubsub_topic_at(network->generator, i);
    }
    network->publisher_count = (size_t)options_number(options, "publishers");
    network->receiver_count = (size_t)options_number(options, "receivers");
    network->messages_max = is_timed ? UINT64_MAX : options_number(options, "messages");
    network->duration_ns =
            is_timed ? options_number(options, "duration") * NANOSECONDS_PER_MILLISECOND
                     : UINT64_MAX;
    network->window = is_open || network->receiver_count == 0 ? UINT64_MAX
                                                              : options_number(options, "window");
    network->rate = options_number(options, "rate");
    network->random = options_number(options, "seed") * 2 + 1;
    return getrandom(&network->run, sizeof(network->run), 0) == sizeof(network->run);
}

static void run(struct network *network)
{
    start_clocks(network);
    if (!network_make_peers(network)) {
        network->has_failed = true;
    }
    network_find_nodes(network);
    enter(network, NETWORK_CONNECTING);
    while (network->phase != NETWORK_OVER && !network->has_failed) {
        io_loop_run_once(network->loop);
    }
    network_read_nodes(network, false);
}

int flood_network(const struct options *options)
{
    static struct network network;
    network.options = options;
    if (!read_settings(&network)) {
        generator_destroy(&network.generator);
        return EXIT_USAGE;
    }
    network.run >>= NETWORK_RUN_SHIFT;
    signal(SIGPIPE, SIG_IGN);
    if (io_loop_create(&network.loop, 0) != STATUS_OK) {
        return EXIT_FAILED;
    }
    run(&network);
    int exit_status = EXIT_FAILED;
    if (!network.has_failed && network_report(&network)) {
        exit_status = 0;
    }
    stop_clocks(&network);
    network_end_peers(&network);
    io_loop_destroy(&network.loop);
    generator_destroy(&network.generator);
    return exit_status;
}
