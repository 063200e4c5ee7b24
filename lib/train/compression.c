/* SPDX-License-Identifier: MIT */
#include "train/compression.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/rng.h"

const char *const dt_compressions[] = {"none", "bf16", "topk", "powersgd", NULL};

bool dt_compress_remembers(enum dt_compress kind)
{
    return kind == DT_COMPRESS_TOPK || kind == DT_COMPRESS_POWERSGD;
}

int64_t dt_compression_thin(const struct dt_compression *c, const struct dt_param *p)
{
    bool matrix = p->rank == 2 && p->shape[0] > c->rank && p->shape[1] > c->rank;
    return matrix && c->kind == DT_COMPRESS_POWERSGD ? p->shape[1] * c->rank : 0;
}

void dt_compression_init(struct dt_compression *c, struct dt_comm *comm, struct dt_device *device,
                         const struct dt_table *t, const struct dt_settings *s)
{
    *c = (struct dt_compression){.comm = comm,
                                 .device = device,
                                 .table = t,
                                 .share = s->distributed.compress_share,
                                 .rank = s->distributed.compress_rank};
    if (dt_comm_size(comm) > 1)
        c->kind = (enum dt_compress)s->distributed.compress;
    for (int i = 0; i < t->count; i++)
        c->thin_elements += dt_compression_thin(c, &t->params[i]);
}

/* Of the largest bucket: its numbers, parts of those that this rank owns, and their sum. */
static void lay_out_rounded(struct dt_compression *c, struct dt_arena *arena)
{
    int64_t most = 0, size = dt_comm_size(c->comm);
    for (int b = 0; b < c->table->bucket_count; b++) {
        int64_t n = c->table->buckets[b + 1] - c->table->buckets[b];
        most = n > most && c->kind == DT_COMPRESS_BF16 ? n : most;
    }
    size_t mine = (size_t)((most + size - 1) / size);
    c->rounded = dt_arena_take(arena, (size_t)most * sizeof *c->rounded);
    c->received = dt_arena_take(arena, (size_t)size * mine * sizeof *c->received);
    c->sum = dt_arena_take(arena, mine * sizeof *c->sum);
}

void dt_compression_layout(struct dt_compression *c, struct dt_arena *arena)
{
    size_t elements = dt_compress_remembers(c->kind) ? (size_t)c->table->gradient_elements : 0;
    c->errors = dt_arena_take(arena, elements * sizeof(float));
    c->thin = dt_arena_take(arena, (size_t)c->thin_elements * sizeof(float));
    lay_out_rounded(c, arena);
    if (c->errors == NULL || c->kind != DT_COMPRESS_POWERSGD)
        return;
    for (int64_t i = 0; i < c->thin_elements; i += 4) { /* the same on all ranks */
        struct dt_random bits = dt_random(0, 'Q', (uint64_t)i);
        for (int64_t j = 0; j < 4 && i + j < c->thin_elements; j++)
            c->thin[i + j] = dt_uniform_float(bits.word[j]) - 0.5f;
    }
}

void dt_compression_release(struct dt_compression *c)
{
    free(c->scratch);
    *c = (struct dt_compression){0};
}

void dt_compression_rescale(struct dt_compression *c, double factor)
{
    int64_t n = dt_compress_remembers(c->kind) ? c->table->gradient_elements : 0;
    for (int64_t i = 0; i < n; i++)
        c->errors[i] *= (float)factor;
}

/* --- bf16 ------------------------------------------------------------------------------------- */

/* What the owners of a sum add up, in the order of the ranks. */
static void add_parts(const struct dt_compression *c, struct dt_tensor *own)
{
    const struct dt_ops *ops = c->device->ops;
    struct dt_tensor sum = dt_matrix(c->sum, 1, own->columns);
    for (int r = 0; r < dt_comm_size(c->comm) && own->columns > 0; r++) {
        uint16_t *theirs = c->received + (int64_t)r * own->columns;
        struct dt_tensor part = dt_matrix_of(DT_BF16, theirs, 1, own->columns);
        ops->combine(c->device, &sum, r > 0, r == dt_comm_rank(c->comm) ? own : &part, 1);
    }
    ops->copy(c->device, own, &sum);
}

static int exchange_parts(const struct dt_compression *c, const size_t *bytes, size_t mine,
                          struct dt_error *err)
{
    int size = dt_comm_size(c->comm);
    struct dt_piece *sends = dt_alloc(2 * (size_t)size, sizeof *sends), *receives = sends + size;
    for (int r = 0; r < size; r++) {
        sends[r] = (struct dt_piece){(char *)c->rounded + bytes[r], bytes[r + 1] - bytes[r]};
        receives[r] = (struct dt_piece){(char *)c->received + (size_t)r * mine, mine};
    }
    int rc = dt_comm_finish_ops(c->comm, c->device, err);
    rc = rc < 0 ? rc : dt_comm_wait(c->comm, dt_comm_all_to_all(c->comm, sends, receives), err);
    free(sends);
    return rc;
}

