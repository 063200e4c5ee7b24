/* SPDX-License-Identifier: MIT */
/*
 * Runs as a report needs them: what each is, which settings differ, and which are repetitions of
 * one configuration with other seeds.
 *
 *     struct dt_reported runs;
 *     DT_TRY(dt_reported_read(&runs, paths, count, err));
 *     for (int c = 0; c < runs.configuration_count; c++)
 *         use(runs.configurations[c].label, runs.configurations[c].runs);
 *     dt_reported_release(&runs);
 */
#ifndef DT_REPORT_RUNS_H
#define DT_REPORT_RUNS_H

#include <stdbool.h>

#include "hash/sha256.h"
#include "io/run-metrics.h"
#include "track/run-watch.h"
#include "json/json.h"

/* Curves of every report beside the loss. */
enum dt_reported_curve {
    DT_REPORTED_CURVE_LR,
    DT_REPORTED_CURVE_GRADIENTS,
    DT_REPORTED_CURVE_SPEED,
    DT_REPORTED_CURVES
};

struct dt_reported_run {
    const char *path;              /* borrowed */
    char *name;                    /* different for all runs */
    struct dt_run_metrics loss;    /* training and validation */
    struct dt_run_metrics *curves; /* [curve_count]; without points if no line has the member */
    /* Settings and what identifies program, machine and inputs, by name, as strings:
     * {"training.seed": "1", "dt": "0.2.0", ...}; NULL without a checkpoint. */
    struct json_object *facts;
    struct json_object *records; /* its lineage, an array; NULL if unknown */
    enum dt_run_state state;
    uint64_t parameters;              /* of the last checkpoint; 0 if unknown */
    char metrics_hash[DT_SHA256_HEX]; /* of metrics.jsonl */
};

/* Runs whose facts are equal except for the seed, and for names and places of outputs. */
struct dt_configuration {
    int *runs; /* indices, in the order given */
    int count;
    char *label; /* "A: num_layers=2" */
};

struct dt_reported {
    struct dt_reported_run *runs;
    int count;
    char **members; /* of the curves, in dt-metrics(5): dt_reported_curve, then validations */
    size_t curve_count, curve_capacity;
    struct dt_configuration *configurations; /* in the order of their first runs */
    int configuration_count;
    struct json_object *different; /* array: names of facts that differ between configurations */
};

/* paths: directories of dt-train, or files of metrics. DT_EFORMAT if one has no finite loss or a
 * damaged checkpoint; DT_EINVALID if two of a configuration have the same seed. */
int dt_reported_read(struct dt_reported *r, char *const *paths, int count,
                     struct dt_error *err) DT_MUST_CHECK;
void dt_reported_release(struct dt_reported *r);

/* What identifies an input of a record, whatever its path and the version of dt: of the content, or
 * of the file; "" if neither is known. */
const char *dt_reported_input_hash(struct json_object *input);
/* The fact of a run, or of the first run of a configuration; "" if it is unknown. */
const char *dt_reported_fact(const struct dt_reported_run *run, const char *name);
const struct dt_reported_run *dt_reported_first(const struct dt_reported *r, int configuration);

#endif
