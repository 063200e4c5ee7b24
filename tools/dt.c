/* SPDX-License-Identifier: MIT */
/* dt: runs the other programs, and tells what they are. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/child.h"
#include "base/path.h"
#include "base/program.h"
#include "doctor/doctor.h"
#include "options/completion.h"
#include "options/options.h"

#define PREFIX "dt-"

static struct {
    bool print;
} opt;

static const struct dt_option options[] = {
    {"print", 0, DT_OPTION_FLAG, &opt.print, NULL, "print the commands of the tour"}, {NULL}};

static const struct dt_use uses[] = {
    {"help", "[PROGRAM|PAGE]", NULL, ""},
    {"tour", "[DIRECTORY]", NULL, "print"},
    {"doctor", "", NULL, ""},
    {"PROGRAM", "[ARGUMENT ...]", NULL, ""},
    {NULL},
};

/* Each is dt-NAME, in the order in which text passes through them. */
static const char *const programs[] = {"synth", "extract",  "clean",    "classify", "dedup",
                                       "vocab", "tokenize", "shard",    "cat",      "train",
                                       "eval",  "export",   "generate", "verify",   "plot",
                                       "track", "part",     "bench",    "plan",     NULL};

/* Commands of dt itself, not programs. */
static const char *const builtins[] = {"help", "tour", "doctor", NULL};

static void add_programs(struct dt_buffer *words)
{
    for (int i = 0; programs[i]; i++)
        dt_completion_add(words, programs[i]);
}

static const struct dt_command command = {
    "dt",
    "run a program of dt, and say what there is",
    "",
    options,
    uses,
    add_programs,
    "help lists programs and manual pages, or shows the page of PROGRAM, or PAGE.\n"
    "tour makes DIRECTORY (dt-tour), and goes in it from text to a trained model in\n"
    "two minutes; each command is printed before it runs.\n"
    "doctor prints what is installed, what works, and what to install; its status is\n"
    "1 if something that dt needs is missing or broken.\n"};

static int is_page(const struct dirent *entry)
{
    return strncmp(entry->d_name, "dt", 2) == 0; /* "dt.7", "dt-lineage.5" */
}

/* The number of manual pages in the directory, which need not exist. */
static int list_pages(struct dirent ***pages, const char *path, struct dt_error *err)
{
    *pages = NULL;
    int found = scandir(path, pages, is_page, alphasort);
    if (found < 0)
        return errno == ENOENT ? 0 : dt_fail_errno(err, "cannot read '%s'", path);
    return found;
}

/* Adds the names of the manual pages in the directory. */
static int add_pages(const char ***names, size_t *count, const char *path, struct dt_error *err)
{
    struct dirent **pages;
    int found = list_pages(&pages, path, err);
    if (found < 0)
        return found;
    *names = dt_realloc(*names, *count + (size_t)found + 1, sizeof **names);
    for (int i = 0; i < found; i++) {
        const char *name = pages[i]->d_name + strlen(PREFIX);
        if (strncmp(pages[i]->d_name, PREFIX, strlen(PREFIX)) == 0)
            (*names)[(*count)++] = dt_strndup(name, strcspn(name, "."));
        free(pages[i]);
    }
    free(pages);
    return 0;
}

/* Names of the manual pages of sections 5 and 7, ended by NULL; for the rest of the program. */
static int find_pages(const char ***names, struct dt_error *err)
{
    static const char *const sections[] = {"share/man/man5", "share/man/man7"};
    size_t count = 0;
    int rc = 0;
    *names = dt_alloc(1, sizeof **names);
    for (size_t k = 0; rc == 0 && k < sizeof sections / sizeof *sections; k++) {
        char *path = dt_program_installed_path(sections[k]);
        rc = add_pages(names, &count, path, err);
        free(path);
    }
    (*names)[count] = NULL;
    return rc;
}

/* The name that begins NAME, or that NAME begins ("evaluate", "gen"), or the nearest; or NULL. */
static const char *find_near(const char *name, const char *const *names)
{
    for (int i = 0; strlen(name) > 2 && names[i]; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0 ||
            strncmp(name, names[i], strlen(name)) == 0)
            return names[i];
    return dt_program_did_you_mean(name, names);
}

