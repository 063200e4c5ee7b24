/* SPDX-License-Identifier: MIT */
#include "prefer/pairs.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/buffer.h"

struct pairs {
    struct dt_dataset *documents;
    char *path;
    uint32_t length;
};

/* A pair's answer: the document's tokens, padded. */
static int read_answer(struct pairs *p, uint64_t document, uint32_t *ids, struct dt_error *err)
{
    struct dt_shard_document d;
    uint64_t first, learned = 0;
    DT_TRY(dt_dataset_document(p->documents, document, &first, &d, err));
    DT_TRY(dt_dataset_targets(p->documents, first, d.tokens, ids, err));
    for (uint64_t i = 1; i < d.tokens; i++)
        learned += !(ids[i] & DT_NO_LOSS);
    for (uint64_t i = d.tokens; i <= p->length; i++)
        ids[i] = DT_NO_LOSS;
    if (learned == 0)
        return dt_fail(err, DT_EFORMAT, "%s: document %" PRIu64 ": no token carries loss", p->path,
                       document);
    return 0;
}

static int read_pair(void *state, uint64_t k, uint32_t *ids, struct dt_error *err)
{
    struct pairs *p = state;
    DT_TRY(read_answer(p, 2 * k, ids, err));
    return read_answer(p, 2 * k + 1, ids + p->length + 1, err);
}

static void free_pairs(void *state)
{
    struct pairs *p = state;
    dt_dataset_close(p->documents);
    free(p->path);
    free(p);
}

static struct pairs *new_pairs(const char *path, uint32_t length)
{
    struct pairs *p = dt_alloc(1, sizeof *p);
    p->path = dt_strdup(path);
    p->length = length;
    return p;
}

static int clone_pairs(void **copy, const void *state, struct dt_error *err)
{
    const struct pairs *from = state;
    struct pairs *p = new_pairs(from->path, from->length);
    int rc = dt_dataset_clone(&p->documents, from->documents, err);
    if (rc < 0)
        free_pairs(p);
    *copy = rc < 0 ? NULL : p;
    return rc;
}

static int check_pair(struct dt_dataset *data, const char *path, uint64_t k, uint32_t length,
                      struct dt_error *err)
{
    struct dt_shard_document d[2];
    uint64_t first;
    for (int i = 0; i < 2; i++)
        DT_TRY(dt_dataset_document(data, 2 * k + (uint64_t)i, &first, &d[i], err));
    if (d[0].hash != d[1].hash)
        return dt_fail(err, DT_EINVALID,
                       "%s: documents %" PRIu64 " and %" PRIu64 ", counted from 0, are not the "
                       "chosen and the rejected answer of one record: write them with dt-tokenize "
                       "--chat --pairs, and do not shuffle them",
                       path, 2 * k, 2 * k + 1);
    uint64_t longest = d[0].tokens > d[1].tokens ? d[0].tokens : d[1].tokens;
    if (longest <= (uint64_t)length + 1)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "%s: pair %" PRIu64 ", counted from 0, has an answer that ends at token %" PRIu64
                   ", beyond training.sequence_length + 1, %u: raise that, or use dt-tokenize "
                   "--truncate",
                   path, k, longest, length + 1);
}

static int check(struct dt_dataset *data, const char *path, uint32_t length, struct dt_error *err)
{
    const struct dt_shard_info *info = dt_dataset_info(data);
    if (!dt_dataset_has_tokens(data) || !info->masked || info->row > 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: preferences are shards of dt-tokenize --chat --pairs, in a list: %s",
                       path, info->row > 0 ? "these are rows" : "these have no loss mask");
    if (info->documents == 0 || info->documents % 2 != 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: %" PRIu64 " documents, an odd number or none, are not pairs", path,
                       info->documents);
    for (uint64_t k = 0; k < info->documents / 2; k++)
        DT_TRY(check_pair(data, path, k, length, err));
    return 0;
}

int dt_pairs_open(struct dt_dataset **data, const char *path, uint32_t length, struct dt_error *err)
{
    DT_TRY(check(*data, path, length, err));
    struct pairs *p = new_pairs(path, length);
    p->documents = *data;
    struct dt_sample_source source = {.info = *dt_dataset_info(*data),
                                      .length = dt_pairs_row(length),
                                      .read = read_pair,
                                      .clone = clone_pairs,
                                      .free = free_pairs,
                                      .state = p};
    source.samples = source.info.documents / 2;
    source.info.tokens = source.samples * 2 * length;
    *data = dt_dataset_from_source(&source);
    return 0;
}
