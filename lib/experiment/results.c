/* SPDX-License-Identifier: MIT */
#include "experiment/results.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/credentials.h"
#include "base/file.h"
#include "experiment/readings.h"
#include "io/json-lines.h"
#include "json/json.h"

#define ROWS_LIMIT ((size_t)1 << 30)

/* --- reading -------------------------------------------------------------------------------- */

#define MOST_REFERENCE 1e9

static bool is_number(struct json_object *value)
{
    return json_object_is_type(value, json_type_int) ||
           json_object_is_type(value, json_type_double);
}

/* Values must be finite numbers, or null (no value). */
static int check_values(struct json_object *values, const char *subject, struct dt_error *err)
{
    json_object_object_foreach(values, name, value)
    {
        bool fits = is_number(value) && fabs(json_object_get_double(value)) <= DT_READINGS_MOST;
        if (value && !fits)
            return dt_fail(err, DT_EFORMAT,
                           "%s: the value '%s' must be a number from -1e300 to 1e300, not %s",
                           subject, name, dt_json_text(value));
    }
    return 0;
}

/* NAN if the row lacks it. */
static int read_reference(struct json_object *line, const char *subject, double *seconds,
                          struct dt_error *err)
{
    struct json_object *reference;
    *seconds = NAN;
    if (!json_object_object_get_ex(line, "reference_s", &reference) || reference == NULL)
        return 0;
    *seconds = is_number(reference) ? json_object_get_double(reference) : NAN;
    if (*seconds >= 1 / MOST_REFERENCE && *seconds <= MOST_REFERENCE)
        return 0;
    return dt_fail(err, DT_EFORMAT, "%s: reference_s must be a number from 1e-9 to 1e9, not %s",
                   subject, dt_json_text(reference));
}

static int add_row(struct dt_results *r, struct json_object *line, const char *subject,
                   struct dt_error *err)
{
    struct json_object *cell, *values = NULL, *error;
    double reference;
    int64_t round, status;
    if (r->matrix.design == NULL)
        return dt_fail(err, DT_EFORMAT, "%s: a row before its design", subject);
    DT_TRY(dt_json_get(line, "cell", json_type_object, subject, &cell, err));
    DT_TRY(dt_json_get_int(line, "round", subject, &round, err));
    DT_TRY(dt_json_get_int(line, "status", subject, &status, err));
    if (status == 0)
        DT_TRY(dt_json_get(line, "values", json_type_object, subject, &values, err));
    if (values)
        DT_TRY(check_values(values, subject, err));
    DT_TRY(read_reference(line, subject, &reference, err));
    bool says = json_object_object_get_ex(line, "error", &error) && error;
    DT_GROW(r->rows, r->count, r->capacity);
    r->rows[r->count++] = (struct dt_row){.cell = dt_matrix_find(&r->matrix, cell),
                                          .round = (long)round,
                                          .status = (int)status,
                                          .reference = reference,
                                          .values = json_object_get(values),
                                          .error = says ? dt_strdup(dt_json_text(error)) : NULL};
    return 0;
}

/* Cell indices change when axes gain values. */
static int take_design(struct dt_results *r, struct json_object *design, const char *subject,
                       struct dt_error *err)
{
    struct dt_matrix matrix;
    DT_TRY(dt_matrix_init(&matrix, json_object_get(design), subject, err));
    for (int i = 0; i < r->count; i++) {
        struct json_object *cell =
            r->rows[i].cell >= 0 ? dt_matrix_cell(&r->matrix, r->rows[i].cell) : NULL;
        r->rows[i].cell = cell ? dt_matrix_find(&matrix, cell) : -1;
        json_object_put(cell);
    }
    dt_matrix_release(&r->matrix);
    r->matrix = matrix;
    return 0;
}

int dt_results_renew(struct dt_results *r, struct dt_error *err)
{
    return take_design(r, r->matrix.design, r->path, err);
}

