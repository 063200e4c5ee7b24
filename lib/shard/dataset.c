/* SPDX-License-Identifier: MIT */
#include "shard/dataset.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/path.h"
#include "math/rng.h"
#include "shard/format.h"
#include "shard/manifest.h"
#include "shard/mixture.h"
#include "shard/shard-internal.h"
#include "shard/sources.h"

#define OPEN_SHARDS 2048 /* open at a time, at most FILES_OF the limit of open files */
#define FILES_OF(n) ((n) / 8)
#define ORDER_KEY   0x6f72646572ull /* "order", "mixture": RNG streams */
#define MIXTURE_KEY 0x6d697874757265ull
#define BLOCK_KEY   0x626c6f636bull /* "block" */

/* One shard in the concatenation. */
struct member {
    char *path;
    const struct dt_manifest *manifest;
    const struct dt_manifest_shard *listed; /* NULL: a file outside an index.json */
    uint64_t first_token, first_document, tokens, documents;
    struct dt_shard *shard; /* NULL while closed */
};

/* One directory or file; only a mixture has several. */
struct component {
    struct dt_manifest manifest;
    uint64_t first_token, tokens;
    uint32_t first_slot, slots; /* of DT_MIXTURE_SLOTS */
};

struct dt_dataset {
    char *path, *split;
    struct component *components;
    int component_count;
    struct dt_shard_info info;
    struct member *members;
    int count, capacity;
    int *open_ring; /* FIFO of open members, [oldest] first; -1: unused */
    int oldest, max_open;
    struct dt_frame_cache *cache;
    size_t memory;
    struct dt_sample_source source; /* source.read NULL: shards */
};

/* --- shards ----------------------------------------------------------------------------------- */

static int open_listed(struct dt_dataset *d, struct member *p, struct dt_error *err)
{
    DT_TRY(dt_shard_open_shared(&p->shard, p->path, &d->cache, d->memory, err));
    int rc = p->listed ? dt_manifest_check(p->manifest, p->listed, p->shard, p->path, err) : 0;
    if (rc < 0) {
        dt_shard_close(p->shard);
        p->shard = NULL;
    }
    return rc;
}

static int open_member(struct dt_dataset *d, int i, struct dt_error *err)
{
    if (d->members[i].shard)
        return 0;
    int evicted = d->open_ring[d->oldest];
    if (evicted >= 0) {
        dt_shard_close(d->members[evicted].shard);
        d->members[evicted].shard = NULL;
        d->open_ring[d->oldest] = -1;
    }
    DT_TRY(open_listed(d, &d->members[i], err));
    d->open_ring[d->oldest] = i;
    d->oldest = (d->oldest + 1) % d->max_open;
    return 0;
}

