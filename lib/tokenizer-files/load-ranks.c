/* SPDX-License-Identifier: MIT */
/* Vocabularies of ranked tokens without a list of merges: lines of "base64 rank" (tiktoken),
 * and tekken.json (Mistral). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "encoding/base64.h"
#include "hash/hash.h"
#include "tokenizer-files/tokenizer-file.h"
#include "json/json.h"

static struct dt_added_token special_token(uint32_t id)
{
    return (struct dt_added_token){.id = id, .special = true};
}

static int add_special(struct dt_tokenizer *t, uint32_t id, const char *text, struct dt_error *err)
{
    DT_TRY(dt_tokenizer_add_distinct(t, id, text, strlen(text), err));
    dt_tokenizer_mark_added(t, special_token(id));
    return 0;
}

/* --- tiktoken --------------------------------------------------------------------------------- */

/* Published vocabularies, identified by the hash of all tokens, with the pattern and special
 * tokens that their files omit. In special, a number is the id of the next token; other tokens
 * have consecutive ids; "x3..5y" expands to x3y, x4y and x5y. */
static const struct {
    uint64_t hash;
    const char *pattern;
    bool nfc;
    const char *special;
} published[] = {
    /* r50k_base (GPT-2), p50k_base, cl100k_base, o200k_base, Qwen to Qwen 3 */
    {0x244c4ccba753ded4, "gpt2", false, "50256 <|endoftext|>"},
    {0x7769138b88df9a6a, "gpt2", false, "50256 <|endoftext|>"},
    {0x61b81323db3e0c9c, "cl100k", false,
     "100257 <|endoftext|> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> 100276 <|endofprompt|>"},
    {0x3c1132c7577ec170, "o200k", false, "199999 <|endoftext|> 200018 <|endofprompt|>"},
    {0x20b0f06d50d1dcff, "qwen", true, "151643 <|endoftext|> <|im_start|> <|im_end|>"},
    /* Whisper, multilingual; the ids after the languages depend on the model: 99 or 100 languages
     */
    {0x44cd10f832bc9311, "gpt2", false,
     "50257 <|endoftext|> <|startoftranscript|> "
     "<|en|> <|zh|> <|de|> <|es|> <|ru|> <|ko|> <|fr|> <|ja|> <|pt|> <|tr|> <|pl|> <|ca|> "
     "<|nl|> <|ar|> <|sv|> <|it|> <|id|> <|hi|> <|fi|> <|vi|> <|he|> <|uk|> <|el|> <|ms|> "
     "<|cs|> <|ro|> <|da|> <|hu|> <|ta|> <|no|> <|th|> <|ur|> <|hr|> <|bg|> <|lt|> <|la|> "
     "<|mi|> <|ml|> <|cy|> <|sk|> <|te|> <|fa|> <|lv|> <|bn|> <|sr|> <|az|> <|sl|> <|kn|> "
     "<|et|> <|mk|> <|br|> <|eu|> <|is|> <|hy|> <|ne|> <|mn|> <|bs|> <|kk|> <|sq|> <|sw|> "
     "<|gl|> <|mr|> <|pa|> <|si|> <|km|> <|sn|> <|yo|> <|so|> <|af|> <|oc|> <|ka|> <|be|> "
     "<|tg|> <|sd|> <|gu|> <|am|> <|yi|> <|lo|> <|uz|> <|fo|> <|ht|> <|ps|> <|tk|> <|nn|> "
     "<|mt|> <|sa|> <|lb|> <|my|> <|bo|> <|tl|> <|mg|> <|as|> <|tt|> <|haw|> <|ln|> <|ha|> "
     "<|ba|> <|jw|> <|su|>"},
    /* Llama 3 and 4, with the names of llama-models 0.3.0 */
    {0xe5b946be42aae656, "llama3", false,
     "128000 <|begin_of_text|> <|end_of_text|> <|reserved_special_token_0..1|> "
     "<|finetune_right_pad_id|> <|step_id|> <|start_header_id|> <|end_header_id|> <|eom_id|> "
     "<|eot_id|> <|python_tag|> <|image|> <|reserved_special_token_2..245|>"},
    {0xb4cba8b95841c95d, "o200k", false,
     "200000 <|begin_of_text|> <|end_of_text|> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> "
     "<|header_start|> <|header_end|> <|eom|> <|eot|> <|step|> "
     "<|text_post_train_reserved_special_token_0..5|> <|python_start|> <|python_end|> "
     "<|finetune_right_pad|> <|text_post_train_reserved_special_token_8..68|> "
     "<|image_start|> <|image_end|> <|vision_reserved_special_token_0..1|> <|tile_x_separator|> "
     "<|tile_y_separator|> <|vision_reserved_special_token_2..5|> <|image|> "
     "<|vision_reserved_special_token_6|> <|patch|> "
     "<|vision_reserved_special_token_7..1047|> <|reasoning_reserved_special_token_0..7|> "
     "<|reasoning_thinking_start|> <|reasoning_thinking_end|> <|reserved_special_token_0..903|>"},
};