static int take_line(void *context, struct json_object *line, const char *subject,
                     struct dt_error *err)
{
    struct dt_results *r = context;
    struct json_object *member;
    if (json_object_object_get_ex(line, "design", &member))
        return take_design(r, member, subject, err);
    if (!json_object_object_get_ex(line, "machine", &member))
        return add_row(r, line, subject, err);
    dt_json_array_add(r->machines, json_object_get(member));
    return 0;
}

int dt_results_read(struct dt_results *r, const char *path, struct dt_error *err)
{
    *r = (struct dt_results){.path = dt_strdup(path), .machines = dt_json_new_array()};
    int rc = dt_json_lines_read(path, take_line, r, err);
    if (rc == 0 && r->matrix.design == NULL)
        rc = dt_fail(err, DT_EFORMAT, "%s: does not begin with the design of a matrix", path);
    if (rc < 0)
        dt_results_release(r);
    return rc;
}

static int take_report(struct dt_results *r, struct json_object *report, struct dt_error *err)
{
    struct json_object *design, *cells;
    DT_TRY(dt_json_get(report, "design", json_type_object, r->path, &design, err));
    DT_TRY(dt_json_get(report, "cells", json_type_array, r->path, &cells, err));
    DT_TRY(take_design(r, design, r->path, err));
    r->reported = dt_json_new_object();
    for (size_t i = 0; i < json_object_array_length(cells); i++) {
        struct json_object *cell, *values, *item = json_object_array_get_idx(cells, i);
        DT_TRY(dt_json_get(item, "cell", json_type_object, r->path, &cell, err));
        DT_TRY(dt_json_get(item, "values", json_type_object, r->path, &values, err));
        int place = dt_matrix_find(&r->matrix, cell);
        if (place < 0)
            return dt_fail(err, DT_EFORMAT, "%s: a cell is not of its design: %s", r->path,
                           dt_json_text(cell));
        char *key = dt_asprintf("%d", place);
        dt_json_object_add(r->reported, key, json_object_get(values));
        free(key);
    }
    return 0;
}

int dt_results_read_report(struct dt_results *r, const char *path, struct dt_error *err)
{
    struct json_object *report;
    *r = (struct dt_results){.path = dt_strdup(path), .machines = dt_json_new_array()};
    int rc = dt_json_read(path, &report, err);
    if (rc == 0) {
        rc = take_report(r, report, err);
        json_object_put(report);
    }
    if (rc < 0)
        dt_results_release(r);
    return rc;
}

void dt_results_release(struct dt_results *r)
{
    json_object_put(r->reported);
    for (int i = 0; i < r->count; i++) {
        json_object_put(r->rows[i].values);
        free(r->rows[i].error);
    }
    free(r->rows);
    free(r->path);
    json_object_put(r->machines);
    dt_matrix_release(&r->matrix);
    *r = (struct dt_results){.path = NULL};
}

const struct dt_row *dt_results_row(const struct dt_results *r, int cell, long round)
{
    for (int i = r->count - 1; i >= 0; i--)
        if (r->rows[i].cell == cell && r->rows[i].round == round)
            return &r->rows[i];
    return NULL;
}

size_t dt_results_runs(const struct dt_results *r, int cell)
{
    size_t runs = 0;
    for (long round = 1; round <= r->matrix.repeats; round++) {
        const struct dt_row *row = dt_results_row(r, cell, round);
        runs += row && row->status == 0;
    }
    return runs;
}

size_t dt_results_values(const struct dt_results *r, int cell, const char *name, double *by_round)
{
    size_t count = 0;
    for (long round = 1; round <= r->matrix.repeats; round++) {
        const struct dt_row *row = dt_results_row(r, cell, round);
        struct json_object *value = NULL;
        if (row && row->values)
            json_object_object_get_ex(row->values, name, &value);
        bool found = value != NULL;
        by_round[round - 1] = found ? json_object_get_double(value) : NAN;
        count += found;
    }
    return count;
}

