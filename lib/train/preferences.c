/* SPDX-License-Identifier: MIT */
#include "train/preferences.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "formats/model-directory.h"
#include "hash/hash.h"
#include "prefer/pairs.h"

const char *const dt_preference_metric_names[] = {
    [DT_PREFERENCE_REWARD_CHOSEN] = "reward_chosen",
    [DT_PREFERENCE_REWARD_REJECTED] = "reward_rejected",
    [DT_PREFERENCE_REWARD_MARGIN] = "reward_margin",
    [DT_PREFERENCE_REWARD_ACCURACY] = "reward_accuracy",
    [DT_PREFERENCE_LOG_PROBABILITY_CHOSEN] = "log_probability_chosen",
    [DT_PREFERENCE_LOG_PROBABILITY_REJECTED] = "log_probability_rejected",
};

/* --- a batch ---------------------------------------------------------------------------------- */

/* A sequence of the batch: *tokens with a target, and the sum of their log-probabilities. */
static double sum_up(const struct dt_batch *batch, int64_t row, const float *losses,
                     int64_t *tokens)
{
    double sum = 0;
    *tokens = 0;
    for (int64_t i = row * batch->length; i < (row + 1) * batch->length; i++)
        if (batch->targets[i] >= 0) {
            sum -= (double)losses[i];
            ++*tokens;
        }
    return sum;
}

/* The loss of a pair at its first token with a target, and 0 at the others; weights unless NULL. */
static void put(const struct dt_batch *batch, int64_t row, double loss, double weight,
                float *losses, float *weights)
{
    for (int64_t i = row * batch->length; i < (row + 1) * batch->length; i++) {
        losses[i] = batch->targets[i] >= 0 ? (float)loss : 0;
        loss = batch->targets[i] >= 0 ? 0 : loss;
        if (weights)
            weights[i] = batch->targets[i] >= 0 ? (float)weight : 0;
    }
}

static void add_metrics(struct dt_exact_sum *sums, const struct dt_pair *pair,
                        const struct dt_pair_result *r)
{
    const double values[DT_PREFERENCE_METRICS] = {
        [DT_PREFERENCE_REWARD_CHOSEN] = r->reward[0],
        [DT_PREFERENCE_REWARD_REJECTED] = r->reward[1],
        [DT_PREFERENCE_REWARD_MARGIN] = r->reward[0] - r->reward[1],
        [DT_PREFERENCE_REWARD_ACCURACY] = r->reward[0] > r->reward[1],
        [DT_PREFERENCE_LOG_PROBABILITY_CHOSEN] = pair->log_probability[0],
        [DT_PREFERENCE_LOG_PROBABILITY_REJECTED] = pair->log_probability[1],
    };
    for (int i = 0; i < DT_PREFERENCE_METRICS; i++) {
        dt_exact_sum_add(&sums[i], (float)values[i]);
        dt_exact_sum_normalize(&sums[i]);
    }
}

void dt_preferences_judge(const struct dt_preferences *p, const struct dt_reference_pairs *pairs,
                          const uint64_t *indices, const struct dt_batch *batch, float *losses,
                          float *weights, struct dt_exact_sum *sums)
{
    for (int64_t i = 0; i < batch->count / 2; i++) {
        struct dt_pair pair;
        for (int64_t j = 0; j < 2; j++) {
            pair.log_probability[j] = sum_up(batch, 2 * i + j, losses, &pair.tokens[j]);
            pair.reference[j] = pairs->log_probabilities[2 * indices[i] + (uint64_t)j];
        }
        struct dt_pair_result r = dt_pair_loss_of(&p->loss, &pair);
        /* a token's loss is minus its log-probability */
        put(batch, 2 * i, r.loss, -r.slope[0], losses, weights);
        put(batch, 2 * i + 1, 0, -r.slope[1], losses, weights);
        if (sums)
            add_metrics(sums, &pair, &r);
    }
}

static void set_weights(void *context, const struct dt_batch *batch, float *losses, float *weights)
{
    struct dt_preferences *p = context;
    uint64_t first = batch->first_sample / 2, count = (uint64_t)batch->count / 2;
    uint64_t *indices = dt_alloc(count, sizeof *indices);
    for (uint64_t i = 0; i < count; i++)
        indices[i] = dt_dataset_order(p->data, p->row, &p->order, first + i);
    dt_preferences_judge(p, &p->pairs[DT_PAIR_SPLIT_TRAIN], indices, batch, losses, weights,
                         *p->padding ? NULL : p->sums);
    free(indices);
}

