/* SPDX-License-Identifier: MIT */
/* The decoder of SentencePiece models: the mark U+2581 becomes a space, except that of the dummy
 * prefix; byte pieces become bytes. Control symbols keep their text. */
#include <stdlib.h>
#include <string.h>

#include "steps/sentencepiece-pieces.h"
#include "steps/steps-internal.h"

struct rules {
    bool strips_one, strips_all; /* marks before the first character */
    bool byte_fallback;
    const char *unknown, *surface; /* of the step's JSON */
    struct json_object *controls;  /* {"<s>": true} */
};

static int read_rules(void **data, struct json_object *component, const char *path,
                      struct dt_error *err)
{
    struct rules *r = *data = dt_alloc(1, sizeof *r);
    r->strips_all = dt_step_flag(component, "remove_extra_whitespaces", true);
    r->strips_one = dt_step_flag(component, "add_dummy_prefix", true);
    r->byte_fallback = dt_step_flag(component, "byte_fallback", false);
    DT_TRY(dt_json_get_string(component, "unknown", path, &r->unknown, err));
    DT_TRY(dt_json_get_string(component, "unknown_surface", path, &r->surface, err));
    return dt_json_get(component, "control_symbols", json_type_object, path, &r->controls, err);
}

/* Appends a piece without the marks that were not in the text. Returns whether one was left out
 * and more must stay. */
static bool add_piece(const struct rules *r, const char *piece, size_t size, bool begins,
                      struct dt_buffer *out)
{
    static const size_t mark = sizeof DT_SENTENCEPIECE_MARK - 1;
    bool stripped = begins && (r->strips_one || r->strips_all) && size >= mark &&
                    memcmp(piece, DT_SENTENCEPIECE_MARK, mark) == 0;
    const char *end = piece + size;
    piece += stripped ? mark : 0;
    for (const char *at; (at = memmem(piece, (size_t)(end - piece), DT_SENTENCEPIECE_MARK, mark));
         piece = at + mark) {
        dt_buffer_append(out, piece, (size_t)(at - piece));
        dt_buffer_add_char(out, ' ');
    }
    dt_buffer_append(out, piece, (size_t)(end - piece));
    return stripped && !r->strips_all;
}

static void decode(const void *data, const struct dt_pieces *in, struct dt_pieces *out)
{
    const struct rules *r = data;
    struct dt_buffer *text = &out->text.bytes;
    bool empty = true, stripped = false;
    for (size_t i = 0; i < in->count; i++) {
        const char *bytes = in->text.bytes.data + in->items[i].start;
        size_t size = in->items[i].end - in->items[i].start, from = text->size;
        char *piece = dt_strndup(bytes, size);
        int byte = r->byte_fallback ? dt_sentencepiece_byte(bytes, size) : -1;
        bool control = json_object_object_get_ex(r->controls, piece, NULL);
        if (byte >= 0)
            dt_buffer_add_char(text, (char)byte);
        else if (control || strcmp(piece, r->unknown) == 0)
            dt_buffer_add_string(text, control ? piece : r->surface);
        else
            stripped = add_piece(r, bytes, size, empty && !stripped, text) || stripped;
        empty = empty && (control || text->size == from);
        free(piece);
        dt_pieces_add_token(out, from, text->size);
    }
}

const struct dt_step_type dt_decoder_sentencepiece = {
    .name = "SentencePiece", .read = read_rules, .decode = decode};
