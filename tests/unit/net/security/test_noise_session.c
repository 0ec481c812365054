/* SPDX-License-Identifier: MIT */
#include "net/security/noise_session.h"

#include "tests/support/noise_pair.h"

static uint8_t plaintext[NOISE_MAX_PLAINTEXT];
static uint8_t frame[NOISE_LENGTH_BYTES + NOISE_MAX_CIPHERTEXT];
static uint8_t received[NOISE_MAX_PLAINTEXT];

static int fill_plaintext(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(plaintext); i++) {
        plaintext[i] = (uint8_t)(i * 7 + i / 256);
    }
    return 0;
}

static void destroy_both(struct noise_session *sessions[2])
{
    noise_session_destroy(&sessions[0]);
    noise_session_destroy(&sessions[1]);
}

static size_t seal(struct noise_session *session, size_t length)
{
    struct span piece = span_of(plaintext, length);
    size_t written = noise_session_seal(session, &piece, 1, frame);
    assert_int_equal(written, NOISE_LENGTH_BYTES + length + NOISE_TAG_BYTES);
    assert_int_equal(frame[0] << 8 | frame[1], length + NOISE_TAG_BYTES);
    return written;
}

static enum status open_frame(struct noise_session *session, size_t written)
{
    return noise_session_open(session, frame + NOISE_LENGTH_BYTES, written - NOISE_LENGTH_BYTES);
}

static void carries_frames_of_every_kind_of_length_both_ways(void **state)
{
    (void)state;
    const size_t lengths[] = {0, 1, 12, 100, 1000, 65518, NOISE_MAX_PLAINTEXT};
    struct noise_session *sessions[2];
    noise_pair_sessions(sessions);
    for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t length = lengths[i / 2];
        struct noise_session *to = sessions[1 - i % 2];
        size_t written = seal(sessions[i % 2], length);
        assert_int_equal(open_frame(to, written), STATUS_OK);
        assert_int_equal(noise_session_remaining(to), length);
        noise_session_read(to, received, length);
        assert_int_equal(noise_session_remaining(to), 0);
        assert_memory_equal(received, plaintext, length);
    }
    destroy_both(sessions);
}

static void reads_a_frame_in_pieces_of_any_size(void **state)
{
    (void)state;
    struct noise_session *sessions[2];
    noise_pair_sessions(sessions);
    for (size_t step = 1; step < 200; step++) {
        size_t written = seal(sessions[0], 700);
        assert_int_equal(open_frame(sessions[1], written), STATUS_OK);
        memset(received, 0, sizeof(received));
        while (noise_session_remaining(sessions[1]) > 0) {
            size_t left = noise_session_remaining(sessions[1]);
            noise_session_read(sessions[1], received + 700 - left, left < step ? left : step);
        }
        assert_memory_equal(received, plaintext, 700);
    }
    destroy_both(sessions);
}

static void decrypts_in_place_where_the_ciphertext_lies(void **state)
{
    (void)state;
    struct noise_session *sessions[2];
    noise_pair_sessions(sessions);
    size_t written = seal(sessions[0], 5000);
    assert_int_equal(open_frame(sessions[1], written), STATUS_OK);
    noise_session_read(sessions[1], frame + NOISE_LENGTH_BYTES, 12);
    noise_session_read(sessions[1], frame + NOISE_LENGTH_BYTES + 12, 5000 - 12);
    assert_memory_equal(frame + NOISE_LENGTH_BYTES, plaintext, 5000);
    destroy_both(sessions);
}

static void seals_many_pieces_as_one_frame(void **state)
{
    (void)state;
    struct span pieces[33];
    struct noise_session *sessions[2];
    noise_pair_sessions(sessions);
    size_t at = 0;
    for (size_t i = 0; i < 33; i++) {
        pieces[i] = span_of(plaintext + at, i * 5 % 37);
        at += pieces[i].length;
    }
    size_t written = noise_session_seal(sessions[0], pieces, 33, frame);
    assert_int_equal(written, NOISE_LENGTH_BYTES + at + NOISE_TAG_BYTES);
    assert_int_equal(open_frame(sessions[1], written), STATUS_OK);
    noise_session_read(sessions[1], received, at);
    assert_memory_equal(received, plaintext, at);
    destroy_both(sessions);
}

