/* SPDX-License-Identifier: MIT */
#include "language/classifier-trainer.h"

#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "language/classifier-internal.h"
#include "math/math.h"
#include "math/rng.h"

enum purpose { PURPOSE_INPUT = 1, PURPOSE_ORDER };

/* A word of the texts, or a label. */
struct word {
    size_t at; /* in the buffer that the dictionary is of */
    uint32_t size, hash;
    int64_t count;
    size_t order; /* of its first occurrence */
};

/* Words by their hashes; the table holds places in words. */
struct dictionary {
    struct dt_model_table table;
    struct word *words;
    size_t count, capacity, room;
};

struct text {
    size_t at, size, label;
};

struct dt_classifier_trainer {
    struct dt_classifier_trainer_options options;
    struct dt_buffer texts, names; /* one after the other */
    struct text *documents;
    size_t count, capacity;
    struct dictionary words, labels;
    struct dt_classifier *model; /* its matrices are the two below */
    float *input, *output, *gradient;
    size_t *label_places; /* of the labels in the order of their first occurrence */
    struct dt_classifier_scratch scratch;
    int32_t epoch;
    double loss;
};

struct dt_classifier_trainer *
dt_classifier_trainer_new(const struct dt_classifier_trainer_options *options)
{
    struct dt_classifier_trainer *t = dt_alloc(1, sizeof *t);
    t->options = *options;
    return t;
}

void dt_classifier_trainer_free(struct dt_classifier_trainer *t)
{
    if (t == NULL)
        return;
    dt_buffer_release(&t->texts);
    dt_buffer_release(&t->names);
    free(t->documents);
    free(t->words.words);
    free(t->words.table.slots);
    free(t->labels.words);
    free(t->labels.table.slots);
    dt_classifier_free(t->model);
    free(t->input);
    free(t->output);
    free(t->gradient);
    free(t->label_places);
    dt_classifier_scratch_release(&t->scratch);
    free(t);
}

/* --- dictionaries ----------------------------------------------------------------------------- */

static void insert(struct dictionary *d, size_t word)
{
    uint32_t i = dt_model_table_start(&d->table, d->words[word].hash);
    while (d->table.slots[i].value >= 0)
        i = (i + 1) & d->table.mask;
    d->table.slots[i] = (struct dt_model_slot){d->words[word].hash, (int32_t)word};
}

static void make_room(struct dictionary *d)
{
    if (d->count < d->room)
        return;
    d->room = d->room ? 2 * d->room : 1024;
    free(d->table.slots);
    dt_model_table_make(&d->table, d->room);
    for (size_t i = 0; i < d->count; i++)
        insert(d, i);
}

/* Counts the word at this place of base, and returns its index. */
static size_t count_word(struct dictionary *d, const char *base, size_t at, size_t size)
{
    make_room(d);
    uint32_t hash = dt_model_hash(base + at, size);
    for (uint32_t i = dt_model_table_start(&d->table, hash); d->table.slots[i].value >= 0;
         i = (i + 1) & d->table.mask) {
        struct word *w = &d->words[d->table.slots[i].value];
        if (w->hash == hash && w->size == size && memcmp(base + w->at, base + at, size) == 0) {
            w->count++;
            return w->order;
        }
    }
    DT_GROW(d->words, d->count, d->capacity);
    d->words[d->count] = (struct word){at, (uint32_t)size, hash, 1, d->count};
    insert(d, d->count);
    return d->count++;
}

/* The most frequent first, of equal ones the earlier. */
static int compare_words(const void *a, const void *b)
{
    const struct word *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return x->order < y->order ? -1 : x->order > y->order;
}

int dt_classifier_trainer_add(struct dt_classifier_trainer *t, const char *label, const char *text,
                              size_t size, struct dt_error *err)
{
    const char *given = label;
    label = dt_model_without_prefix(label);
    size_t at = 0, length = strlen(label), name = t->names.size;
    if (length == 0 || dt_model_next_word(label, length, &at) != length)
        return dt_fail(err, DT_EINVALID, "label '%s': a word without blanks expected", given);
    dt_buffer_append(&t->names, label, length);
    size_t place = count_word(&t->labels, t->names.data, name, length);
    DT_GROW(t->documents, t->count, t->capacity);
    t->documents[t->count++] = (struct text){t->texts.size, size, place};
    dt_buffer_append(&t->texts, text, size);
    return 0;
}

