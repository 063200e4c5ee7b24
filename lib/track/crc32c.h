/* SPDX-License-Identifier: MIT */
/* CRC-32C (Castagnoli), as in RFC 3720, and the masked form in which TensorBoard's
 * record files keep it. */
#ifndef DT_TRACK_CRC32C_H
#define DT_TRACK_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t dt_crc32c(const void *data, size_t size);
/* Rotated and offset, so that the checksum of data that hold checksums is none of them. */
uint32_t dt_crc32c_masked(const void *data, size_t size);

#endif
