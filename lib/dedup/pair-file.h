/* SPDX-License-Identifier: MIT */
/*
 * Files of pairs, dt-signatures(5): the links that one task of a merge of signature files found.
 *
 *     struct dt_pair_writer *w;
 *     DT_TRY(dt_pair_writer_open(&w, set, task, &out, err));
 *     DT_TRY(dt_signature_set_merge(set, band, task, dt_pair_writer_add, w, err));
 *     DT_TRY(dt_pair_writer_end(w, err));
 *
 *     DT_TRY(dt_pair_file_read_all(set, paths, count, link, context, err));
 */
#ifndef DT_DEDUP_PAIR_FILE_H
#define DT_DEDUP_PAIR_FILE_H

#include "base/error.h"
#include "base/file.h"
#include "dedup/signature-set.h"

struct dt_pair_writer;

/* out is borrowed, and committed by the caller. *w is owned by the caller. */
int dt_pair_writer_open(struct dt_pair_writer **w, const struct dt_signature_set *set,
                        struct dt_signature_task task, struct dt_output *out,
                        struct dt_error *err) DT_MUST_CHECK;
/* A dt_signature_link with a struct dt_pair_writer as context. */
int dt_pair_writer_add(void *w, uint64_t a, uint64_t b, struct dt_error *err) DT_MUST_CHECK;
/* Pairs written. */
uint64_t dt_pair_writer_count(const struct dt_pair_writer *w);
int dt_pair_writer_end(struct dt_pair_writer *w, struct dt_error *err) DT_MUST_CHECK;
void dt_pair_writer_free(struct dt_pair_writer *w); /* NULL is fine */

/* Calls link for the pairs of all files, which must be those of every task of one division of this
 * set, once each, in any order. */
int dt_pair_file_read_all(const struct dt_signature_set *set, const char *const *paths, int count,
                          dt_signature_link *link, void *context,
                          struct dt_error *err) DT_MUST_CHECK;

#endif
