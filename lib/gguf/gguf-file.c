/* SPDX-License-Identifier: MIT */
#include "gguf/gguf-file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"

/* The offset of the next byte. Every size is compared with the bytes left before it is used. */
struct cursor {
    const char *data;
    size_t size, at;
    const char *path;
    struct dt_error *err;
};

static int bad(const struct cursor *c, const char *reason)
{
    return dt_fail(c->err, DT_EFORMAT, "%s: byte %zu: %s", c->path, c->at, reason);
}

static int take(struct cursor *c, void *to, size_t size)
{
    if (size > c->size - c->at)
        return bad(c, "the file ends too early");
    memcpy(to, c->data + c->at, size);
    c->at += size;
    return 0;
}

static int take_u32(struct cursor *c, uint32_t *x)
{
    return take(c, x, sizeof *x);
}

static int take_u64(struct cursor *c, uint64_t *x)
{
    return take(c, x, sizeof *x);
}

static int take_text(struct cursor *c, struct dt_gguf_text *t)
{
    uint64_t size = 0;
    DT_TRY(take_u64(c, &size));
    if (size > c->size - c->at)
        return bad(c, "a string is longer than the file");
    *t = (struct dt_gguf_text){c->data + c->at, size};
    c->at += size;
    return 0;
}

bool dt_gguf_text_is(struct dt_gguf_text a, const char *b)
{
    return a.size == strlen(b) && memcmp(a.data, b, a.size) == 0;
}

/* No file of another type is opened, as a writer of a FIFO may wait for its reader. */
static bool begins_as_gguf(const char *path)
{
    struct dt_error ignored;
    char magic[4];
    if (!dt_file_is_regular(path))
        return false;
    int fd = dt_file_open(path, &ignored);
    bool begins = fd >= 0 && pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
                  memcmp(magic, "GGUF", sizeof magic) == 0;
    if (fd >= 0)
        close(fd);
    return begins;
}

bool dt_gguf_file_is_named(const char *path)
{
    size_t n = strlen(path), m = strlen(DT_GGUF_SUFFIX);
    return (n > m && strcmp(path + n - m, DT_GGUF_SUFFIX) == 0) || begins_as_gguf(path);
}

/* --- values -----------------------------------------------------------------------------------*/

static const size_t sizes[DT_GGUF_KIND_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static int take_array(struct cursor *c, struct dt_gguf_value *v)
{
    uint32_t kind;
    struct dt_gguf_text text;
    DT_TRY(take_u32(c, &kind));
    DT_TRY(take_u64(c, &v->count));
    if (kind >= DT_GGUF_KIND_COUNT || kind == DT_GGUF_KIND_ARRAY)
        return bad(c, "an array has an invalid element type");
    v->element = (enum dt_gguf_kind)kind;
    v->elements = c->data + c->at;
    size_t least = kind == DT_GGUF_KIND_STRING ? 8 : sizes[kind];
    if (v->count > (c->size - c->at) / least)
        return bad(c, "an array is longer than the file");
    if (kind != DT_GGUF_KIND_STRING) {
        c->at += v->count * least;
        return 0;
    }
    for (uint64_t i = 0; i < v->count; i++)
        DT_TRY(take_text(c, &text));
    return 0;
}

struct dt_gguf_text dt_gguf_next_string(const char **at)
{
    struct dt_gguf_text text = {*at + sizeof(uint64_t), 0};
    memcpy(&text.size, *at, sizeof(uint64_t));
    *at = text.data + text.size;
    return text;
}

static bool is_signed(enum dt_gguf_kind kind)
{
    return kind == DT_GGUF_KIND_I8 || kind == DT_GGUF_KIND_I16 || kind == DT_GGUF_KIND_I32 ||
           kind == DT_GGUF_KIND_I64;
}

static int take_number(struct cursor *c, struct dt_gguf_value *v)
{
    float narrow;
    uint64_t bits = 0;
    unsigned unused = 64 - 8 * (unsigned)sizes[v->kind];
    switch (v->kind) {
    case DT_GGUF_KIND_F32:
        DT_TRY(take(c, &narrow, sizeof narrow));
        v->real = (double)narrow;
        return 0;
    case DT_GGUF_KIND_F64:
        return take(c, &v->real, sizeof v->real);
    default:
        DT_TRY(take(c, &bits, sizes[v->kind]));
        v->whole = is_signed(v->kind) ? (int64_t)(bits << unused) >> unused
                   : bits > INT64_MAX ? INT64_MAX
                                      : (int64_t)bits;
        v->real = (double)v->whole;
        return 0;
    }
}

static int take_value(struct cursor *c, struct dt_gguf_value *v)
{
    uint32_t kind;
    DT_TRY(take_text(c, &v->key));
    DT_TRY(take_u32(c, &kind));
    if (kind >= DT_GGUF_KIND_COUNT)
        return bad(c, "a value has an unknown type");
    v->kind = (enum dt_gguf_kind)kind;
    if (kind == DT_GGUF_KIND_ARRAY)
        return take_array(c, v);
    return kind == DT_GGUF_KIND_STRING ? take_text(c, &v->text) : take_number(c, v);
}

static int compare_values(const void *a, const void *b)
{
    const struct dt_gguf_value *x = a, *y = b;
    size_t n = x->key.size < y->key.size ? x->key.size : y->key.size;
    int order = memcmp(x->key.data, y->key.data, n);
    return order ? order : (x->key.size > y->key.size) - (x->key.size < y->key.size);
}

static int take_values(struct cursor *c, struct dt_gguf_file *f)
{
    if (f->value_count > (c->size - c->at) / 13)
        return bad(c, "the number of values exceeds the size of the file");
    f->values = dt_alloc(f->value_count + 1, sizeof *f->values);
    for (uint64_t i = 0; i < f->value_count; i++)
        DT_TRY(take_value(c, &f->values[i]));
    if (f->value_count > 1)
        qsort(f->values, f->value_count, sizeof *f->values, compare_values);
    for (uint64_t i = 1; i < f->value_count; i++)
        if (compare_values(&f->values[i - 1], &f->values[i]) == 0)
            return bad(c, "a value is given twice");
    return 0;
}

const struct dt_gguf_value *dt_gguf_file_find(const struct dt_gguf_file *f, const char *key)
{
    const struct dt_gguf_value wanted = {.key = {key, strlen(key)}};
    return bsearch(&wanted, f->values, f->value_count, sizeof wanted, compare_values);
}

static int wrong_kind(const struct dt_gguf_file *f, const char *key, const char *expected,
                      struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "%s: %s must be %s", f->path, key, expected);
}

