/* SPDX-License-Identifier: MIT */
/* Sorting the suffixes of a text: the table of the plug-in suffixes.so, over libdivsufsort. */
#ifndef DT_DEDUP_SUFFIXES_H
#define DT_DEDUP_SUFFIXES_H

#include <stdint.h>

#define DT_SUFFIXES_ABI 1

struct dt_suffixes {
    int abi;
    /* Fill suffixes with the starts of all suffixes in the order of their bytes, unsigned. They
     * return 0, or a negative number if memory ran out. */
    int (*sort)(const unsigned char *text, int32_t *suffixes, int32_t size);
    int (*sort_long)(const unsigned char *text, int64_t *suffixes, int64_t size);
};

#endif
