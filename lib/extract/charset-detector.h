/* SPDX-License-Identifier: MIT */
/*
 * The encoding of a text by the frequencies of its bytes, for pages that state none. The plug-in
 * charset.so over uchardet, which is optional.
 */
#ifndef DT_EXTRACT_CHARSET_DETECTOR_H
#define DT_EXTRACT_CHARSET_DETECTOR_H

#include <stddef.h>

#include "base/error.h"

#define DT_CHARSET_DETECTOR_ABI  1
#define DT_CHARSET_DETECTOR_NAME 32

/* The plug-in's table, exported as "dt_charset_detector". */
struct dt_charset_detector {
    int abi;
    void *(*start)(void);
    void (*add)(void *state, const char *text, size_t size);
    /* Frees the state. name becomes the encoding as iconv(3) calls it, or "". */
    void (*finish)(void *state, char name[DT_CHARSET_DETECTOR_NAME]);
};

/* *detector becomes NULL if dt was built without uchardet. */
int dt_charset_detector_load(const struct dt_charset_detector **detector,
                             struct dt_error *err) DT_MUST_CHECK;

#endif