static void count_text(struct dt_classifier_trainer *t, const struct text *doc)
{
    const char *text = t->texts.data + doc->at;
    size_t prefix = strlen(DT_MODEL_FILE_LABEL);
    for (size_t at = 0, size; (size = dt_model_next_word(text, doc->size, &at)) > 0;) {
        size_t from = at - size;
        if (size < prefix || memcmp(text + from, DT_MODEL_FILE_LABEL, prefix) != 0)
            count_word(&t->words, t->texts.data, doc->at + from, size);
    }
}

static void add_entries(struct dt_classifier *c, const struct dictionary *d, size_t count,
                        const char *base, const char *prefix, struct dt_buffer *names)
{
    for (size_t i = 0; i < count; i++) {
        const struct word *w = &d->words[i];
        struct dt_model_entry *e = &c->entries[c->entry_count++];
        *e = (struct dt_model_entry){.count = w->count, .is_label = *prefix != '\0'};
        dt_buffer_add_string(names, prefix);
        dt_buffer_append(names, base + w->at, w->size);
        dt_buffer_append(names, "", 1);
    }
}

/* The names of the entries are one after the other in file, each ended by 0. */
static void point_to_names(struct dt_classifier *c)
{
    const char *name = c->file;
    for (int32_t i = 0; i < c->entry_count; i++) {
        size_t size = strlen(name);
        c->entries[i].text = name;
        c->entries[i].hash = dt_model_hash(name, size);
        name += size + 1;
    }
}

/* Words that occur often enough, then labels. */
static void make_entries(struct dt_classifier_trainer *t, size_t words)
{
    struct dt_classifier *c = t->model;
    struct dt_buffer names = DT_BUFFER_EMPTY;
    c->entries = dt_alloc(words + t->labels.count, sizeof *c->entries);
    add_entries(c, &t->words, words, t->texts.data, "", &names);
    add_entries(c, &t->labels, t->labels.count, t->names.data, DT_MODEL_FILE_LABEL, &names);
    c->word_count = (int32_t)words;
    c->label_count = (int32_t)t->labels.count;
    c->file = names.data;
    c->file_size = names.size;
    point_to_names(c);
    dt_model_index_entries(c);
}

static int make_dictionary(struct dt_classifier_trainer *t, struct dt_error *err)
{
    size_t end = t->texts.size, words = 0;
    if (t->labels.count < 2)
        return dt_fail(err, DT_EINVALID, "%zu documents with %zu label%s; two labels needed",
                       t->count, t->labels.count, dt_plural(t->labels.count));
    dt_buffer_add_string(&t->texts, DT_MODEL_FILE_LINE_END);
    for (size_t i = 0; i < t->count; i++) {
        count_text(t, &t->documents[i]);
        count_word(&t->words, t->texts.data, end, strlen(DT_MODEL_FILE_LINE_END));
    }
    qsort(t->words.words, t->words.count, sizeof *t->words.words, compare_words);
    qsort(t->labels.words, t->labels.count, sizeof *t->labels.words, compare_words);
    while (words < t->words.count && t->words.words[words].count >= t->options.min_count)
        words++;
    if (words > INT32_MAX / 2 || t->labels.count > INT32_MAX / 2)
        return dt_fail(err, DT_EINVALID, "%zu words and %zu labels are too many", words,
                       t->labels.count);
    make_entries(t, words);
    t->label_places = dt_alloc(t->labels.count, sizeof *t->label_places);
    for (size_t i = 0; i < t->labels.count; i++)
        t->label_places[t->labels.words[i].order] = i;
    return 0;
}

/* --- learning --------------------------------------------------------------------------------- */

/* Vectors of n numbers. */
#define LANES 16

static DT_WIDEST void add_scaled(float *restrict x, const float *restrict y, float scale, size_t n)
{
    size_t whole = n / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            x[i + k] += scale * y[i + k];
    for (size_t i = whole; i < n; i++)
        x[i] += scale * y[i];
}

static DT_WIDEST float multiply(const float *restrict x, const float *restrict y, size_t n)
{
    float sums[LANES] = {0};
    size_t whole = n / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            sums[k] += x[i + k] * y[i + k];
    for (size_t i = whole; i < n; i++)
        sums[i - whole] += x[i] * y[i];
    for (size_t k = 1; k < LANES; k++)
        sums[0] += sums[k];
    return sums[0];
}

