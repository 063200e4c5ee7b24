/* SPDX-License-Identifier: MIT */
#include "token/bpe.h"

#include <stdlib.h>
#include <string.h>

#define SHORT_PIECE 48 /* bytes up to which a linear scan is faster than a heap */
#define NONE        UINT32_MAX

/* A node of the linked list of symbols of a long piece. rank is the rank of the pair with the
 * next symbol. */
struct dt_bpe_symbol {
    uint32_t id, rank, previous, next;
};

void dt_bpe_work_release(struct dt_bpe_work *w)
{
    free(w->symbols);
    free(w->heap);
    *w = (struct dt_bpe_work){NULL, NULL, 0};
}

static size_t encode_short(const struct dt_tokenizer *t, const unsigned char *piece, size_t size,
                           uint32_t *ids)
{
    uint32_t ranks[SHORT_PIECE];
    for (size_t i = 0; i < size; i++)
        ids[i] = t->byte_ids[piece[i]];
    for (size_t i = 0; i + 1 < size; i++)
        ranks[i] = t->byte_pairs[piece[i] << 8 | piece[i + 1]];
    while (size > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < size; i++)
            best = ranks[i] < ranks[best] ? i : best;
        if (ranks[best] == DT_NO_RANK)
            break;
        ids[best] = t->results[ranks[best]];
        size--;
        for (size_t i = best + 1; i < size; i++) {
            ids[i] = ids[i + 1];
            ranks[i - 1] = ranks[i];
        }
        if (best > 0)
            ranks[best - 1] = dt_vocabulary_pair_rank(t, ids[best - 1], ids[best]);
        if (best + 1 < size)
            ranks[best] = dt_vocabulary_pair_rank(t, ids[best], ids[best + 1]);
    }
    return size;
}

/* The heap holds rank << 32 | position: its minimum is the next merge. An entry is stale if
 * the rank of its symbol has changed. */
static void sift_down(uint64_t *heap, size_t count, size_t i)
{
    uint64_t moving = heap[i];
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        child += child + 1 < count && heap[child + 1] < heap[child];
        if (heap[child] >= moving)
            break;
        heap[i] = heap[child];
    }
    heap[i] = moving;
}

static void push(uint64_t *heap, size_t *count, uint64_t entry)
{
    size_t i = (*count)++;
    for (; i > 0 && heap[(i - 1) / 2] > entry; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = entry;
}

static uint64_t pop(uint64_t *heap, size_t *count)
{
    uint64_t least = heap[0];
    heap[0] = heap[--*count];
    if (*count > 0)
        sift_down(heap, *count, 0);
    return least;
}

static void reserve(struct dt_bpe_work *w, size_t size)
{
    if (size <= w->capacity)
        return;
    w->capacity = size;
    w->symbols = dt_realloc(w->symbols, size, sizeof *w->symbols);
    w->heap = dt_realloc(w->heap, 2 * size, sizeof *w->heap); /* a merge pops one, pushes two */
}

static size_t fill_symbols(const struct dt_tokenizer *t, struct dt_bpe_work *w,
                           const unsigned char *piece, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++) {
        uint32_t here = (uint32_t)i;
        uint32_t rank = i + 1 < size ? t->byte_pairs[piece[i] << 8 | piece[i + 1]] : DT_NO_RANK;
        w->symbols[i] = (struct dt_bpe_symbol){t->byte_ids[piece[i]], rank, i ? here - 1 : NONE,
                                               i + 1 < size ? here + 1 : NONE};
        if (rank != DT_NO_RANK)
            w->heap[count++] = (uint64_t)rank << 32 | here;
    }
    for (size_t i = count / 2; i-- > 0;)
        sift_down(w->heap, count, i);
    return count;
}

static void update_rank(const struct dt_tokenizer *t, struct dt_bpe_work *w, size_t *count,
                        uint32_t i)
{
    struct dt_bpe_symbol *s = &w->symbols[i];
    s->rank =
        s->next == NONE ? DT_NO_RANK : dt_vocabulary_pair_rank(t, s->id, w->symbols[s->next].id);
    if (s->rank != DT_NO_RANK)
        push(w->heap, count, (uint64_t)s->rank << 32 | i);
}

static void merge_at(const struct dt_tokenizer *t, struct dt_bpe_work *w, size_t *count, uint32_t i)
{
    struct dt_bpe_symbol *s = &w->symbols[i], *absorbed = &w->symbols[s->next];
    s->id = t->results[s->rank];
    s->next = absorbed->next;
    absorbed->rank = DT_NO_RANK;
    if (s->next != NONE)
        w->symbols[s->next].previous = i;
    update_rank(t, w, count, i);
    if (s->previous != NONE)
        update_rank(t, w, count, s->previous);
}

static size_t encode_long(const struct dt_tokenizer *t, struct dt_bpe_work *w,
                          const unsigned char *piece, size_t size, uint32_t *ids)
{
    reserve(w, size);
    size_t count = fill_symbols(t, w, piece, size), n = 0;
    while (count > 0) {
        uint64_t least = pop(w->heap, &count);
        uint32_t i = (uint32_t)least;
        if (w->symbols[i].rank == least >> 32)
            merge_at(t, w, &count, i);
    }
    for (uint32_t i = 0; i != NONE; i = w->symbols[i].next)
        ids[n++] = w->symbols[i].id;
    return n;
}

size_t dt_bpe_encode(const struct dt_tokenizer *t, struct dt_bpe_work *work,
                     const unsigned char *piece, size_t size, uint32_t *ids)
{
    if (size <= SHORT_PIECE)
        return encode_short(t, piece, size, ids);
    return encode_long(t, work, piece, size, ids);
}
