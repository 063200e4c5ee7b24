/* SPDX-License-Identifier: MIT */
/* What is personal data stays so beside other digits and words; what merely looks like it stays. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "repair/mask.h"

#define NBSP    "\xc2\xa0"
#define NARROW  "\xe2\x80\xaf" /* U+202F */
#define HYPHEN  "\xe2\x80\x91" /* U+2011 */
#define EN_DASH "\xe2\x80\x93"
#define ZERO    "\xe2\x80\x8b" /* U+200B */
#define SOFT    "\xc2\xad"     /* U+00AD */
#define WIDE    "\xe3\x80\x80" /* U+3000 */

struct row {
    const char *text, *expected; /* with # for each place that is masked */
};

static void put_mark(struct dt_buffer *text, const char *replacement)
{
    for (char *p; (p = strstr(text->data, replacement)) != NULL;) {
        size_t rest = strlen(p + strlen(replacement)) + 1;
        *p = '#';
        memmove(p + 1, p + strlen(replacement), rest);
    }
}

static void check(enum dt_mask_kind kind, const char *replacement, const struct row *rows,
                  size_t count)
{
    int wrong = 0;
    for (size_t i = 0; i < count; i++) {
        struct dt_buffer out = DT_BUFFER_EMPTY;
        const char *text = rows[i].text;
        if (dt_mask(kind, text, strlen(text), &out) == 0)
            dt_buffer_append(&out, text, strlen(text));
        put_mark(&out, replacement);
        if (strcmp(out.data, rows[i].expected) != 0) {
            print_message("%s\n  is       %s\n  must be  %s\n", text, out.data, rows[i].expected);
            wrong++;
        }
        dt_buffer_release(&out);
    }
    assert_int_equal(wrong, 0);
}

#define CHECK(kind, replacement, rows) check(kind, replacement, rows, sizeof rows / sizeof *rows)

static void cards_are_found_beside_dates_codes_and_cards(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"4111 1111 1111 1111 12/26 123", "# 12/26 123"},
        {"4111 1111 1111 1111 12 26 123", "# 12 26 123"},
        {"4111-1111-1111-1111-123", "#-123"},
        {"4111 1111 1111 1111 5500 0000 0000 0004", "# #"},
        {"4111111111111111 5500000000000004", "# #"},
        {"4111111111111111 5500000000000004 378282246310005", "# # #"},
        {"4111-1111-1111-1111 5500-0000-0000-0004", "# #"},
        {"4111111111111111 12/26 123", "# 12/26 123"},
        {"4111111111111111 1226 123", "# 1226 123"},
        {"4111111111111111-1226", "#-1226"},
        {"2024-05-01 4111111111111111", "2024-05-01 #"},
        {"2024-05-01 4111 1111 1111 1111", "2024-05-01 #"},
        {"12 4111 1111 1111 1111", "12 #"},
        {"3 x 4111 1111 1111 1111 2", "3 x # 2"},
        {"1. 4111 1111 1111 1111 2. 5500 0000 0000 0004 3.", "1. # 2. # 3."},
        {"4111.1111.1111.1111", "#"},
        {"4111.1111.1111.1111.", "#."},
        {"4111 - 1111 - 1111 - 1111", "#"},
        {"4111  1111  1111  1111", "#"},
        {"4111" NBSP "1111" NBSP "1111" NBSP "1111", "#"},
        {"4111" NARROW "1111" NARROW "1111" NARROW "1111 12/26", "# 12/26"},
        {"4111" HYPHEN "1111" HYPHEN "1111" HYPHEN "1111", "#"},
        {"3782 822463 10005", "#"},
        {"3782 822463 10005 0627 1234", "# 0627 1234"},
        {"3782-822463-10005", "#"},
        {"3782.822463.10005", "#"},
        {"378282246310005 06/27", "# 06/27"},
        {"3056 930902 5904 06/27", "# 06/27"},
        {"30569309025904 99", "# 99"},
        {"36307418529639", "#"},
        {"4307418529637 123", "# 123"},
        {"4026307418529630746", "#"},
        {"4026 3074 1852 9630 746 12/26", "# 12/26"},
        {"2221307418529630", "#"},
        {"2221 3074 1852 9630 12/26", "# 12/26"},
        {"2720 3074 1852 9636", "#"},
        {"2200307418529635", "#"},
        {"5105 3074 1852 9634 5", "# 5"},
        {"3530307418529634 1", "# 1"},
        {"6011 3074 1852 9635, 6530741852963078", "#, #"},
        {"6230741852963071 6230741852963074187", "# #"},
        {"5018307418529630/6759307418529631", "#/#"},
        {"No.4111111111111111/12/26", "No.#/12/26"},
        {"card:4111111111111111;cvc:123", "card:#;cvc:123"},
        {"(4111111111111111)", "(#)"},
        {"4111 1111 1111 1111CVC123", "#CVC123"},
        {"Visa4111 1111 1111 1111", "Visa#"},
        {"4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "#"},
        {"4111 1111 1111 1111\n12/26", "#\n12/26"},
        {"4111 1111 1111 1111 4111 1111 1111 1111 4111 1111 1111 1111", "# # #"},
    };
    CHECK(DT_MASK_CARD, "|||CREDIT_CARD|||", rows);
}

