/* SPDX-License-Identifier: MIT */
#include "plot/timeline.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/input.h"
#include "plot/gnuplot.h"
#include "plot/trace-internal.h"
#include "json/json.h"

enum { TEXT_COLUMNS = 56, MOST_KINDS = 7, MOST_LABELS = 400 };

#define OTHER "other" /* the kind of all further kinds */

static const char *text_of(struct json_object *event, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(event, name, &value) && value ? dt_json_text(value) : "";
}

static long number_of(struct json_object *event, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(event, name, &value) ? (long)json_object_get_int64(value) : 0;
}

/* A number of a member of event; 0: there is none. */
static double number_in(struct json_object *event, const char *member, const char *name)
{
    struct json_object *inner, *value;
    return json_object_object_get_ex(event, member, &inner) &&
                   json_object_object_get_ex(inner, name, &value)
               ? json_object_get_double(value)
               : 0;
}

static int lane_of(struct dt_trace *t, struct json_object *event)
{
    long process = number_of(event, "pid"), thread = number_of(event, "tid");
    for (int i = 0; i < t->lane_count; i++)
        if (t->lanes[i].process == process && t->lanes[i].thread == thread)
            return i;
    if (t->lane_count == DT_TRACE_LANES)
        return -1;
    t->lanes[t->lane_count] = (struct dt_trace_lane){process, thread, NULL};
    return t->lane_count++;
}

/* The first word of the name, which selects the colour. */
static int kind_of(struct dt_trace *t, const char *name)
{
    size_t size = 0;
    while (isalpha((unsigned char)name[size]) || name[size] == '_' || name[size] == '-')
        size++;
    char *word = size > 0 ? dt_strndup(name, size) : dt_strdup(OTHER);
    int kind = 0;
    while (kind < t->kind_count && strcmp(t->kinds[kind], word) != 0)
        kind++;
    if (kind < t->kind_count) {
        free(word);
        return kind;
    }
    DT_GROW(t->kinds, t->kind_count, t->kind_capacity);
    t->kinds[t->kind_count++] = word;
    return kind;
}

/* Keeps the kinds that take the most time; the rest become one, the last. */
static void join_kinds(struct dt_trace *t)
{
    if (t->kind_count <= MOST_KINDS)
        return;
    double *seconds = dt_alloc((size_t)t->kind_count, sizeof *seconds);
    int *place = dt_alloc((size_t)t->kind_count, sizeof *place);
    char *kept[MOST_KINDS];
    for (size_t i = 0; i < t->count; i++)
        seconds[t->boxes[i].kind] += t->boxes[i].end - t->boxes[i].begin;
    for (int k = 0; k < t->kind_count; k++)
        place[k] = MOST_KINDS - 1;
    for (int i = 0; i < MOST_KINDS - 1; i++) {
        int longest = 0;
        for (int k = 1; k < t->kind_count; k++)
            longest = seconds[k] > seconds[longest] ? k : longest;
        seconds[longest] = -1;
        place[longest] = i;
        kept[i] = dt_strdup(t->kinds[longest]);
    }
    kept[MOST_KINDS - 1] = dt_strdup(OTHER);
    for (size_t i = 0; i < t->count; i++)
        t->boxes[i].kind = place[t->boxes[i].kind];
    for (int k = 0; k < t->kind_count; k++)
        free(t->kinds[k]);
    memcpy(t->kinds, kept, sizeof kept);
    t->kind_count = MOST_KINDS;
    free(seconds);
    free(place);
}

/* Complete events have ts and dur, which may be 0. */
static int add_event(struct dt_trace *t, struct json_object *event, const char *subject,
                     struct dt_error *err)
{
    double begin, duration;
    if (strcmp(text_of(event, "ph"), "X") != 0)
        return 0;
    DT_TRY(dt_json_get_real(event, "ts", subject, &begin, err));
    DT_TRY(dt_json_get_real(event, "dur", subject, &duration, err));
    if (!isfinite(begin) || !isfinite(duration) || duration < 0)
        return dt_fail(err, DT_EFORMAT, "%s: invalid dur %g or ts %g", subject, duration, begin);
    int lane = lane_of(t, event);
    if (lane < 0)
        return dt_fail(err, DT_EINVALID, "%s: more than %d lanes cannot be drawn", subject,
                       DT_TRACE_LANES);
    if (duration == 0)
        return 0;
    const char *name = text_of(event, "name");
    DT_GROW(t->boxes, t->count, t->capacity);
    const char *category = text_of(event, "cat");
    t->boxes[t->count++] = (struct dt_trace_box){
        .lane = lane,
        .kind = kind_of(t, name),
        .begin = begin,
        .end = begin + duration,
        .name = dt_strdup(name),
        .is_step = strcmp(category, "step") == 0,
        .is_phase = *category == '\0' || strcmp(category, "phase") == 0,
        .is_operation = strcmp(category, "operation") == 0,
        .flops = number_in(event, "args", "operations"),
        .bytes = number_in(event, "args", "bytes"),
    };
    t->end = fmax(t->end, begin + duration);
    return 0;
}

