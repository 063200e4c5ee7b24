/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json/config.h"

struct object {
    long steps, any;
    double rate;
    bool shuffle;
    int color;
    char name[DT_SETTING_STRING_SIZE];
    struct dt_config_amount pause;
};

#define AT(field) offsetof(struct object, field)

static const char *const colors[] = {"red", "green", NULL};
static const char *const paints[] = {"true", "red", "none", "green", NULL};
static const char *const units[] = {"steps", "epochs", NULL};
static const struct dt_setting schema[] = {
    {"run.steps", DT_SETTING_INT, AT(steps), "1000", 1, 1e6},
    {"run.any", DT_SETTING_INT, AT(any), "-5"},
    {"run.step_count", DT_SETTING_ALIAS, .initial = "run.any"},
    {"run.rate", DT_SETTING_REAL, AT(rate), "6e-4", 0, 1},
    {"run.shuffle", DT_SETTING_BOOL, AT(shuffle), "true"},
    {"look.color", DT_SETTING_CHOICE, AT(color), "green", .choices = colors},
    {"look.name", DT_SETTING_STRING, AT(name), "it's"},
    {"look.pause", DT_SETTING_AMOUNT, AT(pause), "10", 0.5, 1e9, .choices = units},
    {"look.paint", DT_SETTING_ALIAS, .initial = "look.color", .words = paints},
    {"other.pace", DT_SETTING_ALIAS, .initial = "run.rate"},
    {"other.wheels", DT_SETTING_FIXED, .initial = "4", .advice = "build another car"},
    {NULL},
};

static struct dt_error err;
static const char path[] = "config.yaml";

static int read_text(const char *text, struct object *o)
{
    memset(o, 0, sizeof *o);
    dt_config_defaults(schema, o);
    write_bytes(path, text, strlen(text));
    return dt_config_read(schema, o, path, &err);
}

/* The file is refused with "PATH:" and message. */
static void assert_refused(const char *text, const char *message)
{
    struct object o;
    char wanted[DT_ERROR_TEXT];
    snprintf(wanted, sizeof wanted, "%s:%s", path, message);
    if (read_text(text, &o) >= 0)
        fail_msg("accepted: %s", text);
    assert_string_equal(err.text, wanted);
}

/* As assert_refused, but the message only begins so. */
static void assert_refused_at(const char *text, const char *place)
{
    struct object o;
    if (read_text(text, &o) != DT_EFORMAT)
        fail_msg("accepted: %s", text);
    assert_int_equal(strncmp(err.text, path, strlen(path)), 0);
    assert_int_equal(strncmp(err.text + strlen(path), place, strlen(place)), 0);
}

static void defaults_are_those_of_the_schema(void **state)
{
    (void)state;
    struct object o;
    dt_config_defaults(schema, &o);
    assert_int_equal(o.steps, 1000);
    assert_int_equal(o.any, -5);
    assert_true(o.rate == 6e-4);
    assert_true(o.shuffle);
    assert_int_equal(o.color, 1);
    assert_string_equal(o.name, "it's");
}

static void files_change_what_they_name(void **state)
{
    (void)state;
    struct object o;
    assert_int_equal(read_text("# one\nrun:\n  steps: 2k\n  rate: .5\n  shuffle: false\n"
                               "look: {color: 'red', name: \"a \\\"b\\\" 'c'\"}\n",
                               &o),
                     0);
    assert_int_equal(o.steps, 2000);
    assert_int_equal(o.any, -5);
    assert_true(o.rate == 0.5);
    assert_false(o.shuffle);
    assert_int_equal(o.color, 0);
    assert_string_equal(o.name, "a \"b\" 'c'");
}

