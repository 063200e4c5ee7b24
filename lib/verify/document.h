/* SPDX-License-Identifier: MIT */
/* dt-verify document: where a document is in the shards of a run, and which steps read it. */
#ifndef DT_VERIFY_DOCUMENT_H
#define DT_VERIFY_DOCUMENT_H

#include "verify/report.h"

struct dt_verify_document_options {
    const char *run;       /* a run, or a checkpoint */
    const char *id;        /* XXH3 of the text, 16 hexadecimal digits; or with documents: */
    const char *documents; /* a file with the id or "url" of a document; NULL: none */
    const char *data;      /* the shards, if they are not where the run read them; NULL: there */
};

/* Reports each place of the document, the samples that hold tokens of it, and the steps up to the
 * checkpoint whose batches have these samples. DT_EMISSING if it is in no split. */
int dt_verify_document(const struct dt_verify_document_options *o, struct dt_verify_report *r,
                       struct dt_error *err) DT_MUST_CHECK;

#endif