static int add_events(struct dt_trace *t, struct json_object *events, const char *path,
                      struct dt_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < json_object_array_length(events) && rc == 0; i++) {
        char *subject = dt_asprintf("%s: event %zu", path, i + 1);
        rc = add_event(t, json_object_array_get_idx(events, i), subject, err);
        free(subject);
    }
    return rc;
}

/* {"ph":"M","name":"process_name" or "thread_name","args":{"name":...}} */
static void add_name(struct dt_trace *t, struct json_object *event)
{
    struct json_object *args;
    bool process = strcmp(text_of(event, "name"), "process_name") == 0;
    if (strcmp(text_of(event, "ph"), "M") != 0 ||
        !(process || strcmp(text_of(event, "name"), "thread_name") == 0) ||
        !json_object_object_get_ex(event, "args", &args))
        return;
    for (int i = 0; i < t->lane_count; i++) {
        struct dt_trace_lane *lane = &t->lanes[i];
        if (lane->process != number_of(event, "pid") ||
            (!process && lane->thread != number_of(event, "tid")))
            continue;
        char *old = lane->name;
        const char *name = text_of(args, "name");
        lane->name = old == NULL ? dt_strdup(name)
                     : process   ? dt_asprintf("%s %s", name, old)
                                 : dt_asprintf("%s %s", old, name);
        free(old);
    }
}

static int compare_lanes(const void *a, const void *b)
{
    const struct dt_trace_lane *x = a, *y = b;
    return x->process != y->process ? (x->process > y->process) - (x->process < y->process)
                                    : (x->thread > y->thread) - (x->thread < y->thread);
}

/* Sorts lanes by process and thread, and renumbers the lanes of boxes. */
static void sort_lanes(struct dt_trace *t)
{
    struct dt_trace_lane old[DT_TRACE_LANES];
    int place[DT_TRACE_LANES];
    memcpy(old, t->lanes, sizeof old);
    qsort(t->lanes, (size_t)t->lane_count, sizeof *t->lanes, compare_lanes);
    for (int i = 0; i < t->lane_count; i++)
        for (int j = 0; j < t->lane_count; j++)
            if (compare_lanes(&old[i], &t->lanes[j]) == 0)
                place[i] = j;
    for (size_t i = 0; i < t->count; i++)
        t->boxes[i].lane = place[t->boxes[i].lane];
}

/* Sorts kinds by lane, so that colours do not depend on the order of events. */
static void sort_kinds(struct dt_trace *t)
{
    int lowest[MOST_KINDS], place[MOST_KINDS], count = 0;
    char *old[MOST_KINDS];
    for (int k = 0; k < t->kind_count; k++) {
        lowest[k] = DT_TRACE_LANES;
        old[k] = t->kinds[k];
    }
    for (size_t i = 0; i < t->count; i++)
        if (t->boxes[i].lane < lowest[t->boxes[i].kind])
            lowest[t->boxes[i].kind] = t->boxes[i].lane;
    for (int lane = 0; lane <= DT_TRACE_LANES; lane++)
        for (int k = 0; k < t->kind_count; k++)
            if (lowest[k] == lane) {
                t->kinds[count] = old[k];
                place[k] = count++;
            }
    for (size_t i = 0; i < t->count; i++)
        t->boxes[i].kind = place[t->boxes[i].kind];
}

/* A zero byte is not JSON. */
static int read_json(const char *path, struct json_object **top, struct dt_error *err)
{
    struct dt_input *in;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    bool zero;
    DT_TRY(dt_input_open(&in, path, err));
    int rc = dt_input_read_until(in, '\0', &text, &zero, err);
    if (rc == 0)
        rc = zero ? dt_fail(err, DT_EFORMAT, "%s: not a trace", path)
                  : dt_json_parse(text.data, text.size, path, top, err);
    dt_buffer_release(&text);
    dt_input_close(in);
    return rc;
}

static void name_lanes(struct dt_trace *t, struct json_object *events)
{
    sort_lanes(t);
    join_kinds(t);
    sort_kinds(t);
    for (size_t i = 0; i < json_object_array_length(events); i++)
        add_name(t, json_object_array_get_idx(events, i));
    for (int i = 0; i < t->lane_count; i++)
        if (t->lanes[i].name == NULL)
            t->lanes[i].name = dt_asprintf("%ld.%ld", t->lanes[i].process, t->lanes[i].thread);
}

int dt_trace_read(struct dt_trace *t, const char *path, struct dt_error *err)
{
    struct json_object *top, *events;
    DT_TRY(read_json(path, &top, err));
    int rc = 0;
    events = top;
    if (json_object_is_type(top, json_type_object))
        rc = dt_json_get(top, "traceEvents", json_type_array, path, &events, err);
    else if (!json_object_is_type(top, json_type_array))
        rc = dt_fail(err, DT_EFORMAT, "%s: not a trace", path);
    if (rc == 0)
        rc = add_events(t, events, path, err);
    if (rc == 0 && t->count == 0)
        rc = dt_fail(err, DT_EFORMAT, "%s: contains no complete event (\"ph\":\"X\")", path);
    if (rc == 0) {
        name_lanes(t, events);
        t->gemm_rate = number_in(top, "otherData", "gemm_flops_per_second");
        t->attention_rate = number_in(top, "otherData", "attention_flops_per_second");
        t->memory_rate = number_in(top, "otherData", "bytes_per_second");
        t->launch = number_in(top, "otherData", "launch_seconds");
    }
    json_object_put(top);
    return rc;
}

