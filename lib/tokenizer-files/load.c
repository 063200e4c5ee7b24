/* SPDX-License-Identifier: MIT */
/* Chooses the reader of a tokenizer file; reads GPT-2's vocab.json and merges.txt. */
#include "json/json.h"
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "base/program.h"
#include "gguf/gguf-file.h"
#include "tokenizer-files/tokenizer-file.h"
#include "tokenizer-files/tokenizer-files.h"

static int add_merges_file(struct dt_tokenizer *t, const char *path, struct dt_error *err)
{
    char *text;
    size_t size;
    DT_TRY(dt_file_read(path, DT_TOKENIZER_LIMIT, &text, &size, err));
    int rc = 0, number = 0;
    for (char *line = text, *next; rc == 0 && line < text + size; line = next) {
        char *end = memchr(line, '\n', (size_t)(text + size - line));
        end = end ? end : text + size;
        next = end + 1;
        number++;
        end -= end > line && end[-1] == '\r';
        if (end == line || (number == 1 && strncmp(line, "#version", 8) == 0))
            continue;
        char *location = dt_asprintf("%s:%d", path, number);
        rc = dt_tokenizer_add_merge_line(t, line, (size_t)(end - line), location, err);
        free(location);
    }
    free(text);
    return rc;
}

/* vocab.json does not mark special tokens. They are those in angle brackets that no merge
 * produces, so ordinary text never encodes to them. */
static void mark_special(struct dt_tokenizer *t)
{
    bool *made = dt_alloc(t->size, sizeof *made);
    for (uint32_t i = 0; i < t->merge_count; i++)
        made[t->merges[i].result] = true;
    for (uint32_t id = 0; id < t->size; id++) {
        size_t size;
        const char *bytes = dt_tokenizer_bytes(t, id, &size);
        if (!made[id] && size > 2 && bytes[0] == '<' && bytes[size - 1] == '>')
            dt_tokenizer_mark_added(t, (struct dt_added_token){.id = id, .special = true});
    }
    free(made);
}

/* CLIP's and GPT's merges end words with "</w>", in text that is prepared in another way. */
static int refuse_word_ends(const struct dt_tokenizer *t, const char *path, struct dt_error *err)
{
    if (dt_tokenizer_find(t, "e</w>", 5) == DT_NO_TOKEN)
        return 0;
    return dt_fail(err, DT_EFORMAT,
                   "%s: has tokens that end in '</w>', as those of CLIP, which is supported as "
                   "tokenizer.json: load that, or convert with transformers: "
                   "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)",
                   path);
}

static int fill_from_pair(struct dt_tokenizer *t, const char *vocabulary_path,
                          const char *merges_path, struct dt_error *err)
{
    struct json_object *vocabulary;
    DT_TRY(dt_json_read(vocabulary_path, &vocabulary, err));
    int rc = 0;
    if (!json_object_is_type(vocabulary, json_type_object))
        rc = dt_fail(err, DT_EFORMAT, "%s: is not a JSON object", vocabulary_path);
    if (rc == 0)
        rc = dt_tokenizer_add_vocabulary(t, vocabulary, NULL, vocabulary_path, err);
    json_object_put(vocabulary);
    DT_TRY(rc);
    DT_TRY(refuse_word_ends(t, vocabulary_path, err));
    DT_TRY(add_merges_file(t, merges_path, err));
    mark_special(t);
    if (dt_tokenizer_finish(t, err) < 0)
        return dt_fail_context(err, "%s", vocabulary_path);
    return 0;
}

static const char pair_name[] = "vocab.json";

static bool ends_with(const char *path, const char *tail)
{
    size_t size = strlen(path), length = strlen(tail);
    return size >= length && strcmp(path + size - length, tail) == 0;
}

static int load_pair(struct dt_tokenizer **t, const char *path, const struct dt_pattern *pattern,
                     struct dt_error *err)
{
    char *merges = dt_asprintf("%.*smerges.txt", (int)(strlen(path) - strlen(pair_name)), path);
    *t = dt_tokenizer_new(pattern ? pattern : dt_pattern_find("gpt2"));
    int rc = fill_from_pair(*t, path, merges, err);
    free(merges);
    return rc;
}

