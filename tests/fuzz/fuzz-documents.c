/* SPDX-License-Identifier: MIT */
/* Documents in every format: the first byte chooses, the others are the file, which may
 * be gzip or zstd data, or UTF-16, or no text at all. What was read is written, and must be read
 * again as the same. */
#include <string.h>

#include "document/document.h"
#include "document/json-line.h"
#include "fuzz.h"
#include "io/file-type.h"
#include "unicode/utf8.h"

static void check_again(const struct dt_document *doc)
{
    struct dt_document again = DT_DOCUMENT_EMPTY;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    struct dt_stream_mark mark;
    struct dt_error err;
    dt_document_to_json(doc, &line);
    line.data[--line.size] = '\0';
    if (dt_json_line_read(line.data, line.size, "text", &again, &mark, &err) < 0)
        abort();
    if (again.text.size != doc->text.size ||
        (doc->text.size && memcmp(again.text.data, doc->text.data, doc->text.size) != 0))
        abort();
    dt_document_release(&again);
    dt_buffer_release(&line);
}

/* Parquet and Arrow, decompressed or not, would start programs. */
static bool is_for_another_program(const uint8_t *data, size_t size)
{
    return memmem(data, size, "PAR1", 4) || memmem(data, size, "ARROW1", 6) ||
           (size > 4 && memcmp(data, "\xff\xff\xff\xff", 4) == 0);
}

/* What is certainly not text is refused in every format. */
static void check_recognized(const uint8_t *data, size_t size,
                             const struct dt_documents_options *options, int rc)
{
    size_t head = size < DT_FILE_TYPE_HEAD ? size : DT_FILE_TYPE_HEAD;
    char *exact = malloc(head ? head : 1); /* so that AddressSanitizer sees where it ends */
    memcpy(exact, data, head);
    const struct dt_file_type *what = dt_file_type_recognize(exact, head);
    if (what && rc >= 0 && what->kind == DT_FILE_BINARY && what->format == NULL)
        abort();
    if (what && rc >= 0 && what->kind == DT_FILE_AMBIGUOUS && what->format == NULL &&
        options->format == DT_DOCUMENT_FORMAT_AUTO)
        abort();
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32];
    char *const paths[] = {path};
    struct dt_documents *docs = NULL;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_error err;
    if (size == 0)
        return 0;
    struct dt_documents_options options = {
        .format = (enum dt_document_format)(data[0] % DT_DOCUMENT_FORMAT_PARQUET),
        .field = data[0] & 8 ? "a.b" : NULL,
        .most = data[0] & 32 ? 20 : 0,
        .bad_lines = {.skip = data[0] & 16, .most = 3},
        .partial = data[0] & 64};
    if (options.format == DT_DOCUMENT_FORMAT_SEPARATOR ||
        options.format == DT_DOCUMENT_FORMAT_SPLIT ||
        (options.format == DT_DOCUMENT_FORMAT_AUTO && data[0] & 16))
        options.separator = "--";
    if (is_for_another_program(data + 1, size - 1))
        return 0;
    int fd = fuzz_file(data + 1, size - 1, path);
    int rc = dt_documents_open(&docs, paths, 1, &options, &err);
    while (rc >= 0 && (rc = dt_documents_next(docs, &doc, &err)) > 0) {
        check_again(&doc);
        if (options.most && doc.text.size > options.most)
            abort();
    }
    check_recognized(data + 1, size - 1, &options, rc);
    dt_document_release(&doc);
    dt_documents_close(docs);
    close(fd);
    return 0;
}
