/* SPDX-License-Identifier: MIT */
/*
 * Documents to be dropped, by their places in a stream, as dt-dedup(1) lists them.
 *
 * A line for each, in increasing order: the number of the document, counted from 1,
 * the hash of its text (16 hexadecimal digits), and the document that it is like.
 *
 *     12 8e9f0a3b5c7d1e2f shard-0:3
 *
 * The list is read as the stream goes on, so that it may be of any length.
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

/* Sets *listed for the document of this number, to be asked for 1, 2, 3 ... in
 * order. like is then set to the document that it is like. A text of another hash
 * than the list says is DT_EINVALID: the list is of other documents. */
int dt_drop_list_ask(struct dt_drop_list *list, uint64_t number, const void *text, size_t size,
                     bool *listed, struct dt_buffer *like, struct dt_error *err) DT_MUST_CHECK;
/* DT_EINVALID if documents are listed that were not asked for. */
int dt_drop_list_end(struct dt_drop_list *list, struct dt_error *err) DT_MUST_CHECK;

#endif
