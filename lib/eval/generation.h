/* SPDX-License-Identifier: MIT */
/*
 * Continues prompts with a model, several side by side. What becomes of a prompt
 * does not depend on those beside it.
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

#include "model/model.h"
#include "model/sampling.h"
#include "token/tokenizer.h"

struct dt_generation {
    struct dt_sampling sampling;
    double repetition_penalty; /* 1: none */
    long tokens;               /* at most so many are added */
    long slots;                /* sequences that grow side by side; of beam search: beams */
    long beams;                /* above 1: beam search in place of sampling */
    double length_penalty;     /* a beam's log-probability is divided by its length to this power */
    const char *const *stops;  /* text that ends a continuation and is left out of it */
    int stop_count;
};

enum dt_finish { DT_FINISH_LENGTH, DT_FINISH_END, DT_FINISH_STOP };
/* length, end (of text), stop (a stop string). */
extern const char *const dt_generation_finish_names[];

struct dt_continuation {
    struct dt_ids ids; /* the prompt, at least one token; what was added comes behind it */
    const char *place; /* where the prompt is from, as errors call it; borrowed */
    uint64_t key;      /* of its random choices */
    size_t added;
    struct dt_buffer text;  /* what was added, as text */
    double log_probability; /* of what was added, end included; of beam search alone */
    enum dt_finish finish;
};

struct dt_generator;
/* All is borrowed. */
int dt_generator_new(struct dt_generator **generator, const struct dt_model *model,
                     const struct dt_tokenizer *tokenizer, const struct dt_generation *how,
                     struct dt_error *err) DT_MUST_CHECK;
/* Text as it is settled; a failure ends generation. */
typedef int dt_text_sink(void *context, const char *text, size_t size, struct dt_error *err);
/* Continues any number of prompts, as many at a time as there are slots. sink: gets
 * the text of a single prompt while it grows; NULL is fine. A logit that is not finite is
 * DT_EFORMAT, with the prompt's place and the token. */
int dt_generation_run(struct dt_generator *generator, struct dt_continuation *items, size_t count,
                      dt_text_sink *sink, void *context, struct dt_error *err) DT_MUST_CHECK;
void dt_generator_free(struct dt_generator *generator); /* NULL is fine */
void dt_continuation_release(struct dt_continuation *item);

#endif
