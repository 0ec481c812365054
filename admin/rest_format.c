/* SPDX-License-Identifier: MIT */
#include "admin/rest_format.h"

#include "codec/wire.h"

static void add_version_and_time(struct rest_text *text, const struct waku_message_view *fields)
{
    rest_text_add(text, ",\"version\":");
    rest_text_add_number(text, fields->version);
    rest_text_add(text, ",\"timestamp\":");
    rest_text_add_number(text, fields->timestamp_ns);
}

static void add_meta(struct rest_text *text, const struct waku_message_view *fields)
{
    if (fields->meta.length > 0) {
        rest_text_add(text, ",\"meta\":");
        rest_text_add_base64(text, fields->meta);
    }
}

void rest_add_message(
        struct rest_text *text, const struct waku_message_view *fields, enum rest_form form)
{
    rest_text_add(text, "{\"payload\":");
    rest_text_add_base64(text, fields->payload);
    rest_text_add(text, ",\"contentTopic\":");
    rest_text_add_string(text, fields->content_topic);
    if (form == REST_FORM_STORE) {
        add_meta(text, fields);
        add_version_and_time(text, fields);
    } else {
        add_version_and_time(text, fields);
        add_meta(text, fields);
    }
    rest_text_add(text, ",\"ephemeral\":");
    rest_text_add_bool(text, fields->ephemeral);
    if (form == REST_FORM_RELAY ||
            (form == REST_FORM_STORE && fields->rate_limit_proof.length > 0)) {
        rest_text_add(text, ",\"proof\":");
        rest_text_add_base64(text, fields->rate_limit_proof);
    }
    rest_text_add(text, "}");
}

/* An envelope keeps no view of the proof, which nobody else asks for. */
static struct span proof_of(struct span message)
{
    enum {
        RATE_LIMIT_PROOF = 21
    };
    struct span proof = span_of(NULL, 0);
    struct wire_field field;
    while (message.length > 0 && wire_next(&field, &message) == STATUS_OK) {
        if (field.tag == WIRE_TAG(RATE_LIMIT_PROOF, WIRE_LENGTH)) {
            proof = field.bytes;
        }
    }
    return proof;
}

void rest_add_batch(struct rest_text *text, const struct rest_cached *batch, enum rest_form form)
{
    rest_text_add(text, "[");
    for (const struct rest_cached *cached = batch; cached != NULL; cached = cached->next) {
        struct waku_message_view fields = cached->fields;
        if (cached->envelope != NULL && form == REST_FORM_RELAY) {
            fields.rate_limit_proof = proof_of(cached->envelope->message);
        }
        rest_text_add(text, cached == batch ? "" : ",");
        rest_add_message(text, &fields, form);
    }
    rest_text_add(text, "]");
}

bool rest_add_row(
        struct rest_text *text, const struct archive_row *row, bool has_data, bool is_first)
{
    struct waku_message_view fields;
    if (has_data && waku_message_decode(&fields, row->message) != STATUS_OK) {
        return false;
    }
    rest_text_add(text, is_first ? "{\"messageHash\":" : ",{\"messageHash\":");
    rest_text_add_hex(text, row->hash);
    if (has_data) {
        rest_text_add(text, ",\"message\":");
        rest_add_message(text, &fields, REST_FORM_STORE);
        rest_text_add(text, ",\"pubsubTopic\":");
        rest_text_add_string(text, row->pubsub_topic);
    }
    rest_text_add(text, "}");
    return true;
}