static void numbers_that_are_no_cards_stay(void **state)
{
    (void)state;
    static const char *const plain[] = {
        "4111 1111 1111 1112 12/26 123",
        "4111111111111112 123",
        "x4111111111111111",
        "4111111111111111x",
        "a4111111111111111f",
        "41111111111111111111111",
        "41111111111111115500000000000004",
        "ISBN 978-3-16-148410-0",
        "ISBN 9783161484100",
        "ISBN 3-16-148410-X, 0-306-40615-2",
        "arXiv:2401.12345 and 2401.12346v2",
        "31-12-2023 31-12-2024",
        "2024-01-01 2024-01-02",
        "2024-01-01T12:30:45 2024-01-02T12:30:45",
        "order 9876-5432-1098-7654",
        "order 1234 5678 9012 3456",
        "DOI 10.1145/3292500.3330701",
        "1990 1991 1992 1993 1994 1995 1996 1997",
        "3.14159265358979323846",
        "0.4111111111111111",
        "v4.1.1.1-20240101",
        "00000000-0000-0000-0000-000000000000",
        "550e8400-e29b-41d4-a716-446655440000",
        "0000 0000 0000 0000 0000 0000",
        "4444 4444 4444 4444",
        "1234567890123",
        "10 20 30 40 50 60 70 80 90 100",
        "4111 1111 1111 111",
        "UPC 036000291452, EAN 4006381333931.",
    };
    struct row rows[sizeof plain / sizeof *plain];
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        rows[i] = (struct row){plain[i], plain[i]};
    CHECK(DT_MASK_CARD, "|||CREDIT_CARD|||", rows);
}

static void telephones_are_found_beside_digits_and_words(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"+49 30 901820 24h", "# 24h"},
        {"+49 30 901820", "#"},
        {"+49 30 901820 (24h)", "# (24h)"},
        {"+49 30 901820 2nd floor", "# 2nd floor"},
        {"+49 30 901820 12345678", "# 12345678"},
        {"+49 30 901820 +49 30 901821", "# #"},
        {"+49 30 901820/+49 30 901821", "#/#"},
        {"+49 30 901820, 901821", "#, 901821"},
        {"+49 30 901820 x24", "# x24"},
        {"+49 30 901820ext.24", "#ext.24"},
        {"+4930901820Mo-Fr", "#Mo-Fr"},
        {"Tel+49 30 901820", "Tel#"},
        {"Tel.+4930901820", "Tel.#"},
        {"tel:+49-30-901820", "tel:#"},
        {"+49 (0)30 901820", "#"},
        {"+49 (0) 30 / 90 18 20", "#"},
        {"(+49) 30 901820", "(#"},
        {"+49" NBSP "30" NBSP "901820", "#"},
        {"+49" NARROW "30" NARROW "901820" NARROW "24h", "#" NARROW "24h"},
        {"+49 30 9018" EN_DASH "20", "#"},
        {"+49" HYPHEN "30" HYPHEN "901820", "#"},
        {"+33 1 42 68 53 00", "#"},
        {"+33.1.42.68.53.00", "#"},
        {"+44 20 7946 0958", "#"},
        {"+44 (0)20 7946 0958.", "#."},
        {"+1 212 555 0123", "#"},
        {"+1-212-555-0123", "#"},
        {"+1 (212) 555-0123 x5", "# x5"},
        {"+1.2125550123", "#"},
        {"+12125550123", "#"},
        {"+86 138 0013 8000", "#"},
        {"+81-3-1234-5678", "#"},
        {"+7 (495) 123-45-67", "#"},
        {"+55 11 91234-5678", "#"},
        {"+972-2-123-4567", "#"},
        {"(212) 555-0123", "#"},
        {"(212)555-0123", "#"},
        {"212-555-0123", "#"},
        {"212.555.0123x12", "#x12"},
        {"212 555 0123ext. 4", "#ext. 4"},
        {"1-800-555-0199", "#"},
        {"1 (212) 555-0123", "#"},
        {"1.212.555.0123", "#"},
        {"call 212-555-0123 or 212-555-0124", "call # or #"},
        {"212-555-0123/212-555-0124", "#/#"},
        {"212" HYPHEN "555" HYPHEN "0123", "#"},
        {"(212)" NBSP "555-0123", "#"},
        {"24 212-555-0123", "24 #"},
    };
    CHECK(DT_MASK_PHONE, "|||PHONE_NUMBER|||", rows);
}