static void refuses_a_forged_frame_and_everything_after_it(void **state)
{
    (void)state;
    for (size_t at = 0; at < 50 + NOISE_TAG_BYTES; at++) {
        struct noise_session *sessions[2];
        noise_pair_sessions(sessions);
        size_t written = seal(sessions[0], 50);
        frame[NOISE_LENGTH_BYTES + at] ^= 0x80;
        assert_int_equal(open_frame(sessions[1], written), STATUS_BAD_FRAME);
        assert_int_equal(noise_session_remaining(sessions[1]), 0);
        written = seal(sessions[0], 50); /* right, and with the nonce that comes next */
        assert_int_equal(open_frame(sessions[1], written), STATUS_BAD_FRAME);
        destroy_both(sessions);
        at += at < 8 || at > 56 ? 0 : 6;
    }
}

static void refuses_frames_repeated_left_out_or_reflected(void **state)
{
    (void)state;
    struct noise_session *sessions[2];
    noise_pair_sessions(sessions);
    size_t written = seal(sessions[0], 10);
    assert_int_equal(open_frame(sessions[0], written), STATUS_BAD_FRAME); /* its own frame */
    assert_int_equal(open_frame(sessions[1], written), STATUS_OK);
    noise_session_read(sessions[1], received, 10);
    assert_int_equal(open_frame(sessions[1], written), STATUS_BAD_FRAME);
    destroy_both(sessions);
    noise_pair_sessions(sessions);
    seal(sessions[0], 10);
    written = seal(sessions[0], 10);
    assert_int_equal(open_frame(sessions[1], written), STATUS_BAD_FRAME);
    destroy_both(sessions);
}

static void refuses_frames_too_short_for_a_tag_or_cut(void **state)
{
    (void)state;
    for (size_t length = 0; length < 30 + NOISE_TAG_BYTES; length++) {
        struct noise_session *sessions[2];
        noise_pair_sessions(sessions);
        seal(sessions[0], 30);
        assert_int_equal(noise_session_open(sessions[1], frame + NOISE_LENGTH_BYTES, length),
                STATUS_BAD_FRAME);
        destroy_both(sessions);
    }
}

static void stops_in_both_directions_when_the_nonces_are_used_up(void **state)
{
    (void)state;
    struct noise_session *sessions[2];
    struct span piece = span_of(plaintext, 10);
    noise_pair_sessions(sessions);
    noise_session_set_nonces(sessions[0], UINT64_MAX - 1, 0);
    noise_session_set_nonces(sessions[1], 0, UINT64_MAX - 1);
    size_t written = seal(sessions[0], 10);
    assert_int_equal(open_frame(sessions[1], written), STATUS_OK);
    noise_session_read(sessions[1], received, 10);
    assert_memory_equal(received, plaintext, 10);
    assert_int_equal(noise_session_seal(sessions[0], &piece, 1, frame), 0);
    assert_int_equal(open_frame(sessions[1], written), STATUS_LIMIT_REACHED);
    destroy_both(sessions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(carries_frames_of_every_kind_of_length_both_ways),
            cmocka_unit_test(reads_a_frame_in_pieces_of_any_size),
            cmocka_unit_test(decrypts_in_place_where_the_ciphertext_lies),
            cmocka_unit_test(seals_many_pieces_as_one_frame),
            cmocka_unit_test(refuses_a_forged_frame_and_everything_after_it),
            cmocka_unit_test(refuses_frames_repeated_left_out_or_reflected),
            cmocka_unit_test(refuses_frames_too_short_for_a_tag_or_cut),
            cmocka_unit_test(stops_in_both_directions_when_the_nonces_are_used_up),
    };
    return cmocka_run_group_tests(tests, fill_plaintext, NULL);
}
