/* SPDX-License-Identifier: MIT */
#include "checkpoint/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "base/system.h"
#include "checkpoint/checkpoint-settings.h"
#include "formats/adapter.h"
#include "formats/labels.h"
#include "formats/model-directory.h"
#include "formats/tensor-file.h"
#include "formats/text-tokens.h"
#include "hash/hash.h"
#include "io/directory-manifest.h"
#include "io/lineage.h"
#include "io/sealed-json.h"

#define STATE_FILE     "trainer/state.json"
#define OPTIMIZER_FILE "trainer/optimizer.safetensors"
#define OLDER_FILE     "trainer/optimizer.safetensors.zst" /* of older checkpoints */
#define OUTER_FILE     "trainer/outer.safetensors"
#define FEEDBACK_FILE  "trainer/errors.safetensors"
#define AVERAGE_DIR    "ema"
#define LINEAGE_FILE   "trainer/lineage.txt"
#define RECORDS_FILE   "trainer/" DT_LINEAGE_FILE
#define TEMPORARY      ".step-"
#define LATEST         "latest"
#define BEST           "best"

/* --- tensors ---------------------------------------------------------------------------------- */

/* The file of a part. */
static const char *part_file(const struct dt_train_state *s, enum dt_snapshot_part part)
{
    const bool adapter = s->model->config.lora.rank > 0;
    switch (part) {
    case DT_SNAPSHOT_PARAMETERS:
        return adapter ? DT_ADAPTER_WEIGHTS_FILE : DT_WEIGHTS_FILE;
    case DT_SNAPSHOT_MOMENTS:
        return OPTIMIZER_FILE;
    case DT_SNAPSHOT_EMA:
        return adapter ? AVERAGE_DIR "/" DT_ADAPTER_WEIGHTS_FILE : AVERAGE_DIR "/" DT_WEIGHTS_FILE;
    case DT_SNAPSHOT_OUTER:
        return OUTER_FILE;
    case DT_SNAPSHOT_ERROR_FEEDBACK:
        return FEEDBACK_FILE;
    case DT_SNAPSHOT_PARTS:
        break;
    }
    abort();
}

static long data_group_size(const struct dt_train_state *s)
{
    return dt_comm_size(s->dp.dp_group.all);
}

/* A file of zeros for a part; all ranks then write into it. */
static int create_part(const char *directory, const struct dt_train_state *s,
                       enum dt_snapshot_part part, struct dt_error *err)
{
    int count;
    struct dt_named_tensor *tensors = dt_snapshot_tensors(s, part, data_group_size(s), &count);
    char *path = dt_path_join(directory, part_file(s, part));
    int rc = dt_tensor_file_create(path, tensors, count, err);
    free(path);
    free(tensors);
    return rc;
}

/* 1 if the file exists, 0 if not. */
static int probe_file(const char *directory, const char *name, struct dt_error *err)
{
    char *path = dt_path_join(directory, name);
    int there = dt_file_probe(path, err);
    free(path);
    return there;
}

/* The file that holds a part: older checkpoints compressed the optimizer's state. */
static int find_part(const char *directory, const struct dt_train_state *s,
                     enum dt_snapshot_part part, const char **name, struct dt_error *err)
{
    *name = part_file(s, part);
    if (part != DT_SNAPSHOT_MOMENTS)
        return 0;
    int there = probe_file(directory, OPTIMIZER_FILE, err);
    int older = there == 0 ? probe_file(directory, OLDER_FILE, err) : 0;
    if (older > 0)
        *name = OLDER_FILE;
    return there < 0 ? there : older < 0 ? older : 0;
}

static int open_part(struct dt_tensor_file *file, const char *directory,
                     const struct dt_train_state *s, enum dt_snapshot_part part, long dp_size,
                     bool writes, struct dt_error *err)
{
    int count;
    struct dt_named_tensor *tensors = dt_snapshot_tensors(s, part, dp_size, &count);
    const char *name = part_file(s, part);
    int rc = writes ? 0 : find_part(directory, s, part, &name, err);
    char *path = dt_path_join(directory, name);
    rc = rc < 0 ? rc : dt_tensor_file_open(file, path, tensors, count, writes, err);
    free(path);
    free(tensors);
    return rc;
}

