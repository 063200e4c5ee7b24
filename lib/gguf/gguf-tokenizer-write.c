/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/gguf-tokenizer-kinds.h"
#include "gguf/gguf-tokenizer.h"
#include "pretokenize/pattern.h"

#define KEY(name) "tokenizer.ggml." name
#define SPACE     "\xe2\x96\x81" /* U+2581 */

/* --- values -----------------------------------------------------------------------------------*/

void dt_gguf_add_number(struct dt_buffer *b, uint64_t x, size_t size)
{
    dt_buffer_append(b, &x, size); /* little-endian, as every machine dt runs on */
}

void dt_gguf_add_text(struct dt_buffer *b, const char *text, size_t size)
{
    dt_gguf_add_number(b, size, 8);
    dt_buffer_append(b, text, size);
}

void dt_gguf_begin_value(struct dt_gguf_values *v, const char *key, enum dt_gguf_kind kind)
{
    v->count++;
    dt_gguf_add_text(&v->bytes, key, strlen(key));
    dt_gguf_add_number(&v->bytes, kind, 4);
}

void dt_gguf_add_string(struct dt_gguf_values *v, const char *key, const char *text)
{
    dt_gguf_begin_value(v, key, DT_GGUF_KIND_STRING);
    dt_gguf_add_text(&v->bytes, text, strlen(text));
}

void dt_gguf_add_u32(struct dt_gguf_values *v, const char *key, uint32_t x)
{
    dt_gguf_begin_value(v, key, DT_GGUF_KIND_U32);
    dt_gguf_add_number(&v->bytes, x, 4);
}

void dt_gguf_add_f32(struct dt_gguf_values *v, const char *key, double x)
{
    float narrow = (float)x;
    dt_gguf_begin_value(v, key, DT_GGUF_KIND_F32);
    dt_buffer_append(&v->bytes, &narrow, sizeof narrow);
}

void dt_gguf_add_bool(struct dt_gguf_values *v, const char *key, bool truth)
{
    dt_gguf_begin_value(v, key, DT_GGUF_KIND_BOOL);
    dt_gguf_add_number(&v->bytes, truth, 1);
}

static void begin_array(struct dt_gguf_values *v, const char *key, enum dt_gguf_kind kind,
                        uint64_t count)
{
    dt_gguf_begin_value(v, key, DT_GGUF_KIND_ARRAY);
    dt_gguf_add_number(&v->bytes, kind, 4);
    dt_gguf_add_number(&v->bytes, count, 8);
}

/* --- what tokenizer.json says -----------------------------------------------------------------*/

/* A member of a JSON value, NULL where it is absent, null, or the value is not an object. */
static struct json_object *member(struct json_object *object, const char *name)
{
    return json_object_is_type(object, json_type_object) ? json_object_object_get(object, name)
                                                         : NULL;
}

static bool is_text(struct json_object *value, const char *text)
{
    return json_object_is_type(value, json_type_string) && strcmp(dt_json_text(value), text) == 0;
}

static bool is_type(struct json_object *object, const char *type)
{
    return is_text(member(object, "type"), type);
}

static bool flag(struct json_object *object, const char *name, bool absent)
{
    struct json_object *value = member(object, name);
    return value ? json_object_get_boolean(value) : absent;
}

/* Step i of a Sequence; NULL beyond its end. A value that is not a Sequence is its own step 0. */
static struct json_object *step_of(struct json_object *object, const char *list, size_t i)
{
    struct json_object *steps = member(object, list);
    if (!is_type(object, "Sequence"))
        return i == 0 ? object : NULL;
    return json_object_is_type(steps, json_type_array) && i < json_object_array_length(steps)
               ? json_object_array_get_idx(steps, i)
               : NULL;
}

static bool is_split(struct json_object *step)
{
    return is_type(step, "Split") && is_text(member(step, "behavior"), "Isolated") &&
           !flag(step, "invert", false);
}

