/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"

static char scratch[] = "/tmp/dt-test-file-XXXXXX";
static struct dt_error err;

static int enter_scratch(void **state)
{
    (void)state;
    return mkdtemp(scratch) && chdir(scratch) == 0 ? 0 : -1;
}

static int leave_scratch(void **state)
{
    (void)state;
    return chdir("/") == 0 ? dt_remove_tree(scratch, &err) : -1;
}

static void assert_file_holds(const char *path, const char *text)
{
    char *data;
    size_t size;
    assert_int_equal(dt_file_read(path, 1000, &data, &size, &err), 0);
    assert_string_equal(data, text);
    free(data);
}

static void a_file_appears_only_when_committed(void **state)
{
    (void)state;
    struct dt_output out;
    assert_int_equal(dt_output_open(&out, "made", &err), 0);
    assert_int_equal(dt_output_write(&out, "text", 4, &err), 0);
    assert_false(dt_file_exists("made"));
    assert_int_equal(dt_output_commit(&out, &err), 0);
    assert_file_holds("made", "text");
}

static void an_abandoned_file_leaves_nothing_and_the_old_one_stays(void **state)
{
    (void)state;
    struct dt_output out;
    assert_int_equal(dt_file_write("kept", "old", 3, &err), 0);
    assert_int_equal(dt_output_open(&out, "kept", &err), 0);
    assert_int_equal(dt_output_write(&out, "new", 3, &err), 0);
    char *temporary = dt_strdup(out.temporary);
    assert_true(dt_file_exists(temporary));
    dt_output_abandon(&out);
    assert_false(dt_file_exists(temporary));
    assert_file_holds("kept", "old");
    free(temporary);
}

static void a_symbolic_link_stays_one(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(dt_make_directories("there", &err), 0);
    assert_int_equal(dt_file_write("there/target", "old", 3, &err), 0);
    assert_int_equal(symlink("there/target", "link"), 0);
    assert_int_equal(dt_file_write("link", "new", 3, &err), 0);
    assert_int_equal(lstat("link", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_file_holds("there/target", "new");
}

/* /dev/stdout is a link to what may be a regular file; it must never be renamed over. */
static void a_descriptor_by_name_is_written_and_not_replaced(void **state)
{
    (void)state;
    FILE *f = fopen("redirected", "w+");
    char name[32];
    snprintf(name, sizeof name, "/dev/fd/%d", fileno(f));
    struct dt_output out;
    assert_int_equal(dt_output_open(&out, name, &err), 0);
    assert_null(out.temporary);
    assert_int_equal(dt_output_write(&out, "text", 4, &err), 0);
    assert_int_equal(dt_output_commit(&out, &err), 0);
    fclose(f);
    assert_file_holds("redirected", "text");
}

static void a_full_disk_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(dt_file_write("/dev/full", "text", 4, &err), DT_EIO);
    assert_string_equal(err.text, "cannot write '/dev/full': No space left on device");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_appears_only_when_committed),
        cmocka_unit_test(an_abandoned_file_leaves_nothing_and_the_old_one_stays),
        cmocka_unit_test(a_symbolic_link_stays_one),
        cmocka_unit_test(a_descriptor_by_name_is_written_and_not_replaced),
        cmocka_unit_test(a_full_disk_is_an_error),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
