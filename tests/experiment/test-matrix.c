/* SPDX-License-Identifier: MIT */
#include "json-of.h"
#include "scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment/energy.h"
#include "experiment/grid.h"
#include "experiment/matrix.h"
#include "experiment/readings.h"

static struct dt_matrix open_matrix(const char *design)
{
    struct dt_matrix m;
    struct dt_error err;
    if (dt_matrix_init(&m, json_of(design), "design", &err) < 0)
        fail_msg("%s", err.text);
    return m;
}

static void assert_refused(const char *design, const char *why)
{
    struct dt_matrix m;
    struct dt_error err;
    assert_true(dt_matrix_init(&m, json_of(design), "design", &err) < 0);
    if (strstr(err.text, why) == NULL)
        fail_msg("'%s' does not say '%s'", err.text, why);
}

/* The words of a cell's command between bars. */
static char *words_of(const struct dt_matrix *m, int cell, long round)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    char **words = dt_matrix_words(m, cell, round);
    for (int i = 0; words[i]; i++)
        dt_buffer_printf(&b, "%s|", words[i]);
    dt_matrix_free_words(words);
    return b.data;
}

static void assert_words(const struct dt_matrix *m, int cell, long round, const char *expected)
{
    char *words = words_of(m, cell, round);
    assert_string_equal(words, expected);
    free(words);
}

static void cells_are_all_combinations_and_words_are_filled(void **state)
{
    (void)state;
    struct dt_matrix m =
        open_matrix("{\"command\":[\"x\",\"a={a}\",\"{b:words}\",\"{seed}{{{{a}}-{round}{ b}\"],"
                    "\"axes\":{\"a\":[\"1\",\"2\"],\"b\":[\"\",\"p q\"]},"
                    "\"seed\":\"5\"}");
    assert_int_equal(m.cell_count, 4);
    assert_words(&m, 0, 1, "x|a=1|5{{{a}-1{ b}|");
    assert_words(&m, 3, 2, "x|a=2|p|q|6{{{a}-2{ b}|");
    struct dt_buffer name = DT_BUFFER_EMPTY;
    dt_matrix_name(&m, 3, &name);
    assert_string_equal(name.data, "a=2,b=p q");
    dt_buffer_release(&name);
    for (int cell = 0; cell < 4; cell++) {
        struct json_object *object = dt_matrix_cell(&m, cell);
        assert_int_equal(dt_matrix_find(&m, object), cell);
        json_object_put(object);
    }
    dt_matrix_release(&m);
}

static void a_value_cannot_leave_its_word_in_a_shell(void **state)
{
    (void)state;
    struct dt_matrix m = open_matrix("{\"command\":\"echo {a} $HOME\",\"shell\":\"true\","
                                     "\"axes\":{\"a\":[\"1'; rm x\"]}}");
    assert_words(&m, 0, 1, "sh|-c|echo '1'\\''; rm x' $HOME|");
    dt_matrix_release(&m);
    m = open_matrix("{\"command\":\"echo {a:words} $HOME\",\"shell\":\"true\","
                    "\"axes\":{\"a\":[\"-x 1; rm  *\",\"\"]}}");
    assert_words(&m, 0, 1, "sh|-c|echo '-x' '1;' 'rm' '*' $HOME|");
    assert_words(&m, 1, 1, "sh|-c|echo  $HOME|");
    dt_matrix_release(&m);
}

