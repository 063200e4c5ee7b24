/* SPDX-License-Identifier: MIT */
#include "dedup/signature-set.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/path.h"
#include "hash/hash.h"

/* Keys that are read at a time from a run: fewer of many runs, so that their memory is bounded. */
#define CURSOR_KEYS 4096
#define FEWEST_KEYS 64
#define ALL_KEYS    ((uint64_t)1 << 24)

/* A cursor over the keys of a band of a run. */
struct cursor {
    const struct dt_signature_file *file;
    const struct dt_signature_run *run;
    uint64_t first_document; /* of the run, among all documents */
    uint64_t read, end;      /* keys of the band taken from the file; those of the task end there */
    size_t at, count;        /* in what follows */
    uint64_t *keys;          /* dt_signature_set.cursor_keys */
    uint32_t *documents;
};

struct dt_signature_set {
    struct dt_signature_file *files;
    uint64_t *first_document; /* of each file */
    int count;
    uint64_t documents, runs;
    size_t cursor_keys;
    struct cursor *cursors;
    struct cursor **heap; /* min-heap by key and document */
    size_t heap_size;
};

/* --- opening ---------------------------------------------------------------------------------- */

char *dt_signature_set_name(const char *path)
{
    char *name = dt_strdup(dt_path_base(path));
    size_t n = strlen(name);
    if (n > 4 && strcmp(name + n - 4, ".sig") == 0)
        name[n - 4] = '\0';
    return name;
}

struct list_name {
    char *name;
    const char *path;
};

static int by_list_name(const void *a, const void *b)
{
    return strcmp(((const struct list_name *)a)->name, ((const struct list_name *)b)->name);
}

