/* SPDX-License-Identifier: MIT */
/*
 * Options of all dt programs.
 *
 * One table produces the parser, the usage line, --help, the words of completion, and the
 * test that the man page's SYNOPSIS agrees:
 *
 *     static struct { const char *out; long threads; } opt = {"-", 1};
 *     static const struct dt_option options[] = {
 *         {"output", 'o', DT_OPTION_STRING, &opt.out, "FILE", "write to FILE"},
 *         {"threads", 'j', DT_OPTION_INT, &opt.threads, "N", "use N threads", .min = 1, .max =
 * 256}, {NULL}}; static const struct dt_command command = {"dt-x", "do one thing", "[FILE ...]",
 * options}; int first = dt_options_parse(&command, argc, argv); // operands start here
 *
 * The parser adds -h, --help, --version, and --print-options, which prints the table for the
 * completion of shells (share/completions). A wrong option or number ends the program with exit
 * status 2 and a usage message.
 */
#ifndef DT_OPTIONS_OPTIONS_H
#define DT_OPTIONS_OPTIONS_H

#include <stdbool.h>

#include "base/error.h"

struct dt_buffer;

enum dt_option_kind {
    DT_OPTION_FLAG,   /* bool *: set to true */
    DT_OPTION_STRING, /* const char **, borrowed from argv */
    DT_OPTION_INT,    /* long *, in min .. max; suffixes k (or K), M, G: powers of 1000 */
    DT_OPTION_REAL,   /* double *, in min .. max */
    DT_OPTION_CHOICE, /* int *: index into choices */
    DT_OPTION_LIST    /* struct dt_string_list *: may be given several times */
};

struct dt_string_list {
    const char **items; /* borrowed from argv; the array is owned by the list */
    int count, capacity;
};

struct dt_option {
    const char *name; /* long name without "--"; NULL ends the table */
    char letter;      /* short name or 0 */
    enum dt_option_kind kind;
    void *value;
    const char *arg; /* NULL for a flag */
    const char *help;
    double min, max;            /* of numbers; both 0 means any */
    const char *const *choices; /* of DT_OPTION_CHOICE, ended by NULL */
    bool required;
    /* Long names of other options, separated by spaces: the option requires one of `with` and
     * conflicts with each of `without`. NULL: none. */
    const char *with, *without;
    /* For DT_OPTION_STRING and DT_OPTION_LIST. reads: the value is an input file, as operands
     * are. writes: the value is an output file, after this prefix ("" or "NAME=").
     * dt_options_parse refuses an output that is also an input or another output. */
    bool reads;
    const char *writes;
    /* Not NULL: the output may replace an operand, as it is renamed when complete, unless one of
     * these options (long names, separated by spaces) was given. */
    const char *in_place;
    /* Appends the words that shells offer as its value (options/completion.h). NULL: choices, those
     * that arg spells ("stop|skip"), or files. */
    void (*words)(struct dt_buffer *words);
};

/* A subcommand and the long names of its options, separated by spaces. Its name is the first
 * operand, or an option that selects it ("--search"), or "" for the default. */
struct dt_use {
    const char *name, *operands; /* operands: the other operands of the usage line, or "" */
    const char *needs, *takes;   /* needs may be NULL */
};

struct dt_command {
    const char *name, *summary;
    const char *operands; /* as in the usage line: "[FILE ...]" */
    const struct dt_option *options;
    const struct dt_use *uses;              /* NULL, or ended by a NULL name: one usage line each */
    void (*words)(struct dt_buffer *words); /* offered as first operand, besides those of uses */
    const char *notes;                      /* NULL, or lines that end --help */
};

/* Sets the program's name, parses, and returns the index of the first operand. */
int dt_options_parse(const struct dt_command *command, int argc, char **argv);

/* Inputs on a hub: a program that reads any calls dt_options_set_fetch before
 * dt_options_parse, which then passes to fetch each operand and each value of an option
 * that reads, if it begins with DT_OPTIONS_HUB. The local path replaces it; name, with the
 * revision pinned, is what dt_command_line() (options/command-line.h) records. A failure ends the
 * program with status 1. */
#define DT_OPTIONS_HUB "hf://"
struct dt_options_source {
    char *path, *name; /* for the rest of the program */
};
/* option: its long name; NULL: an operand. */
typedef int dt_options_fetch(const char *name, const char *option, struct dt_options_source *source,
                             struct dt_error *err);
void dt_options_set_fetch(dt_options_fetch *fetch);
/* For inputs that the program finds after dt_options_parse, for example in a list: checks
 * them as operands are, and replaces those on a hub. */
void dt_options_take_inputs(const struct dt_command *command, char **paths, int count);

/* Whether the option with this long name was given. */
bool dt_option_is_given(const struct dt_command *command, const char *name);

/* The index of the subcommand with this name. Usage error if there is none or name is NULL. */
int dt_options_find_use(const struct dt_command *command, const char *name);
/* Usage error if an option was given that this subcommand does not take, or a required one was
 * not. Call after dt_options_parse. */
void dt_options_check_use(const struct dt_command *command, const struct dt_use *use);

#endif
