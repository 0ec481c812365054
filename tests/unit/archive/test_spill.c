/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/spill.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/forgetful_disk.h"

struct spill_place {
    char folder[256];
    char path[300];
    struct spill_options options;
    struct spill *spill;
};

static int make_place(void **state)
{
    struct spill_place *place = calloc(1, sizeof(*place));
    fixture_make_folder(place->folder);
    snprintf(place->path, sizeof(place->path), "%s/spill", place->folder);
    place->options = (struct spill_options){.path = place->path, .limit_bytes = 1 << 20};
    assert_int_equal(spill_open(&place->spill, &place->options), STATUS_OK);
    *state = place;
    return 0;
}

static int remove_place(void **state)
{
    struct spill_place *place = *state;
    spill_close(&place->spill);
    fixture_remove_folder(place->folder);
    free(place);
    return 0;
}

static void reopen(struct spill_place *place)
{
    spill_close(&place->spill);
    assert_int_equal(spill_open(&place->spill, &place->options), STATUS_OK);
}

static struct envelope *envelope_of(unsigned number)
{
    struct fixture_message message = {.number = number,
            .timestamp_ns = number,
            .pubsub = number % FIXTURE_PUBSUB_TOPICS,
            .content = number % FIXTURE_CONTENT_TOPICS,
            .payload_bytes = 8 + number * 131 % 2000};
    struct envelope *envelope = fixture_envelope(&message);
    envelope->origin = number % 2 == 0 ? ORIGIN_MESH : ORIGIN_SYNC;
    envelope->received_ns = number + 7;
    return envelope;
}

static enum status push(struct spill *spill, unsigned number)
{
    struct envelope *envelope = envelope_of(number);
    struct archive_record record = archive_record_of(envelope);
    enum status status = spill_push(spill, &record);
    envelope_unref(envelope);
    return status;
}

static void assert_record(const struct archive_record *record, unsigned number)
{
    struct envelope *envelope = envelope_of(number);
    assert_null(record->envelope);
    assert_memory_equal(record->hash, envelope->hash, MESSAGE_HASH_BYTES);
    assert_true(span_equal(record->message, envelope->message));
    assert_true(span_equal(record->pubsub_topic, envelope->topic->name));
    assert_true(span_equal(record->content_topic, envelope->content_topic));
    assert_true(record->timestamp_ns == envelope->timestamp_ns);
    assert_true(record->received_ns == envelope->received_ns);
    assert_int_equal(record->origin, envelope->origin);
    envelope_unref(envelope);
}

/* Takes count records out in steps and compares; the first is number first. */
static void take(struct spill *spill, unsigned first, unsigned count, size_t step)
{
    struct archive_record records[16];
    for (unsigned taken = 0; taken < count;) {
        size_t shown = 0;
        assert_int_equal(spill_peek(spill, records, step, 4000, &shown), STATUS_OK);
        assert_true(shown > 0 && shown <= step);
        for (size_t i = 0; i < shown; i++) {
            assert_record(&records[i], first + taken + (unsigned)i);
        }
        size_t done = shown < count - taken ? shown : count - taken;
        spill_discard(spill, done);
        struct spill_hole hole;
        if (spill_take_hole(spill, &hole)) {
            spill_punch(spill, &hole);
        }
        taken += (unsigned)done;
    }
}

static void gives_back_in_order_what_was_pushed(void **state)
{
    struct spill_place *place = *state;
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(push(place->spill, i), STATUS_OK);
    }
    assert_int_equal(spill_count(place->spill), 100);
    take(place->spill, 0, 40, 7);
    for (unsigned i = 100; i < 120; i++) {
        assert_int_equal(push(place->spill, i), STATUS_OK);
    }
    take(place->spill, 40, 80, 16);
    assert_int_equal(spill_count(place->spill), 0);
    assert_int_equal(spill_bytes(place->spill), 0);
    size_t shown = 1;
    struct archive_record record;
    assert_int_equal(spill_peek(place->spill, &record, 1, 4000, &shown), STATUS_OK);
    assert_int_equal(shown, 0);
}