static void amounts_have_units(void **state)
{
    (void)state;
    const struct {
        const char *text;
        double count;
        int unit;
        const char *printed;
    } rows[] = {{"7", 7, 0, "7"},
                {"1.5k", 1500, 0, "1500"},
                {"2k steps", 2000, 0, "2000"},
                {"1 epoch", 1, 1, "1 epochs"},
                {"0.5epochs", 0.5, 1, "0.5 epochs"},
                {"10M  epochs", 10e6, 1, "10000000 epochs"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct object o;
        struct dt_buffer text = DT_BUFFER_EMPTY, printed = DT_BUFFER_EMPTY;
        dt_buffer_printf(&text, "look:\n  pause: %s\n", rows[i].text);
        assert_int_equal(read_text(text.data, &o), 0);
        assert_true(o.pause.count == rows[i].count);
        assert_int_equal(o.pause.unit, rows[i].unit);
        dt_config_print_value(dt_config_assigned(schema, "look.pause"), &o, &printed);
        assert_string_equal(printed.data, rows[i].printed);
        dt_buffer_release(&text);
        dt_buffer_release(&printed);
    }
    assert_refused("look:\n  pause: 7 miles\n", "2:10: look.pause must be a number, or one "
                                                "followed by steps, epochs, not '7 miles'");
    assert_refused("look:\n  pause: epochs\n", "2:10: look.pause must be a number, or one "
                                               "followed by steps, epochs, not 'epochs'");
    assert_refused("look:\n  pause: 0.1 epochs\n",
                   "2:10: look.pause must be from 0.5 to 1000000000, not '0.1 epochs'");
}

static void files_that_say_nothing_change_nothing(void **state)
{
    (void)state;
    const char *texts[] = {"", "\n", "# no more\n", "run:\n", "run:\nlook:\n", "run: {}\n"};
    struct object o, initial;
    memset(&initial, 0, sizeof initial);
    dt_config_defaults(schema, &initial);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(read_text(texts[i], &o), 0);
        assert_null(dt_config_difference(schema, &o, &initial));
    }
}

static void unknown_names_are_named_with_the_likely_one(void **state)
{
    (void)state;
    assert_refused("run:\n  step: 1\n", "2:3: unknown key 'run.step': did you mean 'run.steps'?");
    assert_refused("run:\n  anyt: 1\n", "2:3: unknown key 'run.anyt': did you mean 'run.any'?");
    assert_refused("run:\n  color: red\n",
                   "2:3: unknown key 'run.color': did you mean 'look.color'?");
    assert_refused("run:\n  sc: 1\n", "2:3: unknown key 'run.sc': did you mean 'run.step_count'?");
    assert_refused("run:\n  xylophone: 1\n", "2:3: unknown key 'run.xylophone'");
    assert_refused("rum:\n  steps: 1\n", "1:1: unknown section 'rum': did you mean 'run'?");
    assert_refused("look:\n  name: a\nzzzzzz:\n",
                   "3:1: unknown section 'zzzzzz': the sections are run, look, other");
    assert_refused("run.steps: 1\n",
                   "1:1: unknown section 'run.steps': the sections are run, look, other");
    assert_refused("color: 1\n", "1:1: unknown section 'color': did you mean 'look.color'?");
    assert_refused("'': 1\n", "1:1: unknown section '': the sections are run, look, other");
}

static void what_is_given_twice_is_refused(void **state)
{
    (void)state;
    assert_refused("run:\n  steps: 1\n  rate: 0\n  steps: 1\n",
                   "4:3: key 'run.steps' is given twice");
    assert_refused("run:\n  steps: 1\nlook:\n  name: x\nrun:\n  rate: 0\n",
                   "5:1: section 'run' is given twice");
    assert_refused("run:\nrun:\n", "2:1: section 'run' is given twice");
}

static void values_of_the_wrong_kind_are_refused(void **state)
{
    (void)state;
    assert_refused("run:\n  steps: four\n", "2:10: run.steps must be a whole number, not 'four'");
    assert_refused("run:\n  steps: 1.5\n", "2:10: run.steps must be a whole number, not '1.5'");
    assert_refused("run:\n  steps:\n", "2:9: run.steps must be a whole number, not ''");
    assert_refused("run:\n  steps: 0x10\n", "2:10: run.steps must be a whole number, not '0x10'");
    assert_refused("run:\n  rate: nan\n", "2:9: run.rate must be a number, not 'nan'");
    assert_refused("run:\n  rate: 1k\n", "2:9: run.rate must be a number, not '1k'");
    assert_refused("run:\n  shuffle: yes\n", "2:12: run.shuffle must be true or false, not 'yes'");
    assert_refused("look:\n  color: blue\n",
                   "2:10: look.color must be one of red, green, not 'blue'");
}

