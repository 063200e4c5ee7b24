/* SPDX-License-Identifier: MIT */
/* Ops on rows against the definition in dt-arithmetic(7), to the bit: plain loops here, and every
 * instruction set of this machine with 1 to 3 threads. */
#include "device/matrix.h"

#include "device/functions.h"

static struct dt_device *devices[9];
static int count;

/* The definition's constants, powers of two; tests of other orders change them. */
static int lanes = 16, block_rows = 64;

/* $DT_TEST_ENGINE and the cpu engine; without it, every instruction set. */
static int open_all(void **state)
{
    (void)state;
    static const char *names[] = {"cpu-generic", "cpu-avx2", "cpu-avx512"};
    static const int threads[] = {1, 2, 9}; /* 9 divide columns, too */
    struct dt_error err;
    bool other = getenv("DT_TEST_ENGINE") != NULL;
    if (other)
        devices[count++] = open_with(1);
    if (other && dt_device_open(&devices[count++], "cpu", 2, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 3 && !other; i++) {
        bool supported = open_isa(names[i]) == 0 && strcmp(dev->isa, names[i] + 4) == 0;
        dt_device_close(dev);
        dev = NULL;
        for (int t = 0; supported && t < 3; t++)
            if (dt_device_open(&devices[count++], names[i], threads[t], &err))
                fail_msg("%s", err.text);
    }
    print_message("%d engines\n", count);
    dev = devices[0];
    return count > 0 ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    while (count > 0)
        dt_device_close(devices[--count]);
    return 0;
}

static bool same(const struct dt_tensor *a, const struct dt_tensor *b)
{
    return memcmp(a->data, b->data, (size_t)(a->rows * a->columns) * sizeof(float)) == 0;
}

static float *row_of(const struct dt_tensor *x, int64_t row)
{
    return (float *)x->data + row * x->stride;
}

/* --- sums ------------------------------------------------------------------------------------- */

/* The sum over j < n of a[j] b[j], or of a[j] if b is NULL. */
static float lane_sum(const float *a, const float *b, int64_t n)
{
    float lane[16] = {0};
    for (int64_t j = 0; j < n; j++) {
        float *sum = &lane[j & (lanes - 1)];
        *sum = b ? fmaf(a[j], b[j], *sum) : *sum + a[j];
    }
    for (int half = lanes / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

/* A binary tree over leaves first .. first + width - 1, of which those below n are present. */
static float tree(const float *x, int64_t n, int64_t first, int64_t width)
{
    if (width == 1)
        return x[first];
    float left = tree(x, n, first, width / 2);
    return first + width / 2 < n ? left + tree(x, n, first + width / 2, width / 2) : left;
}

static float tree_of(const float *x, int64_t n)
{
    int64_t width = 1;
    while (width < n)
        width *= 2;
    return tree(x, n, 0, width);
}

/* The sum over rows of a[r stride] b[r stride]; b NULL: of a. */
static float row_sum(const float *a, const float *b, int64_t stride, int64_t rows, int parts)
{
    float of_parts[8], of_blocks[64];
    for (int p = 0; p < parts; p++) {
        int64_t end = rows * (p + 1) / parts, blocks = 0;
        of_blocks[0] = 0;
        for (int64_t from = rows * p / parts; from < end; from += block_rows) {
            float sum = 0;
            for (int64_t r = from; r < from + block_rows && r < end; r++)
                sum = b ? fmaf(a[r * stride], b[r * stride], sum) : sum + a[r * stride];
            of_blocks[blocks++] = sum;
        }
        of_parts[p] = tree_of(of_blocks, blocks > 0 ? blocks : 1);
    }
    return tree_of(of_parts, parts);
}

/* --- norms ------------------------------------------------------------------------------------ */

/* Operands and results of a norm; groups 0: layer norm, otherwise RMS norm. */
struct norm {
    int64_t rows, n, groups;
    int parts;
    float offset; /* of RMS norm's weights */
    struct dt_tensor x, weight, bias, y, stats, dy, dx, dweight, dbias, xhat;
};

static struct norm new_norm(int64_t rows, int64_t n, int64_t groups, int parts, float offset)
{
    int64_t columns = n * (groups ? groups : 1);
    return (struct norm){.rows = rows,
                         .n = n,
                         .groups = groups,
                         .parts = parts,
                         .offset = offset,
                         .x = random_matrix(rows, columns),
                         .weight = random_matrix(1, n),
                         .bias = random_matrix(1, n),
                         .y = random_matrix(rows, columns),
                         .stats = random_matrix(rows, groups ? groups : 2),
                         .dy = random_matrix(rows, columns),
                         .dx = random_matrix(rows, columns),
                         .dweight = random_matrix(1, n),
                         .dbias = random_matrix(1, n),
                         .xhat = random_matrix(rows, columns)};
}

static void free_norm(struct norm *w)
{
    free(w->x.data), free(w->weight.data), free(w->bias.data), free(w->y.data);
    free(w->stats.data), free(w->dy.data), free(w->dx.data), free(w->dweight.data);
    free(w->dbias.data), free(w->xhat.data);
}

static void norm_row(struct norm *w, int64_t i)
{
    float *x = row_of(&w->x, i), *s = row_of(&w->stats, i), *weight = w->weight.data;
    float *dy = row_of(&w->dy, i), *dx = row_of(&w->dx, i), *xhat = row_of(&w->xhat, i);
    float *g = dt_alloc((size_t)w->n, sizeof *g), *d = dt_alloc((size_t)w->n, sizeof *d);
    float n = (float)w->n;
    s[0] = lane_sum(x, NULL, w->n) / n;
    for (int64_t j = 0; j < w->n; j++)
        d[j] = x[j] - s[0];
    s[1] = 1 / sqrtf(lane_sum(d, d, w->n) / n + 1e-5f);
    for (int64_t j = 0; j < w->n; j++) {
        xhat[j] = d[j] * s[1];
        row_of(&w->y, i)[j] = fmaf(xhat[j], weight[j], ((float *)w->bias.data)[j]);
        g[j] = dy[j] * weight[j];
    }
    float mean = lane_sum(g, NULL, w->n) / n, along = lane_sum(g, xhat, w->n) / n;
    for (int64_t j = 0; j < w->n; j++)
        dx[j] = fmaf(s[1], fmaf(-xhat[j], along, g[j] - mean), dx[j]);
    free(g), free(d);
}

static void rms_norm_row(struct norm *w, int64_t i, int64_t group)
{
    int64_t at = group * w->n;
    float *x = row_of(&w->x, i) + at, *s = row_of(&w->stats, i) + group, *weight = w->weight.data;
    float *dy = row_of(&w->dy, i) + at, *dx = row_of(&w->dx, i) + at;
    float *xhat = row_of(&w->xhat, i) + at, *g = dt_alloc((size_t)w->n, sizeof *g);
    float n = (float)w->n;
    *s = 1 / sqrtf(lane_sum(x, x, w->n) / n + 1e-5f);
    for (int64_t j = 0; j < w->n; j++) {
        xhat[j] = x[j] * *s;
        row_of(&w->y, i)[at + j] = xhat[j] * (w->offset + weight[j]);
        g[j] = dy[j] * (w->offset + weight[j]);
    }
    float mean = lane_sum(g, x, w->n) * *s / n;
    for (int64_t j = 0; j < w->n; j++)
        dx[j] = fmaf(*s, fmaf(-xhat[j], mean, g[j]), dx[j]);
    free(g);
}

static void norm_reference(struct norm *w)
{
    int64_t columns = w->x.columns;
    float of_groups[8], *dy = w->dy.data, *xhat = w->xhat.data;
    for (int64_t i = 0; i < w->rows; i++)
        for (int64_t g = 0; g < (w->groups ? w->groups : 1); g++)
            w->groups ? rms_norm_row(w, i, g) : norm_row(w, i);
    for (int64_t j = 0; j < w->n; j++) {
        for (int64_t g = 0; g * w->n < columns; g++)
            of_groups[g] =
                row_sum(dy + g * w->n + j, xhat + g * w->n + j, columns, w->rows, w->parts);
        ((float *)w->dweight.data)[j] += tree_of(of_groups, columns / w->n);
        if (w->groups == 0)
            ((float *)w->dbias.data)[j] += row_sum(dy + j, NULL, columns, w->rows, w->parts);
    }
}

static void run_norm(struct dt_device *d, struct norm *w)
{
    const struct dt_ops *ops = d->ops;
    if (w->groups) {
        ops->rms_norm_forward(d, &w->y, &w->stats, &w->x, &w->x, NULL, &w->weight, w->offset,
                              1e-5f);
        ops->rms_norm_backward(d, &w->dx, &w->dweight, &w->dy, &w->x, &w->weight, w->offset,
                               &w->stats, w->parts);
        return;
    }
    ops->norm_forward(d, &w->y, &w->stats, &w->x, &w->x, NULL, &w->weight, &w->bias, 1e-5f);
    ops->norm_backward(d, &w->dx, &w->dweight, &w->dbias, &w->dy, &w->x, &w->weight, &w->stats,
                       w->parts);
}

/* Whether all engines have the reference's bits, of this shape. */
static bool norm_matches(int64_t rows, int64_t n, int64_t groups, int parts, float offset)
{
    bool matches = true;
    struct norm want = new_norm(rows, n, groups, parts, offset);
    struct dt_tensor dx = copy_of(&want.dx), dweight = copy_of(&want.dweight);
    struct dt_tensor dbias = copy_of(&want.dbias);
    norm_reference(&want);
    for (int i = 0; i < count; i++) {
        struct norm got = want;
        got.y = random_matrix(rows, want.y.columns);
        got.stats = random_matrix(rows, want.stats.columns);
        got.dx = copy_of(&dx), got.dweight = copy_of(&dweight), got.dbias = copy_of(&dbias);
        run_norm(devices[i], &got);
        matches = matches && same(&got.y, &want.y) && same(&got.stats, &want.stats) &&
                  same(&got.dx, &want.dx) && same(&got.dweight, &want.dweight) &&
                  same(&got.dbias, &want.dbias);
        free(got.y.data), free(got.stats.data), free(got.dx.data), free(got.dweight.data);
        free(got.dbias.data);
    }
    free(dx.data), free(dweight.data), free(dbias.data);
    free_norm(&want);
    return matches;
}

static void norms_have_the_defined_bits(void **state)
{
    (void)state;
    static const int64_t rows[] = {1, 3, 64, 200, 777}, widths[] = {5, 37, 16, 96};
    for (int parts = 1; parts <= 8; parts *= 2)
        for (int r = 0; r < 5; r++)
            for (int w = 0; w < (rows[r] < 500 ? 4 : 2); w++)
                for (int64_t groups = 0; groups <= 4; groups += 1 + (groups == 1))
                    if (!norm_matches(rows[r], widths[w], groups, parts, parts > 2))
                        fail_msg("%d rows of %d, %d groups, %d parts", (int)rows[r], (int)widths[w],
                                 (int)groups, parts);
}

static void another_order_has_other_bits(void **state)
{
    (void)state;
    assert_true(norm_matches(200, 96, 0, 2, 0));
    lanes = 8;
    bool found = norm_matches(200, 96, 0, 2, 0);
    lanes = 16, block_rows = 32;
    found = found || norm_matches(200, 96, 0, 2, 0);
    block_rows = 64;
    assert_false(found);
}

/* --- sums over rows --------------------------------------------------------------------------- */

static void bias_backward_has_the_defined_bits(void **state)
{
    (void)state;
    static const int64_t rows[] = {1, 7, 64, 65, 500, 1000};
    for (int r = 0; r < 6; r++)
        for (int parts = 1; parts <= 8; parts *= 2) {
            struct dt_tensor dy = random_matrix(rows[r], 1100), old = random_matrix(1, 1100);
            struct dt_tensor want = copy_of(&old);
            for (int64_t j = 0; j < 1100; j++)
                row_of(&want, 0)[j] += row_sum((float *)dy.data + j, NULL, 1100, rows[r], parts);
            for (int i = 0; i < count; i++) {
                struct dt_tensor got = copy_of(&old);
                devices[i]->ops->bias_backward(devices[i], &got, &dy, parts);
                assert_true(same(&got, &want));
                free(got.data);
            }
            free(dy.data), free(old.data), free(want.data);
        }
}

/* gradient[key] += column j of the rows with that key. */
static void add_rows_of_key(struct dt_tensor *gradient, const struct dt_tensor *dy,
                            const int32_t *keys, int32_t key, int parts)
{
    for (int64_t j = 0; j < dy->columns; j++) {
        float nodes[8];
        bool present[8] = {false};
        for (int p = 0; p < parts; p++)
            for (int64_t r = dy->rows * p / parts; r < dy->rows * (p + 1) / parts; r++)
                if (keys[r] == key) {
                    nodes[p] = (present[p] ? nodes[p] : 0) + row_of(dy, r)[j];
                    present[p] = true;
                }
        for (int step = 1; step < parts; step *= 2)
            for (int p = 0; p + step < parts; p += 2 * step) {
                if (present[p + step])
                    nodes[p] = present[p] ? nodes[p] + nodes[p + step] : nodes[p + step];
                present[p] = present[p] || present[p + step];
            }
        if (present[0])
            row_of(gradient, key)[j] += nodes[0];
    }
}

static void embedding_backward_has_the_defined_bits(void **state)
{
    (void)state;
    enum { ROWS = 120, TOKENS = 300, WIDTH = 33, LENGTH = 12 };
    struct dt_tensor dy = random_matrix(ROWS, WIDTH), tokens = random_matrix(TOKENS, WIDTH);
    struct dt_tensor places = random_matrix(LENGTH, WIDTH);
    int32_t ids[ROWS], positions[ROWS];
    for (int r = 0; r < ROWS; r++) {
        ids[r] =
            r % 5 ? (int32_t)dt_rng_below(&rng, 7) * 43 : (int32_t)dt_rng_below(&rng, 320) - 10;
        positions[r] = r % LENGTH;
    }
    for (int parts = 1; parts <= 8; parts *= 2) {
        struct dt_tensor want = copy_of(&tokens), want_places = copy_of(&places);
        for (int32_t key = 0; key < TOKENS; key++)
            add_rows_of_key(&want, &dy, ids, key, parts);
        for (int32_t key = 0; key < LENGTH; key++)
            add_rows_of_key(&want_places, &dy, positions, key, parts);
        for (int i = 0; i < count; i++) {
            struct dt_tensor got = copy_of(&tokens), got_places = copy_of(&places);
            devices[i]->ops->embedding_backward(devices[i], &got, &got_places, &dy, ids, LENGTH,
                                                parts);
            assert_true(same(&got, &want) && same(&got_places, &want_places));
            free(got.data), free(got_places.data);
        }
        free(want.data), free(want_places.data);
    }
    free(dy.data), free(tokens.data), free(places.data);
}

/* --- cross-entropy ---------------------------------------------------------------------------- */

static float tanh_reference(float x)
{
    float s = x * x, p = fmaf(-0x1.75e1ccp-8f, s, 0x1.52269ap-6f);
    p = fmaf(p, s, -0x1.b83c5ap-5f);
    p = fmaf(p, s, 0x1.110726p-3f);
    p = fmaf(p, s, -0x1.555532p-2f);
    float far = 1 - 2 / (dt_device_exp(2 * fabsf(x)) + 1);
    return fabsf(x) < 0.625f ? fmaf(p * s, x, x) : copysignf(far, x);
}

static float logit_of(float x, struct dt_logit_map map)
{
    float scale = map.scale == 0 ? 1 : map.scale;
    return map.softcap == 0 ? scale * x : map.softcap * tanh_reference(scale / map.softcap * x);
}

static float slope_of(float logit, struct dt_logit_map map)
{
    float scale = map.scale == 0 ? 1 : map.scale, t = 1 / map.softcap * logit;
    return map.softcap == 0 ? scale : scale * fmaf(-t, t, 1);
}

/* x, logits, becomes their gradient. */
static float logits_loss(float *x, int64_t n, int64_t target, const struct dt_cross_entropy *how)
{
    int64_t width = (n + 7) / 8;
    float most[8], sums[8], below[8], all = -INFINITY, s = how->label_smoothing, at_target;
    float *e = dt_alloc((size_t)n, sizeof *e), *d = dt_alloc((size_t)n, sizeof *d);
    int64_t ends[9] = {0};
    for (int p = 0; p < 8; p++) {
        ends[p + 1] = (p + 1) * width < n ? (p + 1) * width : n;
        most[p] = -INFINITY;
        for (int64_t j = ends[p]; j < ends[p + 1]; j++)
            most[p] = fmaxf(most[p], x[j]);
        all = fmaxf(all, most[p]);
        for (int64_t j = ends[p]; j < ends[p + 1]; j++)
            e[j] = dt_device_exp(x[j] - most[p]), d[j] = most[p] - x[j];
    }
    for (int p = 0; p < 8; p++) {
        int64_t wide = ends[p + 1] - ends[p];
        sums[p] = lane_sum(e + ends[p], NULL, wide) * dt_device_exp(most[p] - all);
        below[p] =
            wide == 0 ? 0 : fmaf((float)wide, all - most[p], lane_sum(d + ends[p], NULL, wide));
    }
    float sum = tree_of(sums, 8), log_sum = dt_device_log(sum) + all;
    float lower = (1 - s) * (all - x[target]);
    if (s != 0)
        lower = fmaf(s, tree_of(below, 8) / (float)n, lower);
    at_target = how->scale * (1 - s);
    for (int p = 0; p < 8; p++)
        for (int64_t j = ends[p]; j < ends[p + 1]; j++)
            x[j] = fmaf(e[j],
                        how->scale * fmaf(2 * how->z_loss, log_sum, 1) / sum *
                            dt_device_exp(most[p] - all),
                        -(how->scale * s / (float)n));
    x[target] -= at_target;
    free(e), free(d);
    return fmaf(how->z_loss * log_sum, log_sum, dt_device_log(sum) + lower);
}

/* x becomes its gradient. */
static float cross_entropy_row(float *x, int64_t n, int64_t target,
                               const struct dt_cross_entropy *how)
{
    float *logits = dt_alloc((size_t)n, sizeof *logits);
    for (int64_t j = 0; j < n; j++)
        x[j] = logits[j] = logit_of(x[j], how->map);
    float loss = logits_loss(x, n, target, how);
    for (int64_t j = 0; j < n; j++)
        x[j] *= slope_of(logits[j], how->map);
    free(logits);
    return loss;
}

/* The columns of the logits on ranks, whose boundaries are those of parts. */
static void run_ranks(struct dt_device *d, int ranks, struct dt_tensor *logits,
                      const int32_t *targets, const struct dt_cross_entropy *how, float *losses,
                      float *hits)
{
    int64_t n = logits->columns, rows = logits->rows, width = (n + 7) / 8 * (8 / ranks);
    struct dt_tensor sums = random_matrix(8 * rows, DT_LOGIT_SUMS);
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < ranks; k++) {
            int64_t first = k * width, columns = n - first < width ? n - first : width;
            struct dt_tensor own = dt_tensor_columns(logits, first, columns);
            const struct dt_logit_parts parts = dt_logit_parts_of(n, columns, k, ranks);
            struct dt_tensor place = dt_tensor_rows(&sums, parts.first * rows, parts.count * rows);
            int32_t shifted[8];
            for (int64_t i = 0; i < rows; i++)
                shifted[i] = targets[i] - (int32_t)first;
            if (pass == 0)
                d->ops->logit_sums(d, &place, &own, shifted, &parts, &how->map);
            else
                d->ops->cross_entropy_of_sums(d, losses, hits, &own, &sums, shifted, &parts, how);
        }
    free(sums.data);
}

static bool cross_entropy_matches(int64_t n, const struct dt_cross_entropy *how)
{
    enum { ROWS = 5 };
    bool matches = true;
    struct dt_tensor logits = random_matrix(ROWS, n), want = copy_of(&logits);
    int32_t targets[ROWS];
    float losses[ROWS], got_losses[ROWS], hits[2][ROWS];
    for (int64_t i = 0; i < ROWS * n; i++)
        ((float *)logits.data)[i] *= 20;
    memcpy(want.data, logits.data, (size_t)(ROWS * n) * sizeof(float));
    for (int64_t i = 0; i < ROWS; i++) {
        targets[i] = (int32_t)(i * 7919 % n);
        losses[i] = cross_entropy_row(row_of(&want, i), n, targets[i], how);
    }
    if (how->scale == 0)
        memcpy(want.data, logits.data, (size_t)(ROWS * n) * sizeof(float));
    for (int i = 0; i < count; i++)
        for (int ranks = 0; ranks <= 8; ranks += 1 + (ranks > 1) * (ranks - 1)) {
            struct dt_tensor got = copy_of(&logits);
            if (ranks == 0)
                devices[i]->ops->cross_entropy(devices[i], got_losses, hits[0], &got, targets, how);
            else
                run_ranks(devices[i], ranks, &got, targets, how, got_losses, hits[1]);
            matches = matches && same(&got, &want) && !memcmp(losses, got_losses, sizeof losses);
            assert_true(ranks == 0 || !memcmp(hits[0], hits[1], sizeof hits[0]));
            free(got.data);
        }
    free(logits.data), free(want.data);
    return matches;
}

static void cross_entropy_has_the_defined_bits_with_any_ranks(void **state)
{
    (void)state;
    static const int64_t widths[] = {57, 64, 100, 1000, 5003};
    static const struct dt_cross_entropy hows[] = {
        {0, 0, 0, {0, 0}},           {0.25f, 0, 0, {1, 0}},        {0.25f, 0.1f, 0, {0, 0}},
        {0.5f, 0.2f, 0.01f, {0, 0}}, {0, 0.1f, 0.1f, {0, 0}},      {0.25f, 0.1f, 0.01f, {0.3f, 0}},
        {0.5f, 0, 0.01f, {0, 30}},   {0.25f, 0.1f, 0, {0.7f, 11}}, {0, 0.1f, 0.01f, {0.7f, 3}}};
    for (int w = 0; w < 5; w++)
        for (int h = 0; h < 9; h++)
            if (!cross_entropy_matches(widths[w], &hows[h]))
                fail_msg("%d columns, setting %d", (int)widths[w], h);
    lanes = 8;
    bool found = true; /* sums of a few rows may agree by chance */
    for (int i = 0; i < 4; i++)
        found = cross_entropy_matches(5003, &hows[1]) && found;
    lanes = 16;
    assert_false(found);
}

/* --- element by element ----------------------------------------------------------------------- */

/* exp as dt-arithmetic(7) has it, between its limits; c: the coefficient of r^6. */
static float exp_reference(float x, float c)
{
    float t = fmaf(x, 0x1.715476p+0f, 12582912.0f), k = t - 12582912.0f;
    float r = fmaf(k, 0x1.05c61p-29f, fmaf(k, -0x1.62e43p-1f, x));
    const float of[] = {1, 1, 0x1.fffffcp-2f, 0x1.55548cp-3f, 0x1.555858p-5f, 0x1.123dep-7f};
    for (int i = 5; i >= 0; i--)
        c = fmaf(c, r, of[i]);
    return ldexpf(c, (int)k);
}

static void a_changed_coefficient_is_seen(void **state)
{
    (void)state;
    const float c = 0x1.6ac744p-10f;
    int different = 0;
    for (float x = -80; x < 80; x += 0.037f) {
        assert_true(dt_device_exp(x) == exp_reference(x, c));
        different += dt_device_exp(x) != exp_reference(x, c * 1.001f);
    }
    assert_true(different > 0);
}

static float gelu_tanh(float x)
{
    return x * dt_device_sigmoid(x * fmaf(x * x, 0x1.2444f2p-4f, 0x1.988454p+0f));
}

static float gelu_tanh_slope(float x)
{
    float s = dt_device_sigmoid(x * fmaf(x * x, 0x1.2444f2p-4f, 0x1.988454p+0f));
    return fmaf(x * s * (1 - s), fmaf(x * x, 0x1.b6676cp-3f, 0x1.988454p+0f), s);
}

static float gelu_erf(float x)
{
    return x * fmaf(0.5f, dt_device_erf(0x1.6a09e6p-1f * x), 0.5f);
}

static float gelu_erf_slope(float x)
{
    return fmaf(x, 0x1.988454p-2f * dt_device_exp(-0.5f * x * x),
                fmaf(0.5f, dt_device_erf(0x1.6a09e6p-1f * x), 0.5f));
}

static float silu(float x)
{
    return x * dt_device_sigmoid(x);
}

static float silu_slope(float x)
{
    float s = dt_device_sigmoid(x);
    return s * fmaf(x, 1 - s, 1);
}

static float tanh_slope(float x)
{
    return fmaf(-dt_device_tanh(x), dt_device_tanh(x), 1);
}

static float relu(float x)
{
    return x * (float)(x > 0);
}

static float relu_slope(float x)
{
    return x > 0 ? 1 : 0;
}

static const struct {
    enum dt_activation activation;
    float (*value)(float), (*slope)(float);
} definitions[] = {{DT_ACTIVATION_GELU_TANH, gelu_tanh, gelu_tanh_slope},
                   {DT_ACTIVATION_GELU_ERF, gelu_erf, gelu_erf_slope},
                   {DT_ACTIVATION_SILU, silu, silu_slope},
                   {DT_ACTIVATION_TANH, dt_device_tanh, tanh_slope},
                   {DT_ACTIVATION_RELU, relu, relu_slope}};
#define DEFINITIONS (sizeof definitions / sizeof *definitions)

static void activations_have_the_defined_bits(void **state)
{
    (void)state;
    struct dt_tensor x = random_matrix(50, 203), dy = random_matrix(50, 203);
    for (int64_t i = 0; i < 50 * 203; i++)
        ((float *)x.data)[i] *= 9;
    for (int i = 0; i < count; i++)
        for (size_t a = 0; a < DEFINITIONS; a++) {
            struct dt_tensor y = copy_of(&x), dx = copy_of(&dy);
            devices[i]->ops->activation_forward(devices[i], &y, &x, definitions[a].activation);
            devices[i]->ops->activation_backward(devices[i], &dx, &x, definitions[a].activation);
            for (int64_t j = 0; j < 50 * 203; j++) {
                float at_x = at(&x, 0, j);
                assert_true(at(&y, 0, j) == definitions[a].value(at_x));
                assert_true(at(&dx, 0, j) == at(&dy, 0, j) * definitions[a].slope(at_x));
            }
            free(y.data), free(dx.data);
        }
    free(x.data), free(dy.data);
}

static void gates_have_the_defined_bits(void **state)
{
    (void)state;
    struct dt_tensor gate = random_matrix(20, 101), up = random_matrix(20, 101);
    struct dt_tensor dy = random_matrix(20, 101);
    for (int64_t i = 0; i < 20 * 101; i++)
        ((float *)gate.data)[i] *= 9;
    for (int i = 0; i < count; i++)
        for (size_t a = 0; a < DEFINITIONS; a++) {
            enum dt_activation which = definitions[a].activation;
            struct dt_tensor y = copy_of(&gate), dgate = copy_of(&gate), dup = copy_of(&dy);
            devices[i]->ops->gated_forward(devices[i], &y, &gate, &up, which);
            devices[i]->ops->gated_backward(devices[i], &dgate, &dup, &gate, &up, which);
            for (int64_t j = 0; j < 20 * 101; j++) {
                float g = at(&gate, 0, j), u = at(&up, 0, j), d = at(&dy, 0, j);
                assert_true(at(&y, 0, j) == definitions[a].value(g) * u);
                assert_true(at(&dgate, 0, j) == d * u * definitions[a].slope(g));
                assert_true(at(&dup, 0, j) == d * definitions[a].value(g));
            }
            free(y.data), free(dgate.data), free(dup.data);
        }
    free(gate.data), free(up.data), free(dy.data);
}

/* The first channels of each head are rotated: all of them, or 18 of 21. */
static void check_rope_and_combine(int size)
{
    enum { HALF = 9 };
    struct dt_tensor x = random_matrix(6, 3 * size), table = random_matrix(6, 2 * HALF);
    for (int i = 0; i < count; i++) {
        struct dt_tensor y = copy_of(&x), sum = copy_of(&x);
        devices[i]->ops->rope(devices[i], &y, &table, size, 6, 0, true);
        devices[i]->ops->combine(devices[i], &sum, 0.3f, &y, 1.7f);
        for (int64_t r = 0; r < 6; r++)
            for (int64_t j = 0; j < 3 * size; j++) {
                int64_t c = j % size % HALF;
                bool second = j % size >= HALF, kept = j % size >= 2 * HALF;
                float cosine = at(&table, r, c), sine = -at(&table, r, HALF + c),
                      own = at(&x, r, j);
                float other = kept ? 0 : at(&x, r, second ? j - HALF : j + HALF);
                assert_true(
                    at(&y, r, j) ==
                    (kept ? own : fmaf(own, cosine, second ? other * sine : -(other * sine))));
                assert_true(at(&sum, r, j) == fmaf(1.7f, at(&y, r, j), 0.3f * at(&x, r, j)));
            }
        free(y.data), free(sum.data);
    }
    free(x.data), free(table.data);
}

static void rope_and_combine_have_the_defined_bits(void **state)
{
    (void)state;
    check_rope_and_combine(18);
    check_rope_and_combine(21);
}

/* Rows of dropout, of orthonormalization, and of the largest elements are the first engine's. */
static void other_ops_have_the_same_bits_everywhere(void **state)
{
    (void)state;
    struct dt_tensor x = random_matrix(5, 1003), first[2] = {{0}};
    for (int i = 0; i < count; i++) {
        struct dt_tensor got[2] = {copy_of(&x), copy_of(&x)};
        const struct dt_dropout how = {.rate = 0.3f, .key = 7, .sample = 2};
        devices[i]->ops->dropout(devices[i], &got[0], 5, &how);
        devices[i]->ops->orthonormalize(devices[i], &got[1]);
        for (int k = 0; k < 2; k++) {
            if (i == 0)
                first[k] = got[k];
            else
                assert_true(same(&got[k], &first[k]));
            if (i > 0)
                free(got[k].data);
        }
    }
    free(x.data), free(first[0].data), free(first[1].data);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_have_the_defined_bits),
        cmocka_unit_test(another_order_has_other_bits),
        cmocka_unit_test(bias_backward_has_the_defined_bits),
        cmocka_unit_test(embedding_backward_has_the_defined_bits),
        cmocka_unit_test(cross_entropy_has_the_defined_bits_with_any_ranks),
        cmocka_unit_test(a_changed_coefficient_is_seen),
        cmocka_unit_test(activations_have_the_defined_bits),
        cmocka_unit_test(gates_have_the_defined_bits),
        cmocka_unit_test(rope_and_combine_have_the_defined_bits),
        cmocka_unit_test(other_ops_have_the_same_bits_everywhere),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, open_all, close_all);
}