/* Writes this rank's pieces of a part. */
static int write_part(const char *directory, struct dt_snapshot *snapshot,
                      enum dt_snapshot_part part, struct dt_error *err)
{
    struct dt_tensor_file file;
    size_t count;
    long dp_size = data_group_size(snapshot->state);
    DT_TRY(open_part(&file, directory, snapshot->state, part, dp_size, true, err));
    struct dt_snapshot_piece *pieces =
        dt_snapshot_pieces(snapshot->state, part, false, dp_size, &count);
    const float *copied = dt_snapshot_host_part(snapshot, part);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const float *values = copied ? copied : dt_snapshot_host_piece(snapshot, &pieces[i]);
        rc = dt_tensor_file_write(&file, pieces[i].tensor, pieces[i].first, pieces[i].count, values,
                                  err);
        copied = copied ? copied + pieces[i].count : NULL;
    }
    rc = rc < 0 ? rc : dt_tensor_file_sync(&file, err);
    dt_tensor_file_close(&file);
    free(pieces);
    return rc;
}

/* The square root of a second moment is taken: none may be negative. */
static int check_moments(const struct dt_tensor_file *file, const struct dt_snapshot_piece *p,
                         const float *values, struct dt_error *err)
{
    static const char suffix[] = ".second_moment";
    const char *name = file->tensors[p->tensor].name;
    size_t n = strlen(name), end = sizeof suffix - 1;
    if (n < end || strcmp(name + n - end, suffix) != 0)
        return 0;
    for (int64_t i = 0; i < p->count; i++)
        if (values[i] < 0)
            return dt_fail(err, DT_EFORMAT,
                           "%s: tensor '%s': element %lld is %g: second moments are not negative",
                           file->path, name, (long long)(p->first + i), (double)values[i]);
    return 0;
}

static int load_piece(const struct dt_tensor_file *file, const struct dt_train_state *s,
                      const struct dt_snapshot_piece *p, struct dt_error *err)
{
    size_t bytes = (size_t)p->count * sizeof(float);
    float *host = dt_alloc(2, bytes), *there = host + p->count;
    int rc = dt_tensor_file_read(file, p->tensor, p->first, p->count, host, err);
    rc = rc < 0 ? rc : check_moments(file, p, host, err);
    if (rc == 0 && p->accumulate)
        dt_snapshot_download(s, p, there);
    for (int64_t i = 0; i < p->count && p->accumulate; i++)
        host[i] += there[i];
    if (rc == 0)
        dt_snapshot_upload(s, p, host);
    free(host);
    return rc;
}

/* 0: an optional part is absent, and its state starts at zero: checkpoints of older versions, and
 * of one data-parallel rank, lack it. */
static int probe_part(const char *directory, const struct dt_train_state *s,
                      enum dt_snapshot_part part, struct dt_error *err)
{
    if (part != DT_SNAPSHOT_OUTER && part != DT_SNAPSHOT_ERROR_FEEDBACK)
        return 1;
    return probe_file(directory, part_file(s, part), err);
}

/* Loads the elements of a part that this rank holds. */
static int load_part(const char *directory, struct dt_train_state *s, enum dt_snapshot_part part,
                     long dp_size, struct dt_error *err)
{
    struct dt_tensor_file file;
    size_t count;
    int rc = dt_snapshot_has(s, part) ? probe_part(directory, s, part, err) : 0;
    if (rc <= 0)
        return rc;
    DT_TRY(open_part(&file, directory, s, part, dp_size, false, err));
    struct dt_snapshot_piece *pieces = dt_snapshot_pieces(s, part, true, dp_size, &count);
    rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = load_piece(&file, s, &pieces[i], err);
    dt_tensor_file_close(&file);
    free(pieces);
    return rc;
}