static void numbers_out_of_range_are_refused(void **state)
{
    (void)state;
    struct object o;
    assert_refused("run:\n  steps: 0\n", "2:10: run.steps must be from 1 to 1000000, not '0'");
    assert_refused("run:\n  steps: 2M\n", "2:10: run.steps must be from 1 to 1000000, not '2M'");
    assert_refused("run:\n  rate: -1e-9\n", "2:9: run.rate must be from 0 to 1, not '-1e-9'");
    assert_int_equal(read_text("run:\n  steps: 1M\n  any: -9G\n  rate: 1\n", &o), 0);
    assert_true(o.steps == 1000000 && o.any == -9000000000 && o.rate == 1);
}

static void quoted_numbers_and_truths_are_refused(void **state)
{
    (void)state;
    assert_refused("run:\n  steps: '5'\n",
                   "2:10: run.steps must be written without quotes, not '5'");
    assert_refused("run:\n  rate: \"0.5\"\n",
                   "2:9: run.rate must be written without quotes, not '0.5'");
    assert_refused("run:\n  shuffle: 'true'\n",
                   "2:12: run.shuffle must be written without quotes, not 'true'");
}

static void other_shapes_than_sections_of_keys_are_refused(void **state)
{
    (void)state;
    assert_refused("run\n", "1:1: 'section:' lines are needed here");
    assert_refused("- run\n", "1:1: 'section:' lines are needed here");
    assert_refused("run: 5\n", "1:6: a section holds 'key: value' lines");
    assert_refused("run: [steps]\n", "1:6: a section holds 'key: value' lines");
    assert_refused("run:\n  steps: [1]\n", "2:10: a single value is needed here");
    assert_refused("run:\n  steps: {a: 1}\n", "2:10: a single value is needed here");
    assert_refused("run:\n  [steps]: 1\n", "2:3: a key is needed here");
    assert_refused("[run]: 1\n", "1:1: a section name is needed here");
    assert_refused("run:\n  steps: 1\n---\nlook:\n", "3:1: a second document is not read");
}

static void anchors_aliases_tags_and_zero_bytes_are_refused(void **state)
{
    (void)state;
    assert_refused("run:\n  steps: &a 5\n", "2:10: anchors and tags are not read");
    assert_refused("run:\n  steps: !!str 5\n", "2:10: anchors and tags are not read");
    assert_refused("run:\n  !x steps: 5\n", "2:3: anchors and tags are not read");
    assert_refused("&r run:\n  steps: 5\n", "1:1: anchors and tags are not read");
    assert_refused("run: &r\n  steps: 5\n", "1:6: anchors and tags are not read");
    assert_refused("run: !r\n", "1:6: a section holds 'key: value' lines");
    assert_refused("--- &all\nrun:\n  steps: 5\n", "1:5: anchors and tags are not read");
    assert_refused("run:\n  steps: *a\n", "2:10: a single value is needed here");
    assert_refused("look:\n  name: \"a\\0b\"\n", "2:9: a text holds a zero byte");
}

static void broken_yaml_is_refused_with_its_place(void **state)
{
    (void)state;
    assert_refused_at("run: {steps: 1\n", ":2:1: ");
    assert_refused_at("run:\n\tsteps: 1\n", ":2:1: ");
    assert_refused_at("look:\n  name: 'a\n", ":3:1: ");
    assert_refused_at("look:\n  name: \xff\n", ":2:9: ");
    assert_refused_at("look:\n  name: a\x01\n", ":2:10: ");
}

