/* SPDX-License-Identifier: MIT */
/* Documents of a file, listed for comparison. */
#ifndef TESTS_DOCUMENT_LISTED_H
#define TESTS_DOCUMENT_LISTED_H

#include "cut-gzip.h"
#include "scratch.h"

#include <string.h>

#include "document/document.h"

static struct dt_error err;

/* Appends "id=text{meta}|" for each document, to compare all at once. */
static inline int list_on(int threads, char *const *paths, int count,
                          const struct dt_documents_options *options, struct dt_buffer *out,
                          struct dt_documents_losses *losses)
{
    struct dt_documents *docs = NULL;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_documents_options with_threads = *options;
    with_threads.threads = threads;
    int rc = dt_documents_open(&docs, paths, count, &with_threads, &err);
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

/* The same with threads must give the same documents and the same error. */
static inline int list_files(char *const *paths, int count,
                             const struct dt_documents_options *options, struct dt_buffer *out,
                             struct dt_documents_losses *losses)
{
    struct dt_buffer alone = DT_BUFFER_EMPTY;
    int rc = list_on(0, paths, count, options, &alone, NULL);
    struct dt_error first = err;
    assert_int_equal(list_on(3, paths, count, options, out, losses), rc);
    assert_int_equal(out->size, alone.size);
    assert_memory_equal(out->data, alone.data, alone.size);
    if (rc < 0)
        assert_string_equal(err.text, first.text);
    dt_buffer_release(&alone);
    return rc;
}

/* The same of a file with these bytes. */
static inline int list(const struct dt_documents_options *options, const char *data, size_t size,
                       struct dt_buffer *out, struct dt_documents_losses *losses)
{
    char *const paths[] = {"f"};
    write_bytes("f", data, size);
    return list_files(paths, 1, options, out, losses);
}

static inline void assert_lists(const struct dt_documents_options *options, const char *data,
                                size_t size, const char *expected)
{
    struct dt_buffer out = DT_BUFFER_EMPTY;
    if (list(options, data, size, &out, NULL) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(out.data, expected);
    dt_buffer_release(&out);
}

static inline void assert_reads(enum dt_document_format format, const char *field, const char *data,
                                size_t size, const char *expected)
{
    const struct dt_documents_options options = {.format = format, .field = field};
    assert_lists(&options, data, size, expected);
}

/* A file that breaks off is refused wherever it does. */
static inline void assert_cuts_refused(enum dt_document_format format, const char *field,
                                       const char *data, size_t size)
{
    struct dt_buffer out = DT_BUFFER_EMPTY;
    const struct dt_documents_options options = {.format = format, .field = field};
    char *const paths[] = {"f.gz"};
    for (size_t n = 0; n < size; n++) {
        write_cut_gzip("f.gz", data, n);
        if (list_on(n % 2 ? 3 : 0, paths, 1, &options, &out, NULL) >= 0)
            fail_msg("%.*s: is read", (int)n, data);
    }
    dt_buffer_release(&out);
}

static inline void assert_documents(enum dt_document_format format, const char *data, size_t size,
                                    const char *expected)
{
    bool cuts = format == DT_DOCUMENT_FORMAT_SEPARATOR || format == DT_DOCUMENT_FORMAT_SPLIT;
    const struct dt_documents_options options = {.format = format,
                                                 .separator = cuts ? "<sep>" : NULL};
    assert_lists(&options, data, size, expected);
}

#define DOCUMENTS(format, data, expected) assert_documents(format, data, sizeof data - 1, expected)
#define JSONL(data, expected)             DOCUMENTS(DT_DOCUMENT_FORMAT_JSONL, data "\n", expected)

static inline void assert_error(enum dt_document_format format, const char *separator,
                                const char *data, const char *reason)
{
    const struct dt_documents_options options = {.format = format, .separator = separator};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    assert_int_equal(list(&options, data, strlen(data), &out, NULL), DT_EFORMAT);
    if (strncmp(err.text, reason, strlen(reason)))
        fail_msg("%s", err.text);
    dt_buffer_release(&out);
}

static inline void assert_refused(enum dt_document_format format, const char *data,
                                  const char *reason)
{
    assert_error(format, NULL, data, reason);
    assert_string_equal(err.text, reason);
}

#endif
