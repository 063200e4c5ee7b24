/* SPDX-License-Identifier: MIT */
/* The pre-tokenizers ByteLevel and Metaspace, which edit pieces. */
#include <string.h>

#include "pretokenize/pattern.h"
#include "steps/sentencepiece-pieces.h"
#include "steps/step-parameters.h"
#include "steps/steps-internal.h"

/* --- ByteLevel: the vocabulary is in the byte-level alphabet -----------------------------------
 */

static int read_byte_level(void **data, struct json_object *component, const char *path,
                           struct dt_error *err)
{
    struct dt_byte_level *b = *data = dt_alloc(1, sizeof *b);
    (void)path;
    (void)err;
    b->prefix_space = dt_step_flag(component, "add_prefix_space", true);
    b->pattern = dt_step_flag(component, "use_regex", true) ? dt_pattern_find("gpt2") : NULL;
    return 0;
}

static void edit_byte_level(const void *data, const struct dt_traced_text *in, struct dt_span piece,
                            bool first, struct dt_traced_text *out)
{
    const struct dt_byte_level *b = data;
    (void)first;
    if (b->prefix_space && in->bytes.data[piece.start] != ' ')
        dt_traced_text_add(out, " ", 1, dt_traced_text_origin_at(in, piece.start));
    dt_traced_text_copy(out, in, piece.start, piece.end);
}

static void split_byte_level(const void *data, struct dt_span piece, struct dt_pieces *out)
{
    const struct dt_byte_level *b = data;
    if (b->pattern)
        dt_pre_tokenizers_split_by(b->pattern, piece, out);
    else
        dt_pieces_add(out, piece.start, piece.end);
}

static bool cut_byte_level(const void *data, struct dt_word_cuts *cuts)
{
    const struct dt_byte_level *b = data;
    cuts->separates = cuts->separates || b->pattern;
    return cuts->start == DT_WORD_START_SPACE;
}

const struct dt_step_type dt_pre_tokenizer_byte_level = {.name = "ByteLevel",
                                                         .read = read_byte_level,
                                                         .edit = edit_byte_level,
                                                         .split = split_byte_level,
                                                         .cut = cut_byte_level};

/* --- Metaspace ---------------------------------------------------------------------------------
 */

static bool starts_with(const char *text, size_t size, const char *prefix)
{
    size_t length = strlen(prefix);
    return size >= length && memcmp(text, prefix, length) == 0;
}

static void edit_metaspace(const void *data, const struct dt_traced_text *in, struct dt_span piece,
                           bool first, struct dt_traced_text *out)
{
    const struct dt_metaspace *m = data;
    const char *text = in->bytes.data, *p = text + piece.start, *end = text + piece.end;
    size_t size = strlen(m->replacement);
    bool prepends =
        m->prepend == DT_METASPACE_ALWAYS || (m->prepend == DT_METASPACE_FIRST && first);
    if (prepends && *p != ' ' && !starts_with(p, (size_t)(end - p), m->replacement))
        dt_traced_text_add(out, m->replacement, size, dt_traced_text_origin_at(in, piece.start));
    for (const char *space; p < end; p = space + 1) {
        space = memchr(p, ' ', (size_t)(end - p));
        size_t from = (size_t)(p - text), to = (size_t)((space ? space : end) - text);
        dt_traced_text_copy(out, in, from, to);
        if (space == NULL)
            return;
        dt_traced_text_add(out, m->replacement, size, dt_traced_text_origin(in, to, to + 1));
    }
}

/* A piece starts at each mark. */
static void split_metaspace(const void *data, struct dt_span piece, struct dt_pieces *out)
{
    const struct dt_metaspace *m = data;
    const char *text = out->text.bytes.data;
    size_t size = strlen(m->replacement), from = piece.start;
    for (size_t at = from; m->split && at < piece.end;) {
        const char *p = memmem(text + at, piece.end - at, m->replacement, size);
        if (p == NULL)
            break;
        dt_pieces_add(out, from, (size_t)(p - text));
        from = (size_t)(p - text);
        at = from + size;
    }
    dt_pieces_add(out, from, piece.end);
}

static bool cut_metaspace(const void *data, struct dt_word_cuts *cuts)
{
    const struct dt_metaspace *m = data;
    cuts->separates = cuts->separates || m->split;
    cuts->start = DT_WORD_START_MARK;
    return strcmp(m->replacement, DT_SENTENCEPIECE_MARK) == 0;
}

const struct dt_step_type dt_pre_tokenizer_metaspace = {.name = "Metaspace",
                                                        .read = dt_metaspace_read,
                                                        .edit = edit_metaspace,
                                                        .split = split_metaspace,
                                                        .cut = cut_metaspace};
