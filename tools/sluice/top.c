/* SPDX-License-Identifier: MIT */

/* sluice top ADDRESS: the figures of a node's live page in a terminal. */

#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/sluice/command_options.h"
#include "tools/sluice/commands.h"
#include "tools/sluice/http_get.h"

static const char usage[] = "top ADDRESS [OPTIONS]";

enum {
    TIMEOUT_S = 5,
    BAR_CELLS = 20,
    LOSSES_SHOWN = 8,
    NAME_SIZE = 64
};

static const struct option_spec specs[] = {
        {"once", OPTION_BOOL, "false", 0, 0, "Top", "print the figures once and end"},
        {"interval", OPTION_SECONDS, "1s", 1000, 3600000, "Top",
                "time from one look to the next (a node looks at itself once a second)"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

static double number_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text == NULL ? "" : text;
}

static const char *bytes_text(char out[32], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (bytes >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1024;
        unit++;
    }
    snprintf(out, 32, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    return out;
}

static const char *bar_text(char out[BAR_CELLS + 1], double share)
{
    int filled = (int)(share * BAR_CELLS + 0.5);
    for (int i = 0; i < BAR_CELLS; i++) {
        out[i] = i < filled ? '#' : '.';
    }
    out[BAR_CELLS] = '\0';
    return out;
}

static void print_head(const json_t *figures)
{
    const json_t *part;
    size_t i;
    printf("sluice %s  %s, %s  up %.0f s  %s\n", text_of(figures, "version"),
            json_is_true(json_object_get(figures, "degraded")) ? "DEGRADED"
                                                               : text_of(figures, "node"),
            text_of(figures, "connection"), number_of(figures, "uptime") / 1000,
            text_of(figures, "peer"));
    json_array_foreach(json_object_get(figures, "health"), i, part)
    {
        if (json_is_true(json_object_get(part, "degraded"))) {
            double age_ms = number_of(figures, "time") - number_of(part, "since");
            printf("  %s: %s, for %.0f s\n", text_of(part, "part"), text_of(part, "why"),
                    age_ms / 1000);
        }
    }
}

static void print_messages(const json_t *figures)
{
    const json_t *messages = json_object_get(figures, "messages");
    const json_t *work = json_object_get(figures, "work");
    const json_t *offset = json_object_get(figures, "offset");
    char in[32];
    char out[32];
    double accepted = number_of(messages, "accepted");
    double each = accepted > 0 ? 1 / accepted : 0;
    printf("\nmessages  %.0f/s new, %.0f/s copies, %.0f in all   network %s/s in, %s/s out   clock "
           "%+.0f ms (%.0f)\n",
            number_of(messages, "acceptedRate"), number_of(messages, "copyRate"), accepted,
            bytes_text(in, number_of(messages, "bytesInRate")),
            bytes_text(out, number_of(messages, "bytesOutRate")), number_of(offset, "median"),
            number_of(offset, "samples"));
    printf("work      each new one: %.3f decodes, %.3f message hashes, %.3f ids, %.3f payload "
           "copies\n",
            number_of(work, "decodes") * each, number_of(work, "messageHashes") * each,
            number_of(work, "idHashes") * each, number_of(work, "payloadCopies") * each);
}

static void print_queue(const json_t *queue)
{
    double capacity = number_of(queue, "capacity");
    printf("  %s %.0f", text_of(queue, "kind"), number_of(queue, "depth"));
    if (capacity > 0) {
        printf("/%.0f", capacity);
    }
    printf(" peak %.0f", number_of(queue, "highWater"));
}

/* Whether it feeds that thread, the place-th of its role. Requests and what peers tell are left out. */
static bool is_queue_of(const json_t *queue, const char *role, double place)
{
    bool is_decode = strcmp(role, "decode") == 0;
    bool carries_messages =
            number_of(queue, "capacity") > 0 || strcmp(text_of(queue, "from"), "messages") == 0;
    return carries_messages && strcmp(text_of(queue, "to"), role) == 0 &&
           number_of(queue, is_decode ? "lane" : "taker") == place;
}

static void print_queues(const json_t *figures, const json_t *thread)
{
    const char *dash = strrchr(text_of(thread, "name"), '-');
    double place = dash != NULL ? strtod(dash + 1, NULL) : 0;
    const json_t *queue;
    size_t i;
    json_array_foreach(json_object_get(figures, "queues"), i, queue)
    {
        if (is_queue_of(queue, text_of(thread, "role"), place)) {
            print_queue(queue);
        }
    }
}

static void print_threads(const json_t *figures)
{
    const json_t *thread;
    size_t i;
    printf("\nthread      cores     busy\n");
    json_array_foreach(json_object_get(figures, "threads"), i, thread)
    {
        char bar[BAR_CELLS + 1];
        double busy = number_of(thread, "busy");
        printf("%-11s %s%-8s %s %3.0f %%", text_of(thread, "name"),
                json_is_true(json_object_get(thread, "pinned")) ? "=" : " ",
                text_of(thread, "cpus"), bar_text(bar, busy), busy * 100);
        print_queues(figures, thread);
        printf("\n");
    }
}

static void print_topics(const json_t *figures)
{
    const json_t *peers = json_object_get(figures, "peers");
    const json_t *subscribers = json_object_get(figures, "subscribers");
    const json_t *topic;
    size_t i;
    printf("\npeers     %.0f connections, %.0f speak relay, %.0f filter subscribers\n",
            number_of(peers, "connections"), number_of(peers, "relay"),
            number_of(subscribers, "count"));
    json_array_foreach(json_object_get(figures, "topics"), i, topic)
    {
        if (!json_is_true(json_object_get(topic, "subscribed")) &&
                number_of(topic, "messages") == 0) {
            continue; /* a shard that the node takes no part in */
        }
        printf("  %-40s %4.0f peers, %3.0f in the mesh, %8.0f/s, %.0f in all\n",
                text_of(topic, "name"), number_of(topic, "peers"), number_of(topic, "mesh"),
                number_of(topic, "rate"), number_of(topic, "messages"));
    }
}

static void print_archive(const json_t *figures)
{
    const json_t *archive = json_object_get(figures, "archive");
    const json_t *memory = json_object_get(figures, "memory");
    char size[32];
    char now[32];
    char limit[32];
    if (json_is_object(archive)) {
        printf("\narchive   %s, %s: %.0f messages, %s, lag %.0f, spilled %.0f, %.0f/s\n",
                text_of(archive, "engine"), text_of(archive, "state"),
                number_of(archive, "messages"), bytes_text(size, number_of(archive, "bytes")),
                number_of(archive, "lag"), number_of(archive, "spilled"),
                number_of(archive, "rate"));
    }
    printf("memory    %s of %s", bytes_text(now, number_of(memory, "budget")),
            bytes_text(limit, number_of(memory, "budgetLimit")));
    printf(", for slow peers %s of %s\n", bytes_text(now, number_of(memory, "outbound")),
            bytes_text(limit, number_of(memory, "outboundLimit")));
}

static void print_losses(const json_t *figures)
{
    const json_t *list = json_object_get(figures, "losses");
    const json_t *loss;
    size_t i;
    json_array_foreach(list, i, loss)
    {
        if (i == 0) {
            printf("\nrefused and dropped\n");
        }
        if (i < LOSSES_SHOWN) {
            char name[NAME_SIZE];
            snprintf(name, sizeof(name), "%s: %s", text_of(loss, "stage"), text_of(loss, "reason"));
            printf("  %-40s %-8s %8.0f/s, %.0f in all\n", name, text_of(loss, "outcome"),
                    number_of(loss, "rate"), number_of(loss, "count"));
        }
    }
    if (json_array_size(list) > LOSSES_SHOWN) {
        printf("  and %zu more\n", json_array_size(list) - LOSSES_SHOWN);
    }
}

/* False, and it is said why: there is nothing to be shown. */
static bool show(const struct http_place *place, bool is_terminal)
{
    struct http_answer answer;
    const char *fault = http_get(&answer, place, "/live/v1/figures", TIMEOUT_S);
    json_t *figures = NULL;
    if (fault == NULL && answer.status == 200) {
        figures = json_loadb(answer.body, answer.length, 0, NULL);
        fault = figures == NULL ? "the answer is no JSON" : NULL;
    } else if (fault == NULL) {
        fault = answer.status == 404 ? "no live figures there: is it the metrics or REST server of "
                                       "a sluice node?"
                                     : "it answers with an error";
    }
    free(answer.body);
    if (fault != NULL) {
        fprintf(stderr, "sluice top: %s port %s: %s\n", place->host, place->port, fault);
        return false;
    }
    printf("%s", is_terminal ? "\033[H\033[2J" : "");
    print_head(figures);
    print_messages(figures);
    print_threads(figures);
    print_topics(figures);
    print_archive(figures);
    print_losses(figures);
    printf("%s", is_terminal ? "" : "\n");
    fflush(stdout);
    json_decref(figures);
    return true;
}

static int run(const struct options *options)
{
    struct http_place place;
    uint64_t interval_ms = options_number(options, "interval");
    struct timespec pause = {.tv_sec = (time_t)(interval_ms / 1000),
            .tv_nsec = (long)(interval_ms % 1000) * 1000000};
    bool is_once = options_flag(options, "once");
    if (options_positional_count(options) != 1) {
        fprintf(stderr, "usage: sluice %s\n", usage);
        return 2;
    }
    const char *address = options_positional(options, 0);
    if (!http_place_parse(&place, address, "8008")) {
        fprintf(stderr, "sluice top: %s is neither http://HOST:PORT nor a multiaddr\n", address);
        return 2;
    }
    while (show(&place, isatty(STDOUT_FILENO) == 1 && !is_once)) {
        if (is_once) {
            return 0;
        }
        nanosleep(&pause, NULL);
    }
    return 1;
}

int command_top(int argc, char **argv)
{
    int exit_status;
    struct options *options = command_parse(usage, specs, argc, argv, &exit_status);
    if (options == NULL) {
        return exit_status;
    }
    exit_status = run(options);
    options_destroy(&options);
    return exit_status;
}
