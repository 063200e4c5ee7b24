/* SPDX-License-Identifier: MIT */
/*
 * GGUF version 3: a model in one file, as llama.cpp reads it. Families gpt2 and llama.
 *
 * Tensors carry other names than Hugging Face's, linear maps lie as output x input,
 * and rows of Llama's queries and keys are in another order: there the two
 * coordinates of a point that rotary positions turn stand side by side. Vectors and
 * learnt positions are always fp32.
 */
#ifndef DT_FORMATS_GGUF_H
#define DT_FORMATS_GGUF_H

#include "model/model.h"

/* Q8_0: blocks of 32 whole numbers with a scale in half precision. */
enum dt_gguf_type { DT_GGUF_F32, DT_GGUF_F16, DT_GGUF_BF16, DT_GGUF_Q8_0 };

/* name: what people call the model, in UTF-8. tokenizer: a byte-level tokenizer.json that
 * goes into the file; NULL: none. eot: the token that begins and ends text, or UINT32_MAX.
 * The model is on the cpu. */
int dt_gguf_write(const struct dt_model *model, const char *name, enum dt_gguf_type type,
                  const char *tokenizer, uint32_t eot, const char *path,
                  struct dt_error *err) DT_MUST_CHECK;

/* Reads a model of any of these types, as fp32. A file that breaks a rule of the
 * format is refused. dev is the cpu. */
int dt_gguf_read(struct dt_model **model, struct dt_device *dev, const char *path,
                 struct dt_error *err) DT_MUST_CHECK;

#endif
