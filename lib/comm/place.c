/* SPDX-License-Identifier: MIT */
/* Where ranks run: the machine, and which of its processors. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "comm/comm.h"

/* Appends runs of processors, as "0-3,8", as far as they fit. */
static void list_processors(const cpu_set_t *set, char *text, size_t size)
{
    size_t used = strlen(text);
    const char *comma = "";
    for (size_t first = 0; first < CPU_SETSIZE; first++) {
        size_t last = first;
        if (!CPU_ISSET(first, set))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
            last++;
        int length = last > first
                         ? snprintf(text + used, size - used, "%s%zu-%zu", comma, first, last)
                         : snprintf(text + used, size - used, "%s%zu", comma, first);
        if (length < 0 || (used += (size_t)length) >= size)
            return;
        comma = ",";
        first = last;
    }
}

static void describe(char place[DT_PLACE])
{
    cpu_set_t set;
    char host[40] = "";
    gethostname(host, sizeof host - 1);
    snprintf(place, DT_PLACE, "%s, processors ", host);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        list_processors(&set, place, DT_PLACE);
}

int dt_comm_places(struct dt_comm *comm, char (**places)[DT_PLACE], struct dt_error *err)
{
    size_t size = (size_t)dt_comm_size(comm), *offsets = dt_alloc(size + 1, sizeof *offsets);
    *places = dt_alloc(size, DT_PLACE);
    for (size_t r = 0; r <= size; r++)
        offsets[r] = r * DT_PLACE;
    describe((*places)[dt_comm_rank(comm)]);
    int rc = dt_comm_wait(comm, dt_comm_all_gather(comm, *places, offsets), err);
    free(offsets);
    return rc;
}
