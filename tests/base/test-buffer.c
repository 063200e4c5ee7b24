/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include "base/buffer.h"
#include "hash/hash.h"

static void a_buffer_holds_what_was_appended(void **state)
{
    (void)state;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    for (int i = 0; i < 1000; i++) {
        dt_buffer_printf(&b, "%d,", i);
        assert_int_equal(b.data[b.size], 0);
    }
    dt_buffer_append(&b, "a\0b", 3);
    dt_buffer_add_char(&b, '!');
    dt_buffer_add_string(&b, "end");
    assert_int_equal(b.size, 3890 + 7);
    assert_memory_equal(b.data, "0,1,2,", 6);
    assert_memory_equal(b.data + b.size - 7, "a\0b!end", 8);
    dt_buffer_clear(&b);
    assert_int_equal(b.size, 0);
    assert_string_equal(b.data, "");
    assert_true(b.capacity > 3890);
    dt_buffer_release(&b);
    assert_null(b.data);
    dt_buffer_release(&b);
}

static void reserved_room_is_not_moved(void **state)
{
    (void)state;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_buffer_reserve(&b, 100);
    const char *before = b.data;
    for (int i = 0; i < 100; i++)
        dt_buffer_add_char(&b, 'x');
    assert_ptr_equal(b.data, before);
    dt_buffer_release(&b);
}

static void nothing_appended_is_an_empty_string(void **state)
{
    (void)state;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_buffer_append(&b, NULL, 0);
    assert_string_equal(b.data, "");
    dt_buffer_release(&b);
}

static void numbers_are_as_short_as_they_can_be(void **state)
{
    (void)state;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    const double numbers[] = {0.1, 6e-4, -3, 1e300, 0.1 + 0.2};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        dt_buffer_add_real(&b, numbers[i]);
        dt_buffer_add_char(&b, ' ');
    }
    assert_string_equal(b.data, "0.1 0.0006 -3 1e+300 0.30000000000000004 ");
    dt_buffer_release(&b);
}

static void ids_grow(void **state)
{
    (void)state;
    struct dt_ids ids = DT_IDS_EMPTY;
    const uint32_t three[] = {7, 8, 9};
    dt_ids_append(&ids, NULL, 0);
    for (uint32_t i = 0; i < 1000; i++)
        dt_ids_add(&ids, i);
    dt_ids_append(&ids, three, 3);
    assert_int_equal(ids.count, 1003);
    assert_int_equal(ids.data[999], 999);
    assert_int_equal(ids.data[1002], 9);
    dt_ids_release(&ids);
    assert_null(ids.data);
}

static void strings_are_copied_and_made(void **state)
{
    (void)state;
    char *copy = dt_strdup("text"), *part = dt_strndup("text", 2),
         *made = dt_asprintf("%d-%s", 1, "x");
    assert_string_equal(copy, "text");
    assert_string_equal(part, "te");
    assert_string_equal(made, "1-x");
    free(copy);
    free(part);
    free(made);
}

static void a_list_doubles_when_full(void **state)
{
    (void)state;
    int *items = NULL, count = 0, capacity = 0;
    for (; count < 100; count++) {
        DT_GROW(items, count, capacity);
        items[count] = count;
    }
    assert_int_equal(capacity, 128);
    assert_int_equal(items[99], 99);
    free(items);
}

static void allocate_too_much(void)
{
    volatile size_t half = SIZE_MAX / 2 + 2;
    dt_realloc(NULL, half, 2);
}

/* vsnprintf(3) fails, as it does for 2 GiB of text, which take seconds. */
static void print_too_much(void)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_buffer_printf(&b, "%lc", (wint_t)0xffff);
}

static void assert_ends(void (*work)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        fclose(stderr);
        work();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
}

/* A size that overflows must end the program with a message, not wrap around or lose a text. */
static void sizes_that_overflow_end_the_program(void **state)
{
    (void)state;
    assert_ends(allocate_too_much);
    assert_ends(print_too_much);
}

static void hashes_are_those_of_xxhash(void **state)
{
    (void)state;
    char text[DT_HASH_HEX];
    /* Of the empty input, by the algorithm's specification. */
    assert_string_equal(dt_hash_hex(dt_hash("", 0), text), "2d06800538d394c2");
    assert_string_equal(dt_hash_hex(dt_hash_xxh64("", 0), text), "ef46db3751d8e999");
    assert_string_equal(dt_hash_hex(1, text), "0000000000000001");
    assert_true(dt_hash_seeded("a", 1, 0) == dt_hash("a", 1));
    assert_true(dt_hash_seeded("a", 1, 1) != dt_hash("a", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_holds_what_was_appended),
        cmocka_unit_test(reserved_room_is_not_moved),
        cmocka_unit_test(nothing_appended_is_an_empty_string),
        cmocka_unit_test(numbers_are_as_short_as_they_can_be),
        cmocka_unit_test(ids_grow),
        cmocka_unit_test(strings_are_copied_and_made),
        cmocka_unit_test(a_list_doubles_when_full),
        cmocka_unit_test(sizes_that_overflow_end_the_program),
        cmocka_unit_test(hashes_are_those_of_xxhash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
