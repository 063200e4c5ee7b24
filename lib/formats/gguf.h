/* SPDX-License-Identifier: MIT */
/*
 * GGUF version 3: a model in one file, as llama.cpp reads it. Families gpt2 and llama.
 *
 * Differences from Hugging Face's layout: tensor names; linear layers are stored as
 * output x input; rows of Llama's query and key weights are permuted so that the two
 * channels of a RoPE pair are adjacent. Vectors and learned position embeddings are
 * always fp32.
 */
#ifndef DT_FORMATS_GGUF_H
#define DT_FORMATS_GGUF_H

#include "model/model.h"

/* Q8_0: blocks of 32 int8 values with an fp16 scale. */
enum dt_gguf_type { DT_GGUF_F32, DT_GGUF_F16, DT_GGUF_BF16, DT_GGUF_Q8_0 };

/* name: general.name, in UTF-8. tokenizer: path of a byte-level BPE tokenizer.json to include;
 * NULL: none. eot: the end-of-text token, also used as BOS, or UINT32_MAX. The model is on the
 * cpu. */
int dt_gguf_write(const struct dt_model *model, const char *name, enum dt_gguf_type type,
                  const char *tokenizer, uint32_t eot, const char *path,
                  struct dt_error *err) DT_MUST_CHECK;

/* Reads a model of any of these types as fp32. Refuses a file that violates the format. dev is
 * the cpu. */
int dt_gguf_read(struct dt_model **model, struct dt_device *dev, const char *path,
                 struct dt_error *err) DT_MUST_CHECK;

#endif
