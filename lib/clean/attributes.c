/* SPDX-License-Identifier: MIT */
#include "clean/attributes.h"

#include <assert.h>

#include "unicode/utf8.h"
#include "json/json-number.h"
#include "json/json.h"

#define DIGITS 24

static char *whole_number(uint64_t x, char text[DIGITS])
{
    char *p = text + DIGITS - 1;
    *p = '\0';
    do
        *--p = (char)('0' + x % 10);
    while ((x /= 10) > 0);
    return p;
}

/* Most values are whole numbers, and 0. */
static void add_value(struct dt_buffer *out, double value)
{
    char text[DIGITS];
    if (value >= 0 && value < 1e15 && value == (double)(uint64_t)value)
        dt_buffer_add_string(out, whole_number((uint64_t)value, text));
    else
        dt_json_add_number(out, value);
}

/* Members have different names: the second rule of a name has -2 after it. */
static void add_attribute(struct dt_buffer *out, const char *comma, const char *name, int namesakes,
                          const char *chars, double value)
{
    dt_buffer_add_string(out, comma);
    dt_buffer_add_string(out, "\"dt__");
    dt_buffer_add_string(out, name);
    if (namesakes > 0)
        dt_buffer_printf(out, "-%d", namesakes + 1);
    dt_buffer_add_string(out, "\":[[0,");
    dt_buffer_add_string(out, chars);
    dt_buffer_add_char(out, ',');
    add_value(out, value);
    dt_buffer_add_string(out, "]]");
}

void dt_attributes_write(const struct dt_rule *rules, int count, struct dt_document *document,
                         struct dt_rule_scratch *scratch, struct dt_buffer *out)
{
    char text[DIGITS], *chars = NULL;
    bool drop = false;
    dt_buffer_add_string(out, "{\"id\":");
    dt_json_add_string(out, document->id.data, document->id.size);
    dt_buffer_add_string(out, ",\"attributes\":{");
    dt_rule_start(scratch);
    scratch->exact = true;
    assert(count > 0);
    for (int i = 0; i < count; i++) {
        struct dt_finding finding;
        drop = !dt_rule_apply(&rules[i], document, scratch, &finding) || drop;
        if (i == 0) /* makes the text valid UTF-8 */
            chars = whole_number(dt_utf8_count(document->text.data, document->text.size), text);
        add_attribute(out, i ? "," : "", rules[i].name, rules[i].namesakes, chars, finding.value);
    }
    add_attribute(out, ",", "drop", 0, chars, drop);
    dt_buffer_add_string(out, "}}\n");
}
