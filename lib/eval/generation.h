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
 *
 * Prompts that come one by one are served by dt_generation_serve(). What the KV cache of a slot
 * holds of a new prompt (the conversation so far, or an instruction that several prompts begin
 * with) is not computed again; bits do not change.
 */
#ifndef DT_EVAL_GENERATION_H
#define DT_EVAL_GENERATION_H

#include <signal.h>

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
    /* Log-probabilities that are kept of each new token: its own, and those of the most probable
     * ones, probabilities - 1 of them, at most those that the vocabulary has; 0: none. Not in beam
     * search. */
    int probabilities;
    const volatile sig_atomic_t *interrupt; /* not 0: continuations end; NULL: never */
};

enum dt_finish { DT_FINISH_LENGTH, DT_FINISH_END, DT_FINISH_STOP, DT_FINISH_INTERRUPT };
/* "length", "end" (end of text), "stop" (a stop string), "interrupt". */
extern const char *const dt_generation_finish_names[];

/* The natural logarithm of the probability that the model gives a token: before the repetition
 * penalty, temperature and filters. */
struct dt_token_probability {
    uint32_t id;
    double log_probability;
};

struct dt_continuation {
    struct dt_ids ids; /* the prompt, at least one token; new ids are appended */
    const char *place; /* the prompt's source for errors; borrowed */
    uint64_t key;      /* random key of its samples */
    size_t added;
    struct dt_buffer text;  /* the new text */
    double log_probability; /* of the new tokens and the end; beam search only */
    enum dt_finish finish;
    /* Of each new token that gave text before the stop string: its own, then those of the most
     * probable ones, most probable first (of equal ones the lowest id). */
    struct dt_token_probability *probabilities;
    size_t probability_count; /* of all tokens together */
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

/* Where prompts come from, and their continuations go. Failures end generation. */
struct dt_generation_feed {
    void *context;
    /* Sets *item to the next prompt, which stays in place until finish, or to NULL if there is none
     * yet. wait: no other prompt is being continued; then NULL means that none will come. */
    int (*next)(void *context, bool wait, struct dt_continuation **item, struct dt_error *err);
    /* Text of a prompt as it becomes final; or NULL. */
    int (*text)(void *context, struct dt_continuation *item, const char *text, size_t size,
                struct dt_error *err);
    /* In the order in which continuations end; or NULL. */
    int (*finish)(void *context, struct dt_continuation *item, struct dt_error *err);
};
/* As dt_generation_run(), until no prompt will come. A prompt that comes while others are continued
 * takes the next free slot. */
int dt_generation_serve(struct dt_generator *generator, const struct dt_generation_feed *feed,
                        struct dt_error *err) DT_MUST_CHECK;
void dt_generator_free(struct dt_generator *generator); /* may be NULL */
void dt_continuation_release(struct dt_continuation *item);

#endif
