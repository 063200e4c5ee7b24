/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/path.h"
#include "base/program.h"
#include "base/version.h"
#include "options/command-line.h"
#include "options/options.h"

static const char *const modes[] = {"fast", "small", NULL};
static struct {
    bool quiet;
    const char *out;
    long number, count;
    double rate;
    int mode;
    struct dt_string_list set;
} opt;
static const struct dt_option options[] = {
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "print nothing"},
    {"output", 'o', DT_OPTION_STRING, &opt.out, "FILE", "write to FILE"},
    {"number", 'n', DT_OPTION_INT, &opt.number, "N", "do it N times", .min = 1, .max = 1e6},
    {"count", 0, DT_OPTION_INT, &opt.count, "N", "any whole number"},
    {"rate", 0, DT_OPTION_REAL, &opt.rate, "X", "at rate X", .min = 0, .max = 1},
    {"mode", 'm', DT_OPTION_CHOICE, &opt.mode, "MODE", "fast or small", .choices = modes},
    {"set", 0, DT_OPTION_LIST, &opt.set, "KEY=VALUE", "set a key"},
    {NULL}};
static const struct dt_command command = {"dt-x", "do one thing", "[FILE ...]", options};

/* What a program did with its arguments. */
struct outcome {
    int status;
    char out[4096], err[4096];
};

static void read_back(FILE *f, char *text, size_t capacity)
{
    rewind(f);
    text[fread(text, 1, capacity - 1, f)] = '\0';
    fclose(f);
}

/* Runs `dt-x ARGS...` in a child that prints what it understood. args end with
 * NULL; stdout_path, if any, is where its stdout goes. */
static struct outcome run_to(const struct dt_command *c, const char *const *args,
                             const char *stdout_path)
{
    struct outcome r;
    FILE *out = tmpfile(), *err = tmpfile();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        const char *argv[32] = {"dt-x"};
        int argc = 1;
        while (args[argc - 1]) {
            argv[argc] = args[argc - 1];
            argc++;
        }
        dup2(stdout_path ? open(stdout_path, O_WRONLY) : fileno(out), STDOUT_FILENO);
        dup2(fileno(err), STDERR_FILENO);
        int first = dt_options_parse(c, argc, (char **)argv);
        printf("%d %s %ld %g %d %d|", opt.quiet, opt.out ? opt.out : "-", opt.number, opt.rate,
               opt.mode, opt.set.count);
        for (int i = first; i < argc; i++)
            printf("%s|", argv[i]);
        printf("%s", dt_command_line());
        fflush(stdout);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    r.status = WEXITSTATUS(status);
    read_back(out, r.out, sizeof r.out);
    read_back(err, r.err, sizeof r.err);
    return r;
}

#define RUN(...) run_to(&command, (const char *const[]){__VA_ARGS__, NULL}, NULL)

static void options_and_operands_are_understood(void **state)
{
    (void)state;
    struct outcome r = RUN("a", "-qn", "3", "--rate=0.25", "b", "-o", "x y", "--mode", "small",
                           "--set", "k=1", "--set=l=2", "--", "-c");
    assert_string_equal(r.err, "");
    assert_int_equal(r.status, 0);
    char *expected = dt_asprintf("1 x y 3 0.25 1 2|a|b|-c|"
                                 "dt-x %s: --number 3 --rate 0.25 --mode small"
                                 " --set k=1 --set l=2 -- a b -c",
                                 dt_version);
    assert_string_equal(r.out, expected);
    free(expected);
}

static void the_command_line_is_one_line_that_a_shell_takes(void **state)
{
    (void)state;
    struct outcome r = RUN("it's", "", "a\nb", "$x", "caf\xe9", "\u00e9");
    assert_non_null(strstr(r.out, ": 'it'\\''s' '' 'a'$'\\x0a''b' '$x' 'caf'$'\\xe9''' '\u00e9'"));
}

static void passwords_in_urls_are_not_recorded(void **state)
{
    (void)state;
    struct outcome r = RUN("--set", "from=http://me:secret@host/x", "s3://me:secret@bucket");
    assert_non_null(strstr(r.out, ": --set 'from=http://***@host/x' 's3://***@bucket'"));
    r = RUN("--mode", "http://me:secret@host");
    assert_null(strstr(r.err, "secret"));
}

static void assert_usage(struct outcome r, const char *message)
{
    assert_string_equal(r.out, "");
    assert_int_equal(strncmp(r.err, "dt-x: ", 6), 0);
    assert_int_equal(strncmp(r.err + 6, message, strlen(message)), 0);
    assert_string_equal(r.err + 6 + strlen(message), "\ntry 'dt-x --help'\n");
    assert_int_equal(r.status, 2);
}

