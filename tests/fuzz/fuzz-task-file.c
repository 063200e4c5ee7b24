/* SPDX-License-Identifier: MIT */
/* Task files: the first byte chooses; the rest is a file, a list of Python, an expression, or items
 * of an evaluation, which are compared with themselves. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/compare.h"
#include "tasks/filter.h"
#include "tasks/literal.h"
#include "tasks/task.h"

static const char *write_file(const uint8_t *data, size_t size)
{
    static char path[256];
    struct dt_error err;
    snprintf(path, sizeof path, "%s/file", fuzz_directory());
    if (dt_file_write(path, data, size, &err) < 0)
        abort();
    return path;
}

static void compare(const uint8_t *data, size_t size)
{
    const char *path = write_file(data, size);
    struct dt_buffer text = DT_BUFFER_EMPTY;
    struct dt_error err;
    (void)!dt_task_compare(path, path, false, 1, &text, &err);
    dt_buffer_release(&text);
}

static void read_file(const uint8_t *data, size_t size)
{
    struct dt_task *task;
    struct dt_error err;
    struct dt_buffer out = DT_BUFFER_EMPTY;
    if (dt_task_read(&task, write_file(data, size), &err) < 0)
        return;
    for (size_t i = 0; i < task->filter_count; i++)
        dt_task_filter_apply(&task->filters[i], "#### 12 (A)", 11, &out);
    dt_buffer_release(&out);
    dt_task_free(task);
}

static void find(const char *expression)
{
    static const char text[] = "Q: 1,234 \xc3\x89t\xc3\xa9\n#### -5";
    struct dt_regex *regex;
    struct dt_error err;
    struct dt_buffer out = DT_BUFFER_EMPTY;
    if (dt_regex_new_python(&regex, expression, "fuzz", &err) < 0)
        return;
    if (dt_regex_substitute(regex, "\\g<0>", text, sizeof text - 1, &out, &err) < 0 ||
        out.size != sizeof text - 1 || memcmp(out.data, text, out.size) != 0)
        __builtin_trap();
    dt_buffer_release(&out);
    dt_regex_free(regex);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_object *value;
    struct dt_error err;
    if (size == 0)
        return 0;
    char *text = dt_strndup((const char *)data + 1, size - 1);
    if (data[0] % 4 == 1 && dt_literal_parse((const char *)data + 1, size - 1, &value, &err) == 0)
        json_object_put(value);
    else if (data[0] % 4 == 2)
        find(text);
    else if (data[0] % 4 == 3)
        compare(data + 1, size - 1);
    else if (data[0] % 4 == 0)
        read_file(data + 1, size - 1);
    free(text);
    return 0;
}
