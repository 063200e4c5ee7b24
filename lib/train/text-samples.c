/* SPDX-License-Identifier: MIT */
#include "train/text-samples.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "document/json-line.h"
#include "hash/hash.h"
#include "io/file-type.h"
#include "token/tokenizer.h"
#include "tokenizer-files/tokenizer-files.h"

#define SCAN_BYTES      ((size_t)1 << 20)
#define BYTES_PER_TOKEN 4 /* estimate */

/* Shared by all readers, and constant after dt_text_samples_open. */
struct text {
    int fd, users;
    char *path;
    struct dt_tokenizer *tokenizer;
    struct dt_text_samples_options o;
    struct dt_frame frame; /* with labels */
    bool filled;           /* during the scan: the current line is not blank */
    uint64_t first;        /* offset after a byte order mark */
    uint64_t *lines;       /* count + 1: offset of each document */
    uint64_t count, capacity, size, hash;
};

struct reader {
    struct text *text;
    struct dt_encoder *encoder;
    struct dt_buffer line;
    struct dt_document document;
    struct dt_ids ids;
    /* list: ids begins with the sample at this position of the order. */
    uint64_t position, next; /* next: the document after ids, counted over all epochs */
};

bool dt_text_samples_has_name(const char *path)
{
    size_t n = strlen(path);
    return n > 6 && strcmp(path + n - 6, ".jsonl") == 0;
}

