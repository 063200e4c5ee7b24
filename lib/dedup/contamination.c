/* SPDX-License-Identifier: MIT */
#include "dedup/contamination.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "document/document.h"
#include "unicode/utf8.h"

#define FIRST_CAPACITY 1024 /* a power of two, as every later one */

/* An evaluation text, and a sequence of it. */
struct item {
    char *id;
    uint64_t sequences;
    _Atomic uint64_t documents, overlaps, most;
};

struct entry {
    uint64_t hash, item;
};

struct dt_contamination {
    int n;
    bool by_item;
    struct item *items;
    struct entry *entries; /* by hash and item, without repetitions */
    uint64_t item_count, item_capacity, entry_count, entry_capacity;
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

/* Records the sequences of a text as those of an item. */
static void add_item(struct dt_contamination *c, const struct dt_buffer *id,
                     const struct dt_shingles *shingles)
{
    struct dt_buffer name = DT_BUFFER_EMPTY;
    dt_utf8_repair(id->data, id->size, &name);
    dt_buffer_add_char(&name, '\0');
    DT_GROW(c->items, c->item_count, c->item_capacity);
    c->items[c->item_count] = (struct item){.id = name.data};
    for (size_t i = 0; i < shingles->count; i++) {
        DT_GROW(c->entries, c->entry_count, c->entry_capacity);
        c->entries[c->entry_count++] = (struct entry){shingles->items[i], c->item_count};
    }
    c->item_count++;
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

/* Sorts the entries, removes repetitions, and counts those of each item. */
static void settle_entries(struct dt_contamination *c)
{
    uint64_t kept = 0;
    if (c->entry_count > 0)
        qsort(c->entries, c->entry_count, sizeof *c->entries, compare_entries);
    for (uint64_t i = 0; i < c->entry_count; i++) {
        if (kept > 0 && compare_entries(&c->entries[i], &c->entries[kept - 1]) == 0)
            continue;
        c->entries[kept++] = c->entries[i];
        c->items[c->entries[i].item].sequences++;
    }
    c->entry_count = kept;
}

static void add_text(struct dt_contamination *c, const struct dt_buffer *id,
                     const struct dt_buffer *text, struct dt_shingles *shingles,
                     struct dt_buffer *repaired)
{
    dt_buffer_clear(repaired);
    dt_utf8_repair(text->data, text->size, repaired);
    dt_shingles_find(shingles, c->n, repaired->data, repaired->size);
    c->size.texts++;
    c->size.too_short += shingles->count == 0;
    for (size_t i = 0; i < shingles->count; i++)
        add(c, shingles->items[i]);
    if (c->by_item)
        add_item(c, id, shingles);
}

static int read_texts(struct dt_contamination *c, struct dt_documents *docs, struct dt_error *err)
{
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_shingles shingles = {0};
    struct dt_buffer repaired = DT_BUFFER_EMPTY;
    int rc;
    while ((rc = dt_documents_next(docs, &doc, err)) > 0)
        if (doc.text.size > 0)
            add_text(c, &doc.id, &doc.text, &shingles, &repaired);
    dt_document_release(&doc);
    dt_shingles_release(&shingles);
    dt_buffer_release(&repaired);
    return rc;
}

int dt_contamination_read(struct dt_contamination **result,
                          const struct dt_contamination_options *how, char *const *paths, int count,
                          struct dt_error *err)
{
    const struct dt_documents_options options = {.field = how->field, .field_is_optional = true};
    struct dt_contamination *c = dt_alloc(1, sizeof *c);
    struct dt_documents *docs = NULL;
    *result = NULL;
    c->n = how->n;
    c->by_item = how->by_item;
    int rc = dt_documents_open(&docs, paths, count, &options, err);
    if (rc == 0)
        rc = read_texts(c, docs, err);
    if (rc == 0 && c->size.sequences == 0)
        rc = dt_fail(err, DT_EFORMAT, "no evaluation text has %d words", c->n);
    settle_entries(c);
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
    for (uint64_t i = 0; i < c->item_count; i++)
        free(c->items[i].id);
    free(c->items);
    free(c->entries);
    free(c->slots);
    free(c);
}

/* --- counting --------------------------------------------------------------------------------- */

/* The first entry with this hash. */
static uint64_t find_entry(const struct dt_contamination *c, uint64_t hash)
{
    uint64_t low = 0, high = c->entry_count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (c->entries[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Sequences of a document that items have; sorted, those of an item follow each other. */
struct hits {
    struct entry *entries; /* item first: compared as (item, hash) */
    uint64_t count, capacity;
};

static int compare_hits(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static void add_hits(const struct dt_contamination *c, uint64_t hash, struct hits *hits)
{
    for (uint64_t i = find_entry(c, hash); i < c->entry_count && c->entries[i].hash == hash; i++) {
        DT_GROW(hits->entries, hits->count, hits->capacity);
        hits->entries[hits->count++] = c->entries[i];
    }
}

/* Adds the hits of one item, `count` of them. */
static void count_item(struct item *item, const struct entry *hits, uint64_t count)
{
    uint64_t distinct = 0, most = item->most;
    for (uint64_t i = 0; i < count; i++)
        distinct += i == 0 || hits[i].hash != hits[i - 1].hash;
    item->documents++;
    item->overlaps += count;
    while (most < distinct && !atomic_compare_exchange_weak(&item->most, &most, distinct))
        ;
}

static void count_items(const struct dt_contamination *c, struct hits *hits)
{
    if (hits->count > 0)
        qsort(hits->entries, hits->count, sizeof *hits->entries, compare_hits);
    for (uint64_t i = 0, n; i < hits->count; i += n) {
        n = 1;
        while (i + n < hits->count && hits->entries[i + n].item == hits->entries[i].item)
            n++;
        count_item(&c->items[hits->entries[i].item], hits->entries + i, n);
    }
}

uint64_t dt_contamination_count(const struct dt_contamination *c, const char *text, size_t size,
                                struct dt_shingles *scratch)
{
    uint64_t count = 0;
    struct hits hits = {0};
    dt_shingles_find(scratch, c->n, text, size);
    for (size_t i = 0; i < scratch->count; i++) {
        uint64_t hash = scratch->items[i] | (scratch->items[i] == 0);
        if (*find(c->slots, c->capacity, hash) != hash)
            continue;
        count++;
        if (c->by_item)
            add_hits(c, scratch->items[i], &hits);
    }
    count_items(c, &hits);
    free(hits.entries);
    return count;
}

bool dt_contamination_item(const struct dt_contamination *c, uint64_t index,
                           struct dt_contamination_item *item)
{
    if (index >= c->item_count)
        return false;
    const struct item *from = &c->items[index];
    *item = (struct dt_contamination_item){.id = from->id,
                                           .sequences = from->sequences,
                                           .documents = from->documents,
                                           .overlaps = from->overlaps,
                                           .most = from->most};
    return true;
}

struct dt_contamination_size dt_contamination_size(const struct dt_contamination *c)
{
    struct dt_contamination_size size = c->size;
    size.bytes = c->capacity * sizeof *c->slots + c->entry_capacity * sizeof *c->entries;
    return size;
}
