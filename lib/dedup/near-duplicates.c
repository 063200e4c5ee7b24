/* SPDX-License-Identifier: MIT */
#include "dedup/near-duplicates.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/path.h"
#include "hash/hash.h"

#define CURSOR_KEYS 4096 /* read at a time from a run */

/* A cursor over the keys of a band of a run. */
struct cursor {
    const struct dt_signature_file *file;
    const struct dt_signature_run *run;
    uint64_t first_document; /* of the run, among all documents */
    uint64_t read;           /* keys of the band taken from the file */
    size_t at, count;        /* in what follows */
    uint64_t *keys;          /* CURSOR_KEYS */
    uint32_t *documents;
};

struct dt_near_duplicates {
    struct dt_signature_file *files;
    uint64_t *first_document; /* of each file */
    int count;
    uint64_t documents, runs;
    uint64_t *parent; /* union-find: the document, or an earlier one of its cluster */
    struct cursor *cursors;
    struct cursor **heap; /* min-heap by key */
    size_t heap_size;
    uint64_t duplicates;
};

/* --- opening ---------------------------------------------------------------------------------- */

char *dt_near_duplicates_name(const char *path)
{
    char *name = dt_strdup(dt_path_base(path));
    size_t n = strlen(name);
    if (n > 4 && strcmp(name + n - 4, ".sig") == 0)
        name[n - 4] = '\0';
    return name;
}

static int check_names(char *const *paths, int count, struct dt_error *err)
{
    int rc = 0;
    for (int i = 0; i < count && rc == 0; i++) {
        char *name = dt_near_duplicates_name(paths[i]);
        for (int k = 0; k < i && rc == 0; k++) {
            char *other = dt_near_duplicates_name(paths[k]);
            if (strcmp(name, other) == 0)
                rc = dt_fail(err, DT_EINVALID, "'%s' and '%s' would have lists of one name",
                             paths[k], paths[i]);
            free(other);
        }
        free(name);
    }
    return rc;
}

static bool same_settings(const struct dt_signature_settings *a,
                          const struct dt_signature_settings *b)
{
    return a->bands == b->bands && a->rows == b->rows && a->words == b->words && a->seed == b->seed;
}

static int open_file(struct dt_near_duplicates *d, const char *path, struct dt_error *err)
{
    struct dt_signature_file *file = &d->files[d->count];
    DT_TRY(dt_signature_file_open(file, path, err));
    d->first_document[d->count++] = d->documents;
    d->documents += file->documents;
    d->runs += file->run_count;
    if (!same_settings(&file->settings, &d->files[0].settings))
        return dt_fail(err, DT_EINVALID, "%s: was signed with other settings than '%s'", path,
                       d->files[0].path);
    return 0;
}

static void make_cursors(struct dt_near_duplicates *d)
{
    size_t made = 0;
    d->cursors = dt_alloc(d->runs, sizeof *d->cursors);
    d->heap = dt_alloc(d->runs, sizeof *d->heap);
    for (int i = 0; i < d->count; i++) {
        uint64_t first = d->first_document[i];
        for (size_t r = 0; r < d->files[i].run_count; r++) {
            struct cursor *c = &d->cursors[made++];
            c->file = &d->files[i];
            c->run = &d->files[i].runs[r];
            c->first_document = first;
            c->keys = dt_alloc(CURSOR_KEYS, sizeof *c->keys);
            c->documents = dt_alloc(CURSOR_KEYS, sizeof *c->documents);
            first += c->run->documents;
        }
    }
}

int dt_near_duplicates_open(struct dt_near_duplicates **result, char *const *paths, int count,
                            struct dt_error *err)
{
    struct dt_near_duplicates *d = dt_alloc(1, sizeof *d);
    *result = NULL;
    d->files = dt_alloc((size_t)count, sizeof *d->files);
    d->first_document = dt_alloc((size_t)count, sizeof *d->first_document);
    int rc = check_names(paths, count, err);
    for (int i = 0; i < count && rc == 0; i++)
        rc = open_file(d, paths[i], err);
    if (rc == 0 && d->documents == 0)
        rc = dt_fail(err, DT_EFORMAT, "no document is in the files of signatures");
    if (rc < 0) {
        dt_near_duplicates_close(d);
        return rc;
    }
    d->parent = dt_alloc(d->documents, sizeof *d->parent);
    for (uint64_t i = 0; i < d->documents; i++)
        d->parent[i] = i;
    make_cursors(d);
    *result = d;
    return 0;
}

void dt_near_duplicates_close(struct dt_near_duplicates *d)
{
    if (d == NULL)
        return;
    for (uint64_t i = 0; d->cursors && i < d->runs; i++) {
        free(d->cursors[i].keys);
        free(d->cursors[i].documents);
    }
    for (int i = 0; i < d->count; i++)
        dt_signature_file_close(&d->files[i]);
    free(d->files);
    free(d->first_document);
    free(d->parent);
    free(d->cursors);
    free(d->heap);
    free(d);
}

struct dt_near_duplicates_size dt_near_duplicates_size(const struct dt_near_duplicates *d)
{
    return (struct dt_near_duplicates_size){
        .settings = d->files[0].settings,
        .documents = d->documents,
        .runs = d->runs,
        .bytes =
            d->documents * sizeof *d->parent +
            d->runs * (sizeof *d->cursors + CURSOR_KEYS * (sizeof(uint64_t) + sizeof(uint32_t))),
        .duplicates = d->duplicates,
    };
}

