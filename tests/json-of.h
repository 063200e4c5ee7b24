/* SPDX-License-Identifier: MIT */
#ifndef DT_TESTS_JSON_OF_H
#define DT_TESTS_JSON_OF_H

#include "test.h"

#include <string.h>

#include "json/json.h"

/* The value of a text that is JSON; owned by the caller. */
static inline struct json_object *json_of(const char *text)
{
    struct dt_error err;
    struct json_object *value;
    if (dt_json_parse(text, strlen(text), "text", &value, &err) < 0)
        fail_msg("%s", err.text);
    return value;
}

#endif