/* Numbers between -1/dim and 1/dim. */
static void draw_input(const struct dt_classifier_trainer *t, size_t size)
{
    uint64_t key = dt_random_key(t->options.seed, PURPOSE_INPUT, 0);
    float scale = 1 / (float)t->options.dim;
    struct dt_random bits = {{0}};
    for (size_t i = 0; i < size; i++) {
        if (i % 4 == 0)
            bits = dt_random(key, 0, i / 4);
        t->input[i] = scale * (2 * dt_rng_uniform_float(bits.word[i % 4]) - 1);
    }
}

static void make_matrices(struct dt_classifier_trainer *t)
{
    struct dt_classifier *c = t->model;
    size_t dim = (size_t)c->dim, rows = (size_t)c->word_count + (size_t)c->bucket;
    t->input = dt_alloc(rows * dim, sizeof *t->input);
    t->output = dt_alloc((size_t)c->label_count * dim, sizeof *t->output);
    t->gradient = dt_alloc(dim, sizeof *t->gradient);
    t->scratch.hidden = dt_alloc(dim + (size_t)c->label_count, sizeof *t->scratch.hidden);
    t->scratch.scores = t->scratch.hidden + dim;
    draw_input(t, rows * dim);
    c->input = (struct dt_model_matrix){
        .rows = (int64_t)rows, .columns = c->dim, .values = (const char *)t->input};
    c->output = (struct dt_model_matrix){
        .rows = c->label_count, .columns = c->dim, .values = (const char *)t->output};
}

int dt_classifier_trainer_begin(struct dt_classifier_trainer *t, struct dt_error *err)
{
    const struct dt_classifier_trainer_options *o = &t->options;
    bool ngrams = o->word_ngrams > 1 || o->longest > 0;
    t->model = dt_alloc(1, sizeof *t->model);
    *t->model = (struct dt_classifier){.dim = o->dim,
                                       .word_ngrams = o->word_ngrams,
                                       .bucket = ngrams ? o->buckets : 0,
                                       .shortest = o->shortest,
                                       .longest = o->longest,
                                       .loss = DT_MODEL_FILE_LOSS_SOFTMAX};
    DT_TRY(make_dictionary(t, err));
    if (t->model->word_count == 0 && o->longest == 0)
        return dt_fail(err, DT_EINVALID, "no word occurs %lld times", (long long)o->min_count);
    make_matrices(t);
    return 0;
}

/* Replaces scores by their probabilities, and returns the loss of the label. */
static double make_probabilities(float *scores, size_t labels, size_t label)
{
    float most = scores[0], sum = 0;
    for (size_t i = 1; i < labels; i++)
        most = scores[i] > most ? scores[i] : most;
    for (size_t i = 0; i < labels; i++) {
        scores[i] = (float)dt_math_exp((double)(scores[i] - most));
        sum += scores[i];
    }
    for (size_t i = 0; i < labels; i++)
        scores[i] /= sum;
    return -dt_math_log((double)scores[label] + 1e-9);
}

/* A step of gradient descent for a text; its loss, or 0 without features. */
static double learn(struct dt_classifier_trainer *t, const struct text *doc, float rate)
{
    struct dt_classifier_scratch *s = &t->scratch;
    size_t n = (size_t)t->model->dim, labels = (size_t)t->model->label_count;
    size_t label = t->label_places[doc->label];
    dt_model_features(t->model, t->texts.data + doc->at, doc->size, s);
    if (s->row_count == 0)
        return 0;
    float share = 1 / (float)s->row_count;
    memset(s->hidden, 0, n * sizeof *s->hidden);
    memset(t->gradient, 0, n * sizeof *t->gradient);
    for (size_t i = 0; i < s->row_count; i++)
        add_scaled(s->hidden, t->input + s->rows[i] * n, share, n);
    for (size_t i = 0; i < labels; i++)
        s->scores[i] = multiply(t->output + i * n, s->hidden, n);
    double loss = make_probabilities(s->scores, labels, label);
    for (size_t i = 0; i < labels; i++) {
        float step = rate * ((i == label ? 1 : 0) - s->scores[i]);
        add_scaled(t->gradient, t->output + i * n, step, n);
        add_scaled(t->output + i * n, s->hidden, step, n);
    }
    for (size_t i = 0; i < s->row_count; i++)
        add_scaled(t->input + s->rows[i] * n, t->gradient, share, n);
    return loss;
}