static int hash_parameters(const char *directory, const struct dt_train_state *s, uint64_t *hash,
                           struct dt_error *err)
{
    struct dt_tensor_file file;
    DT_TRY(open_part(&file, directory, s, DT_SNAPSHOT_PARAMETERS, data_group_size(s), false, err));
    int rc = dt_tensor_file_hash(&file, hash, err);
    dt_tensor_file_close(&file);
    return rc;
}

#define HASH_CHUNK ((int64_t)1 << 20) /* elements that are read at once */

static int hash_tensor(const struct dt_tensor_file *file, int tensor, uint64_t seed, float *values,
                       struct dt_sum_hash *hash, struct dt_error *err)
{
    const struct dt_named_tensor *t = &file->tensors[tensor];
    const int64_t count = t->shape[0] * (t->rank == 2 ? t->shape[1] : 1);
    for (int64_t first = 0, n; first < count; first += n) {
        n = count - first < HASH_CHUNK ? count - first : HASH_CHUNK;
        DT_TRY(dt_tensor_file_read(file, tensor, first, n, values, err));
        dt_sum_hash_add(hash, seed, (uint64_t)first, (const uint32_t *)(const void *)values,
                        (size_t)n);
    }
    return 0;
}

static int hash_tensors(const char *directory, const struct dt_state_hash *own,
                        struct dt_comm *comm, struct dt_sum_hash *hashes, struct dt_error *err)
{
    struct dt_tensor_file file;
    DT_TRY(open_part(&file, directory, own->state, own->part, data_group_size(own->state), false,
                     err));
    float *values = dt_alloc((size_t)HASH_CHUNK, sizeof *values);
    int rc = 0;
    for (int i = dt_comm_rank(comm); rc == 0 && i < own->count; i += dt_comm_size(comm))
        rc = hash_tensor(&file, i, own->seeds[i], values, &hashes[i], err);
    free(values);
    dt_tensor_file_close(&file);
    return rc;
}

int dt_checkpoint_hash_tensors(const char *directory, const struct dt_state_hash *own,
                               struct dt_comm *comm, struct dt_sum_hash *hashes,
                               struct dt_error *err)
{
    memset(hashes, 0, (size_t)own->count * sizeof *hashes);
    DT_TRY(dt_comm_agree(comm, hash_tensors(directory, own, comm, hashes, err), err));
    return dt_state_hash_sum(comm, hashes, (size_t)own->count, err);
}

/* --- names ------------------------------------------------------------------------------------ */

#define NAME_SIZE 32

static char *name_of(long step, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "step-%08ld", step);
    return name;
}

/* The hidden name of a checkpoint that is being written or removed; owned by the caller. */
char *dt_checkpoint_path(const char *run, long step)
{
    return dt_asprintf("%s/" TEMPORARY "%08ld.tmp-%ld", run, step, (long)getpid());
}

/* The step in a checkpoint's name; -1: not such a name. */
static long step_of(const char *name)
{
    long step;
    char again[NAME_SIZE];
    if (sscanf(name, "step-%ld", &step) != 1 || step < 0)
        return -1;
    return strcmp(name_of(step, again), name) == 0 ? step : -1;
}

/* --- files besides tensors
 * ------------------------------------------------------------------------ */

static int save_records(const char *directory, const struct dt_run_identity *identity,
                        struct dt_error *err)
{
    if (identity->records == NULL)
        return 0;
    struct json_object *root = dt_json_new_object();
    char *path = dt_path_join(directory, RECORDS_FILE);
    dt_json_object_add(root, "lineage", json_object_get(identity->records));
    int rc = dt_sealed_json_write(path, root, err);
    free(path);
    json_object_put(root);
    return rc;
}

