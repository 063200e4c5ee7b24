/* SPDX-License-Identifier: MIT */
#include "plan/costs.h"

#include <math.h>
#include <stdlib.h>

#include "model/block.h"
#include "model/tensor-partition.h"
#include "json/json.h"

const char *const dt_work_names[] = {"products",  "attention", "norms", "elements",
                                     "embedding", "head",      "loss",  NULL};

#define FLASH 2.5 /* five products of backward over two of forward (Dao 2022) */

/* Achieved rates of a device. */
struct rates {
    double gemm, attention, memory; /* FLOP/s, FLOP/s, bytes/s */
    double peak, bandwidth;         /* FLOP/s and bytes/s that the device could do at most */
    double launch;                  /* seconds per kernel launch */
    double element;                 /* bytes */
};

static struct rates rates_of(const struct dt_cluster *c, double element)
{
    const double gemm = dt_cluster_gemm_rate(c, (size_t)element);
    return (struct rates){
        .gemm = gemm,
        .attention = dt_cluster_attention_rate(c, (size_t)element),
        .memory = dt_cluster_memory_rate(c),
        .peak = gemm / c->device.gemm_efficiency,
        .bandwidth = c->device.bandwidth * 1e9,
        .launch = c->device.launch * 1e-6,
        .element = element,
    };
}

static struct dt_work work(const struct rates *r, double flops, double bytes, double seconds,
                           double launches)
{
    return (struct dt_work){flops, bytes, launches, seconds + launches * r->launch,
                            fmax(flops / r->peak, bytes / r->bandwidth)};
}

static void add_work(struct dt_work *to, struct dt_work more, double times)
{
    to->flops += times * more.flops;
    to->bytes += times * more.bytes;
    to->launches += times * more.launches;
    to->seconds += times * more.seconds;
    to->least += times * more.least;
}

/* Reads overlap with arithmetic; writes do not, because a tile's result is written when its sums
 * are complete. extra: further bytes read and written. */
static struct dt_work product(const struct rates *r, double rows, double inner, double columns,
                              double extra)
{
    double read = r->element * (rows * inner + inner * columns), flops = 2 * rows * inner * columns;
    double written = r->element * rows * columns + extra;
    return work(r, flops, read + written,
                fmax(flops / r->gemm, read / r->memory) + written / r->memory, 1);
}

/* Backward of a linear layer: the gradients of its input and of its weight, which accumulates in
 * fp32. */
static struct dt_work product_backward(const struct rates *r, double rows, double inner,
                                       double columns)
{
    struct dt_work w = product(r, rows, columns, inner, 0);
    add_work(&w,
             product(r, inner, rows, columns, (2 * sizeof(float) - r->element) * inner * columns),
             1);
    return w;
}

/* Memory-bound operations that read and write elements in total. */
static struct dt_work memory_bound(const struct rates *r, double elements, double operations)
{
    double bytes = elements * r->element;
    return work(r, 0, bytes, bytes / r->memory, operations);
}

/* Sizes of a transformer block on one rank. */
struct block {
    double rows, own;           /* tokens per micro-batch; this rank's outside the products */
    double width, inner, heads; /* hidden size; this rank's of the MLP, of queries */
    double keys;                /* this rank's columns of keys */
    double seen;                /* keys that a query attends to, in the mean */
    double others;              /* other context-parallel ranks */
    bool gated, rotary, biased;
};

static struct block block_of(const struct dt_settings *s, const struct dt_plan_layout *l)
{
    const struct dt_model_config *m = &s->model;
    const struct dt_tensor_partition partition =
        dt_tensor_partition_of(m, (int)l->tp_rank, (int)l->tp);
    double size = (double)dt_model_head_dim(m), rows = dt_layout_tokens(l, s);
    const struct dt_family_descriptor *family = dt_family_of(m);
    return (struct block){
        .rows = rows,
        .own = s->distributed.sequence_parallel ? rows / (double)l->tp : rows,
        .width = (double)m->hidden_size,
        .inner = (double)dt_range_count(partition.inner),
        .heads = size * (double)dt_range_count(partition.heads),
        .keys = size * (double)dt_range_count(partition.kv_heads),
        .seen = dt_model_mean_keys_seen(m, s->training.sequence_length),
        .others = (double)(l->cp - 1),
        .gated = dt_model_is_gated(m),
        .rotary = dt_model_is_rotary(m),
        .biased = family->biases == DT_BIAS_ALL,
    };
}

/* Reads queries, keys and values, writes outputs; backward reads outputs and their gradients too,
 * and writes three gradients. */