int dt_preferences_means(struct dt_preferences *p, const struct dt_mesh *mesh, double count,
                         double means[DT_PREFERENCE_METRICS], struct dt_error *err)
{
    for (int i = 0; i < DT_PREFERENCE_METRICS; i++) {
        DT_TRY(dt_mesh_sum_exact(mesh->data.all, &p->sums[i], err));
        means[i] = dt_exact_sum_round(&p->sums[i]) / count;
        p->sums[i] = (struct dt_exact_sum){.limbs = {0}};
    }
    return 0;
}

/* --- the reference model ---------------------------------------------------------------------- */

#define FILE_NAME  "reference.bin"
#define FILE_MAGIC UINT64_C(0x31666572702d7464) /* "dt-pref1" */

/* The file: this, and the log-probabilities of both data sets. */
struct header {
    uint64_t magic, parameters; /* hash of the reference model's */
    uint64_t data[DT_PAIR_SPLITS], counts[DT_PAIR_SPLITS];
    uint64_t hash; /* of the log-probabilities */
};

static int hash_model(const struct dt_reference_source *s, uint64_t *hash, struct dt_error *err)
{
    struct dt_model_config config;
    struct dt_table table;
    DT_TRY(dt_model_verify(s->model, err));
    DT_TRY(dt_model_read_config(&config, s->model, err));
    if (config.vocab_size != s->config->vocab_size || config.num_labels > 0 ||
        config.max_seq_len < (long)s->length)
        return dt_fail(err, DT_EINVALID,
                       "%s: a reference model predicts the next of %ld tokens, in sequences of at "
                       "least %u",
                       s->model, s->config->vocab_size, s->length);
    dt_table_init(&table, &config, NULL);
    float *all = dt_alloc((size_t)table.elements, sizeof *all);
    int rc = dt_model_read_parameters(&config, &table, DT_DTYPE_F32, s->model, all, err);
    *hash = dt_hash(all, (size_t)table.elements * sizeof *all);
    free(all);
    dt_table_release(&table);
    return rc;
}

struct scorer {
    struct dt_model *model;
    struct dt_workspace *work;
    struct dt_batch batch;
    uint32_t *ids;
    float *losses;
    uint32_t length;
};

static int open_scorer(struct scorer *s, const struct dt_reference_source *source,
                       struct dt_error *err)
{
    size_t tokens = 2 * (size_t)source->length;
    DT_TRY(dt_model_load_as(&s->model, source->device, (struct dt_model_use){source->compute},
                            source->model, err));
    DT_TRY(dt_workspace_new(&s->work, s->model,
                            &(struct dt_workspace_shape){.batch = 2, .length = source->length},
                            err));
    dt_batch_init(&s->batch, 2, source->length);
    s->length = source->length;
    s->ids = dt_alloc(tokens + 2, sizeof *s->ids);
    s->losses = dt_alloc(tokens, sizeof *s->losses);
    return 0;
}

static void close_scorer(struct scorer *s)
{
    dt_workspace_free(s->work);
    dt_model_free(s->model);
    dt_batch_release(&s->batch);
    free(s->ids);
    free(s->losses);
}

static int score_pair(struct scorer *s, struct dt_dataset *data, uint64_t k, double result[2],
                      struct dt_error *err)
{
    int64_t tokens;
    DT_TRY(dt_dataset_sample(data, dt_pairs_row(s->length), k, s->ids, err));
    dt_batch_next_token(&s->batch, s->ids, 2, s->length);
    dt_model_score(s->model, s->work, &s->batch, s->losses, NULL);
    for (int i = 0; i < 2; i++) {
        result[i] = sum_up(&s->batch, i, s->losses, &tokens);
        if (!isfinite(result[i]))
            return dt_fail(err, DT_EFORMAT,
                           "the reference model gives answer %d of pair %llu, counted from 0, no "
                           "finite log-probability",
                           i, (unsigned long long)k);
    }
    return 0;
}

/* This rank's pairs; the others stay 0. */
static int score_own(struct dt_preferences *p, const struct dt_reference_source *source,
                     struct dt_error *err)
{
    struct scorer s = {NULL};
    int rc = open_scorer(&s, source, err);
    for (int i = 0; rc == 0 && i < DT_PAIR_SPLITS; i++) {
        struct dt_reference_pairs *pairs = &p->pairs[i];
        struct dt_range own = dt_range_part((int64_t)pairs->count, dt_comm_rank(source->comm),
                                            dt_comm_size(source->comm));
        for (int64_t k = own.first; rc == 0 && k < own.end; k++)
            rc =
                score_pair(&s, source->data[i], (uint64_t)k, pairs->log_probabilities + 2 * k, err);
    }
    close_scorer(&s);
    return rc;
}