/* Parts go to the owners of the sum, rounded; what they add up comes back, rounded. */
static int sum_rounded(struct dt_compression *c, float *values, int64_t n, struct dt_error *err)
{
    const struct dt_ops *ops = c->device->ops;
    int size = dt_comm_size(c->comm), rank = dt_comm_rank(c->comm);
    size_t *bytes = dt_alloc((size_t)size + 1, sizeof *bytes);
    struct dt_range mine = dt_range_part(n, rank, size);
    struct dt_tensor all = dt_matrix(values, 1, n);
    struct dt_tensor rounded = dt_matrix_of(DT_BF16, c->rounded, 1, n);
    struct dt_tensor own = dt_columns(&rounded, mine.first, dt_range_count(mine));
    for (int r = 0; r <= size; r++)
        bytes[r] = (size_t)dt_part_first(n, r, size) * sizeof *c->rounded;
    ops->copy(c->device, &rounded, &all);
    int rc = exchange_parts(c, bytes, bytes[rank + 1] - bytes[rank], err);
    add_parts(c, &own);
    rc = rc < 0 ? rc : dt_comm_finish_ops(c->comm, c->device, err);
    rc = rc < 0 ? rc : dt_comm_wait(c->comm, dt_comm_all_gather(c->comm, c->rounded, bytes), err);
    ops->copy(c->device, &all, &rounded);
    free(bytes);
    return rc;
}

/* --- topk ------------------------------------------------------------------------------------- */

struct entry {
    uint32_t place;
    float value;
};

/* Magnitudes are in the order of their bits; what is no number comes last. */
static uint32_t magnitude(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & INT32_MAX;
}

/* The magnitude of the k-th largest of n numbers, byte by byte from the highest: of those
 * that begin as it does, the next byte says how many are larger. */
static float threshold_of(const float *values, int64_t n, int64_t k)
{
    uint32_t bits = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        uint32_t known = shift == 24 ? 0 : UINT32_MAX << (shift + 8), byte = 255;
        int64_t counts[256] = {0};
        for (int64_t i = 0; i < n; i++)
            if ((magnitude(values[i]) & known) == bits)
                counts[magnitude(values[i]) >> shift & 255]++;
        for (; counts[byte] < k; byte--)
            k -= counts[byte];
        bits |= byte << shift;
    }
    float threshold;
    memcpy(&threshold, &bits, sizeof threshold);
    return threshold;
}

/* Moves the k largest of the numbers into the list. */
static void take_largest(float *values, int64_t n, int64_t k, struct entry *list)
{
    float threshold = threshold_of(values, n, k);
    int64_t taken = 0;
    for (int pass = 0; pass < 2; pass++) /* those above it, then as many at it as there is room */
        for (int64_t i = 0; i < n && taken < k; i++) {
            float x = fabsf(values[i]);
            if (pass == 0 ? !(x > threshold) : !(x == threshold))
                continue;
            list[taken++] = (struct entry){(uint32_t)i, values[i]};
            values[i] = 0;
        }
    for (; taken < k; taken++) /* numbers that are none */
        list[taken] = (struct entry){0, NAN};
}

static int sum_largest(struct dt_compression *c, float *errors, float *values, int64_t n,
                       struct dt_error *err)
{
    size_t size = (size_t)dt_comm_size(c->comm);
    int64_t k = (int64_t)ceil(c->share * (double)n);
    c->scratch = dt_realloc(c->scratch, size * (size_t)k, sizeof(struct entry));
    struct entry *lists = c->scratch;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        values[i] += errors[i];
    take_largest(values, n, k, lists + dt_comm_rank(c->comm) * k);
    int rc = dt_comm_share(c->comm, lists, (size_t)k * sizeof *lists, err);
    for (size_t i = 0; rc == 0 && i < size * (size_t)k; i++)
        sum += fabs((double)lists[i].value);
    if (isfinite(sum))
        memcpy(errors, values, (size_t)n * sizeof *values);
    memset(values, 0, (size_t)n * sizeof *values);
    for (size_t i = 0; rc == 0 && i < size * (size_t)k; i++)
        values[lists[i].place] += lists[i].value;
    return rc;
}

/* --- powersgd --------------------------------------------------------------------------------- */

/* Makes the columns of x (rows x rank, column by column) orthonormal, one after another. */
static void orthonormalize(float *x, int64_t rows, int64_t rank)
{
    for (int64_t i = 0; i < rank; i++) {
        float *column = x + i * rows;
        double squares = 0;
        for (int64_t j = 0; j < i; j++) {
            double dot = 0;
            for (int64_t r = 0; r < rows; r++)
                dot += (double)x[j * rows + r] * (double)column[r];
            for (int64_t r = 0; r < rows; r++)
                column[r] -= (float)dot * x[j * rows + r];
        }
        for (int64_t r = 0; r < rows; r++)
            squares += (double)column[r] * (double)column[r];
        float scale = squares > 1e-30 ? (float)(1 / sqrt(squares)) : 0;
        for (int64_t r = 0; r < rows; r++)
            column[r] *= scale;
    }
}