static struct dt_work attention(const struct rates *r, const struct block *b, bool backward)
{
    double flops = 4 * b->rows * b->seen * b->heads, times = backward ? FLASH : 1;
    double bytes = 2 * b->rows * (b->heads + b->keys) * r->element * (backward ? 2 : 1);
    return work(r, times * flops, bytes, times * flops / r->attention, backward ? 3 : 1);
}

/* Extra memory traffic of context parallelism: keys and values are copied before the all-gather,
 * and those of all ranks after it, into the order of positions. Backward also adds, copies back
 * and sums over the ranks the fp32 gradients of all keys and values. */
static struct dt_work gathering(const struct rates *r, const struct block *b, bool backward)
{
    double block = 2 * b->rows * b->keys, ranks = b->others + 1;
    double copied = 2 * block * (1 + ranks), added = block * (5 * ranks + 3 * b->others + 2);
    double bytes = copied * r->element + (backward ? added * sizeof(float) : 0);
    if (b->others == 0)
        return (struct dt_work){0};
    return work(r, 0, bytes, bytes / r->memory, (2 + 2 * ranks) * (backward ? 3 : 1));
}

/* Each of two norms reads the residual hidden and a branch, and writes their sum and its norm. */
static struct dt_work norms(const struct rates *r, const struct block *b)
{
    return memory_bound(r, 2 * 4 * b->own * b->width, 2);
}

static struct dt_work activation(const struct rates *r, const struct block *b)
{
    return b->gated ? memory_bound(r, 3 * b->rows * b->inner, 1)
                    : memory_bound(r, b->rows * b->inner, 0);
}

static struct dt_work rotation(const struct rates *r, const struct block *b)
{
    return b->rotary ? memory_bound(r, 2 * b->rows * (b->heads + b->keys), 2) : (struct dt_work){0};
}

static void block_forward(const struct rates *r, const struct block *b, struct dt_work *parts)
{
    struct dt_work *products = &parts[DT_WORK_PRODUCTS];
    add_work(&parts[DT_WORK_NORMS], norms(r, b), 1);
    add_work(products, product(r, b->rows, b->width, b->heads + 2 * b->keys, 0), 1);
    add_work(&parts[DT_WORK_ELEMENTS], rotation(r, b), 1);
    add_work(&parts[DT_WORK_ATTENTION], attention(r, b, false), 1);
    add_work(&parts[DT_WORK_ELEMENTS], gathering(r, b, false), 1);
    add_work(products, product(r, b->rows, b->heads, b->width, 0), 1);
    add_work(products, product(r, b->rows, b->width, b->inner, 0), b->gated ? 2 : 1);
    add_work(&parts[DT_WORK_ELEMENTS], activation(r, b), 1);
    add_work(products, product(r, b->rows, b->inner, b->width, 0), 1);
}

static void block_again(const struct rates *r, const struct block *b, enum dt_recompute recompute,
                        struct dt_work *parts)
{
    if (recompute == DT_RECOMPUTE_SELECTIVE) {
        add_work(&parts[DT_WORK_NORMS], norms(r, b), 1);
        add_work(&parts[DT_WORK_ELEMENTS], activation(r, b), 1);
    } else if (recompute == DT_RECOMPUTE_FULL) {
        block_forward(r, b, parts);
        add_work(&parts[DT_WORK_PRODUCTS], product(r, b->rows, b->inner, b->width, 0), -1);
    }
}

static void block_backward(const struct rates *r, const struct block *b,
                           enum dt_recompute recompute, struct dt_work *parts)
{
    struct dt_work *products = &parts[DT_WORK_PRODUCTS], *elements = &parts[DT_WORK_ELEMENTS];
    block_again(r, b, recompute, parts);
    add_work(&parts[DT_WORK_NORMS], norms(r, b), 1);
    add_work(elements, rotation(r, b), 1);
    if (b->biased)
        add_work(elements, memory_bound(r, b->rows * (2 * b->width + b->heads + b->inner), 4), 1);
    add_work(&parts[DT_WORK_ATTENTION], attention(r, b, true), 1);
    add_work(elements, gathering(r, b, true), 1);
    add_work(elements,
             b->gated ? memory_bound(r, 5 * b->rows * b->inner, 1)
                      : memory_bound(r, b->rows * b->inner, 0),
             1);
    add_work(products, product_backward(r, b->rows, b->width, b->heads + 2 * b->keys), 1);
    add_work(products, product_backward(r, b->rows, b->heads, b->width), 1);
    add_work(products, product_backward(r, b->rows, b->width, b->inner), b->gated ? 2 : 1);
    add_work(products, product_backward(r, b->rows, b->inner, b->width), 1);
}

