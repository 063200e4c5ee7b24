/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/gguf-tokenizer-kinds.h"
#include "gguf/gguf-tokenizer.h"
#include "pretokenize/pattern.h"

#define KEY(name) "tokenizer.ggml." name

/* tokenizer.ggml.token_type */
enum token_type { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE };

struct source {
    const struct dt_gguf_file *file;
    const struct dt_gguf_value *tokens, *types, *scores;
    struct dt_gguf_text name, pre; /* of the model, and of the pre-tokenizer; "": none */
    struct dt_error *err;
};

bool dt_gguf_has_tokenizer(const struct dt_gguf_file *f)
{
    return dt_gguf_file_find(f, KEY("model")) != NULL;
}

static int bad(const struct source *s, const char *reason)
{
    return dt_fail(s->err, DT_EFORMAT, "%s: tokenizer: %s", s->file->path, reason);
}

static int32_t type_of(const struct source *s, uint64_t id)
{
    int32_t type = NORMAL;
    if (s->types)
        memcpy(&type, s->types->elements + id * sizeof type, sizeof type);
    return type;
}

static struct json_object *text_of(struct dt_gguf_text text)
{
    return dt_json_new_string_len(text.data, text.size);
}

static struct json_object *of_type(const char *type)
{
    struct json_object *object = dt_json_new_object();
    dt_json_object_add(object, "type", dt_json_new_string(type));
    return object;
}

static void add_flag(struct json_object *object, const char *name, bool value)
{
    dt_json_object_add(object, name, dt_json_new_boolean(value));
}

static struct json_object *sequence(const char *name, struct json_object *first,
                                    struct json_object *second)
{
    struct json_object *object = of_type("Sequence"), *list = dt_json_new_array();
    dt_json_array_add(list, first);
    dt_json_array_add(list, second);
    dt_json_object_add(object, name, list);
    return object;
}

/* --- tokens -----------------------------------------------------------------------------------*/

static struct json_object *added_token(const struct source *s, int64_t id, struct dt_gguf_text text,
                                       bool special)
{
    struct json_object *token = dt_json_new_object();
    struct dt_gguf_strips strips = dt_gguf_strips_of(s->name, s->pre, text);
    dt_json_object_add(token, "id", dt_json_new_int(id));
    dt_json_object_add(token, "content", text_of(text));
    add_flag(token, "single_word", false);
    add_flag(token, "lstrip", strips.left);
    add_flag(token, "rstrip", strips.right);
    add_flag(token, "normalized", false);
    add_flag(token, "special", special);
    return token;
}

/* Unused ids pad the vocabulary to the model's size and have no token. */
static int add_tokens(const struct source *s, struct json_object *vocabulary,
                      struct json_object *added)
{
    const char *at = s->tokens->elements;
    for (uint64_t id = 0; id < s->tokens->count; id++) {
        struct dt_gguf_text text = dt_gguf_next_string(&at);
        int32_t type = type_of(s, id);
        if (type < NORMAL || type > BYTE)
            return bad(s, "a token is of an unknown type");
        if (type == UNUSED)
            continue;
        if (text.size == 0 || memchr(text.data, 0, text.size))
            return bad(s, "a token is empty or has a zero byte");
        char *name = dt_strndup(text.data, text.size);
        bool twice = json_object_object_get_ex(vocabulary, name, NULL);
        if (!twice)
            dt_json_object_add(vocabulary, name, dt_json_new_int((int64_t)id));
        free(name);
        if (twice)
            return bad(s, "a token is given twice");
        if (type == CONTROL || type == USER_DEFINED || type == UNKNOWN)
            dt_json_array_add(added, added_token(s, (int64_t)id, text, type != USER_DEFINED));
    }
    return 0;
}