/* page: it was to be shown. */
static void reject_unknown(const char *name, bool page)
{
    char *what =
        dt_asprintf(page ? "unknown program or page '%s'" : "unknown program '" PREFIX "%s'", name);
    const char *own = find_near(name, programs), *help = page ? "help " : "";
    own = own ? own : find_near(name, builtins);
    const char **pages, *other = NULL;
    struct dt_error ignored;
    if (own == NULL && find_pages(&pages, &ignored) == 0)
        other = find_near(name, pages);
    if (!page && strcmp(name, "version") == 0)
        own = "--version";
    if (own)
        dt_program_warn("%s: did you mean 'dt %s%s'?", what, help, own);
    else if (other)
        dt_program_warn("%s: did you mean 'dt help %s'?", what, other);
    else
        dt_program_warn("%s: 'dt help' lists them", what);
    free(what);
    exit(2);
}

/* Replaces this program by PROGRAM beside it, or on PATH. helps: to show its --help. */
static void run(const char *program, char **arguments, bool helps)
{
    char *beside = dt_program_installed_path("bin"), *path = dt_path_join(beside, program);
    arguments[0] = (char *)program;
    execv(path, arguments);
    if (errno == ENOENT)
        execvp(program, arguments);
    if (errno != ENOENT) {
        dt_program_warn("cannot run '%s': %s", program, strerror(errno));
        exit(1);
    }
    reject_unknown(program + strlen(PREFIX), helps);
}

/* The line "dt-NAME: summary" of its --help. */
static int print_summary(const char *name, struct dt_error *err)
{
    char *bin = dt_program_installed_path("bin"), *path = dt_asprintf("%s/" PREFIX "%s", bin, name),
         *mark = dt_asprintf(PREFIX "%s:", name), *line = NULL;
    struct dt_child child;
    int rc = dt_child_start(&child, (const char *[]){path, "--help", NULL}, -1, true, err);
    FILE *lines = rc == 0 ? fdopen(child.output, "r") : NULL;
    int failed = rc < 0 || lines ? 0 : dt_fail_errno(err, "cannot read '%s --help'", path);
    for (size_t capacity = 0; lines && getline(&line, &capacity, lines) > 0;)
        if (strncmp(line, mark, strlen(mark)) == 0)
            printf("  %-10s%s", name, line + strlen(mark));
    free(line);
    if (lines && !feof(lines)) /* also without memory for a line */
        failed = dt_fail_errno(err, "cannot read '%s --help'", path);
    if (lines)
        fclose(lines);
    if (lines)
        child.output = -1;
    if (failed < 0)
        dt_child_stop(&child);
    free(mark);
    free(path);
    free(bin);
    return rc < 0 ? rc : failed < 0 ? failed : dt_child_finish(&child, err);
}

/* Whether one of WORDS is NAME. */
static bool is_one_of(const char *const *words, const char *name)
{
    while (*words && strcmp(*words, name) != 0)
        words++;
    return *words != NULL;
}

/* dt help shows a page that has the name of a program by that name alone: the program's. */
static int print_pages(struct dt_error *err)
{
    const char **names;
    int column = 1;
    DT_TRY(find_pages(&names, err));
    if (*names == NULL)
        return 0;
    printf("\nAll pages that are not of a program:\n\n ");
    for (; *names; names++) {
        if (is_one_of(programs, *names))
            continue;
        if (column + 1 + (int)strlen(*names) > 79)
            column = printf("\n ") - 1;
        column += printf(" %s", *names);
    }
    putchar('\n');
    return 0;
}

static int list_programs(void)
{
    struct dt_error err;
    printf("dt PROGRAM [ARGUMENT ...] runs dt-PROGRAM:\n\n");
    for (int i = 0; programs[i]; i++)
        if (print_summary(programs[i], &err) < 0)
            return dt_program_report(&err);
    printf("\nand dt itself:\n\n"
           "  help       show the manual page of a program, or this list\n"
           "  tour       from text to a trained model in two minutes\n"
           "  doctor     what is installed, what works, and what to install\n\n"
           "Manual pages to begin with: dt help tutorial, dt help config, dt help python\n");
    if (print_pages(&err) < 0)
        return dt_program_report(&err);
    return dt_finish_stdout();
}