static void numbers_that_are_no_telephones_stay(void **state)
{
    (void)state;
    static const char *const plain[] = {
        "1234567890",
        "2024-01-01",
        "2024-01-01 12:30:45",
        "01.02.2024 - 03.04.2024",
        "555-0123",
        "+1 2",
        "112-555-0123",
        "3.14159265",
        "version 1.2.3+20240101",
        "ISBN 0-306-40615-2",
        "ISBN 978-0-306-40615-7",
        "arXiv:2401.12345",
        "order 2125550123",
        "order 212-5550-123",
        "A212-555-0123",
        "a+12345678",
        "5+12345678",
        "+0 123 456 789",
        "+1234567",
        "+1234567890123456",
        "192.168.100.1234",
        "123-45-6789",
        "100,200,300,400",
        "2125550123456",
        "9212-555-0123",
        "212-555-01234",
        "C++11 and C++14",
        "10+20 = 30",
        "x+20 30",
        "DE89 3704 0044 0532 0130 00",
    };
    struct row rows[sizeof plain / sizeof *plain];
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        rows[i] = (struct row){plain[i], plain[i]};
    CHECK(DT_MASK_PHONE, "|||PHONE_NUMBER|||", rows);
}

static void accounts_are_found_beside_digits_and_words(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"DE89 3704 0044 0532 0130 00 5", "# 5"},
        {"DE89370400440532013000 123", "# 123"},
        {"DE89 3704 0044 0532 0130 00 GB82 WEST 1234 5698 7654 32", "# #"},
        {"IBANDE89 3704 0044 0532 0130 00BIC", "IBAN#BIC"},
        {"IBAN:DE89370400440532013000", "IBAN:#"},
        {"DE89 370400440532013000", "#"},
        {"DE89 370 400 44 0532 0130 00", "#"},
        {"DE89-3704-0044-0532-0130-00", "#"},
        {"DE89.3704.0044.0532.0130.00.", "#."},
        {"DE89" NBSP "3704" NBSP "0044" NBSP "0532" NBSP "0130" NBSP "00", "#"},
        {"GB82WEST12345698765432,NL91ABNA0417164300", "#,#"},
        {"FR14 2004 1010 0505 0001 3M02 606", "#"},
        {"NO93 8601 1117 947 NOK", "# NOK"},
        {"CH93 0076 2011 6238 5295 7 CHF", "# CHF"},
        {"AT61 1904 3002 3457 3201", "#"},
        {"ES91 2100 0418 4502 0005 1332", "#"},
    };
    static const char *const plain[] = {
        "DE88370400440532013000",  "DE8937040044053201300",  "ADE89370400440532013000",
        "DE893704004405320130001", "XX89370400440532013000", "NO15 THE QUICK BROWN FOX",
    };
    struct row none[sizeof plain / sizeof *plain];
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        none[i] = (struct row){plain[i], plain[i]};
    CHECK(DT_MASK_IBAN, "|||IBAN|||", rows);
    CHECK(DT_MASK_IBAN, "|||IBAN|||", none);
}

