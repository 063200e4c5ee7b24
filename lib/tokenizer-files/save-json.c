/* SPDX-License-Identifier: MIT */
/* Writes Hugging Face's tokenizer.json. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "pretokenize/byte-level.h"
#include "token/unigram.h"
#include "token/vocabulary.h"
#include "tokenizer-files/tokenizer-files.h"
#include "json/json.h"

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static void add_added_list(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    dt_buffer_add_string(b, "  \"added_tokens\": [");
    for (uint32_t i = 0; i < t->added_count; i++) {
        size_t size;
        const char *bytes = dt_tokenizer_bytes(t, t->added[i].id, &size);
        dt_buffer_printf(b, "%s\n    {\"id\": %u, \"content\": ", i ? "," : "", t->added[i].id);
        dt_json_add_string(b, bytes, size);
        dt_buffer_printf(b,
                         ", \"single_word\": %s, \"lstrip\": %s, \"rstrip\": %s, "
                         "\"normalized\": %s, \"special\": %s}",
                         truth(t->added[i].single_word), truth(t->added[i].strip_left),
                         truth(t->added[i].strip_right), truth(t->added[i].normalized),
                         truth(t->added[i].special));
    }
    dt_buffer_add_string(b, t->added_count ? "\n  ],\n" : "],\n");
}

/* A token as a JSON string: as_is, or in the byte-level alphabet. */
static void add_spelled(const struct dt_tokenizer *t, uint32_t id, bool as_is, struct dt_buffer *b)
{
    struct dt_buffer spelled = DT_BUFFER_EMPTY;
    size_t size;
    const char *bytes = dt_tokenizer_bytes(t, id, &size);
    if (as_is)
        dt_buffer_append(&spelled, bytes, size);
    else
        dt_byte_level_encode(bytes, size, &spelled);
    dt_json_add_string(b, spelled.data, spelled.size);
    dt_buffer_release(&spelled);
}

/* Whether byte-level text does not encode to the token, which is outside the alphabet. */
static bool is_unreachable(const struct dt_tokenizer *t, uint32_t id)
{
    size_t size;
    const char *bytes = dt_tokenizer_bytes(t, id, &size);
    return dt_tokenizer_find(t, bytes, size) != id;
}

/* Without the added tokens that the model does not have. */
static void add_vocabulary(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    bool *added = dt_alloc(t->size, sizeof *added), first = true;
    for (uint32_t i = 0; i < t->added_count; i++)
        added[t->added[i].id] = true;
    dt_buffer_add_string(b, "    \"vocab\": {");
    for (uint32_t id = 0; id < t->size; id++) {
        if (t->tokens[id].length == 0 || t->traits[id] & DT_TOKEN_APART)
            continue;
        dt_buffer_add_string(b, first ? "\n      " : ",\n      ");
        first = false;
        add_spelled(t, id, added[id] || !t->byte_level || is_unreachable(t, id), b);
        dt_buffer_printf(b, ": %u", id);
    }
    dt_buffer_add_string(b, "\n    }");
    free(added);
}

static void spell(const struct dt_tokenizer *t, const char *bytes, size_t size,
                  struct dt_buffer *spelled)
{
    if (t->byte_level)
        dt_byte_level_encode(bytes, size, spelled);
    else
        dt_buffer_append(spelled, bytes, size);
}

/* "left right", or ["left", "right"] where a token has a space. */
static void add_merge(const struct dt_buffer *left, const struct dt_buffer *right,
                      struct dt_buffer *b)
{
    bool pair = memchr(left->data, ' ', left->size) || memchr(right->data, ' ', right->size);
    struct dt_buffer line = DT_BUFFER_EMPTY;
    if (pair) {
        dt_buffer_add_char(b, '[');
        dt_json_add_string(b, left->data, left->size);
        dt_buffer_add_string(b, ", ");
        dt_json_add_string(b, right->data, right->size);
        dt_buffer_add_char(b, ']');
        return;
    }
    dt_buffer_append(&line, left->data, left->size);
    dt_buffer_add_char(&line, ' ');
    dt_buffer_append(&line, right->data, right->size);
    dt_json_add_string(b, line.data, line.size);
    dt_buffer_release(&line);
}

static void add_merge_list(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    struct dt_buffer left = DT_BUFFER_EMPTY, right = DT_BUFFER_EMPTY;
    dt_buffer_add_string(b, "    \"merges\": [");
    for (uint32_t i = 0; i < t->merge_count; i++) {
        size_t left_size, right_size;
        const char *left_bytes = dt_tokenizer_bytes(t, t->merges[i].left, &left_size);
        const char *right_bytes = dt_tokenizer_bytes(t, t->merges[i].right, &right_size);
        dt_buffer_clear(&left);
        dt_buffer_clear(&right);
        spell(t, left_bytes, left_size, &left);
        spell(t, right_bytes, right_size, &right);
        dt_buffer_add_string(b, i ? ",\n      " : "\n      ");
        add_merge(&left, &right, b);
    }
    dt_buffer_add_string(b, t->merge_count ? "\n    ]\n" : "]\n");
    dt_buffer_release(&left);
    dt_buffer_release(&right);
}

