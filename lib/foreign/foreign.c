/* SPDX-License-Identifier: MIT */
#include "foreign/foreign.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/foreign-internal.h"

struct dt_foreign {
    const struct dt_foreign_format *format;
    void *state;
};

static struct dt_foreign *new_foreign(const char *name)
{
#define FORMAT(name) &dt_foreign_##name,
    const struct dt_foreign_format *const formats[] = {DT_FOREIGN_FORMATS(FORMAT)};
    struct dt_foreign *f = dt_alloc(1, sizeof *f);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i]->name, name) == 0)
            f->format = formats[i];
    assert(f->format);
    f->state = dt_alloc(1, f->format->state_size);
    return f;
}

/* Sets *result to f, or frees f after an error. */
static int return_or_free(struct dt_foreign **result, struct dt_foreign *f, int rc)
{
    *result = rc < 0 ? NULL : f;
    if (rc < 0)
        dt_foreign_free(f);
    return rc;
}

int dt_foreign_create(struct dt_foreign **result, const char *format, const char *path,
                      const struct dt_shard_info *info, struct dt_error *err)
{
    struct dt_foreign *f = new_foreign(format);
    return return_or_free(result, f, f->format->create(f->state, path, info, err));
}

int dt_foreign_add(struct dt_foreign *f, const uint32_t *ids, size_t count, struct dt_error *err)
{
    return f->format->add(f->state, ids, count, err);
}

int dt_foreign_finish(struct dt_foreign *f, struct dt_error *err)
{
    return f->format->finish(f->state, err);
}

int dt_foreign_open(struct dt_foreign **result, const char *format, const char *path, uint32_t eot,
                    struct dt_error *err)
{
    struct dt_foreign *f = new_foreign(format);
    return return_or_free(result, f, f->format->open(f->state, path, eot, err));
}

int dt_foreign_next(struct dt_foreign *f, struct dt_ids *ids, struct dt_error *err)
{
    ids->count = 0;
    return f->format->next(f->state, ids, err);
}

void dt_foreign_free(struct dt_foreign *f)
{
    if (f == NULL)
        return;
    f->format->release(f->state);
    free(f->state);
    free(f);
}

void dt_foreign_put_ids(struct dt_buffer *b, const uint32_t *ids, size_t count,
                        uint32_t token_bytes)
{
    dt_buffer_reserve(b, b->size + count * token_bytes);
    for (size_t i = 0; i < count; i++) { /* little-endian, as base/platform.h asserts */
        memcpy(b->data + b->size, &ids[i], token_bytes);
        b->size += token_bytes;
    }
}

int dt_foreign_get_ids(struct dt_ids *ids, const void *from, size_t count, uint32_t width,
                       struct dt_error *err)
{
    const char *p = from;
    dt_ids_reserve(ids, ids->count + count);
    for (size_t i = 0; i < count; i++, p += width) {
        uint64_t id = 0;
        memcpy(&id, p, width);
        if (id > INT32_MAX)
            return dt_fail(err, DT_EFORMAT,
                           "contains a number above 2147483647, which is not a token id");
        ids->data[ids->count++] = (uint32_t)id;
    }
    return 0;
}
