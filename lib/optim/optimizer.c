/* SPDX-License-Identifier: MIT */
#include "optim/optimizer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/system.h"
#include "math/math.h"
#include "math/rng.h"
#include "optim/learning-rate.h"

#define ALIGNMENT 16 /* elements, as of parameters in the table */

bool dt_optimizer_needs_matrices(const struct dt_settings *s)
{
    return dt_optimizer_describe((enum dt_optimizer_kind)s->training.optimizer)->update_matrix;
}

int dt_optimizer_check(const struct dt_settings *s, const char *path, struct dt_error *err)
{
    const char *needs = s->distributed.zero_stage > 0 ? "distributed.zero_stage 0"
                        : s->distributed.tp > 1       ? "distributed.tp 1"
                        : s->distributed.cp > 1 && s->distributed.invariant
                            ? "with distributed.invariant distributed.cp 1"
                        : s->distributed.sync == DT_SYNC_PARAMETER_SERVER
                            ? "distributed.sync other than "
                              "parameter_server"
                            : NULL;
    if (needs == NULL || !dt_optimizer_needs_matrices(s))
        return 0;
    return dt_fail(err, DT_EINVALID, "%s: training.optimizer %s needs %s", path,
                   dt_optimizer_kind_names[s->training.optimizer], needs);
}

/* Matrices of the blocks; embeddings and the head are updated element-wise. */
static bool takes_matrix(const struct dt_optimizer_descriptor *d, const struct dt_table *t,
                         const struct dt_param *p)
{
    return d->update_matrix && p->rank == 2 && p->layer >= 0 && p->layer < t->layers;
}

static const struct dt_state_slots *slots_of(const struct dt_optimizer_descriptor *d, bool matrix)
{
    return matrix ? &d->matrix_slots : &d->slots;
}

/* A fused QKV weight is three matrices. */
static int matrices_of(const struct dt_param *p)
{
    return p->role == DT_ROLE_QKV_WEIGHT ? 3 : 1;
}

/* View of matrix i of those that a tensor holds side by side. */
static struct dt_tensor matrix_of(const struct dt_param *p, float *data, int i)
{
    struct dt_tensor whole = dt_matrix(data, p->shape[0], p->shape[1]);
    int64_t rows = whole.rows / matrices_of(p), columns = whole.columns / matrices_of(p);
    return p->transposed ? dt_tensor_rows(&whole, i * rows, rows)
                         : dt_tensor_columns(&whole, i * columns, columns);
}

