/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "repair/mask.h"

static void assert_masked(enum dt_mask_kind kind, const char *text, const char *expected)
{
    struct dt_buffer out = DT_BUFFER_EMPTY;
    uint64_t found = dt_mask(kind, text, strlen(text), &out);
    if (strcmp(text, expected) == 0)
        assert_int_equal(found, 0);
    else
        assert_string_equal(out.data, expected);
    dt_buffer_release(&out);
}

static void assert_plain(enum dt_mask_kind kind, const char *text)
{
    assert_masked(kind, text, text);
}

static void mail_addresses(void **state)
{
    (void)state;
    assert_masked(DT_MASK_EMAIL, "to a.b+c@mail.example.org, now", "to |||EMAIL_ADDRESS|||, now");
    assert_masked(DT_MASK_EMAIL, "<x@y.de> and (x_1@y-z.co.uk).",
                  "<|||EMAIL_ADDRESS|||> and (|||EMAIL_ADDRESS|||).");
    assert_plain(DT_MASK_EMAIL, "a@b @user x@ @y.de a.@y.de a@-.de a@b.c 5@3.7");
}

static void quoted_local_parts(void **state)
{
    (void)state;
    assert_masked(DT_MASK_EMAIL, "to \"john doe\"@example.org or \"a\\\"b\"@example.org",
                  "to |||EMAIL_ADDRESS||| or |||EMAIL_ADDRESS|||");
    assert_masked(DT_MASK_EMAIL, "\"yes\" \"x\"@y.de", "\"yes\" |||EMAIL_ADDRESS|||");
    assert_plain(DT_MASK_EMAIL, "\"\"@y.de");
    assert_plain(DT_MASK_EMAIL, "a \"@y.de");
    assert_plain(DT_MASK_EMAIL, "\"a\nb\"@y.de");
}

static void digits_of_other_scripts(void **state)
{
    (void)state;
    assert_masked(DT_MASK_PHONE, "tel +\u0664\u0664 20 7946 0958, \uff08",
                  "tel |||PHONE_NUMBER|||, \uff08");
    assert_masked(DT_MASK_PHONE, "\u0967 +\u096f\u0967 98765 43210, \u0968",
                  "\u0967 |||PHONE_NUMBER|||, \u0968");
    assert_masked(DT_MASK_CARD,
                  "\uff14\uff11\uff11\uff11 \uff11\uff11\uff11\uff11 "
                  "\uff11\uff11\uff11\uff11 \uff11\uff11\uff11\uff11, 4111111111111111 \uff11",
                  "|||CREDIT_CARD|||, |||CREDIT_CARD||| \uff11");
    assert_masked(DT_MASK_IBAN, "DE\U0001d7d6\U0001d7d7 3704 0044 0532 0130 00", "|||IBAN|||");
    assert_plain(DT_MASK_CARD, "4111 1111 1111 111\u0662");
}

static void internet_addresses(void **state)
{
    (void)state;
    assert_masked(DT_MASK_IPV4, "8.8.8.8 (1.1.1.1), 93.184.216.34:80",
                  "|||IP_ADDRESS||| (|||IP_ADDRESS|||), |||IP_ADDRESS|||:80");
    assert_plain(DT_MASK_IPV4, "10.0.0.1 192.168.1.1 127.0.0.1 172.31.0.1 100.64.0.1 224.0.0.1");
    assert_plain(DT_MASK_IPV4, "1.2.3 1.2.3.4.5 256.1.1.1 v8.8.8.8 8.8.8.8x 8.8.8.1234");
    assert_masked(DT_MASK_IPV6, "at 2a00:1450:4001:81b::200e.", "at |||IP_ADDRESS|||.");
    assert_plain(DT_MASK_IPV6, "::1 fe80::1 2001:db8::1 fc00::2 12:30:45 std::abs a::b");
}

static void accounts_have_a_checksum(void **state)
{
    (void)state;
    assert_masked(DT_MASK_IBAN, "DE89 3704 0044 0532 0130 00 or GB82WEST12345698765432",
                  "|||IBAN||| or |||IBAN|||");
    assert_masked(DT_MASK_IBAN,
                  "BI4210000100010000332045181 DJ2100010000000154000100186 FK88SC123456789012 "
                  "HN88CABF00000000000250005469 MN121234123456789123 OM810180000001299123456",
                  "|||IBAN||| |||IBAN||| |||IBAN||| |||IBAN||| |||IBAN||| |||IBAN|||");
    assert_masked(DT_MASK_IBAN,
                  "NI45BAPR00000013000003558124 RU0304452522540817810538091310419 "
                  "SO211000001001000100141 YE15CBYE0001018861234567891234",
                  "|||IBAN||| |||IBAN||| |||IBAN||| |||IBAN|||");
    assert_plain(DT_MASK_IBAN,
                 "DE88370400440532013000 DE8937040044053201300 XX89370400440532013000");
    assert_plain(DT_MASK_IBAN, "ADE89370400440532013000 DE893704004405320130001");
}

static void cards_have_a_checksum(void **state)
{
    (void)state;
    assert_masked(DT_MASK_CARD, "4111 1111 1111 1111, 5500-0000-0000-0004, 378282246310005",
                  "|||CREDIT_CARD|||, |||CREDIT_CARD|||, |||CREDIT_CARD|||");
    assert_plain(DT_MASK_CARD, "4111 1111 1111 1112 1234567890123 0000000000000000");
    assert_plain(DT_MASK_CARD, "x4111111111111111 41111111111111111111111");
}

static void telephones(void **state)
{
    (void)state;
    assert_masked(DT_MASK_PHONE, "(212) 555-0123 212-555-0123 212.555.0123",
                  "|||PHONE_NUMBER||| |||PHONE_NUMBER||| |||PHONE_NUMBER|||");
    assert_masked(DT_MASK_PHONE, "+49 30 1234567, +1 (212) 555 0123",
                  "|||PHONE_NUMBER|||, |||PHONE_NUMBER|||");
    assert_plain(DT_MASK_PHONE, "1234567890 2024-01-01 555-0123 112-555-0123 3.14159265 +1 2");
}

static void lists_of_masks(void **state)
{
    (void)state;
    unsigned set;
    assert_null(dt_mask_parse("all", &set));
    assert_int_equal(set, (1u << DT_MASK_KINDS) - 1);
    assert_null(dt_mask_parse("card,email", &set));
    assert_int_equal(set, 1u << DT_MASK_CARD | 1u << DT_MASK_EMAIL);
    assert_string_equal(dt_mask_parse("email,fax", &set), "fax");
    assert_string_equal(dt_mask_parse("", &set), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mail_addresses),
        cmocka_unit_test(quoted_local_parts),
        cmocka_unit_test(internet_addresses),
        cmocka_unit_test(digits_of_other_scripts),
        cmocka_unit_test(accounts_have_a_checksum),
        cmocka_unit_test(cards_have_a_checksum),
        cmocka_unit_test(telephones),
        cmocka_unit_test(lists_of_masks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