static struct member *add_member(struct dt_dataset *d, char *path)
{
    DT_GROW(d->members, d->count, d->capacity);
    d->members[d->count] = (struct member){.path = path};
    return &d->members[d->count++];
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Appends "train, val" for an error message. */
static void list_splits(const struct dt_manifest *m, struct dt_buffer *text)
{
    for (int i = 0; i < m->count; i++)
        dt_buffer_printf(text, "%s%s", i ? ", " : "", m->splits[i].name);
}

static int find_split(struct dt_manifest *m, const char *path, const char *name,
                      const struct dt_manifest_split **split, struct dt_error *err)
{
    DT_TRY(dt_manifest_read(m, path, err));
    *split = dt_manifest_find(m, name);
    if (*split && (*split)->count > 0)
        return 0;
    if (*split)
        return dt_fail(err, DT_EMISSING, "%s: split '%s' is empty", path, name);
    struct dt_buffer names = DT_BUFFER_EMPTY;
    list_splits(m, &names);
    int rc = dt_fail(err, DT_EMISSING, "%s: split '%s' does not exist; choose one of: %s", path,
                     name, names.data);
    dt_buffer_release(&names);
    return rc;
}

static int check_size(const struct member *p, struct dt_error *err)
{
    struct stat st;
    if (stat(p->path, &st) < 0)
        return dt_fail_errno(err, "cannot open '%s'", p->path);
    if ((uint64_t)st.st_size != p->listed->size)
        return dt_fail(err, DT_EFORMAT, "%s: differs from %s in its file size", p->path,
                       DT_MANIFEST_NAME);
    return 0;
}

static int add_directory(struct dt_dataset *d, struct component *c, const char *path,
                         struct dt_error *err)
{
    const struct dt_manifest_split *split;
    uint64_t tokens = 0;
    DT_TRY(find_split(&c->manifest, path, d->split, &split, err));
    for (int i = 0; i < split->count; i++)
        tokens += split->shards[i].tokens;
    for (int i = 0; i < split->count; i++) {
        const struct dt_manifest_shard *listed = &split->shards[i];
        struct member *p = add_member(d, dt_path_join(path, listed->file));
        p->manifest = &c->manifest;
        p->listed = listed;
        p->tokens = listed->tokens;
        p->documents = listed->documents;
        DT_TRY(check_size(p, err));
        if (tokens <= DT_CHECKED_TOKENS)
            DT_TRY(open_member(d, d->count - 1, err));
        c->manifest.info.hash = dt_format_join_hashes(c->manifest.info.hash, listed->hash);
    }
    uint64_t hash = c->manifest.info.hash;
    c->manifest.info.tokens = c->manifest.info.documents = c->manifest.info.text_bytes = 0;
    c->manifest.info.padding = c->manifest.info.targets = 0;
    c->manifest.info.hash = hash;
    for (int i = 0; i < split->count; i++)
        dt_shard_info_add(&c->manifest.info, &(struct dt_shard_info){
                                                 .tokens = split->shards[i].tokens,
                                                 .documents = split->shards[i].documents,
                                                 .text_bytes = split->shards[i].text_bytes,
                                                 .padding = split->shards[i].padding,
                                                 .targets = split->shards[i].targets,
                                             });
    return 0;
}

/* Refuses a shard that index.json lists in another split. */
static int check_split(const struct dt_dataset *d, const char *path, struct dt_error *err)
{
    struct dt_shard_sources sources = {0};
    int rc = dt_shard_sources_add(&sources, path, err);
    const char *split = rc == 0 ? sources.items[0].split : NULL;
    if (split && strcmp(split, d->split) != 0)
        rc = dt_fail(err, DT_EINVALID, "%s: belongs to split '%s', but split '%s' was requested",
                     path, split, d->split);
    dt_shard_sources_release(&sources);
    return rc;
}

static int add_file(struct dt_dataset *d, struct component *c, const char *path,
                    struct dt_error *err)
{
    DT_TRY(check_split(d, path, err));
    struct member *p = add_member(d, dt_strdup(path));
    DT_TRY(open_member(d, d->count - 1, err));
    c->manifest.info = *dt_shard_get_info(p->shard);
    c->manifest.provenance = dt_strdup(c->manifest.info.provenance);
    c->manifest.info.provenance = c->manifest.provenance;
    p->tokens = c->manifest.info.tokens;
    p->documents = c->manifest.info.documents;
    return 0;
}

/* Adds a component to the totals; all must have the same tokenizer and rows. */
static int join(struct dt_dataset *d, struct component *c, const char *path, struct dt_error *err)
{
    const struct dt_shard_info *a = &d->info, *b = &c->manifest.info;
    c->first_token = d->info.tokens;
    c->tokens = b->tokens;
    if (c == d->components) {
        d->info = *b;
        return 0;
    }
    if (a->tokenizer != b->tokenizer || a->vocab_size != b->vocab_size || a->eot != b->eot)
        return dt_fail(err, DT_EINVALID,
                       "%s: was made with another tokenizer than the data before it in %s", path,
                       d->path);
    if (a->row != b->row)
        return dt_fail(err, DT_EINVALID,
                       "%s: has rows of another length than the data before it in %s", path,
                       d->path);
    if (b->tokens > INT64_MAX - a->tokens)
        return dt_fail(err, DT_EINVALID, "%s: the counts of tokens are impossible", path);
    d->info.masked = a->masked || b->masked;
    d->info.hash = dt_format_join_hashes(a->hash, b->hash);
    dt_shard_info_add(&d->info, b);
    return 0;
}

static int add_component(struct dt_dataset *d, int i, const char *path, struct dt_error *err)
{
    struct component *c = &d->components[i];
    int first = d->count;
    if (dt_file_is_directory(path))
        DT_TRY(add_directory(d, c, path, err));
    else
        DT_TRY(add_file(d, c, path, err));
    DT_TRY(join(d, c, path, err));
    uint64_t token = c->first_token;
    for (int k = first; k < d->count; k++) {
        struct member *p = &d->members[k];
        p->first_token = token;
        p->first_document = k > 0 ? p[-1].first_document + p[-1].documents : 0;
        token += p->tokens;
    }
    return 0;
}

static int open_mixture(struct dt_dataset *d, const char *path, struct dt_error *err)
{
    struct dt_mixture m;
    int rc = dt_mixture_read(&m, path, err);
    d->component_count = m.count;
    d->components = dt_alloc((size_t)m.count + 1, sizeof *d->components);
    uint32_t slot = 0;
    for (int i = 0; rc == 0 && i < m.count; i++) {
        d->components[i].first_slot = slot;
        d->components[i].slots = m.parts[i].slots;
        slot += m.parts[i].slots;
        rc = add_component(d, i, m.parts[i].path, err);
    }
    dt_mixture_release(&m);
    return rc;
}

static int open_all(struct dt_dataset *d, const char *path, struct dt_error *err)
{
    struct rlimit files = {0};
    getrlimit(RLIMIT_NOFILE, &files);
    rlim_t part = FILES_OF(files.rlim_cur);
    d->max_open = part > OPEN_SHARDS ? OPEN_SHARDS : part < 4 ? 4 : (int)part;
    d->open_ring = dt_alloc((size_t)d->max_open, sizeof *d->open_ring);
    for (int i = 0; i < d->max_open; i++)
        d->open_ring[i] = -1;
    if (!dt_file_is_directory(path) && dt_mixture_is_named(path))
        return open_mixture(d, path, err);
    d->component_count = 1;
    d->components = dt_alloc(1, sizeof *d->components);
    d->components->slots = DT_MIXTURE_SLOTS;
    return add_component(d, 0, path, err);
}

int dt_dataset_open(struct dt_dataset **result, const char *path, const char *split,
                    struct dt_error *err)
{
    *result = NULL;
    struct dt_dataset *d = dt_alloc(1, sizeof *d);
    d->path = dt_strdup(path);
    d->split = dt_strdup(split);
    d->memory = DT_DATASET_MEMORY;
    int rc = open_all(d, path, err);
    if (rc < 0) {
        dt_dataset_close(d);
        return rc;
    }
    *result = d;
    return 0;
}

int dt_dataset_add_inputs(const char *path, struct dt_lineage *lineage, struct dt_error *err)
{
    struct dt_mixture m;
    DT_TRY(dt_lineage_add_path(lineage, path, err));
    if (dt_file_is_directory(path) || !dt_mixture_is_named(path))
        return 0;
    int rc = dt_mixture_read(&m, path, err);
    for (int i = 0; rc == 0 && i < m.count; i++)
        rc = dt_lineage_add_path(lineage, m.parts[i].path, err);
    dt_mixture_release(&m);
    return rc;
}

bool dt_dataset_has_splits(const char *path)
{
    return dt_file_is_directory(path) || dt_mixture_is_named(path);
}

bool dt_dataset_names_splits(const char *path)
{
    struct dt_shard_sources sources = {0};
    struct dt_error ignored; /* dt_dataset_open reports it */
    bool names = dt_dataset_has_splits(path) ||
                 (dt_shard_sources_add(&sources, path, &ignored) == 0 && sources.items[0].split);
    dt_shard_sources_release(&sources);
    return names;
}

uint64_t dt_dataset_weights(const struct dt_dataset *d)
{
    uint64_t hash = 0;
    for (int i = 0; d->component_count > 1 && i < d->component_count; i++)
        hash = dt_format_join_hashes(hash, d->components[i].slots);
    return hash;
}

struct dt_dataset *dt_dataset_from_source(const struct dt_sample_source *source)
{
    struct dt_dataset *d = dt_alloc(1, sizeof *d);
    d->path = dt_strdup("the text");
    d->source = *source;
    d->info = source->info;
    return d;
}

bool dt_dataset_has_tokens(const struct dt_dataset *d)
{
    return d->source.read == NULL;
}

static int clone_source(struct dt_dataset **copy, const struct dt_dataset *d, struct dt_error *err)
{
    struct dt_sample_source source = d->source;
    *copy = NULL;
    DT_TRY(d->source.clone(&source.state, d->source.state, err));
    *copy = dt_dataset_from_source(&source);
    return 0;
}

int dt_dataset_clone(struct dt_dataset **copy, const struct dt_dataset *d, struct dt_error *err)
{
    if (d->source.read)
        return clone_source(copy, d, err);
    DT_TRY(dt_dataset_open(copy, d->path, d->split, err));
    if ((*copy)->info.hash == d->info.hash)
        return 0;
    dt_dataset_close(*copy);
    *copy = NULL;
    return dt_fail(err, DT_EFORMAT, "%s: changed while it was being read", d->path);
}

void dt_dataset_close(struct dt_dataset *d)
{
    if (d == NULL)
        return;
    for (int i = 0; i < d->count; i++) {
        dt_shard_close(d->members[i].shard);
        free(d->members[i].path);
    }
    for (int i = 0; d->components && i < d->component_count; i++)
        dt_manifest_release(&d->components[i].manifest);
    if (d->source.free)
        d->source.free(d->source.state);
    dt_frame_cache_free(d->cache);
    free(d->components);
    free(d->open_ring);
    free(d->members);
    free(d->path);
    free(d->split);
    free(d);
}

const struct dt_shard_info *dt_dataset_info(const struct dt_dataset *d)
{
    return &d->info;
}

void dt_dataset_limit_memory(struct dt_dataset *d, size_t bytes)
{
    d->memory = bytes;
    if (d->cache)
        dt_frame_cache_limit(d->cache, bytes);
}

size_t dt_dataset_memory(const struct dt_dataset *d)
{
    uint64_t decoded = d->info.tokens * d->info.token_bytes;
    size_t bytes = decoded < d->memory ? (size_t)decoded : d->memory;
    for (int i = 0; i < d->count; i++)
        bytes +=
            sizeof d->members[i] + (d->members[i].shard ? dt_shard_memory(d->members[i].shard) : 0);
    return bytes;
}

/* --- tokens and documents --------------------------------------------------------------------- */

/* The member that holds a token. */
static int find_token(const struct dt_dataset *d, uint64_t token)
{
    int low = 0, high = d->count;
    while (low + 1 < high) {
        int middle = low + (high - low) / 2;
        if (d->members[middle].first_token <= token)
            low = middle;
        else
            high = middle;
    }
    return low;
}

typedef int read_tokens(struct dt_shard *s, uint64_t first, uint64_t count, uint32_t *ids,
                        struct dt_error *err);

static int get_tokens(struct dt_dataset *d, uint64_t first, uint64_t count, uint32_t *ids,
                      read_tokens *read, struct dt_error *err)
{
    if (d->source.read)
        return dt_fail(err, DT_EINVALID,
                       "%s: cannot be read by token number: it is tokenized on the fly", d->path);
    if (first > d->info.tokens || count > d->info.tokens - first)
        return dt_fail(err, DT_EINVALID,
                       "tokens from %llu on, %llu of them, are out of range: the data have %llu",
                       (unsigned long long)first, (unsigned long long)count,
                       (unsigned long long)d->info.tokens);
    for (int i = count > 0 ? find_token(d, first) : 0; count > 0; i++) {
        struct member *p = &d->members[i];
        DT_TRY(open_member(d, i, err));
        uint64_t n = p->first_token + p->tokens - first;
        n = n < count ? n : count;
        DT_TRY(read(p->shard, first - p->first_token, n, ids, err));
        ids += n;
        first += n;
        count -= n;
    }
    return 0;
}

int dt_dataset_tokens(struct dt_dataset *d, uint64_t first, uint64_t count, uint32_t *ids,
                      struct dt_error *err)
{
    return get_tokens(d, first, count, ids, dt_shard_tokens, err);
}

int dt_dataset_targets(struct dt_dataset *d, uint64_t first, uint64_t count, uint32_t *ids,
                       struct dt_error *err)
{
    return get_tokens(d, first, count, ids, dt_shard_targets, err);
}

int dt_dataset_document(struct dt_dataset *d, uint64_t i, uint64_t *first,
                        struct dt_shard_document *document, struct dt_error *err)
{
    if (d->source.read)
        return dt_fail(err, DT_EINVALID,
                       "%s: cannot be read by document number: it is tokenized on the fly",
                       d->path);
    if (i >= d->info.documents)
        return dt_fail(err, DT_EMISSING,
                       "document %llu is out of range: there are %llu documents, counted from 0",
                       (unsigned long long)i, (unsigned long long)d->info.documents);
    int low = 0, high = d->count;
    while (low + 1 < high) {
        int middle = low + (high - low) / 2;
        if (d->members[middle].first_document <= i)
            low = middle;
        else
            high = middle;
    }
    struct member *p = &d->members[low];
    DT_TRY(open_member(d, low, err));
    DT_TRY(dt_shard_get_document(p->shard, i - p->first_document, first, document, err));
    *first += p->first_token;
    return 0;
}

/* --- samples ---------------------------------------------------------------------------------- */

static uint64_t count_samples(const struct dt_dataset *d, const struct component *c,
                              uint32_t length)
{
    if (d->info.row)
        return c->tokens / d->info.row;
    return c->tokens > 0 ? (c->tokens - 1) / length : 0;
}

int dt_dataset_samples(const struct dt_dataset *d, uint32_t length, uint64_t *samples,
                       struct dt_error *err)
{
    *samples = d->source.samples;
    if (d->source.read && length != d->source.length)
        return dt_fail(err, DT_EINVALID, "%s was open_ring for sequences of %u tokens, not of %u",
                       d->path, d->source.length, length);
    if (length == 0 || (d->info.row && length != d->info.row - 1))
        return dt_fail(err, DT_EINVALID, "%s: has rows for sequences of %u tokens, not of %u",
                       d->path, d->info.row - 1, length);
    for (int i = 0; i < d->component_count; i++) {
        uint64_t count = count_samples(d, &d->components[i], length);
        if (count == 0)
            return dt_fail(err, DT_EINVALID,
                           "%s: the split has %llu tokens, but one sample of length %u needs %llu",
                           d->path, (unsigned long long)d->components[i].tokens, length,
                           (unsigned long long)length + 1);
        *samples += count;
    }
    return 0;
}

uint64_t dt_dataset_sample_first(const struct dt_dataset *d, uint32_t length, uint64_t k)
{
    const struct component *c = d->components, *last = c + d->component_count - 1;
    uint64_t count;
    while (k >= (count = count_samples(d, c, length)) && c < last) {
        k -= count;
        c++;
    }
    uint64_t stride = d->info.row ? d->info.row : length;
    return k < count ? c->first_token + k * stride : UINT64_MAX;
}

int dt_dataset_sample(struct dt_dataset *d, uint32_t length, uint64_t k, uint32_t *ids,
                      struct dt_error *err)
{
    if (d->source.read)
        return d->source.read(d->source.state, k, ids, err);
    uint64_t first = dt_dataset_sample_first(d, length, k);
    if (first == UINT64_MAX)
        return dt_fail(err, DT_EINVALID, "%s: the sample index is out of range", d->path);
    return dt_dataset_targets(d, first, (uint64_t)length + 1, ids, err);
}

uint64_t dt_dataset_sample_at(uint64_t seed, uint64_t samples, uint64_t index)
{
    uint64_t epoch = index / samples;
    return dt_rng_permute(dt_random_key(seed, ORDER_KEY, epoch), samples, index % samples);
}

/* The same with the samples of windows of `window` blocks of `block` samples mixed. */
static uint64_t block_sample_at(uint64_t seed, uint64_t samples, uint64_t block, uint64_t window,
                                uint64_t index)
{
    uint64_t epoch = index / samples, place = index % samples, whole = samples / block;
    uint64_t key = dt_random_key(seed, BLOCK_KEY, epoch);
    window = window < whole + 1 ? window : whole + 1;
    uint64_t first = place / (window * block) * window; /* block of the window */
    uint64_t left = samples - first * block;
    left = left < window * block ? left : window * block;
    place = dt_rng_permute(dt_random_key(key, BLOCK_KEY, first), left, place - first * block);
    uint64_t of_block = first + place / block;
    if (of_block < whole)
        of_block = dt_rng_permute(key, whole, of_block);
    return (of_block * block + place % block + key % samples) % samples;
}

static uint64_t shuffled_sample_at(const struct dt_sample_order *order, uint64_t seed,
                                   uint64_t samples, uint32_t length, uint64_t index)
{
    if (!order->shuffle)
        return index % samples;
    if (order->block == 0)
        return dt_dataset_sample_at(seed, samples, index);
    uint64_t block = order->block / length;
    block = block < 1 ? 1 : block < samples ? block : samples;
    return block_sample_at(seed, samples, block, order->window, index);
}

uint64_t dt_dataset_order(const struct dt_dataset *d, uint32_t length,
                          const struct dt_sample_order *order, uint64_t index)
{
    uint64_t before = 0, seed = order->seed;
    const struct component *c = d->components;
    if (d->source.has_order)
        return index;
    if (d->source.read)
        return shuffled_sample_at(order, seed, d->source.samples, length, index);
    if (d->component_count > 1) {
        uint64_t block = index / DT_MIXTURE_SLOTS;
        uint64_t slot = dt_rng_permute(dt_random_key(seed, MIXTURE_KEY, block), DT_MIXTURE_SLOTS,
                                       index % DT_MIXTURE_SLOTS);
        for (; slot >= c->first_slot + c->slots; c++)
            before += count_samples(d, c, length);
        index = block * c->slots + slot - c->first_slot;
        seed = dt_random_key(seed, MIXTURE_KEY, (uint64_t)(c - d->components));
    }
    uint64_t samples = count_samples(d, c, length);
    return before + shuffled_sample_at(order, seed, samples, length, index);
}