/* A matrix of a bucket: what is left out of it so far; its gradient, and in the end the sum; and
 * its factors, rank x rows and rank x columns. */
struct product {
    struct dt_tensor errors, values, left, right;
};

/* What is owed joins the gradient; left is this rank's part of the product with right. */
static void project(const struct dt_compression *c, struct product *m)
{
    const struct dt_ops *ops = c->device->ops;
    ops->combine(c->device, &m->values, 1, &m->errors, 1);
    ops->matmul(c->device, &m->left, &m->right, &m->values,
                &(struct dt_matmul){.transpose_b = true});
}

/* x = left' right */
static void expand(const struct dt_compression *c, struct product *m, struct dt_tensor *x)
{
    c->device->ops->matmul(c->device, x, &m->left, &m->right,
                           &(struct dt_matmul){.transpose_a = true});
}

static void expand_values(const struct dt_compression *c, struct product *m)
{
    expand(c, m, &m->values);
}

/* right is this rank's part of the product with left, which is all ranks' by now; what both make
 * is sent, and the rest is owed. */
static void project_back(const struct dt_compression *c, struct product *m)
{
    const struct dt_ops *ops = c->device->ops;
    orthonormalize(m->left.data, m->left.columns, c->rank);
    ops->matmul(c->device, &m->right, &m->left, &m->values,
                &(struct dt_matmul){.accumulate = false});
    expand(c, m, &m->errors);
    ops->combine(c->device, &m->errors, -1, &m->values, 1);
}

static void pack(float *values, float *packed, int64_t n)
{
    memcpy(packed, values, (size_t)n * sizeof *packed);
}

static void unpack(float *values, float *packed, int64_t n)
{
    memcpy(values, packed, (size_t)n * sizeof *packed);
}

/* For each tensor of a bucket: a matrix with its factors, or a vector and its place among the left
 * ones. right: of the bucket. */
static int visit(const struct dt_compression *c, int bucket, float *values, float *right,
                 void (*matrix)(const struct dt_compression *, struct product *),
                 void (*vector)(float *values, float *packed, int64_t n), struct dt_error *err)
{
    const struct dt_table *t = c->table;
    float *packed = c->scratch;
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        int64_t rows = p->shape[0], columns = p->shape[1], thin = dt_compression_thin(c, p);
        float *own = values + (p->offset - t->buckets[bucket]);
        if (p->bucket != bucket)
            continue;
        if (thin > 0)
            matrix(c, &(struct product){dt_matrix(c->errors + p->offset, rows, columns),
                                        dt_matrix(own, rows, columns),
                                        dt_matrix(packed, c->rank, rows),
                                        dt_matrix(right, c->rank, columns)});
        else if (vector)
            vector(own, packed, p->count);
        packed += thin > 0 ? c->rank * rows : p->count;
        right += thin;
    }
    return c->device->ops->synchronize(c->device, err);
}

static bool are_finite(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += fabs((double)x[i]);
    return isfinite(sum);
}

/* All left factors and vectors of a bucket are added up at once, and then all right ones. */
static int sum_products(struct dt_compression *c, int bucket, float *values, struct dt_error *err)
{
    const struct dt_table *t = c->table;
    int64_t packed = 0, thin = 0;
    float *right = c->thin;
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        int64_t own = dt_compression_thin(c, p);
        right += p->bucket < bucket ? own : 0;
        thin += p->bucket == bucket ? own : 0;
        if (p->bucket == bucket)
            packed += own > 0 ? c->rank * p->shape[0] : p->count;
    }
    c->scratch = dt_realloc(c->scratch, (size_t)packed, sizeof *right);
    DT_TRY(visit(c, bucket, values, right, project, pack, err));
    DT_TRY(dt_comm_all_reduce(c->comm, c->scratch, packed, err));
    if (!are_finite(c->scratch, packed)) {
        values[0] = NAN;
        return 0;
    }
    DT_TRY(visit(c, bucket, values, right, project_back, NULL, err));
    DT_TRY(dt_comm_all_reduce(c->comm, right, thin, err));
    return visit(c, bucket, values, right, expand_values, unpack, err);
}

int dt_compression_sum(struct dt_compression *c, int bucket, float *values, struct dt_error *err)
{
    int64_t first = c->table->buckets[bucket], n = c->table->buckets[bucket + 1] - first;
    if (n == 0)
        return 0;
    if (c->kind == DT_COMPRESS_BF16)
        return sum_rounded(c, values, n, err);
    if (c->kind == DT_COMPRESS_TOPK)
        return sum_largest(c, c->errors + first, values, n, err);
    return first < c->table->elements ? sum_products(c, bucket, values, err)
                                      : dt_comm_all_reduce(c->comm, values, n, err);
}
