/* SPDX-License-Identifier: MIT */
#include "train/layer-metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "model/head.h"

#define ROW_ELEMENTS ((int64_t)1 << 20) /* read at a time, but at least one row */

/* Places in sums: means as their sum and their count, then single numbers. */
enum { SUM, COUNT, MEAN };
enum { LARGEST_LOGIT, GRADIENT_SQUARES, SINGLES };

static int layers_of(const struct dt_layer_metrics *m)
{
    return m->model->table.layers;
}

static bool wants(const struct dt_layer_metrics *m, enum dt_layer_metric metric)
{
    return m->wanted >> metric & 1;
}

static int64_t state_count(const struct dt_layer_metrics *m)
{
    return (layers_of(m) + 1) * DT_TRACE_POINTS;
}

static int64_t head_count(const struct dt_layer_metrics *m)
{
    return layers_of(m) * m->model->config.num_heads;
}

static double *state_mean(const struct dt_layer_metrics *m, int layer, enum dt_trace_point point)
{
    return m->sums + MEAN * (layer * DT_TRACE_POINTS + (int)point);
}

static double *head_mean(const struct dt_layer_metrics *m, int layer, int64_t head)
{
    return m->sums + MEAN * (state_count(m) + layer * m->model->config.num_heads + head);
}

static double *logit_mean(const struct dt_layer_metrics *m)
{
    return m->sums + MEAN * (state_count(m) + head_count(m));
}

static double *singles(const struct dt_layer_metrics *m)
{
    return logit_mean(m) + MEAN;
}

static int64_t row_elements(const struct dt_layer_metrics *m)
{
    const int64_t widest = dt_model_logit_count(&m->model->config);
    return widest > ROW_ELEMENTS ? widest : ROW_ELEMENTS;
}

/* NaN stays. */
static double larger(double a, double b)
{
    return isnan(a) || b <= a ? a : b;
}

/* --- reading tensors -------------------------------------------------------------------------- */

/* Calls use with rows of x in fp32: count rows, the first of which has the index first. */
typedef void row_function(struct dt_layer_metrics *m, const float *rows, int64_t count,
                          int64_t columns, void *context);

static void read_rows(struct dt_layer_metrics *m, const struct dt_tensor *x, row_function *use,
                      void *context)
{
    struct dt_device *dev = m->model->device;
    const int64_t most = row_elements(m) / x->columns;
    for (int64_t first = 0, n; first < x->rows; first += n) {
        n = x->rows - first < most ? x->rows - first : most;
        struct dt_tensor from = dt_tensor_rows(x, first, n), to = dt_matrix(m->rows, n, x->columns);
        dev->ops->copy(dev, &to, &from);
        dev->ops->download(dev, m->host, m->rows, (size_t)(n * x->columns) * sizeof *m->host);
        use(m, m->host, n, x->columns, context);
    }
}

static void copy_out(struct dt_layer_metrics *m, const float *rows, int64_t count, int64_t columns,
                     void *context)
{
    float **to = context;
    (void)m;
    memcpy(*to, rows, (size_t)(count * columns) * sizeof *rows);
    *to += count * columns;
}

/* Owned by the caller. */
static float *read_all(struct dt_layer_metrics *m, const struct dt_tensor *x)
{
    float *all = dt_alloc((size_t)(x->rows * x->columns) + 1, sizeof *all), *end = all;
    read_rows(m, x, copy_out, &end);
    return all;
}

static void add_squares(struct dt_layer_metrics *m, const float *rows, int64_t count,
                        int64_t columns, void *context)
{
    double *mean = context, sum = 0;
    (void)m;
    for (int64_t i = 0; i < count * columns; i++)
        sum += (double)rows[i] * (double)rows[i];
    mean[SUM] += sum;
    mean[COUNT] += (double)(count * columns);
}

/* --- the hook --------------------------------------------------------------------------------- */

static void add_logits(struct dt_layer_metrics *m, const float *rows, int64_t count,
                       int64_t columns, void *context)
{
    const struct dt_logit_map map = dt_head_logit_map(m->model);
    const double scale = map.scale != 0 ? (double)map.scale : 1, cap = (double)map.softcap;
    double *mean = logit_mean(m), largest = singles(m)[LARGEST_LOGIT];
    (void)context;
    for (int64_t i = 0; i < count * columns; i++) {
        double logit = scale * (double)rows[i];
        logit = cap > 0 ? cap * tanh(logit / cap) : logit;
        mean[SUM] += logit * logit;
        largest = larger(largest, fabs(logit));
    }
    mean[COUNT] += (double)(count * columns);
    singles(m)[LARGEST_LOGIT] = largest;
}

