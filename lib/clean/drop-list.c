/* SPDX-License-Identifier: MIT */
#include "clean/drop-list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash/hash.h"
#include "io/input.h"

struct dt_drop_list {
    struct dt_input *in;
    struct dt_buffer line;
    uint64_t number, hash;      /* of the line; number is 0 at the end */
    const char *like;           /* points into line */
    uint64_t listed, documents; /* lines read; documents of the input, known at the end */
};

/* Reads the last line. */
static int read_end(struct dt_drop_list *list, uint64_t last, struct dt_error *err)
{
    bool found;
    int end = 0;
    uint64_t listed;
    const char *name = dt_input_name(list->in);
    if (sscanf(list->line.data, "end %" SCNu64 " of %" SCNu64 "%n", &listed, &list->documents,
               &end) != 2 ||
        (size_t)end != list->line.size || list->documents < last)
        return dt_fail(err, DT_EFORMAT, "%s: its last line is not 'end LISTED of DOCUMENTS'", name);
    if (listed != list->listed)
        return dt_fail(err, DT_EFORMAT,
                       "%s: has %" PRIu64 " lines of documents, and its last line says %" PRIu64
                       ": make it again with 'dt-dedup match'",
                       name, list->listed, listed);
    DT_TRY(dt_input_read_until(list->in, '\n', &list->line, &found, err));
    if (found || list->line.size > 0)
        return dt_fail(err, DT_EFORMAT,
                       "%s: has lines after its end: a list is for the documents of one file",
                       name);
    return 0;
}

static int read_line(struct dt_drop_list *list, struct dt_error *err)
{
    bool found;
    int end = 0;
    uint64_t before = list->number;
    list->number = 0;
    DT_TRY(dt_input_read_until(list->in, '\n', &list->line, &found, err));
    if (!found)
        return dt_fail(err, DT_EFORMAT,
                       "%s: is incomplete: its last line 'end LISTED of DOCUMENTS' is missing; "
                       "make it again with 'dt-dedup match'",
                       dt_input_name(list->in));
    if (strncmp(list->line.data, "end ", 4) == 0)
        return read_end(list, before, err);
    if (sscanf(list->line.data, "%" SCNu64 " %16" SCNx64 " %n", &list->number, &list->hash, &end) !=
            2 ||
        end == 0 || list->number <= before)
        return dt_fail(err, DT_EFORMAT,
                       "%s: is not a list of dt-dedup, or its lines are out of order",
                       dt_input_name(list->in));
    list->like = list->line.data + end;
    list->listed++;
    return 0;
}

int dt_drop_list_open(struct dt_drop_list **result, const char *path, struct dt_error *err)
{
    struct dt_drop_list *list = dt_alloc(1, sizeof *list);
    *result = NULL;
    int rc = dt_input_open_bytes(&list->in, path, err);
    if (rc == 0)
        rc = read_line(list, err);
    if (rc < 0) {
        dt_drop_list_close(list);
        return rc;
    }
    *result = list;
    return 0;
}

void dt_drop_list_close(struct dt_drop_list *list)
{
    if (list == NULL)
        return;
    dt_input_close(list->in);
    dt_buffer_release(&list->line);
    free(list);
}

int dt_drop_list_ask(struct dt_drop_list *list, uint64_t number, const void *text, size_t size,
                     bool *listed, struct dt_buffer *like, struct dt_error *err)
{
    *listed = list->number == number;
    if (!*listed)
        return 0;
    if (dt_hash(text, size) != list->hash)
        return dt_fail(err, DT_EINVALID, "%s: document %" PRIu64 " is another one than listed",
                       dt_input_name(list->in), number);
    dt_buffer_clear(like);
    dt_buffer_add_string(like, list->like);
    return read_line(list, err);
}

int dt_drop_list_end(struct dt_drop_list *list, uint64_t documents, struct dt_error *err)
{
    if (list->number > 0)
        return dt_fail(err, DT_EINVALID, "%s: lists document %" PRIu64 ", which is not there",
                       dt_input_name(list->in), list->number);
    if (documents == list->documents)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "%s: is for an input of %" PRIu64 " documents, and this one has %" PRIu64,
                   dt_input_name(list->in), list->documents, documents);
}