static void accounts_are_found_in_small_letters(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"de89 3704 0044 0532 0130 00", "#"},
        {"iban:de89370400440532013000.", "iban:#."},
        {"gb82 west 1234 5698 7654 32 and nl91abna0417164300", "# and #"},
        {"Gb82 West 1234 5698 7654 32", "#"},
        {"fr14 2004 1010 0505 0001 3m02 606", "#"},
        {"mt84malt011000012345mtlcast001s", "#"},
        {"de88 3704 0044 0532 0130 00", "de88 3704 0044 0532 0130 00"},
        {"ade89370400440532013000f", "ade89370400440532013000f"},
        /* a valid checksum, but words */
        {"no84 the quick bro", "no84 the quick bro"},
    };
    CHECK(DT_MASK_IBAN, "|||IBAN|||", rows);
}

static void groups_may_have_tabs_and_invisible_characters_between_them(void **state)
{
    (void)state;
    static const struct row cards[] = {
        {"4111\t1111\t1111\t1111", "#"},
        {"4111" ZERO "1111" ZERO "1111" ZERO "1111", "#"},
        {"4111" SOFT "1111" SOFT "1111" SOFT "1111", "#"},
        {"411111" SOFT "1111111111", "#"},
        {"4111" WIDE "1111" WIDE "1111" WIDE "1111", "#"},
        {"4111 " ZERO "1111 " ZERO "1111 " ZERO "1111", "#"},
        {"4\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1",
         "4\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1\t1"},
    };
    static const struct row phones[] = {
        {"+49\t30\t901820", "#"},
        {"+49" ZERO "30" SOFT "901820", "#"},
        {"212\t555\t0123", "#"},
        {"212" ZERO "-555-" ZERO "0123", "#"},
        {"(212) 5550123", "#"},
        {"(212)5550123.", "#."},
        {"(212) 55501234 (212) 1550123 212 5550123", "(212) 55501234 (212) 1550123 212 5550123"},
    };
    static const struct row accounts[] = {
        {"DE89\t3704\t0044\t0532\t0130\t00", "#"},
        {"DE89" ZERO "3704" ZERO "0044" ZERO "0532" ZERO "0130" ZERO "00", "#"},
        {"DE89 " SOFT "3704 " SOFT "0044 0532 0130 00", "#"},
    };
    CHECK(DT_MASK_CARD, "|||CREDIT_CARD|||", cards);
    CHECK(DT_MASK_PHONE, "|||PHONE_NUMBER|||", phones);
    CHECK(DT_MASK_IBAN, "|||IBAN|||", accounts);
}

static void signed_quantities_and_dates_are_no_telephones(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"+52.5200066, +13.4049540", "+52.5200066, +13.4049540"},
        {"+52.5200066 13.4049540", "+52.5200066 13.4049540"},
        {"+52.5200066-013.4049540/", "+52.5200066-013.4049540/"},
        {"+139.69170641", "+139.69170641"},
        {"+12.345678 percent", "+12.345678 percent"},
        {"+3.14159265358979 +2.718281828", "+3.14159265358979 +2.718281828"},
        {"+10.000.000 Euro", "+10.000.000 Euro"},
        {"+25.345.678 Euro", "+25.345.678 Euro"},
        {"+250.000.000 Euro", "+250.000.000 Euro"},
        {"+100.000.000.000 Euro", "+100.000.000.000 Euro"},
        {"+2024-12-31", "+2024-12-31"},
        {"+2024-12-31 12:30, +2024.12.31", "+2024-12-31 12:30, +2024.12.31"},
        {"+45.12345678", "#"},
        {"+354.5551234", "#"},
        {"+1.2125550123", "#"},
        {"+7.4951234567", "#"},
        {"+49.6221.123456", "#"},
        {"+49.6221 123456", "#"},
        {"+49.301234-0", "#"},
        {"+33.142685300", "#"},
        {"+34.912.345.678", "#"},
        {"+298.123.456", "#"},
        {"+1.212.555.0123", "#"},
        {"+2012-34-56-78", "#"},
    };
    CHECK(DT_MASK_PHONE, "|||PHONE_NUMBER|||", rows);
}

