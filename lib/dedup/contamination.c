/* SPDX-License-Identifier: MIT */
#include "dedup/contamination.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "io/document.h"
#include "unicode/utf8.h"

#define FIRST_CAPACITY 1024 /* a power of two, as every later one */

struct dt_contamination {
    int n;
    uint64_t *slots; /* open addressing; 0 is an empty one */
    uint64_t capacity;
    struct dt_contamination_size size;
};

static uint64_t *find(uint64_t *slots, uint64_t capacity, uint64_t hash)
{
    uint64_t i = hash;
    while (slots[i & (capacity - 1)] != 0 && slots[i & (capacity - 1)] != hash)
        i++;
    return &slots[i & (capacity - 1)];
}

static void grow(struct dt_contamination *c)
{
    uint64_t capacity = c->capacity ? 2 * c->capacity : FIRST_CAPACITY;
    uint64_t *slots = dt_alloc(capacity, sizeof *slots);
    for (uint64_t i = 0; i < c->capacity; i++)
        if (c->slots[i])
            *find(slots, capacity, c->slots[i]) = c->slots[i];
    free(c->slots);
    c->slots = slots;
    c->capacity = capacity;
}

static void add(struct dt_contamination *c, uint64_t hash)
{
    hash |= hash == 0;
    if (2 * c->size.sequences >= c->capacity)
        grow(c);
    uint64_t *slot = find(c->slots, c->capacity, hash);
    c->size.sequences += *slot == 0;
    *slot = hash;
}

static void add_text(struct dt_contamination *c, const struct dt_buffer *text,
                     struct dt_shingles *shingles, struct dt_buffer *repaired)
{
    dt_buffer_clear(repaired);
    dt_utf8_repair(text->data, text->size, repaired);
    dt_shingles_find(shingles, c->n, repaired->data, repaired->size);
    c->size.texts++;
    c->size.too_short += shingles->count == 0;
    for (size_t i = 0; i < shingles->count; i++)
        add(c, shingles->items[i]);
}

static int read_texts(struct dt_contamination *c, struct dt_documents *docs, struct dt_error *err)
{
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_shingles shingles = {0};
    struct dt_buffer repaired = DT_BUFFER_EMPTY;
    int rc;
    while ((rc = dt_documents_next(docs, &doc, err)) > 0)
        if (doc.text.size > 0)
            add_text(c, &doc.text, &shingles, &repaired);
    dt_document_release(&doc);
    dt_shingles_release(&shingles);
    dt_buffer_release(&repaired);
    return rc;
}

int dt_contamination_read(struct dt_contamination **result, int n, char *const *paths, int count,
                          const char *field, struct dt_error *err)
{
    const struct dt_documents_options options = {.field = field, .field_is_optional = true};
    struct dt_contamination *c = dt_alloc(1, sizeof *c);
    struct dt_documents *docs = NULL;
    *result = NULL;
    c->n = n;
    int rc = dt_documents_open(&docs, paths, count, &options, err);
    if (rc == 0)
        rc = read_texts(c, docs, err);
    if (rc == 0 && c->size.sequences == 0)
        rc = dt_fail(err, DT_EFORMAT, "no evaluation text has %d words", n);
    dt_documents_close(docs);
    if (rc < 0) {
        dt_contamination_free(c);
        return rc;
    }
    *result = c;
    return 0;
}

void dt_contamination_free(struct dt_contamination *c)
{
    if (c == NULL)
        return;
    free(c->slots);
    free(c);
}

uint64_t dt_contamination_count(const struct dt_contamination *c, const char *text, size_t size,
                                struct dt_shingles *scratch)
{
    uint64_t count = 0;
    dt_shingles_find(scratch, c->n, text, size);
    for (size_t i = 0; i < scratch->count; i++) {
        uint64_t hash = scratch->items[i] | (scratch->items[i] == 0);
        count += *find(c->slots, c->capacity, hash) == hash;
    }
    return count;
}

struct dt_contamination_size dt_contamination_size(const struct dt_contamination *c)
{
    struct dt_contamination_size size = c->size;
    size.bytes = c->capacity * sizeof *c->slots;
    return size;
}
