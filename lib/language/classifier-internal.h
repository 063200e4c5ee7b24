/* SPDX-License-Identifier: MIT */
/* A model of fastText in memory: read by model-file.c, applied by classifier.c, trained by
 * classifier-trainer.c. */
#ifndef DT_LANGUAGE_CLASSIFIER_INTERNAL_H
#define DT_LANGUAGE_CLASSIFIER_INTERNAL_H

#include <stdbool.h>
#include <string.h>

#include "language/classifier.h"

#define DT_MODEL_FILE_MAGIC      793712314
#define DT_MODEL_FILE_VERSION    12
#define DT_MODEL_FILE_SUPERVISED 3
#define DT_MODEL_FILE_LABEL      "__label__"
#define DT_MODEL_FILE_LINE_END   "</s>" /* the word at the end of each line */
#define DT_MODEL_FILE_CODES      256    /* centroids of each part of a quantized row */

enum dt_model_file_loss {
    DT_MODEL_FILE_LOSS_TREE = 1, /* hierarchical softmax */
    DT_MODEL_FILE_LOSS_SAMPLES,  /* negative sampling: a sigmoid for each label */
    DT_MODEL_FILE_LOSS_SOFTMAX,
    DT_MODEL_FILE_LOSS_EACH /* one against all: likewise */
};

/* As they stand in a file, before a threshold of 8 bytes. */
struct dt_model_arguments {
    int32_t dim, window, epochs, least, negative, word_ngrams, loss, model, bucket, shortest,
        longest, rate;
};

/* Rows of a quantized matrix: `parts` codes each, that select centroids of `width` numbers
 * (the last one: `last`). Floats in files have any alignment. */
struct dt_model_quantizer {
    int32_t parts, width, last;
    const char *centroids;
};

struct dt_model_matrix {
    int64_t rows, columns;
    const char *values; /* floats; NULL if quantized */
    struct dt_model_quantizer quantizer, norms;
    const unsigned char *codes, *norm_codes; /* norm_codes NULL: norms are 1 */
};

struct dt_model_entry {
    const char *text; /* in the file, ended by 0 */
    int64_t count;
    uint32_t hash;
    bool is_label;
};

/* Open addressing, a power of two slots: a hash of fastText and what it belongs to. */
struct dt_model_slot {
    uint32_t key;
    int32_t value; /* -1: free */
};
struct dt_model_table {
    struct dt_model_slot *slots;
    uint32_t mask;
};

/* A node of the tree of hierarchical softmax; leaves are labels. */
struct dt_model_node {
    int32_t left, right; /* -1 of leaves */
};

struct dt_classifier {
    char *file;
    size_t file_size;
    uint64_t hash;
    int32_t dim, word_ngrams, bucket, shortest, longest; /* longest 0: no character n-grams */
    enum dt_model_file_loss loss;
    int32_t entry_count, word_count, label_count;
    struct dt_model_entry *entries; /* words, then labels */
    struct dt_model_table words;    /* from hashes of entries to entries */
    bool pruned;
    struct dt_model_table kept; /* if pruned: from buckets to rows after the words */
    struct dt_model_matrix input, output;
    struct dt_model_node *nodes; /* of hierarchical softmax: 2 * labels - 1, the root last */
};

/* FNV-1a of 32 bits as fastText computes it, from signed bytes. */
#define DT_MODEL_HASH_START UINT32_C(2166136261)
static inline uint32_t dt_model_hash_byte(uint32_t hash, char byte)
{
    int32_t extended = (signed char)byte;
    return (hash ^ (uint32_t)extended) * UINT32_C(16777619);
}

static inline uint32_t dt_model_hash(const char *word, size_t size)
{
    uint32_t hash = DT_MODEL_HASH_START;
    for (size_t i = 0; i < size; i++)
        hash = dt_model_hash_byte(hash, word[i]);
    return hash;
}

/* A label as users name it. */
static inline const char *dt_model_without_prefix(const char *label)
{
    size_t n = strlen(DT_MODEL_FILE_LABEL);
    return strncmp(label, DT_MODEL_FILE_LABEL, n) == 0 ? label + n : label;
}

static inline uint32_t dt_model_table_start(const struct dt_model_table *t, uint32_t key)
{
    return (key ^ key >> 15) & t->mask;
}

static inline float dt_model_float(const char *values, size_t i)
{
    float x;
    memcpy(&x, values + i * sizeof x, sizeof x);
    return x;
}

/* Slots for count values, all free. */
void dt_model_table_make(struct dt_model_table *t, size_t count);
/* Makes the table of c->entries. */
void dt_model_index_entries(struct dt_classifier *c);

/* The length of the next word, which ends at *at; 0 at the end of the line. */
size_t dt_model_next_word(const char *text, size_t size, size_t *at);
/* Sets s->rows, the rows of the input matrix that a text selects, in fastText's order. */
void dt_model_features(const struct dt_classifier *c, const char *text, size_t size,
                       struct dt_classifier_scratch *s);

int dt_model_file_parse(struct dt_classifier *c, const char *path,
                        struct dt_error *err) DT_MUST_CHECK;

#endif
