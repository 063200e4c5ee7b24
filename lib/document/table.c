/* SPDX-License-Identifier: MIT */
/*
 * Documents as rows of Parquet and Arrow files, which another program writes as JSON Lines into a
 * pipe: duckdb(1), or Python with pyarrow. It reads the file as its standard input. Compressed
 * input, and that of a pipe, is copied to a temporary file before, since both formats have their
 * index at the end.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "document/document-internal.h"

#define PIECE ((size_t)1 << 18)

struct reader {
    struct dt_input *file; /* not yet read to its end, for its hash; or NULL */
    struct dt_child child;
    struct dt_input *rows; /* what the child writes */
    void *lines;           /* of dt_document_reader_jsonl */
    const char *name;      /* of the file */
};

/* The rest of the input as a file without a name; its descriptor. */
static int copy_to_file(struct dt_input *in, struct dt_error *err)
{
    size_t size = 1;
    int rc = 0, fd = dt_file_open_nameless(NULL, err);
    DT_TRY(fd);
    char *piece = dt_alloc(PIECE, 1);
    while (rc == 0 && size > 0 && (rc = dt_input_read(in, piece, PIECE, &size, err)) == 0)
        for (size_t done = 0; rc == 0 && done < size;) {
            ssize_t n = write(fd, piece + done, size - done);
            if (n < 0)
                rc = dt_fail_errno(err, "cannot copy '%s' to a temporary file", dt_input_name(in));
            done += n > 0 ? (size_t)n : 0;
        }
    if (rc < 0)
        close(fd);
    free(piece);
    return rc < 0 ? rc : fd;
}

static int start(struct reader *r, const struct dt_document_source *source,
                 const char *const *arguments, struct dt_error *err)
{
    int own = dt_input_descriptor(source->in);
    int fd = own < 0 ? copy_to_file(source->in, err) : own;
    if (fd < 0)
        return fd;
    r->file = own < 0 ? NULL : source->in;
    int rc = dt_child_start(&r->child, arguments, fd, true, err);
    if (own < 0)
        close(fd);
    return rc;
}

static int open_rows(void **state, const struct dt_document_source *source, const char *what,
                     const char *const *arguments, const char *advice, struct dt_error *err)
{
    struct reader *r = *state = dt_alloc(1, sizeof *r);
    r->name = dt_input_name(source->in);
    int rc = start(r, source, arguments, err);
    if (rc == DT_EMISSING)
        return dt_fail(err, rc, "%s: is %s, which '%s' reads, and that is not on PATH: %s", r->name,
                       what, arguments[0], advice);
    DT_TRY(rc);
    DT_TRY(dt_input_open_descriptor(&r->rows, r->child.output, r->name, err));
    r->child.output = -1; /* the input closes it */
    struct dt_document_source rows = *source;
    rows.in = r->rows;
    rows.has_nan = true;
    return dt_document_reader_jsonl.open(&r->lines, &rows, err);
}

/* Only what the pipe ended with counts, not that it ended. */
static int finish(struct reader *r, struct dt_error *err)
{
    if (dt_child_finish(&r->child, err) < 0)
        return dt_fail_context(err, "%s", r->name);
    return r->file ? dt_input_skip_rest(r->file, err) : 0;
}

static int next_row(void *state, struct dt_document *doc, struct dt_document_record *record,
                    struct dt_error *err)
{
    struct reader *r = state;
    int rc = dt_document_reader_jsonl.next(r->lines, doc, record, err);
    bool ended = rc == 0 || (rc == DT_DOCUMENT_BAD && record->unfinished);
    if (ended && r->child.pid > 0) /* a line that was cut is not to be reported as such */
        DT_TRY(finish(r, err));
    return rc;
}

static int skip_row(void *state, struct dt_error *err)
{
    struct reader *r = state;
    return dt_document_reader_jsonl.skip(r->lines, err);
}

static void close_rows(void *state)
{
    struct reader *r = state;
    if (r == NULL)
        return;
    dt_document_reader_jsonl.close(r->lines);
    dt_input_close(r->rows);
    dt_child_stop(&r->child);
    free(r);
}

static int open_parquet(void **state, const struct dt_document_source *source, struct dt_error *err)
{
    static const char *const arguments[] = {
        "duckdb",
        "-init",
        "/dev/null",
        "-batch",
        "-bail",
        "-c",
        "set preserve_insertion_order = true; "
        "copy (from read_parquet('/dev/stdin', binary_as_string = true)) to '/dev/stdout' (format "
        "json)",
        NULL};
    return open_rows(state, source, "a Parquet file", arguments,
                     "install DuckDB (pip install duckdb-cli, or duckdb.org)", err);
}

static int open_arrow(void **state, const struct dt_document_source *source, struct dt_error *err)
{
    static const char *const arguments[] = {
        "python3", "-c",
        "import collections, json, sys\n"
        "sys.excepthook = lambda t, e, _: print(t.__name__ + ':', e, file=sys.stderr)\n"
        "try:\n"
        "    import pyarrow as pa\n"
        "except ImportError:\n"
        "    sys.exit('python3 has no pyarrow: pip install pyarrow')\n"
        "def plain(value):\n"
        "    return value.decode() if isinstance(value, bytes) else str(value)\n"
        "with pa.memory_map('/dev/stdin') as f:\n"
        "    stream = f.read(4) == b'\\xff' * 4\n"
        "    f.seek(0)\n"
        "    r = pa.ipc.open_stream(f) if stream else pa.ipc.open_file(f)\n"
        "    twice = [n for n, k in collections.Counter(r.schema.names).items() if k > 1]\n"
        "    if twice:\n"
        "        sys.exit(f\"two columns are named '{twice[0]}'\")\n"
        "    out = open(1, 'w', encoding='utf-8', newline='\\n')\n"
        "    for b in r if stream else map(r.get_batch, range(r.num_record_batches)):\n"
        "        for row in b.to_pylist():\n"
        "            out.write(json.dumps(row, ensure_ascii=False, default=plain,\n"
        "                separators=(',', ':')) + '\\n')\n"
        "    out.close()\n",
        NULL};
    return open_rows(state, source, "an Arrow file", arguments, "install Python and pyarrow", err);
}

const struct dt_document_reader dt_document_reader_parquet = {.name = "parquet",
                                                              .has_fields = true,
                                                              .open = open_parquet,
                                                              .next = next_row,
                                                              .skip = skip_row,
                                                              .close = close_rows},
                                dt_document_reader_arrow = {.name = "arrow",
                                                            .has_fields = true,
                                                            .open = open_arrow,
                                                            .next = next_row,
                                                            .skip = skip_row,
                                                            .close = close_rows};
