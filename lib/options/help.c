/* SPDX-License-Identifier: MIT */
#include "options/options-internal.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"

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

/* use: NULL for all options. */
static void print_usage(const struct dt_command *c, const struct dt_use *use, const char *before)
{
    struct dt_buffer usage = DT_BUFFER_EMPTY;
    const char *operands = use ? use->operands : c->operands;
    bool word = use && *use->name && *use->name != '-';
    dt_buffer_printf(&usage, "%s%s%s", c->name, word ? " " : "", word ? use->name : "");
    for (const struct dt_option *o = c->options; o->name; o++) {
        if (use == NULL || dt_use_takes(use, o->name))
            add_usage(&usage, o, use ? dt_options_list_has(use->needs, o->name) : o->required);
    }
    if (*operands)
        dt_buffer_printf(&usage, " %s", operands);
    printf("%s", before);
    print_wrapped(usage.data, 7, 7 + (int)strlen(c->name) + 1);
    dt_buffer_release(&usage);
}

void dt_options_print_help(const struct dt_command *c)
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
    if (c->notes)
        printf("\n%s", c->notes);
}
