/* SPDX-License-Identifier: MIT */
#include "formats/text-tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "formats/adapter.h"
#include "formats/model-directory.h"
#include "gguf/gguf-file.h"
#include "gguf/gguf-tokenizer.h"
#include "io/lineage.h"
#include "json/json.h"

#define MOST_TEMPLATE ((size_t)1 << 24)

/* An id outside the vocabulary never occurs; some files give -1 for none. */
static bool is_token(int64_t id, uint32_t size)
{
    return id >= 0 && id < size;
}

static int add_end(struct dt_text_tokens *t, int64_t id, uint32_t size, const char *path,
                   struct dt_error *err)
{
    if (!is_token(id, size))
        return 0;
    if (t->end_count == DT_TEXT_ENDS)
        return dt_fail(err, DT_EFORMAT, "%s: more than %d ids in eos_token_id", path, DT_TEXT_ENDS);
    t->ends[t->end_count++] = (uint32_t)id;
    return 0;
}

/* The ids of a config.json or generation_config.json. */
static int take_ids(struct dt_text_tokens *t, struct json_object *config, uint32_t size,
                    const char *path, struct dt_error *err)
{
    struct json_object *bos = json_object_object_get(config, "bos_token_id");
    struct json_object *eos = json_object_object_get(config, "eos_token_id");
    if (json_object_is_type(bos, json_type_int) && is_token(json_object_get_int64(bos), size))
        t->bos = (uint32_t)json_object_get_int64(bos);
    if (eos == NULL)
        return 0;
    t->end_count = 0;
    if (json_object_is_type(eos, json_type_int))
        return add_end(t, json_object_get_int64(eos), size, path, err);
    if (!json_object_is_type(eos, json_type_array))
        return dt_fail(err, DT_EFORMAT, "%s: eos_token_id is neither an integer nor a list", path);
    for (size_t i = 0; i < json_object_array_length(eos); i++) {
        struct json_object *id = json_object_array_get_idx(eos, i);
        if (!json_object_is_type(id, json_type_int))
            return dt_fail(err, DT_EFORMAT, "%s: an id of eos_token_id is not an integer", path);
        DT_TRY(add_end(t, json_object_get_int64(id), size, path, err));
    }
    return 0;
}

/* A string, or in older files a list of {"name", "template"}, of which "default" counts. */
static struct json_object *find_template(struct json_object *chat)
{
    struct json_object *found = json_object_is_type(chat, json_type_string) ? chat : NULL;
    for (size_t i = 0;
         json_object_is_type(chat, json_type_array) && i < json_object_array_length(chat); i++) {
        struct json_object *one = json_object_array_get_idx(chat, i);
        struct json_object *name = json_object_object_get(one, "name");
        struct json_object *text = json_object_object_get(one, "template");
        if (json_object_is_type(name, json_type_string) &&
            json_object_is_type(text, json_type_string) &&
            strcmp(dt_json_text(name), "default") == 0)
            found = text;
    }
    return found;
}

static int take_tokenizer_config(struct dt_text_tokens *t, struct json_object *config,
                                 const char *path, struct dt_error *err)
{
    static const char *const flags[] = {"add_bos_token", NULL};
    struct json_object *adds = json_object_object_get(config, "add_bos_token");
    struct json_object *chat = find_template(json_object_object_get(config, "chat_template"));
    DT_TRY(dt_json_check_flags(config, flags, path, err));
    if (adds)
        t->adds_bos = json_object_get_boolean(adds);
    if (chat)
        t->chat_template = dt_strdup(dt_json_text(chat));
    return 0;
}

/* Reads a JSON object of the directory; *config is NULL if there is none. */
static int read_member(const char *directory, const char *name, char **path,
                       struct json_object **config, struct dt_error *err)
{
    *config = NULL;
    *path = dt_path_join(directory, name);
    int rc = dt_file_probe(*path, err);
    rc = rc > 0 ? dt_json_read(*path, config, err) : rc;
    if (rc == 0 && *config && !json_object_is_type(*config, json_type_object))
        rc = dt_fail(err, DT_EFORMAT, "%s: is not a JSON object", *path);
    return rc;
}

/* Takes the ids of the model that an adapter is of: peft writes no config.json. */
static int take_base_ids(struct dt_text_tokens *t, const char *directory, uint32_t size,
                         struct dt_error *err)
{
    struct dt_text_tokens own;
    struct dt_error none;
    char *base;
    int adapter = dt_adapter_probe(directory, err);
    if (adapter <= 0 || dt_adapter_find_base(directory, &base, &none) < 0)
        return adapter < 0 ? adapter : 0;
    int rc = dt_text_tokens_read(&own, base, size, err);
    t->bos = own.bos;
    t->end_count = own.end_count;
    memcpy(t->ends, own.ends, sizeof own.ends);
    dt_text_tokens_release(&own);
    free(base);
    return rc;
}

static int read_directory(struct dt_text_tokens *t, const char *directory, uint32_t size,
                          struct dt_error *err)
{
    static const char *const names[] = {DT_CONFIG_FILE, DT_GENERATION_CONFIG_FILE,
                                        DT_TOKENIZER_CONFIG_FILE};
    int rc = take_base_ids(t, directory, size, err);
    for (int i = 0; rc == 0 && i < 3; i++) {
        struct json_object *config;
        char *path;
        rc = read_member(directory, names[i], &path, &config, err);
        if (rc == 0 && config && i < 2)
            rc = take_ids(t, config, size, path, err);
        else if (rc == 0 && config)
            rc = take_tokenizer_config(t, config, path, err);
        json_object_put(config);
        free(path);
    }
    DT_TRY(rc);
    char *text, *path = dt_path_join(directory, DT_CHAT_TEMPLATE_FILE);
    size_t bytes;
    rc = dt_file_probe(path, err);
    if (rc > 0 && (rc = dt_file_read(path, MOST_TEMPLATE, &text, &bytes, err)) == 0) {
        free(t->chat_template);
        t->chat_template = text;
    }
    free(path);
    return rc;
}

