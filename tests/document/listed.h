/* SPDX-License-Identifier: MIT */
/* Documents of a file, listed for comparison. */
#ifndef TESTS_DOCUMENT_LISTED_H
#define TESTS_DOCUMENT_LISTED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "document/document.h"

static struct dt_error err;

static void write_bytes(const char *path, const char *data, size_t size)
{
    remove(path); /* a file system may sync a file that is truncated and rewritten */
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

/* Appends "id=text{meta}|" for each document, to compare all at once. */
static int list(const struct dt_documents_options *options, const char *data, size_t size,
                struct dt_buffer *out, struct dt_documents_losses *losses)
{
    static char *const paths[] = {"f"};
    struct dt_documents *docs = NULL;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    write_bytes("f", data, size);
    int rc = dt_documents_open(&docs, paths, 1, options, &err);
    dt_buffer_clear(out);
    dt_buffer_add_string(out, "");
    while (rc >= 0 && (rc = dt_documents_next(docs, &doc, &err)) > 0) {
        dt_buffer_append(out, doc.id.data, doc.id.size);
        dt_buffer_add_char(out, '=');
        dt_buffer_append(out, doc.text.data, doc.text.size);
        dt_buffer_append(out, doc.meta.data, doc.meta.size);
        dt_buffer_add_char(out, '|');
    }
    if (losses && docs)
        losses->skipped = dt_documents_losses(docs).skipped;
    dt_document_release(&doc);
    dt_documents_close(docs);
    return rc;
}

static void assert_reads(enum dt_document_format format, const char *field, const char *data,
                         size_t size, const char *expected)
{
    struct dt_buffer out = DT_BUFFER_EMPTY;
    const struct dt_documents_options options = {.format = format, .field = field};
    int rc = list(&options, data, size, &out, NULL);
    if (rc < 0)
        fail_msg("%s", err.text);
    assert_string_equal(out.data, expected);
    dt_buffer_release(&out);
}

#endif
