/* SPDX-License-Identifier: MIT */
#include "io/parquet-output.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/child.h"
#include "base/path.h"
#include "io/compressor.h"
#include "json/json-scan.h"

#define NAMES      ((size_t)100000) /* bytes: one argument of a program holds them */
#define PIECE      ((size_t)1 << 16)
#define OBJECT     ((size_t)16 << 20)    /* duckdb's limit of a line, where it is not raised */
#define GROUP      ((uint64_t)128 << 20) /* bytes of a row group, of JSON */
#define VECTOR     2048                  /* duckdb's unit of rows */
#define GROUP_ROWS 122880                /* its default */
#define EXACT      9007199254740992      /* 2^53: integers up to it are doubles */

/* Types of a column, of which a later one does not always include an earlier. */
enum type { NONE, BOOLEAN, BIGINT, DOUBLE, VARCHAR, JSON };
static const char *const type_names[] = {"VARCHAR", "BOOLEAN", "BIGINT",
                                         "DOUBLE",  "VARCHAR", "JSON"};

struct column {
    char *name;
    enum type type;
    bool large;   /* a BIGINT above EXACT was seen */
    uint64_t row; /* the last with this member */
};

struct dt_parquet_output {
    struct dt_output *out, rows; /* rows: JSON Lines, compressed */
    struct dt_compressor *compressor;
    int fd; /* of the file of rows, to be read */
    struct column *columns;
    size_t count, room, names; /* of columns; bytes of their names */
    uint64_t documents, bytes;
    size_t longest; /* line */
    struct dt_buffer name;
};

/* --- the rows --------------------------------------------------------------------------------- */

/* Starts a duckdb that does nothing, so that its absence is found before the work. */
static int probe(const struct dt_output *out, struct dt_error *err)
{
    static const char *const arguments[] = {"duckdb", "--version", NULL};
    struct dt_child child = {0};
    char piece[64];
    int rc = dt_child_start(&child, arguments, -1, true, err);
    if (rc == DT_EMISSING)
        return dt_fail(err, rc,
                       "%s: is named as a Parquet file, which 'duckdb' writes, and that is not on "
                       "PATH: install DuckDB (pip install duckdb-cli, or duckdb.org), or name it "
                       ".jsonl.zst",
                       out->path);
    DT_TRY(rc);
    while (read(child.output, piece, sizeof piece) > 0)
        ;
    rc = dt_child_finish(&child, err);
    dt_child_stop(&child);
    return rc < 0 ? dt_fail_context(err, "%s", out->path) : 0;
}

/* In the directory of the output, which has room for it. */
static int open_rows(struct dt_parquet_output *p, struct dt_error *err)
{
    const char *base = dt_path_base(p->out->temporary);
    char *directory = dt_strndup(p->out->temporary, (size_t)(base - p->out->temporary));
    p->fd = dt_file_open_nameless(directory, err);
    free(directory);
    DT_TRY(p->fd);
    char *path = dt_asprintf("/dev/fd/%d", p->fd);
    int rc = dt_output_open(&p->rows, path, err);
    free(path);
    p->compressor = rc == 0 ? dt_compressor_zstd() : NULL;
    return rc;
}

int dt_parquet_output_open(struct dt_parquet_output **parquet, struct dt_output *out,
                           struct dt_error *err)
{
    struct dt_parquet_output *p = *parquet = dt_alloc(1, sizeof *p);
    *p = (struct dt_parquet_output){.out = out, .fd = -1, .rows = {.fd = -1}};
    DT_TRY(probe(out, err));
    return open_rows(p, err);
}

void dt_parquet_output_close(struct dt_parquet_output *p)
{
    if (p == NULL)
        return;
    dt_compressor_close(p->compressor);
    dt_output_abandon(&p->rows);
    if (p->fd >= 0)
        close(p->fd);
    for (size_t i = 0; i < p->count; i++)
        free(p->columns[i].name);
    free(p->columns);
    dt_buffer_release(&p->name);
    free(p);
}

