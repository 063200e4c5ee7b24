/* SPDX-License-Identifier: MIT */
/* Memory of the caches of an encoder: zeros, on huge pages where the system has them, as lookups
 * are at random addresses. Private to lib/token. */
#ifndef DT_TOKEN_CACHE_MEMORY_H
#define DT_TOKEN_CACHE_MEMORY_H

#include <stddef.h>

/* Owned by the caller: dt_cache_memory_free() with the same size, a multiple of a page. From 2 MiB
 * on on huge pages. */
void *dt_cache_memory_new(size_t size);
void dt_cache_memory_free(void *memory, size_t size); /* NULL is fine */

#endif
