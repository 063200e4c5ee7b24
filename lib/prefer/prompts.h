/* SPDX-License-Identifier: MIT */
/*
 * Prompts of reinforcement learning, from a file of JSON Lines: each record has "prompt", a text or
 * a list of messages, and whatever else its reward depends on.
 */
#ifndef DT_PREFER_PROMPTS_H
#define DT_PREFER_PROMPTS_H

#include "chat/chat.h"
#include "shard/dataset.h"
#include "token/tokenizer.h"
#include "json/json.h"

struct dt_prompt {
    struct dt_ids ids;
    struct json_object *record; /* the line */
};

struct dt_prompts {
    struct dt_prompt *items;
    size_t count, capacity;
    uint64_t hash; /* of the file */
};

/* most: tokens of a prompt. DT_EFORMAT names file and line. Release with dt_prompts_release, also
 * after a failure. */
int dt_prompts_read(struct dt_prompts *prompts, const char *path, const struct dt_chat *chat,
                    const struct dt_tokenizer *tokenizer, long most,
                    struct dt_error *err) DT_MUST_CHECK;
void dt_prompts_release(struct dt_prompts *prompts);

/* A data set whose sample k is k, followed by zeros: length + 1 ids. info: without counts. */
struct dt_dataset *dt_prompts_dataset(const struct dt_prompts *prompts,
                                      const struct dt_shard_info *info, uint32_t length,
                                      uint64_t tokens);

#endif
