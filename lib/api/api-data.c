/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "api/api-internal.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "shard/dataset.h"
#include "shard/loader.h"

struct dt_api_dataset {
    struct dt_guard guard;
    struct dt_dataset *dataset;
};

struct dt_api_loader {
    pthread_mutex_t lock;
    unsigned forks; /* when it was opened */
    struct dt_dataset *dataset;
    struct dt_loader *loader;
    uint32_t length;
};

/* --- data sets -------------------------------------------------------------------------------- */

int dt_api_dataset_open(struct dt_api_dataset **result, const char *path, const char *split,
                        char *error)
{
    struct dt_error err;
    struct dt_dataset *dataset;
    *result = NULL;
    locale_t callers = uselocale(dt_c_locale()); /* weights of mixtures */
    int rc = dt_dataset_open(&dataset, path, split, &err);
    uselocale(callers);
    if (rc < 0)
        return dt_told(rc, &err, error);
    struct dt_api_dataset *d = dt_alloc(1, sizeof *d);
    dt_guard_init(&d->guard);
    d->dataset = dataset;
    *result = d;
    return 0;
}

void dt_api_dataset_close(struct dt_api_dataset *d)
{
    if (d == NULL)
        return;
    dt_guard_release(&d->guard);
    dt_dataset_close(d->dataset);
    free(d);
}

void dt_api_dataset_describe(const struct dt_api_dataset *d, struct dt_api_dataset_info *info,
                             size_t size)
{
    const struct dt_shard_info *own = dt_dataset_info(d->dataset);
    const struct dt_api_dataset_info known = {
        .tokens = own->tokens,
        .documents = own->documents,
        .text_bytes = own->text_bytes,
        .targets = own->targets,
        .tokenizer = own->tokenizer,
        .hash = own->hash,
        .weights = dt_dataset_weights(d->dataset),
        .vocab_size = own->vocab_size,
        .end = own->eot,
        .row = own->row,
        .masked = own->masked,
    };
    memset(info, 0, size);
    memcpy(info, &known, size < sizeof known ? size : sizeof known);
}

int dt_api_dataset_read(struct dt_api_dataset *d, uint64_t first, uint64_t count, uint32_t *ids,
                        char *error)
{
    struct dt_error err;
    pthread_mutex_lock(&d->guard.lock);
    int rc = dt_dataset_tokens(d->dataset, first, count, ids, &err);
    pthread_mutex_unlock(&d->guard.lock);
    return dt_told(rc, &err, error);
}

int dt_api_dataset_document(struct dt_api_dataset *d, uint64_t i, uint64_t *first, uint64_t *count,
                            char *error)
{
    struct dt_error err;
    struct dt_shard_document document = {0};
    pthread_mutex_lock(&d->guard.lock);
    int rc = dt_dataset_document(d->dataset, i, first, &document, &err);
    pthread_mutex_unlock(&d->guard.lock);
    *count = document.tokens & ~DT_KINDS;
    return dt_told(rc, &err, error);
}

int dt_api_dataset_samples(struct dt_api_dataset *d, uint32_t length, uint64_t *samples,
                           char *error)
{
    struct dt_error err;
    return dt_told(dt_dataset_samples(d->dataset, length, samples, &err), &err, error);
}

/* --- loaders ---------------------------------------------------------------------------------- */

/* The program would end where the loader's own allocation fails. */
static int check_memory(const struct dt_loader_options *o, struct dt_error *err)
{
    double batches = 3 + 2 * (double)o->workers;
    double need =
        batches * 12 * (o->batch / (double)(o->ranks ? o->ranks : 1) + 1) * ((double)o->length + 1);
    double left = (double)dt_memory_available("");
    return need <= left ? 0
                        : dt_fail(err, DT_ENOMEM,
                                  "batches of %u samples of %u tokens and %d workers need %.0f MB, "
                                  "of which %.0f MB are left",
                                  o->batch, o->length, o->workers, need / 1e6, left / 1e6);
}

static int read_options(const struct dt_api_loader_options *given, struct dt_loader_options *o,
                        struct dt_error *err)
{
    struct dt_api_loader_options all;
    DT_TRY(dt_taken_options(&all, sizeof all, given, given->size, err));
    if (all.workers < 0 || all.workers > 1024)
        return dt_fail(err, DT_EINVALID, "workers must be 0 to 1024, not %d", all.workers);
    if (all.scope < 0 || all.scope > DT_API_SCOPE_DOCUMENT)
        return dt_fail(err, DT_EINVALID, "scope %d: 0, 1 or 2 expected", all.scope);
    *o = (struct dt_loader_options){
        .length = all.length,
        .batch = all.batch,
        .order = {.seed = all.seed,
                  .shuffle = all.shuffle != 0,
                  .block = all.shuffle_block,
                  .window = all.shuffle_window ? all.shuffle_window : 64},
        .first = all.first,
        .ranks = all.ranks,
        .rank = all.rank,
        .workers = all.workers,
        .scope = (enum dt_scope)all.scope,
        .memory = (size_t)all.memory,
    };
    return check_memory(o, err);
}

static void free_loader(struct dt_api_loader *l)
{
    dt_loader_free(l->loader);
    dt_dataset_close(l->dataset);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

int dt_api_loader_open(struct dt_api_loader **result, const struct dt_api_dataset *d,
                       const struct dt_api_loader_options *options, char *error)
{
    struct dt_error err;
    struct dt_loader_options o;
    *result = NULL;
    int rc = read_options(options, &o, &err);
    if (rc < 0)
        return dt_told(rc, &err, error);
    struct dt_api_loader *l = dt_alloc(1, sizeof *l);
    l->forks = dt_fork_count();
    l->length = o.length;
    pthread_mutex_init(&l->lock, NULL);
    locale_t callers = uselocale(dt_c_locale()); /* as dt_api_dataset_open, which this repeats */
    rc = dt_dataset_clone(&l->dataset, d->dataset, &err);
    uselocale(callers);
    if (rc == 0)
        rc = dt_loader_open(&l->loader, l->dataset, &o, &err);
    if (rc == 0)
        *result = l;
    else
        free_loader(l);
    return dt_told(rc, &err, error);
}

static int next(struct dt_api_loader *l, struct dt_api_batch *batch, struct dt_error *err)
{
    struct dt_samples samples;
    DT_TRY(dt_loader_next(l->loader, &samples, err));
    *batch = (struct dt_api_batch){.ids = (uint32_t *)samples.ids,
                                   .begins = (int32_t *)samples.begins,
                                   .ends = (int32_t *)samples.ends,
                                   .position = samples.position,
                                   .targets = samples.targets,
                                   .rows = dt_loader_rows(l->loader),
                                   .length = l->length};
    dt_loader_take(l->loader);
    return 0;
}

int dt_api_loader_next(struct dt_api_loader *l, struct dt_api_batch *batch, char *error)
{
    struct dt_error err;
    *batch = (struct dt_api_batch){0};
    if (l->forks != dt_fork_count())
        return dt_told(
            dt_fail(&err, DT_EINVALID, "the loader was opened before fork(): open it in the child"),
            &err, error);
    pthread_mutex_lock(&l->lock);
    int rc = next(l, batch, &err);
    pthread_mutex_unlock(&l->lock);
    return dt_told(rc, &err, error);
}

/* The memory of a loader of the parent process is left as it is: its threads are not here. */
void dt_api_loader_close(struct dt_api_loader *l)
{
    if (l && l->forks == dt_fork_count())
        free_loader(l);
}
