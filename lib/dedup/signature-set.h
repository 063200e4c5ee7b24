/* SPDX-License-Identifier: MIT */
/*
 * Files of signatures as one sequence of documents, in the order of the files. Documents with equal
 * keys of a band are found by a k-way merge, which reads each run of each file sequentially. The
 * range of keys can be divided into tasks: each merges its part of every band, so that the links of
 * all tasks together are those of one.
 *
 *     struct dt_signature_set *set;
 *     DT_TRY(dt_signature_set_open(&set, paths, count, true, err));
 *     for (uint32_t band = 0; band < bands; band++)
 *         DT_TRY(dt_signature_set_merge(set, band, (struct dt_signature_task){0, 1}, link, context,
 *                                       err));
 */
#ifndef DT_DEDUP_SIGNATURE_SET_H
#define DT_DEDUP_SIGNATURE_SET_H

#include "base/buffer.h"
#include "base/error.h"
#include "dedup/signature-file.h"

struct dt_signature_set;

struct dt_signature_set_size {
    struct dt_signature_settings settings;
    uint64_t documents, runs;
};

/* The files must have equal settings and distinct base names. check: read all of them first to
 * compare their checksums. *s is owned by the caller. */
int dt_signature_set_open(struct dt_signature_set **s, char *const *paths, int count, bool check,
                          struct dt_error *err) DT_MUST_CHECK;
void dt_signature_set_close(struct dt_signature_set *s); /* NULL is fine */
struct dt_signature_set_size dt_signature_set_size(const struct dt_signature_set *s);
/* Bytes of memory of a merge of this many runs. */
uint64_t dt_signature_set_bytes(uint64_t runs);
/* A hash of the names, settings and checksums of the files, in their order. */
uint64_t dt_signature_set_hash(const struct dt_signature_set *s);

/* A file of the set, and the number of its first document among all, from 0. */
const struct dt_signature_file *dt_signature_set_file(const struct dt_signature_set *s, int file,
                                                      uint64_t *first_document);
/* Appends "NAME:NUMBER" of a document among all; the number counts from 1 within its file. */
void dt_signature_set_add_name(const struct dt_signature_set *s, uint64_t document,
                               struct dt_buffer *line);
/* The name of a file without directories and the ending .sig; owned by the caller. */
char *dt_signature_set_name(const char *path);

/* The keys of number index, from 0, of count equal ranges of the 64 bits of a key. */
struct dt_signature_task {
    uint64_t index, count;
};
/* a < b are documents with the same key, and no document between them has it. */
typedef int dt_signature_link(void *context, uint64_t a, uint64_t b, struct dt_error *err);
/* Calls link for the pairs of a band in the order of their keys. Of files for equal texts it links
 * only those whose XXH3-64 is equal too. */
int dt_signature_set_merge(struct dt_signature_set *s, uint32_t band, struct dt_signature_task task,
                           dt_signature_link *link, void *context,
                           struct dt_error *err) DT_MUST_CHECK;

#endif