static void add_units(struct dt_layer_metrics *m, const float *rows, int64_t count, int64_t columns,
                      void *context)
{
    unsigned char *units = context;
    (void)m;
    for (int64_t row = 0; row < count; row++)
        for (int64_t i = 0; i < columns; i++)
            units[i] |= rows[row * columns + i] > 0;
}

/* The entropy of a row of weights p is lse - sum p s, and with scores s linear in the keys the sum
 * is the score of their mean. */
static void add_entropies(struct dt_layer_metrics *m, const struct dt_workspace *work, int layer)
{
    const struct dt_mean_keys keys = dt_pass_mean_keys(work, layer);
    const int64_t heads = keys.lse.columns, size = keys.queries.columns / heads;
    float *queries = read_all(m, &keys.queries), *means = read_all(m, &keys.means);
    float *lse = read_all(m, &keys.lse);
    for (int64_t i = 0; i < keys.lse.rows * heads; i++) {
        double *mean = head_mean(m, layer, m->model->partition.heads.first + i % heads), score = 0;
        for (int64_t j = i * size; j < (i + 1) * size; j++)
            score += (double)queries[j] * (double)means[j];
        if (lse[i] == -INFINITY) /* a query without keys */
            continue;
        mean[SUM] += (double)lse[i] - keys.scale * score;
        mean[COUNT]++;
    }
    free(queries);
    free(means);
    free(lse);
}

/* A layer of a micro-batch that was not seen before. */
static bool is_new(struct dt_layer_metrics *m, const struct dt_workspace *work, int layer,
                   enum dt_trace_point point)
{
    const uint64_t sample = dt_pass_token(work, 0) / (uint64_t)m->length - m->samples;
    bool *seen = &m->seen[(layer * DT_TRACE_POINTS + (int)point) * m->batches +
                          (int64_t)sample / m->sequences];
    const bool is_new = !*seen;
    *seen = true;
    return is_new;
}

static void see_middle(struct dt_layer_metrics *m, const struct dt_workspace *work, int layer)
{
    const struct dt_range own = m->model->partition.inner;
    if (wants(m, DT_LAYER_METRIC_DEAD_UNITS)) {
        const struct dt_tensor units = dt_pass_units(work, layer);
        read_rows(m, &units, add_units,
                  m->units + layer * m->model->config.intermediate_size + own.first);
    }
    if (wants(m, DT_LAYER_METRIC_ENTROPY))
        add_entropies(m, work, layer);
}

static void see(void *context, const struct dt_workspace *work, enum dt_trace_point point,
                int layer, const struct dt_tensor *x)
{
    struct dt_layer_metrics *m = context;
    if (point == DT_TRACE_POINT_LOGITS) {
        if (wants(m, DT_LAYER_METRIC_LOGITS) && !(m->padding && *m->padding))
            read_rows(m, x, add_logits, NULL);
        return;
    }
    if (point == DT_TRACE_POINT_GRADIENT || !is_new(m, work, layer, point))
        return;
    if (wants(m, DT_LAYER_METRIC_RMS))
        read_rows(m, x, add_squares, state_mean(m, layer, point));
    if (point == DT_TRACE_POINT_MIDDLE)
        see_middle(m, work, layer);
}

/* --- a step ----------------------------------------------------------------------------------- */

static size_t unit_count(const struct dt_layer_metrics *m)
{
    return (size_t)(layers_of(m) * m->model->config.intermediate_size);
}

static size_t seen_count(const struct dt_layer_metrics *m)
{
    return (size_t)(state_count(m) * m->batches);
}

int dt_layer_metrics_init(struct dt_layer_metrics *m, unsigned wanted, struct dt_model *model,
                          int64_t sequences, int64_t length, int64_t batches, const bool *padding,
                          struct dt_error *err)
{
    *m = (struct dt_layer_metrics){.wanted = wanted,
                                   .model = model,
                                   .padding = padding,
                                   .sequences = sequences,
                                   .length = length,
                                   .batches = batches,
                                   .hook = {m, see, NULL}};
    if (wanted == 0)
        return 0;
    const size_t bytes = (size_t)row_elements(m) * sizeof *m->rows;
    dt_arena_take(&m->arena, bytes);
    DT_TRY(dt_arena_allocate(&m->arena, model->device, err));
    m->rows = dt_arena_take(&m->arena, bytes);
    m->host = dt_alloc(bytes, 1);
    m->sum_count = (size_t)(MEAN * (state_count(m) + head_count(m) + 1) + SINGLES);
    m->sums = dt_alloc(m->sum_count, sizeof *m->sums);
    m->units = dt_alloc(unit_count(m), 1);
    m->seen = dt_alloc(seen_count(m), sizeof *m->seen);
    return 0;
}

