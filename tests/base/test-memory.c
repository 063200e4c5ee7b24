/* SPDX-License-Identifier: MIT */
/* Memory that is left, on machines made of a few files. */
#include "scratch.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"

static void put(const char *directory, const char *name, const char *text)
{
    struct dt_error err;
    char *at = dt_asprintf("%s/%s", scratch, directory), *path = dt_asprintf("%s/%s", at, name);
    assert_int_equal(dt_file_make_directories(at, &err), 0);
    assert_int_equal(dt_file_write(path, text, strlen(text), &err), 0);
    free(at), free(path);
}

static void the_least_of_machine_and_groups_counts(void **state)
{
    (void)state;
    assert_true(dt_memory_available(scratch) == SIZE_MAX);
    put("proc", "meminfo", "MemTotal:       8000 kB\nMemFree:   10 kB\nMemAvailable:    4000 kB\n");
    assert_int_equal(dt_memory_available(scratch), 4000 * 1024);
    put("proc/self", "cgroup", "0::/a/b\n");
    put("sys/fs/cgroup/a/b", "memory.max", "max\n");
    put("sys/fs/cgroup/a/b", "memory.current", "700000\n");
    assert_int_equal(dt_memory_available(scratch), 4000 * 1024);
    put("sys/fs/cgroup/a", "memory.max", "1000000\n"); /* the group above limits */
    put("sys/fs/cgroup/a", "memory.current", "900000\n");
    assert_int_equal(dt_memory_available(scratch), 100000);
    put("sys/fs/cgroup/a", "memory.stat", "anon 1\nactive_file 20000\ninactive_file 300\n");
    assert_int_equal(dt_memory_available(scratch), 120300);
    put("sys/fs/cgroup", "memory.max", "50\n"); /* what a container sees as its root */
    put("sys/fs/cgroup", "memory.current", "60\n");
    assert_int_equal(dt_memory_available(scratch), 0);
}

static void version_1_of_control_groups_is_read(void **state)
{
    (void)state;
    put("proc", "meminfo", "MemAvailable:    4000 kB\n");
    put("proc/self", "cgroup", "5:cpu,cpuacct:/x\n4:memory:/job\n0::/none\n");
    put("sys/fs/cgroup", "memory.max", "max\n");
    put("sys/fs/cgroup/memory/job", "memory.limit_in_bytes", "5000\n");
    put("sys/fs/cgroup/memory/job", "memory.usage_in_bytes", "2000\n");
    put("sys/fs/cgroup/memory/job", "memory.stat", "active_file 9\ntotal_active_file 70\n");
    assert_int_equal(dt_memory_available(scratch), 3070);
}

static void a_real_machine_has_memory(void **state)
{
    (void)state;
    assert_true(dt_memory_available("") > 1 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_of_machine_and_groups_counts),
        cmocka_unit_test(version_1_of_control_groups_is_read),
        cmocka_unit_test(a_real_machine_has_memory),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