/* The pre-tokenizer of byte-level BPE; NULL: llama.cpp has none that does the same. */
static const struct dt_gguf_kind_of_pre *find_kind(struct json_object *root,
                                                   struct json_object *model)
{
    struct json_object *pre = member(root, "pre_tokenizer"),
                       *normalizer = member(root, "normalizer");
    struct json_object *first = step_of(pre, "pretokenizers", 0);
    struct json_object *second = step_of(pre, "pretokenizers", 1);
    struct json_object *bytes = second ? second : first;
    struct json_object *regex = member(member(first, "pattern"), "Regex");
    bool digits = second && is_type(first, "Digits") && flag(first, "individual_digits", false);
    bool split = second && is_split(first) && json_object_is_type(regex, json_type_string);
    const struct dt_pattern *pattern =
        split ? dt_pattern_find_regex(dt_json_text(regex)) : dt_pattern_find("gpt2");
    struct json_object *steps = member(normalizer, "normalizers");
    bool plain = normalizer == NULL || is_type(normalizer, "NFC") ||
                 (is_type(normalizer, "Sequence") && json_object_array_length(steps) == 0);
    if (!plain || !is_type(bytes, "ByteLevel") || flag(bytes, "add_prefix_space", true) ||
        (second && !digits && !split) || step_of(pre, "pretokenizers", 2) || pattern == NULL ||
        flag(bytes, "use_regex", true) == split)
        return NULL;
    return dt_gguf_pre_of_pattern(pattern->name, digits, flag(model, "ignore_merges", false));
}

/* --- tokens -----------------------------------------------------------------------------------*/

enum token_type { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE };

struct token {
    const char *text;
    int type;
    float score;
};

struct list {
    struct token *tokens;
    long size;
    const char *name; /* of the model */
    const char *subject;
    struct dt_error *err;
};

static int set_token(const struct list *l, const char *text, int64_t id, int type)
{
    if (id < 0 || id >= l->size)
        return dt_fail(l->err, DT_EFORMAT, "%s: token '%s' has id %lld, the model only %ld tokens",
                       l->subject, text, (long long)id, l->size);
    l->tokens[id].text = text;
    l->tokens[id].type = type;
    return 0;
}

static int collect_tokens(const struct list *l, struct json_object *root,
                          struct json_object *vocabulary)
{
    struct json_object *added = member(root, "added_tokens");
    for (long i = 0; i < l->size; i++)
        l->tokens[i] = (struct token){NULL, UNUSED, 0};
    json_object_object_foreach(vocabulary, text, id)
    {
        if (!json_object_is_type(id, json_type_int))
            return dt_fail(l->err, DT_EFORMAT, "%s: the id of token '%s' is not an integer",
                           l->subject, text);
        DT_TRY(set_token(l, text, json_object_get_int64(id), NORMAL));
    }
    for (size_t i = 0; added && i < json_object_array_length(added); i++) {
        struct json_object *token = json_object_array_get_idx(added, i);
        const char *content;
        int64_t number;
        DT_TRY(dt_json_get_string(token, "content", l->subject, &content, l->err));
        DT_TRY(dt_json_get_int(token, "id", l->subject, &number, l->err));
        DT_TRY(
            set_token(l, content, number, flag(token, "special", false) ? CONTROL : USER_DEFINED));
    }
    return 0;
}

static struct dt_gguf_text text_of(const char *text)
{
    return (struct dt_gguf_text){text, strlen(text)};
}

/* Refuses added tokens that would be found elsewhere. */
static int check_added(const struct list *l, struct json_object *root, const char *pre)
{
    struct json_object *added = member(root, "added_tokens");
    for (size_t i = 0; added && i < json_object_array_length(added); i++) {
        struct json_object *token = json_object_array_get_idx(added, i);
        const char *content = dt_json_text(member(token, "content"));
        struct dt_gguf_strips strips =
            dt_gguf_strips_of(text_of(l->name), text_of(pre), text_of(content));
        if (flag(token, "single_word", false) || (flag(token, "lstrip", false) && !strips.left) ||
            (flag(token, "rstrip", false) && !strips.right))
            return dt_fail(l->err, DT_EINVALID,
                           "%s: the added token '%s' has single_word, lstrip or rstrip, which GGUF "
                           "does not hold; llama.cpp has rstrip for models named phi-3",
                           l->subject, content);
    }
    return 0;
}

static void add_tokens(struct dt_gguf_values *v, const struct list *l, bool scores)
{
    begin_array(v, KEY("tokens"), DT_GGUF_KIND_STRING, (uint64_t)l->size);
    for (long i = 0; i < l->size; i++) {
        char unused[32];
        snprintf(unused, sizeof unused, "[PAD%ld]", i);
        const char *text = l->tokens[i].text ? l->tokens[i].text : unused;
        dt_gguf_add_text(&v->bytes, text, strlen(text));
    }
    begin_array(v, KEY("token_type"), DT_GGUF_KIND_I32, (uint64_t)l->size);
    for (long i = 0; i < l->size; i++)
        dt_gguf_add_number(&v->bytes, (uint64_t)l->tokens[i].type, 4);
    if (!scores)
        return;
    begin_array(v, KEY("scores"), DT_GGUF_KIND_F32, (uint64_t)l->size);
    for (long i = 0; i < l->size; i++)
        dt_buffer_append(&v->bytes, &l->tokens[i].score, sizeof l->tokens[i].score);
}

