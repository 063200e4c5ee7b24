/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "base/file.h"
#include "io/lineage.h"
#include "io/sealed-json.h"
#include "scratch.h"

static struct json_object *parse(const char *text)
{
    struct json_object *value;
    struct dt_error err;
    assert_int_equal(dt_json_parse(text, strlen(text), "test", &value, &err), 0);
    return value;
}

static struct json_object *member(struct json_object *object, const char *name)
{
    struct json_object *value;
    assert_true(json_object_object_get_ex(object, name, &value));
    return value;
}

/* The records of an output without inputs, with one more argument, so that ids differ. */
static struct json_object *records_of(struct dt_lineage **l, const char *mark)
{
    *l = dt_lineage_new();
    dt_lineage_set(*l, "mark", dt_json_new_string(mark));
    return dt_lineage_records(*l);
}

static void inputs_name_the_records_that_wrote_them(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_lineage *a, *b, *c = dt_lineage_new();
    struct json_object *first = records_of(&a, "a"), *second = records_of(&b, "b");
    dt_lineage_add_input(c, "x", 3, "aa", first);
    dt_lineage_add_input(c, "y", 3, "bb", second);
    dt_lineage_add_input(c, "again", 3, "aa", first);
    struct json_object *all = dt_lineage_records(c);
    assert_int_equal(dt_lineage_check(all, "test", &err), 0);
    assert_int_equal(json_object_array_length(all), 3);
    struct json_object *inputs = member(json_object_array_get_idx(all, 2), "inputs");
    const char *from = dt_json_text(member(json_object_array_get_idx(inputs, 2), "from"));
    assert_string_equal(from, dt_json_text(member(json_object_array_get_idx(first, 0), "id")));
    dt_lineage_free(a);
    dt_lineage_free(b);
    dt_lineage_free(c);
}

static void a_record_cannot_name_itself_or_a_later_one(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_lineage *a, *b = dt_lineage_new();
    dt_lineage_add_input(b, "x", 3, "aa", records_of(&a, "a"));
    struct json_object *all = dt_lineage_records(b), *turned = dt_json_new_array();
    dt_json_array_add(turned, json_object_get(json_object_array_get_idx(all, 1)));
    dt_json_array_add(turned, json_object_get(json_object_array_get_idx(all, 0)));
    assert_int_equal(dt_lineage_check(turned, "test", &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "does not come before it"));
    json_object_put(turned);
    dt_lineage_free(a);
    dt_lineage_free(b);
}

static void what_is_not_a_list_of_records_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "[1]",
        "[{}]",
        "[{\"program\":1}]",
        "[{\"program\":\"a\",\"version\":\"1\",\"arguments\":[1],\"inputs\":[],\"id\":\"\"}]",
        "[{\"program\":\"a\",\"version\":\"1\",\"arguments\":[],\"inputs\":[],\"id\":\"00\"}]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct dt_error err;
        struct json_object *value = parse(texts[i]);
        assert_int_equal(dt_lineage_check(value, "test", &err), DT_EFORMAT);
        json_object_put(value);
    }
}

static void a_sealed_file_shows_every_change(void **state)
{
    (void)state;
    struct dt_error err;
    char *text;
    size_t size;
    struct json_object *value = parse("{\"a\": [1, \"two\", null], \"b\": {}}");
    assert_int_equal(dt_sealed_json_write("f", value, &err), 0);
    assert_int_equal(dt_sealed_json_check("f", &err), 1);
    assert_int_equal(dt_file_read("f", 10000, &text, &size, &err), 0);
    for (size_t bit = 0; bit < 8 * size; bit += 3) {
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        assert_int_equal(dt_file_write("f", text, size, &err), 0);
        assert_true(dt_sealed_json_check("f", &err) < 0);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
    }
    free(text);
    json_object_put(value);
    assert_int_equal(dt_file_write("f", "{\"a\": 1}\n", 9, &err), 0);
    assert_int_equal(dt_sealed_json_check("f", &err), 0);
}

/* More than are listed one by one. */
static void each_of_many_merged_files_must_be_readable(void **state)
{
    (void)state;
    const char *paths[DT_LINEAGE_SEPARATE + 1];
    struct dt_error err;
    struct dt_lineage *l = dt_lineage_new();
    assert_int_equal(dt_file_write("f", "1", 1, &err), 0);
    for (int i = 0; i <= DT_LINEAGE_SEPARATE; i++)
        paths[i] = "f";
    assert_int_equal(dt_lineage_add_files(l, paths, DT_LINEAGE_SEPARATE + 1, &err), 0);
    paths[0] = "missing";
    assert_int_equal(dt_lineage_add_files(l, paths, DT_LINEAGE_SEPARATE + 1, &err), DT_EIO);
    dt_lineage_free(l);
}

/* Writes an output of 2 MB with its record beside it, watched by threads unless they are 0. */
static void write_output(const char *path, int threads)
{
    static char piece[5000];
    struct dt_error err;
    struct dt_output out;
    struct dt_lineage *l = dt_lineage_new();
    memset(piece, 'x', sizeof piece);
    assert_int_equal(dt_output_open(&out, path, &err), 0);
    if (threads > 0)
        dt_lineage_watch(l, &out, threads);
    for (int i = 0; i < 400; i++) {
        piece[i] = 'y';
        assert_int_equal(dt_output_write(&out, piece, (size_t)(i * 12), &err), 0);
    }
    assert_int_equal(dt_lineage_commit(l, &out, &err), 0);
    dt_lineage_free(l);
}

static void a_watched_output_has_the_record_of_one_that_is_read(void **state)
{
    (void)state;
    struct dt_error err;
    char *expected, *text;
    size_t size, same;
    write_output("out", 0);
    assert_int_equal(dt_file_read("out.lineage.json", 10000, &expected, &size, &err), 0);
    for (int threads = 1; threads <= 2; threads++) {
        write_output("out", threads);
        assert_int_equal(dt_file_read("out.lineage.json", 10000, &text, &same, &err), 0);
        assert_string_equal(text, expected);
        free(text);
    }
    free(expected);
    write_output("/dev/null", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_name_the_records_that_wrote_them),
        cmocka_unit_test(a_record_cannot_name_itself_or_a_later_one),
        cmocka_unit_test(what_is_not_a_list_of_records_is_refused),
        cmocka_unit_test_setup_teardown(a_sealed_file_shows_every_change, enter_scratch,
                                        leave_scratch),
        cmocka_unit_test_setup_teardown(each_of_many_merged_files_must_be_readable, enter_scratch,
                                        leave_scratch),
        cmocka_unit_test_setup_teardown(a_watched_output_has_the_record_of_one_that_is_read,
                                        enter_scratch, leave_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
