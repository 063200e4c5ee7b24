/* SPDX-License-Identifier: MIT */
/* Plans and search results as text of 80 columns, and as JSON. */
#ifndef DT_PLAN_REPORT_H
#define DT_PLAN_REPORT_H

#include "base/buffer.h"
#include "plan/search.h"
#include "json/json.h"

void dt_report_plan(struct dt_buffer *text, const struct dt_plan *plan,
                    const struct dt_plan_request *request);
void dt_report_search(struct dt_buffer *text, const struct dt_search *search,
                      const struct dt_plan_request *request, long devices);
/* Owned by the caller (json_object_put). */
struct json_object *dt_report_plan_json(const struct dt_plan *plan,
                                        const struct dt_plan_request *request);
struct json_object *dt_report_search_json(const struct dt_search *search,
                                          const struct dt_plan_request *request);

#endif
