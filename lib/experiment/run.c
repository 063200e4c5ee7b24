/* SPDX-License-Identifier: MIT */
#include "experiment/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/progress.h"
#include "experiment/child.h"
#include "experiment/machine.h"
#include "experiment/readings.h"
#include "experiment/reference.h"
#include "experiment/results.h"
#include "math/rng.h"
#include "json/json-number.h"

struct matrix_run {
    const struct dt_matrix *matrix;
    const struct dt_matrix_run_options *options;
    const char *path;
    FILE *file;
    struct dt_results done;    /* rows of earlier calls */
    bool *failed;              /* [cell] */
    struct json_object *names; /* of the values seen so far */
    struct dt_progress progress;
};

static void add_value(struct json_object *values, const char *name, double x)
{
    if (isfinite(x))
        dt_json_object_add(values, name, dt_json_number(x));
}

/* The machine's state around a run. */
struct surroundings {
    double load, reference; /* seconds of the reference loop */
};

static int read_values(const struct matrix_run *run, int cell, long round,
                       const struct dt_child_result *r, struct json_object *values,
                       struct dt_error *err)
{
    struct json_object *targets = NULL;
    char *metrics = dt_matrix_metrics(run->matrix, cell, round);
    json_object_object_get_ex(run->matrix->design, "targets", &targets);
    dt_readings_add_output(values, &r->output);
    int rc = metrics ? dt_readings_add_metrics(values, metrics, targets, err) : 0;
    free(metrics);
    add_value(values, "wall_s", r->wall);
    add_value(values, "cpu_s", r->user + r->system);
    add_value(values, "user_s", r->user);
    add_value(values, "system_s", r->system);
    add_value(values, "peak_bytes", r->peak_bytes);
    add_value(values, "joules", r->joules);
    return rc;
}

/* Missing or damaged metrics make a run fail. */
static struct json_object *take_values(struct matrix_run *run, int cell, long round,
                                       struct dt_child_result *r)
{
    struct json_object *values = dt_json_new_object();
    struct dt_error err;
    if (r->status == 0 && read_values(run, cell, round, r, values, &err) < 0) {
        r->status = 1;
        snprintf(r->complaint, sizeof r->complaint, "%.255s", err.text);
    }
    if (r->status == 0)
        dt_results_add_names(run->names, values);
    return values;
}

static int write_row(struct matrix_run *run, int cell, long round, struct surroundings around,
                     const struct dt_child_result *r, struct json_object *values,
                     struct dt_error *err)
{
    struct json_object *row = dt_json_new_object();
    dt_json_object_add(row, "cell", dt_matrix_cell(run->matrix, cell));
    dt_json_object_add(row, "round", dt_json_new_int(round));
    dt_json_object_add(row, "seed", dt_json_new_int(run->matrix->seed + round - 1));
    add_value(row, "load", around.load);
    add_value(row, "reference_s", around.reference);
    dt_json_object_add(row, "status", dt_json_new_int(r->status));
    if (r->status == 0)
        dt_json_object_add(row, "values", json_object_get(values));
    else
        dt_json_object_add(row, "error", dt_json_new_string(r->complaint));
    int rc = dt_results_write(run->file, row, run->path, err);
    json_object_put(row);
    return rc;
}

static void warn_of_failure(const struct matrix_run *run, int cell, const struct dt_child_result *r)
{
    struct dt_buffer name = DT_BUFFER_EMPTY;
    dt_matrix_name(run->matrix, cell, &name);
    if (run->options->warn)
        run->options->warn(name.data ? name.data : "the command", r->status, r->complaint);
    dt_buffer_release(&name);
}

static bool has_row(const struct matrix_run *run, int cell, long round)
{
    const struct dt_row *row = dt_results_row(&run->done, cell, round);
    return row && row->status == 0;
}

/* The first round that an earlier call has not measured: a failure replaces none. */
static long first_missing(const struct matrix_run *run, int cell)
{
    long round = 1;
    while (round < run->matrix->repeats && has_row(run, cell, round))
        round++;
    return round;
}

