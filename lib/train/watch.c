/* SPDX-License-Identifier: MIT */
#include "train/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/hash.h"

/* Everyone's count values of so many bytes each, rank by rank; this rank's are there. */
static int gather(struct dt_comm *comm, void *all, size_t bytes, struct dt_error *err)
{
    size_t size = (size_t)dt_comm_size(comm), *offsets = dt_alloc(size + 1, sizeof *offsets);
    for (size_t r = 0; r <= size; r++)
        offsets[r] = r * bytes;
    int rc = dt_comm_wait(comm, dt_comm_all_gather(comm, all, offsets), err);
    free(offsets);
    return rc;
}

/* --- replicas ----------------------------------------------------------------------------------
 */

static void hash_tensors(const struct dt_store *s, uint64_t *hashes)
{
    const struct dt_model *m = s->model;
    const struct dt_table *t = &m->table;
    size_t element = s->parallel.stage > 0 ? dt_dtype_size(m->compute) : sizeof(float);
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        int64_t at = p->offset - t->buckets[p->bucket];
        const char *bucket = s->parallel.stage > 0 ? m->weights.buckets[p->bucket]
                                                   : (const char *)s->parameters[p->bucket];
        size_t bytes = (size_t)p->count * element;
        char *host = dt_alloc(1, bytes);
        m->device->ops->download(m->device, host, bucket + (size_t)at * element, bytes);
        hashes[i] = dt_hash(host, bytes);
        free(host);
    }
}

int dt_watch_replicas(struct dt_store *s, struct dt_error *err)
{
    struct dt_comm *comm = s->parallel.comm;
    size_t size = (size_t)dt_comm_size(comm), count = (size_t)s->model->table.count;
    if (size == 1 || s->parallel.stage == 3)
        return 0;
    if (s->parallel.stage > 0)
        DT_TRY(dt_weights_settle(&s->weights, err));
    uint64_t *all = dt_alloc(size * count, sizeof *all);
    hash_tensors(s, all + (size_t)dt_comm_rank(comm) * count);
    int rc = gather(comm, all, count * sizeof *all, err);
    for (size_t i = 0; rc == 0 && i < size * count; i++)
        if (all[i] != all[i % count])
            rc = dt_fail(
                err, DT_EINVALID,
                "ranks have come apart: tensor '%s' of replica %zu is not that of replica 0",
                s->model->table.params[i % count].name, i / count);
    free(all);
    return rc;
}

/* --- pace ---------------------------------------------------------------------------------------
 */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int dt_watch_pace(struct dt_comm *comm, double busy, struct dt_pace *pace, struct dt_error *err)
{
    size_t size = (size_t)dt_comm_size(comm);
    *pace = (struct dt_pace){0, 1};
    if (size == 1)
        return 0;
    double *all = dt_alloc(size, sizeof *all), median;
    all[dt_comm_rank(comm)] = busy;
    int rc = gather(comm, all, sizeof *all, err);
    for (size_t r = 1; r < size; r++)
        pace->slowest = all[r] > all[pace->slowest] ? (int)r : pace->slowest;
    double most = all[pace->slowest];
    qsort(all, size, sizeof *all, compare);
    median = all[(size - 1) / 2];
    pace->factor = median > 0 ? most / median : 1;
    free(all);
    return rc;
}