static void texts_that_yaml_would_change_are_refused(void **state)
{
    (void)state;
    struct object o;
    char text[400], assignment[400];
    const char *message = "look.name must be written in ASCII, without control characters";
    const char *texts[] = {"look:\n  name: \"a\\nb\"\n", "look:\n  name: |\n    a\n",
                           "look:\n  name: \xc3\xa9\n", "look:\n  name: \"\\x7f\"\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(read_text(texts[i], &o), DT_EINVALID);
        assert_non_null(strstr(err.text, message));
    }
    memset(text, 'x', sizeof text);
    snprintf(assignment, sizeof assignment, "look.name=%.256s", text);
    assert_int_equal(dt_config_override(schema, &o, assignment, "--set", &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "look.name must be shorter"));
    assignment[strlen(assignment) - 1] = '\0';
    assert_int_equal(dt_config_override(schema, &o, assignment, "--set", &err), 0);
    assert_int_equal(strlen(o.name), DT_SETTING_STRING_SIZE - 1);
}

static void files_that_cannot_be_read_are_named(void **state)
{
    (void)state;
    struct object o;
    assert_true(dt_config_read(schema, &o, "no-such-file.yaml", &err) < 0);
    assert_non_null(strstr(err.text, "no-such-file.yaml"));
}

static void overrides_change_one_setting(void **state)
{
    (void)state;
    struct object o;
    dt_config_defaults(schema, &o);
    assert_int_equal(dt_config_override(schema, &o, "run.steps=5k", "--set", &err), 0);
    assert_int_equal(dt_config_override(schema, &o, "look.name=a=b", "--set", &err), 0);
    assert_int_equal(dt_config_override(schema, &o, "look.color=red", "--set", &err), 0);
    assert_int_equal(o.steps, 5000);
    assert_string_equal(o.name, "a=b");
    assert_int_equal(o.color, 0);
    assert_int_equal(dt_config_override(schema, &o, "look.name=", "--set", &err), 0);
    assert_string_equal(o.name, "");
}

static void assert_override_refused(const char *assignment, const char *message)
{
    struct object o;
    dt_config_defaults(schema, &o);
    assert_int_equal(dt_config_override(schema, &o, assignment, "--set", &err), DT_EINVALID);
    assert_string_equal(err.text, message);
}

static void bad_overrides_are_named(void **state)
{
    (void)state;
    assert_override_refused("run.steps", "--set takes section.key=value, not 'run.steps'");
    assert_override_refused("run.stepz=1",
                            "--set: unknown key 'run.stepz': did you mean 'run.steps'?");
    assert_override_refused("stepz=1", "--set: unknown key 'stepz': a key is SECTION.NAME");
    assert_override_refused("sc=1", "--set: unknown key 'sc': did you mean 'run.step_count'?");
    assert_override_refused("looks.xylophone=1",
                            "--set: unknown section 'looks': did you mean 'look'?");
    assert_override_refused("=1", "--set: unknown key '': a key is SECTION.NAME");
    assert_override_refused("run.steps=", "--set: run.steps must be a whole number, not ''");
    assert_override_refused("run.steps='5'", "--set: run.steps must be a whole number, not ''5''");
    assert_override_refused("look.pause= epochs", "--set: look.pause must be a number, or one "
                                                  "followed by steps, epochs, not ' epochs'");
    assert_override_refused("run.rate=2", "--set: run.rate must be from 0 to 1, not '2'");
}

static void printed_settings_read_back_the_same(void **state)
{
    (void)state;
    const double rates[] = {6e-4, 0.1, 1.0 / 3, 1e-300, 0.30000000000000004, 1};
    const char *names[] = {"", "it's", "''", "\"", "a: b # c", "- x", "true", "5", " ", "\\n", "%"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct object o, back;
        struct dt_buffer yaml = DT_BUFFER_EMPTY;
        dt_config_defaults(schema, &o);
        o.rate = rates[i % (sizeof rates / sizeof *rates)];
        o.shuffle = i % 2;
        o.any = 1L << 53;
        snprintf(o.name, sizeof o.name, "%s", names[i]);
        dt_config_print(schema, &o, &yaml);
        assert_int_equal(read_text(yaml.data, &back), 0);
        assert_null(dt_config_difference(schema, &o, &back));
        assert_true(back.rate == o.rate && back.any == o.any && back.shuffle == o.shuffle);
        assert_string_equal(back.name, o.name);
        dt_buffer_release(&yaml);
    }
}