static void add_pattern(const struct dt_pattern *pattern, struct dt_buffer *b)
{
    bool built_in = strcmp(pattern->name, "gpt2") == 0;
    dt_buffer_add_string(b, "  \"pre_tokenizer\": ");
    if (!built_in) {
        dt_buffer_add_string(b, "{\"type\": \"Sequence\", \"pretokenizers\": [\n"
                                "    {\"type\": \"Split\", \"pattern\": {\"Regex\": ");
        dt_json_add_string(b, pattern->regex, strlen(pattern->regex));
        dt_buffer_add_string(b, "}, \"behavior\": \"Isolated\", \"invert\": false},\n    ");
    }
    dt_buffer_printf(b,
                     "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                     "\"trim_offsets\": true, \"use_regex\": %s}%s,\n",
                     built_in ? "true" : "false", built_in ? "" : "]}");
}

static void add_template_ids(const struct dt_tokenizer *t, const struct dt_ids *ids, bool whole,
                             const char *before, struct dt_buffer *b)
{
    for (size_t i = 0; i < ids->count; i++) {
        size_t size;
        const char *bytes = dt_tokenizer_bytes(t, ids->data[i], &size);
        dt_buffer_add_string(b, i ? ", " : before);
        if (whole)
            dt_json_add_string(b, bytes, size);
        dt_buffer_add_string(b, whole ? ": {\"id\": " : "{\"SpecialToken\": {\"id\": ");
        dt_json_add_string(b, bytes, size);
        if (whole) {
            dt_buffer_printf(b, ", \"ids\": [%u], \"tokens\": [", ids->data[i]);
            dt_json_add_string(b, bytes, size);
            dt_buffer_add_string(b, "]}");
        } else {
            dt_buffer_add_string(b, ", \"type_id\": 0}}");
        }
    }
}

/* TemplateProcessing for one text, and for a pair with the tokens after each text. */
static void add_post_processor(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    if (t->before.count + t->after.count == 0) {
        dt_buffer_add_string(b, "  \"post_processor\": null,\n");
        return;
    }
    dt_buffer_add_string(b, "  \"post_processor\": {\"type\": \"TemplateProcessing\"");
    for (int texts = 1; texts <= 2; texts++) {
        dt_buffer_printf(b, ",\n    \"%s\": [", texts == 1 ? "single" : "pair");
        add_template_ids(t, &t->before, false, "", b);
        dt_buffer_printf(b, "%s{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}",
                         t->before.count ? ", " : "");
        add_template_ids(t, &t->after, false, ", ", b);
        if (texts == 2) {
            dt_buffer_add_string(b, ", {\"Sequence\": {\"id\": \"B\", \"type_id\": 1}}");
            add_template_ids(t, &t->after, false, ", ", b);
        }
        dt_buffer_add_char(b, ']');
    }
    dt_buffer_add_string(b, ",\n    \"special_tokens\": {");
    add_template_ids(t, &t->before, true, "", b);
    add_template_ids(t, &t->after, true, t->before.count ? ", " : "", b);
    dt_buffer_add_string(b, "}},\n");
}

/* The normalizer and the pre-tokenizer. */
static void add_steps(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    if (t->pattern) {
        dt_buffer_printf(b, "  \"normalizer\": %s,\n", t->nfc ? "{\"type\": \"NFC\"}" : "null");
        add_pattern(t->pattern, b);
        return;
    }
    dt_buffer_add_string(b, "  \"normalizer\": ");
    dt_steps_write(&t->normalizer, DT_STEPS_NORMALIZER, b);
    dt_buffer_add_string(b, ",\n  \"pre_tokenizer\": ");
    dt_steps_write(&t->splitter, DT_STEPS_PRE_TOKENIZER, b);
    dt_buffer_add_string(b, ",\n");
}

static void add_decoder(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    dt_buffer_add_string(b, "  \"decoder\": ");
    if (t->decoder.count == 0 && t->byte_level)
        dt_buffer_add_string(b, "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                                "\"trim_offsets\": true, \"use_regex\": true}");
    else
        dt_steps_write(&t->decoder, DT_STEPS_DECODER, b);
    dt_buffer_add_string(b, ",\n");
}

static void add_optional_string(const char *name, const char *value, struct dt_buffer *b)
{
    dt_buffer_printf(b, "    \"%s\": ", name);
    if (value)
        dt_json_add_string(b, value, strlen(value));
    dt_buffer_add_string(b, value ? ",\n" : "null,\n");
}

