/* SPDX-License-Identifier: MIT */
/*
 * Splits plain text into documents, for io/document.h. If the format was guessed and the text is
 * ambiguous, the error says how to name the format.
 */
#ifndef DT_IO_PLAIN_TEXT_H
#define DT_IO_PLAIN_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "io/document.h"
#include "io/input.h"

/* How the current file is split; the owner releases scratch. */
struct dt_plain_text {
    enum dt_document_format format; /* not AUTO, not JSONL */
    bool guessed, allow_special;
    const char *separator;
    size_t most;         /* bytes of a document */
    uint64_t line;       /* lines read so far, where the separator is one */
    uint64_t separators; /* found so far */
    uint64_t inside;     /* the first line with the separator in the middle; 0 if there is none */
    bool cut;            /* the last text is a prefix: its delimiter was not read */
    struct dt_buffer scratch;
};

/* Reads the next document's text. Returns 1, 0 at the end of the file, or an error. Of a text
 * above the limit only a prefix longer than the limit is read. */
int dt_plain_text_next(struct dt_plain_text *p, struct dt_input *in, struct dt_buffer *text,
                       struct dt_error *err) DT_MUST_CHECK;

#endif