static int write_row(struct dt_parquet_output *p, const char *data, size_t size, bool ends,
                     struct dt_error *err)
{
    int rc = dt_compressor_write(p->compressor, &p->rows, data, size, ends, err);
    rc = rc == 0 && ends ? dt_output_flush(&p->rows, err) : rc;
    return rc < 0 ? dt_fail_context(err, "rows of '%s'", p->out->path) : 0;
}

/* --- columns ---------------------------------------------------------------------------------- */

static int refuse(const struct dt_parquet_output *p, const char *why, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT,
                   "%s: the member \"%s\" of meta %s; write JSON Lines (.jsonl.zst), or rename the "
                   "member",
                   p->out->path, p->name.data, why);
}

/* duckdb takes two names that differ in case for one. */
static int add_column(struct dt_parquet_output *p, struct dt_error *err)
{
    static const char *const taken[] = {"id", "text", "meta", "dt_stream"};
    if (p->name.size == 0 || strlen(p->name.data) < p->name.size)
        return refuse(p, "cannot name a column", err);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcasecmp(p->name.data, taken[i]) == 0)
            return refuse(p, "has the name of another column", err);
    for (size_t i = 0; i < p->count; i++)
        if (strcasecmp(p->name.data, p->columns[i].name) == 0)
            return refuse(p, "differs from another in upper and lower case only", err);
    if (p->names + p->name.size > NAMES)
        return refuse(p, "is one of too many columns", err);
    p->names += p->name.size;
    DT_GROW(p->columns, p->count, p->room);
    p->columns[p->count++] = (struct column){.name = dt_strdup(p->name.data)};
    return 0;
}

/* The column of p->name; at: where it was in the last row. */
static int find_column(struct dt_parquet_output *p, size_t at, struct column **found,
                       struct dt_error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        *found = &p->columns[(at + i) % p->count];
        if (strcmp((*found)->name, p->name.data) == 0)
            return (*found)->row < p->documents ? 0 : refuse(p, "occurs twice in a document", err);
    }
    DT_TRY(add_column(p, err));
    *found = &p->columns[p->count - 1];
    return 0;
}

/* The value ends at a byte that belongs to no number. */
static enum type type_of_number(const char *value, bool *large)
{
    char *end;
    errno = 0;
    long long integer = strtoll(value, &end, 10);
    *large = integer > EXACT || integer < -EXACT;
    if (errno == 0 && strchr(".eE", *end) == NULL)
        return BIGINT;
    return strchr(".eE", *end) && isfinite(strtod(value, NULL)) ? DOUBLE : JSON;
}

static void widen(struct column *c, const char *value)
{
    bool large = false;
    enum type type = *value == '"'                    ? VARCHAR
                     : *value == '{' || *value == '[' ? JSON
                     : *value == 't' || *value == 'f' ? BOOLEAN
                     : *value == 'n'                  ? NONE
                                                      : type_of_number(value, &large);
    c->large |= large;
    bool real = (type == BIGINT || type == DOUBLE) && (c->type == BIGINT || c->type == DOUBLE);
    if (type == NONE || type == c->type)
        return;
    if (c->type == NONE)
        c->type = type;
    else
        c->type = real && !c->large ? DOUBLE : JSON;
}

/* Takes the members of meta, at s. */
static int take_members(struct dt_parquet_output *p, struct dt_json_scan *s, struct dt_error *err)
{
    size_t at = 0;
    struct column *column;
    struct dt_json_span name;
    do {
        if (!dt_json_skip_name(s, &name))
            return dt_fail(err, DT_EFORMAT, "%s: meta is not JSON: %s", p->out->path, s->reason);
        dt_json_unescape(name, &p->name);
        DT_TRY(find_column(p, at, &column, err));
        column->row = p->documents;
        at = (size_t)(column - p->columns) + 1;
        widen(column, s->p);
        if (!dt_json_skip_value(s, 1))
            return dt_fail(err, DT_EFORMAT, "%s: meta is not JSON: %s", p->out->path, s->reason);
    } while (dt_json_skip_char(s, ','));
    return 0;
}

