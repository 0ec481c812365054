/* SPDX-License-Identifier: MIT */
#include "node/store_settings.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "node/node.h"

static int64_t duration_ns(const struct options *options, const char *name)
{
    return (int64_t)(options_number(options, name) * NANOSECONDS_PER_MILLISECOND);
}

static enum status read_node(
        struct store_settings *out, const struct options *options, struct node_error *error)
{
    struct multiaddr_endpoint endpoint;
    const char *text = options_text(options, "storenode");
    if (text[0] == '\0') {
        return STATUS_OK;
    }
    if (multiaddr_parse(&out->node, span_of_text(text)) != STATUS_OK ||
            multiaddr_endpoint(&endpoint, &out->node) != STATUS_OK ||
            !multiaddr_peer(&out->node_peer, &out->node)) {
        snprintf(error->text, sizeof(error->text),
                "--storenode=%.200s: is no TCP or WebSocket address with /p2p", text);
        return STATUS_BAD_ARGUMENT;
    }
    out->has_node = true;
    return STATUS_OK;
}

static void read_sync(struct store_settings *out, const struct options *options)
{
    out->has_sync = options_flag(options, "store-sync");
    out->sync = (struct store_sync_options){
            .message_bytes_max = (size_t)options_number(options, "max-msg-size"),
            .range_ns = duration_ns(options, "store-sync-range"),
            .jitter_ns = duration_ns(options, "store-sync-relay-jitter"),
            .interval_ms = options_number(options, "store-sync-interval"),
            .payload_bytes_max = (size_t)options_number(options, "store-sync-payload-limit"),
            .rounds_max = (unsigned)options_number(options, "store-sync-rounds"),
            .session_ids_max = (size_t)options_number(options, "store-sync-ids"),
            .session_time_ms = options_number(options, "store-sync-session-time"),
            .peer_sessions_max = (size_t)options_number(options, "store-sync-peer-sessions"),
            .patience_ms = options_number(options, "store-sync-patience"),
            .under_way_max = (size_t)options_number(options, "store-sync-under-way"),
            .sessions_max = (size_t)options_number(options, "store-sync-sessions"),
            .has_preferred_peer = out->has_node,
            .preferred_peer = out->node_peer};
}

enum status store_settings_read(
        struct store_settings *out, const struct options *options, struct node_error *error)
{
    memset(out, 0, sizeof(*out));
    enum status status = read_node(out, options, error);
    if (status == STATUS_OK) {
        read_sync(out, options);
        out->has_resume = options_flag(options, "store-resume");
        out->resume_range_ns = duration_ns(options, "store-resume-range");
        out->resume_messages_max = options_number(options, "store-resume-limit");
        out->resume_overlap_ns = duration_ns(options, "timestamp-tolerance");
    }
    return status;
}
