/* SPDX-License-Identifier: MIT */
/* Shared by gguf-read.c and gguf-write.c. */
#ifndef DT_FORMATS_GGUF_INTERNAL_H
#define DT_FORMATS_GGUF_INTERNAL_H

#include "base/buffer.h"
#include "formats/gguf.h"

#define DT_GGUF_MAGIC   0x46554747u /* "GGUF" */
#define DT_GGUF_VERSION 3
#define DT_GGUF_ALIGN   32
#define DT_Q8_BLOCK     32

/* Type codes of values, and of tensors. */
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

/* Writes the name of a parameter in GGUF to name; returns false if GGUF does not have it. */
bool dt_gguf_name(const struct dt_param *p, char name[64]);
/* Whether the file stores the transpose of the table's matrix. */
bool dt_gguf_is_transposed(const struct dt_param *p);
/* The number of heads whose rows are permuted for RoPE; 0: not permuted. */
int64_t dt_gguf_permuted_heads(const struct dt_model_config *config, const struct dt_param *p);
/* Permutes the rows of each head from Hugging Face's order (halves) to GGUF's (interleaved), or
 * back. */
void dt_gguf_permute(float *to, const float *from, int64_t rows, int64_t columns, int64_t heads,
                     bool back);
void dt_gguf_transpose(float *to, const float *from, int64_t rows, int64_t columns);

#endif
