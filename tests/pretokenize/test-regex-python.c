/* SPDX-License-Identifier: MIT */
/* Regular expressions against Python's module re: tests/pretokenize/python-regexes.jsonl was made
 * by tests/oracles/regex_python_oracle.py 5 400. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "pretokenize/regex.h"
#include "json/json.h"

static void check_matches(const struct dt_regex *r, struct json_object *vector, const char *text,
                          size_t size)
{
    struct json_object *matches = json_object_object_get(vector, "matches");
    struct dt_regex_match m = {.at = 0};
    for (size_t i = 0; i < json_object_array_length(matches); i++) {
        struct json_object *match = json_object_array_get_idx(matches, i);
        if (!dt_regex_next(r, text, size, &m))
            fail_msg("%s: match %zu is not found",
                     dt_json_text(json_object_object_get(vector, "regex")), i);
        assert_int_equal(2 * (dt_regex_group_count(r) + 1), json_object_array_length(match));
        for (size_t k = 0; k < json_object_array_length(match); k++)
            if ((int)m.slots[k] != json_object_get_int(json_object_array_get_idx(match, k)))
                fail_msg("%s: match %zu: offset %zu is %zd",
                         dt_json_text(json_object_object_get(vector, "regex")), i, k,
                         (ssize_t)m.slots[k]);
    }
    if (dt_regex_next(r, text, size, &m))
        fail_msg("%s: a match too many", dt_json_text(json_object_object_get(vector, "regex")));
}

static bool check_vector(struct json_object *vector)
{
    struct json_object *text = json_object_object_get(vector, "text");
    const char *bytes = dt_json_text(text);
    size_t size = (size_t)json_object_get_string_len(text);
    struct dt_regex *r;
    struct dt_error err;
    struct dt_buffer out = DT_BUFFER_EMPTY;
    if (dt_regex_new_python(&r, dt_json_text(json_object_object_get(vector, "regex")), "test",
                            &err) < 0)
        return false;
    check_matches(r, vector, bytes, size);
    assert_int_equal(
        dt_regex_substitute(r, dt_json_text(json_object_object_get(vector, "replacement")), bytes,
                            size, &out, &err),
        0);
    dt_buffer_add_char(&out, 0);
    assert_string_equal(out.data, dt_json_text(json_object_object_get(vector, "replaced")));
    dt_buffer_release(&out);
    dt_regex_free(r);
    return true;
}

static void matches_and_replacements_are_those_of_python(void **state)
{
    (void)state;
    char *text;
    size_t size;
    int known = 0, all = 0;
    struct dt_error err;
    assert_int_equal(
        dt_file_read("tests/pretokenize/python-regexes.jsonl", (size_t)1 << 22, &text, &size, &err),
        0);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), all++) {
        struct json_object *vector;
        assert_int_equal(dt_json_parse(line, strlen(line), "vector", &vector, &err), 0);
        known += check_vector(vector);
        json_object_put(vector);
    }
    free(text);
    print_message("%d of %d\n", known, all);
    assert_true(known > all * 8 / 10);
}

static void what_python_has_and_dt_lacks_is_refused(void **state)
{
    static const char *const refused[] = {"(a)\\1", "(?m)^a",  "(?x) a", "a(?i)b", "(?=(a))b",
                                          "\\p{L}", "(?P=n)a", "\\z",    "[a",     "(?#c)a"};
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct dt_regex *r;
        struct dt_error err;
        if (dt_regex_new_python(&r, refused[i], "test", &err) == 0)
            fail_msg("%s was not refused", refused[i]);
        assert_null(r);
    }
}

static void a_replacement_names_groups_that_exist(void **state)
{
    struct dt_regex *r;
    struct dt_error err;
    struct dt_buffer out = DT_BUFFER_EMPTY;
    (void)state;
    assert_int_equal(dt_regex_new_python(&r, "\\(\\s*([^\\)]*?)\\s*\\)", "test", &err), 0);
    assert_int_equal(dt_regex_substitute(r, "(\\1)", "( a b ) c", 9, &out, &err), 0);
    dt_buffer_add_char(&out, 0);
    assert_string_equal(out.data, "(a b) c");
    assert_int_not_equal(dt_regex_substitute(r, "\\2", "( a )", 5, &out, &err), 0);
    assert_int_not_equal(dt_regex_substitute(r, "\\q", "( a )", 5, &out, &err), 0);
    dt_buffer_release(&out);
    dt_regex_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_and_replacements_are_those_of_python),
        cmocka_unit_test(what_python_has_and_dt_lacks_is_refused),
        cmocka_unit_test(a_replacement_names_groups_that_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
