/* SPDX-License-Identifier: MIT */
#pragma once

/* The inside of the REST API, for admin/rest_*.c only. */

#include "admin/http_request.h"
#include "admin/rest_api.h"
#include "admin/rest_body.h"
#include "admin/rest_cache.h"
#include "admin/rest_text.h"

struct rest_api {
    struct rest_api_options options;
    struct rest_cache *relay_cache;
    struct rest_cache *filter_cache;
};

extern const char rest_json_type[]; /* "application/json" */

/* What waits for the client, taken from the cache; HEAD takes nothing. STATUS_NOT_FOUND: no such topic. */
MUST_USE enum status rest_take_cached(struct rest_cache *cache, const struct http_request *request,
        enum rest_topic_kind kind, const char *topic, struct rest_cached **out);

/* Tables of routes; context: the API. */
extern const struct http_route rest_node_routes[];
extern const size_t rest_node_route_count;
extern const struct http_route rest_relay_routes[];
extern const size_t rest_relay_route_count;
extern const struct http_route rest_filter_routes[];
extern const size_t rest_filter_route_count;
extern const struct http_route rest_lightpush_routes[];
extern const size_t rest_lightpush_route_count;
extern const struct http_route rest_store_routes[];
extern const size_t rest_store_route_count;
extern const struct http_route rest_admin_routes[];
extern const size_t rest_admin_route_count;

/* Answers with the text, which is empty then; 503 when there was no memory for it. */
void rest_respond_json(struct http_request *request, unsigned status, struct rest_text *text);

/* Why the body cannot be JSON, or NULL. */
const char *rest_body_fault(const struct http_request *request);

/* False, and answered, when the body is there but said to be of another type than JSON or text. */
bool rest_has_json_body(struct http_request *request);

/* 400, or 503 for a want of memory. */
void rest_respond_bad_body(
        struct http_request *request, enum status status, const struct rest_error *error);

/* An answer that is made on another thread: the request is held from begin to send. */
struct rest_answer {
    struct rest_api *api;
    struct http_request *request;
    unsigned status;
    bool is_json;
    struct rest_text text;
    void *data; /* the handler's own */
    void (*free_data)(void *data);
    void (*finish)(
            struct rest_answer *answer); /* on the server's thread before it is sent; may be NULL */
};

/* NULL, and answered, when there is no memory. */
MUST_USE struct rest_answer *rest_answer_begin(struct rest_api *api, struct http_request *request);
/* Thread: any. Frees the answer. */
void rest_answer_send(struct rest_answer *CONSUMED answer);
/* Writes a text answer and sends it. */
void rest_answer_send_text(struct rest_answer *CONSUMED answer, unsigned status, const char *format,
        ...) __attribute__((format(printf, 3, 4)));

/* The name of the shard of a content topic. STATUS_UNSUPPORTED: there is no autosharding. */
MUST_USE enum status rest_shard_of(const struct rest_api *api, char *out, size_t size,
        struct span *name, struct span content_topic);

/* Why a message was refused, as the reference says it; out for one with numbers. */
const char *rest_refusal_text(
        const struct rest_api *api, enum metric reason, char *out, size_t size);