static void the_baseline_shares_the_other_axes(void **state)
{
    (void)state;
    struct dt_matrix m = open_matrix("{\"command\":\"x {a} {b}\",\"axes\":{\"a\":[\"1\",\"2\"],"
                                     "\"b\":[\"p\",\"q\"]},\"baseline\":{\"b\":\"q\"}}");
    assert_int_equal(dt_matrix_baseline(&m, 0), 1);
    assert_int_equal(dt_matrix_baseline(&m, 2), 3);
    assert_int_equal(dt_matrix_baseline(&m, 3), 3);
    dt_matrix_release(&m);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    assert_refused("{\"comand\":\"x\"}", "did you mean 'command'");
    assert_refused("{\"axes\":{\"a\":[\"1\"]}}", "command is missing");
    assert_refused("{\"command\":\"x {b}\",\"axes\":{\"a\":[\"1\"]}}", "{b} is not an axis");
    assert_refused("{\"command\":\"x\",\"axes\":{\"a\":[\"1\"]}}", "does not use {a}");
    assert_refused("{\"command\":\"x {a}\",\"axes\":{\"a\":[\"1\",\"1\"]}}", "'1' twice");
    assert_refused("{\"command\":\"x\",\"repeats\":\"0\"}", "repeats");
    assert_refused("{\"command\":\"x {a}\",\"axes\":{\"a\":[\"1\"]},\"baseline\":{\"a\":\"2\"}}",
                   "does not have the value '2'");
    assert_refused("{\"command\":\"x {seed}\",\"axes\":{\"seed\":[\"1\"]}}",
                   "not a valid axis name");
    assert_refused("{\"command\":\"x\",\"repeats\":\"1000001\"}", "from 1 to 1000000");
    assert_refused("{\"command\":\"x\",\"targets\":{\"loss\":\"2\"}}", "targets need metrics");
    assert_refused("{\"command\":\"x\",\"metrics\":\"m\",\"targets\":{\"loss\":\"low\"}}",
                   "target of loss must be a number, not 'low'");
    assert_refused("[]", "must be a mapping");
    assert_refused("{\"command\":\"x\",\"repeats\":[\"2\",\"3\"]}",
                   "repeats must be a text, not [");
    assert_refused("{\"command\":\"x\",\"limit\":{\"s\":\"3\"}}", "limit must be a text, not {");
    assert_refused("{\"command\":\"x\",\"seed\":3}", "seed must be a text, not 3");
    assert_refused("{\"command\":\"x\",\"metrics\":\"m\",\"targets\":{\"loss\":[\"3\",\"2\"]}}",
                   "target of loss must be a number");
    assert_refused(
        "{\"command\":\"x {a}\",\"axes\":{\"a\":[\"1\",\"2\"]},\"baseline\":{\"a\":[\"1\"]}}",
        "baseline: axis a does not have the value");
}

static void a_matrix_continues_with_more_values_but_not_another_command(void **state)
{
    (void)state;
    struct json_object *a = json_of("{\"command\":\"x {a}\",\"axes\":{\"a\":[\"1\"]}}");
    struct json_object *b =
        json_of("{\"command\":\"x {a}\",\"axes\":{\"a\":[\"1\",\"2\"]},\"repeats\":\"9\"}");
    struct json_object *c = json_of("{\"command\":\"y {a}\",\"axes\":{\"a\":[\"1\"]}}");
    struct json_object *d = json_of("{\"command\":\"x {a}\",\"axes\":{\"b\":[\"1\"]}}");
    const char *why;
    assert_true(dt_matrix_continues(a, b, &why));
    assert_false(dt_matrix_continues(a, c, &why));
    assert_string_equal(why, "command");
    assert_false(dt_matrix_continues(a, d, &why));
    assert_string_equal(why, "axes");
    json_object_put(a);
    json_object_put(b);
    json_object_put(c);
    json_object_put(d);
}

static void a_default_that_is_left_out_is_the_same_matrix(void **state)
{
    (void)state;
    static const char *const left_out = "{\"command\":\"x\"}";
    static const struct {
        const char *json;
        bool continues;
    } cases[] = {{"{\"command\":\"x\",\"seed\":\"1\"}", true},
                 {"{\"command\":\"x\",\"warmup\":\"1\"}", true},
                 {"{\"command\":\"x\",\"shell\":\"false\"}", true},
                 {"{\"command\":\"x\",\"seed\":\"2\"}", false},
                 {"{\"command\":\"x\",\"warmup\":\"0\"}", false},
                 {"{\"command\":\"x\",\"shell\":\"true\"}", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json_object *a = json_of(left_out), *b = json_of(cases[i].json);
        const char *why;
        assert_int_equal(dt_matrix_continues(a, b, &why), cases[i].continues);
        assert_int_equal(dt_matrix_continues(b, a, &why), cases[i].continues);
        json_object_put(a);
        json_object_put(b);
    }
}

static void assert_reads(const char *text, const char *expected)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    struct json_object *values = dt_json_new_object();
    dt_buffer_add_string(&b, text);
    dt_readings_add_output(values, &b);
    assert_string_equal(dt_json_text(values), expected);
    json_object_put(values);
    dt_buffer_release(&b);
}

static void numbers_are_found_in_what_a_command_prints(void **state)
{
    (void)state;
    assert_reads("{\"a\":1.5,\"b\":{\"c\":2.5},\"d\":\"e\"}", "{\"a\":1.5,\"b.c\":2.5}");
    assert_reads("{\n \"a\": 1.5\n}\n", "{\"a\":1.5}");
    assert_reads("hello\n{\"a\":1.5}\n{\"a\":2.5}\nbye\n", "{\"a\":2.5}");
    assert_reads("", "{}");
    assert_reads("1 2 3\n", "{}");
    assert_reads("{\"a\":NaN}", "{}");
    assert_reads("{\"a\":1e400,\"b\":null,\"c\":2.5}", "{\"c\":2.5}");
}