static void shows_the_same_records_until_they_are_discarded(void **state)
{
    struct spill_place *place = *state;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(push(place->spill, i), STATUS_OK);
    }
    struct archive_record records[8];
    for (int i = 0; i < 2; i++) {
        size_t shown = 0;
        assert_int_equal(spill_peek(place->spill, records, 8, 1 << 20, &shown), STATUS_OK);
        assert_int_equal(shown, 3);
        assert_record(&records[2], 2);
    }
    assert_int_equal(spill_count(place->spill), 3);
}

static void what_was_shown_stays_good_while_others_are_pushed(void **state)
{
    struct spill_place *place = *state;
    struct archive_record records[8];
    size_t shown = 0;
    assert_int_equal(push(place->spill, 0), STATUS_OK);
    assert_int_equal(push(place->spill, 1), STATUS_OK);
    assert_int_equal(spill_peek(place->spill, records, 8, 1 << 20, &shown), STATUS_OK);
    for (unsigned i = 2; i < 200; i++) {
        assert_int_equal(push(place->spill, i), STATUS_OK);
    }
    assert_int_equal(shown, 2);
    assert_record(&records[0], 0);
    assert_record(&records[1], 1);
    spill_discard(place->spill, shown);
    take(place->spill, 2, 198, 64);
}

static void has_what_waited_after_a_restart(void **state)
{
    struct spill_place *place = *state;
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(push(place->spill, i), STATUS_OK);
    }
    take(place->spill, 0, 30, 10);
    reopen(place);
    assert_int_equal(spill_count(place->spill), 170);
    take(place->spill, 30, 100, 10);
    reopen(place);
    assert_int_equal(push(place->spill, 200), STATUS_OK);
    take(place->spill, 130, 71, 16);
    reopen(place);
    assert_int_equal(spill_count(place->spill), 0);
}

static void begins_the_file_again_when_it_is_drained(void **state)
{
    struct spill_place *place = *state;
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(push(place->spill, i), STATUS_OK);
    }
    take(place->spill, 0, 50, 16);
    struct stat facts;
    assert_int_equal(stat(place->path, &facts), 0);
    assert_true(facts.st_size < 100);
}

static void refuses_what_is_beyond_its_limit_and_takes_it_when_there_is_room(void **state)
{
    struct spill_place *place = *state;
    place->options.limit_bytes = 20000;
    reopen(place);
    unsigned pushed = 0;
    while (push(place->spill, pushed) == STATUS_OK) {
        pushed++;
    }
    assert_int_equal(push(place->spill, pushed), STATUS_LIMIT_REACHED);
    assert_true(pushed > 5);
    assert_true(spill_bytes(place->spill) <= 20000);
    assert_int_equal(spill_count(place->spill), pushed);
    take(place->spill, 0, 3, 3);
    assert_int_equal(push(place->spill, pushed), STATUS_OK);
    take(place->spill, 3, pushed - 2, 16);
}

static void cuts_a_torn_tail(void **state)
{
    struct spill_place *place = *state;
    static const off_t cuts[] = {1, 60, 100};
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned j = 0; j < 10; j++) {
            assert_int_equal(push(place->spill, j), STATUS_OK);
        }
        spill_close(&place->spill);
        struct stat facts;
        assert_int_equal(stat(place->path, &facts), 0);
        assert_int_equal(truncate(place->path, facts.st_size - cuts[i]), 0);
        assert_int_equal(spill_open(&place->spill, &place->options), STATUS_OK);
        assert_int_equal(spill_count(place->spill), 9);
        assert_int_equal(push(place->spill, 9), STATUS_OK);
        take(place->spill, 0, 10, 16);
    }
}

