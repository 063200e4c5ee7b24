/* SPDX-License-Identifier: MIT */
/* Published chat templates with random conversations, against what transformers makes of them:
 * $DT_TEMPLATES has NAME.jinja and NAME.jinja.jsonl of tests/oracles/make_templates.py.
 * tests/full/templates.bats makes them. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "template/template.h"
#include "test.h"
#include "json/json.h"

#define NOW  1753500000 /* of make_templates.py */
#define MOST ((size_t)1 << 30)

static struct dt_error err;

/* Counts of conversations; the first difference ends the test. */
struct counts {
    long equal, failed, refused;
};

static void compare(const struct dt_template *t, const char *name, const char *line,
                    struct counts *n)
{
    struct json_object *row, *expected;
    struct dt_buffer out = DT_BUFFER_EMPTY;
    assert_int_equal(dt_json_parse(line, strlen(line), name, &row, &err), 0);
    expected = json_object_object_get(row, "text");
    int rc = dt_template_render(t, json_object_object_get(row, "context"), NOW, &out, NULL, &err);
    dt_buffer_add_string(&out, "");
    if (rc == 0 && expected == NULL)
        fail_msg("%s: an error of Jinja gave '%s' for %s", name, out.data, line);
    if (rc == 0 && strcmp(out.data, dt_json_text(expected)) != 0)
        fail_msg("%s: '%s' is not '%s'", name, out.data, dt_json_text(expected));
    if (rc < 0 && expected)
        print_message("%s\n", err.text);
    n->equal += rc == 0;
    n->failed += rc < 0 && expected == NULL;
    n->refused += rc < 0 && expected;
    json_object_put(row);
    dt_buffer_release(&out);
}

static void compare_file(const char *directory, const char *name, struct counts *n)
{
    char *path = dt_path_join(directory, name), *answers = dt_asprintf("%s.jsonl", path);
    char *text, *lines, *rest;
    size_t size;
    struct dt_template *t;
    assert_int_equal(dt_file_read(path, MOST, &text, &size, &err), 0);
    assert_int_equal(dt_file_read(answers, MOST, &lines, &(size_t){0}, &err), 0);
    if (dt_template_parse(&t, text, size, name, &err) == 0) {
        for (char *l = strtok_r(lines, "\n", &rest); l; l = strtok_r(NULL, "\n", &rest))
            compare(t, name, l, n);
        dt_template_free(t);
    } else if (strstr(lines, "\"text\": \"")) { /* transformers rendered one */
        fail_msg("%s", err.text);
    }
    free(path);
    free(answers);
    free(text);
    free(lines);
}

static void conversations_are_those_of_transformers(void **state)
{
    const char *directory = getenv("DT_TEMPLATES");
    struct counts n = {0};
    (void)state;
    if (directory == NULL)
        skip();
    setenv("TZ", "UTC", 1);
    tzset();
    DIR *d = opendir(directory);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        if (strlen(e->d_name) > 6 && strcmp(e->d_name + strlen(e->d_name) - 6, ".jinja") == 0)
            compare_file(directory, e->d_name, &n);
    closedir(d);
    print_message("%ld equal, %ld errors of both, %ld refused\n", n.equal, n.failed, n.refused);
    assert_true(n.equal > 0);
    assert_int_equal(n.refused, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(conversations_are_those_of_transformers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
