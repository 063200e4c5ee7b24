/* SPDX-License-Identifier: MIT */
#include "hub/hub.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "base/program.h"
#include "hub/hub-internal.h"
#include "hub/hub-program.h"

#define INDEX "model.safetensors.index.json"

/* What a name without a file stands for. */
enum wanted { WANTED_FILE, WANTED_MODEL, WANTED_TOKENIZER };

/* A fetch in progress. */
struct fetch {
    struct dt_hub_name name;
    enum wanted wanted;
    char *commit;
    struct json_object *files; /* {name: true} of the repository, or of the cache */
    struct dt_hub hub;
    struct dt_error *err;
};

static bool has(const struct fetch *f, const char *name)
{
    return json_object_object_get_ex(f->files, name, NULL);
}

/* --- the files of a model ---------------------------------------------------------------------*/

typedef int each_function(struct fetch *f, const char *name);

static const char *const tokenizer_files[] = {"tokenizer.json", "tokenizer_config.json",
                                              "special_tokens_map.json", "chat_template.jinja"};
/* Read if tokenizer.json is absent. */
static const char *const older_files[] = {"tekken.json", "tokenizer.model", "vocab.json",
                                          "merges.txt", "vocab.txt"};

static int each_of(struct fetch *f, const char *const *names, size_t count, each_function *each)
{
    for (size_t i = 0; i < count; i++)
        if (has(f, names[i]))
            DT_TRY(each(f, names[i]));
    return 0;
}

static int each_tokenizer(struct fetch *f, each_function *each)
{
    DT_TRY(each_of(f, tokenizer_files, sizeof tokenizer_files / sizeof *tokenizer_files, each));
    return has(f, tokenizer_files[0])
               ? 0
               : each_of(f, older_files, sizeof older_files / sizeof *older_files, each);
}

static bool has_tokenizer(const struct fetch *f)
{
    bool found = has(f, tokenizer_files[0]);
    for (size_t i = 0; i < sizeof older_files / sizeof *older_files; i++)
        found = found || has(f, older_files[i]);
    return found;
}

/* The files that an index maps tensors to. */
static int each_shard(struct fetch *f, each_function *each)
{
    struct json_object *index, *map, *done = dt_json_new_object();
    char *path = dt_hub_cache_path(&f->name, f->commit, INDEX);
    int rc = dt_json_read(path, &index, f->err);
    rc = rc < 0 ? rc : dt_json_get(index, "weight_map", json_type_object, path, &map, f->err);
    if (rc == 0) {
        json_object_object_foreach(map, tensor, file)
        {
            bool named = json_object_is_type(file, json_type_string);
            const char *name = named ? dt_json_text(file) : "";
            if (rc < 0 || json_object_object_get_ex(done, name, NULL))
                continue;
            rc = named ? dt_path_check_inside(name, path, f->err)
                       : dt_fail(f->err, DT_EFORMAT, "%s: the file of tensor '%s' is not a string",
                                 path, tensor);
            dt_json_object_add(done, name, dt_json_new_boolean(true));
            rc = rc < 0 ? rc : each(f, name);
        }
    }
    json_object_put(done);
    json_object_put(index);
    free(path);
    return rc;
}

/* A repository without safetensors: what it has instead. */
static int refuse_model(const struct fetch *f)
{
    const char *first = NULL;
    json_object_object_foreach(f->files, name, value)
    {
        size_t n = strlen(name);
        (void)value;
        if (first == NULL && n > 5 && strcmp(name + n - 5, ".gguf") == 0)
            first = name;
    }
    if (first)
        return dt_fail(f->err, DT_EINVALID,
                       "hf://%s: has GGUF files: name one of them, for example hf://%s/%s",
                       f->name.repository, f->name.repository, first);
    return dt_fail(f->err, DT_EFORMAT, "hf://%s: %s", f->name.repository,
                   has(f, "adapter_config.json") ? "is an adapter of another model, not a model"
                   : has(f, "pytorch_model.bin") || has(f, "pytorch_model.bin.index.json")
                       ? "has weights of PyTorch only, and not model.safetensors: convert it with "
                         "transformers' save_pretrained()"
                       : "has no config.json with model.safetensors");
}

static int each_model(struct fetch *f, each_function *each)
{
    static const char *const names[] = {"config.json", "generation_config.json"};
    const char *whole = "model.safetensors";
    if (!has(f, names[0]) || (!has(f, whole) && !has(f, INDEX)))
        return refuse_model(f);
    DT_TRY(each_of(f, names, 2, each));
    DT_TRY(each_tokenizer(f, each));
    if (has(f, whole))
        return each(f, whole);
    DT_TRY(each(f, INDEX));
    return each_shard(f, each);
}

static int each_file(struct fetch *f, each_function *each)
{
    if (f->name.file)
        return each(f, f->name.file);
    return f->wanted == WANTED_TOKENIZER ? each_tokenizer(f, each) : each_model(f, each);
}

/* --- from the cache ---------------------------------------------------------------------------*/

static bool has_cached(const struct fetch *f, const char *name)
{
    char *path = dt_hub_cache_path(&f->name, f->commit, name);
    bool there = dt_file_is_regular(path);
    free(path);
    return there;
}

static int need_cached(struct fetch *f, const char *name)
{
    return has_cached(f, name) ? 0
                               : dt_fail(f->err, DT_EMISSING, "hf://%s@%s: %s is not in the cache",
                                         f->name.repository, f->name.revision, name);
}

/* The files of a snapshot, but not those below its directories. */
static struct json_object *list_cached(const struct fetch *f)
{
    struct json_object *files = dt_json_new_object();
    char *path = dt_hub_cache_path(&f->name, f->commit, NULL);
    DIR *directory = opendir(path);
    for (struct dirent *e; directory && (e = readdir(directory)) != NULL;)
        dt_json_object_add(files, e->d_name, dt_json_new_boolean(true));
    if (directory)
        closedir(directory);
    free(path);
    return files;
}

