/* SPDX-License-Identifier: MIT */
/* Rule files, and lists of documents to drop. */
#include "clean/drop-list.h"
#include "clean/quality.h"
#include "fuzz.h"

static void read_list(const char *path)
{
    struct dt_drop_list *list;
    struct dt_buffer like = DT_BUFFER_EMPTY;
    struct dt_error err;
    bool listed;
    if (dt_drop_list_open(&list, path, &err) < 0)
        return;
    for (uint64_t number = 1; number < 64; number++)
        if (dt_drop_list_ask(list, number, "", 0, &listed, &like, &err) < 0)
            break;
    (void)!dt_drop_list_end(list, 63, &err);
    dt_drop_list_close(list);
    dt_buffer_release(&like);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dt_rule rules[DT_RULES_MAX];
    char path[32];
    struct dt_error err;
    int count = 0, fd = fuzz_file(data, size, path);
    if (dt_rule_file_read(path, NULL, rules, &count, &err) == 0 && count == 0)
        abort();
    dt_rule_release(rules, count);
    read_list(path);
    close(fd);
    return 0;
}
