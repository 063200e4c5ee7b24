/* SPDX-License-Identifier: MIT */
/*
 * Continues prompts with a model, several in a batch (continuous batching). The text of a prompt
 * does not depend on the others in its batch.
 *
 *     struct dt_generator *g;
 *     DT_TRY(dt_generator_new(&g, model, tokenizer, &how, err));
 *     struct dt_continuation items[2] = {{.ids = first, .key = 1}, {.ids = second, .key = 2}};
 *     DT_TRY(dt_generation_run(g, items, 2, NULL, NULL, err));
 *     use(&items[0].text);
 *     dt_continuation_release(&items[0]);
 */
#ifndef DT_EVAL_GENERATION_H
#define DT_EVAL_GENERATION_H

#include "eval/text-frame.h"
#include "model/model.h"
#include "model/sampling.h"
#include "token/tokenizer.h"

struct dt_generation {
    struct dt_sampling sampling;
    double repetition_penalty;         /* 1: no penalty */
    long tokens;                       /* most new tokens */
    long slots;                        /* batch size: sequences; in beam search: beams */
    long beams;                        /* above 1: beam search instead of sampling */
    double length_penalty;             /* a beam's score is log-probability / length^this */
    const struct dt_text_frame *frame; /* whose tokens end a continuation, excluded from it */
    const char *const *stops;          /* strings that end a continuation, excluded from it */
    int stop_count;
};

enum dt_finish { DT_FINISH_LENGTH, DT_FINISH_END, DT_FINISH_STOP };
/* "length", "end" (end of text), "stop" (a stop string). */
extern const char *const dt_generation_finish_names[];

struct dt_continuation {
    struct dt_ids ids; /* the prompt, at least one token; new ids are appended */
    const char *place; /* the prompt's source for errors; borrowed */
    uint64_t key;      /* random key of its samples */
    size_t added;
    struct dt_buffer text;  /* the new text */
    double log_probability; /* of the new tokens and the end; beam search only */
    enum dt_finish finish;
};

struct dt_generator;
/* All pointers are borrowed. */
int dt_generator_new(struct dt_generator **generator, const struct dt_model *model,
                     const struct dt_tokenizer *tokenizer, const struct dt_generation *how,
                     struct dt_error *err) DT_MUST_CHECK;
/* Receives text as it becomes final; a failure ends generation. */
typedef int dt_text_sink(void *context, const char *text, size_t size, struct dt_error *err);
/* Continues any number of prompts, up to slots at a time. sink: streams the text of a single
 * prompt; may be NULL. DT_EFORMAT, naming prompt and token, if a logit is not finite. */
int dt_generation_run(struct dt_generator *generator, struct dt_continuation *items, size_t count,
                      dt_text_sink *sink, void *context, struct dt_error *err) DT_MUST_CHECK;
void dt_generator_free(struct dt_generator *generator); /* may be NULL */
void dt_continuation_release(struct dt_continuation *item);

#endif