static void add_unknown(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    size_t size;
    const char *unknown = dt_tokenizer_bytes(t, t->unknown, &size);
    dt_buffer_add_string(b, "    \"unk_token\": ");
    if (t->unknown == DT_NO_TOKEN)
        dt_buffer_add_string(b, "null");
    else
        dt_json_add_string(b, unknown, size);
    dt_buffer_add_string(b, ",\n");
}

static void add_bpe(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    add_steps(t, b);
    add_post_processor(t, b);
    add_decoder(t, b);
    dt_buffer_add_string(b, "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n");
    add_unknown(t, b);
    add_optional_string("continuing_subword_prefix", t->rules.prefix, b);
    add_optional_string("end_of_word_suffix", t->rules.suffix, b);
    dt_buffer_printf(b,
                     "    \"fuse_unk\": %s,\n    \"byte_fallback\": %s,\n"
                     "    \"ignore_merges\": %s,\n",
                     truth(t->rules.fuse_unknown), truth(t->rules.byte_fallback),
                     truth(t->ignore_merges));
    add_vocabulary(t, b);
    dt_buffer_add_string(b, ",\n");
    add_merge_list(t, b);
}

static void add_word_level(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    add_steps(t, b);
    add_post_processor(t, b);
    add_decoder(t, b);
    dt_buffer_add_string(b, "  \"model\": {\n    \"type\": \"WordLevel\",\n");
    add_unknown(t, b);
    add_vocabulary(t, b);
    dt_buffer_add_char(b, '\n');
}

static void add_unigram(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    const struct dt_unigram *u = t->unigram;
    add_steps(t, b);
    add_post_processor(t, b);
    add_decoder(t, b);
    dt_buffer_printf(b,
                     "  \"model\": {\n    \"type\": \"Unigram\",\n    \"unk_id\": %u,\n"
                     "    \"byte_fallback\": %s,\n    \"vocab\": [",
                     u->unknown, truth(u->byte_ids != NULL));
    for (uint32_t id = 0; id < u->size; id++) {
        size_t size;
        const char *bytes = dt_tokenizer_bytes(t, id, &size);
        dt_buffer_add_string(b, id ? ",\n      [" : "\n      [");
        dt_json_add_string(b, bytes, size);
        dt_buffer_add_string(b, ", ");
        dt_buffer_add_real(b, u->scores[id]);
        dt_buffer_add_char(b, ']');
    }
    dt_buffer_add_string(b, "\n    ]\n");
}

static void add_bert_rules(const struct dt_bert_rules *bert, struct dt_buffer *b)
{
    dt_buffer_printf(b,
                     "  \"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": %s, "
                     "\"handle_chinese_chars\": %s,\n    \"strip_accents\": %s, "
                     "\"lowercase\": %s},\n"
                     "  \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"},\n",
                     truth(bert->clean), truth(bert->isolate_cjk), truth(bert->strip_accents),
                     truth(bert->lower));
}

static void add_word_piece(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    bool bert = dt_vocabulary_is_bert(t);
    if (bert)
        add_bert_rules(&t->bert, b);
    else
        add_steps(t, b);
    add_post_processor(t, b);
    if (bert)
        dt_buffer_add_string(b, "  \"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"##\", "
                                "\"cleanup\": true},\n");
    else
        add_decoder(t, b);
    dt_buffer_add_string(b, "  \"model\": {\n    \"type\": \"WordPiece\",\n");
    add_unknown(t, b);
    dt_buffer_printf(b,
                     "    \"continuing_subword_prefix\": \"##\",\n"
                     "    \"max_input_chars_per_word\": %u,\n",
                     t->max_word_chars);
    add_vocabulary(t, b);
    dt_buffer_add_char(b, '\n');
}

int dt_tokenizer_save(const struct dt_tokenizer *t, const char *path, struct dt_error *err)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    void (*add_model)(const struct dt_tokenizer *, struct dt_buffer *) = NULL;
    switch (t->model) {
    case DT_TOKEN_BPE_MERGES:
        add_model = add_bpe;
        break;
    case DT_TOKEN_BPE_RANKS:
        return dt_fail(err, DT_EINVALID,
                       "%s: tokenizer.json cannot represent merges by rank: save it in its own "
                       "format",
                       path);
    case DT_TOKEN_UNIGRAM:
        if (t->unigram->rounds_to_float)
            return dt_fail(
                err, DT_EINVALID,
                "%s: tokenizer.json cannot represent a SentencePiece model exactly: keep "
                "its own file",
                path);
        add_model = add_unigram;
        break;
    case DT_TOKEN_WORD_PIECE:
        add_model = add_word_piece;
        break;
    case DT_TOKEN_WORD_LEVEL:
        add_model = add_word_level;
        break;
    }
    dt_buffer_add_string(&b, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n"
                             "  \"padding\": null,\n");
    add_added_list(t, &b);
    add_model(t, &b);
    dt_buffer_add_string(&b, "  }\n}\n");
    int rc = dt_file_write(path, b.data, b.size, err);
    dt_buffer_release(&b);
    return rc;
}
