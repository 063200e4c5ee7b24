/* SPDX-License-Identifier: MIT */
/* Sequences in host memory, and the target at each position. */
#ifndef DT_MODEL_BATCH_H
#define DT_MODEL_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#define DT_NO_TARGET (-1)
/* Flag of an id given to dt_batch_next_token: an input, but not a target. */
#define DT_NOT_PREDICTED 0x80000000u /* above every vocabulary */

struct dt_batch {
    int64_t count, length; /* B sequences of T tokens */
    int32_t *inputs;       /* B x T */
    int32_t *targets;      /* B x T; DT_NO_TARGET: no target */
    /* B x T: the span of positions that each token may attend to, [begin, end); borrowed. NULL:
     * the whole sequence. */
    const int32_t *begins, *ends;
    uint64_t first_sample; /* global index of the first sequence: seeds its random numbers */
    int64_t capacity;      /* B x T at most */
};

/* Allocates memory for up to count x length tokens. Release with dt_batch_release. */
void dt_batch_init(struct dt_batch *batch, int64_t count, int64_t length);
void dt_batch_release(struct dt_batch *batch);

/* Next-token prediction: ids holds count rows of length + 1; the first length of
 * each are the inputs, its last length the targets. An id with
 * DT_NOT_PREDICTED set is an input without the flag, and not a target. */
void dt_batch_next_token(struct dt_batch *batch, const uint32_t *ids, int64_t count,
                         int64_t length);
/* Classification: ids holds count rows of length + 1; the last is the label of the row, the others
 * are inputs, of which those with DT_NOT_PREDICTED are padding. The target is at the first token
 * or, with last, at the last one before the padding. */
void dt_batch_classify(struct dt_batch *batch, const uint32_t *ids, int64_t count, int64_t length,
                       bool last);
/* Copies sequences and targets; spans stay borrowed. Both have the same capacity. */
void dt_batch_copy(struct dt_batch *batch, const struct dt_batch *from);

#endif
