/* SPDX-License-Identifier: MIT */
/* Scanners for any processor. */
#include "pretokenize/scan-window.h"
#include "pretokenize/scanners.h"

DEFINE_SPLITS

const struct dt_scanner_set dt_scanners_generic = {NULL, SPLITS};