/* --- merges -----------------------------------------------------------------------------------*/

/* Merges are "left right", or in newer files ["left", "right"]. */
static int spell_merge(const struct list *l, struct json_object *merge, size_t i,
                       struct dt_buffer *text)
{
    dt_buffer_clear(text);
    if (json_object_is_type(merge, json_type_string))
        dt_buffer_add_string(text, dt_json_text(merge));
    else if (json_object_is_type(merge, json_type_array) && json_object_array_length(merge) == 2)
        for (size_t j = 0; j < 2; j++)
            dt_buffer_printf(text, "%s%s", j ? " " : "",
                             dt_json_text(json_object_array_get_idx(merge, j)));
    else
        return dt_fail(l->err, DT_EFORMAT, "%s: merge %zu is not a pair of tokens", l->subject, i);
    return 0;
}

static int add_merges(struct dt_gguf_values *v, const struct list *l, struct json_object *merges)
{
    size_t count = json_object_array_length(merges);
    struct dt_buffer text = DT_BUFFER_EMPTY;
    int rc = 0;
    begin_array(v, KEY("merges"), DT_GGUF_KIND_STRING, count);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = spell_merge(l, json_object_array_get_idx(merges, i), i, &text);
        if (rc == 0)
            dt_gguf_add_text(&v->bytes, text.data, text.size);
    }
    dt_buffer_release(&text);
    return rc;
}

/* A token's score is the rank of the first merge that makes it, negative. */
static int score_tokens(const struct list *l, struct json_object *vocabulary,
                        struct json_object *merges)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_object_array_length(merges); i++) {
        struct json_object *id;
        rc = spell_merge(l, json_object_array_get_idx(merges, i), i, &text);
        char *blank = rc == 0 ? strchr(text.data, ' ') : NULL;
        if (blank == NULL)
            continue;
        memmove(blank, blank + 1, strlen(blank));
        if (json_object_object_get_ex(vocabulary, text.data, &id) &&
            l->tokens[json_object_get_int64(id)].score == 0)
            l->tokens[json_object_get_int64(id)].score = -1 - (float)i;
    }
    dt_buffer_release(&text);
    return rc;
}

/* Whether falling scores give the merges in an order with the same results: each merge's token is
 * made at the same rank. */
static bool same_merges(const struct list *l, struct json_object *vocabulary,
                        struct json_object *merges)
{
    float *scores = dt_alloc((size_t)l->size, sizeof *scores);
    for (long i = 0; i < l->size; i++)
        scores[i] = l->tokens[i].score < 0 ? l->tokens[i].score : -1e30f;
    struct json_object *again = dt_gguf_merges_of_scores(vocabulary, scores);
    size_t count = json_object_array_length(merges);
    bool same = count == json_object_array_length(again);
    struct dt_buffer a = DT_BUFFER_EMPTY, b = DT_BUFFER_EMPTY;
    const struct list quiet = {.subject = "", .err = &(struct dt_error){0}};
    for (size_t i = 0; same && i < count; i++) {
        same = spell_merge(&quiet, json_object_array_get_idx(merges, i), i, &a) == 0 &&
               spell_merge(&quiet, json_object_array_get_idx(again, i), i, &b) == 0;
        for (char *blank; same && (blank = strchr(a.data, ' ')) != NULL;)
            memmove(blank, blank + 1, strlen(blank));
        for (char *blank; same && (blank = strchr(b.data, ' ')) != NULL;)
            memmove(blank, blank + 1, strlen(blank));
        same = same && strcmp(a.data, b.data) == 0;
    }
    dt_buffer_release(&a);
    dt_buffer_release(&b);
    json_object_put(again);
    free(scores);
    return same;
}

/* --- kinds ------------------------------------------------------------------------------------*/

static int write_gpt2(struct dt_gguf_values *v, const struct list *l, struct json_object *root,
                      struct json_object *model, struct json_object *merges)
{
    const struct dt_gguf_kind_of_pre *kind = find_kind(root, model);
    if (kind == NULL)
        return dt_fail(l->err, DT_EINVALID,
                       "%s: llama.cpp has no pre-tokenizer with its normalizer, pre_tokenizer and "
                       "ignore_merges",
                       l->subject);
    DT_TRY(check_added(l, root, kind->name));
    dt_gguf_add_string(v, KEY("model"), "gpt2");
    dt_gguf_add_string(v, KEY("pre"), kind->name);
    bool nfc = is_type(member(root, "normalizer"), "NFC");
    if (nfc != kind->nfc)
        dt_gguf_add_string(v, DT_GGUF_NORMALIZER, nfc ? "NFC" : "none");
    add_tokens(v, l, false);
    return add_merges(v, l, merges);
}

