/* SPDX-License-Identifier: MIT */
/* Writing of Hugging Face's tokenizer.json. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "token/byte-level.h"
#include "token/vocabulary.h"

static void add_added_list(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    dt_buffer_add_string(b, "  \"added_tokens\": [");
    for (uint32_t i = 0; i < t->added_count; i++) {
        size_t size;
        const char *bytes = dt_tokenizer_bytes(t, t->added[i].id, &size);
        dt_buffer_printf(b, "%s\n    {\"id\": %u, \"content\": ", i ? "," : "", t->added[i].id);
        dt_json_add_string(b, bytes, size);
        dt_buffer_printf(b,
                         ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                         "\"normalized\": false, \"special\": %s}",
                         t->added[i].special ? "true" : "false");
    }
    dt_buffer_add_string(b, t->added_count ? "\n  ],\n" : "],\n");
}

/* A token as vocabularies spell it: added ones as they are. */
static void add_spelled(const struct dt_tokenizer *t, uint32_t id, bool as_is, struct dt_buffer *b)
{
    struct dt_buffer spelled = DT_BUFFER_EMPTY;
    size_t size;
    const char *bytes = dt_tokenizer_bytes(t, id, &size);
    if (as_is)
        dt_buffer_append(&spelled, bytes, size);
    else
        dt_byte_level_spell(bytes, size, &spelled);
    dt_json_add_string(b, spelled.data, spelled.size);
    dt_buffer_release(&spelled);
}

static void add_vocabulary(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    bool *added = dt_alloc(t->size, sizeof *added), first = true;
    for (uint32_t i = 0; i < t->added_count; i++)
        added[t->added[i].id] = true;
    dt_buffer_add_string(b, "    \"vocab\": {");
    for (uint32_t id = 0; id < t->size; id++) {
        if (t->tokens[id].length == 0)
            continue;
        dt_buffer_add_string(b, first ? "\n      " : ",\n      ");
        first = false;
        add_spelled(t, id, added[id], b);
        dt_buffer_printf(b, ": %u", id);
    }
    dt_buffer_add_string(b, "\n    },\n");
    free(added);
}

static void add_merge_list(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    struct dt_buffer merge = DT_BUFFER_EMPTY;
    dt_buffer_add_string(b, "    \"merges\": [");
    for (uint32_t i = 0; i < t->merge_count; i++) {
        size_t left_size, right_size;
        const char *left = dt_tokenizer_bytes(t, t->merges[i].left, &left_size);
        const char *right = dt_tokenizer_bytes(t, t->merges[i].right, &right_size);
        dt_buffer_clear(&merge);
        dt_byte_level_spell(left, left_size, &merge);
        dt_buffer_add_char(&merge, ' ');
        dt_byte_level_spell(right, right_size, &merge);
        dt_buffer_add_string(b, i ? ",\n      " : "\n      ");
        dt_json_add_string(b, merge.data, merge.size);
    }
    dt_buffer_add_string(b, t->merge_count ? "\n    ]\n" : "]\n");
    dt_buffer_release(&merge);
}

static void add_pre_tokenizer(const struct dt_pattern *pattern, struct dt_buffer *b)
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

int dt_tokenizer_save(const struct dt_tokenizer *t, const char *path, struct dt_error *err)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&b, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n"
                             "  \"padding\": null,\n");
    add_added_list(t, &b);
    dt_buffer_add_string(&b, "  \"normalizer\": null,\n");
    add_pre_tokenizer(t->pattern, &b);
    dt_buffer_add_string(&b, "  \"post_processor\": null,\n"
                             "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                             "\"trim_offsets\": true, \"use_regex\": true},\n"
                             "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n"
                             "    \"unk_token\": null,\n    \"continuing_subword_prefix\": null,\n"
                             "    \"end_of_word_suffix\": null,\n    \"fuse_unk\": false,\n"
                             "    \"byte_fallback\": false,\n    \"ignore_merges\": false,\n");
    add_vocabulary(t, &b);
    add_merge_list(t, &b);
    dt_buffer_add_string(&b, "  }\n}\n");
    int rc = dt_file_write(path, b.data, b.size, err);
    dt_buffer_release(&b);
    return rc;
}