static int64_t aligned(int64_t count)
{
    return (count + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The kept elements of parameter i; count may be below 1. */
static struct dt_segment segment_of(const struct dt_table *t, int i, const struct dt_range *kept)
{
    const struct dt_param *p = &t->params[i];
    int64_t first = p->offset, end = p->offset + p->count;
    int64_t begin = kept ? kept[p->bucket].first : t->buckets[p->bucket];
    if (kept) {
        const struct dt_range *range = &kept[p->bucket];
        first = range->first > first ? range->first : first;
        end = range->end < end ? range->end : end;
    }
    return (struct dt_segment){.param = i,
                               .first = first - p->offset,
                               .count = end - first,
                               .bucket_offset = first - begin,
                               .position = first - t->buckets[p->bucket]};
}

static void add_segment(struct dt_optimizer *o, struct dt_segment s)
{
    const struct dt_param *p = &o->table->params[s.param];
    s.matrix = takes_matrix(o->descriptor, o->table, p);
    for (int i = 0; i < DT_UPDATE_SLOTS_MOST; i++) {
        bool has = i < slots_of(o->descriptor, s.matrix)->count;
        s.offsets[i] = has ? o->elements[i] : -1;
        o->elements[i] += has ? aligned(s.count) : 0;
    }
    s.scales = o->scale_count;
    o->scale_count += dt_moments_scales(o->type, s.position, s.count, o->blocks[p->bucket]);
    if (s.matrix) {
        struct dt_tensor matrix = matrix_of(p, NULL, 0);
        assert(s.count == p->full[0] * p->full[1]);
        dt_muon_count(&o->muon, matrix.rows, matrix.columns);
    }
    o->segments[o->count++] = s;
}

static char *directory_of(const struct dt_settings *s)
{
    const char *variable = getenv("TMPDIR"), *given = s->optimizer.offload_dir;
    return dt_strdup(*given ? given : variable && *variable ? variable : "/var/tmp");
}

void dt_optimizer_init(struct dt_optimizer *o, const struct dt_table *t,
                       const struct dt_range *kept, const int64_t *blocks,
                       const struct dt_settings *settings)
{
    enum dt_optimizer_kind kind = (enum dt_optimizer_kind)settings->training.optimizer;
    *o = (struct dt_optimizer){.table = t,
                               .kind = kind,
                               .descriptor = dt_optimizer_describe(kind),
                               .type = (enum dt_moment_type)settings->optimizer.moments};
    if (settings->optimizer.offload == DT_OFFLOAD_FILE)
        o->directory = directory_of(settings);
    o->blocks = dt_alloc((size_t)t->bucket_count, sizeof *o->blocks);
    for (int b = 0; b < t->bucket_count; b++)
        o->blocks[b] = blocks ? blocks[b] : t->buckets[b + 1] - t->buckets[b] + 1;
    o->segments = dt_alloc((size_t)t->count, sizeof *o->segments);
    for (int i = 0; i < t->count; i++) {
        struct dt_segment s = segment_of(t, i, kept);
        if (s.count > 0)
            add_segment(o, s);
    }
}

void dt_optimizer_release(struct dt_optimizer *o)
{
    free(o->segments);
    free(o->blocks);
    free(o->directory);
    dt_pool_free(o->pool);
    if (o->file.memory)
        munmap(o->file.memory, o->file.size);
    *o = (struct dt_optimizer){0};
}

void dt_optimizer_layout_state(struct dt_optimizer *o, struct dt_arena *device)
{
    struct dt_arena *arena = o->directory ? &o->file : device;
    o->file.used = 0;
    for (int i = 0; i < DT_UPDATE_SLOTS_MOST; i++) {
        const size_t n = (size_t)o->elements[i];
        void *values = dt_arena_take(arena, n * dt_moments_code_bytes(o->type));
        const bool coded = o->type != DT_MOMENT_TYPE_FP32;
        o->state[i] = coded ? NULL : values;
        o->codes[i] = coded ? values : NULL;
        o->scales[i] = dt_arena_take(arena, n > 0 ? (size_t)o->scale_count * sizeof(float) : 0);
    }
}

size_t dt_optimizer_file_bytes(const struct dt_optimizer *o)
{
    return o->file.used;
}

/* A file without a name; its blocks are allocated now, so that a full disk is noticed. */
static int make_file(const char *directory, size_t bytes, struct dt_error *err)
{
    char *path = dt_asprintf("%s/.dt-moments-XXXXXX", directory);
    int file = mkostemp(path, O_CLOEXEC), failed = 0;
    if (file < 0)
        dt_fail_errno(err, "cannot make a file of moments in '%s'", directory);
    else if (unlink(path) < 0 || (failed = posix_fallocate(file, 0, (off_t)bytes)) != 0) {
        errno = failed ? failed : errno;
        dt_fail_errno(err, "cannot allocate %zu bytes of moments in '%s'", bytes, directory);
        close(file);
        file = -1;
    }
    free(path);
    return file;
}

bool dt_optimizer_is_on_host(const struct dt_optimizer *o)
{
    return o->directory || o->type != DT_MOMENT_TYPE_FP32;
}

int dt_optimizer_map(struct dt_optimizer *o, struct dt_error *err)
{
    const char *directory = o->directory;
    if (directory == NULL || o->file.used == 0)
        return 0;
    if (dt_system_is_in_memory(directory))
        return dt_fail(err, DT_EINVALID,
                       "optimizer.offload file: '%s' is in memory (tmpfs): name a directory on a "
                       "disk in optimizer.offload_dir",
                       directory);
    int file = make_file(directory, o->file.used, err);
    if (file < 0)
        return err->code;
    void *memory = mmap(NULL, o->file.used, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        return dt_fail_errno(err, "cannot map the file of moments in '%s'", directory);
    o->file = (struct dt_arena){.memory = memory, .size = o->file.used};
    return 0;
}

struct dt_moments dt_optimizer_moments(const struct dt_optimizer *o, const struct dt_segment *s,
                                       int slot)
{
    const size_t bytes = dt_moments_code_bytes(o->type);
    return (struct dt_moments){.type = o->type,
                               .slot = slot,
                               .first = s->position,
                               .count = s->count,
                               .block = o->blocks[o->table->params[s->param].bucket],
                               .codes = (char *)o->codes[slot] + (size_t)s->offsets[slot] * bytes,
                               .scales = o->scales[slot] + s->scales};
}

void dt_optimizer_layout_scratch(struct dt_optimizer *o, struct dt_arena *arena)
{
    if (o->muon.elements > 0)
        dt_muon_layout(&o->muon, arena);
}

/* Hyper-parameters of a step. */
static struct dt_update update_of(const struct dt_settings *s, long step, double gradient_scale)
{
    double t = (double)step + 1;
    return (struct dt_update){
        .learning_rate = (float)dt_learning_rate(s, step),
        .gradient_scale = (float)gradient_scale,
        .beta1 = (float)s->training.beta1,
        .beta2 = (float)s->training.beta2,
        .epsilon = (float)s->training.epsilon,
        .momentum = (float)s->training.momentum,
        .correction1 = (float)(1 - dt_math_pow(s->training.beta1, t)),
        .correction2 = (float)(1 - dt_math_pow(s->training.beta2, t)),
    };
}

static void update_matrices(struct dt_optimizer *o, struct dt_device *dev,
                            const struct dt_segment *s, float *parameters, float *gradients,
                            const struct dt_update *how)
{
    const struct dt_param *p = &o->table->params[s->param];
    for (int i = 0; i < matrices_of(p); i++) {
        struct dt_tensor matrix = matrix_of(p, parameters, i);
        struct dt_tensor momentum = matrix_of(p, o->state[0] + s->offsets[0], i);
        struct dt_tensor gradient = matrix_of(p, gradients, i);
        o->descriptor->update_matrix(dev, &o->muon, &matrix, &momentum, &gradient, how);
    }
}

static void update_elements(struct dt_optimizer *o, struct dt_device *dev,
                            const struct dt_segment *s, float *parameters, float *gradients,
                            const struct dt_update *how)
{
    float *state[DT_UPDATE_SLOTS_MOST];
    for (int i = 0; i < DT_UPDATE_SLOTS_MOST; i++)
        state[i] = s->offsets[i] >= 0 ? o->state[i] + s->offsets[i] : NULL;
    dev->ops->update(dev, parameters, state, gradients, s->count, how);
}

/* Chunks of a segment that one thread updates. */
struct part {
    struct dt_moments moments[DT_UPDATE_SLOTS_MOST];
    int64_t from, count;
    float *parameters;
    const float *gradients;
    const struct dt_update *how;
    uint64_t key;
    int64_t offset;
};

static void update_part(void *job, void *context)
{
    const struct part *p = job;
    (void)context;
    dt_moments_update(p->moments, p->from, p->count, p->parameters, p->gradients, p->how, p->key,
                      p->offset);
}

#define PART 65536 /* elements, at least, of a thread */

/* Gives every thread of the device a part. */
static void update_coded(struct dt_optimizer *o, struct dt_device *dev, const struct dt_segment *s,
                         float *parameters, const float *gradients, const struct dt_update *how,
                         uint64_t key)
{
    struct part parts[64];
    const int64_t block = o->blocks[o->table->params[s->param].bucket],
                  end = s->position + s->count;
    const int most = dev->threads < 64 ? dev->threads : 64;
    int64_t size = (s->count + most - 1) / most, at = s->position;
    size = size > PART ? size : PART;
    if (o->pool == NULL && s->count > size)
        o->pool = dt_pool_new(most, update_part, NULL);
    for (int i = 0; at < end; i++) {
        struct part *p = &parts[i];
        int64_t next = end - at > size ? dt_moments_chunk_end(at + size - 1, block, end) : end;
        *p = (struct part){.from = at,
                           .count = next - at,
                           .parameters = parameters + (at - s->position),
                           .gradients = gradients + (at - s->position),
                           .how = how,
                           .key = key,
                           .offset = s->position - s->first};
        for (int slot = 0; slot < DT_UPDATE_SLOTS_MOST; slot++)
            if (s->offsets[slot] >= 0)
                p->moments[slot] = dt_optimizer_moments(o, s, slot);
        at = next;
        if (s->count <= size) {
            update_part(p, NULL);
            return;
        }
        if (dt_pool_full(o->pool))
            dt_pool_next(o->pool);
        dt_pool_submit(o->pool, p);
    }
    while (o->pool && dt_pool_next(o->pool))
        ;
}

void dt_optimizer_update(struct dt_optimizer *o, struct dt_device *dev, float *const *parameters,
                         float *const *gradients, const struct dt_settings *settings, long step,
                         double gradient_scale)
{
    struct dt_update how = update_of(settings, step, gradient_scale);
    how.rule = o->descriptor->rule;
    for (int i = 0; i < o->count; i++) {
        const struct dt_segment *s = &o->segments[i];
        const struct dt_param *p = &o->table->params[s->param];
        how.weight_decay = p->decay ? (float)settings->training.weight_decay : 0;
        if (o->type != DT_MOMENT_TYPE_FP32) {
            update_coded(o, dev, s, parameters[p->bucket] + s->bucket_offset,
                         gradients[p->bucket] + s->bucket_offset, &how,
                         dt_random_key((uint64_t)settings->training.seed, (uint64_t)step,
                                       (uint64_t)p->number));
            continue;
        }
        (s->matrix ? update_matrices
                   : update_elements)(o, dev, s, parameters[p->bucket] + s->bucket_offset,
                                      gradients[p->bucket] + s->bucket_offset, &how);
    }
}

static struct dt_named_tensor named(const struct dt_param *p, const char *suffix)
{
    struct dt_named_tensor tensor = {.rank = p->rank, .shape = {p->shape[0], p->shape[1]}};
    snprintf(tensor.name, sizeof tensor.name, "%s%s", p->name, suffix);
    return tensor;
}

struct dt_named_tensor *dt_optimizer_named_tensors(const struct dt_table *t,
                                                   enum dt_optimizer_kind kind,
                                                   dt_slot_indices **indices, int *count)
{
    const struct dt_optimizer_descriptor *d = dt_optimizer_describe(kind);
    struct dt_named_tensor *list = dt_alloc(DT_UPDATE_SLOTS_MOST * (size_t)t->count, sizeof *list);
    *indices = dt_alloc((size_t)t->count, sizeof **indices);
    *count = 0;
    for (int slot = 0; slot < DT_UPDATE_SLOTS_MOST; slot++)
        for (int i = 0; i < t->count; i++) {
            const struct dt_param *p = &t->params[i];
            const struct dt_state_slots *slots = slots_of(d, takes_matrix(d, t, p));
            bool has = slot < slots->count;
            (*indices)[i][slot] = has ? *count : -1;
            if (has)
                list[(*count)++] = named(p, slots->names[slot]);
        }
    return list;
}
