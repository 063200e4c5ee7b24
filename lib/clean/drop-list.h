/* SPDX-License-Identifier: MIT */
/*
 * Documents to drop, by their number in a stream, as dt-dedup(1) lists them.
 *
 * A line for each, in increasing order: the number of the document, counted from 1,
 * the hash of its text (16 hexadecimal digits), and the document that it is like.
 * The last line has the number of these lines, and of the documents of the stream.
 *
 *     12 8e9f0a3b5c7d1e2f shard-0:3
 *     end 1 of 40
 *
 * The list is read along with the stream, so its length is not limited.
 */
#ifndef DT_CLEAN_DROP_LIST_H
#define DT_CLEAN_DROP_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

struct dt_drop_list;

int dt_drop_list_open(struct dt_drop_list **list, const char *path,
                      struct dt_error *err) DT_MUST_CHECK;
void dt_drop_list_close(struct dt_drop_list *list); /* NULL is fine */

/* Sets *listed for the document with this number; call with 1, 2, 3 ... in order. If listed,
 * like is set to the original that it duplicates. A text hash different from the list's is
 * DT_EINVALID: the list is for other documents. */
int dt_drop_list_ask(struct dt_drop_list *list, uint64_t number, const void *text, size_t size,
                     bool *listed, struct dt_buffer *like, struct dt_error *err) DT_MUST_CHECK;
/* DT_EINVALID unless the stream has the number of documents that the list was made for. */
int dt_drop_list_end(struct dt_drop_list *list, uint64_t documents,
                     struct dt_error *err) DT_MUST_CHECK;

#endif
