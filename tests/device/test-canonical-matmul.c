/* SPDX-License-Identifier: MIT */
/* Products have the bits of their definition, dt-arithmetic(7), on every instruction set and for
 * any number of threads. */
#include "device/matrix.h"

/* Sums of the definition: written for reading, one element at a time. */
struct sum {
    bool present;
    float value;
};

static struct sum add(struct sum left, struct sum right)
{
    if (left.present && right.present)
        return (struct sum){true, left.value + right.value};
    return left.present ? left : right;
}

/* The sum over the leaves from .. from + size, a power of two; those from n on are absent. */
static struct sum tree(const struct sum *leaves, int64_t n, int64_t from, int64_t size)
{
    if (from >= n)
        return (struct sum){false, 0};
    if (size == 1)
        return leaves[from];
    return add(tree(leaves, n, from, size / 2), tree(leaves, n, from + size / 2, size / 2));
}

static struct sum whole_tree(const struct sum *leaves, int64_t n)
{
    int64_t size = 1;
    while (size < n)
        size *= 2;
    return tree(leaves, n, 0, size);
}

/* What the tests change, to see that they would notice it. */
static struct {
    int64_t chunk, dropped; /* the longest chain; a term that is left out, or -1 */
} definition = {256, -1};

/* Of a matrix in fp32. */
static float element(const struct dt_tensor *x, bool transpose, int64_t i, int64_t j)
{
    return ((const float *)x->data)[transpose ? j * x->stride + i : i * x->stride + j];
}

static struct sum chain(const struct dt_factors *f, const struct dt_matmul *how, int64_t i,
                        int64_t j, int64_t from, int64_t to)
{
    struct sum sum = {from < to, 0};
    for (int64_t k = from; k < to; k++)
        if (k != definition.dropped)
            sum.value = fmaf(element(f->a, how->transpose_a, i, k),
                             element(f->b, how->transpose_b, k, j), sum.value);
    return sum;
}

static int64_t begin_of_part(const struct dt_matmul *how, int64_t k, int part, int parts)
{
    if (how->part_ends)
        return part ? how->part_ends[part - 1] : 0;
    return k * part / parts;
}

static struct sum sum_of_part(const struct dt_factors *pairs, const struct dt_matmul *how,
                              int64_t i, int64_t j, int part, int parts)
{
    static struct sum leaves[4096];
    int64_t count = 0;
    for (int pair = 0; pair <= how->more_count; pair++) {
        const struct dt_tensor *a = pairs[pair].a;
        int64_t k = how->transpose_a ? a->rows : a->columns;
        int64_t begin = begin_of_part(how, k, part, parts);
        int64_t end = begin_of_part(how, k, part + 1, parts), n = end - begin, chunks = 1;
        while ((n + chunks - 1) / chunks > definition.chunk)
            chunks *= 2;
        int64_t length = (n + chunks - 1) / chunks;
        for (int64_t q = 0; q < chunks; q++) {
            int64_t from = begin + q * length, to = from + length < end ? from + length : end;
            leaves[count++] = chain(&pairs[pair], how, i, j, from, to);
        }
    }
    return whole_tree(leaves, count);
}

static float defined(const struct dt_factors *pairs, const struct dt_matmul *how, int64_t i,
                     int64_t j)
{
    struct sum parts[64];
    int count = how->parts ? how->parts : 1;
    for (int part = 0; part < count; part++)
        parts[part] = sum_of_part(pairs, how, i, j, part, count);
    struct sum sum = whole_tree(parts, count);
    return sum.present ? sum.value : 0;
}

/* A product, and what it must be. */
struct product {
    enum dt_dtype type, to;
    int64_t m, n, k;
    struct dt_matmul how;
    struct dt_tensor a[3], b[3], bias, before;
    struct dt_factors pairs[3];
};

static struct dt_tensor factor(enum dt_dtype type, bool transpose, int64_t rows, int64_t columns)
{
    return transpose ? random_matrix_of(type, columns, rows)
                     : random_matrix_of(type, rows, columns);
}

static void make(struct product *p)
{
    for (int i = 0; i <= p->how.more_count; i++) {
        p->a[i] = factor(p->type, p->how.transpose_a, p->m, p->k);
        p->b[i] = factor(p->type, p->how.transpose_b, p->k, p->n);
        p->pairs[i] = (struct dt_factors){&p->a[i], &p->b[i]};
    }
    p->how.more = p->pairs + 1;
    p->bias = random_matrix(1, p->n);
    p->before = random_matrix_of(p->to, p->m, p->n);
}

static void release(struct product *p)
{
    for (int i = 0; i <= p->how.more_count; i++)
        free(p->a[i].data), free(p->b[i].data);
    free(p->bias.data), free(p->before.data);
}

