/* SPDX-License-Identifier: MIT */
/* HTML pages in any encoding: the first byte chooses the options. The text must be UTF-8, and meta
 * an object of JSON. Without the plug-in html.so only encodings are detected and decoded. */
#include <string.h>

#include "extract/charset.h"
#include "extract/page.h"
#include "fuzz.h"
#include "unicode/utf8.h"
#include "json/json.h"

static void check(const struct dt_document *doc)
{
    struct json_object *meta;
    struct dt_error err;
    if (dt_utf8_valid_prefix(doc->text.data, doc->text.size) != doc->text.size)
        abort();
    if (dt_json_parse(doc->meta.data, doc->meta.size, "meta", &meta, &err) < 0)
        abort();
    if (dt_utf8_valid_prefix(doc->meta.data, doc->meta.size) != doc->meta.size)
        abort();
    json_object_put(meta);
}

static void decode(const char *page, size_t size)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    struct dt_charset_clues clues = dt_charset_clues(page, size, page, size < 40 ? size : 40);
    const struct dt_charset *charset = dt_charset_detect(page, size, &clues);
    if (dt_charset_decode(charset, page, size, &text) >= 0 &&
        dt_utf8_valid_prefix(text.data, text.size) != text.size)
        abort();
    dt_buffer_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dt_page_scratch scratch;
    static const struct dt_html_parser *parser;
    static bool tried;
    struct dt_error err;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    if (size == 0)
        return 0;
    if (!tried && dt_html_parser_load(&parser, &err) < 0)
        parser = NULL;
    tried = true;
    char *page = malloc(size); /* so that AddressSanitizer sees where it ends */
    memcpy(page, data + 1, size - 1);
    decode(page, size - 1);
    struct dt_page_options options = {
        .parser = parser, .all = data[0] & 1, .links = data[0] & 2, .most = 1 << 20};
    dt_buffer_append(&doc.text, page, size - 1);
    if (parser && dt_page_extract(&options, &doc, &scratch) == DT_PAGE_KEPT)
        check(&doc);
    dt_document_release(&doc);
    free(page);
    return 0;
}
