/* SPDX-License-Identifier: MIT */
#include "text/attributes.h"

#include "base/json.h"
#include "text/utf8.h"

static void add_attribute(struct dt_buffer *out, const char *comma, const char *name,
                          uint64_t chars, double value)
{
    dt_buffer_printf(out, "%s\"dt__%s\":[[0,%llu,", comma, name, (unsigned long long)chars);
    dt_buffer_add_real(out, value);
    dt_buffer_add_string(out, "]]");
}

void dt_attributes_write(const struct dt_rule *rules, int count, struct dt_document *document,
                         struct dt_rule_scratch *scratch, struct dt_buffer *out)
{
    uint64_t chars = 0;
    bool drop = false;
    dt_buffer_add_string(out, "{\"id\":");
    dt_json_add_string(out, document->id.data, document->id.size);
    dt_buffer_add_string(out, ",\"attributes\":{");
    dt_rule_start(scratch);
    for (int i = 0; i < count; i++) {
        struct dt_finding finding;
        drop = !dt_rule_apply(&rules[i], document, scratch, &finding) || drop;
        if (i == 0) /* which makes the text valid UTF-8 */
            chars = dt_utf8_count(document->text.data, document->text.size);
        add_attribute(out, i ? "," : "", rules[i].name, chars, finding.value);
    }
    add_attribute(out, count ? "," : "", "drop", chars, drop);
    dt_buffer_add_string(out, "}}\n");
}
