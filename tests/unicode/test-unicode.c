/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/hash.h"
#include "base/rng.h"
#include "unicode/unicode.h"

#define CODES 0x110000u

/* utf8proc has the same facts from the same source, by another way. */
static void need_the_same_version(void)
{
    if (strcmp(utf8proc_unicode_version(), dt_unicode_version) == 0)
        return;
    print_message("skipped: utf8proc has Unicode %s, the tables have %s\n",
                  utf8proc_unicode_version(), dt_unicode_version);
    skip();
}

static const int categories[] = {
    [DT_CATEGORY_CN] = UTF8PROC_CATEGORY_CN, [DT_CATEGORY_LU] = UTF8PROC_CATEGORY_LU,
    [DT_CATEGORY_LL] = UTF8PROC_CATEGORY_LL, [DT_CATEGORY_LT] = UTF8PROC_CATEGORY_LT,
    [DT_CATEGORY_LM] = UTF8PROC_CATEGORY_LM, [DT_CATEGORY_LO] = UTF8PROC_CATEGORY_LO,
    [DT_CATEGORY_MN] = UTF8PROC_CATEGORY_MN, [DT_CATEGORY_MC] = UTF8PROC_CATEGORY_MC,
    [DT_CATEGORY_ME] = UTF8PROC_CATEGORY_ME, [DT_CATEGORY_ND] = UTF8PROC_CATEGORY_ND,
    [DT_CATEGORY_NL] = UTF8PROC_CATEGORY_NL, [DT_CATEGORY_NO] = UTF8PROC_CATEGORY_NO,
    [DT_CATEGORY_PC] = UTF8PROC_CATEGORY_PC, [DT_CATEGORY_PD] = UTF8PROC_CATEGORY_PD,
    [DT_CATEGORY_PS] = UTF8PROC_CATEGORY_PS, [DT_CATEGORY_PE] = UTF8PROC_CATEGORY_PE,
    [DT_CATEGORY_PI] = UTF8PROC_CATEGORY_PI, [DT_CATEGORY_PF] = UTF8PROC_CATEGORY_PF,
    [DT_CATEGORY_PO] = UTF8PROC_CATEGORY_PO, [DT_CATEGORY_SM] = UTF8PROC_CATEGORY_SM,
    [DT_CATEGORY_SC] = UTF8PROC_CATEGORY_SC, [DT_CATEGORY_SK] = UTF8PROC_CATEGORY_SK,
    [DT_CATEGORY_SO] = UTF8PROC_CATEGORY_SO, [DT_CATEGORY_ZS] = UTF8PROC_CATEGORY_ZS,
    [DT_CATEGORY_ZL] = UTF8PROC_CATEGORY_ZL, [DT_CATEGORY_ZP] = UTF8PROC_CATEGORY_ZP,
    [DT_CATEGORY_CC] = UTF8PROC_CATEGORY_CC, [DT_CATEGORY_CF] = UTF8PROC_CATEGORY_CF,
    [DT_CATEGORY_CS] = UTF8PROC_CATEGORY_CS, [DT_CATEGORY_CO] = UTF8PROC_CATEGORY_CO};

static void each_character_is_what_utf8proc_says(void **state)
{
    (void)state;
    need_the_same_version();
    for (uint32_t code = 0; code < CODES; code++) {
        const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)code);
        if (categories[dt_unicode_category(code)] != p->category ||
            dt_unicode_record(code)->combining != p->combining_class ||
            dt_unicode_lower(code) != (uint32_t)utf8proc_tolower((utf8proc_int32_t)code))
            fail_msg("U+%04X", code);
    }
}

static void each_decomposition_is_that_of_utf8proc(void **state)
{
    (void)state;
    need_the_same_version();
    for (uint32_t code = 0; code < CODES; code++) {
        uint32_t parts[DT_UNICODE_LONGEST];
        utf8proc_int32_t theirs[8];
        int boundary = 0;
        unsigned n = dt_unicode_decompose(code, parts);
        if (n != utf8proc_decompose_char((utf8proc_int32_t)code, theirs, 8, UTF8PROC_DECOMPOSE,
                                         &boundary) ||
            memcmp(parts, theirs, n * sizeof *parts) != 0)
            fail_msg("U+%04X", code);
    }
}

