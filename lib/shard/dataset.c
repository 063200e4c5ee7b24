/* SPDX-License-Identifier: MIT */
#include "shard/dataset.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "shard/format.h"
#include "shard/manifest.h"
#include "shard/shared.h"

#define OPEN_SHARDS 256             /* at a time: far below the usual limit of open files */
#define ORDER_KEY   0x6f72646572ull /* "order": what the randomness is for */

/* One shard in the row of all. */
struct part {
    char *path;
    const struct dt_manifest_shard *listed; /* NULL for a file given by itself */
    uint64_t first_token, first_document;
    struct dt_shard *shard; /* NULL while closed */
};

struct dt_dataset {
    struct dt_manifest manifest;
    struct dt_shard_info info;
    char *provenance;
    struct part *parts;
    int count;
    int opened[OPEN_SHARDS]; /* a ring of the parts that are open, oldest at next */
    int next;
    struct dt_frame_cache *cache;
};

static int open_listed(struct dt_dataset *d, struct part *p, struct dt_error *err)
{
    DT_TRY(dt_shard_open_shared(&p->shard, p->path, &d->cache, err));
    int rc = p->listed ? dt_manifest_check(&d->manifest, p->listed, p->shard, p->path, err) : 0;
    if (rc < 0) {
        dt_shard_close(p->shard);
        p->shard = NULL;
    }
    return rc;
}

static int open_part(struct dt_dataset *d, int i, struct dt_error *err)
{
    if (d->parts[i].shard)
        return 0;
    int oldest = d->opened[d->next];
    if (oldest >= 0) {
        dt_shard_close(d->parts[oldest].shard);
        d->parts[oldest].shard = NULL;
        d->opened[d->next] = -1;
    }
    DT_TRY(open_listed(d, &d->parts[i], err));
    d->opened[d->next] = i;
    d->next = (d->next + 1) % OPEN_SHARDS;
    return 0;
}

/* "train, val" into text, for the person who asked for a third. */
static void list_splits(const struct dt_manifest *m, struct dt_buffer *text)
{
    for (int i = 0; i < m->count; i++)
        dt_buffer_printf(text, "%s%s", i ? ", " : "", m->splits[i].name);
}

static int find_split(struct dt_dataset *d, const char *path, const char *name,
                      const struct dt_manifest_split **split, struct dt_error *err)
{
    DT_TRY(dt_manifest_read(&d->manifest, path, err));
    *split = dt_manifest_find(&d->manifest, name);
    if (*split && (*split)->count > 0)
        return 0;
    struct dt_buffer names = DT_BUFFER_EMPTY;
    list_splits(&d->manifest, &names);
    int rc = dt_fail(err, DT_EMISSING, "%s: has no split '%s'; it has: %s", path, name, names.data);
    dt_buffer_release(&names);
    return rc;
}

static void add_up(struct dt_dataset *d, struct part *p, const struct dt_shard_info *shard)
{
    p->first_token = d->info.tokens;
    p->first_document = d->info.documents;
    d->info.tokens += shard->tokens;
    d->info.documents += shard->documents;
    d->info.text_bytes += shard->text_bytes;
    d->info.hash = dt_join_hashes(d->info.hash, shard->hash);
}

static int open_directory(struct dt_dataset *d, const char *path, const char *name,
                          struct dt_error *err)
{
    const struct dt_manifest_split *split;
    DT_TRY(find_split(d, path, name, &split, err));
    d->info = d->manifest.info;
    d->info.tokens = d->info.documents = d->info.text_bytes = 0;
    d->parts = dt_alloc((size_t)split->count, sizeof *d->parts);
    d->count = split->count;
    for (int i = 0; i < d->count; i++) {
        struct part *p = &d->parts[i];
        p->listed = &split->shards[i];
        p->path = dt_path_join(path, p->listed->file);
        DT_TRY(open_part(d, i, err));
        add_up(d, p, dt_shard_get_info(p->shard));
    }
    return 0;
}

static int open_file(struct dt_dataset *d, const char *path, struct dt_error *err)
{
    d->parts = dt_alloc(1, sizeof *d->parts);
    d->count = 1;
    d->parts->path = dt_strdup(path);
    DT_TRY(open_part(d, 0, err));
    d->info = *dt_shard_get_info(d->parts->shard);
    d->provenance = dt_strdup(d->info.provenance);
    d->info.provenance = d->provenance;
    return 0;
}

int dt_dataset_open(struct dt_dataset **result, const char *path, const char *split,
                    struct dt_error *err)
{
    *result = NULL;
    struct dt_dataset *d = dt_alloc(1, sizeof *d);
    for (int i = 0; i < OPEN_SHARDS; i++)
        d->opened[i] = -1;
    int rc = dt_is_directory(path) ? open_directory(d, path, split, err) : open_file(d, path, err);
    if (rc < 0) {
        dt_dataset_close(d);
        return rc;
    }
    *result = d;
    return 0;
}

const struct dt_shard_info *dt_dataset_info(const struct dt_dataset *d)
{
    return &d->info;
}

/* The part that holds a token. */
static int find_token(const struct dt_dataset *d, uint64_t token)
{
    int low = 0, high = d->count;
    while (low + 1 < high) {
        int middle = low + (high - low) / 2;
        if (d->parts[middle].first_token <= token)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int dt_dataset_tokens(struct dt_dataset *d, uint64_t first, uint64_t count, uint32_t *ids,
                      struct dt_error *err)
{
    if (first > d->info.tokens || count > d->info.tokens - first)
        return dt_fail(err, DT_EINVALID, "tokens %llu and %llu more asked for, but there are %llu",
                       (unsigned long long)first, (unsigned long long)count,
                       (unsigned long long)d->info.tokens);
    for (int i = count > 0 ? find_token(d, first) : 0; count > 0; i++) {
        struct part *p = &d->parts[i];
        DT_TRY(open_part(d, i, err));
        uint64_t n = p->first_token + dt_shard_get_info(p->shard)->tokens - first;
        n = n < count ? n : count;
        DT_TRY(dt_shard_tokens(p->shard, first - p->first_token, n, ids, err));
        ids += n;
        first += n;
        count -= n;
    }
    return 0;
}

int dt_dataset_document(struct dt_dataset *d, uint64_t i, uint64_t *first,
                        struct dt_shard_document *document, struct dt_error *err)
{
    if (i >= d->info.documents)
        return dt_fail(err, DT_EMISSING, "there is no document %llu; there are %llu, from 0",
                       (unsigned long long)i, (unsigned long long)d->info.documents);
    int low = 0, high = d->count;
    while (low + 1 < high) {
        int middle = low + (high - low) / 2;
        if (d->parts[middle].first_document <= i)
            low = middle;
        else
            high = middle;
    }
    struct part *p = &d->parts[low];
    DT_TRY(open_part(d, low, err));
    DT_TRY(dt_shard_get_document(p->shard, i - p->first_document, first, document, err));
    *first += p->first_token;
    return 0;
}

void dt_dataset_close(struct dt_dataset *d)
{
    if (d == NULL)
        return;
    for (int i = 0; i < d->count; i++) {
        dt_shard_close(d->parts[i].shard);
        free(d->parts[i].path);
    }
    dt_frame_cache_free(d->cache);
    dt_manifest_release(&d->manifest);
    free(d->parts);
    free(d->provenance);
    free(d);
}

uint64_t dt_sample_at(uint64_t seed, uint64_t samples, uint64_t index)
{
    uint64_t epoch = index / samples;
    return dt_permute(dt_random_key(seed, ORDER_KEY, epoch), samples, index % samples);
}
