/* SPDX-License-Identifier: MIT */
/* dt-verify: checks files and runs against what was recorded about them. */
#include "base/file.h"
#include "base/program.h"
#include "verify/files.h"
#include "verify/report.h"

static const struct dt_option options[] = {{NULL}};

static int run_files(struct dt_verify_report *r, char **operands, int count, struct dt_error *err)
{
    if (count == 0)
        dt_program_usage("files needs a PATH");
    for (int i = 0; i < count; i++)
        DT_TRY(dt_verify_files(operands[i], r, err));
    return 0;
}

/* The modes: a row here, a function above, the mode itself in lib/verify/MODE.c. */
static const struct dt_use uses[] = {
    {"files", "PATH ...", NULL, ""},
    {NULL},
};

static int (*const runs[])(struct dt_verify_report *r, char **operands, int count,
                           struct dt_error *err) = {run_files};

static const struct dt_command command = {
    "dt-verify", "check files and runs against what was recorded about them", "", options, uses};

int main(int argc, char **argv)
{
    struct dt_error err;
    struct dt_output out;
    int first = dt_program_parse_options(&command, argc, argv);
    int use = dt_program_find_use(&command, first < argc ? argv[first] : NULL);
    dt_program_check_use(&command, &uses[use]);
    struct dt_verify_report report = {.out = &out};
    int rc = dt_output_open(&out, "-", &err);
    if (rc == 0) {
        rc = runs[use](&report, argv + first + 1, argc - first - 1, &err);
        int written = rc < 0 ? dt_output_flush(&out, &(struct dt_error){0}) : 0;
        rc = rc < 0 || written < 0 ? rc : dt_output_commit(&out, &err);
    }
    dt_output_abandon(&out);
    return rc < 0 ? dt_program_report(&err) : report.differ > 0;
}