static void a_grid_prints_aligned_markdown_and_tabs(void **state)
{
    (void)state;
    const char *const texts[] = {"name", "n", "a|b", "1", "c\td", "12.5"};
    struct dt_grid g = {.columns = 2};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    for (int i = 0; i < 6; i++)
        dt_grid_add(&g, texts[i]);
    dt_grid_print(&g, DT_GRID_TEXT, &out);
    assert_string_equal(out.data, "name     n\na|b      1\nc d   12.5\n");
    dt_buffer_clear(&out);
    dt_grid_print(&g, DT_GRID_MARKDOWN, &out);
    assert_string_equal(out.data, "| name |    n |\n| ---- | ---: |\n| a\\|b  |    1 |\n"
                                  "| c d  | 12.5 |\n");
    dt_buffer_clear(&out);
    dt_grid_print(&g, DT_GRID_TSV, &out);
    assert_string_equal(out.data, "name\tn\na|b\t1\nc d\t12.5\n");
    dt_buffer_release(&out);
    dt_grid_release(&g);
    char text[DT_SHORT_NUMBER];
    assert_string_equal(dt_grid_number(0.012345, text), "0.01235");
    assert_string_equal(dt_grid_number(1234567, text), "1.235M");
    assert_string_equal(dt_grid_number(99999, text), "100k");
    assert_string_equal(dt_grid_number(2.5e21, text), "2500E");
    assert_string_equal(dt_grid_number(-1.2345e25, text), "-1.234e+25");
    assert_string_equal(dt_grid_number(INFINITY, text), "inf");
}

static void a_wide_grid_is_broken(void **state)
{
    (void)state;
    char wide[41];
    memset(wide, 'w', 40);
    wide[40] = '\0';
    const char *const texts[] = {"n", wide, "part", wide, "part", "1", "2", "3", "4", "5"};
    struct dt_grid g = {.columns = 5, .leading = 1, .together = 2};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    for (int i = 0; i < 10; i++)
        dt_grid_add(&g, texts[i]);
    dt_grid_print(&g, DT_GRID_TEXT, &out);
    char *expected = dt_asprintf("  n  %s  part\n  1  %40s  %4s\n\n  n  %s  part\n  1  %40s  %4s\n",
                                 wide, "2", "3", wide, "4", "5");
    assert_string_equal(out.data, expected);
    free(expected);
    g.together = 0;
    dt_buffer_clear(&out);
    dt_grid_print(&g, DT_GRID_TEXT, &out);
    assert_null(strstr(out.data, "\n\n"));
    dt_buffer_release(&out);
    dt_grid_release(&g);
}

/* A sysfs of our own: two packages, one of which begins again. */
static void energy_is_read_over_a_counter_that_wraps(void **state)
{
    (void)state;
    struct dt_energy e;
    assert_int_equal(
        system("mkdir -p sys/class/powercap/intel-rapl:0 sys/class/powercap/intel-rapl:1 && "
               "cd sys/class/powercap && echo 5000000 >intel-rapl:0/energy_uj && "
               "echo 9000000 >intel-rapl:1/energy_uj && "
               "echo 10000000 >intel-rapl:1/max_energy_range_uj"),
        0);
    dt_energy_begin(&e, ".");
    assert_int_equal(system("cd sys/class/powercap && echo 6500000 >intel-rapl:0/energy_uj && "
                            "echo 1000000 >intel-rapl:1/energy_uj"),
                     0);
    assert_true(dt_energy_end(&e) > 3.4999 && dt_energy_end(&e) < 3.5001);
    assert_int_equal(system("rm -r sys"), 0);
    dt_energy_begin(&e, ".");
    assert_true(dt_energy_end(&e) != dt_energy_end(&e)); /* NAN */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_all_combinations_and_words_are_filled),
        cmocka_unit_test(a_value_cannot_leave_its_word_in_a_shell),
        cmocka_unit_test(the_baseline_shares_the_other_axes),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(a_matrix_continues_with_more_values_but_not_another_command),
        cmocka_unit_test(a_default_that_is_left_out_is_the_same_matrix),
        cmocka_unit_test(numbers_are_found_in_what_a_command_prints),
        cmocka_unit_test(a_grid_prints_aligned_markdown_and_tabs),
        cmocka_unit_test(a_wide_grid_is_broken),
        cmocka_unit_test_setup_teardown(energy_is_read_over_a_counter_that_wraps, enter_scratch,
                                        leave_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
