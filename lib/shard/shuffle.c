/* SPDX-License-Identifier: MIT */
/* An external merge sort by random keys. */
#include "shard/shuffle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "math/rng.h"

#define SHUFFLE_KEY 0x73687566666c65ull /* "shuffle": RNG stream */
#define FAN         32                  /* runs of a level that are merged into one of the next */
#define LEVELS      8                   /* FAN^LEVELS runs exceed any disk */
#define FILE_BUFFER ((size_t)256 << 10)

/* A stored document. Its ids are at index `at` of the buffer, or follow it in a file. */
struct entry {
    uint64_t key, number; /* sort order: by key, then by index in the input */
    struct dt_shard_document document;
    uint64_t at;
};

/* A sorted run in a file, with its next document. */
struct run {
    int level; /* log(initial runs in it) to base FAN */
    FILE *file;
    char *buffer;
    struct entry entry;
    struct dt_ids ids;
};

struct dt_shuffler {
    char *directory;
    uint64_t seed, count;
    size_t memory; /* in ids */
    struct entry *entries;
    size_t used, capacity, next;
    struct dt_ids ids;
    struct run runs[FAN * LEVELS]; /* levels do not increase */
    int run_count;
    bool reading;
};

int dt_shuffler_new(struct dt_shuffler **result, const char *directory, uint64_t seed,
                    size_t memory, struct dt_error *err)
{
    *result = NULL;
    if (!dt_file_is_directory(directory))
        return dt_fail(err, DT_EMISSING, "'%s' is not a directory", directory);
    struct dt_shuffler *s = dt_alloc(1, sizeof *s);
    s->directory = dt_strdup(directory);
    s->seed = seed;
    s->memory = memory / sizeof(uint32_t);
    *result = s;
    return 0;
}

static void release_run(struct run *r)
{
    if (r->file)
        fclose(r->file);
    free(r->buffer);
    dt_ids_release(&r->ids);
    *r = (struct run){0};
}

void dt_shuffler_free(struct dt_shuffler *s)
{
    if (s == NULL)
        return;
    for (int i = 0; i < s->run_count; i++)
        release_run(&s->runs[i]);
    dt_ids_release(&s->ids);
    free(s->entries);
    free(s->directory);
    free(s);
}

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int io_error(const struct dt_shuffler *s, struct dt_error *err)
{
    return dt_fail_errno(err, "cannot shuffle through a temporary file in '%s'", s->directory);
}

/* Creates an unlinked temporary file, which the kernel removes with the process. */
static int open_run(const struct dt_shuffler *s, struct run *r, struct dt_error *err)
{
    char *path = dt_path_join(s->directory, ".shuffle.tmp-XXXXXX");
    int fd = mkstemp(path);
    if (fd >= 0)
        unlink(path);
    free(path);
    *r = (struct run){.file = fd >= 0 ? fdopen(fd, "w+b") : NULL};
    if (r->file == NULL) {
        if (fd >= 0)
            close(fd);
        return io_error(s, err);
    }
    r->buffer = dt_alloc(FILE_BUFFER, 1);
    setvbuf(r->file, r->buffer, _IOFBF, FILE_BUFFER);
    return 0;
}

static int put(const struct dt_shuffler *s, struct run *r, const struct entry *e,
               const uint32_t *ids, struct dt_error *err)
{
    size_t n = (size_t)e->document.tokens;
    if (fwrite(e, sizeof *e, 1, r->file) != 1 ||
        (n > 0 && fwrite(ids, sizeof *ids, n, r->file) != n))
        return io_error(s, err);
    return 0;
}

/* Reads the next document of the run; closes the file at its end. */
static int advance(const struct dt_shuffler *s, struct run *r, struct dt_error *err)
{
    if (fread(&r->entry, sizeof r->entry, 1, r->file) == 1) {
        size_t n = (size_t)r->entry.document.tokens;
        r->ids.count = 0;
        dt_ids_reserve(&r->ids, n);
        r->ids.count = n;
        if (n == 0 || fread(r->ids.data, sizeof(uint32_t), n, r->file) == n)
            return 0;
    }
    if (ferror(r->file) || !feof(r->file))
        return io_error(s, err);
    release_run(r);
    return 0;
}

