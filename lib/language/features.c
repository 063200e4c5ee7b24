/* SPDX-License-Identifier: MIT */
/* The features of a text: its words, their n-grams of characters, and n-grams of words. */
#include "language/classifier-internal.h"

#include "base/buffer.h"

static inline int32_t find(const struct dt_model_table *t, uint32_t key)
{
    uint32_t i = dt_model_table_start(t, key);
    while (t->slots[i].value >= 0 && t->slots[i].key != key)
        i = (i + 1) & t->mask;
    return t->slots[i].value;
}

static void add_feature(struct dt_classifier_scratch *s, uint32_t row)
{
    DT_GROW(s->rows, s->row_count, s->row_capacity);
    s->rows[s->row_count++] = row;
}

/* The row of an n-gram, if pruning left it. */
static inline void add_ngram(const struct dt_classifier *c, struct dt_classifier_scratch *s,
                             uint32_t bucket)
{
    int32_t place = c->pruned ? find(&c->kept, bucket) : (int32_t)bucket;
    if (place >= 0)
        add_feature(s, (uint32_t)c->word_count + (uint32_t)place);
}

static inline bool continues(char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* A byte of the word between its marks < and >. */
static inline char byte_at(const char *word, size_t size, size_t i)
{
    return i == 0 ? '<' : i == size + 1 ? '>' : word[i - 1];
}

/* The n-grams of characters, except the marks alone. */
static void add_ngrams(const struct dt_classifier *c, struct dt_classifier_scratch *s,
                       const char *word, size_t size)
{
    size_t end = size + 2;
    for (size_t i = 0; i < end; i++) {
        uint32_t hash = DT_MODEL_HASH_START;
        if (continues(byte_at(word, size, i)))
            continue;
        size_t j = i;
        for (int32_t n = 1; j < end && n <= c->longest; n++) {
            do
                hash = dt_model_hash_byte(hash, byte_at(word, size, j++));
            while (j < end && continues(byte_at(word, size, j)));
            if (n >= c->shortest && !(n == 1 && (i == 0 || j == end)))
                add_ngram(c, s, hash % (uint32_t)c->bucket);
        }
    }
}

/* The entry of a word, or -1. */
static int32_t find_entry(const struct dt_classifier *c, const char *word, size_t size,
                          uint32_t hash)
{
    const struct dt_model_table *t = &c->words;
    for (uint32_t i = dt_model_table_start(t, hash); t->slots[i].value >= 0;
         i = (i + 1) & t->mask) {
        const char *text = c->entries[t->slots[i].value].text;
        if (t->slots[i].key == hash && strncmp(text, word, size) == 0 && text[size] == '\0')
            return t->slots[i].value;
    }
    return -1;
}

static bool is_line_end(const char *word, size_t size)
{
    return size == strlen(DT_MODEL_FILE_LINE_END) &&
           memcmp(word, DT_MODEL_FILE_LINE_END, size) == 0;
}

static void add_word(const struct dt_classifier *c, struct dt_classifier_scratch *s,
                     const char *word, size_t size)
{
    size_t prefix = strlen(DT_MODEL_FILE_LABEL);
    uint32_t hash = dt_model_hash(word, size);
    int32_t entry = find_entry(c, word, size, hash);
    if (entry >= c->word_count ||
        (entry < 0 && size >= prefix && memcmp(word, DT_MODEL_FILE_LABEL, prefix) == 0))
        return; /* a label, not a word */
    if (entry >= 0)
        add_feature(s, (uint32_t)entry);
    if (c->longest > 0 && !is_line_end(word, size))
        add_ngrams(c, s, word, size);
    DT_GROW(s->hashes, s->hash_count, s->hash_capacity);
    s->hashes[s->hash_count++] = hash;
}

/* The n-grams of 2 words and more; hashes are sign-extended, as in fastText. */
static void add_word_ngrams(const struct dt_classifier *c, struct dt_classifier_scratch *s)
{
    for (size_t i = 0; i < s->hash_count && c->word_ngrams > 1; i++) {
        uint64_t hash = (uint64_t)(int32_t)s->hashes[i];
        for (size_t j = i + 1; j < s->hash_count && j - i < (size_t)c->word_ngrams; j++) {
            hash = hash * 116049371 + (uint64_t)(int32_t)s->hashes[j];
            add_ngram(c, s, (uint32_t)(hash % (uint64_t)c->bucket));
        }
    }
}

static bool is_separator(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r') || byte == '\0';
}

size_t dt_model_next_word(const char *text, size_t size, size_t *at)
{
    while (*at < size && is_separator(text[*at]))
        ++*at;
    size_t from = *at;
    while (*at < size && !is_separator(text[*at]))
        ++*at;
    return is_line_end(text + from, *at - from) ? 0 : *at - from;
}

void dt_model_features(const struct dt_classifier *c, const char *text, size_t size,
                       struct dt_classifier_scratch *s)
{
    s->row_count = s->hash_count = 0;
    for (size_t at = 0, length; (length = dt_model_next_word(text, size, &at)) > 0;)
        add_word(c, s, text + at - length, length);
    add_word(c, s, DT_MODEL_FILE_LINE_END, strlen(DT_MODEL_FILE_LINE_END));
    add_word_ngrams(c, s);
}
