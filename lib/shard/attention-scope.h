/* SPDX-License-Identifier: MIT */
/*
 * Which places of a sample attention keeps to: those of the same document, or all that
 * are no padding.
 *
 * Place t may look at places begins[t] to below ends[t] of its sample (and a causal model
 * at none behind t). Documents end with the end-of-text token, which is theirs; one that
 * began before the sample begins with it. Padding, which stands at the end of a row, sees
 * nothing but itself, and nothing else sees it.
 *
 * T length.
 */
#ifndef DT_SHARD_ATTENTION_SCOPE_H
#define DT_SHARD_ATTENTION_SCOPE_H

#include "shard/shard.h"

enum dt_scope { DT_SCOPE_ROW, DT_SCOPE_CONTENT, DT_SCOPE_DOCUMENT };

/* ids: T or more, with DT_NO_LOSS where the data say so; begins and ends: T each. info: of
 * the data. DT_SCOPE_DOCUMENT needs an end-of-text token. */
void dt_attention_spans(enum dt_scope scope, const struct dt_shard_info *info, const uint32_t *ids,
                        uint32_t length, int32_t *begins, int32_t *ends);

#endif
