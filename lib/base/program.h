/* SPDX-License-Identifier: MIT */
/*
 * The common part of all dt programs: name, messages and options.
 *
 * One table of options produces the parser, the usage line, --help, and the
 * test that the man page's SYNOPSIS agrees:
 *
 *     static struct { const char *out; long threads; } opt = {"-", 1};
 *     static const struct dt_option options[] = {
 *         {"output",  'o', DT_OPTION_STRING, &opt.out, "FILE", "write to FILE"},
 *         {"threads", 'j', DT_OPTION_INT, &opt.threads, "N", "use N threads", .min = 1, .max =
 * 256}, {NULL}}; static const struct dt_command command = { "dt-x", "do one thing", "[FILE ...]",
 * options}; int first = dt_program_parse_options(&command, argc, argv);  // operands start here
 *
 * -h, --help and --version are added by the parser, and so is --print-options, alone, the
 * table itself for the completion of shells (share/completions). A wrong option or number ends
 * the program with exit status 2 and a usage message.
 */
#ifndef DT_BASE_PROGRAM_H
#define DT_BASE_PROGRAM_H

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
     * dt_program_parse_options refuses an output that is also an input or another output. */
    bool reads;
    const char *writes;
    /* Not NULL: the output may replace an operand, as it is renamed when complete, unless one of
     * these options (long names, separated by spaces) was given. */
    const char *in_place;
    /* Appends the words that shells offer as its value (base/completion.h). NULL: choices, those
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
};

/* Sets the program's name, parses, and returns the index of the first operand. */
int dt_program_parse_options(const struct dt_command *command, int argc, char **argv);

/* Inputs on a hub: a program that reads any calls dt_program_set_fetch before
 * dt_program_parse_options, which then passes to fetch each operand and each value of an option
 * that reads, if it begins with DT_PROGRAM_HUB. The local path replaces it; name, with the
 * revision pinned, is what dt_command_line() records. A failure ends the program with status 1. */
#define DT_PROGRAM_HUB "hf://"
struct dt_program_source {
    char *path, *name; /* for the rest of the program */
};
/* option: its long name; NULL: an operand. */
typedef int dt_program_fetch(const char *name, const char *option, struct dt_program_source *source,
                             struct dt_error *err);
void dt_program_set_fetch(dt_program_fetch *fetch);
/* For inputs that the program finds after dt_program_parse_options, for example in a list: checks
 * them as operands are, and replaces those on a hub. */
void dt_program_take_inputs(const struct dt_command *command, char **paths, int count);

/* Whether the option with this long name was given. */
bool dt_option_is_given(const struct dt_command *command, const char *name);

/* The index of the subcommand with this name. Usage error if there is none or name is NULL. */
int dt_program_find_use(const struct dt_command *command, const char *name);
/* Usage error if an option was given that this subcommand does not take, or a required one was
 * not. Call after dt_program_parse_options. */
void dt_program_check_use(const struct dt_command *command, const struct dt_use *use);

/* "PROGRAM: text" to stderr; returns 1, the exit status of a failed program. */
int dt_program_report(const struct dt_error *err);
/* Prints text to stdout; on a terminal control characters are escaped (base/printable.h). */
void dt_program_print(const char *text);
/* Flushes stdout. Returns the exit status: 0, or 1 after a line on stderr if a write failed. */
int dt_finish_stdout(void);
/* "PROGRAM: text" to stderr. */
void dt_program_warn(const char *fmt, ...) DT_PRINTF(1, 2);
/* "PROGRAM: text" and a hint at --help to stderr; exits with status 2. */
void dt_program_usage(const char *fmt, ...) DT_PRINTF(1, 2) __attribute__((noreturn));
/* dt_program_usage waits this long before it prints: of several ranks only the first prints, and
 * the launcher ends the others. */
void dt_program_delay_usage(unsigned seconds);

const char *dt_program_name(void);
/* "dt-x 0.2.0: arguments" for provenance lines; owned by the program. Options by their long
 * names; without --output, --threads and --quiet, which do not change the result. */
const char *dt_command_line(void);
/* The arguments of the same line, unquoted, ended by NULL. */
const char *const *dt_command_arguments(void);

/* Parses "123", "64k", "10M", "1e6" into a number; -1 on anything else and above 2^53. */
int dt_program_parse_int(const char *text, long *value);
int dt_program_parse_real(const char *text, double *value);

/* The directory PART ("lib/dt", "share/dt") of the installation, relative to the executable, so
 * that both build/ and PREFIX work. Owned by the caller. */
char *dt_program_installed_path(const char *part);

/* For a library: FILE, in PREFIX/lib or PREFIX/lib/TRIPLET, takes the place of the executable in
 * dt_program_installed_path; NULL ends that. */
void dt_program_set_location(const char *file);

/* The name in names (ended by NULL) closest to word by edit distance; NULL if none is close. */
const char *dt_program_did_you_mean(const char *word, const char *const *names);

#endif
