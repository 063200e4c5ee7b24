/* SPDX-License-Identifier: MIT */
/*
 * A cluster: its devices and links. dt-cluster(5) describes the files.
 *
 *     struct dt_cluster c;
 *     DT_TRY(dt_cluster_read(&c, "8xh100", overrides, count, err));
 *
 * All nodes are identical, and so are their devices. Links inside a node have one bandwidth per
 * device; between nodes the devices share the node's network. Ranks on the same device share its
 * memory, its links and its compute time.
 */
#ifndef DT_PLAN_CLUSTER_H
#define DT_PLAN_CLUSTER_H

#include "json/config.h"

/* GB are 10^9 bytes; bandwidths are unidirectional. */
struct dt_cluster {
    char name[DT_SETTING_STRING_SIZE];
    long nodes, devices; /* devices of a node */
    struct {
        char name[DT_SETTING_STRING_SIZE];
        double memory;   /* GB */
        double reserved; /* GB unavailable to a run: CUDA context, libraries, fragmentation */
        double tflops_16, tflops_32; /* peak of matrix products with 16- and 32-bit elements */
        double gemm_efficiency;      /* fraction of the peak reached by large matrix products */
        double attention_efficiency; /* fraction of the peak reached by fused attention */
        double bandwidth;            /* GB/s of memory */
        double bandwidth_efficiency;
        double launch; /* microseconds to launch an operation */
        double spread; /* standard deviation of the devices' slowdown */
        long ranks;    /* ranks on each device */
    } device;
    struct {
        double inside, inside_efficiency, inside_latency;    /* GB/s of a device; microseconds */
        double between, between_efficiency, between_latency; /* GB/s of a node */
        double interference; /* fraction of a transfer's time that compute loses */
    } link;
    struct {
        double device_mtbf;      /* hours between failures of one device; 0: none */
        double checkpoint_speed; /* GB/s written by a node */
        double checkpoint_limit; /* GB/s of the storage, all nodes together */
        double restart;          /* seconds from a failure to the first new step */
    } reliability;
};

/* Words for shells (options/completion.h): clusters in share/dt/clusters, and settings of one. */
void dt_cluster_add_names(struct dt_buffer *words);
void dt_cluster_add_settings(struct dt_buffer *words);

/* place: a path, or the name of a file in share/dt/clusters without ".yaml", of which a leading
 * "8x" may be left out. overrides: "section.key=value", the values of --machine. */
int dt_cluster_read(struct dt_cluster *cluster, const char *place, const char *const *overrides,
                    int count, struct dt_error *err) DT_MUST_CHECK;

long dt_cluster_ranks(const struct dt_cluster *cluster); /* total */
long dt_cluster_node_ranks(const struct dt_cluster *cluster);
/* Achieved FLOP/s of matrix products at an element size in bytes. */
double dt_cluster_gemm_rate(const struct dt_cluster *cluster, size_t element_size);
double dt_cluster_attention_rate(const struct dt_cluster *cluster, size_t element_size);
double dt_cluster_memory_rate(const struct dt_cluster *cluster); /* achieved bytes/s */
/* Bytes of device memory available to a rank. */
double dt_cluster_rank_memory(const struct dt_cluster *cluster);

#endif