static int save_texts(const char *directory, const struct dt_run_identity *identity,
                      struct dt_error *err)
{
    struct dt_buffer yaml = DT_BUFFER_EMPTY;
    char *settings = dt_path_join(directory, DT_CHECKPOINT_SETTINGS);
    char *lineage = dt_path_join(directory, LINEAGE_FILE);
    dt_config_print(dt_settings_schema, identity->settings, &yaml);
    int rc = dt_file_write(settings, yaml.data, yaml.size, err);
    rc = rc < 0 ? rc : dt_file_write(lineage, identity->lineage, strlen(identity->lineage), err);
    rc = rc < 0 ? rc : save_records(directory, identity, err);
    dt_buffer_release(&yaml);
    free(settings);
    free(lineage);
    return rc;
}

/* config.json, with the names of a classifier's labels. */
static int save_config(const char *path, const struct dt_model_config *model,
                       const struct dt_run_identity *identity, struct dt_error *err)
{
    struct dt_labels labels;
    struct json_object *config = dt_model_config_to_json(model, identity->eot);
    int rc = dt_labels_of_names(&labels, identity->settings->data.labels, err);
    dt_labels_add(&labels, config);
    rc = rc < 0 ? rc : dt_json_write(path, config, err);
    dt_labels_release(&labels);
    json_object_put(config);
    return rc;
}

/* config.json and tokenizer, in the format of transformers. */
static int save_model(const char *directory, const struct dt_train_state *state,
                      const struct dt_run_identity *identity, struct dt_error *err)
{
    char *config = dt_path_join(directory, DT_CONFIG_FILE);
    char *tokenizer = dt_path_join(directory, DT_TOKENIZER_FILE);
    int rc = save_config(config, &state->model->config, identity, err);
    if (rc == 0 && identity->tokenizer_path)
        rc = dt_tokenizer_copy(identity->tokenizer_path, tokenizer, err);
    if (rc == 0 && identity->tokenizer_path)
        rc = dt_tokenizer_config_write(directory, identity->eot, identity->eot,
                                       identity->settings->model.max_seq_len, err);
    if (rc == 0 && identity->tokenizer_path)
        rc = dt_chat_template_copy(identity->tokenizer_path, directory, err);
    if (rc == 0 && identity->base)
        rc = dt_adapter_write_config(directory, &state->model->config, identity->base,
                                     identity->base_hash, err);
    free(config);
    free(tokenizer);
    return rc;
}

/* state.json has the hash of the parameters as written. */
static int save_state(const char *directory, const struct dt_snapshot *snapshot,
                      const struct dt_run_identity *identity, struct dt_error *err)
{
    uint64_t hash;
    DT_TRY(hash_parameters(directory, snapshot->state, &hash, err));
    char *path = dt_path_join(directory, STATE_FILE);
    int rc = dt_progress_state_write(&snapshot->progress, identity->data, hash, path, err);
    free(path);
    return rc;
}

#define MOST_FILES 24

