/* SPDX-License-Identifier: MIT */
/* Files of other programs. Those under tests/foreign/golden were made from the ids
 * below by megatron-core and mosaicml-streaming
 *     tests/oracles/foreign_oracle.py write-mds tests/foreign/golden/mds
 *     tests/oracles/foreign_oracle.py write-megatron tests/foreign/golden/megatron
 * and, for llm.c, by numpy after its data_common.py. */
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "foreign/foreign.h"
#include "math/rng.h"

#define GOLDEN "tests/foreign/golden/"

static const struct {
    uint32_t count, ids[5];
} documents[] = {{3, {72, 105, 255}}, {1, {255}}, {5, {1, 2, 3, 4, 255}}};

static const struct {
    const char *format, *golden;
    const char *files[2]; /* that are written to the byte as the other program does */
} formats[] = {{"mds", GOLDEN "mds", {NULL}},
               {"megatron", GOLDEN "megatron", {".bin", ".idx"}},
               {"llmc", GOLDEN "llmc.bin", {""}}};

static void expect_documents(const char *format, const char *path)
{
    struct dt_error err = {0};
    struct dt_foreign *f;
    struct dt_ids ids = DT_IDS_EMPTY;
    if (dt_foreign_open(&f, format, path, 255, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dt_foreign_next(f, &ids, &err), 1);
        assert_int_equal(ids.count, documents[i].count);
        assert_memory_equal(ids.data, documents[i].ids, ids.count * 4);
    }
    assert_int_equal(dt_foreign_next(f, &ids, &err), 0);
    dt_ids_release(&ids);
    dt_foreign_free(f);
}

static char *write_documents(const char *format, uint32_t vocab_size)
{
    struct dt_error err = {0};
    struct dt_foreign *f;
    struct dt_shard_info info = {.vocab_size = vocab_size, .eot = 255};
    char *name = dt_asprintf("%s-%u", format, vocab_size), *path = dt_path_join(scratch, name);
    assert_int_equal(dt_foreign_create(&f, format, path, &info, &err), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(dt_foreign_add(f, documents[i].ids, documents[i].count, &err), 0);
    assert_int_equal(dt_foreign_finish(f, &err), 0);
    dt_foreign_free(f);
    free(name);
    return path;
}

static void expect_same_files(const char *a, const char *b, const char *suffix)
{
    struct dt_error err;
    char *path = dt_asprintf("%s%s", a, suffix), *other = dt_asprintf("%s%s", b, suffix), *x, *y;
    size_t n, m;
    assert_int_equal(dt_file_read(path, 1 << 20, &x, &n, &err), 0);
    assert_int_equal(dt_file_read(other, 1 << 20, &y, &m, &err), 0);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
    free(path);
    free(other);
}

static void what_others_wrote_is_read(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        expect_documents(formats[i].format, formats[i].golden);
}

static void what_is_written_is_what_others_write(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        char *path = write_documents(formats[i].format, 256);
        expect_documents(formats[i].format, path);
        for (int k = 0; k < 2 && formats[i].files[k]; k++)
            expect_same_files(path, formats[i].golden, formats[i].files[k]);
        free(path);
    }
}

static void ids_of_four_bytes_come_back(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        char *path = write_documents(formats[i].format, 70000);
        expect_documents(formats[i].format, path);
        free(path);
    }
}

/* Reads all of it; whether that succeeded is all one. */
static void read_all(const char *format, const char *path)
{
    struct dt_error err;
    struct dt_foreign *f;
    struct dt_ids ids = DT_IDS_EMPTY;
    if (dt_foreign_open(&f, format, path, 255, &err) < 0)
        return;
    while (dt_foreign_next(f, &ids, &err) > 0)
        assert_true(ids.count < 10000);
    dt_ids_release(&ids);
    dt_foreign_free(f);
}

/* Changes bytes of one file of a data set, or cuts it. */
static void damage(const char *format, const char *path, const char *file, int rounds)
{
    struct dt_error err;
    struct dt_rng rng;
    char *good, *bad;
    size_t size;
    assert_int_equal(dt_file_read(file, 1 << 20, &good, &size, &err), 0);
    bad = malloc(size);
    dt_rng_init(&rng, size);
    for (int i = 0; i < rounds; i++) {
        size_t n = i % 4 ? size : dt_rng_below(&rng, (uint32_t)size);
        memcpy(bad, good, size);
        for (uint32_t k = 1 + dt_rng_below(&rng, 3); k > 0; k--)
            bad[dt_rng_below(&rng, (uint32_t)size)] = (char)dt_rng_u32(&rng);
        FILE *f = fopen(file, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(bad, 1, n, f), n);
        fclose(f);
        read_all(format, path);
    }
    assert_int_equal(dt_file_write(file, good, size, &err), 0);
    free(good);
    free(bad);
}

static void changed_files_do_no_harm(void **state)
{
    (void)state;
    static const struct {
        const char *format, *file;
    } files[] = {{"mds", "/shard.00000.mds"},
                 {"mds", "/index.json"},
                 {"megatron", ".bin"},
                 {"megatron", ".idx"},
                 {"llmc", ""}};
    for (int i = 0; i < 5; i++) {
        char *name = dt_asprintf("%s-256", files[i].format), *path = dt_path_join(scratch, name);
        char *file = dt_asprintf("%s%s", path, files[i].file);
        damage(files[i].format, path, file, 300);
        expect_documents(files[i].format, path);
        free(file);
        free(path);
        free(name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_others_wrote_is_read),
        cmocka_unit_test(what_is_written_is_what_others_write),
        cmocka_unit_test(ids_of_four_bytes_come_back),
        cmocka_unit_test(changed_files_do_no_harm),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