/* Elements i, j that are compared: all of small products, otherwise a sample with the edges. */
static bool is_compared(const struct product *p, int64_t i, int64_t j)
{
    double work = (double)p->m * (double)p->n * (double)p->k;
    return work < 1 << 20 || (j * p->m + i) % (int64_t)(work / (1 << 19) + 1) == 0 ||
           (i == p->m - 1 && j == p->n - 1);
}

/* The factors of a product in fp32. */
struct wide_factors {
    struct dt_tensor a[3], b[3];
    struct dt_factors pairs[3];
};

static void widen(const struct product *p, struct wide_factors *wide)
{
    for (int i = 0; i <= p->how.more_count; i++) {
        wide->a[i] = as_type(DT_DTYPE_F32, p->pairs[i].a);
        wide->b[i] = as_type(DT_DTYPE_F32, p->pairs[i].b);
        wide->pairs[i] = (struct dt_factors){&wide->a[i], &wide->b[i]};
    }
}

/* What the definition has for the elements that are compared. */
static struct dt_tensor all_defined(const struct product *p)
{
    struct dt_tensor sums = new_matrix(DT_DTYPE_F32, p->m, p->n);
    struct wide_factors wide;
    widen(p, &wide);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            if (!is_compared(p, i, j))
                continue;
            float sum = defined(wide.pairs, &p->how, i, j);
            if (p->how.accumulate)
                sum = at(&p->before, i, j) + sum;
            if (p->how.bias)
                sum += at(&p->bias, 0, j);
            ((float *)sums.data)[i * p->n + j] = sum;
        }
    for (int i = 0; i <= p->how.more_count; i++)
        free(wide.a[i].data), free(wide.b[i].data);
    struct dt_tensor rounded = as_type(p->to, &sums);
    free(sums.data);
    return rounded;
}

/* Elements that differ from the definition, of those compared. */
static int64_t differences(const struct product *p, const struct dt_tensor *c)
{
    struct dt_tensor all = all_defined(p);
    int64_t differ = 0;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            float want = at(&all, i, j), got = at(c, i, j);
            differ += is_compared(p, i, j) && memcmp(&want, &got, sizeof got) != 0;
        }
    free(all.data);
    return differ;
}

static struct dt_tensor compute_as(struct product *p, int threads, bool canonical)
{
    struct dt_tensor c = new_matrix(p->to, p->m, p->n);
    struct dt_device *other = open_with(threads);
    other->canonical = canonical;
    if (p->how.bias)
        p->how.bias = &p->bias;
    other->ops->copy(other, &c, &p->before);
    other->ops->matmul(other, &c, p->pairs[0].a, p->pairs[0].b, &p->how);
    dt_device_close(other);
    return c;
}

static struct dt_tensor compute(struct product *p, int threads)
{
    return compute_as(p, threads, true);
}

static void check(struct product *p, int threads)
{
    make(p);
    struct dt_tensor c = compute(p, threads);
    int64_t differ = differences(p, &c);
    if (differ)
        fail_msg("%ldx%ldx%ld, type %d to %d, %s%s, %d parts, %d pairs: %ld differ", (long)p->m,
                 (long)p->n, (long)p->k, p->type, p->to, p->how.transpose_a ? "T" : "N",
                 p->how.transpose_b ? "T" : "N", p->how.parts, p->how.more_count + 1, (long)differ);
    free(c.data);
    release(p);
}

static int64_t below(int64_t n)
{
    return dt_rng_below(&rng, (uint32_t)n);
}

static void random_products_have_the_bits_of_their_definition(void **state)
{
    (void)state;
    static const struct dt_tensor some;
    const int slow = getenv("DT_TEST_ENGINE") ? 2 : 1;      /* emulated GPUs are */
    const int count = getenv("DT_TEST_ENGINE") ? 120 : 400; /* on each instruction set */
    for (int i = 0; i < count; i++) {
        struct product p = {.m = 1 + below(i % 3 ? 40 : 150) / slow,
                            .n = 1 + below(i % 5 ? 100 : 300) / slow,
                            .k = below(i % 4 ? 300 : 1500)};
        p.type = (enum dt_dtype)(i % 3);
        p.to = below(2) ? DT_DTYPE_F32 : p.type;
        p.how.transpose_a = below(2);
        p.how.transpose_b = below(2);
        p.how.parts = 1 << below(4);
        p.how.more_count = below(3) ? 0 : (int)(1 + below(2));
        p.how.accumulate = below(2);
        p.how.bias = below(2) ? &some : NULL;
        check(&p, 1 + (int)below(3));
    }
}

static const int64_t lengths[] = {0, 1, 255, 256, 257, 511, 513, 768, 1000, 2049, 3072};

