/* SPDX-License-Identifier: MIT */
/* Applies models of fastText: the mean of the rows of a text's words and n-grams, multiplied by the
 * output matrix. */
#include "language/classifier-internal.h"

#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/file.h"
#include "hash/hash.h"
#include "math/math.h"

#define LARGEST_FILE ((size_t)1 << 36)

int dt_classifier_read(struct dt_classifier **c, const char *path, struct dt_error *err)
{
    struct dt_classifier *new = dt_alloc(1, sizeof *new);
    int rc = dt_file_read(path, LARGEST_FILE, &new->file, &new->file_size, err);
    if (rc == 0)
        rc = dt_model_file_parse(new, path, err);
    if (rc < 0) {
        dt_classifier_free(new);
        return rc;
    }
    new->hash = dt_hash(new->file, new->file_size);
    *c = new;
    return 0;
}

void dt_classifier_free(struct dt_classifier *c)
{
    if (c == NULL)
        return;
    free(c->file);
    free(c->entries);
    free(c->words.slots);
    free(c->kept.slots);
    free(c->nodes);
    free(c);
}

size_t dt_classifier_labels(const struct dt_classifier *c)
{
    return (size_t)c->label_count;
}

const char *dt_classifier_label(const struct dt_classifier *c, size_t label)
{
    return dt_model_without_prefix(c->entries[(size_t)c->word_count + label].text);
}

size_t dt_classifier_find(const struct dt_classifier *c, const char *name)
{
    size_t label = 0, count = dt_classifier_labels(c);
    while (label < count &&
           strcmp(dt_classifier_label(c, label), dt_model_without_prefix(name)) != 0)
        label++;
    return label;
}

uint64_t dt_classifier_hash(const struct dt_classifier *c)
{
    return c->hash;
}

/* --- matrices --------------------------------------------------------------------------------- */

/* The centroid of a part with this code, and its length. */
static inline const char *centroid(const struct dt_model_quantizer *q, int32_t part,
                                   unsigned char code, int32_t *length)
{
    *length = part == q->parts - 1 ? q->last : q->width;
    size_t before = (size_t)part * DT_MODEL_FILE_CODES * (size_t)q->width;
    return q->centroids + sizeof(float) * (before + (size_t)code * (size_t)*length);
}

static inline float norm_of(const struct dt_model_matrix *m, int64_t row)
{
    int32_t length;
    if (m->norm_codes == NULL)
        return 1;
    return dt_model_float(centroid(&m->norms, 0, m->norm_codes[row], &length), 0);
}

static void add_row(const struct dt_model_matrix *m, int64_t row, float *restrict sum)
{
    if (m->values) {
        const char *values = m->values + sizeof(float) * (size_t)(row * m->columns);
        for (int64_t i = 0; i < m->columns; i++)
            sum[i] += dt_model_float(values, (size_t)i);
        return;
    }
    const unsigned char *codes = m->codes + row * m->quantizer.parts;
    float norm = norm_of(m, row);
    for (int32_t part = 0, length; part < m->quantizer.parts; part++, sum += length) {
        const char *values = centroid(&m->quantizer, part, codes[part], &length);
        for (int32_t i = 0; i < length; i++)
            sum[i] += norm * dt_model_float(values, (size_t)i);
    }
}

static float dot_row(const struct dt_model_matrix *m, int64_t row, const float *x)
{
    float sum = 0;
    if (m->values) {
        const char *values = m->values + sizeof(float) * (size_t)(row * m->columns);
        for (int64_t i = 0; i < m->columns; i++)
            sum += dt_model_float(values, (size_t)i) * x[i];
        return sum;
    }
    const unsigned char *codes = m->codes + row * m->quantizer.parts;
    for (int32_t part = 0, length; part < m->quantizer.parts; part++, x += length) {
        const char *values = centroid(&m->quantizer, part, codes[part], &length);
        for (int32_t i = 0; i < length; i++)
            sum += x[i] * dt_model_float(values, (size_t)i);
    }
    return sum * norm_of(m, row);
}