struct head {
    double rows, width, vocab;
};

static struct head head_of(const struct dt_settings *s, const struct dt_plan_layout *l)
{
    double rows = dt_layout_tokens(l, s);
    double width = (double)s->model.hidden_size;
    if (s->model.num_labels > 0)
        return (struct head){rows / (double)s->training.sequence_length, width,
                             (double)s->model.num_labels};
    return (struct head){dt_model_is_masked(&s->model) ? s->data.mask_rate * rows : rows, width,
                         (double)s->model.vocab_size / (double)l->tp};
}

/* The loss reads the logits and writes their gradients. */
static void head_forward(const struct rates *r, const struct head *h, struct dt_work *parts)
{
    add_work(&parts[DT_WORK_HEAD], product(r, h->rows, h->width, h->vocab, 0), 1);
    add_work(&parts[DT_WORK_LOSS], memory_bound(r, 3 * h->rows * h->vocab, 1), 1);
}

static void head_backward(const struct rates *r, const struct head *h, struct dt_work *parts)
{
    add_work(&parts[DT_WORK_HEAD], product_backward(r, h->rows, h->width, h->vocab), 1);
}

/* A micro-batch through one model chunk. */
struct chunk_work {
    struct dt_work forward[DT_WORK_PARTS], backward[DT_WORK_PARTS];
};

static struct chunk_work chunk_work(const struct rates *r, const struct dt_settings *s,
                                    const struct dt_plan_layout *l, long chunk)
{
    const struct block block = block_of(s, l);
    const struct head head = head_of(s, l);
    const double hidden = block.own * block.width;
    struct chunk_work layer = {.forward = {{0}}}, w = {.forward = {{0}}};
    block_forward(r, &block, layer.forward);
    block_backward(r, &block, (enum dt_recompute)l->recompute, layer.backward);
    for (int i = 0; i < DT_WORK_PARTS; i++) {
        const double layers = (double)dt_layout_layers(l, s->model.num_layers, chunk);
        add_work(&w.forward[i], layer.forward[i], layers);
        add_work(&w.backward[i], layer.backward[i], layers);
    }
    if (chunk == 0) {
        add_work(&w.forward[DT_WORK_EMBEDDING], memory_bound(r, 2 * hidden, 1), 1);
        add_work(&w.backward[DT_WORK_EMBEDDING], memory_bound(r, 6 * hidden, 1), 1);
    }
    if (chunk == dt_layout_chunks(l) - 1) {
        head_forward(r, &head, w.forward);
        head_backward(r, &head, w.backward);
    }
    return w;
}

static double seconds_of(const struct dt_work *parts)
{
    double seconds = 0;
    for (int i = 0; i < DT_WORK_PARTS; i++)
        seconds += parts[i].seconds;
    return seconds;
}

/* An all-gather or reduce-scatter of bytes over ranks that are stride apart. Each byte enters a
 * node once, whatever the number of its ranks there. */
static struct dt_transfer_cost collective(double bytes, long ranks, long stride,
                                          const struct dt_cluster *c)
{
    double size = (double)ranks, fitting = floor((double)dt_cluster_node_ranks(c) / (double)stride);
    double members = fmin(fmax(fitting, 1), size), nodes = ceil(size / members);
    double steps = ceil(log2(size));
    struct dt_transfer_cost t = {0};
    if (ranks == 1)
        return t;
    if (members > 1)
        t.inside = bytes * (size - 1) / size;
    t.between = bytes * (nodes - 1) / nodes / members;
    t.latency = steps * (nodes > 1 ? c->link.between_latency : c->link.inside_latency) * 1e-6;
    return t;
}

/* a, followed by b times times. */
static struct dt_transfer_cost add(struct dt_transfer_cost a, struct dt_transfer_cost b,
                                   double times)
{
    return (struct dt_transfer_cost){a.inside + b.inside * times, a.between + b.between * times,
                                     a.latency + b.latency * times};
}

/* An all-gather or reduce-scatter within a ZeRO group. */
static struct dt_transfer_cost sharded_collective(double bytes, const struct dt_plan_layout *l,
                                                  const struct dt_cluster *c)
{
    return collective(bytes, dt_layout_shard_size(l), l->tp, c);
}

/* Reduces gradients: reduce-scatter within each ZeRO group, all-reduce of each piece across the
 * groups, and without ZeRO an all-gather. */
