/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <math.h>
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(non_finite_elements_are_not_read),
        cmocka_unit_test(non_finite_elements_are_not_written),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
