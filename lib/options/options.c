/* SPDX-License-Identifier: MIT */
#include "options/options.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/program.h"
#include "base/version.h"
#include "options/command-line.h"
#include "options/completion.h"
#include "options/options-internal.h"

#define MAX_OPTIONS 64

static bool given[MAX_OPTIONS]; /* options given, by index in the table */

static const char *described(const struct dt_option *o)
{
    static char text[64];
    snprintf(text, sizeof text, "--%s", o->name);
    return text;
}

static void check_range(const struct dt_option *o, double x, const char *text)
{
    bool any = o->min == 0 && o->max == 0;
    double limit = o->kind == DT_OPTION_INT ? DT_PROGRAM_MAX_INT : HUGE_VAL;
    double min = any ? -limit : o->min, max = any ? limit : fmin(o->max, limit);
    if (x < min || x > max)
        dt_program_usage("%s takes a number from %.16g to %.16g, not '%s'", described(o), min, max,
                         text);
}

static void set_int(const struct dt_option *o, const char *text)
{
    double x;
    if (dt_program_parse_whole(text, &x) < 0)
        dt_program_usage("%s takes a whole number, such as 5000, 64k, 10M or 1G, not '%s'",
                         described(o), text);
    check_range(o, x, text);
    *(long *)o->value = (long)x;
}

static void set_choice(const struct dt_option *o, const char *text)
{
    for (int i = 0; o->choices[i]; i++) {
        if (*text && strcmp(o->choices[i], text) == 0) {
            *(int *)o->value = i;
            return;
        }
    }
    struct dt_buffer all = DT_BUFFER_EMPTY;
    for (int i = 0; o->choices[i]; i++)
        if (*o->choices[i]) /* "" stands for no option */
            dt_buffer_printf(&all, "%s%s", all.size > 0 ? ", " : "", o->choices[i]);
    dt_program_usage("%s takes one of %s, not '%s'", described(o), all.data, text);
}

static void add_to_list(struct dt_string_list *list, const char *text)
{
    DT_GROW(list->items, list->count, list->capacity);
    list->items[list->count++] = text;
}

static void set_option(const struct dt_option *o, const char *text)
{
    switch (o->kind) {
    case DT_OPTION_FLAG:
        *(bool *)o->value = true;
        break;
    case DT_OPTION_STRING:
        *(const char **)o->value = text;
        break;
    case DT_OPTION_INT:
        set_int(o, text);
        break;
    case DT_OPTION_REAL:
        if (dt_program_parse_real(text, o->value) < 0)
            dt_program_usage("%s takes a number, not '%s'", described(o), text);
        check_range(o, *(double *)o->value, text);
        break;
    case DT_OPTION_CHOICE:
        set_choice(o, text);
        break;
    case DT_OPTION_LIST:
        add_to_list(o->value, text);
        break;
    }
}

