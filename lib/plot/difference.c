/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "plot/timeline.h"
#include "plot/trace-internal.h"

struct row {
    char *name;
    double milliseconds[2]; /* of a step: planned, measured; NAN: absent */
};

struct rows {
    struct row *items;
    int count, capacity;
};

/* The length of a name without its number. */
static size_t stem(const char *name)
{
    size_t size = strlen(name);
    while (size > 0 && (isdigit((unsigned char)name[size - 1]) || name[size - 1] == ' '))
        size--;
    return size;
}

static struct row *row_of(struct rows *rows, const char *name, size_t size)
{
    for (int i = 0; i < rows->count; i++)
        if (strlen(rows->items[i].name) == size && strncmp(rows->items[i].name, name, size) == 0)
            return &rows->items[i];
    DT_GROW(rows->items, rows->count, rows->capacity);
    rows->items[rows->count] = (struct row){dt_strndup(name, size), {NAN, NAN}};
    return &rows->items[rows->count++];
}

static void add_to(struct rows *rows, const struct dt_trace_box *b, int side, double milliseconds)
{
    double *value = &row_of(rows, b->name, stem(b->name))->milliseconds[side];
    *value = (isnan(*value) ? 0 : *value) + milliseconds;
}

/* The steps of a trace, and their microseconds. */
static double count_steps(const struct dt_trace *t, double *duration)
{
    double steps = 0, first = INFINITY;
    *duration = 0;
    for (size_t i = 0; i < t->count; i++) {
        const struct dt_trace_box *b = &t->boxes[i];
        steps += b->is_step;
        *duration += b->is_step ? b->end - b->begin : 0;
        first = fmin(first, b->begin);
    }
    if (steps > 0)
        return steps;
    *duration = t->end - first; /* a plan is one step */
    return 1;
}

/* Adds the phases of a trace, per step, and its steps as one row. */
static void add_phases(struct rows *rows, int side, const struct dt_trace *t)
{
    double duration, steps = count_steps(t, &duration);
    for (size_t i = 0; i < t->count; i++)
        if (t->boxes[i].is_phase)
            add_to(rows, &t->boxes[i], side, (t->boxes[i].end - t->boxes[i].begin) / 1e3 / steps);
    row_of(rows, "step", 4)->milliseconds[side] = duration / 1e3 / steps;
}

/* By the model of dt-plan: the longer of arithmetic and memory, and the launch. NAN: the plan does
 * not have the rate. */
static double planned_seconds(const struct dt_trace *plan, const struct dt_trace_box *b)
{
    bool is_attention = strncmp(b->name, "attention", strlen("attention")) == 0;
    double rate = is_attention ? plan->attention_rate : plan->gemm_rate;
    if (!(rate > 0))
        return NAN;
    return plan->launch + fmax(b->flops / rate, b->bytes / plan->memory_rate);
}

/* Adds the measured operations, and what the plan's device would take for them. */
static void add_operations(struct rows *rows, const struct dt_trace *plan, const struct dt_trace *t)
{
    double duration, steps = count_steps(t, &duration);
    for (size_t i = 0; i < t->count && plan->gemm_rate > 0 && plan->memory_rate > 0; i++) {
        const struct dt_trace_box *b = &t->boxes[i];
        if (!b->is_operation)
            continue;
        double planned = planned_seconds(plan, b);
        if (!isnan(planned))
            add_to(rows, b, 0, planned * 1e3 / steps);
        add_to(rows, b, 1, (b->end - b->begin) / 1e3 / steps);
    }
}

static double zero_if_absent(double value)
{
    return isnan(value) ? 0 : value;
}

/* The largest differences first, the step last. */
static int compare(const void *a, const void *b)
{
    const struct row *rows[] = {a, b};
    double distance[2];
    for (int i = 0; i < 2; i++)
        distance[i] = strcmp(rows[i]->name, "step") == 0
                          ? -1
                          : fabs(zero_if_absent(rows[i]->milliseconds[0]) -
                                 zero_if_absent(rows[i]->milliseconds[1]));
    return (distance[0] < distance[1]) - (distance[0] > distance[1]);
}

static void print_value(struct dt_buffer *text, double value)
{
    if (isnan(value))
        dt_buffer_printf(text, " %12s", "-");
    else
        dt_buffer_printf(text, " %12.3f", value);
}

static void print(const struct rows *rows, const char *heading, struct dt_buffer *text)
{
    dt_buffer_printf(text, "%-24s %12s %12s %12s %9s\n", heading, "planned", "measured",
                     "difference", "ratio");
    for (int i = 0; i < rows->count; i++) {
        const struct row *r = &rows->items[i];
        double planned = r->milliseconds[0], measured = r->milliseconds[1];
        dt_figure_add_label(text, r->name, 24);
        print_value(text, planned);
        print_value(text, measured);
        dt_buffer_printf(text, " %+12.3f", zero_if_absent(measured) - zero_if_absent(planned));
        if (planned > 0 && measured >= 0)
            dt_buffer_printf(text, " %9.2f\n", measured / planned);
        else
            dt_buffer_printf(text, " %9s\n", "-");
    }
}

/* Sorts, prints and releases rows. */
static void finish(struct rows *rows, const char *heading, struct dt_buffer *text)
{
    if (rows->count > 0) {
        qsort(rows->items, (size_t)rows->count, sizeof *rows->items, compare);
        print(rows, heading, text);
    }
    for (int i = 0; i < rows->count; i++)
        free(rows->items[i].name);
    free(rows->items);
}

int dt_plot_difference(const char *planned, const char *measured, struct dt_buffer *out,
                       struct dt_error *err)
{
    struct dt_trace *plan = dt_alloc(1, sizeof *plan), *run = dt_alloc(1, sizeof *run);
    int rc = dt_trace_read(plan, planned, err);
    rc = rc < 0 ? rc : dt_trace_read(run, measured, err);
    if (rc == 0) {
        struct rows operations = {0}, phases = {0};
        add_operations(&operations, plan, run);
        add_phases(&phases, 0, plan);
        add_phases(&phases, 1, run);
        finish(&operations, "operation, ms per step", out);
        finish(&phases, "milliseconds per step", out);
    }
    dt_trace_free(plan);
    dt_trace_free(run);
    return rc;
}
