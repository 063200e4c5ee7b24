/* SPDX-License-Identifier: MIT */
#include "base/program.h"
#include "base/completion.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/credentials.h"
#include "base/file.h"
#include "base/path.h"
#include "base/system.h"
#include "base/version.h"

#define MAX_OPTIONS 64
#define MAX_INT     0x1p53 /* whole numbers up to here are exact in a double */

static const char *program_name;
static struct dt_buffer command_line;
static const char **arguments; /* of command_line, ended by NULL; each owned */
static int argument_count, argument_capacity;
static bool given[MAX_OPTIONS]; /* options given, by index in the table */

const char *dt_program_name(void)
{
    return program_name ? program_name : program_invocation_short_name; /* in a plug-in */
}

const char *dt_command_line(void)
{
    return command_line.data ? command_line.data : "";
}

const char *const *dt_command_arguments(void)
{
    static const char *const none[] = {NULL};
    return arguments ? arguments : none;
}

static void print_message(const char *fmt, va_list args)
{
    char text[DT_ERROR_TEXT];
    struct dt_error line; /* one line, whatever the arguments hold */
    vsnprintf(text, sizeof text, fmt, args);
    dt_fail(&line, DT_OK, "%s", text);
    fprintf(stderr, "%s: %s\n", dt_program_name(), line.text);
}

void dt_program_warn(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_message(fmt, args);
    va_end(args);
}

static unsigned usage_delay;

void dt_program_delay_usage(unsigned seconds)
{
    usage_delay = seconds;
}

void dt_program_usage(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sleep(usage_delay);
    print_message(fmt, args);
    va_end(args);
    fprintf(stderr, "try '%s --help'\n", program_name);
    exit(2);
}

int dt_program_report(const struct dt_error *err)
{
    dt_program_warn("%s", err->text);
    return 1;
}

/* A decimal number at the head of text; *end shows what follows it. No white
 * space, hexadecimal, inf or nan, which strtod would take. */
static int parse_decimal(const char *text, double *value, const char **end)
{
    const char *digits = text + strspn(text, "+-.");
    if (*digits < '0' || *digits > '9' || strpbrk(text, "xX"))
        return -1;
    char *tail;
    errno = 0;
    *value = strtod(text, &tail);
    *end = tail;
    return tail == text || errno == ERANGE ? -1 : 0;
}

int dt_program_parse_real(const char *text, double *value)
{
    const char *end;
    double x;
    if (parse_decimal(text, &x, &end) < 0 || *end != '\0')
        return -1;
    *value = x;
    return 0;
}

/* A whole number of any size. */
static int parse_whole(const char *text, double *value)
{
    const char *end;
    if (parse_decimal(text, value, &end) < 0)
        return -1;
    bool thousands = *end == 'k' || *end == 'K';
    double unit = thousands ? 1e3 : *end == 'M' ? 1e6 : *end == 'G' ? 1e9 : 1;
    if (unit > 1)
        end++;
    *value *= unit;
    return *end != '\0' || *value != floor(*value) ? -1 : 0;
}

int dt_program_parse_int(const char *text, long *value)
{
    double x;
    if (parse_whole(text, &x) < 0 || fabs(x) > MAX_INT)
        return -1;
    *value = (long)x;
    return 0;
}

static const char *argument_name(const struct dt_option *o)
{
    return o->arg ? o->arg : "";
}

static void add_usage(struct dt_buffer *b, const struct dt_option *o, bool required)
{
    dt_buffer_add_string(b, required ? " " : " [");
    if (o->letter)
        dt_buffer_printf(b, "-%c", o->letter);
    else
        dt_buffer_printf(b, "--%s", o->name);
    if (o->arg)
        dt_buffer_printf(b, " %s", argument_name(o));
    dt_buffer_add_string(b, required ? "" : "]");
    if (o->kind == DT_OPTION_LIST)
        dt_buffer_add_string(b, " ...");
}

