/* SPDX-License-Identifier: MIT */
/*
 * Samples tokenized from text during training, for comparison with shards. Every epoch tokenizes
 * again.
 *
 * The text is JSON Lines, read at random offsets from an index of 8 bytes a document.
 *
 *     padded    a sample is a document, truncated or padded with the end-of-text token (without
 *               loss) to length + 1 ids. Random access.
 *     labels    a sample is a document in its tokenizer's template, truncated or padded to length
 *               ids, of which padding is without loss, and its label (dt_batch_classify). Random
 *               access.
 *     list      documents in shuffled order, each followed by the end-of-text token, concatenated
 *               and cut every length ids (packing). A sample is a function of seed and position,
 *               but is found only by tokenizing everything before it: each rank and worker
 *               tokenizes the others' samples too, and a resumed run those already consumed.
 */
#ifndef DT_TRAIN_TEXT_SAMPLES_H
#define DT_TRAIN_TEXT_SAMPLES_H

#include "formats/labels.h"
#include "settings/choices.h"
#include "shard/dataset.h"

struct dt_text_samples_options {
    const char *tokenizer_path;
    enum dt_text_layout layout;
    const struct dt_labels *labels; /* borrowed; in place of layout. NULL: none */
    uint32_t length;
    uint64_t seed; /* of the shuffle, with list */
    bool shuffle;
};

/* Whether the path ends in .jsonl. */
bool dt_text_samples_has_name(const char *path);
/* *d is owned by the caller (dt_dataset_close). With list the number of samples of an
 * epoch is an estimate, at four bytes a token. */
int dt_text_samples_open(struct dt_dataset **d, const char *path,
                         const struct dt_text_samples_options *options,
                         struct dt_error *err) DT_MUST_CHECK;

#endif
