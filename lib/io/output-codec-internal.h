/* SPDX-License-Identifier: MIT */
#ifndef DT_IO_OUTPUT_CODEC_INTERNAL_H
#define DT_IO_OUTPUT_CODEC_INTERNAL_H

#include "io/output-codec.h"

/* zstd, whatever the name of the output is. */
struct dt_output_codec *dt_output_codec_zstd(void);

#endif