/* Output paths and thread counts are not recorded: equal results must be equal bytes. */
static bool changes_result(const struct dt_option *o)
{
    static const char *const without[] = {"output", "threads", "quiet"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (strcmp(o->name, without[i]) == 0)
            return false;
    return true;
}

static void remember_option(const struct dt_option *o, const char *value)
{
    char name[64];
    if (!changes_result(o))
        return;
    snprintf(name, sizeof name, "--%s", o->name);
    dt_command_add_argument(name);
    if (value)
        dt_command_add_argument(value);
}

enum { SHORTLESS = 1000, HELP = 'h', VERSION = 2000, LONG_HELP };

/* Usage error if name is a prefix of two or more option names. */
static void reject_ambiguous(const char *name, const char *const *names)
{
    struct dt_buffer fitting = DT_BUFFER_EMPTY;
    int count = 0;
    for (; *names; names++)
        if (strncmp(*names, name, strlen(name)) == 0)
            dt_buffer_printf(&fitting, "%s--%s", count++ ? ", " : "", *names);
    if (count > 1)
        dt_program_usage("option '--%s' could be one of %s", name, fitting.data);
    dt_buffer_release(&fitting);
}

/* The length of a setting's KEY at the head of "SECTION.KEY= ..." if the name of an option is it,
 * with or without the section; else 0. */
static size_t match_setting(const char *word, const char *name)
{
    const size_t length = strcspn(word, "= ");
    const char *dot = memchr(word, '.', length);
    const char *key = dot && strchr(name, '.') == NULL ? dot + 1 : word;
    size_t i = 0;
    while (name[i] && (key[i] == name[i] || (key[i] == '_' && name[i] == '-')))
        i++;
    return name[i] == '\0' && key + i == word + length ? length : 0;
}

/* Usage error if NAME is a setting, which --set changes. next: the argument after it, or NULL. */
static void reject_setting(const struct dt_command *c, const char *name, const char *next)
{
    struct dt_buffer words = DT_BUFFER_EMPTY;
    const char *value = next && *next != '-' ? next : "VALUE";
    for (const struct dt_option *o = c->options; o->name; o++)
        if (strcmp(o->name, "set") == 0 && o->words)
            o->words(&words);
    for (const char *word = words.data; word && *word; word += strspn(word, " ")) {
        const size_t length = match_setting(word, name);
        if (length > 0)
            dt_program_usage("unknown option '--%s': did you mean '--set %.*s=%s'?", name,
                             (int)length, word, value);
        word += strcspn(word, " ");
    }
    dt_buffer_release(&words);
}

static void reject_unknown(const struct dt_command *c, const char *word, const char *next)
{
    const char *names[MAX_OPTIONS + 3] = {"help", "version"};
    for (int i = 0; c->options[i].name; i++)
        names[i + 2] = c->options[i].name;
    if (optopt >= SHORTLESS)
        dt_program_usage("option '%.*s' takes no value", (int)strcspn(word, "="), word);
    if (optopt != 0)
        dt_program_usage("unknown option '-%c'", optopt);
    char *name = dt_strndup(word + 2, strcspn(word + 2, "="));
    reject_ambiguous(name, names);
    const char *assigned = strchr(word, '=');
    reject_setting(c, name, assigned ? assigned + 1 : next);
    const char *near = dt_program_did_you_mean(name, names);
    if (near)
        dt_program_usage("unknown option '--%s': did you mean '--%s'?", name, near);
    dt_program_usage("unknown option '--%s'", name);
}

static int build_tables(const struct dt_command *c, struct option *longs, char *shorts)
{
    int n = 0;
    *shorts++ = ':';
    for (; c->options[n].name; n++) {
        const struct dt_option *o = &c->options[n];
        int has_arg = o->kind == DT_OPTION_FLAG ? no_argument : required_argument;
        longs[n] = (struct option){o->name, has_arg, NULL, SHORTLESS + n};
        if (o->letter) {
            *shorts++ = o->letter;
            if (has_arg)
                *shorts++ = ':';
        }
    }
    *shorts++ = HELP;
    *shorts = '\0';
    longs[n] = (struct option){"help", no_argument, NULL, LONG_HELP};
    longs[n + 1] = (struct option){"version", no_argument, NULL, VERSION};
    longs[n + 2] = (struct option){NULL, 0, NULL, 0};
    return n;
}

static const struct dt_option *find_option(const struct dt_command *c, int key)
{
    if (key >= SHORTLESS)
        return &c->options[key - SHORTLESS];
    for (const struct dt_option *o = c->options; o->name; o++)
        if (o->letter == key)
            return o;
    return NULL;
}

/* getopt's optopt is the option's letter, alone or the last of several, or its key. */
static void reject_valueless(const struct dt_command *c)
{
    if (optopt < SHORTLESS)
        dt_program_usage("option '-%c' needs a value", optopt);
    dt_program_usage("option '--%s' needs a value", find_option(c, optopt)->name);
}

bool dt_option_is_given(const struct dt_command *c, const char *name)
{
    for (int i = 0; c->options[i].name; i++)
        if (strcmp(c->options[i].name, name) == 0)
            return given[i];
    return false;
}

/* The first option of the list that was given, or NULL. */
static const char *find_given(const struct dt_command *c, const char *list)
{
    for (int i = 0; list && c->options[i].name; i++)
        if (given[i] && dt_options_list_has(list, c->options[i].name))
            return c->options[i].name;
    return NULL;
}

static void check_companions(const struct dt_command *c, const struct dt_option *o)
{
    const char *other = find_given(c, o->without);
    if (other)
        dt_program_usage("--%s cannot be combined with --%s", o->name, other);
    if (o->with && find_given(c, o->with) == NULL)
        dt_program_usage("--%s requires --%.*s", o->name, (int)strcspn(o->with, " "), o->with);
}

/* The file that an option writes, or NULL. */
static const char *written_by(const struct dt_option *o)
{
    const char *value = o->writes ? *(const char **)o->value : NULL;
    size_t length = o->writes ? strlen(o->writes) : 0;
    return value && strncmp(value, o->writes, length) == 0 ? value + length : NULL;
}

static void reject_input(const struct dt_option *o, const char *input)
{
    const char *output = written_by(o);
    if (dt_output_is_input(output, input))
        dt_program_usage("--%s: '%s' is also an input, which would be lost: name another file",
                         o->name, output);
}

/* The files of other options that o must not overwrite. */
static void check_options_files(const struct dt_command *c, const struct dt_option *o)
{
    for (const struct dt_option *other = c->options; other->name; other++) {
        const struct dt_string_list *list = other->value;
        const char *output = written_by(other);
        if (other < o && output && dt_output_is_same(output, written_by(o)))
            dt_program_usage("--%s and --%s must be different files: both are '%s'", other->name,
                             o->name, output);
        if (other->reads && other->kind == DT_OPTION_STRING && *(const char **)other->value)
            reject_input(o, *(const char **)other->value);
        for (int i = 0; other->reads && other->kind == DT_OPTION_LIST && i < list->count; i++)
            reject_input(o, list->items[i]);
    }
}

/* Whether the output is atomic, not stdout under any name, and made of the whole input. */
static bool may_replace(const struct dt_command *c, const struct dt_option *o)
{
    const char *output = written_by(o);
    return o->in_place && find_given(c, o->in_place) == NULL && strcmp(output, "-") != 0 &&
           strncmp(output, "/dev/", 5) != 0;
}

/* An output must not be an input or another output. */
static void check_files(const struct dt_command *c, char *const *operands, int count)
{
    int first = c->uses && count > 0; /* after the name of the use */
    bool from_stdin = first == count && (c->uses || *c->operands);
    for (const struct dt_option *o = c->options; o->name; o++) {
        if (written_by(o) == NULL)
            continue;
        check_options_files(c, o);
        if (may_replace(c, o))
            continue;
        for (int i = first; i < count; i++)
            reject_input(o, operands[i]);
        if (from_stdin)
            reject_input(o, "-");
    }
}

/* --- inputs on a hub --------------------------------------------------------------------------*/

static dt_options_fetch *fetch_input;

void dt_options_set_fetch(dt_options_fetch *fetch)
{
    fetch_input = fetch;
}

static void fetch_value(const char **value, const char *option)
{
    struct dt_options_source source;
    struct dt_error err;
    if (*value == NULL || strncmp(*value, DT_OPTIONS_HUB, strlen(DT_OPTIONS_HUB)) != 0)
        return;
    if (fetch_input(*value, option, &source, &err) < 0)
        exit(dt_program_report(&err));
    dt_command_replace(*value, source.name);
    *value = source.path;
}

static void fetch_inputs(const struct dt_command *c, char **operands, int count)
{
    for (const struct dt_option *o = c->options; fetch_input && o->name; o++) {
        struct dt_string_list *list = o->value;
        if (o->reads && o->kind == DT_OPTION_STRING)
            fetch_value(o->value, o->name);
        for (int i = 0; o->reads && o->kind == DT_OPTION_LIST && i < list->count; i++)
            fetch_value(&list->items[i], o->name);
    }
    for (int i = 0; fetch_input && i < count; i++)
        fetch_value((const char **)&operands[i], NULL);
}

void dt_options_take_inputs(const struct dt_command *c, char **paths, int count)
{
    for (const struct dt_option *o = c->options; o->name; o++)
        for (int i = 0; written_by(o) && !may_replace(c, o) && i < count; i++)
            reject_input(o, paths[i]);
    for (int i = 0; fetch_input && i < count; i++)
        fetch_value((const char **)&paths[i], NULL);
}

int dt_options_parse(const struct dt_command *c, int argc, char **argv)
{
    struct option longs[MAX_OPTIONS + 3];
    char shorts[2 * MAX_OPTIONS + 3];
    dt_program_begin(c->name);
    dt_command_begin(c->name);
    memset(given, 0, sizeof given);
    int count = build_tables(c, longs, shorts);
    if (argc == 2 && strcmp(argv[1], "--print-options") == 0) {
        dt_completion_print(c);
        exit(dt_finish_stdout());
    }
    opterr = 0;
    for (int key; (key = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        if (key == HELP || key == LONG_HELP) {
            dt_options_print_help(c);
            exit(dt_finish_stdout());
        } else if (key == VERSION) {
            printf("%s (dt) %s\n", c->name, dt_version);
            exit(dt_finish_stdout());
        } else if (key == '?') {
            reject_unknown(c, argv[optind - 1], argv[optind]);
        } else if (key == ':') {
            reject_valueless(c);
        }
        const struct dt_option *o = find_option(c, key);
        given[o - c->options] = true;
        set_option(o, optarg);
        remember_option(o, optarg);
    }
    dt_command_add_operands(argv + optind, argc - optind);
    for (int i = 0; i < count; i++)
        if (c->options[i].required && !given[i])
            dt_program_usage("option --%s is needed", c->options[i].name);
    for (int i = 0; i < count; i++)
        if (given[i])
            check_companions(c, &c->options[i]);
    check_files(c, argv + optind, argc - optind);
    fetch_inputs(c, argv + optind, argc - optind);
    return optind;
}

static void reject_option(const struct dt_command *c, const struct dt_use *use, const char *option)
{
    const struct dt_use *other = c->uses;
    while (other->name && !dt_use_takes(other, option))
        other++;
    if (*use->name == '\0' && other->name)
        dt_program_usage("--%s goes with %s", option, other->name);
    dt_program_usage("%s takes no --%s", use->name, option);
}

int dt_options_find_use(const struct dt_command *c, const char *name)
{
    struct dt_buffer all = DT_BUFFER_EMPTY;
    int i = 0;
    for (; c->uses[i].name && (name == NULL || strcmp(name, c->uses[i].name) != 0); i++)
        dt_buffer_printf(&all, "%s%s", i > 0 ? ", " : "", c->uses[i].name);
    if (c->uses[i].name == NULL && name && access(name, F_OK) == 0)
        dt_program_usage("'%s' is a path, and comes after one of %s: %s %s %s", name, all.data,
                         c->name, c->uses[0].name, name);
    if (c->uses[i].name == NULL && name)
        dt_program_usage("'%s' is not one of %s", name, all.data);
    if (c->uses[i].name == NULL)
        dt_program_usage("the first operand is one of %s", all.data);
    dt_buffer_release(&all);
    return i;
}

void dt_options_check_use(const struct dt_command *c, const struct dt_use *use)
{
    for (int i = 0; c->options[i].name; i++) {
        const char *name = c->options[i].name;
        if (given[i] && !dt_use_takes(use, name))
            reject_option(c, use, name);
        if (!given[i] && dt_options_list_has(use->needs, name))
            dt_program_usage("%s needs --%s", use->name, name);
    }
}
