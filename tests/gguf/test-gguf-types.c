/* SPDX-License-Identifier: MIT */
/* Blocks of every type of tensor. The hashes are of the values that the Python package gguf
 * computes from the same bytes: tests/oracles/gguf_types_oracle.py. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/gguf-types.h"
#include "hash/hash.h"

#define ELEMENTS 1024

/* Bytes of a linear congruential generator; the high byte of each fp16 scale keeps it finite. */
static void fill(char *bytes, const struct dt_gguf_type *t, const unsigned *scales)
{
    uint32_t state = t->code;
    size_t size = ELEMENTS / t->block * t->bytes;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (char)(state >> 24);
    }
    for (size_t block = 0; block < size; block += t->bytes)
        for (int i = 0; i < 2 && scales[i] != UINT32_MAX; i++)
            bytes[block + scales[i] + 1] &= 0x3f;
}

/* For the comparison with the reference. */
static void keep(const struct dt_gguf_type *t, const char *bytes, const float *values)
{
    const char *directory = getenv("DT_GGUF_VALUES");
    char path[300];
    if (directory == NULL)
        return;
    snprintf(path, sizeof path, "%s/%u", directory, t->code);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    fwrite(bytes, t->bytes, ELEMENTS / t->block, out);
    fwrite(values, sizeof *values, ELEMENTS, out);
    fclose(out);
}

static void blocks_have_the_values_of_the_reference(void **state)
{
    static const struct {
        uint32_t code;
        unsigned scales[2]; /* offsets in the block */
        uint64_t hash;
    } cases[] = {
        {1, {0, UINT32_MAX}, 0x782a16129638ad32},
        {2, {0, UINT32_MAX}, 0xf7578d10039eb1a7},
        {3, {0, 2}, 0x3458dd9787f88d6a},
        {6, {0, UINT32_MAX}, 0x8549540b21462ee9},
        {7, {0, 2}, 0xb9a6a24908101581},
        {8, {0, UINT32_MAX}, 0xa193938667f3a69e},
        {12, {0, 2}, 0x2ce21146882bbd72},
        {13, {0, 2}, 0x294387f0db622d32},
        {14, {208, UINT32_MAX}, 0x06b16e1c09ac5c34},
        {30, {0, UINT32_MAX}, 0x4efe66b6c4f0ca42},
    };
    int differ = 0;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dt_gguf_type *t = dt_gguf_type_of(cases[i].code);
        float values[ELEMENTS];
        char bytes[4 * ELEMENTS];
        fill(bytes, t, cases[i].scales);
        dt_gguf_decode(t, values, bytes, ELEMENTS);
        uint64_t found = dt_hash(values, sizeof values);
        keep(t, bytes, values);
        if (found != cases[i].hash)
            print_message("{%u, ...}: %016llx\n", t->code, (unsigned long long)found);
        differ += found != cases[i].hash;
    }
    assert_int_equal(differ, 0);
}

static void types_are_known_by_name(void **state)
{
    (void)state;
    assert_string_equal(dt_gguf_type_name(12), "Q4_K");
    assert_string_equal(dt_gguf_type_name(23), "IQ4_XS");
    assert_string_equal(dt_gguf_type_name(999), "unknown");
    assert_null(dt_gguf_type_of(23));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_have_the_values_of_the_reference),
        cmocka_unit_test(types_are_known_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
