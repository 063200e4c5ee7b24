/* SPDX-License-Identifier: MIT */
/* The functions of struct dt_logit_map. An engine first includes its functions, with DT_FMA,
 * DT_TANH and DT_FUNCTION as in device/functions.h. */
#ifndef DT_DEVICE_LOGIT_MAP_H
#define DT_DEVICE_LOGIT_MAP_H

#include "device/device.h"

#ifndef DT_TANH
#include "device/functions.h"
#endif

/* Whether logits are x itself. */
DT_FUNCTION bool dt_logit_map_is_identity(struct dt_logit_map map)
{
    return map.softcap == 0 && (map.scale == 0 || map.scale == 1);
}

/* The logit of x. */
DT_FUNCTION float dt_logit_map_value(struct dt_logit_map map, float x)
{
    float scale = map.scale == 0 ? 1.0f : map.scale;
    return map.softcap == 0 ? scale * x : map.softcap * DT_TANH(scale / map.softcap * x);
}

/* The derivative of a logit by x. */
DT_FUNCTION float dt_logit_map_slope(struct dt_logit_map map, float logit)
{
    float scale = map.scale == 0 ? 1.0f : map.scale, t = 1.0f / map.softcap * logit;
    return map.softcap == 0 ? scale : scale * DT_FMA(-t, t, 1.0f);
}

#endif
