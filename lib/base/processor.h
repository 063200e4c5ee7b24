/* SPDX-License-Identifier: MIT */
/* The name of this processor. */
#ifndef DT_BASE_PROCESSOR_H
#define DT_BASE_PROCESSOR_H

#define DT_PROCESSOR_NAME 128 /* bytes, with the final 0 */

/* The model name of the first processor, or the architecture's if the kernel does not report it.
 * Returns name. */
char *dt_processor_find(char name[DT_PROCESSOR_NAME]);

#endif