/* Members that a report lacks are NAN. */
static struct dt_summary reported_summary(const struct dt_results *r, int cell, const char *name)
{
    static const char *const members[] = {"count", "median", "low", "high", "least", "most"};
    struct json_object *values, *value, *x;
    double numbers[6];
    char *key = dt_asprintf("%d", cell);
    bool found = json_object_object_get_ex(r->reported, key, &values) &&
                 json_object_object_get_ex(values, name, &value);
    free(key);
    for (int i = 0; i < 6; i++) {
        bool there = found && json_object_object_get_ex(value, members[i], &x) && is_number(x) &&
                     fabs(json_object_get_double(x)) <= DT_READINGS_MOST;
        numbers[i] = there ? json_object_get_double(x) : NAN;
    }
    return (struct dt_summary){.count = numbers[0] > 0 ? (size_t)numbers[0] : 0,
                               .median = numbers[1],
                               .low = numbers[2],
                               .high = numbers[3],
                               .least = numbers[4],
                               .most = numbers[5]};
}

struct dt_summary dt_results_summary(const struct dt_results *r, int cell, const char *name)
{
    if (r->reported)
        return reported_summary(r, cell, name);
    double *values = dt_alloc((size_t)r->matrix.repeats, sizeof *values);
    size_t used = 0;
    dt_results_values(r, cell, name, values);
    for (long i = 0; i < r->matrix.repeats; i++)
        if (!isnan(values[i]))
            values[used++] = values[i];
    struct dt_summary s = dt_summary_of(values, used);
    free(values);
    return s;
}

bool dt_results_has_name(struct json_object *names, const char *name)
{
    for (size_t i = 0; i < json_object_array_length(names); i++)
        if (strcmp(dt_json_text(json_object_array_get_idx(names, i)), name) == 0)
            return true;
    return false;
}

void dt_results_add_names(struct json_object *names, struct json_object *values)
{
    json_object_object_foreach(values, name, value)
    {
        (void)value;
        if (!dt_results_has_name(names, name))
            dt_json_array_add(names, dt_json_new_string(name));
    }
}

struct json_object *dt_results_names(const struct dt_results *r)
{
    struct json_object *names = dt_json_new_array();
    for (int i = 0; i < r->count; i++)
        if (r->rows[i].values)
            dt_results_add_names(names, r->rows[i].values);
    return names;
}

int dt_results_check_names(struct json_object *wanted, struct json_object *names, const char *path,
                           struct dt_error *err)
{
    struct dt_buffer all = DT_BUFFER_EMPTY;
    int rc = 0;
    for (size_t i = 0; i < json_object_array_length(names); i++)
        dt_buffer_printf(&all, "%s%s", i > 0 ? ", " : "",
                         dt_json_text(json_object_array_get_idx(names, i)));
    for (size_t i = 0; all.size > 0 && i < json_object_array_length(wanted) && rc == 0; i++) {
        const char *name = dt_json_text(json_object_array_get_idx(wanted, i));
        bool may_lack = strncmp(name, "reached_", 8) == 0; /* a target that no run reached */
        if (!may_lack && !dt_results_has_name(names, name))
            rc = dt_fail(err, DT_EMISSING, "%s: no run has a value '%s'; the values are %s", path,
                         name, all.data);
    }
    dt_buffer_release(&all);
    return rc;
}

/* --- appending ------------------------------------------------------------------------------ */

/* The design without passwords in the URLs of its command and axes. */
static char *text_of(struct json_object *value)
{
    char *text = dt_strdup(dt_json_text(value));
    dt_credentials_hide(text);
    return text;
}