/* Adds the files of a model directory, below AVERAGE_DIR or not, but for its weights. */
static int list_model(const char *directory, const struct dt_run_identity *identity, bool averaged,
                      const char **files, int *count, struct dt_error *err)
{
    static const char *const names[][2] = {
        {DT_CONFIG_FILE, AVERAGE_DIR "/" DT_CONFIG_FILE},
        {DT_ADAPTER_CONFIG_FILE, AVERAGE_DIR "/" DT_ADAPTER_CONFIG_FILE},
        {DT_ADAPTER_BASE_FILE, AVERAGE_DIR "/" DT_ADAPTER_BASE_FILE},
        {DT_TOKENIZER_FILE, AVERAGE_DIR "/" DT_TOKENIZER_FILE},
        {DT_TOKENIZER_CONFIG_FILE, AVERAGE_DIR "/" DT_TOKENIZER_CONFIG_FILE},
        {DT_CHAT_TEMPLATE_FILE, AVERAGE_DIR "/" DT_CHAT_TEMPLATE_FILE}};
    const bool adapter = identity->base, tokenizer = identity->tokenizer_path;
    const int template = tokenizer ? probe_file(directory, names[5][averaged], err) : 0;
    const bool there[] = {true, adapter, adapter, tokenizer, tokenizer, template > 0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (there[i])
            files[(*count)++] = names[i][averaged];
    return template <0 ? template : 0;
}

static int save_manifest(const char *directory, const struct dt_snapshot *snapshot,
                         const struct dt_run_identity *identity, struct dt_error *err)
{
    const struct dt_train_state *s = snapshot->state;
    const char *files[MOST_FILES] = {STATE_FILE, DT_CHECKPOINT_SETTINGS, LINEAGE_FILE};
    int count = 3;
    DT_TRY(list_model(directory, identity, false, files, &count, err));
    if (identity->records)
        files[count++] = RECORDS_FILE;
    for (int part = 0; part < DT_SNAPSHOT_PARTS; part++)
        if (dt_snapshot_has(s, (enum dt_snapshot_part)part))
            files[count++] = part_file(s, (enum dt_snapshot_part)part);
    if (s->has_ema)
        DT_TRY(list_model(directory, identity, true, files, &count, err));
    return dt_directory_manifest_write(directory, DT_MANIFEST_FILE, files, err);
}

static int sync_directories(const char *directory, bool averaged, struct dt_error *err)
{
    char *trainer = dt_path_join(directory, DT_TRAINER_DIR);
    char *average = dt_path_join(directory, AVERAGE_DIR);
    int rc = dt_sync_directory(trainer, err);
    rc = rc == 0 && averaged ? dt_sync_directory(average, err) : rc;
    rc = rc < 0 ? rc : dt_sync_directory(directory, err);
    free(trainer);
    free(average);
    return rc;
}

/* Renames the finished directory. An existing checkpoint of the same step is exchanged with it
 * atomically, and removed under the temporary name. */
static int replace_directory(const char *temporary, const char *final, struct dt_error *err)
{
    if (rename(temporary, final) == 0)
        return 0;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return dt_fail_errno(err, "cannot rename to '%s'", final);
    if (dt_system_exchange(temporary, final) == 0)
        return dt_file_remove_tree(temporary, err);
    DT_TRY(dt_file_remove_tree(final, err)); /* the file system cannot exchange two names */
    return rename(temporary, final) < 0 ? dt_fail_errno(err, "cannot rename to '%s'", final) : 0;
}

static int set_link(const char *run, const char *link, const char *name, struct dt_error *err)
{
    char *path = dt_path_join(run, link);
    int rc = dt_file_replace_symlink(name, path, err);
    free(path);
    return rc;
}

static int publish(const char *run, const char *temporary, const struct dt_progress_state *progress,
                   struct dt_error *err)
{
    char name[NAME_SIZE], *final = dt_path_join(run, name_of(progress->step, name));
    int rc = replace_directory(temporary, final, err);
    rc = rc < 0 ? rc : dt_sync_directory(run, err);
    if (rc == 0 && progress->best_count > 0 && progress->best[0].step == progress->step)
        rc = set_link(run, BEST, name, err);
    rc = rc < 0 ? rc : set_link(run, LATEST, name, err);
    rc = rc < 0 ? rc : dt_sync_directory(run, err);
    free(final);
    return rc;
}

int dt_checkpoint_begin(const char *directory, const struct dt_train_state *state,
                        const struct dt_run_identity *identity, struct dt_error *err)
{
    char *trainer = dt_path_join(directory, DT_TRAINER_DIR);
    char *average = dt_path_join(directory, AVERAGE_DIR);
    int rc = dt_file_make_directories(trainer, err);
    rc = rc < 0 ? rc : save_model(directory, state, identity, err);
    if (rc == 0 && state->has_ema)
        rc = dt_file_make_directories(average, err);
    if (rc == 0 && state->has_ema)
        rc = save_model(average, state, identity, err);
    rc = rc < 0 ? rc : save_texts(directory, identity, err);
    for (int i = 0; rc == 0 && i < DT_SNAPSHOT_PARTS; i++)
        if (dt_snapshot_has(state, (enum dt_snapshot_part)i))
            rc = create_part(directory, state, (enum dt_snapshot_part)i, err);
    free(trainer);
    free(average);
    return rc;
}

int dt_checkpoint_write(const char *directory, struct dt_snapshot *snapshot, struct dt_error *err)
{
    for (int i = 0; i < DT_SNAPSHOT_PARTS; i++)
        if (dt_snapshot_has(snapshot->state, (enum dt_snapshot_part)i))
            DT_TRY(write_part(directory, snapshot, (enum dt_snapshot_part)i, err));
    return 0;
}

int dt_checkpoint_complete(const char *run, const char *directory,
                           const struct dt_snapshot *snapshot,
                           const struct dt_run_identity *identity, struct dt_error *err)
{
    DT_TRY(save_state(directory, snapshot, identity, err));
    DT_TRY(save_manifest(directory, snapshot, identity, err));
    DT_TRY(sync_directories(directory, snapshot->state->has_ema, err));
    return publish(run, directory, &snapshot->progress, err);
}

/* The manifest is as it was written, lists every file that the resume reads, and each has the size
 * and hash listed. */
static int check_files(const char *directory, const struct dt_train_state *s, struct dt_error *err)
{
    const char *files[MOST_FILES] = {DT_CONFIG_FILE, STATE_FILE, DT_CHECKPOINT_SETTINGS};
    int count = 3;
    for (int i = 0; i < DT_SNAPSHOT_PARTS; i++) {
        enum dt_snapshot_part part = (enum dt_snapshot_part)i;
        int there = dt_snapshot_has(s, part) ? probe_part(directory, s, part, err) : 0;
        DT_TRY(there);
        if (there > 0)
            DT_TRY(find_part(directory, s, part, &files[count++], err));
    }
    DT_TRY(dt_directory_manifest_require(directory, DT_MANIFEST_FILE, files, err));
    DT_TRY(dt_directory_manifest_verify(directory, DT_MANIFEST_FILE, err));
    char *manifest = dt_path_join(directory, DT_MANIFEST_FILE);
    int sealed = dt_sealed_json_check(manifest, err);
    free(manifest);
    return sealed < 0 ? sealed : 0; /* 0: of an earlier version */
}

/* state.json belongs to these weights. */
static int check_hash(const char *directory, const struct dt_train_state *s, struct dt_error *err)
{
    uint64_t hash, expected;
    char hex[2][DT_HASH_HEX], *path = dt_path_join(directory, STATE_FILE);
    int rc = dt_progress_state_hash(path, &expected, err);
    rc = rc < 0 ? rc : hash_parameters(directory, s, &hash, err);
    if (rc == 0 && hash != expected)
        rc = dt_fail(err, DT_EFORMAT,
                     "%s: 'parameters' is %s, but the hash of the tensors in %s is %s: the files "
                     "are of different checkpoints",
                     path, dt_hash_hex(expected, hex[0]), part_file(s, DT_SNAPSHOT_PARAMETERS),
                     dt_hash_hex(hash, hex[1]));
    free(path);
    return rc;
}

/* Rank 0 checks for all. */
static int check(const char *directory, const struct dt_train_state *s,
                 const struct dt_run_identity *identity, enum dt_checkpoint_use use,
                 struct dt_error *err)
{
    if (use == DT_CHECKPOINT_BRANCH) /* decides which files there must be */
        DT_TRY(dt_checkpoint_check_branch(directory, identity->settings, err));
    DT_TRY(check_files(directory, s, err));
    if (use == DT_CHECKPOINT_RESUME)
        DT_TRY(dt_checkpoint_check_resume(directory, identity->settings, err));
    if (identity->base)
        DT_TRY(dt_adapter_check_base(directory, identity->base_hash, err));
    return check_hash(directory, s, err);
}

int dt_checkpoint_check(const char *directory, const struct dt_train_state *s,
                        const struct dt_run_identity *identity, enum dt_checkpoint_use use,
                        struct dt_error *err)
{
    struct dt_comm *comm = s->mesh->world;
    int rc = dt_comm_rank(comm) == 0 ? check(directory, s, identity, use, err) : 0;
    return dt_comm_agree(comm, rc, err);
}

int dt_checkpoint_read_progress(const char *directory, struct dt_progress_state *progress,
                                uint64_t *data, struct dt_error *err)
{
    char *path = dt_path_join(directory, STATE_FILE);
    int rc = dt_progress_state_read(progress, data, path, err);
    free(path);
    return rc;
}

static int read_progress(const char *directory, struct dt_progress_state *progress,
                         const struct dt_run_identity *identity, enum dt_checkpoint_use use,
                         struct dt_error *err)
{
    uint64_t data;
    char hex[2][DT_HASH_HEX];
    DT_TRY(dt_checkpoint_read_progress(directory, progress, &data, err));
    if (use == DT_CHECKPOINT_BRANCH || data == identity->data)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "%s/" STATE_FILE ": the run was trained on other data%s: the fingerprint of "
                   "its tokens is %s, but that of '%s' is %s; trainer/lineage.txt there has its "
                   "commands",
                   directory, *identity->settings->data.stages ? ", or in other data.stages" : "",
                   dt_hash_hex(data, hex[0]), identity->data_name,
                   dt_hash_hex(identity->data, hex[1]));
}

