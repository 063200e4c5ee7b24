/* SPDX-License-Identifier: MIT */
/* A text through every rule that there is. It must come out as valid UTF-8. */
#include <string.h>

#include "clean/attributes.h"
#include "clean/quality.h"
#include "fuzz.h"
#include "unicode/utf8.h"

static const struct dt_quality_rule *const tables[] = {
    dt_quality_rules_gopher, dt_quality_rules_c4, dt_quality_rules_fineweb, dt_quality_rules_dolma};

static int select_all(struct dt_rule rules[DT_RULES_MAX], uint8_t choice)
{
    struct dt_clean_options options = {.mojibake = choice & 1,
                                       .invisible = choice & 2,
                                       .casefold = choice & 4,
                                       .space = (enum dt_space)(choice >> 3 & 1 ? 2 : 0),
                                       .form = (enum dt_normal_form)(choice >> 4 & 3) % 3,
                                       .masks = choice & 64 ? 63 : 0,
                                       .max_masked = UINT64_MAX};
    struct dt_error err;
    int count;
    if (dt_rule_select(&options, rules, &count, &err) < 0)
        abort();
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct dt_quality_rule *rule = tables[t]; rule->name; rule++)
            rules[count++] = dt_quality_step(rule, choice & 128 ? 1 : 0);
    dt_quality_group_lines(rules, count);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dt_rule rules[DT_RULES_MAX];
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_rule_scratch scratch = {0};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    if (size == 0)
        return 0;
    int count = select_all(rules, data[0]);
    dt_buffer_add_string(&doc.id, "x");
    dt_buffer_append(&doc.text, data + 1, size - 1);
    dt_attributes_write(rules, count, &doc, &scratch, &out);
    if (dt_utf8_valid_prefix(doc.text.data, doc.text.size) < doc.text.size ||
        dt_utf8_valid_prefix(out.data, out.size) < out.size)
        abort();
    dt_document_release(&doc);
    dt_rule_scratch_release(&scratch);
    dt_buffer_release(&out);
    return 0;
}
