/* SPDX-License-Identifier: MIT */
#include "options/completion.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dt_completion_add(struct dt_buffer *words, const char *word)
{
    dt_buffer_printf(words, "%s%s", words->size > 0 ? " " : "", word);
}

void dt_completion_add_files(struct dt_buffer *words, const char *directory, const char *suffix)
{
    struct dirent **found;
    int count = scandir(directory, &found, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        size_t size = strlen(found[i]->d_name), end = strlen(suffix);
        if (size > end && strcmp(found[i]->d_name + size - end, suffix) == 0) {
            found[i]->d_name[size - end] = '\0';
            dt_completion_add(words, found[i]->d_name);
        }
        free(found[i]);
    }
    if (count >= 0)
        free(found);
}

/* "stop|skip|quarantine=FILE": stop, skip and quarantine=. */
static void add_spelled(struct dt_buffer *words, const char *arg)
{
    for (bool more = strchr(arg, '|') != NULL; more;) {
        size_t size = strcspn(arg, "|"), kept = strcspn(arg, "=|");
        char *word = dt_strndup(arg, kept < size ? kept + 1 : size);
        dt_completion_add(words, word);
        free(word);
        more = arg[size] == '|';
        arg += size + 1;
    }
}

static void add_values(struct dt_buffer *words, const struct dt_option *o)
{
    if (o->words)
        o->words(words);
    else if (o->kind == DT_OPTION_CHOICE)
        for (int i = 0; o->choices[i]; i++)
            dt_completion_add(words, o->choices[i]);
    else
        add_spelled(words, o->arg ? o->arg : "");
}

/* Names of uses; not those of options, and not placeholders such as WHAT. */
static void add_operands(struct dt_buffer *words, const struct dt_command *c)
{
    for (const struct dt_use *use = c->uses; use && use->name; use++)
        if (islower((unsigned char)*use->name))
            dt_completion_add(words, use->name);
    if (c->words)
        c->words(words);
}

static void print_line(const char *option, const char *arg, struct dt_buffer *words,
                       const char *help)
{
    printf("%s\t%s\t%s\t%s\n", option, arg, words->size > 0 ? words->data : "", help);
    dt_buffer_clear(words);
}

void dt_completion_print(const struct dt_command *c)
{
    struct dt_buffer words = DT_BUFFER_EMPTY;
    for (const struct dt_option *o = c->options; o->name; o++) {
        char option[80];
        snprintf(option, sizeof option, o->letter ? "--%s\t-%c" : "--%s\t", o->name, o->letter);
        add_values(&words, o);
        print_line(option, o->arg ? o->arg : "", &words, o->help);
    }
    print_line("--help\t-h", "", &words, "show this help");
    print_line("--version\t", "", &words, "show the version");
    add_operands(&words, c);
    if (words.size > 0)
        print_line("\t", "WORD", &words, "");
    dt_buffer_release(&words);
}
