/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/program.h"
#include "base/progress.h"

static void whole_numbers_have_suffixes_and_limits(void **state)
{
    (void)state;
    const struct {
        const char *text;
        long value;
    } good[] = {{"0", 0},          {"-7", -7},
                {"+7", 7},         {"64k", 64000},
                {"64K", 64000},    {"1.5k", 1500},
                {"10M", 10000000}, {"2G", 2000000000},
                {"1e6", 1000000},  {"9007199254740992", 9007199254740992}};
    const char *bad[] = {"",
                         "k",
                         "-",
                         " 1",
                         "1 ",
                         "0x10",
                         "inf",
                         "nan",
                         "1.5",
                         "1kk",
                         "1e400",
                         "--1",
                         "1e-1",
                         "9007199254740993",
                         "-9007199254740993",
                         "9007199254740994",
                         "9007199254741k"};
    long value;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(dt_program_parse_int(good[i].text, &value), 0);
        assert_int_equal(value, good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (dt_program_parse_int(bad[i], &value) == 0)
            fail_msg("accepted '%s'", bad[i]);
}

static void real_numbers_are_finite_decimals(void **state)
{
    (void)state;
    const char *bad[] = {"", ".", "inf", "-nan", "0x1p3", "1e999", "1.0f", " 1", "1,5"};
    double x;
    assert_int_equal(dt_program_parse_real("-1.5e-3", &x), 0);
    assert_true(x == -1.5e-3);
    assert_int_equal(dt_program_parse_real(".5", &x), 0);
    assert_true(x == 0.5);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (dt_program_parse_real(bad[i], &x) == 0)
            fail_msg("accepted '%s'", bad[i]);
}

static void near_names_are_suggested(void **state)
{
    (void)state;
    const char *const names[] = {"layers", "heads", "width", "batch_size", NULL};
    assert_string_equal(dt_program_did_you_mean("layer", names), "layers");
    assert_string_equal(dt_program_did_you_mean("haeds", names), "heads");
    assert_null(dt_program_did_you_mean("momentum", names));
    assert_null(dt_program_did_you_mean("block_size", names)); /* three differences */
}

static void parts_are_found_beside_the_program(void **state)
{
    (void)state;
    char exe[4096];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n < 0)
        skip();
    exe[n] = '\0';
    for (int up = 0; up < 2; up++)
        *strrchr(exe, '/') = '\0';
    char *part = dt_program_installed_path("share/dt"), *expected = dt_asprintf("%s/share/dt", exe);
    assert_string_equal(part, expected);
    free(part);
    free(expected);
}

static void parts_of_a_library_are_found_above_lib(void **state)
{
    (void)state;
    assert_int_equal(mkdir("lib", 0777), 0);
    assert_int_equal(mkdir("lib/x86_64-linux-gnu", 0777), 0);
    char *here = dt_path_real("."), *expected = dt_path_join(here, "share/dt");
    const char *const places[] = {"lib/libdt.so.0", "lib/x86_64-linux-gnu/libdt.so.0"};
    for (int i = 0; i < 2; i++) {
        close(open(places[i], O_CREAT | O_WRONLY, 0666));
        dt_program_set_location(places[i]);
        char *part = dt_program_installed_path("share/dt");
        assert_string_equal(part, expected);
        free(part);
    }
    dt_program_set_location(NULL);
    free(expected);
    free(here);
}

static void durations_are_readable(void **state)
{
    (void)state;
    char text[DT_CLOCK_DURATION];
    assert_string_equal(dt_clock_duration(1.54, text), "1.5 s");
    assert_string_equal(dt_clock_duration(59.97, text), "1 min 00 s");
    assert_string_equal(dt_clock_duration(125, text), "2 min 05 s");
    assert_string_equal(dt_clock_duration(12000, text), "3 h 20 min");
}

static void bytes_have_the_unit_that_fits(void **state)
{
    (void)state;
    char text[DT_PROGRESS_BYTES];
    assert_string_equal(dt_progress_bytes(0, text), "0 bytes");
    assert_string_equal(dt_progress_bytes(1023, text), "1023 bytes");
    assert_string_equal(dt_progress_bytes(1536, text), "1.50 KiB");
    assert_string_equal(dt_progress_bytes(1024 * 1024 - 1, text), "1.00 MiB");
    assert_string_equal(dt_progress_bytes(345.6 * 1024 * 1024, text), "345.6 MiB");
    assert_string_equal(dt_progress_bytes(3.25 * (1 << 30), text), "3.25 GiB");
    assert_string_equal(dt_progress_bytes(1e18, text), "909494.7 TiB");
}

/* A file would take their number: messages and results would be written into it. */
static void closed_standard_descriptors_stay_unusable(void **state)
{
    (void)state;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char byte = 'x';
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        dt_program_begin("test");
        bool free_ones = open("/dev/null", O_RDWR) == 3;
        bool used = read(0, &byte, 1) >= 0 || write(1, &byte, 1) >= 0 || write(2, &byte, 1) >= 0;
        _exit(free_ones && !used ? 7 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_have_suffixes_and_limits),
        cmocka_unit_test(real_numbers_are_finite_decimals),
        cmocka_unit_test(near_names_are_suggested),
        cmocka_unit_test(parts_are_found_beside_the_program),
        cmocka_unit_test_setup_teardown(parts_of_a_library_are_found_above_lib, enter_scratch,
                                        leave_scratch),
        cmocka_unit_test(durations_are_readable),
        cmocka_unit_test(bytes_have_the_unit_that_fits),
        cmocka_unit_test(closed_standard_descriptors_stay_unusable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
