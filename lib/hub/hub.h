/* SPDX-License-Identifier: MIT */
/*
 * Models, tokenizers and data on Hugging Face's hub, by the name
 *
 *     hf://[datasets/]OWNER/NAME[@REVISION][/FILE]
 *
 * A name of a model or tokenizer without FILE stands for the files that dt reads of it. They are
 * stored in the cache that Python's huggingface_hub shares ($HF_HUB_CACHE, $HF_HOME/hub or
 * ~/.cache/huggingface/hub):
 *
 *     models--OWNER--NAME/blobs/ETAG                      the file, named by its hash
 *     models--OWNER--NAME/blobs/ETAG.incomplete           a part, which a later download continues
 *     models--OWNER--NAME/snapshots/COMMIT/FILE           a link to the blob
 *     models--OWNER--NAME/refs/REVISION                   the commit of a branch or tag
 *
 * A blob gets its name after its size and hash were checked: SHA-256, or git's SHA-1 of small
 * files. With HF_HUB_OFFLINE, or while the hub cannot be reached, the cache alone is used. The
 * token ($HF_TOKEN or its file) goes to $HF_ENDPOINT only, not to hosts that it redirects to.
 * Without libcurl the program hf or huggingface-cli downloads.
 */
#ifndef DT_HUB_HUB_H
#define DT_HUB_HUB_H

#include "options/options.h"

/* Fetches what a name stands for. option "tokenizer": the files of a tokenizer; another option: a
 * model, or the file that is named; NULL: an operand, which must name a file. */
dt_options_fetch dt_hub_fetch;

#endif
