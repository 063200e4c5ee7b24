/* SPDX-License-Identifier: MIT */
/* Sequences in host memory, and what is to be predicted at each of their places. */
#ifndef DT_MODEL_BATCH_H
#define DT_MODEL_BATCH_H

#include <stdint.h>

#define DT_NO_TARGET (-1)
/* In an id that is given to a batch: it is read, but not to be predicted. */
#define DT_NOT_PREDICTED 0x80000000u /* above every vocabulary */

struct dt_batch {
    int64_t count, length; /* B sequences of T tokens */
    int32_t *inputs;       /* B x T */
    int32_t *targets;      /* B x T; DT_NO_TARGET: nothing is predicted there */
    /* B x T: the first place of its sequence that each looks at, and the first behind those;
     * borrowed. NULL: all of them. */
    const int32_t *begins, *ends;
    uint64_t first_sample; /* global index of the first sequence, which names its random numbers */
    int64_t capacity;      /* B x T at most */
};

/* Takes memory for up to count x length tokens. Release with dt_batch_release. */
void dt_batch_init(struct dt_batch *batch, int64_t count, int64_t length);
void dt_batch_release(struct dt_batch *batch);

/* Next-token prediction: ids holds count rows of length + 1; the first length of
 * each are the inputs, its last length the targets. An id whose highest bit is set
 * is no target; as an input it is what the other bits say. */
void dt_batch_next_token(struct dt_batch *batch, const uint32_t *ids, int64_t count,
                         int64_t length);
/* The same sequences and targets; spans are shared. Both have memory of the same size. */
void dt_batch_copy(struct dt_batch *batch, const struct dt_batch *from);

#endif