static int find_arrays(struct source *s)
{
    const struct dt_gguf_file *f = s->file;
    DT_TRY(dt_gguf_file_get_array(f, KEY("tokens"), DT_GGUF_KIND_STRING, &s->tokens, s->err));
    DT_TRY(dt_gguf_file_get_array(f, KEY("token_type"), DT_GGUF_KIND_I32, &s->types, s->err));
    DT_TRY(dt_gguf_file_get_array(f, KEY("scores"), DT_GGUF_KIND_F32, &s->scores, s->err));
    if (s->tokens == NULL)
        return bad(s, KEY("tokens") " is missing");
    if ((s->types && s->types->count != s->tokens->count) ||
        (s->scores && s->scores->count != s->tokens->count))
        return bad(s, "tokens, scores and types differ in number");
    return 0;
}

/* --- the template -----------------------------------------------------------------------------*/

/* The token that a key names; id -1: none. */
static int find_token(const struct source *s, const char *key, int64_t *id,
                      struct dt_gguf_text *text)
{
    *id = -1;
    DT_TRY(dt_gguf_file_get_int(s->file, key, id, s->err));
    if (*id == -1)
        return 0;
    if (*id < 0 || (uint64_t)*id >= s->tokens->count)
        return dt_fail(s->err, DT_EFORMAT, "%s: %s is not a token", s->file->path, key);
    const char *at = s->tokens->elements;
    for (int64_t i = 0; i <= *id; i++)
        *text = dt_gguf_next_string(&at);
    return 0;
}

/* Where the keys are absent, as llama.cpp. */
static int add_template(const struct source *s, struct json_object *root, bool begins)
{
    struct dt_gguf_text bos = {"", 0}, eos = {"", 0};
    int64_t bos_id, eos_id, add_bos = begins, add_eos = 0;
    DT_TRY(dt_gguf_file_get_int(s->file, KEY("add_bos_token"), &add_bos, s->err));
    DT_TRY(dt_gguf_file_get_int(s->file, KEY("add_eos_token"), &add_eos, s->err));
    DT_TRY(find_token(s, KEY("bos_token_id"), &bos_id, &bos));
    DT_TRY(find_token(s, KEY("eos_token_id"), &eos_id, &eos));
    if ((!add_bos || bos_id < 0) && (!add_eos || eos_id < 0))
        return 0;
    struct dt_gguf_template around = {
        .before = add_bos && bos_id >= 0 ? dt_strndup(bos.data, bos.size) : NULL,
        .after = add_eos && eos_id >= 0 ? dt_strndup(eos.data, eos.size) : NULL,
        .before_id = bos_id,
        .after_id = eos_id};
    dt_gguf_tokenizer_set_template(root, &around);
    free(around.before);
    free(around.after);
    return 0;
}

/* --- byte-level BPE ---------------------------------------------------------------------------*/

static struct json_object *byte_level(bool splits)
{
    struct json_object *object = of_type("ByteLevel");
    add_flag(object, "add_prefix_space", false);
    add_flag(object, "trim_offsets", true);
    add_flag(object, "use_regex", splits);
    return object;
}

static struct json_object *pre_tokenizer_of(const struct dt_gguf_kind_of_pre *kind)
{
    struct json_object *step = NULL, *pattern = dt_json_new_object();
    bool is_gpt2 = strcmp(kind->pattern, "gpt2") == 0;
    if (kind->digits) {
        step = of_type("Digits");
        add_flag(step, "individual_digits", true);
    } else if (!is_gpt2) {
        step = of_type("Split");
        dt_json_object_add(pattern, "Regex",
                           dt_json_new_string(dt_pattern_find(kind->pattern)->regex));
        dt_json_object_add(step, "pattern", json_object_get(pattern));
        dt_json_object_add(step, "behavior", dt_json_new_string("Isolated"));
        add_flag(step, "invert", false);
    }
    json_object_put(pattern);
    return step ? sequence("pretokenizers", step, byte_level(is_gpt2)) : byte_level(true);
}

