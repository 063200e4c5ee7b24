/* SPDX-License-Identifier: MIT */
#include "extract/charset-detector.h"

#include "base/plugin.h"

int dt_charset_detector_load(const struct dt_charset_detector **detector, struct dt_error *err)
{
    DT_PLUGIN(kind, charset_detector, "detector of encodings", DT_CHARSET_DETECTOR_ABI, "");
    int rc = dt_plugin_load(&kind, "charset", (const void **)detector, err);
    if (rc != DT_EMISSING)
        return rc;
    *detector = NULL;
    return 0;
}
