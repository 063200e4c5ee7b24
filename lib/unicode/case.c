/* SPDX-License-Identifier: MIT */
#include "unicode/case.h"

#include <stdbool.h>

#include "unicode/unicode.h"
#include "unicode/utf8.h"

#define SIGMA       0x3a3 /* whose small letter at the end of a word is U+03C2 */
#define FINAL_SIGMA 0x3c2
#define DOTTED_I    0x130 /* whose small letter is i and U+0307 */

/* Cased of Unicode, but for characters that are ignorable, too. */
static bool is_cased(uint32_t code)
{
    enum dt_category category = dt_unicode_category(code);
    bool is_other = code == 0xaa || code == 0xba || (code >= 0x2160 && code <= 0x217f) ||
                    (code >= 0x24b6 && code <= 0x24e9) || (code >= 0x1f130 && code <= 0x1f149) ||
                    (code >= 0x1f150 && code <= 0x1f169) || (code >= 0x1f170 && code <= 0x1f189);
    return is_other || (category >= DT_CATEGORY_LU && category <= DT_CATEGORY_LT);
}

/* Case_Ignorable of Unicode: characters inside words that have no case. */
static bool is_ignorable(uint32_t code)
{
    static const uint32_t others[] = {'\'',   '.',    ':',    0xb7,   0x387,  0x55f,
                                      0x5f4,  0x2018, 0x2019, 0x2024, 0x2027, 0xfe13,
                                      0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a};
    enum dt_category category = dt_unicode_category(code);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (code == others[i])
            return true;
    return category == DT_CATEGORY_MN || category == DT_CATEGORY_ME || category == DT_CATEGORY_CF ||
           category == DT_CATEGORY_LM || category == DT_CATEGORY_SK;
}

/* Whether a letter of the same word follows. */
static bool goes_on(const char *text, size_t size)
{
    uint32_t code = 0;
    for (size_t at = 0, taken; at < size; at += taken) {
        taken = dt_utf8_next(text + at, size - at, &code);
        if (taken == 0 || !is_ignorable(code))
            return taken > 0 && is_cased(code);
    }
    return false;
}

static unsigned lower(uint32_t code, bool ends_word, uint32_t parts[DT_UNICODE_CASE_MAX])
{
    parts[0] = code == SIGMA && ends_word ? FINAL_SIGMA : dt_unicode_lower(code);
    parts[1] = 0x307;
    return code == DOTTED_I ? 2 : 1;
}

void dt_case_change(enum dt_case how, const char *text, size_t size, struct dt_buffer *out)
{
    bool in_word = false; /* a letter with case is before */
    for (size_t at = 0, taken; at < size; at += taken) {
        uint32_t code = 0, parts[DT_UNICODE_CASE_MAX];
        char bytes[4];
        taken = dt_utf8_next(text + at, size - at, &code);
        if (taken == 0) {
            dt_buffer_add_char(out, text[at]);
            in_word = false;
            taken = 1;
            continue;
        }
        bool ends = in_word && code == SIGMA && !goes_on(text + at + taken, size - at - taken);
        unsigned count = how == DT_CASE_UPPER                   ? dt_unicode_full_upper(code, parts)
                         : how == DT_CASE_CAPITALIZE && at == 0 ? dt_unicode_full_title(code, parts)
                                                                : lower(code, ends, parts);
        for (unsigned i = 0; i < count; i++)
            dt_buffer_append(out, bytes, dt_utf8_encode(parts[i], bytes));
        in_word = is_ignorable(code) ? in_word : is_cased(code);
    }
}
