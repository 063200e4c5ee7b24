/* SPDX-License-Identifier: MIT */
/* Suffix arrays by libdivsufsort, as a plug-in. */
#include <divsufsort.h>
#include <divsufsort64.h>

#include "dedup/suffixes.h"

static int sort_short(const unsigned char *text, int32_t *suffixes, int32_t size)
{
    return divsufsort(text, suffixes, size);
}

static int sort_long(const unsigned char *text, int64_t *suffixes, int64_t size)
{
    return divsufsort64(text, suffixes, size);
}

__attribute__((visibility("default"))) extern const struct dt_suffixes dt_suffixes;
const struct dt_suffixes dt_suffixes = {DT_SUFFIXES_ABI, sort_short, sort_long};
