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

/* Adds the phases of a trace, per step, and its steps as one row. */
static int add(struct rows *rows, int side, const char *path, struct dt_error *err)
{
    struct dt_trace *t = dt_alloc(1, sizeof *t);
    double steps = 0, seconds = 0, first = INFINITY;
    int rc = dt_trace_read(t, path, err);
    for (size_t i = 0; rc == 0 && i < t->count; i++) {
        const struct dt_trace_box *b = &t->boxes[i];
        steps += b->is_step;
        seconds += b->is_step ? b->end - b->begin : 0;
        first = fmin(first, b->begin);
    }
    if (steps == 0) { /* a plan is one step */
        steps = 1;
        seconds = t->end - first;
    }
    for (size_t i = 0; rc == 0 && i < t->count; i++) {
        const struct dt_trace_box *b = &t->boxes[i];
        double *value = &row_of(rows, b->name, stem(b->name))->milliseconds[side];
        if (b->is_phase)
            *value = (isnan(*value) ? 0 : *value) + (b->end - b->begin) / 1e3 / steps;
    }
    if (rc == 0)
        row_of(rows, "step", 4)->milliseconds[side] = seconds / 1e3 / steps;
    dt_trace_free(t);
    return rc;
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

static void print(const struct rows *rows, struct dt_buffer *text)
{
    dt_buffer_printf(text, "%-24s %12s %12s %12s %9s\n", "milliseconds a step", "planned",
                     "measured", "difference", "ratio");
    for (int i = 0; i < rows->count; i++) {
        const struct row *r = &rows->items[i];
        double planned = r->milliseconds[0], measured = r->milliseconds[1];
        if (isnan(planned) && isnan(measured)) /* of layers and operations alone */
            continue;
        dt_buffer_printf(text, "%-24.24s", r->name);
        print_value(text, planned);
        print_value(text, measured);
        dt_buffer_printf(text, " %+12.3f", zero_if_absent(measured) - zero_if_absent(planned));
        if (planned > 0 && measured >= 0)
            dt_buffer_printf(text, " %9.2f\n", measured / planned);
        else
            dt_buffer_printf(text, " %9s\n", "-");
    }
}

int dt_plot_difference(const char *planned, const char *measured, struct dt_buffer *out,
                       struct dt_error *err)
{
    struct rows rows = {0};
    int rc = add(&rows, 0, planned, err);
    rc = rc < 0 ? rc : add(&rows, 1, measured, err);
    if (rc == 0) {
        qsort(rows.items, (size_t)rows.count, sizeof *rows.items, compare);
        print(&rows, out);
    }
    for (int i = 0; i < rows.count; i++)
        free(rows.items[i].name);
    free(rows.items);
    return rc;
}
