/* SPDX-License-Identifier: MIT */
#include "steps/steps.h"

#include <stdlib.h>
#include <string.h>

#include "steps/step-parameters.h"
#include "steps/steps-internal.h"

#define NESTING 8 /* Sequences in Sequences */

static const struct dt_step_type *const normalizers[] = {
    &dt_normalizer_nfc,           &dt_normalizer_nfd,
    &dt_normalizer_nfkc,          &dt_normalizer_nfkd,
    &dt_normalizer_prepend,       &dt_normalizer_replace,
    &dt_normalizer_strip,         &dt_normalizer_lowercase,
    &dt_normalizer_strip_accents, &dt_normalizer_bert,
    &dt_normalizer_precompiled,   &dt_normalizer_nmt,
    &dt_normalizer_sentencepiece, NULL};
static const struct dt_step_type *const pre_tokenizers[] = {
    &dt_pre_tokenizer_byte_level,       &dt_pre_tokenizer_split,
    &dt_pre_tokenizer_metaspace,        &dt_pre_tokenizer_digits,
    &dt_pre_tokenizer_punctuation,      &dt_pre_tokenizer_whitespace,
    &dt_pre_tokenizer_whitespace_split, &dt_pre_tokenizer_bert,
    &dt_pre_tokenizer_delimiter,        NULL};
static const struct dt_step_type *const decoders[] = {
    &dt_decoder_byte_level,    &dt_decoder_metaspace,
    &dt_decoder_replace,       &dt_decoder_byte_fallback,
    &dt_decoder_fuse,          &dt_decoder_strip,
    &dt_decoder_bpe,           &dt_decoder_word_piece,
    &dt_decoder_sentencepiece, NULL};

static const struct {
    const char *component, *members; /* of tokenizer.json; the member of a Sequence */
    const struct dt_step_type *const *types;
} kinds[] = {
    [DT_STEPS_NORMALIZER] = {"normalizer", "normalizers", normalizers},
    [DT_STEPS_PRE_TOKENIZER] = {"pre_tokenizer", "pretokenizers", pre_tokenizers},
    [DT_STEPS_DECODER] = {"decoder", "decoders", decoders},
};

/* --- reading and writing -----------------------------------------------------------------------
 */

static int read_step(struct dt_steps *steps, enum dt_steps_kind kind, const char *name,
                     struct json_object *component, const char *path, struct dt_error *err)
{
    const struct dt_step_type *const *type = kinds[kind].types;
    while (*type && strcmp((*type)->name, name) != 0)
        type++;
    if (*type == NULL)
        return dt_fail(err, DT_EFORMAT, "%s: %s %s is not supported", path, kinds[kind].component,
                       name);
    DT_GROW(steps->items, steps->count, steps->capacity);
    struct dt_step *step = &steps->items[steps->count++];
    *step = (struct dt_step){.type = *type, .json = json_object_get(component)};
    char *location = dt_asprintf("%s: %s %s", path, kinds[kind].component, name);
    int rc = dt_step_check_flags(component, location, err);
    rc = rc == 0 && (*type)->read ? (*type)->read(&step->data, component, location, err) : rc;
    free(location);
    return rc;
}

static int read_nested(struct dt_steps *steps, enum dt_steps_kind kind,
                       struct json_object *component, int depth, const char *path,
                       struct dt_error *err)
{
    struct json_object *members;
    const char *name;
    if (component == NULL)
        return 0;
    if (!json_object_is_type(component, json_type_object))
        return dt_fail(err, DT_EFORMAT, "%s: %s: expected an object with a \"type\"", path,
                       kinds[kind].component);
    DT_TRY(dt_json_get_string(component, "type", path, &name, err));
    if (strcmp(name, "Sequence") != 0)
        return read_step(steps, kind, name, component, path, err);
    if (depth == NESTING)
        return dt_fail(err, DT_EFORMAT, "%s: %s: more than %d nested Sequences", path,
                       kinds[kind].component, NESTING);
    DT_TRY(dt_json_get(component, kinds[kind].members, json_type_array, path, &members, err));
    for (size_t i = 0; i < json_object_array_length(members); i++)
        DT_TRY(
            read_nested(steps, kind, json_object_array_get_idx(members, i), depth + 1, path, err));
    return 0;
}

int dt_steps_read(struct dt_steps *steps, enum dt_steps_kind kind, struct json_object *component,
                  const char *path, struct dt_error *err)
{
    return read_nested(steps, kind, component, 0, path, err);
}

void dt_steps_insert(struct dt_steps *steps, size_t index, const struct dt_step_type *type)
{
    DT_GROW(steps->items, steps->count, steps->capacity);
    memmove(&steps->items[index + 1], &steps->items[index],
            (steps->count++ - index) * sizeof *steps->items);
    steps->items[index] = (struct dt_step){.type = type};
}