/* Adds the tokens of one word of published[].special, with ids from *id on. */
static int add_published_word(struct dt_tokenizer *t, const char *word, uint32_t *id,
                              struct dt_error *err)
{
    const char *dots = strstr(word, ".."), *digits = dots;
    if (dots == NULL)
        return add_special(t, (*id)++, word, err);
    while (digits > word && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    char *rest;
    unsigned long first = strtoul(digits, NULL, 10), last = strtoul(dots + 2, &rest, 10);
    int rc = 0;
    for (unsigned long n = first; rc == 0 && n <= last; n++) {
        char *text = dt_asprintf("%.*s%lu%s", (int)(digits - word), word, n, rest);
        rc = add_special(t, (*id)++, text, err);
        free(text);
    }
    return rc;
}

static int add_published_special(struct dt_tokenizer *t, const char *special, struct dt_error *err)
{
    uint32_t id = 0;
    for (; *special; special += *special == ' ') {
        size_t length = strcspn(special, " ");
        char *word = dt_strndup(special, length);
        int rc = 0;
        if (*word >= '0' && *word <= '9')
            id = (uint32_t)strtoul(word, NULL, 10);
        else
            rc = add_published_word(t, word, &id, err);
        free(word);
        DT_TRY(rc);
        special += length;
    }
    return 0;
}

static int find_published(const struct dt_tokenizer *t)
{
    uint64_t hash = dt_hash(t->bytes.data, t->bytes.size);
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        if (published[i].hash == hash)
            return (int)i;
    return -1;
}

static int add_ranked_line(struct dt_tokenizer *t, const char *line, const char *end,
                           struct dt_buffer *bytes, struct dt_error *err)
{
    const char *blank = memchr(line, ' ', (size_t)(end - line));
    uint64_t rank = 0;
    if (end - line > 2 && memcmp(line, "= ", 2) == 0)
        return 0; /* Whisper's last token is empty */
    if (blank == NULL || blank + 1 == end || end - blank > 11 ||
        !dt_base64_decode(line, (size_t)(blank - line), bytes))
        return dt_fail(err, DT_EFORMAT, "expected 'BASE64 RANK'");
    for (const char *p = blank + 1; p < end; p++) {
        if (*p < '0' || *p > '9')
            return dt_fail(err, DT_EFORMAT, "expected 'BASE64 RANK'");
        rank = 10 * rank + (uint64_t)(*p - '0');
    }
    return dt_tokenizer_add_distinct(t, rank, bytes->data, bytes->size, err);
}

static int add_ranked_lines(struct dt_tokenizer *t, const char *text, size_t size, const char *path,
                            struct dt_error *err)
{
    struct dt_buffer bytes = DT_BUFFER_EMPTY;
    int rc = 0, number = 0;
    for (const char *line = text, *next; rc == 0 && line < text + size; line = next) {
        const char *end = memchr(line, '\n', (size_t)(text + size - line));
        end = end ? end : text + size;
        next = end + 1;
        number++;
        end -= end > line && end[-1] == '\r';
        if (end > line)
            rc = add_ranked_line(t, line, end, &bytes, err);
        if (rc < 0)
            dt_fail_context(err, "%s:%d", path, number);
    }
    dt_buffer_release(&bytes);
    return rc;
}

static int complete_tiktoken(struct dt_tokenizer *t, const struct dt_pattern *pattern,
                             struct dt_error *err)
{
    int known = find_published(t);
    if (known >= 0) {
        t->pattern = dt_pattern_find(published[known].pattern);
        t->nfc = published[known].nfc;
    }
    if (pattern)
        t->pattern = pattern;
    if (t->pattern == NULL)
        return dt_fail(err, DT_EFORMAT,
                       "does not define a pre-tokenizer pattern, and is not a known "
                       "vocabulary: choose a pattern with --pattern");
    if (known >= 0)
        DT_TRY(add_published_special(t, published[known].special, err));
    return dt_tokenizer_finish(t, err);
}

int dt_tokenizer_load_tiktoken(struct dt_tokenizer **t, const char *path,
                               const struct dt_pattern *pattern, struct dt_error *err)
{
    char *text;
    size_t size;
    DT_TRY(dt_file_read(path, DT_TOKENIZER_LIMIT, &text, &size, err));
    *t = dt_tokenizer_new(NULL);
    (*t)->model = DT_TOKEN_BPE_RANKS;
    (*t)->ignore_merges = true;
    int rc = add_ranked_lines(*t, text, size, path, err);
    free(text);
    DT_TRY(rc);
    return complete_tiktoken(*t, pattern, err) < 0 ? dt_fail_context(err, "%s", path) : 0;
}

/* --- tekken.json ------------------------------------------------------------------------------ */

/* The default special tokens, for files without a list. */
static const char *const first_specials[] = {"<unk>",
                                             "<s>",
                                             "</s>",
                                             "[INST]",
                                             "[/INST]",
                                             "[AVAILABLE_TOOLS]",
                                             "[/AVAILABLE_TOOLS]",
                                             "[TOOL_RESULTS]",
                                             "[/TOOL_RESULTS]",
                                             "[TOOL_CALLS]",
                                             "[IMG]",
                                             "<pad>",
                                             "[IMG_BREAK]",
                                             "[IMG_END]",
                                             "[PREFIX]",
                                             "[MIDDLE]",
                                             "[SUFFIX]",
                                             "[SYSTEM_PROMPT]",
                                             "[/SYSTEM_PROMPT]",
                                             "[TOOL_CONTENT]"};
#define FIRST_SPECIALS (sizeof first_specials / sizeof *first_specials)

static int add_listed_special(struct dt_tokenizer *t, struct json_object *token, int64_t most,
                              const char *location, struct dt_error *err)
{
    const char *text;
    int64_t rank;
    DT_TRY(dt_json_get_string(token, "token_str", location, &text, err));
    DT_TRY(dt_json_get_int(token, "rank", location, &rank, err));
    if (rank < 0 || rank >= most)
        return dt_fail(err, DT_EFORMAT, "%s: rank %lld is not below %lld", location,
                       (long long)rank, (long long)most);
    return add_special(t, (uint32_t)rank, text, err) < 0 ? dt_fail_context(err, "%s", location) : 0;
}

/* Ids 0 .. count-1 are special; those that the file does not name are <SPECIAL_id>. */
static int add_specials(struct dt_tokenizer *t, struct json_object *list, int64_t count,
                        const char *path, struct dt_error *err)
{
    char text[DT_ERROR_TEXT];
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        snprintf(text, sizeof text, "%s: special token %zu", path, i + 1);
        DT_TRY(add_listed_special(t, json_object_array_get_idx(list, i), count, text, err));
    }
    for (uint32_t id = 0; id < count; id++) {
        if (id < t->size && t->tokens[id].length > 0)
            continue;
        snprintf(text, sizeof text, "<SPECIAL_%u>", id);
        bool named = list == NULL && id < FIRST_SPECIALS;
        if (add_special(t, id, named ? first_specials[id] : text, err) < 0)
            return dt_fail_context(err, "%s", path);
    }
    return 0;
}

