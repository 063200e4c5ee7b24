/* SPDX-License-Identifier: MIT */
#include "gguf/gguf-tokenizer-kinds.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"

/* llama.cpp's src/llama-vocab.cpp has the same table. */
static const struct dt_gguf_kind_of_pre kinds[] = {
    {"gpt-2", "gpt2", false, false, false,
     "phi-2 olmo mpt jais trillion granite-docling gigachat jina-es jina-de jina-v2-es jina-v2-de "
     "a.x-4.0 mellum modern-bert exaone4"},
    {"smollm", "gpt2", true, false, false,
     "starcoder refact command-r codeshell exaone minerva-7b mellum2"},
    {"llama-bpe", "llama3", false, true, false,
     "llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2"},
    {"dbrx", "llama3", false, false, false, "smaug-bpe glm4 chatglm-bpe"},
    {"qwen2", "qwen", false, false, true, "deepseek-r1-qwen megrez"},
    {"stablelm2", "qwen", false, false, true, NULL},
    {"qwen35", "qwen35", false, false, true, NULL},
    {"gpt-4o", "o200k", false, false, false, "llama4"},
    {"tekken", "tekken", false, true, false, NULL},
};

static bool lists(const char *list, struct dt_gguf_text word)
{
    for (const char *at = list; at && *at;) {
        size_t n = strcspn(at, " ");
        if (n == word.size && memcmp(at, word.data, n) == 0)
            return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

const struct dt_gguf_kind_of_pre *dt_gguf_pre_of_name(struct dt_gguf_text name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (dt_gguf_text_is(name, kinds[i].name) || lists(kinds[i].aliases, name))
            return &kinds[i];
    return NULL;
}

const struct dt_gguf_kind_of_pre *dt_gguf_pre_of_pattern(const char *pattern, bool digits,
                                                         bool ignore_merges)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].pattern, pattern) == 0 && kinds[i].digits == digits &&
            kinds[i].ignore_merges == ignore_merges)
            return &kinds[i];
    return NULL;
}

static bool contains(struct dt_gguf_text text, const char *word)
{
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= text.size; i++)
        if (strncasecmp(text.data + i, word, size) == 0)
            return true;
    return false;
}

struct dt_gguf_strips dt_gguf_strips_of(struct dt_gguf_text model, struct dt_gguf_text pre,
                                        struct dt_gguf_text token)
{
    struct dt_gguf_strips strips = {false, false};
    if (lists("jina-v2-de jina-v2-es", pre))
        strips.left = dt_gguf_text_is(token, "<mask>");
    else if (contains(model, "phi-3") || contains(model, "phi3"))
        strips.right = !lists("<unk> <s> <|endoftext|>", token);
    else if (contains(model, "modern-bert"))
        strips.left = dt_gguf_text_is(token, "[MASK]");
    return strips;
}

/* --- SentencePiece ----------------------------------------------------------------------------*/

struct pair {
    struct json_object *left, *right; /* pieces, borrowed */
    int64_t left_id, right_id;
    size_t left_length, right_length; /* characters */
    float score;                      /* of the result */
    size_t order;
};

/* Falling scores, then the order in which transformers converts. */
static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->left_length != y->left_length)
        return x->left_length > y->left_length ? -1 : 1;
    if (x->right_length != y->right_length)
        return x->right_length > y->right_length ? -1 : 1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    if (x->left_id != y->left_id)
        return x->left_id < y->left_id ? -1 : 1;
    return (x->right_id > y->right_id) - (x->right_id < y->right_id);
}

struct pairs {
    struct pair *data;
    size_t count, capacity;
};

static void add_pair(struct pairs *p, struct pair pair)
{
    DT_GROW(p->data, p->count, p->capacity);
    p->data[p->count++] = pair;
}

static size_t count_characters(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += (*text & 0xc0) != 0x80;
    return count;
}

/* All ways to cut a piece into two tokens. */
static void add_cuts(struct pairs *p, struct json_object *vocabulary, const char *piece,
                     float score, size_t order)
{
    size_t size = strlen(piece);
    for (size_t cut = 1; cut < size; cut++) {
        struct json_object *left, *right;
        if ((piece[cut] & 0xc0) == 0x80)
            continue;
        char *first = dt_strndup(piece, cut);
        if (json_object_object_get_ex(vocabulary, first, &left) &&
            json_object_object_get_ex(vocabulary, piece + cut, &right))
            add_pair(p, (struct pair){dt_json_new_string(first), dt_json_new_string(piece + cut),
                                      json_object_get_int64(left), json_object_get_int64(right),
                                      count_characters(first), count_characters(piece + cut), score,
                                      order});
        free(first);
    }
}

struct json_object *dt_gguf_merges_of_scores(struct json_object *vocabulary, const float *scores)
{
    struct json_object *merges = dt_json_new_array();
    struct pairs p = {NULL, 0, 0};
    size_t order = 0;
    json_object_object_foreach(vocabulary, piece, id)
    {
        add_cuts(&p, vocabulary, piece, scores[json_object_get_int64(id)], order++);
    }
    if (p.count > 1)
        qsort(p.data, p.count, sizeof *p.data, compare_pairs);
    for (size_t i = 0; i < p.count; i++) {
        struct json_object *merge = dt_json_new_array();
        dt_json_array_add(merge, p.data[i].left);
        dt_json_array_add(merge, p.data[i].right);
        dt_json_array_add(merges, merge);
    }
    free(p.data);
    return merges;
}