int dt_gguf_file_get_int(const struct dt_gguf_file *f, const char *key, int64_t *value,
                         struct dt_error *err)
{
    const struct dt_gguf_value *v = dt_gguf_file_find(f, key);
    if (v && (v->kind == DT_GGUF_KIND_F32 || v->kind == DT_GGUF_KIND_F64 || sizes[v->kind] == 0))
        return wrong_kind(f, key, "an integer", err);
    if (v)
        *value = v->whole;
    return 0;
}

int dt_gguf_file_get_string(const struct dt_gguf_file *f, const char *key,
                            struct dt_gguf_text *value, struct dt_error *err)
{
    const struct dt_gguf_value *v = dt_gguf_file_find(f, key);
    if (v && v->kind != DT_GGUF_KIND_STRING)
        return wrong_kind(f, key, "a string", err);
    if (v)
        *value = v->text;
    return 0;
}

int dt_gguf_file_get_array(const struct dt_gguf_file *f, const char *key, enum dt_gguf_kind element,
                           const struct dt_gguf_value **value, struct dt_error *err)
{
    *value = dt_gguf_file_find(f, key);
    if (*value && ((*value)->kind != DT_GGUF_KIND_ARRAY || (*value)->element != element))
        return wrong_kind(f, key,
                          element == DT_GGUF_KIND_STRING ? "an array of strings"
                                                         : "an array of numbers of its kind",
                          err);
    return 0;
}

/* --- tensors ----------------------------------------------------------------------------------*/

static int size_tensor(const struct cursor *c, struct dt_gguf_tensor *t, uint32_t code)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(count, t->shape[i], &count) || count > UINT64_MAX / 8)
            return bad(c, "a tensor is too large");
    t->type = dt_gguf_type_of(code);
    if (t->type == NULL)
        return dt_fail(
            c->err, DT_EFORMAT,
            "%s: tensor '%.*s' is of type %s (%u), which dt does not read: convert the file, "
            "for example with: llama-quantize --allow-requantize %s f32.gguf F32",
            c->path, (int)t->name.size, t->name.data, dt_gguf_type_name(code), code, c->path);
    if (t->shape[0] % t->type->block != 0)
        return bad(c, "a row of a quantized tensor must be a multiple of its blocks");
    t->bytes = count / t->type->block * t->type->bytes;
    return 0;
}

static int take_tensor(struct cursor *c, struct dt_gguf_tensor *t)
{
    uint32_t code;
    DT_TRY(take_text(c, &t->name));
    if (t->name.size == 0 || t->name.size >= 64 || memchr(t->name.data, 0, t->name.size))
        return bad(c, "the name of a tensor must have 1 to 63 bytes");
    DT_TRY(take_u32(c, &t->rank));
    if (t->rank < 1 || t->rank > DT_GGUF_MAX_DIMENSIONS)
        return bad(c, "a tensor must have 1 to 4 dimensions");
    for (uint32_t i = 0; i < t->rank; i++)
        DT_TRY(take_u64(c, &t->shape[i]));
    DT_TRY(take_u32(c, &code));
    DT_TRY(take_u64(c, &t->offset));
    return size_tensor(c, t, code);
}

