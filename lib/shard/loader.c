/* SPDX-License-Identifier: MIT */
/* A thread fills a ring of batches; all memory is taken at the start. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "shard/dataset.h"

#define AHEAD 4 /* batches, the one in use included */

struct dt_loader {
    struct dt_dataset *dataset;
    uint32_t length, batch;
    uint64_t seed, samples, place;
    bool shuffle;
    uint32_t *ids[AHEAD];
    struct dt_error error;
    int failed; /* its code; the batches before it are good */
    /* Batches made, and batches that the user is done with. */
    uint64_t made, released;
    bool in_use, stopping;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t one_made, one_released;
};

static int fill_batch(struct dt_loader *l, uint32_t *ids, struct dt_error *err)
{
    for (uint32_t i = 0; i < l->batch; i++, l->place++) {
        uint64_t sample =
            l->shuffle ? dt_sample_at(l->seed, l->samples, l->place) : l->place % l->samples;
        DT_TRY(
            dt_dataset_tokens(l->dataset, sample * l->length, (uint64_t)l->length + 1, ids, err));
        ids += l->length + 1;
    }
    return 0;
}

static void *run(void *argument)
{
    struct dt_loader *l = argument;
    pthread_mutex_lock(&l->lock);
    while (l->failed == 0) {
        while (l->made - l->released == AHEAD && !l->stopping)
            pthread_cond_wait(&l->one_released, &l->lock);
        if (l->stopping)
            break;
        uint32_t *ids = l->ids[l->made % AHEAD];
        pthread_mutex_unlock(&l->lock);
        int rc = fill_batch(l, ids, &l->error);
        pthread_mutex_lock(&l->lock);
        l->failed = rc;
        l->made += rc == 0;
        pthread_cond_signal(&l->one_made);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

int dt_loader_new(struct dt_loader **result, struct dt_dataset *dataset, uint32_t length,
                  uint32_t batch, uint64_t seed, int shuffle, uint64_t first, struct dt_error *err)
{
    uint64_t tokens = dt_dataset_info(dataset)->tokens;
    *result = NULL;
    if (length == 0 || batch == 0)
        return dt_fail(err, DT_EINVALID, "a batch of %u samples of %u tokens is impossible", batch,
                       length);
    if (tokens <= length)
        return dt_fail(err, DT_EINVALID,
                       "the split has %llu tokens, but one sample of length %u needs %llu",
                       (unsigned long long)tokens, length, (unsigned long long)length + 1);
    struct dt_loader *l = dt_alloc(1, sizeof *l);
    *l = (struct dt_loader){.dataset = dataset,
                            .length = length,
                            .batch = batch,
                            .seed = seed,
                            .samples = (tokens - 1) / length,
                            .place = first,
                            .shuffle = shuffle != 0};
    for (int i = 0; i < AHEAD; i++)
        l->ids[i] = dt_alloc(batch, ((size_t)length + 1) * sizeof *l->ids[i]);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->one_made, NULL);
    pthread_cond_init(&l->one_released, NULL);
    if (pthread_create(&l->thread, NULL, run, l) != 0) {
        l->batch = 0; /* no thread to join */
        dt_loader_free(l);
        return dt_fail(err, DT_ENOMEM, "cannot start the thread that reads ahead");
    }
    *result = l;
    return 0;
}

uint64_t dt_loader_samples(const struct dt_loader *l)
{
    return l->samples;
}

int dt_loader_next(struct dt_loader *l, const uint32_t **ids, struct dt_error *err)
{
    int rc = 0;
    pthread_mutex_lock(&l->lock);
    l->released += l->in_use;
    l->in_use = false;
    pthread_cond_signal(&l->one_released);
    while (l->made == l->released && l->failed == 0)
        pthread_cond_wait(&l->one_made, &l->lock);
    if (l->made > l->released) {
        *ids = l->ids[l->released % AHEAD];
        l->in_use = true;
    } else {
        *err = l->error;
        rc = l->failed;
    }
    pthread_mutex_unlock(&l->lock);
    return rc;
}

void dt_loader_free(struct dt_loader *l)
{
    if (l == NULL)
        return;
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_cond_signal(&l->one_released);
    pthread_mutex_unlock(&l->lock);
    if (l->batch > 0)
        pthread_join(l->thread, NULL);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->one_made);
    pthread_cond_destroy(&l->one_released);
    for (int i = 0; i < AHEAD; i++)
        free(l->ids[i]);
    free(l);
}
