/* SPDX-License-Identifier: MIT */
/*
 * Questions whose answers a model is to tell apart, or an ending it is to guess:
 * from JSON Lines of one's own, and from the files of benchmarks as they are
 * published. The members of the first line tell which it is:
 *
 *     "context", "choices", "gold", and maybe "id", "delimiter"   one's own
 *     "context", "target"                                         one's own
 *     "text"                          LAMBADA (Paperno et al. 2016): the last word
 *     "ctx_a", "ctx_b", "endings"     HellaSwag (Zellers et al. 2019)
 *     "question", "answerKey"         ARC (Clark et al. 2018)
 *     "goal", "sol1", "sol2"          PIQA (Bisk et al. 2020), with the labels in
 *                                     NAME-labels.lst beside NAME.jsonl
 *
 * Prompts are those of lm-evaluation-harness.
 */
#ifndef DT_EVAL_CHOICE_DATA_H
#define DT_EVAL_CHOICE_DATA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct dt_choice_item {
    char *id;      /* owned, as all text here */
    char *context; /* what stands before the answers */
    char **choices;
    int count; /* of choices; 1: the answer is to be guessed */
    int gold;
    char *delimiter; /* between context and answer, part of neither */
};

struct dt_choice_data {
    struct dt_choice_item *items;
    size_t count, capacity;
};

/* path "-" is stdin. Release the data with dt_choice_data_release, after a failure too. */
int dt_choice_data_read(struct dt_choice_data *data, const char *path,
                        struct dt_error *err) DT_MUST_CHECK;
void dt_choice_data_release(struct dt_choice_data *data);

#endif