int dt_classifier_trainer_step(struct dt_classifier_trainer *t, struct dt_error *err)
{
    const struct dt_classifier_trainer_options *o = &t->options;
    uint64_t key = dt_random_key(o->seed, PURPOSE_ORDER, (uint64_t)t->epoch);
    double steps = (double)o->epochs * (double)t->count, loss = 0;
    for (size_t i = 0; i < t->count; i++) {
        double done = (double)t->epoch * (double)t->count + (double)i;
        size_t place = (size_t)dt_rng_permute(key, t->count, i);
        loss += learn(t, &t->documents[place], (float)(o->rate * (1 - done / steps)));
        if (!isfinite(loss))
            return dt_fail(err, DT_EINVALID,
                           "the loss is not finite in epoch %d; a lower --rate than %g may help",
                           t->epoch + 1, o->rate);
    }
    t->loss = loss / (double)t->count;
    return ++t->epoch < o->epochs;
}

struct dt_classifier_trainer_state
dt_classifier_trainer_state(const struct dt_classifier_trainer *t)
{
    const struct dt_classifier *c = t->model;
    size_t rows = (size_t)c->input.rows + (size_t)c->output.rows;
    return (struct dt_classifier_trainer_state){.documents = t->count,
                                                .labels = (size_t)c->label_count,
                                                .words = (size_t)c->word_count,
                                                .matrix_bytes =
                                                    rows * (size_t)c->dim * sizeof(float),
                                                .epoch = t->epoch,
                                                .loss = t->loss};
}

/* --- writing ---------------------------------------------------------------------------------- */

static void add_number(struct dt_buffer *b, int64_t value, size_t bytes)
{
    dt_buffer_append(b, (const char *)&value, bytes);
}

static void add_arguments(const struct dt_classifier_trainer *t, struct dt_buffer *b)
{
    const struct dt_classifier_trainer_options *o = &t->options;
    const struct dt_model_arguments a = {.dim = o->dim,
                                         .window = 5,
                                         .epochs = o->epochs,
                                         .least = (int32_t)o->min_count,
                                         .negative = 5,
                                         .word_ngrams = o->word_ngrams,
                                         .loss = DT_MODEL_FILE_LOSS_SOFTMAX,
                                         .model = DT_MODEL_FILE_SUPERVISED,
                                         .bucket = t->model->bucket,
                                         .shortest = o->shortest,
                                         .longest = o->longest,
                                         .rate = 100};
    const double threshold = 1e-4;
    add_number(b, DT_MODEL_FILE_MAGIC, 4);
    add_number(b, DT_MODEL_FILE_VERSION, 4);
    dt_buffer_append(b, (const char *)&a, sizeof a);
    dt_buffer_append(b, (const char *)&threshold, sizeof threshold);
}

static void add_dictionary(const struct dt_classifier *c, struct dt_buffer *b)
{
    int64_t tokens = 0;
    for (int32_t i = 0; i < c->entry_count; i++)
        tokens += c->entries[i].count;
    add_number(b, c->entry_count, 4);
    add_number(b, c->word_count, 4);
    add_number(b, c->label_count, 4);
    add_number(b, tokens, 8);
    add_number(b, -1, 8); /* not pruned */
    for (int32_t i = 0; i < c->entry_count; i++) {
        const struct dt_model_entry *e = &c->entries[i];
        dt_buffer_append(b, e->text, strlen(e->text) + 1);
        add_number(b, e->count, 8);
        add_number(b, e->is_label, 1);
    }
}

/* b is overwritten by what is before the numbers. */
static int write_matrix(const struct dt_model_matrix *m, struct dt_buffer *b, struct dt_output *out,
                        struct dt_error *err)
{
    add_number(b, 0, 1); /* not quantized */
    add_number(b, m->rows, 8);
    add_number(b, m->columns, 8);
    DT_TRY(dt_output_write(out, b->data, b->size, err));
    dt_buffer_clear(b);
    return dt_output_write(out, m->values, (size_t)(m->rows * m->columns) * sizeof(float), err);
}

int dt_classifier_trainer_write(const struct dt_classifier_trainer *t, struct dt_output *out,
                                struct dt_error *err)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    add_arguments(t, &b);
    add_dictionary(t->model, &b);
    int rc = write_matrix(&t->model->input, &b, out, err);
    if (rc == 0)
        rc = write_matrix(&t->model->output, &b, out, err);
    dt_buffer_release(&b);
    return rc;
}
