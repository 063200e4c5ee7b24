/* SPDX-License-Identifier: MIT */
/*
 * Files of counted pieces, of dt-vocab --count, so that machines count parts of a corpus:
 *
 *     dt-counts 1 bpe gpt2           version, and how text was split into pieces
 *     1204 4  the                    count, bytes, piece; ordered by their bytes
 *     end 1 1204                     pieces, and the sum of their counts
 *
 * A piece may have any bytes, line feeds too.
 */
#ifndef DT_VOCAB_WORD_COUNT_FILE_H
#define DT_VOCAB_WORD_COUNT_FILE_H

#include "base/error.h"
#include "vocab/word-count.h"

/* kind: a line of text without a line feed. Sorts the words of c, whose index is then invalid. */
int dt_word_counts_write(struct dt_word_table *c, const char *kind, const char *path,
                         struct dt_error *err) DT_MUST_CHECK;
/* Adds the counts of a file. DT_EFORMAT if it is damaged, or of another kind. */
int dt_word_counts_read(struct dt_word_table *c, const char *kind, const char *path,
                        struct dt_error *err) DT_MUST_CHECK;

#endif
