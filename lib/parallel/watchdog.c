/* SPDX-License-Identifier: MIT */
#include "parallel/watchdog.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "hash/hash.h"

/* --- parameters ------------------------------------------------------------------------------- */

/* Hashes what this rank holds of each tensor: weights with zero_stage 1 and 2, otherwise
 * parameters. */
static void hash_tensors(const struct dt_train_state *s, uint64_t *hashes)
{
    const struct dt_model *m = s->model;
    const struct dt_table *t = &m->table;
    bool weights = s->dp.zero_stage == 1 || s->dp.zero_stage == 2;
    size_t element = weights ? dt_dtype_size(m->compute) : sizeof(float);
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        const char *bucket =
            weights ? m->weights.buckets[p->bucket] : (const char *)s->parameters[p->bucket];
        int64_t begin = weights ? t->buckets[p->bucket] : s->shards[p->bucket].first;
        int64_t kept = s->shards[p->bucket].end, end = p->offset + p->count;
        int64_t first = p->offset > begin ? p->offset : begin;
        end = !weights && kept < end ? kept : end;
        size_t bytes = end > first ? (size_t)(end - first) * element : 0;
        char *host = dt_alloc(1, bytes);
        if (bytes > 0)
            m->device->ops->download(m->device, host, bucket + (size_t)(first - begin) * element,
                                     bytes);
        hashes[i] = dt_hash(host, bytes);
        free(host);
    }
}

int dt_watchdog_compare_parameters(struct dt_train_state *s, struct dt_error *err)
{
    const struct dt_data_group *r = &s->dp.dp_group;
    struct dt_comm *comm = s->dp.zero_stage == 3 ? r->across : r->all;
    size_t size = comm ? (size_t)dt_comm_size(comm) : 1, count = (size_t)s->model->table.count;
    size_t first = comm == r->all ? 0 : (size_t)dt_comm_rank(r->group);
    size_t stride = comm == r->all ? 1 : (size_t)dt_comm_size(r->group);
    if (size == 1)
        return 0;
    if (s->dp.zero_stage > 0)
        DT_TRY(dt_parameter_gather_wait(&s->gather, err));
    uint64_t *all = dt_alloc(size * count, sizeof *all);
    hash_tensors(s, all + (size_t)dt_comm_rank(comm) * count);
    int rc = dt_comm_share(comm, all, count * sizeof *all, err);
    for (size_t i = 0; rc == 0 && i < size * count; i++)
        if (all[i] != all[i % count])
            rc = dt_fail(
                err, DT_EINVALID,
                "ranks have diverged: tensor '%s' of data-parallel rank %zu differs from that "
                "of rank %zu",
                s->model->table.params[i % count].name, first + i / count * stride, first);
    free(all);
    return rc;
}

/* --- stragglers ------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int dt_watchdog_find_straggler(struct dt_comm *comm, double busy, int64_t batches,
                               struct dt_straggler *straggler, struct dt_error *err)
{
    size_t size = (size_t)dt_comm_size(comm);
    *straggler = (struct dt_straggler){0, 1};
    if (size == 1)
        return 0;
    double *all = dt_alloc(size, sizeof *all), median;
    all[dt_comm_rank(comm)] = busy / (double)batches;
    int rc = dt_comm_share(comm, all, sizeof *all, err);
    for (size_t r = 1; r < size; r++)
        straggler->rank = all[r] > all[straggler->rank] ? (int)r : straggler->rank;
    double most = all[straggler->rank];
    qsort(all, size, sizeof *all, compare);
    median = all[(size - 1) / 2];
    straggler->factor = median > 0 ? most / median : 1;
    free(all);
    return rc;
}