/* The ends that a GGUF file names; two keys may name one. */
static int read_gguf_ends(struct dt_text_tokens *t, const struct dt_gguf_file *f, uint32_t size,
                          struct dt_error *err)
{
    for (const char *const *key = dt_gguf_end_keys; *key; key++) {
        int64_t id = -1;
        bool twice = false;
        DT_TRY(dt_gguf_file_get_int(f, *key, &id, err));
        for (int i = 0; i < t->end_count; i++)
            twice = twice || t->ends[i] == id;
        if (!twice)
            DT_TRY(add_end(t, id, size, f->path, err));
    }
    return 0;
}

static int read_gguf(struct dt_text_tokens *t, const char *path, uint32_t size,
                     struct dt_error *err)
{
    struct dt_gguf_file *f;
    struct dt_gguf_text chat = {NULL, 0};
    int64_t bos = -1, adds = -1;
    DT_TRY(dt_gguf_file_open(&f, path, err));
    int rc = dt_gguf_file_get_int(f, "tokenizer.ggml.bos_token_id", &bos, err);
    rc = rc < 0 ? rc : dt_gguf_file_get_int(f, "tokenizer.ggml.add_bos_token", &adds, err);
    rc = rc < 0 ? rc : dt_gguf_file_get_string(f, "tokenizer.chat_template", &chat, err);
    rc = rc < 0 ? rc : read_gguf_ends(t, f, size, err);
    t->bos = is_token(bos, size) ? (uint32_t)bos : UINT32_MAX;
    t->adds_bos = adds < 0 ? -1 : adds != 0;
    t->chat_template = chat.data ? dt_strndup(chat.data, chat.size) : NULL;
    dt_gguf_file_close(f);
    return rc;
}

int dt_text_tokens_read(struct dt_text_tokens *t, const char *path, uint32_t size,
                        struct dt_error *err)
{
    *t = (struct dt_text_tokens){.bos = UINT32_MAX, .adds_bos = -1};
    return (dt_gguf_file_is_named(path) ? read_gguf : read_directory)(t, path, size, err);
}

void dt_text_tokens_release(struct dt_text_tokens *t)
{
    free(t->chat_template);
    t->chat_template = NULL;
}

int dt_text_tokens_write(const struct dt_text_tokens *t, const char *directory,
                         struct dt_error *err)
{
    struct json_object *config = dt_json_new_object(), *ends = dt_json_new_array();
    for (int i = 0; i < t->end_count; i++)
        dt_json_array_add(ends, dt_json_new_int(t->ends[i]));
    dt_json_object_add(config, "_from_model_config", dt_json_new_boolean(false));
    if (t->bos != UINT32_MAX)
        dt_json_object_add(config, "bos_token_id", dt_json_new_int(t->bos));
    if (t->end_count > 0) {
        dt_json_object_add(config, "eos_token_id",
                           t->end_count > 1 ? json_object_get(ends) : dt_json_new_int(t->ends[0]));
        dt_json_object_add(config, "pad_token_id", dt_json_new_int(t->ends[0]));
    }
    char *path = dt_path_join(directory, DT_GENERATION_CONFIG_FILE);
    int rc = dt_json_write(path, config, err);
    free(path);
    json_object_put(ends);
    json_object_put(config);
    return rc;
}

int dt_chat_template_copy(const char *tokenizer, const char *directory, struct dt_error *err)
{
    struct dt_text_tokens t;
    size_t above = (size_t)(dt_path_base(tokenizer) - tokenizer);
    char *place = dt_gguf_file_is_named(tokenizer) ? dt_strdup(tokenizer)
                  : above                          ? dt_strndup(tokenizer, above)
                                                   : dt_strdup(".");
    char *path = dt_path_join(directory, DT_CHAT_TEMPLATE_FILE);
    int rc = dt_text_tokens_read(&t, place, UINT32_MAX, err);
    if (rc == 0 && t.chat_template)
        rc = dt_file_write(path, t.chat_template, strlen(t.chat_template), err);
    dt_text_tokens_release(&t);
    free(place);
    free(path);
    return rc;
}

int dt_text_tokens_add_inputs(const char *tokenizer, struct dt_lineage *lineage,
                              struct dt_error *err)
{
    static const char *const names[] = {DT_CONFIG_FILE, DT_GENERATION_CONFIG_FILE,
                                        DT_TOKENIZER_CONFIG_FILE, DT_SPECIAL_TOKENS_FILE,
                                        DT_CHAT_TEMPLATE_FILE};
    DT_TRY(dt_lineage_add_path(lineage, tokenizer, err));
    if (dt_gguf_file_is_named(tokenizer) || dt_file_is_directory(tokenizer))
        return 0;
    int above = (int)(dt_path_base(tokenizer) - tokenizer), rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof names / sizeof *names; i++) {
        char *path = dt_asprintf("%.*s%s", above, tokenizer, names[i]);
        rc = dt_file_probe(path, err);
        rc = rc > 0 ? dt_lineage_add_path(lineage, path, err) : rc;
        free(path);
    }
    return rc;
}
