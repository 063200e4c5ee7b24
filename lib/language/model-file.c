/* SPDX-License-Identifier: MIT */
/*
 * Reads model files of fastText, version 12 and 11: arguments, dictionary, input matrix, output
 * matrix, little-endian and without padding. Every count is checked against the bytes that are left
 * before memory is allocated for it.
 */
#include "language/classifier-internal.h"

#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"

/* What is left of the file. */
struct input {
    const char *at, *end, *start, *path;
    struct dt_error *err;
};

static int damaged(const struct input *in, const char *what)
{
    return dt_fail(in->err, DT_EFORMAT,
                   "%s: not a model of fastText, or damaged: %s at byte %llu of %llu", in->path,
                   what, (unsigned long long)(in->at - in->start),
                   (unsigned long long)(in->end - in->start));
}

static int take(struct input *in, void *value, size_t size, const char *what)
{
    if ((size_t)(in->end - in->at) < size)
        return damaged(in, what);
    memcpy(value, in->at, size);
    in->at += size;
    return 0;
}

static int take_flag(struct input *in, bool *flag, const char *what)
{
    char byte = 0;
    DT_TRY(take(in, &byte, 1, what));
    *flag = byte != 0;
    return byte == 0 || byte == 1 ? 0 : damaged(in, what);
}

/* count * size bytes that stay in the file; both are at least 0. */
static int take_array(struct input *in, const char **array, int64_t count, int64_t size,
                      const char *what)
{
    int64_t left = in->end - in->at;
    if (count < 0 || size < 0 || (size > 0 && count > left / size))
        return damaged(in, what);
    *array = in->at;
    in->at += count * size;
    return 0;
}

static int take_floats(struct input *in, const char **array, int64_t rows, int64_t columns,
                       const char *what)
{
    if (columns < 0 || columns > INT32_MAX)
        return damaged(in, what);
    DT_TRY(take_array(in, array, rows, columns * (int64_t)sizeof(float), what));
    for (size_t i = 0; i < (size_t)(rows * columns); i++)
        if (!isfinite(dt_model_float(*array, i)))
            return damaged(in, "a number that is not finite");
    return 0;
}

/* --- arguments -------------------------------------------------------------------------------- */

static int take_arguments(struct input *in, struct dt_classifier *c)
{
    int32_t magic = 0, version = 0;
    struct dt_model_arguments a = {0};
    double threshold;
    DT_TRY(take(in, &magic, sizeof magic, "no magic number"));
    if (magic != DT_MODEL_FILE_MAGIC)
        return damaged(in, "another magic number");
    DT_TRY(take(in, &version, sizeof version, "no version"));
    if (version > DT_MODEL_FILE_VERSION || version < DT_MODEL_FILE_VERSION - 1)
        return damaged(in, "an unknown version");
    DT_TRY(take(in, &a, sizeof a, "the arguments"));
    DT_TRY(take(in, &threshold, sizeof threshold, "the arguments"));
    if (a.model != DT_MODEL_FILE_SUPERVISED)
        return dt_fail(in->err, DT_EFORMAT,
                       "%s: word vectors of fastText; a classifier expected (fasttext supervised)",
                       in->path);
    if (a.dim < 1 || a.loss < DT_MODEL_FILE_LOSS_TREE || a.loss > DT_MODEL_FILE_LOSS_EACH)
        return damaged(in, "impossible arguments");
    c->dim = a.dim;
    c->loss = (enum dt_model_file_loss)a.loss;
    c->word_ngrams = a.word_ngrams;
    c->bucket = a.bucket;
    c->shortest = a.shortest;
    c->longest = version == DT_MODEL_FILE_VERSION ? a.longest : 0; /* version 11 did not use them */
    if (c->bucket <= 0 && (c->longest > 0 || c->word_ngrams > 1))
        return damaged(in, "n-grams without buckets");
    return 0;
}

/* --- dictionary ------------------------------------------------------------------------------- */

void dt_model_table_make(struct dt_model_table *t, size_t count)
{
    size_t slots = 16;
    while (slots < 2 * count)
        slots *= 2;
    t->mask = (uint32_t)(slots - 1);
    t->slots = dt_alloc(slots, sizeof *t->slots);
    for (size_t i = 0; i < slots; i++)
        t->slots[i].value = -1;
}