static void is_not_confused_by_damage(void **state)
{
    struct spill_place *place = *state;
    for (unsigned j = 0; j < 10; j++) {
        assert_int_equal(push(place->spill, j), STATUS_OK);
    }
    int fd = open(place->path, O_WRONLY);
    assert_int_equal(pwrite(fd, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, 16), 8);
    struct archive_record records[4];
    size_t shown = 0;
    assert_int_equal(spill_peek(place->spill, records, 4, 4000, &shown), STATUS_DAMAGED);
    assert_int_equal(spill_abandon(place->spill), 10);
    assert_int_equal(push(place->spill, 3), STATUS_OK);
    take(place->spill, 3, 1, 1);

    /* The place of the first record is nonsense. */
    assert_int_equal(push(place->spill, 4), STATUS_OK);
    assert_int_equal(pwrite(fd, "\xff\xff\xff\xff\xff\xff\xff\x7f", 8, 8), 8);
    close(fd);
    reopen(place);
    assert_int_equal(spill_count(place->spill), 0);
    assert_int_equal(push(place->spill, 5), STATUS_OK);
    take(place->spill, 5, 1, 1);
}

static void says_what_is_wrong_when_it_cannot_be_opened(void **state)
{
    struct spill_place *place = *state;
    struct spill *second = NULL;
    assert_int_equal(spill_open(&second, &place->options), STATUS_BUSY);
    struct spill_options options = {.path = "/not/there/spill", .limit_bytes = 100};
    assert_int_equal(spill_open(&second, &options), STATUS_NOT_FOUND);
    spill_close(&place->spill);
    FILE *file = fopen(place->path, "w");
    fputs("some text that somebody wrote", file);
    fclose(file);
    assert_int_equal(spill_open(&second, &place->options), STATUS_NOT_A_DATABASE);
    assert_null(second);
}

static void goes_on_after_a_full_disk(void **state)
{
    struct spill_place *place = *state;
    place->options.files = &forgetful_file_ops;
    reopen(place);
    assert_int_equal(push(place->spill, 0), STATUS_OK);
    forgetful_disk_set_full(true);
    assert_int_equal(push(place->spill, 1), STATUS_DISK_FULL);
    forgetful_disk_set_full(false);
    assert_int_equal(spill_count(place->spill), 1);
    assert_int_equal(push(place->spill, 1), STATUS_OK);
    take(place->spill, 0, 2, 4);
}

/* 40 MiB go through a spill of 2 MiB, so the space of discarded records must come back. */
static void keeps_its_disk_space_bounded_when_it_is_never_drained(void **state)
{
    struct spill_place *place = *state;
    place->options.limit_bytes = 2 << 20;
    reopen(place);
    unsigned pushed = 0;
    unsigned taken = 0;
    for (uint64_t bytes = 0; bytes < 40u << 20;) {
        assert_int_equal(push(place->spill, pushed++), STATUS_OK);
        if (spill_count(place->spill) == 100) {
            bytes += spill_bytes(place->spill) / 2;
            take(place->spill, taken, 50, 10);
            taken += 50;
        }
    }
    struct stat facts;
    assert_int_equal(stat(place->path, &facts), 0);
    assert_true(facts.st_size > 39 << 20);
    assert_true(facts.st_blocks * 512 < 20 << 20);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(gives_back_in_order_what_was_pushed),
            CASE(shows_the_same_records_until_they_are_discarded),
            CASE(what_was_shown_stays_good_while_others_are_pushed),
            CASE(has_what_waited_after_a_restart),
            CASE(begins_the_file_again_when_it_is_drained),
            CASE(refuses_what_is_beyond_its_limit_and_takes_it_when_there_is_room),
            CASE(cuts_a_torn_tail),
            CASE(is_not_confused_by_damage),
            CASE(says_what_is_wrong_when_it_cannot_be_opened),
            CASE(goes_on_after_a_full_disk),
            CASE(keeps_its_disk_space_bounded_when_it_is_never_drained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
