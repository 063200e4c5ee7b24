/* SPDX-License-Identifier: MIT */
/*
 * One page: from the bytes of a WARC record or a file to a document.
 *
 *     struct dt_page_scratch scratch = {0};
 *     outcome = dt_page_extract(&options, &document, &scratch);
 *     if (outcome == DT_PAGE_KEPT)
 *         write(&document);
 */
#ifndef DT_EXTRACT_PAGE_H
#define DT_EXTRACT_PAGE_H

#include "document/document.h"
#include "extract/main-text.h"

struct dt_page_options {
    const struct dt_html_parser *parser;
    const struct dt_charset_detector *detector; /* or NULL */
    bool all;                                   /* the whole text, not the main text */
    bool links;                                 /* keep addresses of links: [text](address) */
    bool drop_truncated;                        /* drop pages that the crawler truncated */
    size_t most;                                /* bytes of a decoded page */
    uint64_t min_bytes;                         /* drop shorter texts */
};

/* What became of a page; all but the first are reasons to drop it. */
enum dt_page_outcome {
    DT_PAGE_KEPT,
    DT_PAGE_RECORD,    /* a record of another kind: warcinfo, request, metadata and so on */
    DT_PAGE_REVISIT,   /* a revisit: the page is elsewhere */
    DT_PAGE_HTTP,      /* a response whose HTTP header cannot be read */
    DT_PAGE_STATUS,    /* another HTTP status than 200 */
    DT_PAGE_TYPE,      /* another type than HTML */
    DT_PAGE_TRUNCATED, /* with drop_truncated */
    DT_PAGE_CODING,    /* a damaged or unknown content coding */
    DT_PAGE_BROTLI,    /* br, without the plug-in for it */
    DT_PAGE_TOO_LONG,  /* more than `most` bytes */
    DT_PAGE_CHARSET,   /* an encoding that cannot be decoded */
    DT_PAGE_NESTING,   /* too many elements inside one another */
    DT_PAGE_NO_TEXT,   /* no text, or less than min_bytes */
    DT_PAGE_OUTCOMES
};
/* "record", "status" and so on, for statistics, in the order above. */
extern const char *const dt_page_outcome_names[DT_PAGE_OUTCOMES];

/* Memory for one thread; all-zero is valid. */
struct dt_page_scratch {
    struct dt_buffer body, html, meta, text;
    struct dt_tree tree;
    struct dt_blocks blocks;
    struct dt_main_text main;
    uint64_t replaced; /* of the last page: characters that its encoding does not have */
};

/* Turns a document of dt_warc_reader_records, or one whose text is HTML, into the document with
 * the page's text and meta. Of a dropped page the text is undefined, and meta has what is known. */
enum dt_page_outcome dt_page_extract(const struct dt_page_options *options,
                                     struct dt_document *document, struct dt_page_scratch *scratch);
void dt_page_scratch_release(struct dt_page_scratch *scratch);

#endif