static struct dt_transfer_cost reduce(double bytes, const struct dt_plan_layout *l,
                                      const struct dt_cluster *c)
{
    long owners = dt_layout_shard_size(l);
    struct dt_transfer_cost within = sharded_collective(bytes, l, c);
    struct dt_transfer_cost across =
        collective(bytes / (double)owners, dt_layout_shard_groups(l), l->tp * owners, c);
    return add(add(within, within, l->zero_stage == 0 ? 1 : 0), across, 2);
}

static double inside_rate(const struct dt_cluster *c)
{
    return c->link.inside / (double)c->device.ranks * 1e9 * c->link.inside_efficiency;
}

static double between_rate(const struct dt_cluster *c)
{
    return c->link.between / (double)dt_cluster_node_ranks(c) * 1e9 * c->link.between_efficiency;
}

double dt_transfer_cost_seconds(const struct dt_transfer_cost *t, const struct dt_cluster *c)
{
    return fmax(t->inside / inside_rate(c), t->between / between_rate(c)) + t->latency;
}

/* Collectives of the residual hidden; a layer has four, before and after attention and MLP. */
static double tensor_seconds(double collectives, const struct dt_base *b,
                             const struct dt_settings *s, const struct dt_plan_layout *l,
                             const struct dt_cluster *c)
{
    double hidden = dt_layout_tokens(l, s) * (double)s->model.hidden_size;
    double bytes = collectives * hidden * b->element * (double)(l->tp - 1) / (double)l->tp;
    bool within = l->tp <= dt_cluster_node_ranks(c);
    double latency = within ? c->link.inside_latency : c->link.between_latency;
    if (l->tp == 1)
        return 0;
    return bytes / (within ? inside_rate(c) : between_rate(c)) +
           collectives * log2((double)l->tp) * latency * 1e-6;
}

/* Collectives of context parallelism in a layer: an all-gather, in backward also a
 * reduce-scatter. */
static double context_seconds(bool backward, const struct dt_base *b, const struct dt_settings *s,
                              const struct dt_plan_layout *l, const struct dt_cluster *c)
{
    bool within = l->cp * l->tp <= dt_cluster_node_ranks(c);
    double collectives = backward ? l->recompute == DT_RECOMPUTE_FULL ? 3 : 2 : 1;
    double latency = (within ? c->link.inside_latency : c->link.between_latency) * 1e-6;
    return dt_sizes_context_bytes(b, s, l, backward) / (within ? inside_rate(c) : between_rate(c)) +
           collectives * (double)(l->cp - 1) * latency;
}

/* Collectives of the hidden size to which an all-reduce of queries and keys amounts, for norms of
 * all heads: one in forward, two in backward. */
static double qk_collectives(const struct dt_model_config *c)
{
    return dt_model_has_joint_qk_norm(c)
               ? 2 * (double)(dt_model_query_width(c) + dt_model_kv_width(c)) /
                     (double)c->hidden_size
               : 0;
}

static struct dt_chunk_costs chunk_costs(const struct dt_base *b, const struct dt_settings *s,
                                         const struct dt_plan_layout *l, const struct dt_cluster *c,
                                         long chunk)
{
    const struct rates r = rates_of(c, b->element);
    const struct chunk_work w = chunk_work(&r, s, l, chunk);
    long layers = dt_layout_layers(l, s->model.num_layers, chunk);
    double count = (double)layers, again = l->recompute == DT_RECOMPUTE_FULL ? 2 : 1;
    bool gathers = !s->distributed.sequence_parallel; /* activations received from other stages */
    double sums = 2 + 2 * sizeof(float) / b->element; /* all-gathers, and reductions of fp32 */
    double qk = qk_collectives(&s->model);
    double received = gathers && chunk > 0, sent = gathers && chunk < dt_layout_chunks(l) - 1;
    double each = b->chunk_elements[chunk] / count;
    struct dt_chunk_costs k = {
        .layers = layers,
        .forward = seconds_of(w.forward),
        .backward = seconds_of(w.backward),
        .forward_tensor = tensor_seconds((sums + qk) * count + received, b, s, l, c) +
                          count * context_seconds(false, b, s, l, c),
        .backward_tensor =
            tensor_seconds((sums * again + (1 + again) * qk) * count + sent, b, s, l, c) +
            count * context_seconds(true, b, s, l, c),
        .gather = sharded_collective(each * b->element, l, c),
        .reduce = reduce(each * dt_sizes_sent_gradient(s), l, c),
        .reduce_earlier = sharded_collective(each * sizeof(float), l, c),
    };
    return k;
}

/* Reads and writes parameters and moments; reads gradients twice, once for their norm, and zeroes
 * them; writes weights. */
