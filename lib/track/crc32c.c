/* SPDX-License-Identifier: MIT */
#include "track/crc32c.h"

#define POLYNOMIAL 0x82f63b78u /* CRC-32C, bit-reversed */

uint32_t dt_crc32c(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint32_t crc = ~(uint32_t)0;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
    }
    return ~crc;
}

uint32_t dt_crc32c_masked(const void *data, size_t size)
{
    uint32_t crc = dt_crc32c(data, size);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