int dt_checkpoint_load(const char *directory, struct dt_train_state *state,
                       struct dt_progress_state *progress, const struct dt_run_identity *identity,
                       enum dt_checkpoint_use use, struct dt_error *err)
{
    int rc = read_progress(directory, progress, identity, use, err);
    for (int i = 0; rc == 0 && i < DT_SNAPSHOT_PARTS; i++)
        rc = load_part(directory, state, (enum dt_snapshot_part)i, progress->residual_ranks, err);
    DT_TRY(dt_comm_agree(state->mesh->world, rc, err));
    dt_train_state_refresh_weights(state);
    return 0;
}

int dt_checkpoint_hash(const char *run, uint64_t *parameters, struct dt_error *err)
{
    char *path = dt_path_join(run, LATEST "/" STATE_FILE);
    int rc = dt_progress_state_hash(path, parameters, err);
    free(path);
    return rc;
}

/* --- keeping and removing --------------------------------------------------------------------- */

static int newest_first(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x < y) - (x > y);
}

struct step_list {
    long *steps;
    size_t count, capacity;
};

/* The steps of RUN's checkpoints up to newest, in descending order. */
static int list_steps(const char *run, long newest, struct step_list *list, struct dt_error *err)
{
    DIR *dir = opendir(run);
    if (dir == NULL)
        return dt_fail_errno(err, "cannot open directory '%s'", run);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        long step = step_of(e->d_name);
        if (step < 0 || step > newest)
            continue;
        DT_GROW(list->steps, list->count, list->capacity);
        list->steps[list->count++] = step;
    }
    closedir(dir);
    if (list->count > 0)
        qsort(list->steps, list->count, sizeof *list->steps, newest_first);
    return 0;
}

