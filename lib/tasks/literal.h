/* SPDX-License-Identifier: MIT */
/*
 * Literals of Python, as ast.literal_eval() reads them: what templates write of lists and strings.
 *
 *     DT_TRY(dt_literal_parse("['a', \"it's\", 3]", size, &value, err));
 *
 * Strings, integers, floats, True, False, None, lists and tuples, which become arrays. Others, as
 * dictionaries, are refused.
 */
#ifndef DT_TASKS_LITERAL_H
#define DT_TASKS_LITERAL_H

#include "json/json.h"

/* *value is owned by the caller; NULL is None. */
int dt_literal_parse(const char *text, size_t size, struct json_object **value,
                     struct dt_error *err) DT_MUST_CHECK;

#endif