static int score_all(struct dt_preferences *p, const struct dt_reference_source *source,
                     struct dt_error *err)
{
    DT_TRY(dt_comm_agree(source->comm, score_own(p, source, err), err));
    for (int i = 0; i < DT_PAIR_SPLITS; i++) { /* bits of numbers beside zeros */
        struct dt_reference_pairs *pairs = &p->pairs[i];
        size_t count = 2 * (size_t)pairs->count;
        int64_t *bits = dt_alloc(count + 1, sizeof *bits);
        memcpy(bits, pairs->log_probabilities, count * sizeof *bits);
        int rc = count ? dt_mesh_sum_integers(source->comm, bits, count, err) : 0;
        memcpy(pairs->log_probabilities, bits, count * sizeof *bits);
        free(bits);
        DT_TRY(rc);
    }
    return 0;
}

static uint64_t hash_values(const struct dt_preferences *p)
{
    uint64_t hash = 0;
    for (int i = 0; i < DT_PAIR_SPLITS; i++)
        hash = dt_hash_seeded(p->pairs[i].log_probabilities, 2 * p->pairs[i].count * sizeof(double),
                              hash);
    return hash;
}

static int write_file(const struct dt_preferences *p, const char *path, struct header *header,
                      struct dt_error *err)
{
    struct dt_output out = {.fd = -1};
    header->hash = hash_values(p);
    int rc = dt_output_open(&out, path, err);
    rc = rc < 0 ? rc : dt_output_write(&out, header, sizeof *header, err);
    for (int i = 0; rc == 0 && i < DT_PAIR_SPLITS; i++)
        rc = dt_output_write(&out, p->pairs[i].log_probabilities,
                             2 * p->pairs[i].count * sizeof(double), err);
    rc = rc < 0 ? rc : dt_output_commit(&out, err);
    if (rc < 0)
        dt_output_abandon(&out);
    return rc;
}

#define MOST_BYTES ((size_t)1 << 34)

/* The file is as it was written. */
static int check_values(const char *path, const char *bytes, size_t size, struct dt_error *err)
{
    struct header h;
    const size_t pair = 2 * sizeof(double), most = MOST_BYTES / pair;
    uint64_t hash = 0;
    memcpy(&h, bytes, sizeof h);
    if (h.counts[0] > most || h.counts[1] > most)
        return dt_fail(err, DT_EFORMAT, "%s: is damaged", path);
    const size_t whole = sizeof h + (size_t)(h.counts[0] + h.counts[1]) * pair;
    if (size != whole)
        return dt_fail(err, DT_EFORMAT, "%s: has %zu bytes instead of %zu", path, size, whole);
    bytes += sizeof h;
    for (int i = 0; i < DT_PAIR_SPLITS; bytes += h.counts[i++] * pair)
        hash = dt_hash_seeded(bytes, h.counts[i] * pair, hash);
    return h.hash == hash ? 0 : dt_fail(err, DT_EFORMAT, "%s: is damaged", path);
}

static bool has_split(const struct header *h, const struct header *wanted, int split)
{
    return h->data[split] == wanted->data[split] && h->counts[split] == wanted->counts[split];
}

/* wanted: as the file's header must be; its parameters 0: of any reference. Returns 1, or 0 if the
 * file has no values of these validation data, which a resumed run may change. */
static int take_values(struct dt_preferences *p, const char *path, const char *bytes, size_t size,
                       const struct header *wanted, struct dt_error *err)
{
    struct header h;
    if (size < sizeof h)
        return dt_fail(err, DT_EFORMAT, "%s: is cut short", path);
    memcpy(&h, bytes, sizeof h);
    if (h.magic != wanted->magic)
        return dt_fail(err, DT_EFORMAT, "%s: is not a file of reference log-probabilities", path);
    if (!has_split(&h, wanted, DT_PAIR_SPLIT_TRAIN))
        return dt_fail(err, DT_EINVALID,
                       "%s: has the reference log-probabilities of other data: choose another "
                       "--output",
                       path);
    if (wanted->parameters && h.parameters != wanted->parameters)
        return dt_fail(err, DT_EINVALID,
                       "%s: is of another reference model than the one given: give that one, or "
                       "choose another --output",
                       path);
    DT_TRY(check_values(path, bytes, size, err));
    const bool validates = wanted->counts[DT_PAIR_SPLIT_VALIDATION] > 0;
    if (validates && !has_split(&h, wanted, DT_PAIR_SPLIT_VALIDATION))
        return 0;
    bytes += sizeof h;
    for (int i = 0; i < DT_PAIR_SPLITS; bytes += 2 * h.counts[i++] * sizeof(double))
        memcpy(p->pairs[i].log_probabilities, bytes, 2 * p->pairs[i].count * sizeof(double));
    return 1;
}