/* Writes the line with the members of meta in its place. */
int dt_parquet_output_add(struct dt_parquet_output *p, const char *line, size_t size,
                          struct dt_error *err)
{
    struct dt_json_scan s = {.p = line, .end = line + size};
    struct dt_json_span name;
    p->documents++;
    p->bytes += size;
    p->longest = size > p->longest ? size : p->longest;
    dt_json_skip_char(&s, '{');
    for (int i = 0; i < 2; i++) { /* id and text */
        dt_json_skip_name(&s, &name);
        dt_json_skip_value(&s, 1);
        size = (size_t)(s.p - line);
        dt_json_skip_char(&s, ',');
    }
    DT_TRY(write_row(p, line, size, false, err));
    if (dt_json_skip_name(&s, &name) && dt_json_skip_char(&s, '{') && !dt_json_skip_char(&s, '}')) {
        const char *members = s.p;
        DT_TRY(take_members(p, &s, err));
        DT_TRY(write_row(p, ",", 1, false, err));
        DT_TRY(write_row(p, members, (size_t)(s.p - members), false, err));
    }
    return write_row(p, "}\n", 2, false, err);
}

/* --- the file --------------------------------------------------------------------------------- */

static void add_quoted(struct dt_buffer *sql, const char *name)
{
    dt_buffer_add_char(sql, '\'');
    for (; *name; name++) {
        if (*name == '\'')
            dt_buffer_add_char(sql, '\'');
        dt_buffer_add_char(sql, *name);
    }
    dt_buffer_add_char(sql, '\'');
}

static uint64_t group_rows(const struct dt_parquet_output *p)
{
    uint64_t mean = p->documents > 0 ? p->bytes / p->documents + 1 : 1;
    uint64_t rows = GROUP / mean / VECTOR * VECTOR;
    return rows < VECTOR ? VECTOR : rows > GROUP_ROWS ? GROUP_ROWS : rows;
}

static void add_statement(const struct dt_parquet_output *p, struct dt_buffer *sql)
{
    dt_buffer_printf(sql,
                     "set preserve_insertion_order = true; copy (from read_json('/dev/stdin', "
                     "format = 'newline_delimited', compression = 'zstd', maximum_object_size = "
                     "%zu, columns = {'id': 'VARCHAR', 'text': 'VARCHAR'",
                     p->longest > OBJECT / 2 ? 2 * p->longest : OBJECT);
    for (size_t i = 0; i < p->count; i++) {
        dt_buffer_add_string(sql, ", ");
        add_quoted(sql, p->columns[i].name);
        dt_buffer_printf(sql, ": '%s'", type_names[p->columns[i].type]);
    }
    dt_buffer_printf(sql,
                     "})) to '/dev/stdout' (format parquet, compression zstd, row_group_size %llu)",
                     (unsigned long long)group_rows(p));
}

static int copy(struct dt_child *child, struct dt_output *out, struct dt_error *err)
{
    char *piece = dt_alloc(PIECE, 1);
    ssize_t n = 1;
    int rc = 0;
    while (rc == 0 && n != 0) {
        n = read(child->output, piece, PIECE);
        if (n < 0 && errno != EINTR)
            rc = dt_fail_errno(err, "cannot read from '%s'", child->name);
        else if (n > 0)
            rc = dt_output_write(out, piece, (size_t)n, err);
    }
    free(piece);
    return rc;
}

int dt_parquet_output_end(struct dt_parquet_output *p, struct dt_error *err)
{
    struct dt_child child = {0};
    struct dt_buffer sql = DT_BUFFER_EMPTY;
    DT_TRY(write_row(p, "", 0, true, err));
    if (lseek(p->fd, 0, SEEK_SET) < 0)
        return dt_fail_errno(err, "cannot read rows of '%s'", p->out->path);
    add_statement(p, &sql);
    const char *arguments[] = {"duckdb", "-init", "/dev/null", "-batch",
                               "-bail",  "-c",    sql.data,    NULL};
    int rc = dt_child_start(&child, arguments, p->fd, true, err);
    rc = rc < 0 ? rc : copy(&child, p->out, err);
    if (rc == 0 && dt_child_finish(&child, err) < 0)
        rc = dt_fail_context(err, "%s", p->out->path);
    dt_child_stop(&child);
    dt_buffer_release(&sql);
    return rc;
}