static int add_merges(const struct source *s, struct json_object *model)
{
    const struct dt_gguf_value *merges;
    DT_TRY(dt_gguf_file_get_array(s->file, KEY("merges"), DT_GGUF_KIND_STRING, &merges, s->err));
    if (merges == NULL)
        return bad(s, KEY("merges") " is missing");
    struct json_object *list = dt_json_new_array();
    const char *at = merges->elements;
    for (uint64_t i = 0; i < merges->count; i++)
        dt_json_array_add(list, text_of(dt_gguf_next_string(&at)));
    dt_json_object_add(model, "merges", list);
    return 0;
}

static int add_normalizer(const struct source *s, const struct dt_gguf_kind_of_pre *kind,
                          struct json_object *root)
{
    struct dt_gguf_text given = {"", 0};
    DT_TRY(dt_gguf_file_get_string(s->file, DT_GGUF_NORMALIZER, &given, s->err));
    bool none = dt_gguf_text_is(given, "none"), nfc = dt_gguf_text_is(given, "NFC");
    if (given.size > 0 && !none && !nfc)
        return bad(s, DT_GGUF_NORMALIZER " must be NFC or none");
    if (nfc || (kind->nfc && !none))
        dt_json_object_add(root, "normalizer", of_type("NFC"));
    return 0;
}

static int fill_gpt2(const struct source *s, struct json_object *root, struct json_object *model,
                     struct json_object *vocabulary)
{
    (void)vocabulary;
    const struct dt_gguf_kind_of_pre *kind = dt_gguf_pre_of_name(s->pre);
    if (kind == NULL)
        return dt_fail(s->err, DT_EFORMAT,
                       "%s: " KEY("pre") " '%.*s' is not a pre-tokenizer that dt knows: name the "
                                         "model's tokenizer.json with --tokenizer",
                       s->file->path, (int)(s->pre.size < 64 ? s->pre.size : 64), s->pre.data);
    DT_TRY(add_normalizer(s, kind, root));
    dt_json_object_add(root, "pre_tokenizer", pre_tokenizer_of(kind));
    dt_json_object_add(root, "decoder", byte_level(true));
    add_flag(model, "ignore_merges", kind->ignore_merges);
    DT_TRY(add_template(s, root, kind->ignore_merges)); /* Llama 3 and Tekken begin texts */
    return add_merges(s, model);
}

/* --- SentencePiece ----------------------------------------------------------------------------*/

#define SPACE "\xe2\x96\x81" /* U+2581 */

static struct json_object *replacement(const char *from, const char *to)
{
    struct json_object *step = of_type("Replace"), *pattern = dt_json_new_object();
    dt_json_object_add(pattern, "String", dt_json_new_string(from));
    dt_json_object_add(step, "pattern", pattern);
    dt_json_object_add(step, "content", dt_json_new_string(to));
    return step;
}

static void add_spaces(struct json_object *root, bool prefix)
{
    struct json_object *prepend = of_type("Prepend"), *strip = of_type("Strip");
    struct json_object *decoder =
        sequence("decoders", replacement(SPACE, " "), of_type("ByteFallback"));
    struct json_object *steps = json_object_object_get(decoder, "decoders");
    dt_json_object_add(prepend, "prepend", dt_json_new_string(SPACE));
    dt_json_object_add(strip, "content", dt_json_new_string(" "));
    dt_json_object_add(strip, "start", dt_json_new_int(1));
    dt_json_object_add(strip, "stop", dt_json_new_int(0));
    dt_json_array_add(steps, of_type("Fuse"));
    if (prefix)
        dt_json_array_add(steps, json_object_get(strip));
    dt_json_object_add(root, "decoder", decoder);
    dt_json_object_add(
        root, "normalizer",
        prefix ? sequence("normalizers", json_object_get(prepend), replacement(" ", SPACE))
               : replacement(" ", SPACE));
    json_object_put(prepend);
    json_object_put(strip);
}