/* The page that shows NAME: dt(1) for dt and its builtins, else dt-NAME. */
static char *page_of(const char *name)
{
    if (strcmp(name, "dt") == 0 || is_one_of(builtins, name))
        return dt_strdup("dt");
    return dt_asprintf("%s%s", strncmp(name, PREFIX, strlen(PREFIX)) == 0 ? "" : PREFIX, name);
}

/* *file: that of the page below the directory man; NULL if there is none. Owned by the caller. */
static int find_page(char **file, const char *man, const char *page, struct dt_error *err)
{
    const size_t size = strlen(page);
    *file = NULL;
    for (const char *section = "157"; *section; section++) {
        struct dirent **pages;
        char *path = dt_asprintf("%s/man%c", man, *section);
        int found = list_pages(&pages, path, err);
        for (int i = 0; i < found; i++) {
            const char *name = pages[i]->d_name;
            if (*file == NULL && strncmp(name, page, size) == 0 && name[size] == '.')
                *file = dt_path_join(path, name);
            free(pages[i]);
        }
        free(pages);
        free(path);
        if (found < 0)
            return found;
    }
    return 0;
}

/* The manual page of dt-NAME, or its --help. */
static int help(const char *name)
{
    struct dt_error err;
    char *page = page_of(name), *man = dt_program_installed_path("share/man"), *file;
    if (find_page(&file, man, page, &err) < 0)
        return dt_program_report(&err);
    if (file)
        execlp("man", "man", "-M", man, page, (char *)NULL);
    const bool has_help = strcmp(page, "dt") == 0 || is_one_of(programs, page + strlen(PREFIX));
    if (file && !has_help) {
        dt_program_warn("cannot show the manual page '%s': man(1) is not installed (Debian: "
                        "apt-get install man-db)",
                        file);
        return 1;
    }
    run(page, (char *[]){NULL, "--help", NULL}, true);
    return 1;
}

/* The shell prints each line of the tour before it runs it. */
static int tour(const char *directory)
{
    char *script = dt_program_installed_path("share/dt/tour"),
         *bin = dt_program_installed_path("bin");
    const char *path = getenv("PATH");
    if (opt.print)
        execlp("cat", "cat", script, (char *)NULL);
    char *with = dt_asprintf("%s:%s", bin, path ? path : "/usr/bin:/bin");
    setenv("PATH", with, 1);
    if (mkdir(directory, 0777) < 0 || chdir(directory) < 0) {
        dt_program_warn("cannot make the directory '%s' for the tour: %s%s", directory,
                        strerror(errno),
                        errno == EEXIST ? ": remove it, or name another: dt tour DIRECTORY" : "");
        return 1;
    }
    fprintf(stderr, "The tour in %s:\n\n", directory);
    execlp("sh", "sh", "-ev", script, (char *)NULL);
    dt_program_warn("cannot run sh: %s", strerror(errno));
    return 1;
}

static int doctor(void)
{
    struct dt_buffer report = DT_BUFFER_EMPTY;
    int faults = dt_doctor_examine(&report, programs);
    dt_program_print(report.data);
    dt_buffer_release(&report);
    int rc = dt_finish_stdout();
    return faults > 0 ? 1 : rc;
}

int main(int argc, char **argv)
{
    enum { HELP, TOUR, DOCTOR, PROGRAM };
    int use = 0;
    dt_options_parse(&command, argc > 1 && *argv[1] == '-' ? argc : 1, argv);
    if (argc < 2)
        return list_programs();
    while (use < PROGRAM && strcmp(argv[1], uses[use].name) != 0)
        use++;
    if (use == PROGRAM && *argv[1] == '-')
        dt_program_usage("the first word is help, tour, doctor or a program");
    if (use == PROGRAM)
        run(dt_asprintf(PREFIX "%s", argv[1]), argv + 1, false);
    int first = dt_options_parse(&command, argc, argv);
    dt_options_check_use(&command, &uses[use]);
    if (argc - first > (use == DOCTOR ? 1 : 2))
        dt_program_usage("%s takes no operand '%s'", argv[1], argv[argc - 1]);
    const char *operand = argc - first == 2 ? argv[first + 1] : NULL;
    if (use == HELP)
        return operand ? help(operand) : list_programs();
    return use == TOUR ? tour(operand ? operand : "dt-tour") : doctor();
}
