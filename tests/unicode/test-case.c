/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "hash/hash.h"
#include "unicode/case.h"
#include "unicode/utf8.h"

static void assert_changes(enum dt_case how, const char *text, const char *expected)
{
    struct dt_buffer out = DT_BUFFER_EMPTY;
    dt_case_change(how, text, strlen(text), &out);
    dt_buffer_append(&out, "", 1);
    assert_string_equal(out.data, expected);
    dt_buffer_release(&out);
}

static void letters_may_become_several(void **state)
{
    (void)state;
    assert_changes(DT_CASE_UPPER, "Straße ŉ ﬁ \u0390 ǆ ა",
                   "STRASSE ʼN FI \u0399\u0308\u0301 Ǆ Ა");
    assert_changes(DT_CASE_LOWER, "İST ǅ Ა ẞ", "i̇st ǆ ა ß");
    assert_changes(DT_CASE_CAPITALIZE, "ßAB", "Ssab");
    assert_changes(DT_CASE_CAPITALIZE, "ǆABC", "ǅabc");
    assert_changes(DT_CASE_CAPITALIZE, "აა Ა", "აა ა");
    assert_changes(DT_CASE_UPPER, "", "");
    assert_changes(DT_CASE_LOWER, "A\xff\xc3", "a\xff\xc3"); /* not UTF-8 */
}

/* Greek's sigma at the end of a word. */
static void a_small_letter_may_depend_on_its_place(void **state)
{
    (void)state;
    assert_changes(DT_CASE_LOWER, "ΟΔΟΣ ΣΟΣ. ΟΣ'Ο Σ 1Σ", "οδος σος. οσ'ο σ 1σ");
    assert_changes(DT_CASE_LOWER, "Ο\u0301Σ\u0301", "ο\u0301ς\u0301");
    assert_changes(DT_CASE_LOWER, "\U0001f130Σ Σ\U0001f130", "\U0001f130ς σ\U0001f130");
    assert_changes(DT_CASE_LOWER, "Α\xffΣ", "α\xffσ");
    assert_changes(DT_CASE_CAPITALIZE, "ΣΣ", "Σς");
    assert_changes(DT_CASE_UPPER, "ς", "Σ");
}

/* Of all characters, after a letter and before one: as those of Python 3.11, which has Unicode 14,
 * but for six small letters that Unicode 15 added, U+1DF25 to U+1DF2A. */
static void changed_characters_are_those_of_python(void **state)
{
    static const uint64_t hashes[] = {0xbdd1ab2b4a3a731c, 0x5ddf1116703b3230, 0xae211f9ad63d5e3a};
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct dt_buffer text = DT_BUFFER_EMPTY, out = DT_BUFFER_EMPTY;
        for (uint32_t code = 0; code < 0x110000; code++) {
            char bytes[4];
            if (code >= 0xd800 && code < 0xe000)
                continue;
            dt_buffer_clear(&text);
            dt_buffer_append(&text, bytes, dt_utf8_encode(code, bytes));
            dt_buffer_add_string(&text, "AΣ");
            dt_buffer_append(&text, bytes, dt_utf8_encode(code, bytes));
            dt_case_change((enum dt_case)how, text.data, text.size, &out);
        }
        if (dt_hash(out.data, out.size) != hashes[how])
            fail_msg("%d: %llx", how, (unsigned long long)dt_hash(out.data, out.size));
        dt_buffer_release(&text);
        dt_buffer_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_may_become_several),
        cmocka_unit_test(a_small_letter_may_depend_on_its_place),
        cmocka_unit_test(changed_characters_are_those_of_python),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
