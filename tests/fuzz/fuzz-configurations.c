/* SPDX-License-Identifier: MIT */
/* What people configure: the first byte chooses, the others are the file. Settings of a run, a
 * cluster, a matrix of experiments, and a value on the command line. */
#include "base/buffer.h"
#include "experiment/design.h"
#include "experiment/matrix.h"
#include "fuzz.h"
#include "plan/cluster.h"
#include "settings/settings.h"

static void read_settings(const char *path)
{
    static struct dt_settings settings;
    struct dt_error err;
    if (dt_settings_read(&settings, NULL, path, NULL, 0, &err) == 0 &&
        dt_settings_resolve(&settings, 1000, path, &err) == 0 && settings.model.hidden_size < 1)
        abort();
}

static void override(const uint8_t *data, size_t size)
{
    static struct dt_settings settings;
    static struct dt_cluster cluster;
    struct dt_error err;
    char *text = dt_strndup((const char *)data, size);
    const char *assignment = text;
    (void)!dt_settings_read(&settings, NULL, NULL, &assignment, 1, &err);
    (void)!dt_cluster_read(&cluster, "/dev/null", &assignment, 1, &err);
    free(text);
}

static void read_cluster(const char *path)
{
    static struct dt_cluster cluster;
    struct dt_error err;
    if (dt_cluster_read(&cluster, path, NULL, 0, &err) == 0 && dt_cluster_ranks(&cluster) < 1)
        abort();
}

static void read_design(const char *path)
{
    struct json_object *design;
    struct dt_matrix matrix;
    struct dt_error err;
    if (dt_design_open(&design, path, &err) < 0)
        return;
    if (dt_matrix_init(&matrix, design, path, &err) == 0) {
        for (int cell = 0; cell < matrix.cell_count && cell < 20; cell++) {
            struct json_object *values = dt_matrix_cell(&matrix, cell);
            if (dt_matrix_find(&matrix, values) != cell)
                abort();
            json_object_put(values);
        }
        dt_matrix_release(&matrix);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const char *) = {read_settings, read_cluster, read_design};
    char path[32];
    if (size == 0)
        return 0;
    if (data[0] % 4 == 3) {
        override(data + 1, size - 1);
        return 0;
    }
    int fd = fuzz_file(data + 1, size - 1, path);
    readers[data[0] % 4](path);
    close(fd);
    return 0;
}
