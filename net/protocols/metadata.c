/* SPDX-License-Identifier: MIT */
#include "net/protocols/metadata.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "codec/wire.h"
#include "net/protocols/exchange.h"

#define FIELD_CLUSTER      WIRE_TAG(1, WIRE_VARINT)
#define FIELD_SHARD        WIRE_TAG(2, WIRE_VARINT)
#define FIELD_SHARDS       WIRE_TAG(2, WIRE_LENGTH)
#define FIELD_SHARDS_LATER WIRE_TAG(3, WIRE_LENGTH)
#define FIELD_SHARD_LATER  WIRE_TAG(3, WIRE_VARINT)

enum {
    NUMBER_MAX = 6, /* bytes of a field with 32 bits */
    MESSAGE_ROOM = NUMBER_MAX * (METADATA_SHARDS_MAX + 1)
};

struct metadata {
    struct net_switch *net_switch;
    struct exchange_server server;
    void (*told)(void *context, struct connection *connection, const struct metadata_message *said);
    void *context;
    uint32_t cluster_id;
    pthread_mutex_t mutex; /* of what follows; held for a copy */
    size_t shard_count;
    uint32_t shards[METADATA_SHARDS_MAX];
    size_t message_length;
    uint8_t message[MESSAGE_ROOM]; /* question and answer alike */
};

struct shard_list {
    size_t count;
    uint16_t shards[METADATA_SHARDS_MAX];
};

static enum status add_shard(struct shard_list *list, uint64_t shard)
{
    if (shard > UINT16_MAX) {
        return STATUS_BAD_FIELD;
    }
    if (list->count < METADATA_SHARDS_MAX) {
        list->shards[list->count++] = (uint16_t)shard;
    }
    return STATUS_OK;
}

static enum status add_packed(struct shard_list *list, struct span packed)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK && packed.length > 0) {
        uint64_t shard;
        status = varint_read(&shard, &packed);
        if (status == STATUS_OK) {
            status = add_shard(list, shard);
        }
    }
    return status;
}

static enum status take_field(struct metadata_message *out, struct shard_list *early,
        struct shard_list *late, const struct wire_field *field)
{
    switch (field->tag) {
    case FIELD_CLUSTER:
        out->has_cluster = true;
        return wire_number32(&out->cluster_id, field);
    case FIELD_SHARD:
        return add_shard(early, field->number);
    case FIELD_SHARD_LATER:
        return add_shard(late, field->number);
    case FIELD_SHARDS:
        return add_packed(early, field->bytes);
    case FIELD_SHARDS_LATER:
        return add_packed(late, field->bytes);
    default:
        return STATUS_OK;
    }
}

enum status metadata_message_read(struct metadata_message *out, struct span message)
{
    struct shard_list early = {.count = 0};
    struct shard_list late = {.count = 0};
    enum status status = STATUS_OK;
    out->has_cluster = false;
    out->cluster_id = 0;
    while (status == STATUS_OK && message.length > 0) {
        struct wire_field field;
        status = wire_next(&field, &message);
        if (status == STATUS_OK) {
            status = take_field(out, &early, &late, &field);
        }
    }
    const struct shard_list *list = late.count > 0 ? &late : &early;
    out->shard_count = list->count;
    memcpy(out->shards, list->shards, list->count * sizeof(list->shards[0]));
    return status;
}

/* Unpacked under the specification's number: what js-waku reads; the reference takes it as well. */
static void write_message(struct metadata *metadata)
{
    uint8_t *end = wire_write_number(metadata->message, FIELD_CLUSTER, metadata->cluster_id);
    for (size_t i = 0; i < metadata->shard_count; i++) {
        end = wire_write_number(end, FIELD_SHARD, metadata->shards[i]);
    }
    metadata->message_length = (size_t)(end - metadata->message);
}

static void set_shard(struct metadata *metadata, uint32_t shard, bool takes_part)
{
    size_t i = 0;
    while (i < metadata->shard_count && metadata->shards[i] != shard) {
        i++;
    }
    bool is_there = i < metadata->shard_count;
    if (takes_part && !is_there && metadata->shard_count < METADATA_SHARDS_MAX) {
        metadata->shards[metadata->shard_count++] = shard;
    } else if (!takes_part && is_there) {
        metadata->shard_count--;
        memmove(metadata->shards + i, metadata->shards + i + 1,
                (metadata->shard_count - i) * sizeof(metadata->shards[0]));
    }
    write_message(metadata);
}

void metadata_set_shard(struct metadata *metadata, uint32_t shard, bool takes_part)
{
    pthread_mutex_lock(&metadata->mutex);
    set_shard(metadata, shard, takes_part);
    pthread_mutex_unlock(&metadata->mutex);
}

