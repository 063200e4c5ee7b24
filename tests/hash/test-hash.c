/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <xxhash.h>

#include "hash/hash.h"

static void the_hash_is_xxh3_on_every_processor(void **state)
{
    (void)state;
    unsigned char bytes[2100];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * i >> 3);
    for (size_t size = 0; size + 3 < sizeof bytes; size++) {
        assert_true(dt_hash(bytes + size % 4, size) == XXH3_64bits(bytes + size % 4, size));
        assert_true(dt_hash(bytes, size) == dt_hash_seeded(bytes, size, 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hash_is_xxh3_on_every_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
