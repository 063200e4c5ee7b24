/* SPDX-License-Identifier: MIT */
/*
 * Types of tensors in GGUF, and their values as fp32.
 *
 * A quantized row is a sequence of blocks, each with its scale in fp16. Values are computed in
 * fp32, in the order that llama.cpp and the Python package gguf use, without contraction, and have
 * their bits.
 */
#ifndef DT_GGUF_GGUF_TYPES_H
#define DT_GGUF_GGUF_TYPES_H

#include <stdint.h>

/* Codes of the types that dt also writes. */
enum dt_gguf_code {
    DT_GGUF_CODE_F32 = 0,
    DT_GGUF_CODE_F16 = 1,
    DT_GGUF_CODE_Q8_0 = 8,
    DT_GGUF_CODE_BF16 = 30
};

#define DT_GGUF_Q8_BLOCK   32
#define DT_GGUF_MOST_BLOCK 256 /* elements; every block divides it */
#define DT_GGUF_Q8_BYTES   (DT_GGUF_Q8_BLOCK + 2)

struct dt_gguf_type {
    uint32_t code;
    unsigned block, bytes;                        /* elements of a block, and its bytes */
    void (*decode)(float *to, const char *block); /* NULL: elements without blocks */
};

/* NULL: dt does not read tensors of this type. */
const struct dt_gguf_type *dt_gguf_type_of(uint32_t code);
/* "Q4_K"; "unknown". */
const char *dt_gguf_type_name(uint32_t code);

/* count elements, a multiple of the block. */
void dt_gguf_decode(const struct dt_gguf_type *type, float *to, const char *from, int64_t count);

#endif
