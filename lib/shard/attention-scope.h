/* SPDX-License-Identifier: MIT */
/*
 * The attention mask of a sample as a range of keys per query: the query at position t attends
 * to positions begins[t] .. ends[t]-1 (a causal model only up to t).
 *
 *     ids       a  b  EOT  c  d  EOT  pad  pad
 *     DOCUMENT  [0, 3)     [3, 6)     [6, 8)      block-diagonal by document
 *     CONTENT   [0, 6)                [6, 8)      all ids except padding
 *
 * A document includes its end-of-text token. A document cut by the start of the sample starts
 * there. Padding, at the end of a row, attends only to padding.
 *
 * T: sequence length.
 */
#ifndef DT_SHARD_ATTENTION_SCOPE_H
#define DT_SHARD_ATTENTION_SCOPE_H

#include "shard/shard.h"

enum dt_scope { DT_SCOPE_ROW, DT_SCOPE_CONTENT, DT_SCOPE_DOCUMENT };

/* ids: [T], with DT_NO_LOSS marks; begins, ends: [T]. info: of the data set. DT_SCOPE_DOCUMENT
 * needs an end-of-text token; DT_SCOPE_ROW attends everywhere and needs no ranges. */
void dt_attention_spans(enum dt_scope scope, const struct dt_shard_info *info, const uint32_t *ids,
                        uint32_t length, int32_t *begins, int32_t *ends);

#endif
