/* SPDX-License-Identifier: MIT */
/* What writing and reading GGUF share, inside lib/model. */
#ifndef DT_FORMATS_GGUF_INTERNAL_H
#define DT_FORMATS_GGUF_INTERNAL_H

#include "base/buffer.h"
#include "formats/gguf.h"

#define DT_GGUF_MAGIC   0x46554747u /* "GGUF" */
#define DT_GGUF_VERSION 3
#define DT_GGUF_ALIGN   32
#define DT_Q8_BLOCK     32

/* Types of values, and of tensors, by their numbers in files. */
enum dt_gguf_value {
    DT_GV_U8,
    DT_GV_I8,
    DT_GV_U16,
    DT_GV_I16,
    DT_GV_U32,
    DT_GV_I32,
    DT_GV_F32,
    DT_GV_BOOL,
    DT_GV_STRING,
    DT_GV_ARRAY,
    DT_GV_U64,
    DT_GV_I64,
    DT_GV_F64,
    DT_GV_COUNT
};
enum { DT_GT_F32 = 0, DT_GT_F16 = 1, DT_GT_Q8_0 = 8, DT_GT_BF16 = 30 };

/* Name of a parameter in GGUF; name has room for 64 bytes. false: it has none there. */
bool dt_gguf_name(const struct dt_param *p, char name[64]);
/* Whether the file holds the matrix the other way round. */
bool dt_gguf_is_transposed(const struct dt_param *p);
/* Heads by which the rows of this parameter are permuted; 0 if they are not. */
int64_t dt_gguf_permuted_heads(const struct dt_model_config *config, const struct dt_param *p);
/* Rows, as they lie in Hugging Face's files, into GGUF's order, or back. */
void dt_gguf_permute(float *to, const float *from, int64_t rows, int64_t columns, int64_t heads,
                     bool back);
void dt_gguf_transpose(float *to, const float *from, int64_t rows, int64_t columns);

#endif