uint32_t metadata_cluster(const struct metadata *metadata)
{
    return metadata->cluster_id;
}

static bool is_of_other_cluster(
        const struct metadata *metadata, struct connection *connection, struct span message)
{
    static struct log_limit limit;
    char text[PEER_ID_TEXT_SIZE];
    struct metadata_message said;
    if (metadata_message_read(&said, message) != STATUS_OK) {
        metrics_add(METRIC_METADATA_REFUSED, 1);
        return false;
    }
    if (metadata->told != NULL) {
        metadata->told(metadata->context, connection, &said);
    }
    if (!said.has_cluster || said.cluster_id == metadata->cluster_id) {
        return false;
    }
    log_write_limited(&limit, LOG_NOTICE, "metadata", "%s is of cluster %u, we are of %u",
            peer_id_print(text, connection_peer(connection)), said.cluster_id,
            metadata->cluster_id);
    return true;
}

/* Also a peer that is to go learns why. */
static void on_requested(void *context, struct exchange *exchange, struct span request)
{
    struct metadata *metadata = context;
    struct connection *connection = stream_connection(exchange_stream(exchange));
    bool has_to_go = is_of_other_cluster(metadata, connection, request);
    pthread_mutex_lock(&metadata->mutex);
    exchange_answer_copy(exchange, span_of(metadata->message, metadata->message_length));
    pthread_mutex_unlock(&metadata->mutex);
    if (has_to_go) {
        connection_close(connection, CLOSE_OTHER_CLUSTER);
    }
}

struct question {
    struct metadata *metadata;
    struct connection *connection; /* outlives its streams */
};

static void on_answered(void *context, enum status status, const char *protocol, struct span answer)
{
    struct question question = *(struct question *)context;
    (void)protocol;
    memory_free(context);
    if (status == STATUS_OK &&
            is_of_other_cluster(question.metadata, question.connection, answer)) {
        connection_close(question.connection, CLOSE_OTHER_CLUSTER);
    }
}

/* Under the mutex: the call copies the question. */
static enum status ask(
        struct metadata *metadata, struct connection *connection, struct question *question)
{
    static const char *const ids[] = {METADATA_PROTOCOL_ID};
    struct exchange_call call = {
            .protocols = ids,
            .protocol_count = 1,
            .request = span_of(metadata->message, metadata->message_length),
            .answer_max = METADATA_MESSAGE_MAX,
            .done = on_answered,
            .context = question,
    };
    return metadata->shard_count == 0 ? STATUS_NOT_FOUND : exchange_call(connection, &call);
}

void metadata_ask(struct metadata *metadata, struct connection *connection)
{
    struct question *question = memory_allocate(sizeof(*question));
    if (question == NULL) {
        return;
    }
    *question = (struct question){.metadata = metadata, .connection = connection};
    pthread_mutex_lock(&metadata->mutex);
    enum status status = ask(metadata, connection, question);
    pthread_mutex_unlock(&metadata->mutex);
    if (status != STATUS_OK) {
        memory_free(question);
    }
}

enum status metadata_create(struct metadata **out, const struct metadata_options *options)
{
    assert(options->shard_count <= METADATA_SHARDS_MAX);
    struct metadata *metadata = memory_allocate_zeroed(sizeof(*metadata));
    if (metadata == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (pthread_mutex_init(&metadata->mutex, NULL) != 0) {
        memory_free(metadata);
        return STATUS_SYSTEM;
    }
    metadata->net_switch = options->net_switch;
    metadata->told = options->told;
    metadata->context = options->context;
    metadata->cluster_id = options->cluster_id;
    for (size_t i = 0; i < options->shard_count; i++) {
        set_shard(metadata, options->shards[i], true);
    }
    write_message(metadata);
    metadata->server = (struct exchange_server){.id = METADATA_PROTOCOL_ID,
            .request_max = METADATA_MESSAGE_MAX,
            /* A peer that pushes identify without pause does not make us ask without pause. */
            .outbound_max = 1,
            .requested = on_requested,
            .context = metadata};
    enum status status = exchange_serve(options->net_switch, &metadata->server);
    if (status != STATUS_OK) {
        metadata_destroy(&metadata);
        return status;
    }
    *out = metadata;
    return STATUS_OK;
}

void metadata_destroy(struct metadata **metadata)
{
    if (*metadata != NULL) {
        pthread_mutex_destroy(&(*metadata)->mutex);
    }
    memory_free(*metadata);
    *metadata = NULL;
}