static void free_text(struct text *t)
{
    if (__atomic_sub_fetch(&t->users, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (t->fd >= 0)
        close(t->fd);
    dt_tokenizer_free(t->tokenizer);
    free(t->path);
    free(t->lines);
    free(t);
}

static void free_reader(void *state)
{
    struct reader *r = state;
    dt_encoder_free(r->encoder);
    dt_buffer_release(&r->line);
    dt_document_release(&r->document);
    dt_ids_release(&r->ids);
    free_text(r->text);
    free(r);
}

static struct reader *new_reader(struct text *t)
{
    struct reader *r = dt_alloc(1, sizeof *r);
    __atomic_add_fetch(&t->users, 1, __ATOMIC_ACQ_REL);
    r->text = t;
    r->encoder = dt_encoder_new(t->tokenizer);
    return r;
}

static int clone_reader(void **copy, const void *state, struct dt_error *err)
{
    (void)err;
    *copy = new_reader(((const struct reader *)state)->text);
    return 0;
}

/* --- the table of lines ----------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void end_line(struct text *t, uint64_t end)
{
    DT_GROW(t->lines, t->count + 1, t->capacity);
    t->lines[++t->count] = end;
    t->filled = false;
}

/* Blank lines belong to the line after them, or at the end to the one before them. */
static void note_lines(struct text *t, const char *bytes, size_t size)
{
    for (size_t i = t->size == 0 ? (size_t)t->first : 0; i < size;) {
        for (; !t->filled && i < size; i++)
            t->filled = !is_blank(bytes[i]);
        const char *end = memchr(bytes + i, '\n', size - i);
        i = end ? (size_t)(end - bytes) + 1 : size;
        if (end)
            end_line(t, t->size + i);
    }
    t->size += size;
}

/* Documents are read at random offsets, so the file must not be compressed. */
static int need_lines(struct text *t, struct dt_error *err)
{
    char head[DT_FILE_TYPE_HEAD];
    ssize_t n = pread(t->fd, head, sizeof head, 0);
    t->first = n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    const struct dt_file_type *what = n > 0 ? dt_file_type_recognize(head, (size_t)n) : NULL;
    return what && what->kind != DT_FILE_JSONL ? dt_file_type_refuse(what, t->path, NULL, err) : 0;
}

static int scan(struct text *t, struct dt_error *err)
{
    char *bytes = dt_alloc(SCAN_BYTES, 1);
    ssize_t n;
    DT_GROW(t->lines, t->count + 1, t->capacity);
    t->lines[0] = t->first;
    while ((n = read(t->fd, bytes, SCAN_BYTES)) > 0) {
        t->hash = dt_hash_seeded(bytes, (size_t)n, t->hash);
        note_lines(t, bytes, (size_t)n);
    }
    free(bytes);
    if (n < 0)
        return dt_fail_errno(err, "cannot read '%s'", t->path);
    if (t->filled) /* the last line lacks a newline */
        end_line(t, t->size);
    if (t->count == 0)
        return dt_fail(err, DT_EFORMAT, "%s: is empty", t->path);
    return 0;
}

/* --- documents -------------------------------------------------------------------------------- */

/* The number of the line at an offset, counted from 1 with blank lines. */
static uint64_t line_number(const struct text *t, uint64_t offset)
{
    char bytes[1 << 14];
    uint64_t number = 1;
    ssize_t n;
    for (uint64_t at = 0; at < offset; at += (uint64_t)n) {
        size_t size = offset - at < sizeof bytes ? (size_t)(offset - at) : sizeof bytes;
        if ((n = pread(t->fd, bytes, size, (off_t)at)) <= 0)
            break;
        for (ssize_t i = 0; i < n; i++)
            number += bytes[i] == '\n';
    }
    return number;
}

/* Reads document i, and its line's begin or end mark of a document stream. */
static int read_document(struct reader *r, uint64_t i, struct dt_stream_mark *mark,
                         struct dt_error *err)
{
    const struct text *t = r->text;
    size_t size = (size_t)(t->lines[i + 1] - t->lines[i]);
    dt_buffer_clear(&r->line);
    dt_buffer_reserve(&r->line, size);
    if (pread(t->fd, r->line.data, size, (off_t)t->lines[i]) != (ssize_t)size)
        return dt_fail(err, DT_EIO, "%s: was changed while it was read", t->path);
    size -= size > 0 && r->line.data[size - 1] == '\n';
    r->line.data[size] = '\0';
    size_t blank = strspn(r->line.data, " \t\r\n");
    if (dt_json_line_read(r->line.data + blank, size - blank, "text", &r->document, mark, err) == 0)
        return 0;
    dt_fail_context(err, "%s:%llu", t->path,
                    (unsigned long long)line_number(t, t->lines[i] + blank));
    return err->code = DT_EFORMAT; /* of a file that is there */
}

/* A document stream must end with its end record. */
static int check_end(struct reader *r, struct dt_error *err)
{
    const struct text *t = r->text;
    struct dt_stream_mark mark;
    DT_TRY(read_document(r, 0, &mark, err));
    if (mark.kind != DT_STREAM_MARK_BEGIN)
        return 0;
    DT_TRY(read_document(r, t->count - 1, &mark, err));
    if (mark.kind != DT_STREAM_MARK_END)
        return dt_fail(err, DT_EFORMAT,
                       "%s: begins a document stream and ends without its end record: it was cut",
                       t->path);
    return 0;
}

/* Appends the ids of document i to r->ids. */
static int encode(struct reader *r, uint64_t i, struct dt_error *err)
{
    const struct text *t = r->text;
    struct dt_stream_mark mark;
    DT_TRY(read_document(r, i, &mark, err));
    dt_encoder_encode(r->encoder, r->document.text.data, r->document.text.size, &r->ids);
    dt_ids_add(&r->ids, dt_tokenizer_eot(t->tokenizer));
    return 0;
}

static int read_padded(void *state, uint64_t k, uint32_t *ids, struct dt_error *err)
{
    struct reader *r = state;
    size_t row = (size_t)r->text->o.length + 1;
    r->ids.count = 0;
    DT_TRY(encode(r, k, err));
    size_t n = r->ids.count < row ? r->ids.count : row;
    memcpy(ids, r->ids.data, n * sizeof *ids);
    for (; n < row; n++)
        ids[n] = dt_tokenizer_eot(r->text->tokenizer) | DT_NO_LOSS;
    ids[0] |= DT_NO_LOSS;
    return 0;
}

static int read_labelled(void *state, uint64_t k, uint32_t *ids, struct dt_error *err)
{
    struct reader *r = state;
    const struct text *t = r->text;
    struct dt_stream_mark mark;
    int32_t label;
    DT_TRY(read_document(r, k, &mark, err));
    DT_TRY(dt_labels_read_document(t->o.labels, &r->document, t->path, &label, err));
    r->ids.count = 0;
    dt_encoder_encode(r->encoder, r->document.text.data, r->document.text.size, &r->ids);
    size_t n = dt_frame_fit(&t->frame, r->ids.data, r->ids.count, t->o.length, ids);
    for (; n < t->o.length; n++)
        ids[n] = dt_tokenizer_eot(t->tokenizer) | DT_NO_LOSS;
    ids[n] = (uint32_t)label;
    return 0;
}

/* The document at a position of the order. */
static uint64_t document_at(const struct text *t, uint64_t position)
{
    return t->o.shuffle ? dt_dataset_sample_at(t->o.seed, t->count, position) : position % t->count;
}

static int read_list(void *state, uint64_t k, uint32_t *ids, struct dt_error *err)
{
    struct reader *r = state;
    size_t length = r->text->o.length;
    if (k < r->position) { /* restart from the beginning */
        r->position = r->next = 0;
        r->ids.count = 0;
    }
    for (;; r->position++) {
        while (r->ids.count <= length)
            DT_TRY(encode(r, document_at(r->text, r->next++), err));
        if (r->position == k)
            break;
        r->ids.count -= length;
        memmove(r->ids.data, r->ids.data + length, r->ids.count * sizeof *ids);
    }
    memcpy(ids, r->ids.data, (length + 1) * sizeof *ids);
    return 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* The template's tokens, if the tokenizer has one. */
static int find_frame(struct text *t, struct dt_error *err)
{
    struct dt_error none;
    if (dt_tokenizer_frame(t->tokenizer, DT_FRAME_TEMPLATE, &t->frame, &none) < 0)
        t->frame = (struct dt_frame){.before_count = 0};
    if (t->frame.before_count + t->frame.after_count < t->o.length)
        return 0;
    return dt_fail(err, DT_EINVALID, "%s: a context of %u tokens has no room for a text", t->path,
                   t->o.length);
}

static int open_text(struct text *t, const char *path, const struct dt_text_samples_options *o,
                     struct dt_error *err)
{
    if (o->tokenizer_path == NULL)
        return dt_fail(err, DT_EINVALID, "%s: is text, which needs a tokenizer: -t", path);
    DT_TRY(dt_tokenizer_load(&t->tokenizer, o->tokenizer_path, err));
    if (dt_tokenizer_eot(t->tokenizer) == DT_NO_TOKEN)
        return dt_fail(err, DT_EINVALID, "%s: lacks an end-of-text token, which ends documents",
                       o->tokenizer_path);
    if (o->labels)
        DT_TRY(find_frame(t, err));
    t->hash = dt_tokenizer_fingerprint(t->tokenizer);
    t->fd = dt_file_open(path, err);
    DT_TRY(t->fd);
    DT_TRY(need_lines(t, err));
    return scan(t, err);
}

int dt_text_samples_open(struct dt_dataset **d, const char *path,
                         const struct dt_text_samples_options *o, struct dt_error *err)
{
    struct text *t = dt_alloc(1, sizeof *t);
    *d = NULL;
    t->fd = -1;
    t->users = 1;
    t->path = dt_strdup(path);
    t->o = *o;
    int rc = open_text(t, path, o, err);
    struct reader *reader = rc == 0 ? new_reader(t) : NULL;
    if (reader && (rc = check_end(reader, err)) < 0)
        free_reader(reader);
    if (rc == 0) {
        bool padded = o->labels || o->layout == DT_TEXT_LAYOUT_PADDED;
        uint64_t samples = padded ? t->count : t->size / BYTES_PER_TOKEN / o->length + 1;
        *d = dt_dataset_from_source(&(struct dt_sample_source){
            .info = {.token_bytes = dt_tokenizer_size(t->tokenizer) <= 65536 ? 2 : 4,
                     .vocab_size = dt_tokenizer_size(t->tokenizer),
                     .eot = dt_tokenizer_eot(t->tokenizer),
                     .tokenizer = dt_tokenizer_fingerprint(t->tokenizer),
                     .row = padded ? o->length + 1 : 0,
                     .padding_id = dt_tokenizer_eot(t->tokenizer),
                     .masked = padded,
                     .provenance = "",
                     .tokens = samples * o->length + 1,
                     .documents = t->count,
                     .text_bytes = t->size,
                     .hash = t->hash},
            .length = o->length,
            .samples = samples,
            .has_order = !padded,
            .read = o->labels ? read_labelled
                    : padded  ? read_padded
                              : read_list,
            .clone = clone_reader,
            .free = free_reader,
            .state = reader});
    }
    free_text(t);
    return rc;
}
