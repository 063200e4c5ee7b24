/* SPDX-License-Identifier: MIT */
#include "extract/html-parser.h"

#include "base/plugin.h"

int dt_html_parser_load(const struct dt_html_parser **parser, struct dt_error *err)
{
    DT_PLUGIN(kind, html_parser, "HTML parser", DT_HTML_PARSER_ABI,
              ": built without libxml2 (make deps-data, or install libxml2-dev; then make)");
    return dt_plugin_load(&kind, "html", (const void **)parser, err);
}
