/* SPDX-License-Identifier: MIT */
/* The detector of encodings over uchardet, as a plug-in. */
#include <stdio.h>
#include <uchardet/uchardet.h>

#include "base/buffer.h"
#include "extract/charset-detector.h"

static void *start(void)
{
    return dt_checked(uchardet_new());
}

static void add(void *state, const char *text, size_t size)
{
    uchardet_handle_data(state, text, size);
}

static void finish(void *state, char name[DT_CHARSET_DETECTOR_NAME])
{
    uchardet_data_end(state);
    snprintf(name, DT_CHARSET_DETECTOR_NAME, "%s", uchardet_get_charset(state));
    uchardet_delete(state);
}

extern const struct dt_charset_detector dt_charset_detector __attribute__((visibility("default")));
const struct dt_charset_detector dt_charset_detector = {DT_CHARSET_DETECTOR_ABI, start, add,
                                                        finish};
