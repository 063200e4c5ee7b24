/* SPDX-License-Identifier: MIT */
/*
 * A cluster: what its devices and links can do, as dt-cluster(5) describes the files.
 *
 *     struct dt_cluster c;
 *     DT_TRY(dt_cluster_read(&c, "8xh100", overrides, count, err));
 *
 * Nodes are alike, and so are their devices. Inside a node each device talks to
 * the others at one speed; between nodes the devices share the node's network. Where a device
 * has several ranks, they share its memory, its links and its time.
 */
#ifndef DT_PLAN_CLUSTER_H
#define DT_PLAN_CLUSTER_H

#include "json/config.h"

/* GB are 10^9 bytes; speeds are of one direction. */
struct dt_cluster {
    char name[DT_SETTING_STRING_SIZE];
    long nodes, devices; /* devices of a node */
    struct {
        char name[DT_SETTING_STRING_SIZE];
        double memory;               /* GB */
        double reserved;             /* GB that no run gets: context, libraries, fragments */
        double tflops_16, tflops_32; /* peaks of matrix products, by element size in bits */
        double gemm_efficiency;      /* of the peak, by large matrix products */
        double attention_efficiency; /* of the peak, by fused attention */
        double bandwidth;            /* GB/s of memory */
        double bandwidth_efficiency;
        double launch; /* microseconds that an operation takes at least */
        double spread; /* standard deviation of how much slower devices are */
        long ranks;    /* that share a device */
    } device;
    struct {
        double inside, inside_efficiency, inside_latency;    /* GB/s of a device; microseconds */
        double between, between_efficiency, between_latency; /* GB/s of a node */
        double interference; /* share of a transfer's time that it takes from computing */
    } link;
    struct {
        double device_mtbf;      /* hours between failures of one device; 0: none */
        double checkpoint_speed; /* GB/s that a node writes */
        double checkpoint_limit; /* GB/s that the storage takes in all */
        double restart;          /* seconds from a failure to the first new step */
    } reliability;
};

/* place: a file, or the name of one in share/dt/clusters without ".yaml"; overrides
 * "section.key=value" are those of the option --machine. */
int dt_cluster_read(struct dt_cluster *cluster, const char *place, const char *const *overrides,
                    int count, struct dt_error *err) DT_MUST_CHECK;

long dt_cluster_ranks(const struct dt_cluster *cluster); /* in all */
long dt_cluster_node_ranks(const struct dt_cluster *cluster);
/* Operations a second at the element size of a type, with the efficiency included. */
double dt_cluster_gemm_rate(const struct dt_cluster *cluster, size_t element_size);
double dt_cluster_memory_rate(const struct dt_cluster *cluster); /* bytes a second */
/* Bytes that a rank may take of a device. */
double dt_cluster_room(const struct dt_cluster *cluster);

#endif