static int check_names(char *const *paths, int count, struct dt_error *err)
{
    int rc = 0;
    struct list_name *names = dt_alloc((size_t)count, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = (struct list_name){dt_signature_set_name(paths[i]), paths[i]};
    qsort(names, (size_t)count, sizeof *names, by_list_name);
    for (int i = 1; i < count && rc == 0; i++)
        if (strcmp(names[i - 1].name, names[i].name) == 0)
            rc = dt_fail(err, DT_EINVALID, "'%s' and '%s' would have lists of one name",
                         names[i - 1].path, names[i].path);
    for (int i = 0; i < count; i++)
        free(names[i].name);
    free(names);
    return rc;
}

static bool same_settings(const struct dt_signature_settings *a,
                          const struct dt_signature_settings *b)
{
    return a->bands == b->bands && a->rows == b->rows && a->words == b->words && a->seed == b->seed;
}

static int open_file(struct dt_signature_set *s, const char *path, bool check, struct dt_error *err)
{
    struct dt_signature_file *file = &s->files[s->count];
    DT_TRY(dt_signature_file_open(file, path, check, err));
    s->first_document[s->count++] = s->documents;
    s->documents += file->documents;
    s->runs += file->run_count;
    if (!same_settings(&file->settings, &s->files[0].settings))
        return dt_fail(err, DT_EINVALID, "%s: was signed with other settings than '%s'", path,
                       s->files[0].path);
    return 0;
}

static size_t cursor_keys(uint64_t runs)
{
    uint64_t keys = ALL_KEYS / (runs + 1);
    return keys > CURSOR_KEYS ? CURSOR_KEYS : keys < FEWEST_KEYS ? FEWEST_KEYS : (size_t)keys;
}

static void make_cursors(struct dt_signature_set *s)
{
    size_t made = 0;
    s->cursor_keys = cursor_keys(s->runs);
    s->cursors = dt_alloc(s->runs, sizeof *s->cursors);
    s->heap = dt_alloc(s->runs, sizeof *s->heap);
    for (int i = 0; i < s->count; i++) {
        uint64_t first = s->first_document[i];
        for (size_t r = 0; r < s->files[i].run_count; r++) {
            struct cursor *c = &s->cursors[made++];
            c->file = &s->files[i];
            c->run = &s->files[i].runs[r];
            c->first_document = first;
            c->keys = dt_alloc(s->cursor_keys, sizeof *c->keys);
            c->documents = dt_alloc(s->cursor_keys, sizeof *c->documents);
            first += c->run->documents;
        }
    }
}

/* All files are open at once: raises the limit of open files to what the system allows. */
static void allow_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

int dt_signature_set_open(struct dt_signature_set **result, char *const *paths, int count,
                          bool check, struct dt_error *err)
{
    struct dt_signature_set *s = dt_alloc(1, sizeof *s);
    *result = NULL;
    s->files = dt_alloc((size_t)count, sizeof *s->files);
    s->first_document = dt_alloc((size_t)count, sizeof *s->first_document);
    allow_files();
    int rc = check_names(paths, count, err);
    for (int i = 0; i < count && rc == 0; i++)
        rc = open_file(s, paths[i], check, err);
    if (rc < 0) {
        dt_signature_set_close(s);
        return rc;
    }
    make_cursors(s);
    *result = s;
    return 0;
}

void dt_signature_set_close(struct dt_signature_set *s)
{
    if (s == NULL)
        return;
    for (uint64_t i = 0; s->cursors && i < s->runs; i++) {
        free(s->cursors[i].keys);
        free(s->cursors[i].documents);
    }
    for (int i = 0; i < s->count; i++)
        dt_signature_file_close(&s->files[i]);
    free(s->files);
    free(s->first_document);
    free(s->cursors);
    free(s->heap);
    free(s);
}

struct dt_signature_set_size dt_signature_set_size(const struct dt_signature_set *s)
{
    return (struct dt_signature_set_size){s->files[0].settings, s->documents, s->runs};
}

uint64_t dt_signature_set_bytes(uint64_t runs)
{
    size_t keys = cursor_keys(runs) * (sizeof(uint64_t) + sizeof(uint32_t));
    return runs * (sizeof(struct cursor) + sizeof(struct cursor *) + keys);
}

uint64_t dt_signature_set_hash(const struct dt_signature_set *s)
{
    struct dt_buffer all = DT_BUFFER_EMPTY;
    for (int i = 0; i < s->count; i++) {
        char *name = dt_signature_set_name(s->files[i].path);
        dt_buffer_printf(&all, "%s %016" PRIx64 "\n", name, s->files[i].checksum);
        free(name);
    }
    uint64_t hash = dt_hash(all.data, all.size);
    dt_buffer_release(&all);
    return hash;
}

const struct dt_signature_file *dt_signature_set_file(const struct dt_signature_set *s, int file,
                                                      uint64_t *first_document)
{
    *first_document = s->first_document[file];
    return &s->files[file];
}

/* The file that has a document. */
static int file_of(const struct dt_signature_set *s, uint64_t document)
{
    int low = 0, high = s->count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (s->first_document[middle] <= document)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

void dt_signature_set_add_name(const struct dt_signature_set *s, uint64_t document,
                               struct dt_buffer *line)
{
    int file = file_of(s, document);
    char *name = dt_signature_set_name(s->files[file].path);
    dt_buffer_printf(line, "%s:%" PRIu64, name, document - s->first_document[file] + 1);
    free(name);
}

/* --- merging ---------------------------------------------------------------------------------- */

static uint64_t key_of(const struct cursor *c)
{
    return c->keys[c->at];
}

/* Whether the cursor comes before the other: by key, and by document if the keys are equal. */
static bool is_before(const struct cursor *a, const struct cursor *b)
{
    return key_of(a) != key_of(b) ? key_of(a) < key_of(b) : a->first_document < b->first_document;
}

/* Loads the cursor's next key; sets *ended if none is left. */
static int refill(const struct dt_signature_set *s, struct cursor *c, uint32_t band, bool *ended,
                  struct dt_error *err)
{
    uint64_t left = c->end - c->read;
    *ended = false;
    if (c->at < c->count)
        return 0;
    *ended = left == 0;
    if (*ended)
        return 0;
    c->at = 0;
    c->count = left < s->cursor_keys ? (size_t)left : s->cursor_keys;
    DT_TRY(dt_signature_file_keys(c->file, c->run, band, c->read, c->count, c->keys, c->documents,
                                  err));
    c->read += c->count;
    return 0;
}

/* Sets *index to that of the first key of the run that belongs to this task or a later one. */
static int find_task(const struct cursor *c, uint32_t band, uint64_t task, uint64_t tasks,
                     uint64_t *index, struct dt_error *err)
{
    uint64_t low = 0, high = task == 0 ? 0 : c->run->documents;
    uint64_t step = UINT64_MAX / tasks + 1; /* 0 of one task, which does not use it */
    if (task == tasks)
        low = high;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2, key;
        uint32_t document;
        DT_TRY(dt_signature_file_keys(c->file, c->run, band, middle, 1, &key, &document, err));
        if (key / step < task)
            low = middle + 1;
        else
            high = middle;
    }
    *index = low;
    return 0;
}

/* Sifts the cursor at i down the heap. */
static void sink(struct dt_signature_set *s, size_t i)
{
    struct cursor *moving = s->heap[i];
    for (size_t child; (child = 2 * i + 1) < s->heap_size; i = child) {
        if (child + 1 < s->heap_size && is_before(s->heap[child + 1], s->heap[child]))
            child++;
        if (!is_before(s->heap[child], moving))
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = moving;
}

static int fill_heap(struct dt_signature_set *s, uint32_t band, struct dt_signature_task task,
                     struct dt_error *err)
{
    s->heap_size = 0;
    for (uint64_t i = 0; i < s->runs; i++) {
        struct cursor *c = &s->cursors[i];
        bool ended;
        c->at = c->count = 0;
        DT_TRY(find_task(c, band, task.index, task.count, &c->read, err));
        DT_TRY(find_task(c, band, task.index + 1, task.count, &c->end, err));
        DT_TRY(refill(s, c, band, &ended, err));
        if (!ended)
            s->heap[s->heap_size++] = c;
    }
    for (size_t i = s->heap_size / 2; i-- > 0;)
        sink(s, i);
    return 0;
}

/* A document of a merge. */
struct place {
    const struct cursor *cursor;
    uint32_t document; /* of its run */
};

static uint64_t number_of(struct place p)
{
    return p.cursor->first_document + p.document;
}

/* Whether two documents with the same key are to be linked: in files for equal texts, if the other
 * half of the hash of their texts is the same. */
static int is_linked(const struct dt_signature_set *s, struct place a, struct place b, bool *linked,
                     struct dt_error *err)
{
    uint64_t x = 0, y = 0;
    if (dt_signature_settings_are_exact(&s->files[0].settings)) {
        DT_TRY(dt_signature_file_hashes(a.cursor->file, a.cursor->run, a.document, 1, &x, err));
        DT_TRY(dt_signature_file_hashes(b.cursor->file, b.cursor->run, b.document, 1, &y, err));
    }
    *linked = x == y;
    return 0;
}

int dt_signature_set_merge(struct dt_signature_set *s, uint32_t band, struct dt_signature_task task,
                           dt_signature_link *link, void *context, struct dt_error *err)
{
    struct place previous = {0};
    uint64_t key = 0;
    DT_TRY(fill_heap(s, band, task, err));
    while (s->heap_size > 0) {
        struct cursor *c = s->heap[0];
        struct place here = {c, c->documents[c->at]};
        bool linked = false, ended;
        if (previous.cursor && key_of(c) == key)
            DT_TRY(is_linked(s, previous, here, &linked, err));
        if (linked)
            DT_TRY(link(context, number_of(previous), number_of(here), err));
        key = key_of(c);
        previous = here;
        c->at++;
        DT_TRY(refill(s, c, band, &ended, err));
        if (ended)
            s->heap[0] = s->heap[--s->heap_size];
        if (s->heap_size > 0)
            sink(s, 0);
    }
    return 0;
}