/* The run, from index `from` on, with the smallest next document; NULL at the end. */
static struct run *find_first(struct dt_shuffler *s, int from)
{
    struct run *first = NULL;
    for (int i = from; i < s->run_count; i++)
        if (s->runs[i].file && (first == NULL || compare(&s->runs[i].entry, &first->entry) < 0))
            first = &s->runs[i];
    return first;
}

static int rewind_runs(struct dt_shuffler *s, int from, struct dt_error *err)
{
    for (int i = from; i < s->run_count; i++) {
        if (fflush(s->runs[i].file) != 0 || fseeko(s->runs[i].file, 0, SEEK_SET) != 0)
            return io_error(s, err);
        DT_TRY(advance(s, &s->runs[i], err));
    }
    return 0;
}

/* Merges the runs from index `from` on, all of one level, into one. */
static int merge(struct dt_shuffler *s, int from, struct dt_error *err)
{
    struct run whole;
    int level = s->runs[from].level + 1;
    DT_TRY(rewind_runs(s, from, err));
    DT_TRY(open_run(s, &whole, err));
    int rc = 0;
    for (struct run *r; rc == 0 && (r = find_first(s, from)) != NULL;) {
        rc = put(s, &whole, &r->entry, r->ids.data, err);
        if (rc == 0)
            rc = advance(s, r, err);
    }
    for (int i = from; i < s->run_count; i++)
        release_run(&s->runs[i]);
    whole.level = level;
    s->runs[from] = whole;
    s->run_count = from + 1;
    return rc;
}

/* Sorts the documents in memory and writes them to a new run. */
static int spill(struct dt_shuffler *s, struct dt_error *err)
{
    while (s->run_count >= FAN &&
           s->runs[s->run_count - FAN].level == s->runs[s->run_count - 1].level)
        DT_TRY(merge(s, s->run_count - FAN, err));
    struct run *r = &s->runs[s->run_count];
    DT_TRY(open_run(s, r, err));
    s->run_count++;
    qsort(s->entries, s->used, sizeof *s->entries, compare);
    for (size_t i = 0; i < s->used; i++)
        DT_TRY(put(s, r, &s->entries[i], s->ids.data + s->entries[i].at, err));
    s->used = s->ids.count = 0;
    return 0;
}

int dt_shuffler_add(struct dt_shuffler *s, const uint32_t *ids,
                    const struct dt_shard_document *document, struct dt_error *err)
{
    size_t record = sizeof(struct entry) / sizeof *ids;
    size_t held = s->ids.count + s->used * record;
    if (s->used > 0 && held + (size_t)document->tokens + record > s->memory)
        DT_TRY(spill(s, err));
    DT_GROW(s->entries, s->used, s->capacity);
    s->entries[s->used++] = (struct entry){.key = dt_random_key(s->seed, SHUFFLE_KEY, s->count),
                                           .number = s->count,
                                           .document = *document,
                                           .at = s->ids.count};
    s->count++;
    dt_ids_append(&s->ids, ids, (size_t)document->tokens);
    return 0;
}

static int begin_reading(struct dt_shuffler *s, struct dt_error *err)
{
    s->reading = true;
    if (s->run_count == 0) {
        qsort(s->entries, s->used, sizeof *s->entries, compare);
        return 0;
    }
    DT_TRY(spill(s, err));
    return rewind_runs(s, 0, err);
}

int dt_shuffler_next(struct dt_shuffler *s, struct dt_ids *ids, struct dt_shard_document *document,
                     struct dt_error *err)
{
    if (!s->reading)
        DT_TRY(begin_reading(s, err));
    ids->count = 0;
    if (s->run_count == 0) {
        if (s->next == s->used)
            return 0;
        const struct entry *e = &s->entries[s->next++];
        *document = e->document;
        dt_ids_append(ids, s->ids.data + e->at, (size_t)document->tokens);
        return 1;
    }
    struct run *r = find_first(s, 0);
    if (r == NULL)
        return 0;
    *document = r->entry.document;
    dt_ids_append(ids, r->ids.data, r->ids.count);
    DT_TRY(advance(s, r, err));
    return 1;
}
