/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "base/file.h"
#include "formats/tensor-file.h"

static struct dt_error err;
static const char path[] = "x.safetensors";
static const struct dt_named_tensor list[] = {{.name = "a", .rank = 2, .shape = {4, 3}},
                                              {.name = "b", .rank = 1, .shape = {5}}};

/* A file whose tensor b has these five elements. */
static void create(const float *b)
{
    char *data;
    size_t size;
    assert_int_equal(dt_tensor_file_create(path, list, 2, &err), 0);
    assert_int_equal(dt_file_read(path, 1 << 20, &data, &size, &err), 0);
    memcpy(data + size - 5 * sizeof *b, b, 5 * sizeof *b);
    assert_int_equal(dt_file_write(path, data, size, &err), 0);
    free(data);
}

static void non_finite_elements_are_not_read(void **state)
{
    (void)state;
    struct dt_tensor_file file;
    float b[5] = {1, 2, 3, -INFINITY, 5}, got[5];
    create(b);
    assert_int_equal(dt_tensor_file_open(&file, path, list, 2, false, &err), 0);
    assert_int_equal(dt_tensor_file_read(&file, 1, 0, 3, got, &err), 0);
    assert_memory_equal(got, b, 3 * sizeof *b);
    assert_int_equal(dt_tensor_file_read(&file, 1, 2, 3, got, &err), DT_EFORMAT);
    assert_string_equal(err.text,
                        "x.safetensors: tensor 'b': element 3 is -Inf, and weights must be finite");
    dt_tensor_file_close(&file);
}

static void non_finite_elements_are_not_written(void **state)
{
    (void)state;
    struct dt_tensor_file file;
    const float b[5] = {1, 2, 3, 4, 5}, bad[2] = {6, NAN};
    float got[5];
    create(b);
    assert_int_equal(dt_tensor_file_open(&file, path, list, 2, true, &err), 0);
    assert_int_equal(dt_tensor_file_write(&file, 1, 1, 2, bad, &err), DT_EFORMAT);
    assert_string_equal(err.text,
                        "x.safetensors: tensor 'b': element 2 is NaN, and weights must be finite");
    assert_int_equal(dt_tensor_file_read(&file, 1, 0, 5, got, &err), 0);
    assert_memory_equal(got, b, sizeof b);
    dt_tensor_file_close(&file);
}

/* Parts of tensors that are one of the file, written in pieces, are what dt_safetensors_read gives,
 * and so is the hash. */
static void fused_tensors_are_written_in_pieces(void **state)
{
    enum { ROWS = 6, COLUMNS = 3, COUNT = ROWS * COLUMNS };
    float data[2][COUNT], got[COUNT];
    (void)state;
    for (int64_t head_rows = 0; head_rows <= 3; head_rows += 3) {
        const struct dt_named_tensor fused[] = {
            {.name = "x", .rank = 2, .shape = {2, 2}, .data = data[0]},
            {.name = "q", .rank = 2, .shape = {ROWS, COLUMNS}, .head_rows = head_rows},
            {.name = "q", .rank = 2, .shape = {ROWS, COLUMNS}, .head_rows = head_rows}};
        struct dt_named_tensor whole[3];
        struct dt_tensor_file file;
        uint64_t hash, other;
        assert_int_equal(dt_tensor_file_create(path, fused, 3, &err), 0);
        assert_int_equal(dt_tensor_file_open(&file, path, fused, 3, true, &err), 0);
        for (int t = 0; t < 2; t++)
            for (int i = 0; i < COUNT; i += 5) {
                for (int j = i; j < i + 5 && j < COUNT; j++)
                    data[t][j] = (float)(100 * t + j);
                assert_int_equal(dt_tensor_file_write(&file, t + 1, i,
                                                      COUNT - i < 5 ? COUNT - i : 5, data[t] + i,
                                                      &err),
                                 0);
            }
        for (int t = 0; t < 2; t++) {
            assert_int_equal(dt_tensor_file_read(&file, t + 1, 2, COUNT - 2, got, &err), 0);
            assert_memory_equal(got, data[t] + 2, (COUNT - 2) * sizeof *got);
        }
        assert_int_equal(dt_tensor_file_hash(&file, &hash, &err), 0);
        dt_tensor_file_close(&file);
        memcpy(whole, fused, sizeof whole);
        float x[4], q[2][COUNT];
        whole[0].data = x;
        whole[1].data = q[0];
        whole[2].data = q[1];
        assert_int_equal(dt_safetensors_read(path, whole, 3, NULL, &err), 0);
        assert_memory_equal(q, data, sizeof q);
        assert_int_equal(dt_safetensors_write(path, whole, 3, true, &err), 0); /* loaded whole */
        assert_int_equal(dt_tensor_file_open(&file, path, fused, 3, false, &err), 0);
        assert_int_equal(dt_tensor_file_hash(&file, &other, &err), 0);
        assert_true(hash == other);
        dt_tensor_file_close(&file);
    }
}

