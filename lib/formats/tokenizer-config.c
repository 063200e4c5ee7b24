/* SPDX-License-Identifier: MIT */
/* tokenizer_config.json: how readers use tokenizer.json. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "formats/model-directory.h"
#include "gguf/gguf-tokenizer.h"
#include "json/json.h"

#define MOST_TOKENIZER ((size_t)1 << 30)

/* Purposes of special tokens, by their usual spellings. */
static const char *const purposes[][4] = {
    {"mask_token", "[MASK]", "<mask>", "<|mask|>"}, {"pad_token", "[PAD]", "<pad>", "<|pad|>"},
    {"unk_token", "[UNK]", "<unk>", "<|unk|>"},     {"cls_token", "[CLS]", "<cls>", "<|cls|>"},
    {"sep_token", "[SEP]", "<sep>", "<|sep|>"},
};

static void add_special(struct json_object *config, const char *content, bool begins, bool ends)
{
    for (size_t i = 0; i < sizeof purposes / sizeof *purposes; i++)
        for (int j = 1; j < 4; j++)
            if (strcmp(content, purposes[i][j]) == 0)
                dt_json_object_add(config, purposes[i][0], dt_json_new_string(content));
    if (begins)
        dt_json_object_add(config, "bos_token", dt_json_new_string(content));
    if (ends)
        dt_json_object_add(config, "eos_token", dt_json_new_string(content));
}

/* A tokenizer without added tokens does not have special ones. */
static void add_specials(struct json_object *config, struct json_object *tokenizer, uint32_t bos,
                         uint32_t eos)
{
    struct json_object *added = NULL, *content, *id;
    json_object_object_get_ex(tokenizer, "added_tokens", &added);
    if (!json_object_is_type(added, json_type_array))
        return;
    for (size_t i = 0; i < json_object_array_length(added); i++) {
        struct json_object *token = json_object_array_get_idx(added, i);
        if (json_object_object_get_ex(token, "content", &content) &&
            json_object_object_get_ex(token, "id", &id))
            add_special(config, dt_json_text(content), json_object_get_int64(id) == bos,
                        json_object_get_int64(id) == eos);
    }
}

/* Without token_type_ids: readers would pass zeros, for which GPT-2 adds the embedding of token 0.
 */
static void add_inputs(struct json_object *config)
{
    struct json_object *names = dt_json_new_array();
    dt_json_array_add(names, dt_json_new_string("input_ids"));
    dt_json_array_add(names, dt_json_new_string("attention_mask"));
    dt_json_object_add(config, "model_input_names", names);
}

int dt_model_find_tokenizer(const char *path, char **tokenizer, struct dt_error *err)
{
    struct dt_gguf_file *file;
    *tokenizer = NULL;
    if (dt_gguf_file_is_named(path)) {
        DT_TRY(dt_gguf_file_open(&file, path, err));
        *tokenizer = dt_gguf_has_tokenizer(file) ? dt_strdup(path) : NULL;
        dt_gguf_file_close(file);
        return 0;
    }
    char *theirs = dt_path_join(path, DT_TOKENIZER_FILE);
    int there = dt_file_probe(theirs, err);
    if (there > 0)
        *tokenizer = theirs;
    else
        free(theirs);
    return there < 0 ? there : 0;
}

int dt_tokenizer_need_json(const char *path, struct dt_error *err)
{
    struct json_object *tokenizer = NULL;
    struct dt_error none;
    bool is_json =
        dt_gguf_file_is_named(path) ||
        (dt_json_read(path, &tokenizer, &none) == 0 &&
         json_object_is_type(json_object_object_get(tokenizer, "model"), json_type_object));
    json_object_put(tokenizer);
    if (is_json)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "%s: is not a tokenizer.json, which models have: save_pretrained() of "
                   "transformers' AutoTokenizer writes one",
                   path);
}

int dt_tokenizer_copy(const char *from, const char *to, struct dt_error *err)
{
    struct json_object *tokenizer;
    char *data;
    size_t size;
    if (dt_gguf_file_is_named(from)) {
        DT_TRY(dt_gguf_tokenizer_load(from, &tokenizer, err));
        int rc = dt_json_write(to, tokenizer, err);
        json_object_put(tokenizer);
        return rc;
    }
    DT_TRY(dt_file_read(from, MOST_TOKENIZER, &data, &size, err));
    int rc = dt_file_write(to, data, size, err);
    free(data);
    return rc;
}

int dt_tokenizer_config_write(const char *directory, uint32_t bos, uint32_t eos, long max_length,
                              struct dt_error *err)
{
    struct json_object *tokenizer = NULL, *config = dt_json_new_object();
    char *source = dt_path_join(directory, DT_TOKENIZER_FILE);
    char *path = dt_path_join(directory, DT_TOKENIZER_CONFIG_FILE);
    int rc = dt_json_read(source, &tokenizer, err);
    if (rc == 0) {
        /* Otherwise readers use the default tokenizer of the model's family. */
        dt_json_object_add(config, "tokenizer_class",
                           dt_json_new_string("PreTrainedTokenizerFast"));
        dt_json_object_add(config, "model_max_length", dt_json_new_int(max_length));
        add_inputs(config);
        add_specials(config, tokenizer, bos, eos);
        rc = dt_json_write(path, config, err);
    }
    json_object_put(tokenizer);
    json_object_put(config);
    free(source);
    free(path);
    return rc;
}
