/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "language/script.h"
#include "unicode/character.h"

static void assert_split(enum dt_segmentation segmentation, const char *text, const char *expected)
{
    struct dt_segmenter *s = dt_segmenter_new(segmentation);
    const uint32_t *ends;
    size_t count = dt_segmenter_split(s, text, strlen(text), &ends), from = 0;
    char found[256] = "";
    for (size_t i = 0; i < count; from = ends[i++]) {
        strcat(found, i ? " " : "");
        strncat(found, text + from, ends[i] - from);
    }
    assert_string_equal(found, expected);
    assert_int_equal(from, strlen(text));
    dt_segmenter_free(s);
}

static void characters_are_grapheme_clusters(void **state)
{
    struct dt_error err;
    (void)state;
    assert_int_equal(dt_segmentation_load(DT_SEGMENTATION_CHARACTERS, &err), 0);
    assert_string_equal(dt_segmentation_describe(DT_SEGMENTATION_CHARACTERS), "characters");
    assert_split(DT_SEGMENTATION_CHARACTERS, "", "");
    assert_split(DT_SEGMENTATION_CHARACTERS, "中文", "中 文");
    assert_split(DT_SEGMENTATION_CHARACTERS, "ที่นี่", "ที่ นี่");
}

static void icu_finds_words(void **state)
{
    struct dt_error err;
    (void)state;
    if (dt_segmentation_load(DT_SEGMENTATION_ICU, &err) < 0)
        skip();
    assert_memory_equal(dt_segmentation_describe(DT_SEGMENTATION_ICU), "ICU ", 4);
    assert_split(DT_SEGMENTATION_ICU, "文件系统", "文件 系统");
    assert_split(DT_SEGMENTATION_ICU, "ภาษาไทย", "ภาษา ไทย");
}

static void letters_of_scripts_without_blanks_are_known(void **state)
{
    (void)state;
    static const uint32_t yes[] = {0x0e01, 0x0e4e, 0x0e99, 0x1000, 0x1780,  0x3042,  0x30a2,
                                   0x30fc, 0x3005, 0x4e00, 0x9fff, 0x20000, 0x323af, 0xff71};
    static const uint32_t no[] = {'a',    0x0e3f, 0x0e50, 0x104a, 0x17d4, 0x3002,
                                  0x300c, 0xac00, 0x3131, 0xff0c, 0x323b0};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true(dt_character_kind_of_code(yes[i]) & DT_CHARACTER_UNSPACED);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(dt_character_kind_of_code(no[i]) & DT_CHARACTER_UNSPACED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_grapheme_clusters),
        cmocka_unit_test(icu_finds_words),
        cmocka_unit_test(letters_of_scripts_without_blanks_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