/* Length of the first word; "[--name ARG]" is one. */
static int word_length(const char *text)
{
    int depth = 0, i = 0;
    for (; text[i] && (depth > 0 || text[i] != ' '); i++)
        depth += (text[i] == '[') - (text[i] == ']');
    return i;
}

/* Prints text, words wrapped to 79 columns, continuation lines indented. */
static void print_wrapped(const char *text, int column, int indent)
{
    for (bool first = true; *text; first = false) {
        int n = word_length(text);
        if (!first && column + 1 + n > 79)
            column = printf("\n%*s", indent, "") - 1;
        else if (!first)
            column += printf(" ");
        column += printf("%.*s", n, text);
        text += n + (text[n] == ' ');
    }
    putchar('\n');
}

static void print_option(const struct dt_option *o)
{
    char flags[64];
    int n = o->letter ? snprintf(flags, sizeof flags, "  -%c, --%s", o->letter, o->name)
                      : snprintf(flags, sizeof flags, "      --%s", o->name);
    if (o->arg)
        snprintf(flags + n, sizeof flags - (size_t)n, " %s", argument_name(o));
    printf("%-28s", flags);
    if (strlen(flags) >= 28)
        printf("\n%28s", "");
    print_wrapped(o->help, 28, 28);
}

/* Whether the list of words, which may be NULL, contains the word. */
static bool lists(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at && (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

static bool takes(const struct dt_use *use, const char *option)
{
    return lists(use->needs, option) || lists(use->takes, option);
}

/* use: NULL for all options. */
static void print_usage(const struct dt_command *c, const struct dt_use *use, const char *before)
{
    struct dt_buffer usage = DT_BUFFER_EMPTY;
    const char *operands = use ? use->operands : c->operands;
    bool word = use && *use->name && *use->name != '-';
    dt_buffer_printf(&usage, "%s%s%s", c->name, word ? " " : "", word ? use->name : "");
    for (const struct dt_option *o = c->options; o->name; o++) {
        if (use == NULL || takes(use, o->name))
            add_usage(&usage, o, use ? lists(use->needs, o->name) : o->required);
    }
    if (*operands)
        dt_buffer_printf(&usage, " %s", operands);
    printf("%s", before);
    print_wrapped(usage.data, 7, 7 + (int)strlen(c->name) + 1);
    dt_buffer_release(&usage);
}

static void print_help(const struct dt_command *c)
{
    if (c->uses == NULL)
        print_usage(c, NULL, "usage: ");
    for (const struct dt_use *use = c->uses; use && use->name; use++)
        print_usage(c, use, use == c->uses ? "usage: " : "       ");
    printf("\n%s: %s\n\n", c->name, c->summary);
    for (const struct dt_option *o = c->options; o->name; o++)
        print_option(o);
    printf("  -h, --help                show this help\n"
           "      --version             show the version\n");
}

static const char *described(const struct dt_option *o)
{
    static char text[64];
    snprintf(text, sizeof text, "--%s", o->name);
    return text;
}

static void check_range(const struct dt_option *o, double x, const char *text)
{
    bool any = o->min == 0 && o->max == 0;
    double limit = o->kind == DT_OPTION_INT ? MAX_INT : HUGE_VAL;
    double min = any ? -limit : o->min, max = any ? limit : fmin(o->max, limit);
    if (x < min || x > max)
        dt_program_usage("%s takes a number from %.16g to %.16g, not '%s'", described(o), min, max,
                         text);
}

static void set_int(const struct dt_option *o, const char *text)
{
    double x;
    if (parse_whole(text, &x) < 0)
        dt_program_usage("%s takes a whole number, not '%s'", described(o), text);
    check_range(o, x, text);
    *(long *)o->value = (long)x;
}

static void set_choice(const struct dt_option *o, const char *text)
{
    for (int i = 0; o->choices[i]; i++) {
        if (strcmp(o->choices[i], text) == 0) {
            *(int *)o->value = i;
            return;
        }
    }
    struct dt_buffer all = DT_BUFFER_EMPTY;
    for (int i = 0; o->choices[i]; i++)
        dt_buffer_printf(&all, "%s%s", i ? ", " : "", o->choices[i]);
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

/* Appends an argument quoted for the shell, on one line. */
static void add_quoted(struct dt_buffer *b, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./=:,+@%";
    dt_buffer_add_char(b, ' ');
    if (*text != '\0' && text[strspn(text, plain)] == '\0') {
        dt_buffer_add_string(b, text);
        return;
    }
    dt_buffer_add_char(b, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            dt_buffer_add_string(b, "'\\''");
        else
            dt_buffer_add_char(b, (unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
    }
    dt_buffer_add_char(b, '\'');
}

/* Adds an argument to both forms of the command line. */
static void add_argument(struct dt_buffer *b, const char *text)
{
    char *shown = dt_strdup(text);
    dt_credentials_hide(shown);
    add_quoted(b, shown);
    DT_GROW(arguments, argument_count + 1, argument_capacity);
    arguments[argument_count++] = shown;
    arguments[argument_count] = NULL;
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
    add_argument(&command_line, name);
    if (value)
        add_argument(&command_line, value);
}

static void remember_operands(char *const *operands, int count)
{
    for (int i = 0; i < count; i++) {
        if (operands[i][0] == '-' && operands[i][1] != '\0') { /* an operand that looks like an
                                                                * option */
            add_argument(&command_line, "--");
            break;
        }
    }
    for (int i = 0; i < count; i++)
        add_argument(&command_line, operands[i]);
}

void dt_program_print(const char *text)
{
    if (!isatty(STDOUT_FILENO)) {
        fputs(text, stdout);
        return;
    }
    struct dt_buffer shown = DT_BUFFER_EMPTY;
    dt_buffer_add_printable(&shown, text, strlen(text));
    fwrite(shown.data, 1, shown.size, stdout);
    dt_buffer_release(&shown);
}

int dt_finish_stdout(void)
{
    /* An error of an earlier flush is not reported by the last one. */
    bool lost = ferror(stdout), failed = fflush(stdout) != 0;
    if (failed)
        dt_program_warn("cannot write to stdout: %s", strerror(errno));
    else if (lost)
        dt_program_warn("cannot write to stdout");
    return failed || lost;
}

enum { SHORTLESS = 1000, HELP = 'h', VERSION = 2000 };

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

static void reject_unknown(const struct dt_command *c, const char *word)
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
    longs[n] = (struct option){"help", no_argument, NULL, HELP};
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
        if (given[i] && lists(list, c->options[i].name))
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

static dt_program_fetch *fetch_input;

void dt_program_set_fetch(dt_program_fetch *fetch)
{
    fetch_input = fetch;
}

/* Records name in place of an argument. */
static void pin_argument(const char *text, const char *name)
{
    for (int i = 0; i < argument_count; i++)
        if (strcmp(arguments[i], text) == 0) {
            free((char *)arguments[i]);
            arguments[i] = dt_strdup(name);
        }
    dt_buffer_clear(&command_line);
    dt_buffer_printf(&command_line, "%s %s:", program_name, dt_version);
    for (int i = 0; i < argument_count; i++)
        add_quoted(&command_line, arguments[i]);
}

static void fetch_value(const char **value, const char *option)
{
    struct dt_program_source source;
    struct dt_error err;
    if (*value == NULL || strncmp(*value, DT_PROGRAM_HUB, strlen(DT_PROGRAM_HUB)) != 0)
        return;
    if (fetch_input(*value, option, &source, &err) < 0)
        exit(dt_program_report(&err));
    pin_argument(*value, source.name);
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

void dt_program_take_inputs(const struct dt_command *c, char **paths, int count)
{
    for (const struct dt_option *o = c->options; o->name; o++)
        for (int i = 0; written_by(o) && !may_replace(c, o) && i < count; i++)
            reject_input(o, paths[i]);
    for (int i = 0; fetch_input && i < count; i++)
        fetch_value((const char **)&paths[i], NULL);
}

int dt_program_parse_options(const struct dt_command *c, int argc, char **argv)
{
    struct option longs[MAX_OPTIONS + 3];
    char shorts[2 * MAX_OPTIONS + 3];
    program_name = c->name;
    signal(SIGXFSZ, SIG_IGN); /* beyond a file size limit write fails with EFBIG */
    memset(given, 0, sizeof given);
    dt_buffer_clear(&command_line);
    while (argument_count > 0)
        free((char *)arguments[--argument_count]);
    if (arguments)
        arguments[0] = NULL;
    dt_buffer_printf(&command_line, "%s %s:", c->name, dt_version);
    int count = build_tables(c, longs, shorts);
    if (argc == 2 && strcmp(argv[1], "--print-options") == 0) {
        dt_completion_print(c);
        exit(dt_finish_stdout());
    }
    opterr = 0;
    for (int key; (key = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        if (key == HELP) {
            print_help(c);
            exit(dt_finish_stdout());
        } else if (key == VERSION) {
            printf("%s (dt) %s\n", c->name, dt_version);
            exit(dt_finish_stdout());
        } else if (key == '?') {
            reject_unknown(c, argv[optind - 1]);
        } else if (key == ':') {
            reject_valueless(c);
        }
        const struct dt_option *o = find_option(c, key);
        given[o - c->options] = true;
        set_option(o, optarg);
        remember_option(o, optarg);
    }
    remember_operands(argv + optind, argc - optind);
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
    while (other->name && !takes(other, option))
        other++;
    if (*use->name == '\0' && other->name)
        dt_program_usage("--%s goes with %s", option, other->name);
    dt_program_usage("%s takes no --%s", use->name, option);
}

int dt_program_find_use(const struct dt_command *c, const char *name)
{
    struct dt_buffer all = DT_BUFFER_EMPTY;
    int i = 0;
    for (; c->uses[i].name && (name == NULL || strcmp(name, c->uses[i].name) != 0); i++)
        dt_buffer_printf(&all, "%s%s", i > 0 ? ", " : "", c->uses[i].name);
    if (c->uses[i].name == NULL && name)
        dt_program_usage("'%s' is not one of %s", name, all.data);
    if (c->uses[i].name == NULL)
        dt_program_usage("the first operand is one of %s", all.data);
    dt_buffer_release(&all);
    return i;
}

void dt_program_check_use(const struct dt_command *c, const struct dt_use *use)
{
    for (int i = 0; c->options[i].name; i++) {
        const char *name = c->options[i].name;
        if (given[i] && !takes(use, name))
            reject_option(c, use, name);
        if (!given[i] && lists(use->needs, name))
            dt_program_usage("%s needs --%s", use->name, name);
    }
}

static char *location; /* of a library */

void dt_program_set_location(const char *file)
{
    free(location);
    location = dt_checked_errno(realpath(file, NULL));
}

char *dt_program_installed_path(const char *part)
{
    char exe[PATH_MAX];
    if (location == NULL || realpath(location, exe) == NULL)
        dt_system_program_path(exe);
    /* PREFIX/bin/dt-x, PREFIX/lib/libdt.so.0 or PREFIX/lib/x86_64-linux-gnu/libdt.so.0 -> PREFIX */
    for (int up = 0; up < 2 || (up == 2 && location && strcmp(dt_path_base(exe), "lib") == 0);
         up++) {
        char *slash = strrchr(exe, '/');
        if (slash)
            *slash = '\0';
    }
    return dt_path_join(exe, part);
}

static int edit_distance(const char *a, const char *b)
{
    int row[64];
    int n = (int)strlen(b);
    if (n > 63)
        return 99;
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            int best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = replaced < best ? replaced : best;
        }
    }
    return row[n];
}

const char *dt_program_did_you_mean(const char *word, const char *const *names)
{
    const char *best = NULL;
    int nearest = (int)strlen(word) / 3 + 1;
    for (; *names; names++) {
        int distance = edit_distance(word, *names);
        if (distance <= nearest) {
            nearest = distance - 1;
            best = *names;
        }
    }
    return best;
}