static bool is_replacement(struct json_object *step)
{
    return is_type(step, "Replace") && is_text(member(member(step, "pattern"), "String"), " ") &&
           is_text(member(step, "content"), SPACE);
}

/* Whether spaces become U+2581 and nothing else changes; *prefix: whether one is put before a
 * text. */
static bool escapes_spaces(struct json_object *root, bool *prefix)
{
    struct json_object *normalizer = member(root, "normalizer");
    struct json_object *first = step_of(normalizer, "normalizers", 0);
    struct json_object *pre = member(root, "pre_tokenizer");
    if (pre && normalizer == NULL) { /* not "first": llama.cpp prefixes every part of a text */
        struct json_object *scheme = member(pre, "prepend_scheme");
        *prefix = is_text(scheme, "always");
        return is_type(pre, "Metaspace") && is_text(member(pre, "replacement"), SPACE) &&
               !flag(pre, "split", true) && (*prefix || is_text(scheme, "never"));
    }
    *prefix = is_type(first, "Prepend") && is_text(member(first, "prepend"), SPACE);
    return pre == NULL && is_replacement(step_of(normalizer, "normalizers", *prefix)) &&
           step_of(normalizer, "normalizers", (size_t)*prefix + 1) == NULL;
}

static void set_special_types(const struct list *l, const char *unknown)
{
    for (long i = 0; i < l->size; i++) {
        struct token *t = &l->tokens[i];
        if (t->text == NULL)
            continue;
        if (strcmp(t->text, unknown) == 0)
            t->type = UNKNOWN;
        else if (strlen(t->text) == 6 && strncmp(t->text, "<0x", 3) == 0 && t->text[5] == '>')
            t->type = BYTE;
    }
}

static int write_llama(struct dt_gguf_values *v, const struct list *l, struct json_object *root,
                       struct json_object *model, struct json_object *merges)
{
    struct json_object *vocabulary = member(model, "vocab"), *unknown = member(model, "unk_token");
    bool prefix;
    if (!escapes_spaces(root, &prefix) || !json_object_is_type(unknown, json_type_string))
        return dt_fail(l->err, DT_EINVALID,
                       "%s: llama.cpp has no tokenizer with its normalizer and pre_tokenizer",
                       l->subject);
    DT_TRY(check_added(l, root, "default"));
    DT_TRY(score_tokens(l, vocabulary, merges));
    if (!same_merges(l, vocabulary, merges))
        return dt_fail(l->err, DT_EINVALID,
                       "%s: its merges are not those of scores of tokens, which GGUF holds",
                       l->subject);
    set_special_types(l, dt_json_text(unknown));
    dt_gguf_add_string(v, KEY("model"), "llama");
    dt_gguf_add_string(v, KEY("pre"), "default");
    dt_gguf_add_bool(v, KEY("add_space_prefix"), prefix);
    add_tokens(v, l, true);
    return 0;
}

int dt_gguf_tokenizer_write(struct dt_gguf_values *v, struct json_object *root, long size,
                            const char *name, const char *subject, struct dt_error *err)
{
    struct json_object *model, *vocabulary, *merges;
    struct list l = {.size = size, .name = name, .subject = subject, .err = err};
    const char *type;
    DT_TRY(dt_json_get(root, "model", json_type_object, subject, &model, err));
    DT_TRY(dt_json_get_string(model, "type", subject, &type, err));
    if (strcmp(type, "BPE") != 0)
        return dt_fail(err, DT_EINVALID,
                       "%s: the tokenizer is of type %s; only BPE can be written to GGUF", subject,
                       type);
    DT_TRY(dt_json_get(model, "vocab", json_type_object, subject, &vocabulary, err));
    DT_TRY(dt_json_get(model, "merges", json_type_array, subject, &merges, err));
    l.tokens = dt_alloc((size_t)size, sizeof *l.tokens);
    int rc = collect_tokens(&l, root, vocabulary);
    if (rc == 0)
        rc = (flag(model, "byte_fallback", false) ? write_llama : write_gpt2)(v, &l, root, model,
                                                                              merges);
    free(l.tokens);
    return rc;
}
