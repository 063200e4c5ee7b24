/* SPDX-License-Identifier: MIT */
#include "plan/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/program.h"
#include "options/completion.h"

#define AT(field) offsetof(struct dt_cluster, field)

/* Settings without an initial value are required, and above 0. */
static const struct dt_setting schema[] = {
    {"cluster.name", DT_SETTING_STRING, AT(name), ""},
    {"cluster.nodes", DT_SETTING_INT, AT(nodes), NULL, 1, 1e6},
    {"cluster.devices", DT_SETTING_INT, AT(devices), NULL, 1, 4096},
    {"device.name", DT_SETTING_STRING, AT(device.name), ""},
    {"device.memory", DT_SETTING_REAL, AT(device.memory), NULL, 1e-3, 1e6},
    {"device.reserved", DT_SETTING_REAL, AT(device.reserved), "0", 0, 1e6},
    {"device.tflops_16", DT_SETTING_REAL, AT(device.tflops_16), NULL, 1e-6, 1e6},
    {"device.tflops_32", DT_SETTING_REAL, AT(device.tflops_32), NULL, 1e-6, 1e6},
    {"device.gemm_efficiency", DT_SETTING_REAL, AT(device.gemm_efficiency), "0.8", 1e-3, 1},
    {"device.attention_efficiency", DT_SETTING_REAL, AT(device.attention_efficiency), "0.5", 1e-3,
     1},
    {"device.bandwidth", DT_SETTING_REAL, AT(device.bandwidth), NULL, 1e-3, 1e6},
    {"device.bandwidth_efficiency", DT_SETTING_REAL, AT(device.bandwidth_efficiency), "0.8", 1e-3,
     1},
    {"device.launch", DT_SETTING_REAL, AT(device.launch), "0", 0, 1e6},
    {"device.spread", DT_SETTING_REAL, AT(device.spread), "0", 0, 10},
    {"device.ranks", DT_SETTING_INT, AT(device.ranks), "1", 1, 4096},
    {"link.inside", DT_SETTING_REAL, AT(link.inside), NULL, 1e-6, 1e6},
    {"link.inside_efficiency", DT_SETTING_REAL, AT(link.inside_efficiency), "0.8", 1e-3, 1},
    {"link.inside_latency", DT_SETTING_REAL, AT(link.inside_latency), "5", 0, 1e6},
    {"link.between", DT_SETTING_REAL, AT(link.between), NULL, 1e-6, 1e6},
    {"link.between_efficiency", DT_SETTING_REAL, AT(link.between_efficiency), "0.8", 1e-3, 1},
    {"link.between_latency", DT_SETTING_REAL, AT(link.between_latency), "10", 0, 1e6},
    {"link.interference", DT_SETTING_REAL, AT(link.interference), "0", 0, 1},
    {"reliability.device_mtbf", DT_SETTING_REAL, AT(reliability.device_mtbf), "0", 0, 1e9},
    {"reliability.checkpoint_speed", DT_SETTING_REAL, AT(reliability.checkpoint_speed), "1", 1e-6,
     1e6},
    {"reliability.checkpoint_limit", DT_SETTING_REAL, AT(reliability.checkpoint_limit), "1", 1e-6,
     1e6},
    {"reliability.restart", DT_SETTING_REAL, AT(reliability.restart), "60", 0, 1e6},
    {NULL},
};

void dt_cluster_add_names(struct dt_buffer *words)
{
    char *folder = dt_program_installed_path("share/dt/clusters");
    dt_completion_add_files(words, folder, ".yaml");
    free(folder);
}

void dt_cluster_add_settings(struct dt_buffer *words)
{
    dt_config_add_words(schema, words);
}

static int fail_unknown(const char *place, const char *folder, struct dt_error *err)
{
    struct dt_buffer names = DT_BUFFER_EMPTY;
    dt_cluster_add_names(&names);
    int rc = dt_fail(err, DT_EINVALID, "'%s' is neither a file nor a cluster in %s: %s", place,
                     folder, names.data ? names.data : "");
    dt_buffer_release(&names);
    return rc;
}

/* Resolves place to a path, owned by the caller. */
static int find(const char *place, char **path, struct dt_error *err)
{
    int there = strchr(place, '/') ? 1 : dt_file_probe(place, err);
    *path = there > 0 ? dt_strdup(place) : NULL;
    if (there != 0)
        return there < 0 ? there : 0;
    char *folder = dt_program_installed_path("share/dt/clusters");
    char *installed = dt_asprintf("%s/%s.yaml", folder, place);
    if ((there = dt_file_probe(installed, err)) == 0) { /* h100: 8xh100 */
        free(installed);
        installed = dt_asprintf("%s/8x%s.yaml", folder, place);
        there = dt_file_probe(installed, err);
    }
    int rc = there == 0 ? fail_unknown(place, folder, err) : there;
    *path = rc > 0 ? installed : NULL;
    if (rc <= 0)
        free(installed);
    free(folder);
    return rc < 0 ? rc : 0;
}

/* The first required setting that was not given, or NULL. */
static const struct dt_setting *missing(const struct dt_cluster *c)
{
    for (const struct dt_setting *s = schema; s->name; s++) {
        const void *field = (const char *)c + s->offset;
        if (s->initial == NULL &&
            (s->kind == DT_SETTING_INT ? *(const long *)field == 0 : *(const double *)field == 0))
            return s;
    }
    return NULL;
}

int dt_cluster_read(struct dt_cluster *c, const char *place, const char *const *overrides,
                    int count, struct dt_error *err)
{
    memset(c, 0, sizeof *c);
    dt_config_defaults(schema, c);
    char *path;
    DT_TRY(find(place, &path, err));
    int rc = dt_config_read(schema, c, path, err);
    free(path);
    for (int i = 0; i < count && rc == 0; i++)
        rc = dt_config_override(schema, c, overrides[i], "--machine", err);
    if (rc == 0 && missing(c))
        rc = dt_fail(err, DT_EFORMAT, "%s: %s is needed", place, missing(c)->name);
    if (rc == 0 && c->device.reserved >= c->device.memory)
        rc =
            dt_fail(err, DT_EINVALID, "%s: device.reserved must be less than device.memory", place);
    return rc;
}

long dt_cluster_node_ranks(const struct dt_cluster *c)
{
    return c->devices * c->device.ranks;
}

long dt_cluster_ranks(const struct dt_cluster *c)
{
    return c->nodes * dt_cluster_node_ranks(c);
}

double dt_cluster_gemm_rate(const struct dt_cluster *c, size_t element_size)
{
    double peak = element_size == 2 ? c->device.tflops_16 : c->device.tflops_32;
    return peak * 1e12 * c->device.gemm_efficiency;
}

double dt_cluster_attention_rate(const struct dt_cluster *c, size_t element_size)
{
    return dt_cluster_gemm_rate(c, element_size) / c->device.gemm_efficiency *
           c->device.attention_efficiency;
}

double dt_cluster_memory_rate(const struct dt_cluster *c)
{
    return c->device.bandwidth * 1e9 * c->device.bandwidth_efficiency;
}

double dt_cluster_rank_memory(const struct dt_cluster *c)
{
    return (c->device.memory - c->device.reserved) * 1e9 / (double)c->device.ranks;
}
