/* SPDX-License-Identifier: MIT */
#include "prefer/prompts.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "hash/hash.h"
#include "io/input.h"

/* Shared by the lines of a file. */
struct reader {
    struct dt_prompts *prompts;
    const struct dt_chat *chat;
    struct dt_encoder *encoder;
    struct dt_buffer text;
    long most;
};

static int take_line(struct reader *r, const struct dt_buffer *line, const char *place,
                     struct dt_error *err)
{
    struct dt_conversation c;
    struct dt_prompt prompt = {.ids = DT_IDS_EMPTY};
    int rc = dt_conversation_parse_answer(&c, line->data, line->size, place, NULL, err);
    dt_buffer_clear(&r->text);
    rc = rc < 0 ? rc : dt_chat_prompt(r->chat, &c, &r->text, err);
    if (rc == 0)
        dt_encoder_encode(r->encoder, r->text.data, r->text.size, &prompt.ids);
    if (rc == 0 && prompt.ids.count == 0)
        rc = dt_fail(err, DT_EFORMAT, "%s: the prompt is empty", place);
    if (rc == 0 && (long)prompt.ids.count > r->most)
        rc = dt_fail(err, DT_EINVALID,
                     "%s: the prompt has %zu tokens, and training.sequence_length + 1 less "
                     "grpo.max_new_tokens is %ld",
                     place, prompt.ids.count, r->most);
    if (rc < 0) {
        dt_ids_release(&prompt.ids);
    } else {
        prompt.record = json_object_get(c.record);
        DT_GROW(r->prompts->items, r->prompts->count, r->prompts->capacity);
        r->prompts->items[r->prompts->count++] = prompt;
    }
    dt_conversation_release(&c);
    return rc;
}

static int read_lines(struct reader *r, struct dt_input *in, struct dt_error *err)
{
    struct dt_buffer line = DT_BUFFER_EMPTY;
    bool found = true;
    int rc = 0;
    for (uint64_t number = 1; rc == 0 && found; number++) {
        rc = dt_input_read_until(in, '\n', &line, &found, err);
        if (rc < 0 || line.size == 0 || strspn(line.data, " \t\r\n") == line.size)
            continue;
        r->prompts->hash = dt_hash_seeded(line.data, line.size, r->prompts->hash);
        char *place = dt_asprintf("%s:%llu", dt_input_name(in), (unsigned long long)number);
        rc = take_line(r, &line, place, err);
        free(place);
    }
    if (rc == 0 && r->prompts->count == 0)
        rc = dt_fail(err, DT_EFORMAT, "%s: has no prompts", dt_input_name(in));
    dt_buffer_release(&line);
    return rc;
}

int dt_prompts_read(struct dt_prompts *prompts, const char *path, const struct dt_chat *chat,
                    const struct dt_tokenizer *tokenizer, long most, struct dt_error *err)
{
    struct dt_input *in;
    struct reader r = {.prompts = prompts, .chat = chat, .most = most};
    *prompts = (struct dt_prompts){.items = NULL};
    DT_TRY(dt_input_open(&in, path, err));
    r.encoder = dt_encoder_new(tokenizer);
    dt_encoder_allow_special(r.encoder, true);
    int rc = read_lines(&r, in, err);
    dt_encoder_free(r.encoder);
    dt_buffer_release(&r.text);
    dt_input_close(in);
    return rc;
}

void dt_prompts_release(struct dt_prompts *p)
{
    for (size_t i = 0; i < p->count; i++) {
        dt_ids_release(&p->items[i].ids);
        json_object_put(p->items[i].record);
    }
    free(p->items);
    *p = (struct dt_prompts){.items = NULL};
}

static int read_number(void *state, uint64_t k, uint32_t *ids, struct dt_error *err)
{
    const uint32_t *length = state;
    (void)err;
    memset(ids, 0, ((size_t)*length + 1) * sizeof *ids);
    ids[0] = (uint32_t)k;
    return 0;
}

static int clone_length(void **copy, const void *state, struct dt_error *err)
{
    uint32_t *length = dt_alloc(1, sizeof *length);
    (void)err;
    *length = *(const uint32_t *)state;
    *copy = length;
    return 0;
}

struct dt_dataset *dt_prompts_dataset(const struct dt_prompts *prompts,
                                      const struct dt_shard_info *info, uint32_t length,
                                      uint64_t tokens)
{
    uint32_t *state = dt_alloc(1, sizeof *state);
    struct dt_sample_source source = {.info = *info,
                                      .length = length,
                                      .samples = prompts->count,
                                      .read = read_number,
                                      .clone = clone_length,
                                      .free = free,
                                      .state = state};
    *state = length;
    source.info.hash = prompts->hash;
    source.info.documents = prompts->count;
    source.info.tokens = tokens;
    return dt_dataset_from_source(&source);
}
