/* SPDX-License-Identifier: MIT */
/*
 * The tcp transport, for ranks that no MPI has started: their number and how many they are is in
 * the environment (RANK and WORLD_SIZE, or SLURM_PROCID and SLURM_NTASKS), and they meet at a
 * path that all can reach (comm/meeting.h).
 */
#ifndef DT_COMM_TCP_H
#define DT_COMM_TCP_H

#include "comm/transport.h"

extern const struct dt_transport dt_tcp_transport;

#endif