static void settings_print_as_people_write_them(void **state)
{
    (void)state;
    struct object o;
    struct dt_buffer yaml = DT_BUFFER_EMPTY;
    dt_config_defaults(schema, &o);
    dt_config_print(schema, &o, &yaml);
    assert_string_equal(yaml.data,
                        "run:\n  steps: 1000\n  any: -5\n  rate: 0.0006\n"
                        "  shuffle: true\nlook:\n  color: green\n  name: 'it''s'\n  pause: 10\n");
    dt_buffer_release(&yaml);
}

static void the_first_difference_is_found(void **state)
{
    (void)state;
    struct object a, b;
    dt_config_defaults(schema, &a);
    dt_config_defaults(schema, &b);
    assert_null(dt_config_difference(schema, &a, &b));
    b.color = 0;
    assert_string_equal(dt_config_difference(schema, &a, &b)->name, "look.color");
    b.rate = 6.0000000000000016e-4; /* the last bits */
    assert_string_equal(dt_config_difference(schema, &a, &b)->name, "run.rate");
}

static void aliases_set_what_they_stand_for(void **state)
{
    (void)state;
    struct object o;
    assert_int_equal(read_text("look:\n  paint: true\nother:\n  pace: 0.5\n  wheels: 4\n", &o), 0);
    assert_int_equal(o.color, 0);
    assert_true(o.rate == 0.5);
    assert_int_equal(dt_config_override(schema, &o, "look.paint=none", "--set", &err), 0);
    assert_int_equal(o.color, 1);
    assert_int_equal(dt_config_override(schema, &o, "look.paint=red", "--set", &err), 0);
    assert_int_equal(o.color, 0);
    assert_int_equal(read_text("run:\n  rate: 0.5\nother:\n  pace: 0.25\n", &o), DT_EINVALID);
    assert_non_null(strstr(err.text, ":4:9: other.pace is 0.25, but was given as 0.5 before"));
    assert_int_equal(read_text("run:\n  rate: 0.5\nother:\n  pace: 0.5\n", &o), 0);
    assert_int_equal(read_text("look:\n  paint: false\n", &o), DT_EINVALID);
    assert_non_null(strstr(err.text, "look.color must be one of red, green, not 'false'"));
}

static void a_fixed_setting_takes_one_value_and_says_what_to_do(void **state)
{
    (void)state;
    struct object o;
    assert_int_equal(read_text("other:\n  wheels: 3\n", &o), DT_EINVALID);
    assert_non_null(strstr(err.text, ":2:11: other.wheels can only be 4: build another car"));
    assert_int_equal(dt_config_override(schema, &o, "other.wheels=4", "--set", &err), 0);
}

/* Settings without a default, of sections whose names have one length, and an alias of a fixed one.
 */
static const struct dt_setting others[] = {
    {"aa.user_name", DT_SETTING_STRING, AT(name)},
    {"aa.steps", DT_SETTING_INT, AT(steps)},
    {"bb.color", DT_SETTING_CHOICE, AT(color), .choices = colors, .advice = "ask a painter"},
    {"bb.wheels", DT_SETTING_FIXED, .initial = "4", .advice = "build another car"},
    {"bb.tires", DT_SETTING_ALIAS, .initial = "bb.wheels"},
    {NULL},
};

static void settings_may_have_no_default(void **state)
{
    (void)state;
    struct object o = {.steps = 5};
    struct dt_buffer yaml = DT_BUFFER_EMPTY;
    dt_config_defaults(others, &o);
    strcpy(o.name, "x");
    o.steps = 7;
    write_bytes(path, "bb: {wheels: 4, tires: 4}", 25);
    assert_int_equal(dt_config_read(others, &o, path, &err), 0);
    dt_config_print(others, &o, &yaml);
    assert_string_equal(yaml.data, "aa:\n  user_name: 'x'\n  steps: 7\nbb:\n  color: red\n");
    dt_buffer_release(&yaml);
    assert_int_equal(dt_config_override(others, &o, "bb.color=blue", "--set", &err), DT_EINVALID);
    assert_string_equal(err.text,
                        "--set: bb.color must be one of red, green, not 'blue': ask a painter");
    assert_int_equal(dt_config_override(others, &o, "aa.u=x", "--set", &err), DT_EINVALID);
    assert_string_equal(err.text, "--set: unknown key 'aa.u'");
}

