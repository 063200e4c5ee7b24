/* SPDX-License-Identifier: MIT */
/* Lists of ranks in messages. */
#include <stdio.h>

#include "comm/comm.h"

char *dt_comm_name_ranks(const int *ranks, int count, char text[DT_RANKS])
{
    enum { NAMED = 4 };
    int used = 0;
    for (int i = 0; i < count && i < NAMED; i++)
        used += snprintf(text + used, DT_RANKS - (size_t)used, "%s%d",
                         i == 0           ? ""
                         : i == count - 1 ? " and "
                                          : ", ",
                         ranks[i]);
    if (count > NAMED)
        snprintf(text + used, DT_RANKS - (size_t)used, " and %d more", count - NAMED);
    return text;
}
