/* SPDX-License-Identifier: MIT */

/* sluice publish MULTIADDR: has a node publish messages (lightpush v3, or legacy where it has only that). */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/memory.h"
#include "codec/waku_message.h"
#include "net/protocols/lightpush_message.h"
#include "net/protocols/service_code.h"
#include "tools/sluice/command_options.h"
#include "tools/sluice/commands.h"
#include "tools/sluice/service_client.h"

static const char usage[] = "publish MULTIADDR --content-topic=TOPIC [--payload=TEXT] [OPTIONS]";

static const struct option_spec specs[] = {
        {"pubsub-topic", OPTION_TEXT, "", 0, 0, "Message",
                "pubsub topic; without it the node takes the content topic's shard"},
        {"content-topic", OPTION_TEXT, "", 0, 0, "Message", "content topic"},
        {"payload", OPTION_TEXT, "", 0, 0, "Message", "payload as text"},
        {"payload-hex", OPTION_TEXT, "", 0, 0, "Message", "payload as hexadecimal digits"},
        {"timestamp", OPTION_TEXT, "", 0, 0, "Message", "ns since 1970; now when not given"},
        {"ephemeral", OPTION_BOOL, "false", 0, 0, "Message", "not to be stored"},
        {"count", OPTION_NUMBER, "1", 1, 1000000, "Message",
                "how many messages; each but the first has -N at the end of its payload"},
        {"legacy", OPTION_BOOL, "false", 0, 0, "Message", "only by the legacy protocol"},
        SERVICE_CLIENT_OPTIONS,
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

enum {
    SUFFIX_BYTES = 24
};

struct publication {
    struct waku_message_view fields;
    struct span pubsub_topic;
    uint8_t *payload; /* with room for a suffix */
    size_t payload_length;
    bool has_timestamp;
    bool is_legacy;
};

static bool read_payload(struct publication *out, const struct options *options)
{
    const char *text = options_text(options, "payload");
    const char *hex = options_text(options, "payload-hex");
    size_t length = hex[0] != '\0' ? strlen(hex) / 2 : strlen(text);
    out->payload = memory_allocate(length + SUFFIX_BYTES);
    out->payload_length = length;
    if (out->payload == NULL) {
        fprintf(stderr, "sluice publish: %s\n", status_text(STATUS_NO_MEMORY));
        return false;
    }
    if (hex[0] == '\0') {
        memcpy(out->payload, text, length);
    } else if (hex_decode(out->payload, length, hex) != STATUS_OK) {
        fprintf(stderr, "sluice publish: --payload-hex holds no hexadecimal digits\n");
        return false;
    }
    return true;
}

static bool read_publication(struct publication *out, const struct options *options)
{
    const char *timestamp = options_text(options, "timestamp");
    char *end;
    out->fields.content_topic = span_of_text(options_text(options, "content-topic"));
    out->fields.has_content_topic = true;
    out->fields.has_payload = true;
    out->fields.has_timestamp = true;
    out->fields.timestamp_ns = strtoll(timestamp, &end, 10);
    out->fields.ephemeral = options_flag(options, "ephemeral");
    out->pubsub_topic = span_of_text(options_text(options, "pubsub-topic"));
    out->has_timestamp = timestamp[0] != '\0';
    out->is_legacy = options_flag(options, "legacy");
    if (*end != '\0') {
        fprintf(stderr, "sluice publish: --timestamp=%s is no number of nanoseconds\n", timestamp);
        return false;
    }
    if (out->fields.content_topic.length == 0) {
        fprintf(stderr, "sluice publish: --content-topic is needed\n");
        return false;
    }
    return read_payload(out, options);
}

/* The request of one version; NULL when there is no memory. */
static uint8_t *write_request(
        const struct publication *publication, enum lightpush_version version, size_t *length)
{
    struct lightpush_request request = {.request_id = span_of_text("sluice-publish"),
            .pubsub_topic = publication->pubsub_topic,
            .has_pubsub_topic = publication->pubsub_topic.length > 0};
    size_t message_length = waku_message_size(&publication->fields);
    uint8_t *bytes = memory_allocate(lightpush_request_head_max(&request) + message_length);
    if (bytes == NULL) {
        return NULL;
    }
    request.message.length = message_length;
    size_t head = lightpush_request_write_head(bytes, &request, version);
    *length = head + waku_message_encode(bytes + head, message_length, &publication->fields);
    return bytes;
}

static int print_answer(const struct lightpush_answer *answer)
{
    printf("%s %" PRIu32 " %.*s", answer->code == SERVICE_OK ? "ok" : "refused", answer->code,
            (int)answer->description.length, (const char *)answer->description.bytes);
    if (answer->has_relay_peer_count) {
        printf(", %" PRIu32 " relay peers", answer->relay_peer_count);
    }
    printf("\n");
    return answer->code == SERVICE_OK ? 0 : 1;
}

/* STATUS_NO_COMMON_PROTOCOL: the node has not this version. */
static enum status push(struct service_client *client, const struct publication *publication,
        enum lightpush_version version, int *result)
{
    static const char *const v3[] = {LIGHTPUSH_PROTOCOL_ID};
    static const char *const legacy[] = {LIGHTPUSH_LEGACY_PROTOCOL_ID};
    struct lightpush_answer content;
    size_t length;
    uint8_t *request = write_request(publication, version, &length);
    if (request == NULL) {
        return STATUS_NO_MEMORY;
    }
    struct service_answer answer = service_client_ask(client, version == LIGHTPUSH_V3 ? v3 : legacy,
            1, span_of(request, length), LIGHTPUSH_ANSWER_MAX);
    memory_free(request);
    enum status status = answer.status;
    if (status == STATUS_OK) {
        status = lightpush_answer_read(&content, span_of(answer.bytes, answer.length), version);
    }
    if (status == STATUS_OK) {
        *result |= print_answer(&content);
    }
    memory_free(answer.bytes);
    return status;
}

static void number_payload(struct publication *publication, uint64_t number)
{
    char suffix[SUFFIX_BYTES];
    int length = number == 0 ? 0 : snprintf(suffix, sizeof(suffix), "-%" PRIu64, number);
    memcpy(publication->payload + publication->payload_length, suffix, (size_t)length);
    publication->fields.payload =
            span_of(publication->payload, publication->payload_length + (size_t)length);
    if (!publication->has_timestamp) {
        publication->fields.timestamp_ns = clock_wall_ns();
    }
}

static int publish_all(
        struct service_client *client, struct publication *publication, uint64_t count)
{
    int result = 0;
    for (uint64_t i = 0; i < count; i++) {
        enum status status = STATUS_NO_COMMON_PROTOCOL;
        number_payload(publication, i);
        if (!publication->is_legacy) {
            status = push(client, publication, LIGHTPUSH_V3, &result);
        }
        if (status == STATUS_NO_COMMON_PROTOCOL) {
            status = push(client, publication, LIGHTPUSH_LEGACY, &result);
        }
        if (status != STATUS_OK) {
            fprintf(stderr, "sluice publish: %s\n", status_text(status));
            return 1;
        }
    }
    return result;
}

static int run_publish(const struct options *options)
{
    struct publication publication = {.payload = NULL};
    struct service_client *client = NULL;
    int result = 2;
    if (options_positional_count(options) != 1) {
        fprintf(stderr, "usage: sluice %s\n", usage);
    } else if (command_start_log(options_text(options, "log-level")) &&
               read_publication(&publication, options)) {
        result = 1;
        if (service_client_open(&client, options, "publish", options_positional(options, 0)) ==
                STATUS_OK) {
            result = publish_all(client, &publication, options_number(options, "count"));
        }
        service_client_close(&client);
    }
    memory_free(publication.payload);
    return result;
}

int command_publish(int argc, char **argv)
{
    int exit_status;
    struct options *options = command_parse(usage, specs, argc, argv, &exit_status);
    if (options == NULL) {
        return exit_status;
    }
    exit_status = run_publish(options);
    options_destroy(&options);
    return exit_status;
}