/* --- clusters --------------------------------------------------------------------------------- */

/* The first document of the cluster, with path compression. */
static uint64_t first_of(struct dt_near_duplicates *d, uint64_t document)
{
    while (d->parent[document] != document) {
        d->parent[document] = d->parent[d->parent[document]];
        document = d->parent[document];
    }
    return document;
}

static void join(struct dt_near_duplicates *d, uint64_t a, uint64_t b)
{
    a = first_of(d, a);
    b = first_of(d, b);
    if (a < b)
        d->parent[b] = a;
    else
        d->parent[a] = b;
}

/* --- merging ---------------------------------------------------------------------------------- */

static uint64_t key_of(const struct cursor *c)
{
    return c->keys[c->at];
}

/* Loads the cursor's next key; sets *ended if none is left. */
static int refill(struct cursor *c, uint32_t band, bool *ended, struct dt_error *err)
{
    uint64_t left = c->run->keyed - c->read;
    *ended = false;
    if (c->at < c->count)
        return 0;
    *ended = left == 0;
    if (*ended)
        return 0;
    c->at = 0;
    c->count = left < CURSOR_KEYS ? (size_t)left : CURSOR_KEYS;
    DT_TRY(dt_signature_file_keys(c->file, c->run, band, c->read, c->count, c->keys, c->documents,
                                  err));
    c->read += c->count;
    return 0;
}

/* Sifts the cursor at i down the heap. */
static void sink(struct dt_near_duplicates *d, size_t i)
{
    struct cursor *moving = d->heap[i];
    for (size_t child; (child = 2 * i + 1) < d->heap_size; i = child) {
        if (child + 1 < d->heap_size && key_of(d->heap[child + 1]) < key_of(d->heap[child]))
            child++;
        if (key_of(moving) <= key_of(d->heap[child]))
            break;
        d->heap[i] = d->heap[child];
    }
    d->heap[i] = moving;
}

static int fill_heap(struct dt_near_duplicates *d, uint32_t band, struct dt_error *err)
{
    d->heap_size = 0;
    for (uint64_t i = 0; i < d->runs; i++) {
        bool ended;
        d->cursors[i].read = d->cursors[i].at = d->cursors[i].count = 0;
        DT_TRY(refill(&d->cursors[i], band, &ended, err));
        if (!ended)
            d->heap[d->heap_size++] = &d->cursors[i];
    }
    for (size_t i = d->heap_size / 2; i-- > 0;)
        sink(d, i);
    return 0;
}

int dt_near_duplicates_merge(struct dt_near_duplicates *d, uint32_t band, struct dt_error *err)
{
    uint64_t key = 0, like = UINT64_MAX; /* the first document with the key */
    DT_TRY(fill_heap(d, band, err));
    while (d->heap_size > 0) {
        struct cursor *c = d->heap[0];
        uint64_t document = c->first_document + c->documents[c->at];
        if (like != UINT64_MAX && key_of(c) == key)
            join(d, like, document);
        key = key_of(c);
        like = document;
        c->at++;
        bool ended;
        DT_TRY(refill(c, band, &ended, err));
        if (ended)
            d->heap[0] = d->heap[--d->heap_size];
        if (d->heap_size > 0)
            sink(d, 0);
    }
    d->duplicates = 0;
    for (uint64_t i = 0; i < d->documents; i++)
        d->duplicates += d->parent[i] != i;
    return 0;
}

/* --- lists ------------------------------------------------------------------------------------ */

/* Appends "NAME:NUMBER" of a document among all. */
static void add_name(const struct dt_near_duplicates *d, uint64_t document, struct dt_buffer *line)
{
    int low = 0, high = d->count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (d->first_document[middle] <= document)
            low = middle;
        else
            high = middle - 1;
    }
    char *name = dt_near_duplicates_name(d->files[low].path);
    dt_buffer_printf(line, "%s:%" PRIu64, name, document - d->first_document[low] + 1);
    free(name);
}

static int list_run(struct dt_near_duplicates *d, int file, const struct dt_signature_run *run,
                    uint64_t first, struct dt_buffer *line, struct dt_output *out,
                    struct dt_error *err)
{
    char hex[DT_HASH_HEX];
    uint64_t hash;
    for (uint64_t i = 0; i < run->documents; i++) {
        uint64_t document = first + i, like = first_of(d, document);
        if (like == document)
            continue;
        DT_TRY(dt_signature_file_hashes(&d->files[file], run, i, 1, &hash, err));
        dt_buffer_clear(line);
        dt_buffer_printf(line, "%" PRIu64 " %s ", document - d->first_document[file] + 1,
                         dt_hash_hex(hash, hex));
        add_name(d, like, line);
        dt_buffer_add_char(line, '\n');
        DT_TRY(dt_output_write(out, line->data, line->size, err));
    }
    return 0;
}

int dt_near_duplicates_list(struct dt_near_duplicates *d, int file, struct dt_output *out,
                            struct dt_error *err)
{
    struct dt_buffer line = DT_BUFFER_EMPTY;
    uint64_t first = d->first_document[file];
    int rc = 0;
    for (size_t r = 0; r < d->files[file].run_count && rc == 0; r++) {
        const struct dt_signature_run *run = &d->files[file].runs[r];
        rc = list_run(d, file, run, first, &line, out, err);
        first += run->documents;
    }
    dt_buffer_release(&line);
    return rc;
}