static void every_length_of_a_sum_has_the_bits_of_its_definition(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int64_t m = 1; m <= 33; m += m < 4 ? 1 : 14)
            for (int variant = 0; variant < 4; variant++) {
                struct product p = {
                    .m = m, .n = getenv("DT_TEST_ENGINE") ? 20 : 70, .k = lengths[i]};
                p.how.transpose_a = variant & 1;
                p.how.transpose_b = variant & 2;
                check(&p, 2);
            }
}

/* Several blocks in each dimension; and K of which the last chunks are empty. */
static void large_products_have_the_bits_of_their_definition(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{20, 5, 33000},   {33, 40, 2500},  {130, 40, 2500},
                                       {150, 1300, 300}, {1500, 36, 600}, {3, 4500, 350}};
    /* blocks of the other engine are of 128 elements */
    const size_t count = getenv("DT_TEST_ENGINE") ? 2 : sizeof sizes / sizeof *sizes;
    for (size_t i = 0; i < count; i++)
        for (int variant = 0; variant < 8; variant++) {
            struct product p = {.m = sizes[i][0], .n = sizes[i][1], .k = sizes[i][2]};
            p.type = variant & 4 ? DT_DTYPE_BF16 : DT_DTYPE_F32;
            p.to = p.type;
            p.how.transpose_a = variant & 1;
            p.how.transpose_b = variant & 2;
            p.how.accumulate = variant & 1;
            check(&p, 2);
        }
}

/* As those of an adapter; rows of 512 floats are packed, others stay in place. */
static void few_columns_have_the_bits_of_their_definition(void **state)
{
    (void)state;
    static const int64_t columns[] = {1, 8, 16, 17}, depths[] = {1, 520, 512, 1100};
    for (int64_t m = 13; m <= 44; m++)
        for (int i = 0; i < 16; i++) {
            struct product p = {.m = m, .n = columns[i % 4], .k = depths[i / 4]};
            p.how.transpose_b = m & 1;
            p.how.accumulate = m & 2;
            check(&p, 2);
        }
}

static void parts_may_end_anywhere(void **state)
{
    (void)state;
    static const int64_t ends[][4] = {{300, 300, 700, 900},
                                      {0, 0, 0, 900},
                                      {1, 2, 3, 900},
                                      {257, 514, 771, 900},
                                      {900, 900, 900, 900}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        for (int pairs = 1; pairs <= 3; pairs++)
            for (int64_t m = 1; m < 40; m += 19) {
                struct product p = {.m = m, .n = getenv("DT_TEST_ENGINE") ? 15 : 50, .k = 900};
                p.how.parts = 4;
                p.how.part_ends = ends[i];
                p.how.more_count = pairs - 1;
                check(&p, 2);
            }
}

/* A row of A that is broadcast; rows that are views of wider ones. */
static void views_have_the_bits_of_their_definition(void **state)
{
    (void)state;
    for (int variant = 0; variant < 8; variant++)
        for (int64_t m = 9; m <= 30; m += 21) {
            struct product p = {.m = m, .n = 41, .k = 45};
            p.how.transpose_a = variant & 1;
            p.how.transpose_b = variant & 2;
            make(&p);
            struct dt_tensor wide = random_matrix(60, 90);
            p.a[0].data = ((free(p.a[0].data)), (float *)wide.data + 7);
            p.a[0].stride = variant & 4 ? 0 : 90;
            p.b[0].data = ((free(p.b[0].data)), (float *)wide.data + 13);
            p.b[0].stride = 90;
            struct dt_tensor c = compute(&p, 2);
            assert_int_equal(differences(&p, &c), 0);
            p.a[0].data = p.b[0].data = NULL;
            free(c.data), free(wide.data);
            release(&p);
        }
}

/* Product number i of a matrix that is stored in panels. */
static struct product of_panels(int i)
{
    static const int64_t columns[] = {1, 15, 64, 65, 200}, rows[] = {1, 2, 16, 33, 120};
    struct product p = {.m = 1 + below(rows[i / 5 % 5]), .n = columns[i % 5], .k = below(900)};
    p.type = i % 3 ? DT_DTYPE_F32 : DT_DTYPE_BF16;
    p.to = i % 4 ? DT_DTYPE_F32 : p.type;
    p.how.transpose_b = i % 2;
    p.how.parts = i % 7 == 0 ? 4 : 1;
    return p;
}

/* Stores b in panels, and returns it as it was. */
static struct dt_tensor store_panels(struct product *p)
{
    struct dt_tensor before = copy_of(&p->b[0]);
    assert_true(dev->ops->store_panels(dev, &p->b[0], !p->how.transpose_b));
    assert_true(p->b[0].panels && p->b[0].rows == p->n && p->b[0].columns == p->k);
    return before;
}

static void panels_of_rows_have_the_bits_of_their_definition(void **state)
{
    (void)state;
    if (dev->ops->store_panels == NULL)
        skip();
    for (int i = 0; i < 100; i++) {
        struct product p = of_panels(i);
        bool transposed = p.how.transpose_b;
        p.how.transpose_a = i % 11 == 10;
        make(&p);
        struct dt_tensor before = store_panels(&p);
        p.how.transpose_b = true;
        struct dt_tensor c = compute(&p, 1 + i % 3);
        p.pairs[0].b = &before;
        p.how.transpose_b = transposed;
        assert_int_equal(differences(&p, &c), 0);
        free(c.data), free(before.data);
        release(&p);
    }
}

/* The definitions of device/cpu/gemm/bf16-panels.h. */
static float by_matrix_instructions(const struct product *p, const struct dt_tensor *b, int64_t i,
                                    int64_t j)
{
    float sum = 0;
    for (int64_t first = 0; first < p->k; first += 32) {
        float both[2] = {0, 0};
        for (int64_t k = first; k < first + 32 && k < p->k; k++)
            both[k % 2] = fmaf(at(&p->a[0], i, k), p->how.transpose_b ? at(b, j, k) : at(b, k, j),
                               both[k % 2]);
        sum += both[0] + both[1];
    }
    return sum;
}

static float by_pairs(const struct product *p, const struct dt_tensor *b, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t k = 0; k < p->k; k += 2)
        for (int64_t odd = p->k - k > 1; odd >= 0; odd--)
            sum = fmaf(at(&p->a[0], i, k + odd),
                       p->how.transpose_b ? at(b, j, k + odd) : at(b, k + odd, j), sum);
    return sum;
}

