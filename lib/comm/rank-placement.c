/* SPDX-License-Identifier: MIT */
/* Placement of ranks: machine and processors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/pool.h"
#include "base/system.h"
#include "comm/comm.h"
#include "hash/hash.h"

#define PROCESSORS 1024 /* that are listed at most */

/* Appends ranges of processors, as in "0-3,8", as far as they fit. */
static void list_processors(const bool may[PROCESSORS], char *text, size_t size)
{
    size_t used = strlen(text);
    const char *comma = "";
    for (size_t first = 0; first < PROCESSORS; first++) {
        size_t last = first;
        if (!may[first])
            continue;
        while (last + 1 < PROCESSORS && may[last + 1])
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
    bool may[PROCESSORS];
    char host[40] = "";
    gethostname(host, sizeof host - 1);
    snprintf(place, DT_PLACE, "%s, processors ", host);
    if (dt_system_processors(may, PROCESSORS) >= 0)
        list_processors(may, place, DT_PLACE);
}

int dt_comm_places(struct dt_comm *comm, char (**places)[DT_PLACE], struct dt_error *err)
{
    *places = dt_alloc((size_t)dt_comm_size(comm), DT_PLACE);
    describe((*places)[dt_comm_rank(comm)]);
    return dt_comm_share(comm, *places, DT_PLACE, err);
}

int dt_comm_neighbours(struct dt_comm *comm, int *count, struct dt_error *err)
{
    int size = dt_comm_size(comm), rank = dt_comm_rank(comm);
    uint64_t *machines = dt_alloc((size_t)size, sizeof *machines);
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    machines[rank] = dt_hash(name, strlen(name));
    int rc = dt_comm_share(comm, machines, sizeof *machines, err);
    *count = 0;
    for (int r = 0; r < size; r++)
        *count += machines[r] == machines[rank];
    free(machines);
    return rc;
}

int dt_comm_processors(struct dt_comm *comm, int *count, struct dt_error *err)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int neighbours;
    DT_TRY(dt_comm_neighbours(comm, &neighbours, err));
    *count = dt_pool_processors();
    if (*count >= online)
        *count = *count / neighbours > 0 ? *count / neighbours : 1;
    return 0;
}