static int use_cache(struct fetch *f)
{
    f->commit = dt_hub_cache_commit(&f->name);
    if (f->commit == NULL)
        return dt_fail(f->err, DT_EMISSING, "hf://%s@%s: is not in the cache", f->name.repository,
                       f->name.revision);
    f->files = list_cached(f);
    DT_TRY(each_file(f, need_cached));
    return f->wanted == WANTED_TOKENIZER && !f->name.file && !has_tokenizer(f)
               ? need_cached(f, tokenizer_files[0])
               : 0;
}

static void forget(struct fetch *f)
{
    free(f->commit);
    json_object_put(f->files);
    f->commit = NULL;
    f->files = NULL;
}

/* --- from the hub -----------------------------------------------------------------------------*/

static int take_description(struct fetch *f, struct json_object *description)
{
    struct json_object *siblings;
    const char *commit;
    DT_TRY(dt_json_get_string(description, "sha", f->name.repository, &commit, f->err));
    if (!dt_hub_is_commit(commit))
        return dt_fail(f->err, DT_EFORMAT, "hf://%s: the hub names no commit", f->name.repository);
    f->commit = dt_strdup(commit);
    f->files = dt_json_new_object();
    DT_TRY(dt_json_get(description, "siblings", json_type_array, f->name.repository, &siblings,
                       f->err));
    for (size_t i = 0; i < json_object_array_length(siblings); i++) {
        const char *name;
        DT_TRY(dt_json_get_string(json_object_array_get_idx(siblings, i), "rfilename",
                                  f->name.repository, &name, f->err));
        dt_json_object_add(f->files, name, dt_json_new_boolean(true));
    }
    return 0;
}

static int download(struct fetch *f, const char *name)
{
    return dt_hub_download(&f->hub, &f->name, f->commit, name, f->err);
}

static int use_hub(struct fetch *f)
{
    struct json_object *description;
    DT_TRY(dt_hub_describe(&f->hub, &f->name, &description, f->err));
    int rc = take_description(f, description);
    if (rc == 0 && f->wanted == WANTED_TOKENIZER && !f->name.file && !has_tokenizer(f))
        rc = dt_fail(f->err, DT_EMISSING,
                     "hf://%s@%s: has no tokenizer: tokenizer.json, tokenizer.model, vocab.json, "
                     "vocab.txt or tekken.json",
                     f->name.repository, f->name.revision);
    rc = rc < 0 ? rc : each_file(f, download);
    rc = rc < 0 ? rc : dt_hub_cache_set_commit(&f->name, f->commit, f->err);
    json_object_put(description);
    return rc;
}

/* Without the hub the cache is used, if it has all that is needed. */
static int reach_hub(struct fetch *f)
{
    struct dt_error none;
    int rc = dt_hub_open(&f->hub, f->err);
    if (rc == DT_EMISSING)
        rc = dt_hub_program_fetch(&f->name, f->wanted == WANTED_TOKENIZER, &f->commit, f->err);
    else if (rc == 0)
        rc = use_hub(f);
    dt_hub_close(&f->hub);
    if (rc != DT_EIO)
        return rc;
    struct dt_error *reported = f->err;
    forget(f);
    f->err = &none;
    if (use_cache(f) == 0) {
        dt_program_warn("%s: using the commit %s of the cache", reported->text, f->commit);
        rc = 0;
    }
    f->err = reported;
    return rc;
}

static bool is_offline(void)
{
    static const char *const truths[] = {"1", "on", "yes", "true"};
    const char *value = getenv("HF_HUB_OFFLINE");
    for (int i = 0; value && i < 4; i++)
        if (strcasecmp(value, truths[i]) == 0)
            return true;
    return false;
}

static int fetch(struct fetch *f)
{
    struct dt_error none, *reported = f->err;
    if (is_offline()) {
        int rc = use_cache(f);
        return rc < 0 ? dt_fail_context(f->err, "HF_HUB_OFFLINE is set") : 0;
    }
    f->err = &none;
    /* Without a tokenizer the cache may lack what a program reads next. */
    bool cached = dt_hub_is_commit(f->name.revision) && use_cache(f) == 0 &&
                  (f->name.file || has_tokenizer(f));
    f->err = reported;
    if (cached)
        return 0;
    forget(f);
    return reach_hub(f);
}

int dt_hub_fetch(const char *name, const char *option, struct dt_options_source *source,
                 struct dt_error *err)
{
    struct fetch f = {.err = err, .wanted = WANTED_FILE};
    *source = (struct dt_options_source){NULL, NULL};
    if (option && (strcmp(option, "model") == 0 || strcmp(option, "init-from") == 0))
        f.wanted = WANTED_MODEL;
    else if (option && strcmp(option, "tokenizer") == 0)
        f.wanted = WANTED_TOKENIZER;
    int rc = dt_hub_name_parse(&f.name, name, err);
    if (rc == 0 && f.wanted == WANTED_FILE && f.name.file == NULL)
        rc = dt_fail(err, DT_EINVALID, "%s: names no file: add /FILE", name);
    rc = rc < 0 ? rc : fetch(&f);
    if (rc == 0) {
        bool json =
            f.wanted == WANTED_TOKENIZER && !f.name.file && has_cached(&f, "tokenizer.json");
        source->path = dt_hub_cache_path(&f.name, f.commit, json ? "tokenizer.json" : f.name.file);
        source->name = dt_path_hub_name(source->path);
    }
    forget(&f);
    dt_hub_name_release(&f.name);
    return rc;
}