static int fill_llama(const struct source *s, struct json_object *root, struct json_object *model,
                      struct json_object *vocabulary)
{
    struct dt_gguf_text unknown = {"", 0};
    int64_t prefix = 1, unknown_id;
    if (s->scores == NULL)
        return bad(s, KEY("scores") " is missing");
    float *scores = dt_alloc(s->scores->count + 1, sizeof *scores);
    memcpy(scores, s->scores->elements, s->scores->count * sizeof *scores);
    bool sorted = true;
    for (uint64_t i = 0; i < s->scores->count; i++)
        sorted = sorted && !isnan(scores[i]);
    if (sorted)
        dt_json_object_add(model, "merges", dt_gguf_merges_of_scores(vocabulary, scores));
    free(scores);
    if (!sorted)
        return bad(s, "a score is NaN");
    DT_TRY(dt_gguf_file_get_int(s->file, KEY("add_space_prefix"), &prefix, s->err));
    DT_TRY(find_token(s, KEY("unknown_token_id"), &unknown_id, &unknown));
    dt_json_object_add(model, "unk_token",
                       unknown_id < 0 ? dt_json_new_string("<unk>") : text_of(unknown));
    add_flag(model, "byte_fallback", true);
    add_flag(model, "fuse_unk", true);
    add_spaces(root, prefix);
    return add_template(s, root, true);
}

/* --- the tokenizer ----------------------------------------------------------------------------*/

static const struct {
    const char *name; /* tokenizer.ggml.model */
    int (*fill)(const struct source *, struct json_object *root, struct json_object *model,
                struct json_object *vocabulary);
} models[] = {{"gpt2", fill_gpt2}, {"llama", fill_llama}};

static int fill(const struct source *s, struct dt_gguf_text kind, struct json_object *root)
{
    struct json_object *added = dt_json_new_array(), *model = of_type("BPE");
    struct json_object *vocabulary = dt_json_new_object();
    dt_json_object_add(root, "version", dt_json_new_string("1.0"));
    dt_json_object_add(root, "added_tokens", added);
    dt_json_object_add(root, "model", model);
    dt_json_object_add(model, "vocab", vocabulary);
    DT_TRY(add_tokens(s, vocabulary, added));
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (dt_gguf_text_is(kind, models[i].name))
            return models[i].fill(s, root, model, vocabulary);
    return dt_fail(s->err, DT_EFORMAT,
                   "%s: " KEY("model") " '%.*s' is not known (gpt2, llama): name the model's "
                                       "tokenizer.json with --tokenizer",
                   s->file->path, (int)(kind.size < 64 ? kind.size : 64), kind.data);
}

int dt_gguf_tokenizer_read(const struct dt_gguf_file *f, struct json_object **tokenizer,
                           struct dt_error *err)
{
    struct source s = {.file = f, .name = {"", 0}, .pre = {"", 0}, .err = err};
    struct dt_gguf_text kind = {"", 0};
    *tokenizer = NULL;
    if (!dt_gguf_has_tokenizer(f))
        return dt_fail(err, DT_EMISSING, "%s: has no tokenizer: name one with --tokenizer",
                       f->path);
    DT_TRY(dt_gguf_file_get_string(f, KEY("model"), &kind, err));
    DT_TRY(dt_gguf_file_get_string(f, KEY("pre"), &s.pre, err));
    DT_TRY(dt_gguf_file_get_string(f, "general.name", &s.name, err));
    DT_TRY(find_arrays(&s));
    struct json_object *root = dt_json_new_object();
    int rc = fill(&s, kind, root);
    if (rc < 0)
        json_object_put(root);
    else
        *tokenizer = root;
    return rc;
}

int dt_gguf_tokenizer_load(const char *path, struct json_object **tokenizer, struct dt_error *err)
{
    struct dt_gguf_file *file;
    *tokenizer = NULL;
    DT_TRY(dt_gguf_file_open(&file, path, err));
    int rc = dt_gguf_tokenizer_read(file, tokenizer, err);
    dt_gguf_file_close(file);
    return rc;
}
