/* SPDX-License-Identifier: MIT */
#include "extract/html-parser.h"

#include "base/plugin.h"

int dt_html_parser_load(const struct dt_html_parser **parser, struct dt_error *err)
{
    static const struct dt_plugin kind = {"HTML parser", "dt_html_parser", DT_HTML_PARSER_ABI,
                                          ": built without libxml2 (install libxml2-dev, then "
                                          "make)"};
    return dt_plugin_load(&kind, "html", (const void **)parser, err);
}
