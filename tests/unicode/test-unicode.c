/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "hash/hash.h"
#include "unicode/unicode.h"

#define CODES 0x110000u

/* Fingerprints of tokenizers name the version, so a change of the tables must change it. All facts
 * equal those of utf8proc 2.8.0, but for the title case of U+00DF: there U+1E9E. */
static void a_version_of_the_tables_never_changes(void **state)
{
    (void)state;
    uint64_t ids = 0, cleaning = 0;
    for (uint32_t code = 0; code < CODES; code++) {
        const struct dt_unicode_record *r = dt_unicode_record(code);
        uint32_t facts[4 + DT_UNICODE_LONGEST] = {r->category, r->combining, dt_unicode_lower(code),
                                                  r->joins};
        facts[3] += 2 * dt_unicode_decompose(code, facts + 4);
        ids = dt_hash_seeded(facts, sizeof facts, ids);
        uint32_t more[3 + DT_UNICODE_EXPAND_MAX + DT_UNICODE_FOLD_MAX] = {dt_unicode_title(code)};
        more[1] = dt_unicode_expand(code, more + 3);
        more[2] = dt_unicode_fold(code, more + 3 + DT_UNICODE_EXPAND_MAX);
        cleaning = dt_hash_seeded(more, sizeof more, cleaning);
    }
    ids = dt_hash_seeded(dt_unicode_compositions,
                         dt_unicode_composition_count * sizeof *dt_unicode_compositions, ids);
    assert_string_equal(dt_unicode_version, "15.0.0");
    assert_true(ids == 0x334c9a5624a200d5);
    assert_true(cleaning == 0xd40557328224fc44);
}

static void values_above_10ffff_are_unassigned(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_of_the_tables_never_changes),
        cmocka_unit_test(values_above_10ffff_are_unassigned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