static void what_cannot_be_opened_is_named(void **state)
{
    (void)state;
    struct dt_tensor_file file;
    assert_int_equal(dt_tensor_file_create("no/x.safetensors", list, 2, &err), DT_EIO);
    assert_non_null(strstr(err.text, "cannot create 'no/x.safetensors'"));
    for (int writes = 0; writes < 2; writes++) {
        assert_true(dt_tensor_file_open(&file, "none", list, 2, writes, &err) < 0);
        assert_non_null(strstr(err.text, "'none'"));
        assert_int_equal(file.fd, -1);
        dt_tensor_file_close(&file); /* once more */
    }
}

static void files_of_another_layout_are_read_whole(void **state)
{
    (void)state;
    struct dt_tensor_file file;
    float a[12] = {1, 2}, b[5] = {3, 4}, got[5];
    struct dt_named_tensor other[] = {list[1], list[0]};
    other[0].data = b;
    other[1].data = a;
    assert_int_equal(dt_safetensors_write(path, other, 2, false, &err), 0);
    assert_int_equal(dt_tensor_file_open(&file, path, list, 2, false, &err), 0);
    assert_int_equal(dt_tensor_file_read(&file, 1, 0, 5, got, &err), 0);
    assert_memory_equal(got, b, sizeof b);
    dt_tensor_file_close(&file);
    other[0].name[0] = 'c'; /* of the size that is expected, but without b */
    assert_int_equal(dt_tensor_file_create(path, other, 2, &err), 0);
    assert_int_equal(dt_tensor_file_open(&file, path, list, 2, false, &err), DT_EFORMAT);
    assert_int_equal(file.fd, -1);
}

static void files_that_change_are_found(void **state)
{
    (void)state;
    struct dt_tensor_file file;
    const float b[5] = {1, 2, 3, 4, 5};
    float got[5];
    create(b);
    assert_int_equal(dt_tensor_file_open(&file, path, list, 2, false, &err), 0);
    assert_int_equal(dt_tensor_file_write(&file, 1, 0, 5, b, &err), DT_EIO); /* not for writing */
    assert_non_null(strstr(err.text, "cannot write 'x.safetensors'"));
    assert_int_equal(truncate(path, 8), 0);
    assert_int_equal(dt_tensor_file_read(&file, 1, 0, 5, got, &err), DT_EFORMAT);
    assert_string_equal(err.text, "x.safetensors: ends too early");
    dt_tensor_file_close(&file);
}

static void files_may_not_exceed_the_limit_of_the_system(void **state)
{
    static const rlim_t limits[] = {4, 200}; /* within the header, and after it */
    struct rlimit before, less;
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (int i = 0; i < 2; i++) {
        less = (struct rlimit){limits[i], before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
        int rc = dt_tensor_file_create(path, list, 2, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(rc, DT_EIO);
        assert_string_equal(err.text, "cannot write 'x.safetensors': File too large");
    }
    signal(SIGXFSZ, SIG_DFL);
}

static void elements_that_are_not_finite_are_not_hashed(void **state)
{
    struct dt_named_tensor fused[] = {{.name = "q", .rank = 2, .shape = {6, 3}, .head_rows = 3},
                                      {.name = "q", .rank = 2, .shape = {6, 3}, .head_rows = 3}};
    struct dt_tensor_file file;
    float q[2][18] = {{0}};
    uint64_t hash;
    (void)state;
    assert_int_equal(dt_tensor_file_create(path, fused, 2, &err), 0);
    char *data;
    size_t size;
    assert_int_equal(dt_file_read(path, 1 << 20, &data, &size, &err), 0);
    q[0][0] = NAN;
    memcpy(data + size - sizeof q, q, sizeof q);
    assert_int_equal(dt_file_write(path, data, size, &err), 0);
    free(data);
    assert_int_equal(dt_tensor_file_open(&file, path, fused, 2, false, &err), 0);
    assert_int_equal(dt_tensor_file_hash(&file, &hash, &err), DT_EFORMAT);
    assert_int_equal(dt_tensor_file_sync(&file, &err), 0);
    dt_tensor_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_opened_is_named),
        cmocka_unit_test(files_of_another_layout_are_read_whole),
        cmocka_unit_test(files_that_change_are_found),
        cmocka_unit_test(files_may_not_exceed_the_limit_of_the_system),
        cmocka_unit_test(elements_that_are_not_finite_are_not_hashed),
        cmocka_unit_test(non_finite_elements_are_not_read),
        cmocka_unit_test(non_finite_elements_are_not_written),
        cmocka_unit_test(fused_tensors_are_written_in_pieces),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
