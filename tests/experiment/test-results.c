/* SPDX-License-Identifier: MIT */
#include "json-of.h"
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "experiment/results.h"

static const char *written_before; /* by another program, before this one has the lock */

int flock(int fd, int operation)
{
    if (written_before)
        assert_int_equal(write(fd, written_before, strlen(written_before)), strlen(written_before));
    written_before = NULL;
    return (int)syscall(SYS_flock, fd, operation);
}

static void rows_of_another_matrix_that_was_just_written_are_kept(void **state)
{
    (void)state;
    struct json_object *design = json_of("{\"command\":[\"a\",\"{x}\"],\"axes\":{\"x\":[\"1\"]}}");
    struct json_object *machine = json_of("{}");
    struct dt_error err;
    FILE *file;
    written_before = "{\"design\":{\"command\":[\"b\",\"{y}\"],\"axes\":{\"y\":[\"1\"]}}}\n";
    assert_int_equal(dt_results_append(&file, "rows.jsonl", design, machine, &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "'rows.jsonl' has rows of another matrix"));
    json_object_put(design);
    json_object_put(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_another_matrix_that_was_just_written_are_kept),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