int dt_results_write(FILE *file, struct json_object *line, const char *path, struct dt_error *err)
{
    char *text = text_of(line);
    int rc = 0;
    if (fputs(text, file) == EOF || putc('\n', file) == EOF || fflush(file) != 0 ||
        (fsync(fileno(file)) < 0 && errno != EINVAL)) /* EINVAL: not a file, but a device or pipe */
        rc = dt_fail_errno(err, "cannot write '%s'", path);
    free(text);
    return rc;
}

static int write_member(FILE *file, const char *name, struct json_object *value, bool time_too,
                        const char *path, struct dt_error *err)
{
    struct json_object *line = dt_json_new_object();
    dt_json_object_add(line, name, json_object_get(value));
    if (time_too)
        dt_json_object_add(line, "started", dt_json_new_int((int64_t)time(NULL)));
    int rc = dt_results_write(file, line, path, err);
    json_object_put(line);
    return rc;
}

/* Removes an incomplete last line, left by a killed program; only from a file of rows. */
static int cut_torn_line(FILE *file, const char *path, struct dt_error *err)
{
    char *text;
    size_t size;
    static const char begin[] = "{\"design\":";
    DT_TRY(dt_file_read(path, ROWS_LIMIT, &text, &size, err));
    size_t whole = size;
    bool ours = memcmp(text, begin, size < sizeof begin ? size : sizeof begin - 1) == 0;
    while (whole > 0 && text[whole - 1] != '\n')
        whole--;
    free(text);
    if (!ours)
        return dt_fail(err, DT_EFORMAT, "%s: does not begin with the design of a matrix", path);
    if (whole < size && ftruncate(fileno(file), (off_t)whole) < 0)
        return dt_fail_errno(err, "cannot truncate '%s'", path);
    return 0;
}

static int continue_old(FILE *file, const char *path, struct json_object *design,
                        struct dt_error *err)
{
    struct dt_results old;
    const char *why;
    DT_TRY(cut_torn_line(file, path, err));
    if (lseek(fileno(file), 0, SEEK_END) == 0) /* not even the design was complete */
        return write_member(file, "design", design, false, path, err);
    struct json_object *written;
    char *text = text_of(design);
    int rc = dt_json_parse(text, strlen(text), path, &written, err);
    free(text);
    DT_TRY(rc);
    if ((rc = dt_results_read(&old, path, err)) < 0) {
        json_object_put(written);
        return rc;
    }
    bool continues = dt_matrix_continues(old.matrix.design, written, &why);
    bool changed = !json_object_equal(old.matrix.design, written);
    dt_results_release(&old);
    json_object_put(written);
    if (!continues)
        return dt_fail(err, DT_EINVALID,
                       "'%s' has rows of another matrix, whose %s differ%s: name another file, "
                       "or remove it",
                       path, why,
                       strcmp(why, "axes") == 0 || strcmp(why, "targets") == 0 ? "" : "s");
    return changed ? write_member(file, "design", design, false, path, err) : 0;
}

int dt_results_append(FILE **file, const char *path, struct json_object *design,
                      struct json_object *machine, struct dt_error *err)
{
    struct stat st;
    DT_TRY(dt_file_need_regular(path, err)); /* opening a pipe would block */
    *file = fopen(path, "ae");
    if (*file == NULL)
        return dt_fail_errno(err, "cannot open '%s'", path);
    int rc = 0;
    if (flock(fileno(*file), LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        rc = dt_fail(err, DT_EINVALID, "another program is writing '%s'", path);
    else if (fstat(fileno(*file), &st) < 0) /* with the lock: another program may have begun it */
        rc = dt_fail_errno(err, "cannot open '%s'", path);
    else if (!S_ISREG(st.st_mode))
        rc = dt_fail(err, DT_EINVALID, "'%s' is not a regular file", path);
    if (rc == 0)
        rc = st.st_size > 0 ? continue_old(*file, path, design, err)
                            : write_member(*file, "design", design, false, path, err);
    if (rc == 0)
        rc = write_member(*file, "machine", machine, true, path, err);
    if (rc < 0)
        fclose(*file);
    return rc;
}