/* Round 0 is warm-up, and writes a row only if it fails. */
static int run_cell(struct matrix_run *run, int cell, long round, struct dt_error *err)
{
    struct dt_child_result r;
    struct surroundings around = {dt_machine_load(), dt_reference_seconds()};
    char **words = dt_matrix_words(run->matrix, cell, round);
    int rc = dt_child_run(words, run->matrix->limit, run->options->stop, &r, err);
    dt_matrix_free_words(words);
    DT_TRY(rc);
    around.reference = (around.reference + dt_reference_seconds()) / 2;
    struct json_object *values = take_values(run, cell, round, &r);
    if (round > 0 || r.status != 0)
        rc = write_row(run, cell, round > 0 ? round : first_missing(run, cell), around, &r, values,
                       err);
    json_object_put(values);
    run->failed[cell] = r.status != 0;
    if (r.status != 0) {
        dt_progress_clear(&run->progress);
        warn_of_failure(run, cell, &r);
    }
    dt_child_release(&r);
    return rc;
}

static bool lacks_rows(const struct matrix_run *run, int cell)
{
    for (long round = 1; round <= run->matrix->repeats; round++)
        if (!has_row(run, cell, round))
            return true;
    return false;
}

/* Called after the first round: a requested value that no cell has is an error that further rounds
 * would not fix. */
static int check_names(const struct matrix_run *run, struct dt_error *err)
{
    struct json_object *wanted;
    return json_object_object_get_ex(run->matrix->design, "values", &wanted)
               ? dt_results_check_names(wanted, run->names, run->path, err)
               : 0;
}

static int run_round(struct matrix_run *run, long round, uint64_t order, struct dt_error *err)
{
    uint64_t count = (uint64_t)run->matrix->cell_count;
    for (uint64_t i = 0; i < count; i++) {
        int cell = (int)dt_rng_permute(order, count, i);
        if (run->failed[cell] || (round > 0 ? has_row(run, cell, round) : !lacks_rows(run, cell)))
            continue;
        if (dt_progress_due(&run->progress))
            dt_progress_show(&run->progress, "round %ld of %ld, run %d of %d", round,
                             run->matrix->repeats, (int)i + 1, (int)count);
        DT_TRY(run_cell(run, cell, round, err));
    }
    return check_names(run, err);
}

static int run_rounds(struct matrix_run *run, struct dt_error *err)
{
    uint64_t seed = (uint64_t)run->matrix->seed;
    for (long w = 1; w <= run->matrix->warmup; w++)
        DT_TRY(run_round(run, 0, dt_random_key(seed, 0, (uint64_t)w), err));
    for (long round = 1; round <= run->matrix->repeats; round++)
        DT_TRY(run_round(run, round, dt_random_key(seed, 1, (uint64_t)round), err));
    return 0;
}

int dt_matrix_run(const struct dt_matrix *m, const char *path,
                  const struct dt_matrix_run_options *options, int *failed, struct dt_error *err)
{
    struct matrix_run run = {.matrix = m, .options = options, .path = path};
    struct json_object *machine = dt_machine_facts(m->shell ? "sh" : m->command[0]);
    int rc = dt_results_append(&run.file, path, m->design, machine, err);
    json_object_put(machine);
    DT_TRY(rc);
    rc = dt_results_read(&run.done, path, err);
    if (rc == 0) {
        run.failed = dt_alloc((size_t)m->cell_count, sizeof *run.failed);
        run.names = dt_results_names(&run.done);
        dt_progress_init(&run.progress, options->quiet);
        rc = run_rounds(&run, err);
        dt_progress_clear(&run.progress);
        *failed = 0;
        for (int cell = 0; cell < m->cell_count; cell++)
            *failed += run.failed[cell];
        free(run.failed);
        json_object_put(run.names);
        dt_results_release(&run.done);
    }
    if (fclose(run.file) != 0 && rc == 0)
        rc = dt_fail_errno(err, "cannot write '%s'", path);
    return rc;
}