typedef float sum_of(const struct product *, const struct dt_tensor *b, int64_t i, int64_t j);

static int64_t differences_by(sum_of *sum, const struct product *p, const struct dt_tensor *b,
                              const struct dt_tensor *c)
{
    int64_t differ = 0;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            float want = sum(p, b, i, j), got = at(c, i, j);
            differ += memcmp(&want, &got, sizeof got) != 0;
        }
    return differ;
}

/* The same for any number of rows: in the order of the processor's instructions, or without them in
 * the canonical one. */
static void fast_products_of_panels_have_the_bits_of_one_definition(void **state)
{
    (void)state;
    if (dev->ops->store_panels == NULL)
        skip();
    int canonical = 0, matrix = 0, pairs = 0, count = 0;
    for (int i = 0; i < 60; i++) {
        struct product p = of_panels(i);
        p.type = DT_DTYPE_BF16;
        p.to = DT_DTYPE_F32;
        p.k += 40;
        bool transposed = p.how.transpose_b;
        make(&p);
        struct dt_tensor before = store_panels(&p);
        p.how.transpose_b = true;
        struct dt_tensor c = compute_as(&p, 1 + i % 3, false);
        p.pairs[0].b = &before;
        p.how.transpose_b = transposed;
        canonical += differences(&p, &c) == 0;
        matrix += differences_by(by_matrix_instructions, &p, &before, &c) == 0;
        pairs += differences_by(by_pairs, &p, &before, &c) == 0;
        count++;
        free(c.data), free(before.data);
        release(&p);
    }
    print_message("fast products of panels: %d of %d canonical, %d matrix instructions, %d pairs\n",
                  canonical, count, matrix, pairs);
    assert_true(canonical == count || matrix == count || pairs == count);
}

/* Or this test would pass with another definition. */
static void other_chunks_and_missing_terms_are_noticed(void **state)
{
    (void)state;
    struct product p = {.m = 20, .n = 40, .k = 1024};
    make(&p);
    struct dt_tensor c = compute(&p, 1);
    assert_int_equal(differences(&p, &c), 0);
    definition.chunk = 255;
    assert_true(differences(&p, &c) > 400);
    definition.chunk = 256;
    definition.dropped = 1000;
    assert_true(differences(&p, &c) > 400);
    definition.dropped = -1;
    p.how.parts = 8;
    assert_true(differences(&p, &c) > 0);
    free(c.data);
    release(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_EACH_ISA(random_products_have_the_bits_of_their_definition),
        ON_EACH_ISA(every_length_of_a_sum_has_the_bits_of_its_definition),
        ON_EACH_ISA(large_products_have_the_bits_of_their_definition),
        ON_EACH_ISA(few_columns_have_the_bits_of_their_definition),
        ON_EACH_ISA(parts_may_end_anywhere),
        ON_EACH_ISA(views_have_the_bits_of_their_definition),
        ON_EACH_ISA(panels_of_rows_have_the_bits_of_their_definition),
        ON_EACH_ISA(fast_products_of_panels_have_the_bits_of_one_definition),
        ON_EACH_ISA(other_chunks_and_missing_terms_are_noticed),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return RUN_ON_EACH_ISA(tests);
}