static void addresses_are_found_beside_words_and_points(void **state)
{
    (void)state;
    static const struct row version4[] = {
        {"see ...8.8.8.8", "see ...#"},
        {"1...8.8.8.8", "1...#"},
        {"8.8.8.8.", "#."},
        {"8.8.8.8.Next", "#.Next"},
        {"8.8.8.8:53,8.8.4.4:53", "#:53,#:53"},
        {"8.8.8.8-8.8.4.4", "#-#"},
        {"8.8.8.8/24", "#/24"},
        {"ip=8.8.8.8;", "ip=#;"},
        {"5 8.8.8.8 6", "5 # 6"},
        {"1.2.3 8.8.8.8", "1.2.3 #"},
        {"1.2.3.4.5", "1.2.3.4.5"},
        {"_8.8.8.8_", "_#_"},
        {"x_8.8.8.8", "x_#"},
        {"Tel.8.8.8.8", "Tel.#"},
        {"see.91.198.174.192.", "see.#."},
        {"v1.8.8.8.8", "v1.8.8.8.8"},
        {"v8.8.8.8", "v8.8.8.8"},
        {"8.8.8.8x", "8.8.8.8x"},
        {"10.0.0.1", "10.0.0.1"},
        {"1.3.6.1.4.1.311", "1.3.6.1.4.1.311"},
    };
    static const struct row version6[] = {
        {"IPv6:2a00:1450:4001:81b::200e", "IPv6:#"},
        {"Address:2a00:1450:4001:81b::200e.", "Address:#."},
        {"face:2a00:1450:4001:81b:0:0:0:200e", "face:#"},
        {"[2a00:1450:4001:81b::200e]:443", "[#]:443"},
        {"2a00:1450:4001:81b:0:0:0:200e:443", "#:443"},
        {"2a00:1450:4001:81b::200e/64", "#/64"},
        {"2a00:1450:4001:81b::200e,2a00:1450:4001:81b::200f", "#,#"},
        {"2a00:1450:4001:81b::200e: up", "#: up"},
        {"at 12:30:45 2a00::1", "at 12:30:45 #"},
        {"12:30:45", "12:30:45"},
        {"::1 fe80::1 2001:db8::1 fc00::2", "::1 fe80::1 2001:db8::1 fc00::2"},
        {"std::abs a::b x2a00::1", "std::abs a::b x2a00::1"},
        {"20:01:0d:b8:85:a3:00:00:8a:2e", "20:01:0d:b8:85:a3:00:00:8a:2e"},
        {"2a00:1450:4001", "2a00:1450:4001"},
    };
    static const struct row mail[] = {
        {"mail:a@b.de2", "mail:#"},
        {"a@b.de,c@d.de;e@f.de", "#,#;#"},
        {"<a@b.de>a@c.de", "<#>#"},
        {"a@b.de_x", "#_x"},
        {"a@b.de.", "#."},
        {"12345a@b.de 123", "# 123"},
        {"m\xc3\xbcller@example.org", "#"},
        {"info@m\xc3\xbcller.de.", "#."},
        {"\xe8\x81\x94\xe7\xb3\xbb"
         "abc@example.com\xe3\x80\x82",
         "\xe8\x81\x94\xe7\xb3\xbb#\xe3\x80\x82"},
        {"a@b @user x@ @y.de 5@3.7", "a@b @user x@ @y.de 5@3.7"},
    };
    CHECK(DT_MASK_IPV4, "|||IP_ADDRESS|||", version4);
    CHECK(DT_MASK_IPV6, "|||IP_ADDRESS|||", version6);
    CHECK(DT_MASK_EMAIL, "|||EMAIL_ADDRESS|||", mail);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_are_found_beside_dates_codes_and_cards),
        cmocka_unit_test(numbers_that_are_no_cards_stay),
        cmocka_unit_test(telephones_are_found_beside_digits_and_words),
        cmocka_unit_test(numbers_that_are_no_telephones_stay),
        cmocka_unit_test(accounts_are_found_beside_digits_and_words),
        cmocka_unit_test(accounts_are_found_in_small_letters),
        cmocka_unit_test(groups_may_have_tabs_and_invisible_characters_between_them),
        cmocka_unit_test(signed_quantities_and_dates_are_no_telephones),
        cmocka_unit_test(addresses_are_found_beside_words_and_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