static double first_moment(const struct dt_trace *t)
{
    double first = INFINITY;
    for (size_t i = 0; i < t->count; i++)
        first = fmin(first, t->boxes[i].begin);
    return first;
}

static int draw(const struct dt_trace *t, enum dt_plot_format format, const char *title,
                struct dt_buffer *out, struct dt_error *err)
{
    struct dt_buffer script = DT_BUFFER_EMPTY;
    const char *names[DT_TRACE_LANES];
    double begin = first_moment(t), span = t->end - begin;
    double unit = span >= 2e6 ? 1e6 : span >= 2e3 ? 1e3 : 1;
    for (int i = 0; i < t->lane_count; i++)
        names[i] = t->lanes[i].name;
    dt_gnuplot_set_string(&script, "x_label",
                          unit > 1e3 ? "time (seconds)"
                          : unit > 1 ? "time (milliseconds)"
                                     : "time (microseconds)");
    dt_buffer_printf(&script, "whole = %.9g\nlanes = %d\nkinds = %d\nlabelled = %d\n", span / unit,
                     t->lane_count, t->kind_count, t->count <= MOST_LABELS);
    dt_figure_set_ticks(&script, "lane", names, t->lane_count);
    dt_figure_set_array(&script, "kind", (const char *const *)t->kinds, t->kind_count);
    for (int k = 0; k < t->kind_count; k++) {
        dt_buffer_printf(&script, "$kind_%d << end_of_data\n", k + 1);
        for (size_t i = 0; i < t->count; i++) {
            const struct dt_trace_box *b = &t->boxes[i];
            const char *label = b->name + strcspn(b->name, "0123456789");
            if (b->kind == k)
                dt_buffer_printf(&script, "%.9g %.9g %d %.*s\n", (b->begin - begin) / unit,
                                 (b->end - begin) / unit, b->lane + 1,
                                 *label ? (int)strspn(label, "0123456789") : 1,
                                 *label ? label : "-");
        }
        dt_buffer_add_string(&script, "end_of_data\n");
    }
    int rc = dt_figure_draw(&(struct dt_figure){format, title, "timeline", 1}, &script, out, err);
    dt_buffer_release(&script);
    return rc;
}

/* The letter of the kind that fills most of a column of a lane; '.' if it is empty. */
static char letter_at(const struct dt_trace *t, int lane, double from, double to)
{
    double filled[MOST_KINDS] = {0}, most = (to - from) / 10;
    char letter = '.';
    for (size_t i = 0; i < t->count; i++) {
        const struct dt_trace_box *b = &t->boxes[i];
        if (b->lane == lane)
            filled[b->kind] += fmax(0, fmin(b->end, to) - fmax(b->begin, from));
    }
    for (int k = 0; k < t->kind_count; k++)
        if (filled[k] > most) {
            most = filled[k];
            letter = (char)toupper((unsigned char)t->kinds[k][0]);
        }
    return letter;
}

static void write_text(const struct dt_trace *t, const char *title, struct dt_buffer *out)
{
    double begin = first_moment(t), column = (t->end - begin) / TEXT_COLUMNS;
    if (title)
        dt_buffer_printf(out, "%s\n", title);
    for (int lane = 0; lane < t->lane_count; lane++) {
        dt_figure_add_label(out, t->lanes[lane].name, 20);
        dt_buffer_add_string(out, " |");
        for (int c = 0; c < TEXT_COLUMNS; c++)
            dt_buffer_add_char(out,
                               letter_at(t, lane, begin + c * column, begin + (c + 1) * column));
        dt_buffer_add_string(out, "|\n");
    }
    for (int k = 0; k < t->kind_count; k++)
        dt_buffer_printf(out, "%s%c %s", k > 0 ? ", " : "", toupper((unsigned char)t->kinds[k][0]),
                         t->kinds[k]);
    dt_buffer_printf(out, "; %.6g ms in all\n", (t->end - begin) / 1e3);
}

void dt_trace_free(struct dt_trace *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->boxes[i].name);
    free(t->boxes);
    for (int i = 0; i < t->lane_count; i++)
        free(t->lanes[i].name);
    for (int i = 0; i < t->kind_count; i++)
        free(t->kinds[i]);
    free(t->kinds);
    free(t);
}

int dt_plot_timeline(enum dt_plot_format format, const char *title, const char *path,
                     struct dt_buffer *out, struct dt_error *err)
{
    struct dt_trace *t = dt_alloc(1, sizeof *t);
    int rc = dt_trace_read(t, path, err);
    if (rc == 0 && format == DT_PLOT_TEXT)
        write_text(t, title, out);
    else if (rc == 0)
        rc = draw(t, format, title, out, err);
    dt_trace_free(t);
    return rc;
}