static int compare_offsets(const void *a, const void *b)
{
    const struct dt_gguf_tensor *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* begin: of the data in the file. */
static int check_places(const struct cursor *c, struct dt_gguf_file *f, uint64_t alignment,
                        size_t begin)
{
    uint64_t end = 0, size = c->size - begin;
    if (f->tensor_count > 1)
        qsort(f->tensors, f->tensor_count, sizeof *f->tensors, compare_offsets);
    for (uint64_t i = 0; i < f->tensor_count; i++) {
        struct dt_gguf_tensor *t = &f->tensors[i];
        if (t->offset % alignment != 0)
            return bad(c, "a tensor is not aligned");
        if (t->offset < end)
            return bad(c, "tensors overlap");
        if (t->offset > size || t->bytes > size - t->offset)
            return bad(c, "the file ends before its tensors");
        end = t->offset + t->bytes;
        t->data = c->data + begin + t->offset;
    }
    return 0;
}

static int take_tensors(struct cursor *c, struct dt_gguf_file *f)
{
    int64_t alignment = DT_GGUF_ALIGN;
    DT_TRY(dt_gguf_file_get_int(f, "general.alignment", &alignment, c->err));
    if (alignment < 8 || alignment > 65536 || (alignment & (alignment - 1)) != 0)
        return bad(c, "general.alignment must be a power of two from 8 to 65536");
    if (f->tensor_count > (c->size - c->at) / 33)
        return bad(c, "the number of tensors exceeds the size of the file");
    f->tensors = dt_alloc(f->tensor_count + 1, sizeof *f->tensors);
    for (uint64_t i = 0; i < f->tensor_count; i++)
        DT_TRY(take_tensor(c, &f->tensors[i]));
    size_t begin = (c->at + (size_t)alignment - 1) / (size_t)alignment * (size_t)alignment;
    return check_places(c, f, (uint64_t)alignment, begin < c->size ? begin : c->size);
}

const struct dt_gguf_tensor *dt_gguf_file_find_tensor(const struct dt_gguf_file *f,
                                                      const char *name)
{
    for (uint64_t i = 0; i < f->tensor_count; i++)
        if (dt_gguf_text_is(f->tensors[i].name, name))
            return &f->tensors[i];
    return NULL;
}

/* --- the file ---------------------------------------------------------------------------------*/

static int take_file(struct cursor *c, struct dt_gguf_file *f)
{
    uint32_t magic, version;
    DT_TRY(take_u32(c, &magic));
    if (magic != DT_GGUF_MAGIC)
        return bad(c, "is not a GGUF file");
    DT_TRY(take_u32(c, &version));
    if (version == __builtin_bswap32(DT_GGUF_VERSION))
        return bad(c, "is big-endian; convert it with gguf's gguf_convert_endian.py");
    if (version != DT_GGUF_VERSION)
        return dt_fail(c->err, DT_EFORMAT, "%s: is GGUF version %u; only version 3 is supported",
                       c->path, version);
    DT_TRY(take_u64(c, &f->tensor_count));
    DT_TRY(take_u64(c, &f->value_count));
    DT_TRY(take_values(c, f));
    return take_tensors(c, f);
}

static int map(struct dt_gguf_file *f, struct dt_error *err)
{
    struct stat st;
    int fd = dt_file_open(f->path, err), rc = fd < 0 ? fd : 0;
    if (rc == 0 && fstat(fd, &st) < 0)
        rc = dt_fail_errno(err, "cannot read '%s'", f->path);
    f->size = rc == 0 ? (size_t)st.st_size : 0;
    if (f->size > 0) {
        f->mapped = mmap(NULL, f->size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (f->mapped == MAP_FAILED) {
            f->mapped = NULL;
            rc = dt_fail_errno(err, "cannot read '%s'", f->path);
        }
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

int dt_gguf_file_open(struct dt_gguf_file **file, const char *path, struct dt_error *err)
{
    struct dt_gguf_file *f = *file = dt_alloc(1, sizeof *f);
    f->path = dt_strdup(path);
    int rc = map(f, err);
    struct cursor c = {f->mapped, f->size, 0, path, err};
    rc = rc < 0 ? rc : take_file(&c, f);
    if (rc < 0) {
        dt_gguf_file_close(f);
        *file = NULL;
    }
    return rc;
}

void dt_gguf_file_close(struct dt_gguf_file *f)
{
    if (f == NULL)
        return;
    if (f->mapped)
        munmap((void *)(uintptr_t)f->mapped, f->size);
    free(f->values);
    free(f->tensors);
    free(f->path);
    free(f);
}
