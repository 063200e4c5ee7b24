/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "base/file.h"
#include "hash/sha256.h"
#include "scratch.h"

/* The examples of FIPS 180-4 (NIST, "SHA256.pdf"), and a million times "a". */
static void the_hashes_are_those_of_the_standard(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int times;
        const char *hash;
    } cases[] = {
        {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"aaaaaaaaaa", 100000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    struct dt_sha256 s;
    char hex[DT_SHA256_HEX];
    dt_sha256_init(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int k = 0; k < cases[i].times; k++)
            dt_sha256_add(&s, cases[i].text, strlen(cases[i].text));
        assert_int_equal(s.bytes, strlen(cases[i].text) * (size_t)cases[i].times);
        assert_string_equal(dt_sha256_finish(&s, hex), cases[i].hash);
    }
}

/* Adds total bytes in pieces of odd sizes. */
static void add_pieces(struct dt_sha256 *s, size_t total)
{
    unsigned char piece[70001];
    for (size_t done = 0, size = 1, n; done < total; done += n, size = size * 7 % 70001 + 1) {
        n = size < total - done ? size : total - done;
        for (size_t i = 0; i < n; i++)
            piece[i] = (unsigned char)((done + i) * 2654435761u >> 13);
        dt_sha256_add(s, piece, n);
    }
}

static void a_thread_makes_the_same_hash(void **state)
{
    (void)state;
    static const size_t totals[] = {0, 1, 1 << 18, (1 << 18) + 1, 5 << 18, 3000001};
    struct dt_sha256 alone, helped;
    char expected[DT_SHA256_HEX], hex[DT_SHA256_HEX];
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
        dt_sha256_init(&alone);
        dt_sha256_init(&helped);
        add_pieces(&alone, totals[i]);
        dt_sha256_use_thread(&helped);
        add_pieces(&helped, totals[i]);
        assert_int_equal(helped.bytes, totals[i]);
        dt_sha256_finish(&alone, expected);
        assert_string_equal(dt_sha256_finish(&helped, hex), expected);
        add_pieces(&helped, 10); /* it starts again, without the thread */
        add_pieces(&alone, 10);
        dt_sha256_finish(&alone, expected);
        assert_string_equal(dt_sha256_finish(&helped, hex), expected);
    }
}

static void what_was_added_can_be_discarded(void **state)
{
    (void)state;
    struct dt_sha256 s;
    dt_sha256_init(&s);
    dt_sha256_release(&s);
    dt_sha256_use_thread(&s);
    add_pieces(&s, 2000000);
    dt_sha256_release(&s);
    assert_null(s.thread);
}

static void a_file_is_hashed_with_its_size(void **state)
{
    (void)state;
    struct dt_error err;
    char hex[DT_SHA256_HEX];
    uint64_t bytes;
    assert_int_equal(dt_file_write("file", "abc", 3, &err), 0);
    assert_int_equal(dt_sha256_file("file", &bytes, hex, &err), 0);
    assert_int_equal(bytes, 3);
    assert_memory_equal(hex, "ba7816bf", 8);
    assert_int_equal(dt_sha256_file("/dev/null", &bytes, hex, &err), DT_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hashes_are_those_of_the_standard),
        cmocka_unit_test(a_thread_makes_the_same_hash),
        cmocka_unit_test(what_was_added_can_be_discarded),
        cmocka_unit_test_setup_teardown(a_file_is_hashed_with_its_size, enter_scratch,
                                        leave_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