int dt_checkpoint_steps(const char *run, long **steps, size_t *count, struct dt_error *err)
{
    struct step_list list = {NULL, 0, 0};
    DT_TRY(list_steps(run, LONG_MAX, &list, err));
    for (size_t i = 0; i < list.count / 2; i++) {
        long step = list.steps[i];
        list.steps[i] = list.steps[list.count - 1 - i];
        list.steps[list.count - 1 - i] = step;
    }
    *steps = list.steps;
    *count = list.count;
    return 0;
}

char *dt_checkpoint_of_step(const char *run, long step)
{
    char name[NAME_SIZE];
    return dt_path_join(run, name_of(step, name));
}

int dt_checkpoint_find(const char *run, char **path, struct dt_error *err)
{
    struct step_list list = {NULL, 0, 0};
    char name[NAME_SIZE], *latest = dt_path_join(run, LATEST);
    struct stat st;
    *path = NULL;
    int rc = lstat(latest, &st);
    if (rc == 0) { /* a dangling link: a damaged run, not a new one */
        *path = latest;
        return 0;
    }
    if (errno != ENOENT && errno != ENOTDIR)
        rc = dt_fail_errno(err, "cannot look at '%s'", latest);
    else
        rc = 0;
    free(latest);
    DT_TRY(rc);
    DT_TRY(list_steps(run, LONG_MAX, &list, err));
    if (list.count > 0)
        *path = dt_path_join(run, name_of(list.steps[0], name));
    free(list.steps);
    return 0;
}

