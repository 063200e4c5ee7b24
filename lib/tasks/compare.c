/* SPDX-License-Identifier: MIT */
#include "tasks/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/confidence.h"
#include "io/json-lines.h"
#include "tasks/metric.h"
#include "json/json-number.h"

/* The items of a file, in order. */
struct answers {
    const char *path;
    struct json_object **items;
    size_t count, capacity;
};

static const char *text_member(struct json_object *item, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(item, name, &value) && value ? dt_json_text(value) : "";
}

static int add_line(void *context, struct json_object *item, const char *place,
                    struct dt_error *err)
{
    struct answers *a = context;
    DT_GROW(a->items, a->count, a->capacity);
    a->items[a->count++] = json_object_get(item);
    if (!json_object_is_type(item, json_type_object) || *text_member(item, "task") == 0 ||
        *text_member(item, "item") == 0)
        return dt_fail(err, DT_EFORMAT, "%s: is not a line of dt-eval --items ... tasks", place);
    if (strcmp(text_member(item, "model"), text_member(a->items[0], "model")) != 0)
        return dt_fail(err, DT_EFORMAT, "%s: is of another model than the first line", place);
    return 0;
}

static int read_answers(struct answers *a, const char *path, struct dt_error *err)
{
    *a = (struct answers){.path = path};
    DT_TRY(dt_json_lines_read_complete(path, add_line, a, err));
    return a->count > 0 ? 0 : dt_fail(err, DT_EFORMAT, "%s: contains no item", path);
}

static void release(struct answers *a)
{
    for (size_t i = 0; i < a->count; i++)
        json_object_put(a->items[i]);
    free(a->items);
}

static bool is_same_item(struct json_object *a, struct json_object *b)
{
    return strcmp(text_member(a, "task"), text_member(b, "task")) == 0 &&
           strcmp(text_member(a, "item"), text_member(b, "item")) == 0;
}

static int check_same(const struct answers *a, const struct answers *b, struct dt_error *err)
{
    if (a->count != b->count)
        return dt_fail(err, DT_EFORMAT, "%s has %zu items, %s %zu: compare the same tasks", a->path,
                       a->count, b->path, b->count);
    for (size_t i = 0; i < a->count; i++)
        if (!is_same_item(a->items[i], b->items[i]))
            return dt_fail(
                err, DT_EFORMAT, "line %zu is item %s of %s in %s, and item %s of %s in %s", i + 1,
                text_member(a->items[i], "item"), text_member(a->items[i], "task"), a->path,
                text_member(b->items[i], "item"), text_member(b->items[i], "task"), b->path);
    return 0;
}

/* --- tests ------------------------------------------------------------------------------------*/

double dt_task_mcnemar(size_t discordant, size_t more)
{
    size_t fewer = discordant - more < more ? discordant - more : more;
    double term = 1, sum = 1;
    int scale = 0; /* term and sum are to be multiplied by 2^scale */
    if (2 * fewer >= discordant)
        return 1;
    for (size_t k = 1; k <= fewer; k++) {
        term = term * (double)(discordant - k + 1) / (double)k;
        sum += term;
        if (sum > 0x1p500) {
            term = ldexp(term, -500);
            sum = ldexp(sum, -500);
            scale += 500;
        }
    }
    double p = ldexp(sum, scale + 1 - (int)discordant);
    return p < 1 ? p : 1;
}

/* Both models' scores of the items of a task by a metric. */
struct pairs {
    double *a, *b;
    struct dt_task_score *differences;
    size_t count, a_wins, b_wins;
    bool binary; /* all scores are 0 or 1 */
};

static void fill(struct pairs *p, const struct answers *a, const struct answers *b, size_t first,
                 size_t end, const char *metric)
{
    *p = (struct pairs){.count = end - first, .binary = true};
    p->a = dt_alloc(p->count, sizeof *p->a);
    p->b = dt_alloc(p->count, sizeof *p->b);
    p->differences = dt_alloc(p->count, sizeof *p->differences);
    for (size_t i = 0; i < p->count; i++) {
        double x = json_object_get_double(json_object_object_get(a->items[first + i], metric));
        double y = json_object_get_double(json_object_object_get(b->items[first + i], metric));
        p->a[i] = x;
        p->b[i] = y;
        p->differences[i].value = y - x;
        p->a_wins += x > y;
        p->b_wins += y > x;
        p->binary = p->binary && (x == 0 || x == 1) && (y == 0 || y == 1);
    }
}