static struct dt_work update(const struct dt_base *b, const struct dt_plan_layout *l,
                             const struct dt_cluster *c, double elements)
{
    const struct rates r = rates_of(c, b->element);
    double owned = l->zero_stage >= 1 ? elements / (double)dt_layout_shard_size(l) : elements;
    double bytes = owned * (2 * b->moments + 2 * sizeof(float) + sizeof(float) + b->element) +
                   elements * 2 * sizeof(float);
    return work(&r, 0, bytes, bytes / r.memory, 0);
}

void dt_costs_step_work(struct dt_step_work *w, const struct dt_base *b,
                        const struct dt_settings *s, const struct dt_plan_layout *l,
                        const struct dt_cluster *c)
{
    const struct rates r = rates_of(c, b->element);
    *w = (struct dt_step_work){.update = update(b, l, c, b->stages->elements)};
    for (long chunk = 0; chunk < dt_layout_chunks(l); chunk++) {
        const struct chunk_work one = chunk_work(&r, s, l, chunk);
        for (int i = 0; i < DT_WORK_PARTS; i++) {
            add_work(&w->forward[i], one.forward[i], (double)l->batches);
            add_work(&w->backward[i], one.backward[i], (double)l->batches);
        }
    }
}

void dt_costs_init(struct dt_costs *k, const struct dt_base *b, const struct dt_settings *s,
                   const struct dt_plan_layout *l, const struct dt_cluster *c,
                   const struct dt_measured *measured)
{
    const struct dt_measured as_predicted = {1, 1};
    long chunks = dt_layout_chunks(l), length = s->training.sequence_length;
    double most = 0;
    measured = measured ? measured : &as_predicted;
    *k = (struct dt_costs){.chunks = dt_alloc((size_t)chunks, sizeof *k->chunks)};
    for (long i = 0; i < chunks; i++) {
        k->chunks[i] = chunk_costs(b, s, l, c, i);
        k->chunks[i].forward *= measured->passes;
        k->chunks[i].backward *= measured->passes;
    }
    for (long stage = 0; stage < l->pp; stage++)
        most = fmax(most, b->stages[stage].elements);
    k->update = update(b, l, c, most).seconds * measured->update;
    if (l->zero_stage == 1 || l->zero_stage == 2)
        k->weight_gather = sharded_collective(most * b->element, l, c);
    k->reductions = dt_sizes_reductions(s, l);
    k->send = dt_layout_tokens(l, s) * (double)s->model.hidden_size * b->element / (double)l->tp;
    k->tokens = (double)(l->batch * dt_settings_sample_tokens(s)) *
                (double)s->training.gradient_accumulation_steps;
    k->flops = k->tokens * dt_model_flops_per_token(&s->model, length, s->data.mask_rate);
}

void dt_costs_release(struct dt_costs *k)
{
    free(k->chunks);
    k->chunks = NULL;
}

static int check_same(double measured, double here, const char *name, const char *path,
                      struct dt_error *err)
{
    if (measured == here)
        return 0;
    return dt_fail(err, DT_EINVALID, "%s: measured with %.0f %s, but the settings have %.0f", path,
                   measured, name, here);
}

static int compare(struct dt_measured *m, struct json_object *object, const char *path,
                   const struct dt_base *b, const struct dt_costs *alone, struct dt_error *err)
{
    double parameters, tokens, passes_s, update_s;
    DT_TRY(dt_json_get_real(object, "parameters", path, &parameters, err));
    DT_TRY(dt_json_get_real(object, "tokens", path, &tokens, err));
    DT_TRY(dt_json_get_real(object, "forward_backward_s", path, &passes_s, err));
    DT_TRY(dt_json_get_real(object, "update_s", path, &update_s, err));
    DT_TRY(check_same(parameters, b->parts.total, "parameters", path, err));
    DT_TRY(check_same(tokens, alone->tokens, "tokens", path, err));
    if (!(passes_s > 0) || !(update_s >= 0))
        return dt_fail(err, DT_EFORMAT,
                       "%s: forward_backward_s must be above 0, and update_s not negative", path);
    *m = (struct dt_measured){passes_s / (alone->chunks->forward + alone->chunks->backward),
                              update_s / alone->update};
    return 0;
}

int dt_measured_read(struct dt_measured *m, const char *path, const struct dt_base *b,
                     const struct dt_settings *s, const struct dt_plan_layout *alone,
                     const struct dt_cluster *c, struct dt_error *err)
{
    struct json_object *object;
    struct dt_costs costs;
    DT_TRY(dt_json_read(path, &object, err));
    dt_costs_init(&costs, b, s, alone, c, NULL);
    int rc = compare(m, object, path, b, &costs, err);
    dt_costs_release(&costs);
    json_object_put(object);
    return rc;
}
