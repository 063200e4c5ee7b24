/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "extract/charset.h"

static const char *detect(const char *page, const char *content_type)
{
    size_t size = strlen(page);
    struct dt_charset_clues clues =
        dt_charset_clues(page, size, content_type, content_type ? strlen(content_type) : 0);
    return dt_charset_detect(page, size, &clues)->name;
}

static void labels_are_found_without_case_and_space(void **state)
{
    (void)state;
    assert_string_equal(dt_charset_find(" Latin1\n", 8)->name, "windows-1252");
    assert_string_equal(dt_charset_find("SJIS", 4)->name, "Shift_JIS");
    assert_string_equal(dt_charset_find("tis-620", 7)->name, "windows-874");
    assert_null(dt_charset_find("utf-7", 5));
    assert_null(dt_charset_find("", 0));
}

static void statements_count_in_their_order(void **state)
{
    (void)state;
    assert_string_equal(detect("\xef\xbb\xbf\xe9", "text/html; charset=big5"), "UTF-8");
    assert_string_equal(detect("\xff\xfe<\0", NULL), "UTF-16LE");
    assert_string_equal(detect("<meta charset=koi8-r>\xc1", "text/html; charset=\"windows-1251\""),
                        "windows-1251");
    assert_string_equal(detect("<html><META http-equiv=Content-Type content='text/html; "
                               "charset=KOI8-R'>\xc1",
                               "text/html"),
                        "KOI8-R");
    assert_string_equal(detect("<!-- <meta charset=koi8-r> --><meta charset=euc-kr>\xc1\xc1", NULL),
                        "EUC-KR");
    assert_string_equal(detect("<meta charset=utf-16>abc", NULL), "UTF-8");
    assert_string_equal(detect("<?xml version='1.0' encoding=\"koi8-r\"?><p>\xc1", NULL), "KOI8-R");
    assert_string_equal(detect("<?xml encoding='koi8-r'?><meta charset=euc-kr>\xc1\xc1", NULL),
                        "EUC-KR");
    assert_string_equal(detect("<?xml version='1.0'?><p>\xc1", NULL), "windows-1252");
    assert_string_equal(detect("<p><?xml encoding='koi8-r'?>\xc1", NULL), "windows-1252");
    assert_string_equal(detect("<body><meta charset=koi8-r>\xc1", NULL), "windows-1252");
}

static void statements_that_bytes_contradict_are_passed_over(void **state)
{
    (void)state;
    assert_string_equal(detect("<meta charset=windows-1251>\xc1", "text/html; charset=utf-8"),
                        "windows-1251");
    assert_string_equal(detect("na\xc3\xafve", "text/html; charset=iso-8859-1"), "UTF-8");
    assert_string_equal(detect("<meta charset=utf-8>caf\xe9 au lait", NULL), "windows-1252");
    assert_string_equal(detect("<html lang=ru>\xcf\xf0 \xe8", "text/html; charset=utf-8"),
                        "windows-1251");
    assert_string_equal(
        detect("<html lang=ru><meta charset=utf-8>\xcf\xf0 \xe8", "text/html; charset=utf-8"),
        "windows-1251");
    assert_string_equal(detect("plain", "text/html; charset=iso-8859-1"), "windows-1252");
}

/* The text n times, and one byte that UTF-8 does not have. */
static const char *detect_with_one_wrong_byte(size_t n, const char *text)
{
    struct dt_buffer page = DT_BUFFER_EMPTY;
    for (size_t i = 0; i < n; i++)
        dt_buffer_add_string(&page, text);
    dt_buffer_add_string(&page, "<meta charset=windows-1251>\xe9 end");
    const char *name = detect(page.data, "text/html; charset=utf-8");
    dt_buffer_release(&page);
    return name;
}

static void a_few_wrong_bytes_do_not_contradict_utf8(void **state)
{
    (void)state;
    assert_string_equal(detect_with_one_wrong_byte(100, "\xc3\xa4 "), "UTF-8");
    assert_string_equal(detect_with_one_wrong_byte(10, "\xc3\xa4 "), "windows-1251");
    assert_string_equal(detect_with_one_wrong_byte(100, "abc "), "windows-1251");
}

static void without_a_statement_content_and_language_decide(void **state)
{
    (void)state;
    assert_string_equal(detect("na\xc3\xafve", NULL), "UTF-8");
    assert_string_equal(detect("na\xc3\xafve \xc3", NULL), "UTF-8"); /* cut in a character */
    assert_string_equal(detect("caf\xe9 au lait", NULL), "windows-1252");
    assert_string_equal(detect("<html lang=\"ru-RU\">\xcf\xf0 \xe8", NULL), "windows-1251");
    assert_string_equal(detect("<html class=x lang=zh-TW>\xa4\xa4 \xa4", NULL), "Big5");
    assert_string_equal(detect("<html lang=run>\xcf\xf0 \xe8", NULL), "windows-1252");
}

static void assert_decoded(const char *label, const char *bytes, size_t size, const char *expected,
                           int64_t replaced)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    const struct dt_charset *charset = dt_charset_find(label, strlen(label));
    assert_int_equal(dt_charset_decode(charset, bytes, size, &text), replaced);
    assert_string_equal(text.data, expected);
    dt_buffer_release(&text);
}

