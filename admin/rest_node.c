/* SPDX-License-Identifier: MIT */

/* /health, /info, /version: what the node is. */

#include <stdlib.h>
#include <string.h>

#include "admin/rest_private.h"

enum {
    ADDRESS_SIZE = 1024,
    ENR_SIZE = 512
};

static void get_health(void *context, struct http_request *request)
{
    const struct rest_services *services = &((struct rest_api *)context)->options.services;
    char *report = services->health(services->context);
    if (report == NULL) {
        http_respond_text(request, HTTP_INTERNAL_ERROR, "Health check failed");
        return;
    }
    http_respond_owned(request, HTTP_OK, rest_json_type, report, strlen(report));
}

static void get_info(void *context, struct http_request *request)
{
    const struct rest_services *services = &((struct rest_api *)context)->options.services;
    struct rest_text text = {0};
    char address[ADDRESS_SIZE];
    char enr[ENR_SIZE];
    rest_text_add(&text, "{\"listenAddresses\":[");
    for (size_t i = 0; services->address_at(services->context, i, address, sizeof(address)); i++) {
        rest_text_add(&text, i > 0 ? "," : "");
        rest_text_add_string(&text, span_of_text(address));
    }
    rest_text_add(&text, "]");
    if (services->enr(services->context, enr, sizeof(enr))) {
        rest_text_add(&text, ",\"enrUri\":");
        rest_text_add_string(&text, span_of_text(enr));
    }
    rest_text_add(&text, "}");
    rest_respond_json(request, HTTP_OK, &text);
}

static void get_version(void *context, struct http_request *request)
{
    http_respond_text(request, HTTP_OK, "%s", ((struct rest_api *)context)->options.version);
}

const struct http_route rest_node_routes[] = {
        {HTTP_GET, "/health", get_health},
        {HTTP_GET, "/info", get_info},
        {HTTP_GET, "/version", get_version},
        {HTTP_GET, "/debug/v1/info", get_info},
        {HTTP_GET, "/debug/v1/version", get_version},
};
const size_t rest_node_route_count = sizeof(rest_node_routes) / sizeof(rest_node_routes[0]);
