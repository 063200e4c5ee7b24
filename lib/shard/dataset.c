/* SPDX-License-Identifier: MIT */
#include "shard/dataset.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/program.h"
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
    int component;
    const struct dt_manifest_shard *listed; /* NULL: a file outside an index.json */
    uint64_t first_token, first_document, tokens, documents;
    struct dt_shard *shard; /* NULL while closed */
};

/* One directory or file; only a mixture has several. */
struct component {
    struct dt_manifest manifest;
    uint64_t first_token, tokens;
    uint32_t first_slot, slots; /* of DT_MIXTURE_SLOTS */
    char *real_path;            /* identifies it in other stages */
    int stream;                 /* of its order: its number in its mixture; -1: no mixture */
    uint64_t used;              /* samples that earlier stages used */
};

/* Components that are read together, from a position of a run on. */
struct stage {
    int first, count;
    uint64_t begin;
};

struct dt_dataset {
    char *path, *split;
    struct component *components;
    int component_count, component_capacity;
    struct stage *stages; /* one, unless the data set is staged */
    int stage_count, stage_capacity;
    bool is_staged;
    uint32_t length; /* of a sample of a staged one */
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
    const struct dt_manifest *manifest = &d->components[p->component].manifest;
    int rc = p->listed ? dt_manifest_check(manifest, p->listed, p->shard, p->path, err) : 0;
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
        return dt_fail(err, DT_EFORMAT,
                       "%s: has %lld bytes, and by " DT_MANIFEST_NAME
                       " %llu: it was cut or replaced",
                       p->path, (long long)st.st_size, (unsigned long long)p->listed->size);
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
        p->component = (int)(c - d->components);
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

/* Adds a component to the totals; all must have the same tokenizer, rows and padding. */
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
    if (a->padding_id != b->padding_id) /* by which attention finds padding */
        return dt_fail(err, DT_EINVALID,
                       "%s: its rows are padded with id %u, and those of the data before it in %s "
                       "with %u: make them with one --padding-id",
                       path, b->padding_id, d->path, a->padding_id);
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

/* The components of one path, of which each has its slots. */
static int add_stage(struct dt_dataset *d, const char *path, uint64_t begin, struct dt_error *err)
{
    const bool mixed = !dt_file_is_directory(path) && dt_mixture_is_named(path);
    struct dt_mixture_part whole = {.path = (char *)path, .slots = DT_MIXTURE_SLOTS};
    struct dt_mixture m = {.parts = &whole, .count = 1};
    int rc = mixed ? dt_mixture_read(&m, path, err) : 0;
    uint32_t slot = 0;
    DT_GROW(d->stages, d->stage_count, d->stage_capacity);
    d->stages[d->stage_count++] = (struct stage){.first = d->component_count, .begin = begin};
    for (int i = 0; rc == 0 && i < m.count; i++) {
        DT_GROW(d->components, d->component_count, d->component_capacity);
        d->components[d->component_count++] = (struct component){
            .first_slot = slot,
            .slots = m.parts[i].slots,
            .stream = m.count > 1 ? i : -1,
            .real_path = dt_path_real(m.parts[i].path),
        };
        slot += m.parts[i].slots;
        d->stages[d->stage_count - 1].count++;
        rc = add_component(d, d->component_count - 1, m.parts[i].path, err);
    }
    if (mixed)
        dt_mixture_release(&m);
    return rc;
}

/* --- stages ----------------------------------------------------------------------------------- */

/* Samples of component c among the first count positions of a stage. Positions are divided evenly:
 * of n positions the first component has floor(n x slots / all slots), the next one its part of the
 * rest, and so on. */
static uint64_t samples_before(const struct component *of_stage, const struct component *c,
                               uint64_t count)
{
    uint64_t left = DT_MIXTURE_SLOTS;
    for (; of_stage < c; of_stage++) {
        count -= count * of_stage->slots / left;
        left -= of_stage->slots;
    }
    return count * c->slots / left;
}

/* The component at a position of a stage. */
static const struct component *component_at(const struct component *of_stage, uint64_t position)
{
    const struct component *c = of_stage;
    while (samples_before(of_stage, c, position + 1) == samples_before(of_stage, c, position))
        c++;
    return c;
}

/* A component of several stages continues in each where it was in the last. */
static void continue_components(struct dt_dataset *d, const struct stage *stage)
{
    for (int i = stage->first; i < stage->first + stage->count; i++) {
        struct component *c = &d->components[i], *last = NULL;
        const struct stage *of_last = NULL;
        for (const struct stage *s = d->stages; s < stage; s++)
            for (int k = s->first; k < s->first + s->count; k++)
                if (strcmp(d->components[k].real_path, c->real_path) == 0) {
                    last = &d->components[k];
                    of_last = s;
                }
        if (last == NULL)
            continue;
        c->stream = last->stream;
        c->used = last->used + samples_before(&d->components[of_last->first], last,
                                              of_last[1].begin - of_last->begin);
    }
}

/* One item of the list, "DATA:TOKENS", or "DATA" for the last. *tokens 0: the last. */
static int read_stage(char *item, bool is_last, const char *list, long *tokens,
                      struct dt_error *err)
{
    char *colon = strrchr(item, ':');
    bool counted = colon && dt_program_parse_int(colon + 1, tokens) == 0;
    if (!counted)
        *tokens = 0;
    if (counted != !is_last || (counted && *tokens <= 0) || *item == '\0')
        return dt_fail(err, DT_EINVALID,
                       "data.stages '%s': expected DATA:TOKENS,...,DATA: the tokens of each stage "
                       "but the last, which has the rest of the run",
                       list);
    if (counted)
        *colon = '\0';
    return 0;
}

static int open_stages(struct dt_dataset *d, const char *list, struct dt_error *err)
{
    char *copy = dt_strdup(list), *rest = copy;
    uint64_t tokens = 0;
    int rc = 0;
    for (char *item; rc == 0 && (item = strsep(&rest, ",")) != NULL;) {
        long count;
        uint64_t begin = (tokens + d->length - 1) / d->length;
        rc = read_stage(item, rest == NULL, list, &count, err);
        rc = rc < 0 ? rc : add_stage(d, item, begin, err);
        if (rc == 0)
            continue_components(d, &d->stages[d->stage_count - 1]);
        tokens += (uint64_t)count;
    }
    free(copy);
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
    return d->is_staged ? open_stages(d, path, err) : add_stage(d, path, 0, err);
}

static int open_dataset(struct dt_dataset **result, const struct dt_dataset *like,
                        struct dt_error *err)
{
    *result = NULL;
    struct dt_dataset *d = dt_alloc(1, sizeof *d);
    d->path = dt_strdup(like->path);
    d->split = dt_strdup(like->split);
    d->memory = DT_DATASET_MEMORY;
    d->is_staged = like->is_staged;
    d->length = like->length;
    int rc = open_all(d, d->path, err);
    if (rc < 0) {
        dt_dataset_close(d);
        return rc;
    }
    *result = d;
    return 0;
}

int dt_dataset_open(struct dt_dataset **d, const char *path, const char *split,
                    struct dt_error *err)
{
    return open_dataset(d, &(struct dt_dataset){.path = (char *)path, .split = (char *)split}, err);
}

int dt_dataset_open_stages(struct dt_dataset **d, const char *stages, const char *split,
                           uint32_t length, struct dt_error *err)
{
    const struct dt_dataset staged = {
        .path = (char *)stages, .split = (char *)split, .is_staged = true, .length = length};
    return open_dataset(d, &staged, err);
}

char *dt_dataset_first_stage(const char *stages)
{
    char *first = dt_strdup(stages), *comma = strchr(first, ',');
    if (comma)
        *comma = '\0';
    char *colon = comma ? strrchr(first, ':') : NULL;
    if (colon)
        *colon = '\0';
    return first;
}

int dt_dataset_add_stages(const char *stages, struct dt_lineage *lineage, struct dt_error *err)
{
    int rc = 0;
    for (const char *rest = stages; rc == 0 && rest;) {
        char *path = dt_dataset_first_stage(rest);
        rc = dt_dataset_add_inputs(path, lineage, err);
        free(path);
        rest = strchr(rest, ',');
        rest = rest ? rest + 1 : NULL;
    }
    return rc;
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

int dt_dataset_has_splits(const char *path, struct dt_error *err)
{
    mode_t mode;
    int there = dt_file_look(path, &mode, err);
    return there < 0 ? there : S_ISDIR(mode) || dt_mixture_is_named(path);
}

bool dt_dataset_names_splits(const char *path)
{
    struct dt_shard_sources sources = {0};
    struct dt_error ignored; /* dt_dataset_open reports it */
    bool names = dt_dataset_has_splits(path, &ignored) != 0 ||
                 (dt_shard_sources_add(&sources, path, &ignored) == 0 && sources.items[0].split);
    dt_shard_sources_release(&sources);
    return names;
}

uint64_t dt_dataset_weights(const struct dt_dataset *d)
{
    uint64_t hash = 0;
    for (int i = 0; d->component_count > 1 && i < d->component_count; i++)
        hash = dt_format_join_hashes(hash, d->components[i].slots);
    for (int i = 1; i < d->stage_count; i++) {
        hash = dt_format_join_hashes(hash, d->stages[i].begin);
        hash = dt_format_join_hashes(hash, (uint64_t)d->stages[i].first);
    }
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
    DT_TRY(open_dataset(copy, d, err));
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
    for (int i = 0; i < d->component_count; i++)
        free(d->components[i].real_path);
    if (d->source.free)
        d->source.free(d->source.state);
    dt_frame_cache_free(d->cache);
    free(d->components);
    free(d->stages);
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
        return dt_fail(err, DT_EINVALID, "%s was opened for sequences of %u tokens, not of %u",
                       d->path, d->source.length, length);
    if (length == 0)
        return dt_fail(err, DT_EINVALID, "%s: a sample has at least one token", d->path);
    if (d->info.row && length != d->info.row - 1)
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

static const struct stage *stage_at(const struct dt_dataset *d, uint64_t index)
{
    const struct stage *s = &d->stages[d->stage_count - 1];
    while (s->begin > index)
        s--;
    return s;
}

uint64_t dt_dataset_order(const struct dt_dataset *d, uint32_t length,
                          const struct dt_sample_order *order, uint64_t index)
{
    uint64_t before = 0, seed = order->seed;
    if (d->source.has_order)
        return index;
    if (d->source.read)
        return shuffled_sample_at(order, seed, d->source.samples, length, index);
    const struct stage *stage = stage_at(d, index);
    const struct component *c = &d->components[stage->first];
    index -= stage->begin;
    if (d->is_staged) {
        c = component_at(c, index);
        index = samples_before(&d->components[stage->first], c, index);
    } else if (stage->count > 1) {
        uint64_t block = index / DT_MIXTURE_SLOTS;
        uint64_t slot = dt_rng_permute(dt_random_key(seed, MIXTURE_KEY, block), DT_MIXTURE_SLOTS,
                                       index % DT_MIXTURE_SLOTS);
        while (slot >= c->first_slot + c->slots)
            c++;
        index = block * c->slots + slot - c->first_slot;
    }
    for (const struct component *other = d->components; other < c; other++)
        before += count_samples(d, other, length);
    if (c->stream >= 0)
        seed = dt_random_key(seed, MIXTURE_KEY, (uint64_t)c->stream);
    uint64_t samples = count_samples(d, c, length);
    return before + shuffled_sample_at(order, seed, samples, length, index + c->used);
}