static void wrong_options_are_usage_errors(void **state)
{
    (void)state;
    assert_usage(RUN("-z"), "unknown option '-z'");
    assert_usage(RUN("--quiet", "-zq"), "unknown option '-z'");
    assert_usage(RUN("--ouptut", "x"), "unknown option '--ouptut': did you mean '--output'?");
    assert_usage(RUN("--ouptut=x"), "unknown option '--ouptut': did you mean '--output'?");
    assert_usage(RUN("--halp"), "unknown option '--halp': did you mean '--help'?");
    assert_usage(RUN("--banana"), "unknown option '--banana'");
    assert_usage(RUN("--quiet=yes"), "option '--quiet' takes no value");
    assert_usage(RUN("--help=yes"), "option '--help' takes no value");
    assert_usage(RUN("--output"), "option '--output' needs a value");
    assert_usage(RUN("--outp"), "option '--output' needs a value");
    assert_usage(RUN("-qo"), "option '-o' needs a value");
    assert_usage(RUN("--a\nb"), "unknown option '--a\\x0ab'");
}

static void wrong_values_are_usage_errors(void **state)
{
    (void)state;
    assert_usage(RUN("-n", "0"), "--number takes a number from 1 to 1000000, not '0'");
    assert_usage(RUN("-n", "1000001"), "--number takes a number from 1 to 1000000, not '1000001'");
    assert_usage(RUN("-n", "99999999999999999999"),
                 "--number takes a number from 1 to 1000000, not '99999999999999999999'");
    assert_usage(RUN("--count", "9007199254740994"),
                 "--count takes a number from "
                 "-9007199254740992 to 9007199254740992, not '9007199254740994'");
    assert_usage(RUN("-n", "1.5"),
                 "--number takes a whole number, such as 5000, 64k, 10M or 1G, not '1.5'");
    assert_usage(RUN("-n", ""),
                 "--number takes a whole number, such as 5000, 64k, 10M or 1G, not ''");
    assert_usage(RUN("--rate", "1.01"), "--rate takes a number from 0 to 1, not '1.01'");
    assert_usage(RUN("--rate", "nan"), "--rate takes a number, not 'nan'");
    assert_usage(RUN("-m", "big"), "--mode takes one of fast, small, not 'big'");
}

static void a_needed_option_is_asked_for(void **state)
{
    (void)state;
    const struct dt_option needed[] = {
        {"model", 'm', DT_OPTION_STRING, &opt.out, "FILE", "the model", .required = true}, {NULL}};
    const struct dt_command c = {"dt-x", "do one thing", "", needed};
    const char *none[] = {NULL}, *given[] = {"-m", "x", NULL}, *help[] = {"--help", NULL};
    assert_usage(run_to(&c, none, NULL), "option --model is needed");
    assert_int_equal(run_to(&c, given, NULL).status, 0);
    assert_int_equal(strncmp(run_to(&c, help, NULL).out, "usage: dt-x -m FILE\n", 20), 0);
}

static void help_shows_usage_and_options(void **state)
{
    (void)state;
    struct outcome r = RUN("--help");
    assert_int_equal(r.status, 0);
    assert_string_equal(r.err, "");
    assert_string_equal(r.out, "usage: dt-x [-q] [-o FILE] [-n N] [--count N] [--rate X] "
                               "[-m MODE]\n            [--set KEY=VALUE] ... [FILE ...]\n"
                               "\ndt-x: do one thing\n\n"
                               "  -q, --quiet               print nothing\n"
                               "  -o, --output FILE         write to FILE\n"
                               "  -n, --number N            do it N times\n"
                               "      --count N             any whole number\n"
                               "      --rate X              at rate X\n"
                               "  -m, --mode MODE           fast or small\n"
                               "      --set KEY=VALUE       set a key\n"
                               "  -h, --help                show this help\n"
                               "      --version             show the version\n");
    assert_string_equal(RUN("-qh").out, r.out);
    char *version = dt_asprintf("dt-x (dt) %s\n", dt_version);
    assert_string_equal(RUN("--version").out, version);
    free(version);
}

static void help_of_a_long_option_stands_on_the_next_line(void **state)
{
    (void)state;
    static double x;
    static const struct dt_option one[] = {
        {"seventeen-letters", 0, DT_OPTION_REAL, &x, "X", "short"},
        {"eighteen-letters-x", 0, DT_OPTION_REAL, &x, "X", "long"},
        {NULL}};
    const struct dt_command c = {"dt-x", "do one thing", "", one};
    const char *const args[] = {"--help", NULL};
    struct outcome r = run_to(&c, args, NULL);
    assert_non_null(strstr(r.out, "      --seventeen-letters X short\n"));
    assert_non_null(
        strstr(r.out, "      --eighteen-letters-x X\n                            long\n"));
}

static void help_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    const char *const args[] = {"--help", NULL};
    struct outcome r = run_to(&command, args, "/dev/full");
    assert_int_equal(r.status, 1);
    assert_string_equal(r.err, "dt-x: cannot write to stdout: No space left on device\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_and_operands_are_understood),
        cmocka_unit_test(the_command_line_is_one_line_that_a_shell_takes),
        cmocka_unit_test(passwords_in_urls_are_not_recorded),
        cmocka_unit_test(wrong_options_are_usage_errors),
        cmocka_unit_test(wrong_values_are_usage_errors),
        cmocka_unit_test(a_needed_option_is_asked_for),
        cmocka_unit_test(help_shows_usage_and_options),
        cmocka_unit_test(help_of_a_long_option_stands_on_the_next_line),
        cmocka_unit_test(help_that_cannot_be_written_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
