/* SPDX-License-Identifier: MIT */
/* Linked before the library into programs of tests: faults are injected where environment variables
 * say (dt-hacking(7)). */
#include "base/fault.h"

#include <stdlib.h>

bool dt_fault_injected(enum dt_fault fault, long number)
{
    static const char *const variables[] = {
        [DT_FAULT_SKIP_EXCHANGE] = "DT_DEBUG_SKIP_EXCHANGE",
        [DT_FAULT_SKIP_BLOCK] = "DT_DEBUG_SKIP_BLOCK",
        [DT_FAULT_SKIP_REDUCTION] = "DT_DEBUG_SKIP_REDUCTION",
        [DT_FAULT_SKIP_TIED] = "DT_DEBUG_SKIP_TIED",
        [DT_FAULT_POISON] = "DT_DEBUG_POISON",
    };
    const char *value = getenv(variables[fault]);
    return value && atol(value) == number;
}
