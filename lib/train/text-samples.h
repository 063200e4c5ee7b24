/* SPDX-License-Identifier: MIT */
/*
 * Samples tokenized from text while training, for comparison with shards: nothing is
 * prepared, and the work is done again in every epoch.
 *
 * The text is JSON Lines, read anywhere; a table of 8 bytes a document says where.
 *
 *     padded    a sample is a document, cut off or filled up with the end-of-text
 *               token (without loss) to length + 1 ids; any order, any ranks
 *     list      documents in the order of the seed, one behind the other, each ended
 *               by the end-of-text token, cut every length ids. What stands at a
 *               place follows from seed and place here, too, but is found only by
 *               tokenizing all that comes before it: each rank and worker does so
 *               for the others' parts, and a resumed run for what it has used.
 */
#ifndef DT_TRAIN_TEXT_SAMPLES_H
#define DT_TRAIN_TEXT_SAMPLES_H

#include "settings/choices.h"
#include "shard/dataset.h"

struct dt_text_samples_options {
    const char *tokenizer_path;
    enum dt_text_layout layout;
    uint32_t length;
    uint64_t seed; /* of the documents' order in a list */
    bool shuffle;
};

/* Whether the name of a file is that of such text: it ends in .jsonl. */
bool dt_text_samples_has_name(const char *path);
/* *d is owned by the caller (dt_dataset_close). A list has as many samples an epoch as
 * there would be at four bytes a token: an estimate. */
int dt_text_samples_open(struct dt_dataset **d, const char *path,
                         const struct dt_text_samples_options *options,
                         struct dt_error *err) DT_MUST_CHECK;

#endif