/* Of many sections too, the likely one is named. */
static void sections_have_no_small_limit(void **state)
{
    static const char *const names[] = {"a.x", "b.x", "c.x",  "d.x",  "e.x",   "f.x",
                                        "g.x", "h.x", "ii.x", "jj.x", "last.x"};
    struct dt_setting many[sizeof names / sizeof *names + 1] = {{NULL}};
    struct object o;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        many[i] = (struct dt_setting){names[i], DT_SETTING_INT, AT(steps), "1"};
    dt_config_defaults(many, &o);
    write_bytes(path, "lats:\n  x: 1\n", 13);
    assert_int_equal(dt_config_read(many, &o, path, &err), DT_EINVALID);
    assert_string_equal(err.text, "config.yaml:1:1: unknown section 'lats': did you mean 'last'?");
}

/* Where each part of a document breaks off. */
static void broken_yaml_is_found_at_each_event(void **state)
{
    static const char *const cases[][2] = {
        {"%YAML x\n", ":1:"},
        {"---\n@x\n", ":2:1: "},
        {"run:\n  steps: 5\n@x: 1\n", ":3:1: "},
        {"{run:\n {steps: 5}\n@\n", ":3:1: "},
        {"{run:\n {steps: 5}}\n@\n", ":3:1: "},
        {"run:\n  steps: 5\n...\n@\n", ":4:1: "},
        {"run: !!map {steps: 5}\n", ":1:6: anchors and tags are not read"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused_at(cases[i][0], cases[i][1]);
}

static void words_for_shells_have_the_values_of_choices(void **state)
{
    struct dt_buffer words = DT_BUFFER_EMPTY;
    struct object o;
    (void)state;
    dt_config_add_words(schema, &words);
    assert_string_equal(words.data, "run.steps= run.any= run.rate= run.shuffle=true "
                                    "run.shuffle=false look.color=red look.color=green look.name= "
                                    "look.pause=");
    dt_buffer_release(&words);
    assert_true(read_text("GGUF", &o) < 0);
    if (strstr(err.text, "GGUF") == NULL)
        fail_msg("%s", err.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_for_shells_have_the_values_of_choices),
        cmocka_unit_test(defaults_are_those_of_the_schema),
        cmocka_unit_test(settings_may_have_no_default),
        cmocka_unit_test(sections_have_no_small_limit),
        cmocka_unit_test(broken_yaml_is_found_at_each_event),
        cmocka_unit_test(files_change_what_they_name),
        cmocka_unit_test(amounts_have_units),
        cmocka_unit_test(files_that_say_nothing_change_nothing),
        cmocka_unit_test(unknown_names_are_named_with_the_likely_one),
        cmocka_unit_test(what_is_given_twice_is_refused),
        cmocka_unit_test(values_of_the_wrong_kind_are_refused),
        cmocka_unit_test(numbers_out_of_range_are_refused),
        cmocka_unit_test(quoted_numbers_and_truths_are_refused),
        cmocka_unit_test(other_shapes_than_sections_of_keys_are_refused),
        cmocka_unit_test(anchors_aliases_tags_and_zero_bytes_are_refused),
        cmocka_unit_test(broken_yaml_is_refused_with_its_place),
        cmocka_unit_test(texts_that_yaml_would_change_are_refused),
        cmocka_unit_test(files_that_cannot_be_read_are_named),
        cmocka_unit_test(overrides_change_one_setting),
        cmocka_unit_test(bad_overrides_are_named),
        cmocka_unit_test(printed_settings_read_back_the_same),
        cmocka_unit_test(settings_print_as_people_write_them),
        cmocka_unit_test(the_first_difference_is_found),
        cmocka_unit_test(aliases_set_what_they_stand_for),
        cmocka_unit_test(a_fixed_setting_takes_one_value_and_says_what_to_do),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
