/* SPDX-License-Identifier: MIT */
/* The normalizers of `tokenizers` that come from SentencePiece. Precompiled: SentencePiece's
 * character map, applied to grapheme clusters of up to 5 bytes as a whole, by the shortest rule
 * that matches, and to the characters of longer ones. */
#include <stdlib.h>
#include <string.h>

#include "encoding/base64.h"
#include "steps/steps-internal.h"
#include "unicode/grapheme.h"
#include "unicode/utf8.h"

#define WHOLE_BYTES 5

int dt_normalizer_read_map(struct dt_character_map **map, struct json_object *component,
                           const char *path, struct dt_error *err)
{
    struct dt_buffer bytes = DT_BUFFER_EMPTY;
    struct json_object *text = json_object_object_get(component, "precompiled_charsmap");
    int rc = 0;
    *map = NULL;
    if (text == NULL)
        return 0;
    if (!json_object_is_type(text, json_type_string) ||
        !dt_base64_decode(dt_json_text(text), (size_t)json_object_get_string_len(text), &bytes))
        rc = dt_fail(err, DT_EFORMAT, "\"precompiled_charsmap\" is not Base64");
    else
        rc = dt_character_map_new(map, bytes.data, bytes.size, err);
    dt_buffer_release(&bytes);
    return rc < 0 ? dt_fail_context(err, "%s", path) : 0;
}

static int read_precompiled(void **data, struct json_object *component, const char *path,
                            struct dt_error *err)
{
    struct dt_character_map *map;
    int rc = dt_normalizer_read_map(&map, component, path, err);
    *data = map;
    return rc;
}

static void release(void *data)
{
    dt_character_map_free(data);
}

/* Replaces bytes from .. to-1 by their rule. False if there is none. */
static bool replace(const struct dt_character_map *map, const struct dt_traced_text *in,
                    size_t from, size_t to, struct dt_traced_text *out)
{
    struct dt_character_map_text text;
    if (dt_character_map_shortest(map, in->bytes.data + from, to - from, &text) == 0)
        return false;
    dt_traced_text_add(out, text.data, text.size, dt_traced_text_origin(in, from, to));
    return true;
}

static void add_cluster(const struct dt_character_map *map, const struct dt_traced_text *in,
                        size_t from, size_t to, struct dt_traced_text *out)
{
    if (to - from <= WHOLE_BYTES && replace(map, in, from, to, out))
        return;
    for (size_t end; from < to; from = end) {
        end = from + dt_utf8_length(in->bytes.data[from]);
        if (!replace(map, in, from, end, out))
            dt_traced_text_copy(out, in, from, end);
    }
}

/* The bytes that no rule matches, each a cluster. */
static size_t plain_run(const struct dt_character_map *map, const char *text, size_t size)
{
    size_t n = 0;
    while (n < size && dt_character_map_keeps(map, (unsigned char)text[n]) && text[n] != '\r')
        n++;
    return n > 0 && n < size && (text[n] & 0x80) ? n - 1 : n;
}

static bool normalize(const void *data, const struct dt_traced_text *in, struct dt_traced_text *out)
{
    const struct dt_character_map *map = data;
    const char *text = in->bytes.data;
    size_t size = in->bytes.size, valid = 0;
    if (map == NULL)
        return false;
    dt_buffer_reserve(&out->bytes, size + 16);
    for (size_t at = 0; at < size;) {
        size_t run = plain_run(map, text + at, size - at);
        dt_traced_text_copy(out, in, at, at + run);
        at += run;
        if (at == size)
            break;
        if (at >= valid)
            valid = at + dt_utf8_valid_prefix(text + at, size - at);
        size_t cluster = at < valid ? dt_grapheme_size(text + at, valid - at) : 1;
        if (at < valid)
            add_cluster(map, in, at, at + cluster, out);
        else
            dt_traced_text_copy(out, in, at, at + 1);
        at += cluster;
    }
    return true;
}

static bool cut(const void *data, struct dt_word_cuts *cuts)
{
    const struct dt_character_map *map = data;
    for (int c = 0; map && c < 128; c++)
        cuts->after[c] = cuts->after[c] && dt_character_map_keeps(map, (unsigned char)c);
    cuts->joins_lines = map && dt_character_map_joins_lines(map);
    return cuts->start == DT_WORD_START_SPACE && (map == NULL || !dt_character_map_has_space(map));
}

const struct dt_step_type dt_normalizer_precompiled = {.name = "Precompiled",
                                                       .read = read_precompiled,
                                                       .release = release,
                                                       .normalize = normalize,
                                                       .cut = cut};

/* --- Nmt: SentencePiece's rules for white space and control characters -------------------------
 */

static bool is_dropped(uint32_t c)
{
    return (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f ||
           c == 0x9f;
}

static bool is_space(uint32_t c)
{
    return c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == 0x1680 ||
           (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
           c == 0xfeff || c == 0xfffd;
}

static bool normalize_nmt(const void *data, const struct dt_traced_text *in,
                          struct dt_traced_text *out)
{
    const char *text = in->bytes.data;
    size_t done = 0, size = in->bytes.size;
    (void)data;
    for (size_t at = 0, length; at < size; at += length) {
        uint32_t code = 0;
        length = dt_utf8_next(text + at, size - at, &code);
        length = length ? length : 1;
        if (!is_dropped(code) && !is_space(code))
            continue;
        dt_traced_text_copy(out, in, done, at);
        done = at + length;
        if (is_space(code))
            dt_traced_text_add(out, " ", 1, dt_traced_text_origin(in, at, done));
    }
    dt_traced_text_copy(out, in, done, size);
    return done > 0;
}

/* A mark becomes a space. */
static bool cut_nmt(const void *data, struct dt_word_cuts *cuts)
{
    (void)data;
    cuts->joins_lines = true;
    return cuts->start == DT_WORD_START_SPACE;
}

const struct dt_step_type dt_normalizer_nmt = {
    .name = "Nmt", .normalize = normalize_nmt, .cut = cut_nmt};
