/* SPDX-License-Identifier: MIT */
/* The file that says which options of the cuda engine are proven on a GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "device/gpu-record.h"
#include "hash/sha256.h"
#include "scratch.h"
#include "test.h"

static char *path; /* of the file */

static struct dt_gpu_record record_of(const char *gpu, const char *driver)
{
    struct dt_gpu_record r = {.gpu = ""};
    struct dt_error err;
    uint64_t bytes;
    snprintf(r.gpu, sizeof r.gpu, "%s", gpu);
    snprintf(r.driver, sizeof r.driver, "%s", driver);
    assert_int_equal(dt_sha256_file("/proc/self/exe", &bytes, r.engine, &err), 0);
    return r;
}

static struct dt_gpu_record load(const char *gpu, const char *driver)
{
    struct dt_gpu_record r;
    struct dt_error err;
    assert_int_equal(setenv("DT_GPU_DRIVER", driver, 1), 0);
    assert_int_equal(dt_gpu_record_load(&r, gpu, (const void *)&dt_gpu_option_names, &err), 0);
    return r;
}

static void what_is_proven_is_found_for_its_gpu_driver_and_engine(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_gpu_record r = record_of("One GPU", "580.1");
    assert_false(load("One GPU", "580.1").proven[DT_GPU_WGMMA]); /* no file */
    r.proven[DT_GPU_WGMMA] = true;
    assert_int_equal(dt_gpu_record_store(&r, &err), 0);
    r = load("One GPU", "580.1");
    assert_true(r.proven[DT_GPU_WGMMA] && !r.proven[DT_GPU_GRAPH]);
    assert_false(load("One GPU", "580.2").proven[DT_GPU_WGMMA]);
    assert_false(load("One", "580.1").proven[DT_GPU_WGMMA]);
    r.proven[DT_GPU_GRAPH] = true, r.engine[0] ^= 1;
    assert_int_equal(dt_gpu_record_store(&r, &err), 0);
    assert_false(load("One GPU", "580.1").proven[DT_GPU_GRAPH]); /* of another build */
}

static void a_later_record_replaces_one_like_it(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_gpu_record r = record_of("Other GPU", "580.1"), none = r;
    r.proven[DT_GPU_WGMMA] = r.proven[DT_GPU_GRAPH] = true;
    assert_int_equal(dt_gpu_record_store(&r, &err), 0);
    assert_true(load("Other GPU", "580.1").proven[DT_GPU_GRAPH]);
    assert_int_equal(dt_gpu_record_store(&none, &err), 0);
    r = load("Other GPU", "580.1");
    assert_false(r.proven[DT_GPU_WGMMA] || r.proven[DT_GPU_GRAPH]);
    assert_true(load("One GPU", "580.1").proven[DT_GPU_WGMMA]); /* others stay */
}

static void a_line_that_is_malformed_is_named(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_gpu_record r;
    assert_int_equal(dt_file_write(path, "wgmma\n", 6, &err), 0);
    assert_int_equal(dt_gpu_record_load(&r, "One GPU", (const void *)&dt_gpu_option_names, &err),
                     DT_EFORMAT);
    assert_non_null(strstr(err.text, "/new/gpus:1: a record of a GPU has four fields"));
}

static int set_up(void **state)
{
    int rc = make_scratch(state);
    path = dt_asprintf("%s/new/gpus", scratch);
    return setenv("DT_GPU_RECORDS", path, 1) < 0 ? -1 : rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_proven_is_found_for_its_gpu_driver_and_engine),
        cmocka_unit_test(a_later_record_replaces_one_like_it),
        cmocka_unit_test(a_line_that_is_malformed_is_named),
    };
    return cmocka_run_group_tests(tests, set_up, remove_scratch);
}