static int add_ranked(struct dt_tokenizer *t, struct json_object *token, int64_t specials,
                      int64_t size, struct dt_buffer *bytes, const char *location,
                      struct dt_error *err)
{
    const char *base64;
    int64_t rank;
    DT_TRY(dt_json_get_string(token, "token_bytes", location, &base64, err));
    DT_TRY(dt_json_get_int(token, "rank", location, &rank, err));
    if (rank < 0 || !dt_base64_decode(base64, strlen(base64), bytes))
        return dt_fail(err, DT_EFORMAT, "%s: expected a \"rank\" from 0 and Base64 \"token_bytes\"",
                       location);
    if (rank >= size - specials)
        return 0; /* outside default_vocab_size */
    if (dt_tokenizer_add_distinct(t, (uint64_t)(rank + specials), bytes->data, bytes->size, err) <
        0)
        return dt_fail_context(err, "%s", location);
    return 0;
}

static int add_ranked_list(struct dt_tokenizer *t, struct json_object *list, int64_t specials,
                           int64_t size, const char *path, struct dt_error *err)
{
    struct dt_buffer bytes = DT_BUFFER_EMPTY;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_object_array_length(list); i++) {
        char location[DT_ERROR_TEXT];
        snprintf(location, sizeof location, "%s: token %zu", path, i + 1);
        rc = add_ranked(t, json_object_array_get_idx(list, i), specials, size, &bytes, location,
                        err);
    }
    dt_buffer_release(&bytes);
    return rc;
}