void dt_layer_metrics_release(struct dt_layer_metrics *m)
{
    if (m->wanted)
        dt_arena_release(&m->arena, m->model->device);
    free(m->host);
    free(m->sums);
    free(m->units);
    free(m->seen);
    *m = (struct dt_layer_metrics){0};
}

void dt_layer_metrics_begin(struct dt_layer_metrics *m, uint64_t samples)
{
    m->samples = samples;
    m->active = true;
    memset(m->sums, 0, m->sum_count * sizeof *m->sums);
    memset(m->units, 0, unit_count(m));
    memset(m->seen, 0, seen_count(m) * sizeof *m->seen);
    m->hook.next = m->model->trace;
    m->model->trace = &m->hook;
}

void dt_layer_metrics_add_gradient(struct dt_layer_metrics *m, double squares)
{
    singles(m)[GRADIENT_SQUARES] += squares;
}

/* Sums, and the largest logit, of all ranks. */
static int share_sums(struct dt_layer_metrics *m, struct dt_comm *comm, struct dt_error *err)
{
    const size_t size = (size_t)dt_comm_size(comm), bytes = m->sum_count * sizeof *m->sums;
    double *all = dt_alloc(size, bytes), largest = 0;
    memcpy(all + (size_t)dt_comm_rank(comm) * m->sum_count, m->sums, bytes);
    int rc = dt_comm_share(comm, all, bytes, err);
    memset(m->sums, 0, bytes);
    double *const last = &singles(m)[LARGEST_LOGIT];
    for (size_t r = 0; rc == 0 && r < size; r++) {
        const double *theirs = all + r * m->sum_count, logit = theirs[last - m->sums];
        for (size_t i = 0; i < m->sum_count; i++)
            m->sums[i] += theirs[i];
        largest = larger(largest, logit);
    }
    *last = largest;
    free(all);
    return rc;
}

static int share_units(struct dt_layer_metrics *m, struct dt_comm *comm, struct dt_error *err)
{
    const size_t size = (size_t)dt_comm_size(comm), count = unit_count(m);
    unsigned char *all = dt_alloc(size, count);
    memcpy(all + (size_t)dt_comm_rank(comm) * count, m->units, count);
    int rc = dt_comm_share(comm, all, count, err);
    for (size_t i = 0; rc == 0 && i < size * count; i++)
        m->units[i % count] |= all[i];
    free(all);
    return rc;
}

int dt_layer_metrics_end(struct dt_layer_metrics *m, struct dt_comm *comm, struct dt_error *err)
{
    m->active = false;
    DT_TRY(share_sums(m, comm, err));
    return wants(m, DT_LAYER_METRIC_DEAD_UNITS) ? share_units(m, comm, err) : 0;
}

/* --- results ---------------------------------------------------------------------------------- */

static double divide(const double *mean)
{
    return mean[COUNT] > 0 ? mean[SUM] / mean[COUNT] : NAN;
}

double dt_layer_metrics_rms(const struct dt_layer_metrics *m, int layer, enum dt_trace_point point)
{
    return sqrt(divide(state_mean(m, layer, point)));
}

double dt_layer_metrics_entropy(const struct dt_layer_metrics *m, int layer, int head)
{
    if (head >= 0)
        return divide(head_mean(m, layer, head));
    double all[MEAN] = {0};
    for (int h = 0; h < m->model->config.num_heads; h++)
        for (int i = 0; i < MEAN; i++)
            all[i] += head_mean(m, layer, h)[i];
    return divide(all);
}

double dt_layer_metrics_dead_units(const struct dt_layer_metrics *m, int layer)
{
    const long count = m->model->config.intermediate_size;
    long on = 0;
    for (long i = 0; i < count; i++)
        on += m->units[layer * count + i];
    return wants(m, DT_LAYER_METRIC_DEAD_UNITS) ? 1 - (double)on / (double)count : NAN;
}

double dt_layer_metrics_logit_rms(const struct dt_layer_metrics *m)
{
    return sqrt(divide(logit_mean(m)));
}

double dt_layer_metrics_logit_max(const struct dt_layer_metrics *m)
{
    return logit_mean(m)[COUNT] > 0 ? singles(m)[LARGEST_LOGIT] : NAN;
}

struct dt_gradient_noise dt_layer_metrics_noise(const struct dt_layer_metrics *m, double norm,
                                                double factor, int64_t n, double tokens, int ranks)
{
    if (n < 2)
        return (struct dt_gradient_noise){NAN, NAN};
    /* Of n times a micro-batch's share of the mean. */
    const double scale = (double)n / factor, batches = (double)n;
    const double one = singles(m)[GRADIENT_SQUARES] / ranks * scale * scale, all = norm * norm;
    return (struct dt_gradient_noise){
        .signal = (batches * all - one) / (batches - 1),
        .noise = (one - all) * tokens * batches / (batches - 1),
    };
}
