/* SPDX-License-Identifier: MIT */
/* The scanners for any processor. */
#include "token/scan-window.h"
#include "token/scanners.h"

DEFINE_SPLITS

const struct dt_scanner_set dt_scanners_generic = {NULL, SPLITS};
