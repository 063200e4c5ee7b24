/* SPDX-License-Identifier: MIT */
/*
 * Signs a stream of documents on several threads. The file does not depend on the number of
 * threads. A document of fewer words than a shingle is signed as one shingle of all its words.
 *
 *     struct dt_signer *s;
 *     DT_TRY(dt_signer_open(&s, &settings, documents, &out, err));
 *     while ((rc = dt_signer_step(s, err)) > 0)
 *         show_progress();
 *     dt_signer_close(s);
 */
#ifndef DT_DEDUP_SIGNER_H
#define DT_DEDUP_SIGNER_H

#include "dedup/signature-file.h"
#include "document/document.h"

struct dt_signer;

struct dt_signer_statistics {
    uint64_t documents;
    uint64_t bytes; /* of text */
};

/* documents, whose threads work, and out are borrowed; the caller commits out. *s is owned by the
 * caller. */
int dt_signer_open(struct dt_signer **s, const struct dt_signature_settings *settings,
                   struct dt_documents *documents, struct dt_output *out,
                   struct dt_error *err) DT_MUST_CHECK;
/* Returns 1 if more remains, 0 when all is written, or an error. */
int dt_signer_step(struct dt_signer *s, struct dt_error *err) DT_MUST_CHECK;
const struct dt_signer_statistics *dt_signer_statistics(const struct dt_signer *s);
void dt_signer_close(struct dt_signer *s); /* NULL is fine */

/* Approximate memory of a signer in bytes, without the documents. */
uint64_t dt_signer_bytes(const struct dt_signature_settings *settings);

#endif
