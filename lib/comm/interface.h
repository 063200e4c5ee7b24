/* SPDX-License-Identifier: MIT */
/* The address on which a rank listens. */
#ifndef DT_COMM_INTERFACE_H
#define DT_COMM_INTERFACE_H

#include <stdint.h>

#include "base/error.h"

/* The first IPv4 address of the network interface of that name, or the address itself if name is
 * one of this machine's; in network byte order. DT_EMISSING lists the interfaces found. */
int dt_interface_find(const char *name, uint32_t *address, struct dt_error *err) DT_MUST_CHECK;

/* This machine's address on the way to that one, both in network byte order; 0 without a route. */
uint32_t dt_interface_towards(uint32_t address);

/* The default: the address of the default route; else the first address that is not loopback; else
 * 127.0.0.1. */
uint32_t dt_interface_default(void);

/* The IPv4 address of a host, in network byte order; 0 if it has none, yet. */
uint32_t dt_interface_look_up(const char *host);

#endif
