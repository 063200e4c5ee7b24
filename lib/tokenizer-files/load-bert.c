/* SPDX-License-Identifier: MIT */
/* BERT's vocab.txt: a token per line, ids from 0. */
#include "json/json.h"
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tokenizer-files/tokenizer-file.h"

static const char *const special_names[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

struct dt_tokenizer *dt_tokenizer_new_word_piece(bool lower)
{
    struct dt_tokenizer *t = dt_tokenizer_new(NULL);
    t->model = DT_TOKEN_WORD_PIECE;
    t->byte_level = false;
    t->max_word_chars = 100;
    t->bert = (struct dt_bert_rules){
        .clean = true, .isolate_cjk = true, .strip_accents = lower, .lower = lower};
    return t;
}

static bool has_capital(const char *token, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (token[i] >= 'A' && token[i] <= 'Z')
            return true;
    return false;
}

static int add_lines(struct dt_tokenizer *t, const char *text, size_t size, bool *capitals,
                     struct dt_error *err)
{
    uint32_t id = 0;
    *capitals = false;
    for (const char *line = text, *next; line < text + size; line = next) {
        const char *end = memchr(line, '\n', (size_t)(text + size - line));
        end = end ? end : text + size;
        next = end + 1;
        end -= end > line && end[-1] == '\r';
        DT_TRY(dt_tokenizer_add_distinct(t, id++, line, (size_t)(end - line), err));
        *capitals |= line[0] != '[' && has_capital(line, (size_t)(end - line));
    }
    return 0;
}

static int mark_specials(struct dt_tokenizer *t, struct dt_error *err)
{
    for (size_t i = 0; i < sizeof special_names / sizeof *special_names; i++) {
        uint32_t id = dt_tokenizer_find(t, special_names[i], strlen(special_names[i]));
        if (id != DT_NO_TOKEN)
            dt_tokenizer_mark_added(t, (struct dt_added_token){.id = id, .special = true});
    }
    t->unknown = dt_tokenizer_find(t, "[UNK]", 5);
    uint32_t cls = dt_tokenizer_find(t, "[CLS]", 5), sep = dt_tokenizer_find(t, "[SEP]", 5);
    if (t->unknown == DT_NO_TOKEN || cls == DT_NO_TOKEN || sep == DT_NO_TOKEN)
        return dt_fail(err, DT_EFORMAT, "does not contain the token %s, which WordPiece needs",
                       t->unknown == DT_NO_TOKEN ? "[UNK]"
                       : cls == DT_NO_TOKEN      ? "[CLS]"
                                                 : "[SEP]");
    dt_ids_add(&t->before, cls);
    dt_ids_add(&t->after, sep);
    return 0;
}

/* tokenizer_config.json in the same directory overrides what the tokens suggest. */
static int read_config(const char *path, struct dt_tokenizer *t, struct dt_error *err)
{
    static const char *const flags[] = {"do_lower_case", "strip_accents", "tokenize_chinese_chars",
                                        NULL};
    const char *slash = strrchr(path, '/');
    char *beside =
        dt_asprintf("%.*stokenizer_config.json", slash ? (int)(slash + 1 - path) : 0, path);
    struct json_object *root = NULL, *value;
    int rc = dt_file_probe(beside, err);
    if (rc > 0)
        rc = dt_json_read(beside, &root, err);
    if (rc == 0 && root)
        rc = dt_json_check_flags(root, flags, beside, err);
    free(beside);
    if (rc < 0) {
        json_object_put(root);
        return rc;
    }
    if (json_object_object_get_ex(root, "do_lower_case", &value))
        t->bert.lower = t->bert.strip_accents = json_object_get_boolean(value);
    if (json_object_object_get_ex(root, "strip_accents", &value) && value)
        t->bert.strip_accents = json_object_get_boolean(value);
    if (json_object_object_get_ex(root, "tokenize_chinese_chars", &value))
        t->bert.isolate_cjk = json_object_get_boolean(value);
    json_object_put(root);
    return 0;
}

int dt_tokenizer_load_bert(struct dt_tokenizer **t, const char *path,
                           const struct dt_pattern *pattern, struct dt_error *err)
{
    char *text;
    size_t size;
    bool capitals;
    if (pattern)
        return dt_fail(err, DT_EINVALID,
                       "%s: a WordPiece vocabulary takes no pattern: remove --pattern", path);
    DT_TRY(dt_file_read(path, DT_TOKENIZER_LIMIT, &text, &size, err));
    *t = dt_tokenizer_new_word_piece(true);
    int rc = add_lines(*t, text, size, &capitals, err);
    free(text);
    if (rc == 0)
        rc = mark_specials(*t, err);
    (*t)->bert.lower = (*t)->bert.strip_accents = !capitals;
    if (rc == 0)
        rc = read_config(path, *t, err);
    if (rc == 0)
        rc = dt_tokenizer_finish(*t, err);
    return rc < 0 ? dt_fail_context(err, "%s", path) : 0;
}
