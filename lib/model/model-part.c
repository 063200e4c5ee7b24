/* SPDX-License-Identifier: MIT */
#include "model/model-part.h"

struct dt_range dt_model_part_run(const struct dt_model_part *part, int layers, int i)
{
    long runs = (long)part->stages * part->chunks;
    return dt_range_part(layers, i, runs);
}

bool dt_model_part_holds(const struct dt_model_part *part, int layers, int layer)
{
    if (layer < 0)
        return part->stage == 0;
    if (layer >= layers)
        return part->stage == part->stages - 1;
    for (int chunk = 0; chunk < part->chunks; chunk++) {
        struct dt_range run = dt_model_part_run(part, layers, chunk * part->stages + part->stage);
        if (layer >= run.first && layer < run.end)
            return true;
    }
    return false;
}
