/* SPDX-License-Identifier: MIT */
/* CRC-32C (Castagnoli) of RFC 3720, and its masked form in TensorBoard's record files. */
#ifndef DT_TRACK_CRC32C_H
#define DT_TRACK_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t dt_crc32c(const void *data, size_t size);
/* Rotated and offset: the CRC of data that contain CRCs is problematic unmasked. */
uint32_t dt_crc32c_masked(const void *data, size_t size);

#endif
