/* SPDX-License-Identifier: MIT */
/*
 * A matrix of runs: a command with placeholders, and an axis of values for each placeholder.
 *
 *     command: dt-bench --json --set model.num_layers={layers} step
 *     axes: {layers: [2, 4], width: [64, 128]}
 *     repeats: 7
 *
 * The design is a JSON object with these keys (from YAML, from options, or both). Each combination
 * of values is a cell. In a word of the command, {NAME} is replaced by the cell's value of that
 * axis, {seed} by the seed of the round, {round} by its number, {cell} by "layers=2,width=64";
 * {{NAME}} is a literal {NAME}, and other braces are literal. A word {NAME:words} is replaced by
 * the words of the value, possibly none.
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
    struct json_object *design; /* as given, owned */
    struct dt_axis *axes;
    int axis_count, cell_count;
    char **command; /* templates, ended by NULL */
    char *metrics;  /* a template, or NULL */
    bool shell;
    long repeats, warmup;
    int64_t seed;
    double limit;  /* time limit of a run in seconds; 0: none */
    int *baseline; /* [axis]: index of the baseline's value, or -1: the cell's own value */
    bool has_baseline;
};

/* subject: the design's name in errors. Takes ownership of design, even on failure. */
int dt_matrix_init(struct dt_matrix *m, struct json_object *design, const char *subject,
                   struct dt_error *err) DT_MUST_CHECK;
void dt_matrix_release(struct dt_matrix *m);

/* Index and text of a cell's value on an axis; the last axis varies fastest. */
int dt_matrix_value(const struct dt_matrix *m, int cell, int axis);
const char *dt_matrix_text(const struct dt_matrix *m, int cell, int axis);
/* The baseline cell of a cell (itself, if it is one); -1 without a baseline. */
int dt_matrix_baseline(const struct dt_matrix *m, int cell);
/* {"layers":"2",...}; owned by the caller. */
struct json_object *dt_matrix_cell(const struct dt_matrix *m, int cell);
/* Index of the cell with these values, or -1. */
int dt_matrix_find(const struct dt_matrix *m, struct json_object *cell);
/* Appends "layers=2,width=64"; a '/' in a value becomes '_'. */
void dt_matrix_name(const struct dt_matrix *m, int cell, struct dt_buffer *name);

/* The words of a cell's command in a round (from 1), NULL-terminated; release with
 * dt_matrix_free_words. */
char **dt_matrix_words(const struct dt_matrix *m, int cell, long round);
void dt_matrix_free_words(char **words);
/* Path of a cell's metrics, or NULL. Owned by the caller. */
char *dt_matrix_metrics(const struct dt_matrix *m, int cell, long round);

/* Whether rows of one design are comparable with those of the other: axes may have additional
 * values and repeats may differ; everything else that a value depends on must be equal, where what
 * is left out is its default. *why: the first key that differs. */
bool dt_matrix_continues(struct json_object *old_design, struct json_object *new_design,
                         const char **why);

#endif
