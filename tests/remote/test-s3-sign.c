/* SPDX-License-Identifier: MIT */
/* Signatures of requests to S3: golden ones of botocore 1.x (S3SigV4Auth). tests/full/s3.bats
 * compares others with an installed botocore. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash/sha256.h"
#include "remote/remote-internal.h"

#define DATE 1700000000 /* 2023-11-14 22:13:20 */

static void requests_are_signed_as_by_botocore(void **state)
{
    static const struct {
        char *session;
        const char *names, *signature;
    } cases[] = {{NULL, "host;x-amz-content-sha256;x-amz-date",
                  "3a2edfeb3a551140d4f18a429ab16854854272f9a8e7b5c91b9f1751349f4e06"},
                 {"TOK/+=", "host;x-amz-content-sha256;x-amz-date;x-amz-security-token",
                  "31f67689b0339dce56d40761598f30ad4a5769fa2deb4e0174b74a89b2e4271a"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_remote_s3 s3 = {.url = "http://127.0.0.1:81/bucket/a%20b%2Bc/%C3%A9~.jsonl",
                                  .region = "eu-west-1",
                                  .key = "AK",
                                  .secret = "SK",
                                  .session = cases[i].session};
        struct dt_remote_headers h;
        char expected[512];
        dt_remote_s3_sign(&s3, DATE, &h);
        snprintf(expected, sizeof expected,
                 "Authorization: AWS4-HMAC-SHA256 Credential=AK/20231114/eu-west-1/s3/aws4_request,"
                 "SignedHeaders=%s,Signature=%s",
                 cases[i].names, cases[i].signature);
        assert_string_equal(h.authorization, expected);
        assert_string_equal(h.host, "Host: 127.0.0.1:81");
        assert_string_equal(h.date, "x-amz-date: 20231114T221320Z");
        assert_true(i == 0 ? h.session == NULL
                           : strcmp(h.session, "x-amz-security-token: TOK/+=") == 0);
        dt_remote_headers_release(&h);
    }
}

/* RFC 4231, cases 2 and 6: a short key, and one that is longer than a block. */
static void macs_are_those_of_the_standard(void **state)
{
    uint8_t mac[DT_SHA256], key[131];
    char hex[DT_SHA256_HEX];
    (void)state;
    dt_sha256_hmac("Jefe", 4, "what do ya want for nothing?", mac);
    assert_string_equal(dt_sha256_hex(mac, hex),
                        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    dt_sha256_hmac(key, sizeof key, "Test Using Larger Than Block-Size Key - Hash Key First", mac);
    assert_string_equal(dt_sha256_hex(mac, hex),
                        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void buckets_are_at_the_host_of_their_region(void **state)
{
    static const char *const cases[][3] = {
        {"eu-west-1", "s3://b/k", "https://b.s3.eu-west-1.amazonaws.com/k"},
        {"eu-west-1", "s3://b.c/k", "https://s3.eu-west-1.amazonaws.com/b.c/k"},
        {"us-east-1", "s3://Old_B/k", "https://s3.us-east-1.amazonaws.com/Old_B/k"},
        {"cn-north-1", "s3://b/k", "https://b.s3.cn-north-1.amazonaws.com.cn/k"},
        {"cn-north-1", "s3://b.c/k", "https://s3.cn-north-1.amazonaws.com.cn/b.c/k"}};
    (void)state;
    unsetenv("AWS_ENDPOINT_URL");
    unsetenv("AWS_ENDPOINT_URL_S3");
    setenv("AWS_ACCESS_KEY_ID", "AK", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "SK", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_remote_s3 s3;
        struct dt_error err;
        setenv("AWS_REGION", cases[i][0], 1);
        assert_int_equal(dt_remote_s3_find(&s3, cases[i][1], &err), 0);
        assert_string_equal(s3.url, cases[i][2]);
        dt_remote_s3_release(&s3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_signed_as_by_botocore),
        cmocka_unit_test(macs_are_those_of_the_standard),
        cmocka_unit_test(buckets_are_at_the_host_of_their_region),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