/* Of equal words the last one counts, as in fastText. */
static void add_entry(struct dt_classifier *c, int32_t entry)
{
    const struct dt_model_entry *e = &c->entries[entry];
    uint32_t i = dt_model_table_start(&c->words, e->hash);
    for (; c->words.slots[i].value >= 0; i = (i + 1) & c->words.mask)
        if (c->words.slots[i].key == e->hash &&
            strcmp(c->entries[c->words.slots[i].value].text, e->text) == 0)
            break;
    c->words.slots[i] = (struct dt_model_slot){e->hash, entry};
}

void dt_model_index_entries(struct dt_classifier *c)
{
    dt_model_table_make(&c->words, (size_t)c->entry_count);
    for (int32_t i = 0; i < c->entry_count; i++)
        add_entry(c, i);
}

static int take_entry(struct input *in, struct dt_model_entry *e)
{
    const char *zero = memchr(in->at, '\0', (size_t)(in->end - in->at));
    signed char kind = 0;
    if (zero == NULL)
        return damaged(in, "a word of the dictionary");
    e->text = in->at;
    e->hash = dt_model_hash(e->text, (size_t)(zero - in->at));
    in->at = zero + 1;
    DT_TRY(take(in, &e->count, sizeof e->count, "a count of the dictionary"));
    DT_TRY(take(in, &kind, 1, "an entry of the dictionary"));
    e->is_label = kind == 1;
    return e->count < 0 || (kind != 0 && kind != 1) ? damaged(in, "an entry of the dictionary") : 0;
}

#define ENTRY_BYTES 10 /* at least: an empty word, its count, its kind */

static int take_entries(struct input *in, struct dt_classifier *c)
{
    if (c->word_count < 0 || c->label_count < 1 || c->label_count > INT32_MAX / 2 ||
        c->entry_count != (int64_t)c->word_count + c->label_count ||
        c->entry_count > (in->end - in->at) / ENTRY_BYTES)
        return damaged(in, "the size of the dictionary");
    c->entries = dt_alloc((size_t)c->entry_count, sizeof *c->entries);
    for (int32_t i = 0; i < c->entry_count; i++) {
        DT_TRY(take_entry(in, &c->entries[i]));
        if (c->entries[i].is_label != (i >= c->word_count))
            return damaged(in, "a label among words, or a word among labels");
    }
    dt_model_index_entries(c);
    return 0;
}

/* The buckets that pruning left, each with its row after those of words. */
static int take_kept(struct input *in, struct dt_classifier *c, int64_t count)
{
    const char *pairs = NULL;
    DT_TRY(take_array(in, &pairs, count, 2 * sizeof(int32_t), "the kept n-grams"));
    if (count > INT32_MAX)
        return damaged(in, "the kept n-grams");
    dt_model_table_make(&c->kept, (size_t)count);
    for (int64_t k = 0; k < count; k++) {
        int32_t pair[2];
        memcpy(pair, pairs + k * (int64_t)sizeof pair, sizeof pair);
        if (pair[0] < 0 || pair[1] < 0 || pair[1] >= count)
            return damaged(in, "a kept n-gram");
        uint32_t i = dt_model_table_start(&c->kept, (uint32_t)pair[0]);
        while (c->kept.slots[i].value >= 0 && c->kept.slots[i].key != (uint32_t)pair[0])
            i = (i + 1) & c->kept.mask;
        c->kept.slots[i] = (struct dt_model_slot){(uint32_t)pair[0], pair[1]};
    }
    return 0;
}

static int take_dictionary(struct input *in, struct dt_classifier *c, int64_t *ngram_rows)
{
    int64_t tokens, kept = 0;
    DT_TRY(take(in, &c->entry_count, sizeof c->entry_count, "the dictionary"));
    DT_TRY(take(in, &c->word_count, sizeof c->word_count, "the dictionary"));
    DT_TRY(take(in, &c->label_count, sizeof c->label_count, "the dictionary"));
    DT_TRY(take(in, &tokens, sizeof tokens, "the dictionary"));
    DT_TRY(take(in, &kept, sizeof kept, "the dictionary"));
    DT_TRY(take_entries(in, c));
    c->pruned = kept >= 0;
    *ngram_rows = c->pruned ? kept : c->bucket > 0 ? c->bucket : 0;
    return c->pruned ? take_kept(in, c, kept) : 0;
}

/* --- matrices --------------------------------------------------------------------------------- */