static void add_json(const struct pairs *p, const char *task, const char *metric,
                     const struct dt_task_estimate *e, double value, struct dt_buffer *b)
{
    dt_buffer_add_string(b, "{\"task\":");
    dt_json_add_string(b, task, strlen(task));
    dt_buffer_add_string(b, ",\"metric\":");
    dt_json_add_string(b, metric, strlen(metric));
    dt_buffer_printf(b, ",\"items\":%zu", p->count);
    dt_json_add_real(b, "a", dt_confidence_mean(p->a, p->count), 9);
    dt_json_add_real(b, "b", dt_confidence_mean(p->b, p->count), 9);
    dt_json_add_real(b, "difference", e->value, 9);
    dt_json_add_real(b, "difference_stderr", e->error, 9);
    if (isnan(e->low))
        dt_buffer_add_string(b, ",\"difference_interval\":[null,null]");
    else
        dt_buffer_printf(b, ",\"difference_interval\":[%.9g,%.9g]", e->low, e->high);
    dt_buffer_printf(b, ",\"a_wins\":%zu,\"b_wins\":%zu", p->a_wins, p->b_wins);
    dt_buffer_printf(b, ",\"test\":\"%s\"", p->binary ? "mcnemar" : "normal");
    dt_json_add_real(b, "p", value, 9);
    dt_buffer_add_string(b, "}\n");
}

static void add_text(const struct pairs *p, const char *task, const char *metric,
                     const struct dt_task_estimate *e, double value, struct dt_buffer *b)
{
    dt_buffer_printf(b, "%s %s  %zu items  A %.4f  B %.4f  B - A %+.4f", task, metric, p->count,
                     dt_confidence_mean(p->a, p->count), dt_confidence_mean(p->b, p->count),
                     e->value);
    if (!isnan(e->low))
        dt_buffer_printf(b, " [%+.4f, %+.4f]", e->low, e->high);
    dt_buffer_printf(b, "  A alone %zu, B alone %zu  p = %.4f%s\n", p->a_wins, p->b_wins, value,
                     value < 0.05 ? " *" : "");
}

static void compare_metric(const struct answers *a, const struct answers *b, size_t first,
                           size_t end, const char *metric, bool json, long resamples,
                           struct dt_buffer *text)
{
    struct pairs p;
    fill(&p, a, b, first, end, metric);
    const char *task = text_member(a->items[first], "task");
    struct dt_task_estimate e =
        dt_task_estimate(p.differences, p.count, DT_TASK_AGGREGATION_MEAN, 0, resamples);
    double value = p.binary ? dt_task_mcnemar(p.a_wins + p.b_wins, p.a_wins)
                            : dt_confidence_paired_p(p.a, p.b, p.count);
    (json ? add_json : add_text)(&p, task, metric, &e, value, text);
    free(p.a);
    free(p.b);
    free(p.differences);
}

static bool is_number(struct json_object *value)
{
    return json_object_is_type(value, json_type_int) ||
           json_object_is_type(value, json_type_double);
}

/* The metrics are the numbers of an item but its own. */
static bool is_metric(const char *name, struct json_object *value)
{
    return is_number(value) && strcmp(name, "item") != 0;
}

/* All items of a task have the metrics of one item. */
static int check_metrics(const struct answers *a, size_t first, size_t end,
                         struct json_object *item, struct dt_error *err)
{
    json_object_object_foreach(item, name, value)
    {
        for (size_t i = first; is_metric(name, value) && i < end; i++)
            if (!is_number(json_object_object_get(a->items[i], name)))
                return dt_fail(err, DT_EFORMAT,
                               "%s: item %s of %s has no number '%s', which others have: compare "
                               "the same metrics",
                               a->path, text_member(a->items[i], "item"),
                               text_member(a->items[i], "task"), name);
    }
    return 0;
}

static int compare_task(const struct answers *a, const struct answers *b, size_t first, size_t end,
                        bool json, long resamples, struct dt_buffer *text, struct dt_error *err)
{
    DT_TRY(check_metrics(a, first, end, a->items[first], err));
    DT_TRY(check_metrics(b, first, end, a->items[first], err));
    DT_TRY(check_metrics(a, first, end, b->items[first], err));
    json_object_object_foreach(a->items[first], name, value)
    {
        if (is_metric(name, value))
            compare_metric(a, b, first, end, name, json, resamples, text);
    }
    return 0;
}

int dt_task_compare(const char *first, const char *second, bool json, long resamples,
                    struct dt_buffer *text, struct dt_error *err)
{
    struct answers a, b = {.path = second};
    int rc = read_answers(&a, first, err);
    rc = rc < 0 ? rc : read_answers(&b, second, err);
    rc = rc < 0 ? rc : check_same(&a, &b, err);
    for (size_t i = 0, end; rc == 0 && i < a.count; i = end) {
        const char *task = text_member(a.items[i], "task");
        for (end = i + 1; end < a.count && strcmp(text_member(a.items[end], "task"), task) == 0;)
            end++;
        rc = compare_task(&a, &b, i, end, json, resamples, text, err);
    }
    release(&a);
    release(&b);
    return rc;
}
