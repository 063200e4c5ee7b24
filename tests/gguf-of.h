/* SPDX-License-Identifier: MIT */
/* GGUF files, written as text: words, separated by blanks.
 *
 *     KEY=KIND:VALUE            a value: u32, i32, u64, f32, f64, bool or str
 *     KEY=KIND[]:VALUE,VALUE    an array; ~ in a string is a zero byte
 *     NAME@COLUMNS[xROWS][:X]   a tensor of fp32, each element X or 0; of fp16 zeros with h for :X
 */
#ifndef DT_TESTS_GGUF_OF_H
#define DT_TESTS_GGUF_OF_H

#include "scratch.h"

#include <string.h>

#include "base/buffer.h"
#include "gguf/gguf-tokenizer.h"

struct gguf_writing {
    struct dt_gguf_values values;
    struct dt_buffer tensors, data;
    uint64_t tensor_count;
};

static inline enum dt_gguf_kind gguf_kind_of(const char *name)
{
    static const struct {
        const char *name;
        enum dt_gguf_kind kind;
    } kinds[] = {{"u32", DT_GGUF_KIND_U32},   {"i32", DT_GGUF_KIND_I32},
                 {"u64", DT_GGUF_KIND_U64},   {"f32", DT_GGUF_KIND_F32},
                 {"f64", DT_GGUF_KIND_F64},   {"bool", DT_GGUF_KIND_BOOL},
                 {"str", DT_GGUF_KIND_STRING}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].kind;
    fail_msg("'%s' is not a kind", name);
    return DT_GGUF_KIND_COUNT;
}

static inline void gguf_add_one(struct dt_buffer *bytes, enum dt_gguf_kind kind, char *text)
{
    const double real = strtod(text, NULL);
    const float narrow = (float)real;
    const size_t size = strlen(text);
    if (kind == DT_GGUF_KIND_STRING) {
        for (char *zero; (zero = strchr(text, '~')) != NULL;)
            *zero = '\0';
        dt_gguf_add_text(bytes, text, size);
    } else if (kind == DT_GGUF_KIND_F32) {
        dt_buffer_append(bytes, &narrow, sizeof narrow);
    } else if (kind == DT_GGUF_KIND_F64) {
        dt_buffer_append(bytes, &real, sizeof real);
    } else {
        dt_gguf_add_number(bytes, (uint64_t)strtoll(text, NULL, 10),
                           kind == DT_GGUF_KIND_BOOL  ? 1
                           : kind == DT_GGUF_KIND_U64 ? 8
                                                      : 4);
    }
}

static inline void gguf_add_value(struct dt_gguf_values *values, char *key)
{
    char *kind = strchr(key, '=') + 1, *text = strchr(kind, ':') + 1, *array = strchr(kind, '[');
    kind[-1] = text[-1] = '\0';
    if (array == NULL || array > text) {
        dt_gguf_begin_value(values, key, gguf_kind_of(kind));
        gguf_add_one(&values->bytes, gguf_kind_of(kind), text);
        return;
    }
    *array = '\0';
    uint64_t count = *text != '\0';
    for (const char *comma = text; (comma = strchr(comma, ',')) != NULL; comma++)
        count++;
    dt_gguf_begin_value(values, key, DT_GGUF_KIND_ARRAY);
    dt_gguf_add_number(&values->bytes, gguf_kind_of(kind), 4);
    dt_gguf_add_number(&values->bytes, count, 8);
    for (char *one; count > 0 && (one = strsep(&text, ",")) != NULL;)
        gguf_add_one(&values->bytes, gguf_kind_of(kind), one);
}

static inline void gguf_add_tensor(struct gguf_writing *w, char *name)
{
    char *at = strchr(name, '@'), *next;
    uint64_t shape[2] = {strtoull(at + 1, &next, 10), 1};
    const uint32_t rank = *next == 'x' ? 2 : 1;
    if (rank == 2)
        shape[1] = strtoull(next + 1, &next, 10);
    const float x = *next == ':' ? strtof(next + 1, NULL) : 0;
    const bool half = *next == 'h';
    dt_gguf_add_text(&w->tensors, name, (size_t)(at - name));
    dt_gguf_add_number(&w->tensors, rank, 4);
    dt_buffer_append(&w->tensors, shape, rank * sizeof *shape);
    dt_gguf_add_number(&w->tensors, half ? DT_GGUF_CODE_F16 : DT_GGUF_CODE_F32, 4);
    dt_gguf_add_number(&w->tensors, w->data.size, 8);
    for (uint64_t i = 0; i < shape[0] * shape[1]; i++)
        dt_buffer_append(&w->data, &x, half ? 2 : sizeof x);
    while (w->data.size % DT_GGUF_ALIGN != 0)
        dt_buffer_add_char(&w->data, '\0');
    w->tensor_count++;
}

static inline void write_gguf(const char *path, const char *text)
{
    struct gguf_writing w = {{DT_BUFFER_EMPTY, 0}, DT_BUFFER_EMPTY, DT_BUFFER_EMPTY, 0};
    struct dt_buffer file = DT_BUFFER_EMPTY;
    char *copy = dt_strdup(text), *rest = copy;
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;)
        if (strchr(word, '='))
            gguf_add_value(&w.values, word);
        else
            gguf_add_tensor(&w, word);
    dt_gguf_add_number(&file, DT_GGUF_MAGIC, 4);
    dt_gguf_add_number(&file, DT_GGUF_VERSION, 4);
    dt_gguf_add_number(&file, w.tensor_count, 8);
    dt_gguf_add_number(&file, w.values.count, 8);
    dt_buffer_append(&file, w.values.bytes.data, w.values.bytes.size);
    dt_buffer_append(&file, w.tensors.data ? w.tensors.data : "", w.tensors.size);
    while (file.size % DT_GGUF_ALIGN != 0)
        dt_buffer_add_char(&file, '\0');
    dt_buffer_append(&file, w.data.data ? w.data.data : "", w.data.size);
    write_bytes(path, file.data, file.size);
    dt_buffer_release(&w.values.bytes);
    dt_buffer_release(&w.tensors);
    dt_buffer_release(&w.data);
    dt_buffer_release(&file);
    free(copy);
}

#endif
