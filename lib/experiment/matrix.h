/* SPDX-License-Identifier: MIT */
/*
 * A matrix of runs: a command with holes, and for each hole an axis of values.
 *
 *     command: dt-bench --json --set model.num_layers={layers} step
 *     axes: {layers: [2, 4], width: [64, 128]}
 *     repeats: 7
 *
 * The design is a JSON object of these keys (from YAML, from options, or both), of which
 * this makes the cells, one for each combination of values, and the words of a cell's
 * command. In a word, {NAME} is the value of an axis, {seed} the seed of the round,
 * {round} its number, {cell} "layers=2,width=64"; {{NAME}} stands for {NAME}, and other
 * braces for themselves. A word that is {NAME:words} becomes the words of the value, none
 * if it is empty.
 *
 * Keys: command (text or list), axes (name: list), repeats, warmup, seed, limit (seconds),
 * shell (true: sh -c, values quoted), metrics (a template of a metrics.jsonl), targets
 * (member: level), baseline (axis: value), values (list), notes (name: text).
 */
#ifndef DT_EXPERIMENT_MATRIX_H
#define DT_EXPERIMENT_MATRIX_H

#include "json/json.h"
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

struct dt_axis {
    char *name;
    char **values;
    int count;
};

struct dt_matrix {
    struct json_object *design; /* as given; owned */
    struct dt_axis *axes;
    int axis_count, cell_count;
    char **command; /* templates, ended by NULL */
    char *metrics;  /* a template, or NULL */
    bool shell;
    long repeats, warmup;
    int64_t seed;
    double limit;  /* seconds a run may take; 0 any */
    int *baseline; /* for each axis the index of its value in the baseline, or -1: the cell's own */
    bool has_baseline;
};

/* subject names the design in errors. Takes over design, whatever is returned. */
int dt_matrix_init(struct dt_matrix *m, struct json_object *design, const char *subject,
                   struct dt_error *err) DT_MUST_CHECK;
void dt_matrix_release(struct dt_matrix *m);

/* Index of the value that a cell has on an axis, and its text; the last axis changes fastest. */
int dt_matrix_value(const struct dt_matrix *m, int cell, int axis);
const char *dt_matrix_text(const struct dt_matrix *m, int cell, int axis);
/* The cell that a cell is compared with; itself for the baseline, -1 without any. */
int dt_matrix_baseline(const struct dt_matrix *m, int cell);
/* {"layers":"2",...}; owned by the caller. */
struct json_object *dt_matrix_cell(const struct dt_matrix *m, int cell);
/* The cell with these values, or -1. */
int dt_matrix_find(const struct dt_matrix *m, struct json_object *cell);
/* "layers=2,width=64", appended; a '/' in a value becomes '_'. */
void dt_matrix_name(const struct dt_matrix *m, int cell, struct dt_buffer *name);

/* The words of a cell's command in a round (from 1), ended by NULL; free with
 * dt_matrix_free_words. */
char **dt_matrix_words(const struct dt_matrix *m, int cell, long round);
void dt_matrix_free_words(char **words);
/* The path of a cell's metrics, or NULL; owned by the caller. */
char *dt_matrix_metrics(const struct dt_matrix *m, int cell, long round);

/* Whether rows of one design can stand beside those of the other: all that a value
 * depends on is equal, but axes may have gained values and repeats may differ. *why
 * names the first key that differs. */
bool dt_matrix_continues(struct json_object *old_design, struct json_object *new_design,
                         const char **why);

#endif