static int check_link(const char *run, const char *link, struct dt_error *err)
{
    char *path = dt_path_join(run, link);
    struct stat st;
    int rc = lstat(path, &st) == 0 && S_ISDIR(st.st_mode)
                 ? dt_fail(err, DT_EINVALID,
                           "'%s' is a directory where a link to a checkpoint belongs, as after a "
                           "copy that follows links: remove it; without " LATEST
                           " the checkpoint of the highest step is resumed",
                           path)
                 : 0;
    free(path);
    return rc;
}

int dt_checkpoint_check_links(const char *run, struct dt_error *err)
{
    DT_TRY(check_link(run, LATEST, err));
    return check_link(run, BEST, err);
}

int dt_checkpoint_find_before(const char *run, const char *path, char **earlier,
                              struct dt_error *err)
{
    char target[NAME_SIZE] = "", name[NAME_SIZE];
    struct step_list list = {NULL, 0, 0};
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    ssize_t size = readlink(path, target, sizeof target - 1);
    long step = step_of(size > 0 ? target : base);
    *earlier = NULL;
    if (step == 0)
        return 0;
    DT_TRY(list_steps(run, step > 0 ? step - 1 : LONG_MAX, &list, err));
    if (list.count > 0)
        *earlier = dt_path_join(run, name_of(list.steps[0], name));
    free(list.steps);
    return 0;
}

static bool points_to(const char *run, const char *link, const char *name)
{
    char target[NAME_SIZE] = "", *path = dt_path_join(run, link);
    bool same = readlink(path, target, sizeof target - 1) > 0 && strcmp(target, name) == 0;
    free(path);
    return same;
}

/* Renames it to a hidden name first, so that a partly removed checkpoint is never found. */
static int remove_checkpoint(const char *run, long step, struct dt_error *err)
{
    char name[NAME_SIZE], *path = dt_path_join(run, name_of(step, name));
    char *temporary = dt_checkpoint_path(run, step);
    int rc = rename(path, temporary) < 0 ? dt_fail_errno(err, "cannot rename '%s'", path)
                                         : dt_file_remove_tree(temporary, err);
    free(path);
    free(temporary);
    return rc;
}

static bool is_best(const struct dt_progress_state *progress, long step)
{
    for (int i = 0; i < progress->best_count; i++)
        if (progress->best[i].step == step)
            return true;
    return false;
}

int dt_checkpoint_prune(const char *run, const struct dt_progress_state *progress, long keep_last,
                        long keep_every, struct dt_error *err)
{
    struct step_list list = {NULL, 0, 0};
    char name[NAME_SIZE];
    if (keep_last == 0)
        return 0;
    int rc = list_steps(run, progress->step, &list, err);
    for (size_t i = (size_t)keep_last; rc == 0 && i < list.count; i++) {
        long step = list.steps[i];
        bool kept = (keep_every > 0 && step % keep_every == 0) || is_best(progress, step);
        name_of(step, name);
        if (!kept && !points_to(run, LATEST, name) && !points_to(run, BEST, name))
            rc = remove_checkpoint(run, step, err);
    }
    free(list.steps);
    return rc;
}

int dt_checkpoint_clean(const char *run, struct dt_error *err)
{
    DIR *dir = opendir(run);
    if (dir == NULL)
        return errno == ENOENT ? 0 : dt_fail_errno(err, "cannot open directory '%s'", run);
    int rc = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;) {
        if (strncmp(e->d_name, TEMPORARY, strlen(TEMPORARY)) != 0)
            continue;
        char *path = dt_path_join(run, e->d_name);
        rc = dt_file_remove_tree(path, err);
        free(path);
    }
    closedir(dir);
    return rc;
}
