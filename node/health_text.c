/* SPDX-License-Identifier: MIT */

/* Health as JSON: the reference's report, and which part of the node is in trouble. */

#include "admin/rest_text.h"
#include "node/health.h"

static void add_pair(struct rest_text *text, const char *name, const char *value)
{
    rest_text_add_string(text, span_of_text(name));
    rest_text_add(text, ":");
    rest_text_add_string(text, span_of_text(value));
}

static void add_protocols(struct rest_text *text, const struct node_health *health)
{
    rest_text_add(text, ",\"protocolsHealth\":[");
    for (size_t i = 0; i < health->protocol_count; i++) {
        const struct health_protocol *protocol = &health->protocols[i];
        rest_text_add(text, i > 0 ? ",{" : "{");
        add_pair(text, protocol->name, protocol->health);
        if (protocol->why != NULL) {
            rest_text_add(text, ",");
            add_pair(text, "desc", protocol->why);
        }
        rest_text_add(text, "}");
    }
    rest_text_add(text, "]");
}

static void add_parts(struct rest_text *text, const struct node_health *health)
{
    rest_text_add(text, ",\"degraded\":[");
    bool is_first = true;
    for (size_t i = 0; i < HEALTH_PARTS; i++) {
        const struct health_part_state *part = &health->parts[i];
        if (!part->is_degraded) {
            continue;
        }
        rest_text_add(text, is_first ? "{" : ",{");
        is_first = false;
        add_pair(text, "part", health_part_name((enum health_part)i));
        rest_text_add(text, ",");
        add_pair(text, "why", part->why);
        rest_text_add(text, ",\"since\":");
        rest_text_add_number(text, part->since_ns);
        rest_text_add(text, "}");
    }
    rest_text_add(text, "]");
}

char *node_health_text(const struct node *node)
{
    struct node_health health;
    struct rest_text text = {0};
    size_t length;
    node_health(node, &health);
    rest_text_add(&text, "{");
    add_pair(&text, "nodeHealth", health.node);
    rest_text_add(&text, ",");
    add_pair(&text, "connectionStatus", health.connection);
    add_protocols(&text, &health);
    add_parts(&text, &health);
    rest_text_add(&text, "}");
    return rest_text_take(&text, &length);
}
