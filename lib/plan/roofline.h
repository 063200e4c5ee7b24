/* SPDX-License-Identifier: MIT */
/*
 * The roofline of a training step on one device (Williams et al. 2009): arithmetic and
 * memory traffic of its operations, by count, and lower bounds of their time in seconds.
 */
#ifndef DT_PLAN_ROOFLINE_H
#define DT_PLAN_ROOFLINE_H

#include "base/buffer.h"
#include "plan/plan.h"

/* work: of request's settings on one device of its cluster. */
int dt_roofline_make(struct dt_step_work *work, const struct dt_plan_request *request,
                     const struct dt_plan_layout *layout, struct dt_error *err) DT_MUST_CHECK;

/* Appends a table, or a JSON object. */
void dt_roofline_print(struct dt_buffer *text, const struct dt_step_work *work,
                       const struct dt_plan_request *request, const struct dt_plan_layout *layout);
void dt_roofline_print_json(struct dt_buffer *text, const struct dt_step_work *work,
                            const struct dt_plan_request *request,
                            const struct dt_plan_layout *layout);

#endif