void dt_steps_release(struct dt_steps *steps)
{
    for (size_t i = 0; i < steps->count; i++) {
        void (*release)(void *) = steps->items[i].type->release;
        (release ? release : free)(steps->items[i].data);
        json_object_put(steps->items[i].json);
    }
    free(steps->items);
    *steps = (struct dt_steps){NULL, 0, 0};
}

void dt_steps_write(const struct dt_steps *steps, enum dt_steps_kind kind, struct dt_buffer *json)
{
    if (steps->count == 0)
        dt_buffer_add_string(json, "null");
    if (steps->count > 1)
        dt_buffer_printf(json, "{\"type\": \"Sequence\", \"%s\": [", kinds[kind].members);
    for (size_t i = 0; i < steps->count; i++) {
        if (steps->items[i].json == NULL)
            continue;
        dt_buffer_add_string(json, i ? ",\n    " : "");
        dt_json_add_value(json, steps->items[i].json, DT_JSON_COMPACT);
    }
    dt_buffer_add_string(json, steps->count > 1 ? "]}" : "");
}

bool dt_steps_are_only(const struct dt_steps *steps, const char *name)
{
    return steps->count == 1 && strcmp(steps->items[0].type->name, name) == 0;
}

bool dt_steps_cut_words(const struct dt_steps *steps, struct dt_word_cuts *cuts)
{
    for (size_t i = 0; i < steps->count; i++) {
        const struct dt_step *step = &steps->items[i];
        bool joined = cuts->joins_lines;
        if (step->type->cut == NULL || !step->type->cut(step->data, cuts))
            return false;
        cuts->joins_lines = i == 0 ? cuts->joins_lines : joined;
    }
    return true;
}

/* --- applying ----------------------------------------------------------------------------------
 */

void dt_steps_normalize(const struct dt_steps *steps, struct dt_traced_text *text,
                        struct dt_traced_text *spare)
{
    for (size_t i = 0; i < steps->count && text->bytes.size > 0; i++) {
        spare->keep_origins = text->keep_origins;
        spare->continues = text->continues;
        spare->continued = text->continued;
        dt_traced_text_clear(spare);
        if (!steps->items[i].type->normalize(steps->items[i].data, text, spare))
            continue;
        struct dt_traced_text swapped = *text;
        *text = *spare;
        *spare = swapped;
    }
}

/* Whether a piece is at the start of the document, by its origin if that is kept: text that was
 * removed before it counts, as in `tokenizers`. */
static bool is_first(const struct dt_pieces *p, struct dt_span piece)
{
    if (!p->text.keep_origins)
        return p->first && piece.start == 0;
    return dt_traced_text_origin_at(&p->text, piece.start).start == 0;
}

bool dt_steps_need_origins(const struct dt_steps *splitter)
{
    for (size_t i = 0; i < splitter->count; i++) {
        const struct dt_metaspace *m = splitter->items[i].data;
        if (splitter->items[i].type == &dt_pre_tokenizer_metaspace &&
            m->prepend == DT_METASPACE_FIRST)
            return true;
    }
    return false;
}

/* Edits each piece of p into out. */
static void edit_pieces(const struct dt_step *step, const struct dt_pieces *p,
                        struct dt_pieces *out)
{
    for (size_t i = 0; i < p->count; i++) {
        size_t from = out->text.bytes.size;
        step->type->edit(step->data, &p->text, p->items[i], is_first(p, p->items[i]), &out->text);
        dt_pieces_add(out, from, out->text.bytes.size);
    }
}

static void swap(struct dt_pieces *a, struct dt_pieces *b)
{
    struct dt_pieces swapped = *a;
    *a = *b;
    *b = swapped;
}

static void clear(struct dt_pieces *p, const struct dt_pieces *like)
{
    p->text.keep_origins = like->text.keep_origins;
    p->first = like->first;
    p->count = 0;
    dt_traced_text_clear(&p->text);
}

/* Splits each piece of p, whose text moves to spare and back. */
static void split_pieces(const struct dt_step *step, struct dt_pieces *p, struct dt_pieces *spare)
{
    struct dt_traced_text text = spare->text;
    spare->text = p->text;
    for (size_t i = 0; i < p->count; i++)
        step->type->split(step->data, p->items[i], spare);
    p->text = text;
    swap(p, spare);
}

void dt_steps_split(const struct dt_steps *steps, struct dt_pieces *p, struct dt_pieces *spare)
{
    for (size_t i = 0; i < steps->count; i++) {
        const struct dt_step *step = &steps->items[i];
        clear(spare, p);
        if (step->type->edit) {
            edit_pieces(step, p, spare);
            swap(p, spare);
            clear(spare, p);
        }
        if (step->type->split)
            split_pieces(step, p, spare);
    }
}

void dt_steps_decode(const struct dt_steps *steps, struct dt_pieces *p, struct dt_pieces *spare)
{
    for (size_t i = 0; i < steps->count; i++) {
        clear(spare, p);
        steps->items[i].type->decode(steps->items[i].data, p, spare);
        swap(p, spare);
    }
}