static void assert_same_form(const uint32_t *points, size_t count)
{
    struct dt_ids ours = DT_IDS_EMPTY;
    utf8proc_uint8_t text[256];
    size_t size = 0, written = 0;
    char normal[256];
    for (size_t i = 0; i < count; i++)
        size += (size_t)utf8proc_encode_char((utf8proc_int32_t)points[i], text + size);
    text[size] = '\0';
    dt_unicode_nfc(points, count, &ours);
    for (size_t i = 0; i < ours.count; i++)
        written += dt_unicode_encode(ours.data[i], normal + written);
    normal[written] = '\0';
    utf8proc_uint8_t *theirs = utf8proc_NFC(text);
    assert_string_equal(normal, (char *)theirs);
    free(theirs);
    dt_ids_release(&ours);
}

/* All that decomposes, with its parts apart, and before a mark that may come between. */
static void each_composition_is_that_of_utf8proc(void **state)
{
    (void)state;
    need_the_same_version();
    for (uint32_t code = 1; code < CODES; code++) {
        uint32_t text[2 * DT_UNICODE_LONGEST];
        unsigned n = dt_unicode_decompose(code, text);
        if (n == 1 && text[0] == code)
            continue;
        text[n] = 0x323;
        assert_same_form(text, n);
        assert_same_form(text, n + 1);
        text[n] = text[n - 1];
        text[n - 1] = 0x323;
        assert_same_form(text, n + 1);
    }
}

static void random_text_has_the_normal_form_of_utf8proc(void **state)
{
    (void)state;
    need_the_same_version();
    static const uint32_t starts[] = {0x60,   0xc0,   0x300,  0x320,  0x340,  0x360,   0x5b0,
                                      0x93c,  0x9be,  0x1100, 0x1160, 0x11a8, 0xac00,  0x1e00,
                                      0x1fe0, 0x2120, 0x3040, 0x3090, 0xf900, 0x1d150, 0x11130};
    struct dt_rng rng;
    dt_rng_init(&rng, 5);
    for (int trial = 0; trial < 50000; trial++) {
        uint32_t text[16], count = dt_rng_below(&rng, 12);
        for (uint32_t i = 0; i < count; i++)
            text[i] =
                starts[dt_rng_below(&rng, sizeof starts / sizeof *starts)] + dt_rng_below(&rng, 32);
        assert_same_form(text, count);
    }
}

/* Fingerprints of tokenizers name the version: whatever changes the tables must change it, and
 * whoever changes it, this. */
static void the_tables_of_this_version_are_for_ever(void **state)
{
    (void)state;
    uint64_t hash = 0;
    for (uint32_t code = 0; code < CODES; code++) {
        const struct dt_unicode_record *r = dt_unicode_record(code);
        uint32_t facts[4 + DT_UNICODE_LONGEST] = {r->category, r->combining, dt_unicode_lower(code),
                                                  r->joins};
        facts[3] += 2 * dt_unicode_decompose(code, facts + 4);
        hash = dt_hash_seeded(facts, sizeof facts, hash);
    }
    hash = dt_hash_seeded(dt_unicode_compositions,
                          dt_unicode_composition_count * sizeof *dt_unicode_compositions, hash);
    assert_string_equal(dt_unicode_version, "15.0.0");
    assert_true(hash == 0x334c9a5624a200d5);
}

static void what_is_no_character_is_not_assigned(void **state)
{
    (void)state;
    uint32_t parts[DT_UNICODE_LONGEST];
    for (uint32_t code = CODES; code < CODES + 3; code++) {
        assert_int_equal(dt_unicode_category(code), DT_CATEGORY_CN);
        assert_true(dt_unicode_lower(code) == code);
        assert_int_equal(dt_unicode_decompose(code, parts), 1);
    }
    assert_int_equal(dt_unicode_category(UINT32_MAX), DT_CATEGORY_CN);
    assert_int_equal(dt_unicode_category(0x10ffff), DT_CATEGORY_CN);
    assert_int_equal(dt_unicode_category(0x10fffd), DT_CATEGORY_CO);
}

static void code_points_are_written_as_utf8(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < CODES; code++) {
        char ours[4];
        utf8proc_uint8_t theirs[4];
        unsigned n = dt_unicode_encode(code, ours);
        if (n != utf8proc_encode_char((utf8proc_int32_t)code, theirs) || memcmp(ours, theirs, n))
            fail_msg("U+%04X", code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_character_is_what_utf8proc_says),
        cmocka_unit_test(each_decomposition_is_that_of_utf8proc),
        cmocka_unit_test(each_composition_is_that_of_utf8proc),
        cmocka_unit_test(random_text_has_the_normal_form_of_utf8proc),
        cmocka_unit_test(the_tables_of_this_version_are_for_ever),
        cmocka_unit_test(what_is_no_character_is_not_assigned),
        cmocka_unit_test(code_points_are_written_as_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
