/* SPDX-License-Identifier: MIT */
/* The types of pre-tokenizers. */
#include <string.h>

#include "pretokenize/pattern.h"
#include "token/step-parameters.h"
#include "token/steps-internal.h"

static void split_by_pattern(const struct dt_pattern *pattern, struct dt_span piece,
                             struct dt_pieces *out)
{
    const unsigned char *text = (const unsigned char *)out->text.bytes.data;
    size_t ends[DT_SPLIT_MIN_CAPACITY];
    for (size_t from = piece.start; from < piece.end;) {
        size_t n = pattern->split(text + from, text + piece.end, ends, DT_SPLIT_MIN_CAPACITY);
        for (size_t i = 0; i < n; i++)
            dt_pieces_add(out, i ? from + ends[i - 1] : from, from + ends[i]);
        from += ends[n - 1];
    }
}

/* --- ByteLevel: the vocabulary is in the byte-level alphabet -----------------------------------
 */

struct byte_level {
    bool prefix_space;
    const struct dt_pattern *pattern; /* NULL: does not split */
};

static int read_byte_level(void **data, struct json_object *component, const char *path,
                           struct dt_error *err)
{
    struct byte_level *b = *data = dt_alloc(1, sizeof *b);
    (void)path;
    (void)err;
    b->prefix_space = dt_step_flag(component, "add_prefix_space", true);
    b->pattern = dt_step_flag(component, "use_regex", true) ? dt_pattern_find("gpt2") : NULL;
    return 0;
}

static void edit_byte_level(const void *data, const struct dt_traced_text *in, struct dt_span piece,
                            bool first, struct dt_traced_text *out)
{
    const struct byte_level *b = data;
    (void)first;
    if (b->prefix_space && in->bytes.data[piece.start] != ' ')
        dt_traced_text_add(out, " ", 1, dt_traced_text_origin(in, piece.start, piece.start));
    dt_traced_text_copy(out, in, piece.start, piece.end);
}

static void split_byte_level(const void *data, struct dt_span piece, struct dt_pieces *out)
{
    const struct byte_level *b = data;
    if (b->pattern)
        split_by_pattern(b->pattern, piece, out);
    else
        dt_pieces_add(out, piece.start, piece.end);
}

const struct dt_step_type dt_pre_tokenizer_byte_level = {.name = "ByteLevel",
                                                         .read = read_byte_level,
                                                         .edit = edit_byte_level,
                                                         .split = split_byte_level};

/* --- Split -------------------------------------------------------------------------------------
 */

struct split {
    const struct dt_pattern *pattern;
};

static int read_split(void **data, struct json_object *component, const char *path,
                      struct dt_error *err)
{
    struct split *s = *data = dt_alloc(1, sizeof *s);
    struct json_object *regex;
    const char *expression, *behavior;
    DT_TRY(dt_json_get(component, "pattern", json_type_object, path, &regex, err));
    DT_TRY(dt_json_get_string(regex, "Regex", path, &expression, err));
    DT_TRY(dt_json_get_string(component, "behavior", path, &behavior, err));
    if (strcmp(behavior, "Isolated") != 0 || dt_step_flag(component, "invert", false))
        return dt_fail(err, DT_EFORMAT, "%s: a Split that is not isolated is not supported", path);
    s->pattern = dt_pattern_find_regex(expression);
    if (s->pattern == NULL)
        return dt_fail(err, DT_EFORMAT, "%s: pre_tokenizer Split with the pattern %s is not known",
                       path, expression);
    return 0;
}

static void split_split(const void *data, struct dt_span piece, struct dt_pieces *out)
{
    const struct split *s = data;
    split_by_pattern(s->pattern, piece, out);
}

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
        dt_traced_text_add(out, m->replacement, size,
                           dt_traced_text_origin(in, piece.start, piece.start));
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

const struct dt_step_type dt_pre_tokenizer_metaspace = {.name = "Metaspace",
                                                        .read = dt_metaspace_read,
                                                        .edit = edit_metaspace,
                                                        .split = split_metaspace};

const struct dt_step_type dt_pre_tokenizer_split = {
    .name = "Split", .read = read_split, .split = split_split};

bool dt_pre_tokenizers_are_byte_level(const struct dt_steps *steps)
{
    return steps->count > 0 && steps->items[steps->count - 1].type == &dt_pre_tokenizer_byte_level;
}

const struct dt_pattern *dt_pre_tokenizers_find_pattern(const struct dt_steps *steps)
{
    if (!dt_pre_tokenizers_are_byte_level(steps))
        return NULL;
    const struct byte_level *b = steps->items[steps->count - 1].data;
    if (b->prefix_space)
        return NULL;
    if (steps->count == 1)
        return b->pattern;
    if (steps->count > 2 || steps->items[0].type != &dt_pre_tokenizer_split || b->pattern)
        return NULL;
    return ((const struct split *)steps->items[0].data)->pattern;
}