static int take_quantizer(struct input *in, struct dt_model_quantizer *q, int64_t columns)
{
    int32_t dim = 0;
    DT_TRY(take(in, &dim, sizeof dim, "a quantizer"));
    DT_TRY(take(in, &q->parts, sizeof q->parts, "a quantizer"));
    DT_TRY(take(in, &q->width, sizeof q->width, "a quantizer"));
    DT_TRY(take(in, &q->last, sizeof q->last, "a quantizer"));
    if (dim != columns || q->parts < 1 || q->width < 1 || q->last < 1 || q->last > q->width ||
        (int64_t)(q->parts - 1) * q->width + q->last != columns)
        return damaged(in, "impossible sizes of a quantizer");
    return take_floats(in, &q->centroids, DT_MODEL_FILE_CODES, columns, "the centroids");
}

static int take_codes(struct input *in, struct dt_model_matrix *m, bool has_norms)
{
    int32_t code_bytes = 0;
    const char *codes = NULL;
    DT_TRY(take(in, &code_bytes, sizeof code_bytes, "a quantized matrix"));
    DT_TRY(take_array(in, &codes, code_bytes, 1, "the codes of a quantized matrix"));
    m->codes = (const unsigned char *)codes;
    DT_TRY(take_quantizer(in, &m->quantizer, m->columns));
    if (code_bytes != m->rows * m->quantizer.parts)
        return damaged(in, "the number of codes");
    if (!has_norms)
        return 0;
    DT_TRY(take_array(in, &codes, m->rows, 1, "the norms of a quantized matrix"));
    m->norm_codes = (const unsigned char *)codes;
    return take_quantizer(in, &m->norms, 1);
}

static int take_matrix(struct input *in, struct dt_model_matrix *m, bool quantized, int64_t rows,
                       int64_t columns)
{
    bool has_norms = false;
    if (quantized)
        DT_TRY(take_flag(in, &has_norms, "a quantized matrix"));
    DT_TRY(take(in, &m->rows, sizeof m->rows, "the size of a matrix"));
    DT_TRY(take(in, &m->columns, sizeof m->columns, "the size of a matrix"));
    if (m->rows < rows || m->rows > in->end - in->at || m->columns != columns)
        return damaged(in, "the size of a matrix");
    return quantized ? take_codes(in, m, has_norms)
                     : take_floats(in, &m->values, m->rows, m->columns, "a matrix");
}

/* --- the tree of hierarchical softmax --------------------------------------------------------- */

/* Huffman's tree of the labels, which fastText sorts by falling count. A child comes before its
 * parent. */
static void make_tree(struct dt_classifier *c)
{
    int32_t labels = c->label_count, count = 2 * labels - 1, leaf = labels - 1, node = labels;
    uint64_t *weights = dt_alloc((size_t)count, sizeof *weights);
    c->nodes = dt_alloc((size_t)count, sizeof *c->nodes);
    for (int32_t i = 0; i < labels; i++) {
        c->nodes[i] = (struct dt_model_node){-1, -1};
        weights[i] = (uint64_t)c->entries[c->word_count + i].count;
    }
    for (int32_t i = labels; i < count; i++) {
        int32_t least[2];
        for (int k = 0; k < 2; k++)
            least[k] = leaf >= 0 && (node == i || weights[leaf] < weights[node]) ? leaf-- : node++;
        c->nodes[i] = (struct dt_model_node){least[0], least[1]};
        weights[i] = weights[least[0]] + weights[least[1]];
    }
    free(weights);
}

int dt_model_file_parse(struct dt_classifier *c, const char *path, struct dt_error *err)
{
    struct input in = {c->file, c->file + c->file_size, c->file, path, err};
    int64_t ngram_rows = 0;
    bool quantized = false, output_quantized = false;
    DT_TRY(take_arguments(&in, c));
    DT_TRY(take_dictionary(&in, c, &ngram_rows));
    DT_TRY(take_flag(&in, &quantized, "the kind of the input matrix"));
    if (c->pruned && !quantized)
        return damaged(&in, "a pruned dictionary without a quantized matrix");
    DT_TRY(take_matrix(&in, &c->input, quantized, c->word_count + ngram_rows, c->dim));
    DT_TRY(take_flag(&in, &output_quantized, "the kind of the output matrix"));
    DT_TRY(take_matrix(&in, &c->output, quantized && output_quantized, c->label_count, c->dim));
    if (in.at != in.end)
        return damaged(&in, "bytes after the end");
    if (c->loss == DT_MODEL_FILE_LOSS_TREE)
        make_tree(c);
    return 0;
}