static int find_tekken_pattern(struct dt_tokenizer *t, struct json_object *config,
                               const struct dt_pattern *pattern, const char *path,
                               struct dt_error *err)
{
    const char *regex;
    DT_TRY(dt_json_get_string(config, "pattern", path, &regex, err));
    t->pattern = pattern ? pattern : dt_pattern_find_regex(regex);
    return t->pattern ? 0
                      : dt_fail(err, DT_EFORMAT, "%s: the pattern %s is not known", path, regex);
}

int dt_tokenizer_fill_from_tekken(struct dt_tokenizer *t, struct json_object *root,
                                  const struct dt_pattern *pattern, const char *path,
                                  struct dt_error *err)
{
    struct json_object *config, *list = json_object_object_get(root, "special_tokens");
    struct json_object *vocabulary = json_object_object_get(root, "vocab"); /* an array */
    int64_t specials, size;
    DT_TRY(dt_json_get(root, "config", json_type_object, path, &config, err));
    DT_TRY(dt_json_get_int(config, "default_num_special_tokens", path, &specials, err));
    DT_TRY(dt_json_get_int(config, "default_vocab_size", path, &size, err));
    if (specials < 0 || size < specials || size > 1 << 22)
        return dt_fail(err, DT_EFORMAT,
                       "%s: \"default_vocab_size\" %lld and \"default_num_special_tokens\" %lld "
                       "contradict each other",
                       path, (long long)size, (long long)specials);
    if (list && !json_object_is_type(list, json_type_array))
        return dt_fail(err, DT_EFORMAT, "%s: member \"special_tokens\" is not an array", path);
    DT_TRY(find_tekken_pattern(t, config, pattern, path, err));
    t->model = DT_TOKEN_BPE_RANKS;
    t->ignore_merges = true;
    DT_TRY(add_specials(t, list, specials, path, err));
    DT_TRY(add_ranked_list(t, vocabulary, specials, size, path, err));
    if (dt_tokenizer_finish(t, err) < 0)
        return dt_fail_context(err, "%s", path);
    if (t->bos != DT_NO_TOKEN)
        dt_ids_add(&t->before, t->bos);
    return 0;
}