/* The mean of the rows of the text's features. */
static void add_text(const struct dt_classifier *c, struct dt_classifier_scratch *s,
                     const char *text, size_t size)
{
    dt_model_features(c, text, size, s);
    memset(s->hidden, 0, (size_t)c->dim * sizeof *s->hidden);
    for (size_t i = 0; i < s->row_count; i++)
        add_row(&c->input, s->rows[i], s->hidden);
    float scale = (float)(1.0 / (double)s->row_count);
    for (int32_t i = 0; i < c->dim; i++)
        s->hidden[i] *= scale;
}

/* --- labels ----------------------------------------------------------------------------------- */

/* With the bits of every machine, and of glibc: rounded once, from double precision. */
static float exp_of(float x)
{
    return (float)dt_math_exp((double)x);
}

static float log_of(float probability)
{
    return (float)dt_math_log((double)probability + 1e-5);
}

static void score_softmax(const struct dt_classifier *c, float *scores)
{
    float most = scores[0], sum = 0;
    for (int32_t i = 1; i < c->label_count; i++)
        most = scores[i] > most ? scores[i] : most;
    for (int32_t i = 0; i < c->label_count; i++) {
        scores[i] = (float)dt_math_exp((double)(scores[i] - most));
        sum += scores[i];
    }
    for (int32_t i = 0; i < c->label_count; i++)
        scores[i] = exp_of(log_of(scores[i] / sum));
}

/* fastText reads the sigmoid from a table of 513 values between -8 and 8. */
static float sigmoid(float x)
{
    if (!(x >= -8))
        return 0;
    if (x > 8)
        return 1;
    float place = (float)((int64_t)((x + 8) * 512 / 8 / 2) * 16) / 512 - 8;
    return (float)(1.0 / (1.0 + (double)exp_of(-place)));
}

static void score_each(const struct dt_classifier *c, float *scores)
{
    for (int32_t i = 0; i < c->label_count; i++)
        scores[i] = exp_of(log_of(sigmoid(scores[i])));
}

/* From the root down: scores of nodes are logarithms of probabilities. */
static void score_tree(const struct dt_classifier *c, const float *hidden, float *scores)
{
    int32_t labels = c->label_count;
    scores[2 * labels - 2] = 0;
    for (int32_t i = 2 * labels - 2; i >= labels; i--) {
        float right = dot_row(&c->output, i - labels, hidden);
        right = (float)(1.0 / (double)(1 + exp_of(-right)));
        scores[c->nodes[i].left] = scores[i] + log_of((float)(1.0 - (double)right));
        scores[c->nodes[i].right] = scores[i] + log_of(right);
    }
    for (int32_t i = 0; i < labels; i++)
        scores[i] = exp_of(scores[i]);
}

static void make_room(const struct dt_classifier *c, struct dt_classifier_scratch *s)
{
    size_t labels = (size_t)c->label_count, size = (size_t)c->dim + 2 * labels;
    if (size > s->size) {
        s->hidden = dt_realloc(s->hidden, size, sizeof *s->hidden);
        s->size = size;
    }
    s->scores = s->hidden + c->dim;
}

const float *dt_classifier_score(const struct dt_classifier *c, const char *text, size_t size,
                                 struct dt_classifier_scratch *s)
{
    make_room(c, s);
    add_text(c, s, text, size);
    if (s->row_count == 0)
        return NULL;
    if (c->loss == DT_MODEL_FILE_LOSS_TREE) {
        score_tree(c, s->hidden, s->scores);
    } else {
        for (int32_t i = 0; i < c->label_count; i++)
            s->scores[i] = dot_row(&c->output, i, s->hidden);
        (c->loss == DT_MODEL_FILE_LOSS_SOFTMAX ? score_softmax : score_each)(c, s->scores);
    }
    for (int32_t i = 0; i < c->label_count; i++)
        if (!isfinite(s->scores[i]))
            return NULL;
    return s->scores;
}

size_t dt_classifier_best(const struct dt_classifier *c, const float *scores)
{
    size_t best = 0;
    for (size_t i = 1; i < dt_classifier_labels(c); i++)
        if (scores[i] >= scores[best]) /* of equal ones the last, as fastText chooses */
            best = i;
    return best;
}

void dt_classifier_scratch_release(struct dt_classifier_scratch *s)
{
    free(s->hidden);
    free(s->hashes);
    free(s->rows);
    *s = (struct dt_classifier_scratch){0};
}
