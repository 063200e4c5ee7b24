/* SPDX-License-Identifier: MIT */
/* What processor this is. */
#ifndef DT_BASE_PROCESSOR_H
#define DT_BASE_PROCESSOR_H

#define DT_PROCESSOR_NAME 128 /* bytes, with the final 0 */

/* The model name of the first processor, or the architecture's where the kernel does not tell.
 * Returns name. */
char *dt_processor_find(char name[DT_PROCESSOR_NAME]);

#endif