/* The kinds of files, chosen by the end of the file name. A directory is searched for the
 * names in this order. Any other file is JSON, whose members define its kind. */
static const struct {
    const char *suffix;
    dt_tokenizer_reader *load;
    bool is_name; /* a whole file name, which a directory may hold */
} kinds[] = {
    {"tokenizer.json", dt_tokenizer_load_json, true},
    {"tekken.json", dt_tokenizer_load_json, true},
    {pair_name, load_pair, true},
    {"vocab.txt", dt_tokenizer_load_bert, true},
    {"tokenizer.model", dt_tokenizer_load_model, true},
    {"spiece.model", dt_tokenizer_load_model, true},
    {".model", dt_tokenizer_load_model, false},
    {".tiktoken", dt_tokenizer_load_tiktoken, false},
    {".gguf", dt_tokenizer_load_gguf, false},
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* As Mistral names its models: tokenizer.model.v3. */
static bool is_versioned_model(const char *path)
{
    const char *name = strrchr(path, '/'), *version = strstr(name ? name : path, ".model.v");
    return version && version[8] >= '0' && version[8] <= '9' && strchr(version + 8, '.') == NULL;
}

static int load_file(struct dt_tokenizer **t, const char *path, const struct dt_pattern *pattern,
                     struct dt_error *err)
{
    for (size_t i = 0; i < KINDS; i++)
        if (ends_with(path, kinds[i].suffix))
            return kinds[i].load(t, path, pattern, err);
    if (is_versioned_model(path))
        return dt_tokenizer_load_model(t, path, pattern, err);
    if (dt_gguf_file_is_named(path))
        return dt_tokenizer_load_gguf(t, path, pattern, err);
    return dt_tokenizer_load_json(t, path, pattern, err);
}

static int load_directory(struct dt_tokenizer **t, const char *path,
                          const struct dt_pattern *pattern, struct dt_error *err)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (!kinds[i].is_name)
            continue;
        char *file = dt_path_join(path, kinds[i].suffix);
        int exists = dt_file_probe(file, err);
        int rc = exists > 0 ? kinds[i].load(t, file, pattern, err) : exists;
        free(file);
        if (exists != 0)
            return rc;
    }
    return dt_fail(err, DT_EMISSING,
                   "%s: does not contain tokenizer.json or another tokenizer file: see "
                   "dt-tokenizer(5)",
                   path);
}

int dt_tokenizer_load_with(struct dt_tokenizer **t, const char *path, const char *pattern,
                           struct dt_error *err)
{
    const struct dt_pattern *chosen = pattern ? dt_pattern_find(pattern) : NULL;
    *t = NULL;
    if (pattern && chosen == NULL)
        return dt_fail(err, DT_EINVALID, "unknown pattern '%s'", pattern);
    int rc = dt_file_is_directory(path) ? load_directory(t, path, chosen, err)
                                        : load_file(t, path, chosen, err);
    if (rc < 0) {
        dt_tokenizer_free(*t);
        *t = NULL;
    }
    return rc;
}

int dt_tokenizer_load(struct dt_tokenizer **t, const char *path, struct dt_error *err)
{
    return dt_tokenizer_load_with(t, path, NULL, err);
}

int dt_tokenizer_load_for_model(struct dt_tokenizer **t, const char *path, const char *model,
                                struct dt_error *err)
{
    struct dt_error why;
    if (path)
        return dt_tokenizer_load(t, path, err);
    if (dt_tokenizer_load(t, model, &why) == 0)
        return 0;
    return dt_fail(err, why.code, "%s%s", why.text,
                   why.code == DT_EMISSING ? "; -t FILE names one" : "");
}

void dt_tokenizer_warn_of_other(const struct dt_tokenizer *t, const char *path, const char *model)
{
    struct dt_tokenizer *own;
    struct dt_error ignored;
    if (dt_tokenizer_load(&own, model, &ignored) < 0)
        return;
    if (dt_tokenizer_fingerprint(own) != dt_tokenizer_fingerprint(t))
        dt_program_warn("warning: %s is not the tokenizer in %s: the model may take its ids for "
                        "other tokens",
                        path, model);
    dt_tokenizer_free(own);
}