static void bytes_become_utf8_and_replacements_are_counted(void **state)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    (void)state;
    assert_decoded("latin1",
                   "\x93"
                   "caf\xe9\x94",
                   6, "“café”", 0);
    assert_decoded("windows-1251", "\xcf\xf0", 2, "Пр", 0);
    assert_decoded("shift_jis", "\x93\xfa\x96{", 4, "日本", 0);
    assert_decoded("utf-16le", "\xff\xfe<\0\xe4\0", 6, "<ä", 0);
    assert_decoded("utf-16le",
                   "a\0\0\xd8"
                   "b\0\0\xdc"
                   "c\0",
                   10,
                   "a\xef\xbf\xbd"
                   "b\xef\xbf\xbd"
                   "c",
                   2);
    assert_decoded("utf-16be", "\0a\xd8\0\0b\xd8\x3d\xde\0", 10,
                   "a\xef\xbf\xbd"
                   "b😀",
                   1);
    assert_decoded("utf-16le", "a\0\0\xd8", 4, "a\xef\xbf\xbd", 1);
    assert_decoded("utf-16le", "a\0b", 3, "a\xef\xbf\xbd", 1);
    assert_decoded("utf-8",
                   "\xef\xbb\xbf"
                   "a\xff"
                   "b",
                   6,
                   "a\xef\xbf\xbd"
                   "b",
                   1);
    assert_decoded("euc-kr",
                   "a\xff\xff"
                   "b",
                   4,
                   "a\xef\xbf\xbd\xef\xbf\xbd"
                   "b",
                   2);
    /* letters that a mark may follow */
    assert_decoded("windows-1258", "Xin ch\xe0o", 8, "Xin chào", 0);
    assert_decoded("windows-1255", "\xf9\xec\xe5\xed", 4, "שלום", 0);
    assert_decoded("windows-1258",
                   "a\x8a"
                   "b",
                   3,
                   "a\xef\xbf\xbd"
                   "b",
                   1);
    assert_decoded("iso-2022-jp", "\x1b$B-!4A\x1b(B1\x1b$@|\\\x1b(I1\x1b(J~\\a\x1b(B\\", 31,
                   "①漢1\ufa2a\uff71\u203e\u00a5a\\", 0);
    assert_decoded("iso-2022-jp", "a\xe9\x1b(Xb\x1b$B4\nA", 12,
                   "a\xef\xbf\xbd\xef\xbf\xbd(Xb\xef\xbf\xbd\n\xef\xbf\xbd", 4);
    assert_decoded("iso-2022-jp", "\x1b$B\xff$\x22", 6, "\xef\xbf\xbdあ", 1); /* its state stays */
    assert_decoded("euc-jp", "a\xc6", 2, "a\xef\xbf\xbd", 1); /* cut in a character */
    assert_int_equal(dt_charset_decode(dt_charset_find("hz-gb-2312", 10), "a", 1, &text), -1);
    dt_buffer_release(&text);
}

static void what_glibc_decodes_otherwise_is_as_the_standard_says(void **state)
{
    (void)state;
    assert_decoded("big5", "\xa1\xfe\xa1\xe3\xa2\x41\xa1\x45\xa4\xa4", 10, "／～∕‧中", 0);
    assert_decoded("big5", "\xa1\x5a\xa1\xc3\xa2\x40\xa2\xcc\xa3\xe1", 10, "╴￣＼十€", 0);
    assert_decoded("big5", "\xff\xa1\xfe", 3, "\xef\xbf\xbd／", 1);
    assert_decoded("gbk", "\x80 12 \xd6\xd0\x80\xa3\xa0", 10, "€ 12 中€\u3000", 0);
    assert_decoded("euc-jp", "\xfc\xe2\xb6\xb6\xf9\xa1\xf9\xdf\xf9\xe0\xfa\xa1\xfc\xfe", 14,
                   "\u9ad9\u6a4b\u7e8a\ufa0f\ufa10\u5fde\uff02", 0);
    assert_decoded("gbk", "a\0b", 3, "a", 0); /* a zero byte stays */
    assert_decoded("koi8-ru", "\xae\xbe\xad", 3, "ўЎґ", 0);
    assert_decoded("mac", "\xc6\xf0", 2, "∆\xef\xa3\xbf", 0);
    assert_decoded("x-mac-cyrillic", "\xff", 1, "€", 0);
    assert_decoded("greek", "\xc4", 1, "Δ", 0);
}

/* Each encoding that has a name for it is one that this C library has. */
static void iconv_has_every_encoding(void **state)
{
    static const char *const labels[] = {
        "utf-8",       "latin1",        "cp1251", "gbk",         "sjis",        "euc-jp",
        "euc-kr",      "latin2",        "cp1250", "cp1254",      "cp1256",      "big5",
        "l9",          "cp1253",        "greek",  "cp1257",      "cp1255",      "cp1258",
        "tis-620",     "koi8-r",        "koi8-u", "gb18030",     "utf-16le",    "utf-16be",
        "iso-2022-jp", "ibm866",        "latin3", "latin4",      "cyrillic",    "arabic",
        "hebrew",      "logical",       "latin6", "iso-8859-13", "iso-8859-14", "iso-8859-16",
        "mac",         "x-mac-cyrillic"};
    (void)state;
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        struct dt_buffer text = DT_BUFFER_EMPTY;
        const struct dt_charset *charset = dt_charset_find(labels[i], strlen(labels[i]));
        if (charset == NULL || dt_charset_decode(charset, "ab", 2, &text) < 0)
            fail_msg("%s is not decoded", labels[i]);
        dt_buffer_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_found_without_case_and_space),
        cmocka_unit_test(statements_count_in_their_order),
        cmocka_unit_test(statements_that_bytes_contradict_are_passed_over),
        cmocka_unit_test(a_few_wrong_bytes_do_not_contradict_utf8),
        cmocka_unit_test(without_a_statement_content_and_language_decide),
        cmocka_unit_test(bytes_become_utf8_and_replacements_are_counted),
        cmocka_unit_test(what_glibc_decodes_otherwise_is_as_the_standard_says),
        cmocka_unit_test(iconv_has_every_encoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