/* Returns 1 if the file was read, 0 if there is none of these data. */
static int read_file(struct dt_preferences *p, const char *path, const struct header *wanted,
                     struct dt_error *err)
{
    char *bytes;
    size_t size;
    int there = dt_file_probe(path, err);
    if (there <= 0)
        return there;
    DT_TRY(dt_file_read(path, MOST_BYTES, &bytes, &size, err));
    int rc = take_values(p, path, bytes, size, wanted, err);
    free(bytes);
    return rc;
}

static int find_file(struct dt_preferences *p, const struct dt_reference_source *s,
                     const char *path, const struct header *header, int *found,
                     struct dt_error *err)
{
    *found = 0;
    if (dt_comm_rank(s->comm) > 0 || path == NULL)
        return 0;
    int rc = read_file(p, path, header, err);
    *found = rc > 0;
    return rc < 0 ? rc : 0;
}

/* From the file, or by the model. */
static int fill(struct dt_preferences *p, const struct dt_reference_source *s, const char *path,
                struct header *header, struct dt_error *err)
{
    int found;
    DT_TRY(dt_comm_agree(s->comm, find_file(p, s, path, header, &found, err), err));
    DT_TRY(dt_comm_wait(s->comm, dt_comm_broadcast(s->comm, &found, sizeof found, 0), err));
    if (!found && s->model == NULL)
        return dt_fail(err, DT_EINVALID,
                       "training.objective dpo needs --init-from, the model to begin with, or "
                       "--reference, the model to compare with");
    if (!found)
        DT_TRY(score_all(p, s, err));
    int rc = !found && path && dt_comm_rank(s->comm) == 0 ? write_file(p, path, header, err) : 0;
    DT_TRY(dt_comm_agree(s->comm, rc, err));
    for (int i = 0; i < DT_PAIR_SPLITS && found; i++)
        DT_TRY(dt_comm_wait(s->comm,
                            dt_comm_broadcast(s->comm, p->pairs[i].log_probabilities,
                                              2 * p->pairs[i].count * sizeof(double), 0),
                            err));
    return 0;
}

int dt_preferences_open(struct dt_preferences *p, const struct dt_settings *settings,
                        const struct dt_reference_source *s, struct dt_error *err)
{
    struct header header = {.magic = FILE_MAGIC};
    p->loss = (struct dt_pair_loss){(enum dt_dpo_loss)settings->dpo.loss, settings->dpo.beta,
                                    settings->dpo.label_smoothing};
    p->row = dt_pairs_row(s->length);
    p->data = s->data[DT_PAIR_SPLIT_TRAIN];
    p->weights = (struct dt_token_weights){p, set_weights};
    for (int i = 0; i < DT_PAIR_SPLITS; i++) {
        if (s->data[i])
            DT_TRY(dt_dataset_samples(s->data[i], p->row, &p->pairs[i].count, err));
        header.data[i] = s->data[i] ? dt_dataset_info(s->data[i])->hash : 0;
        header.counts[i] = p->pairs[i].count;
        p->pairs[i].log_probabilities = dt_alloc(2 * p->pairs[i].count + 1, sizeof(double));
    }
    int rc = s->model ? hash_model(s, &header.parameters, err) : 0;
    DT_TRY(dt_comm_agree(s->comm, rc, err));
    char *path = s->run ? dt_path_join(s->run, FILE_NAME) : NULL;
    rc = fill(p, s, path, &header, err);
    free(path);
    return rc;
}

void dt_preferences_release(struct dt_preferences *p)
{
    for (int i = 0; i < DT_PAIR_SPLITS; i++)
        free(p->pairs[i].log_probabilities);
    *p = (struct dt_preferences){.order = {0}};
}
