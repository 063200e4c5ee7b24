/* SPDX-License-Identifier: MIT */
/*
 * A thread pool that keeps the order: jobs are returned in the order of submission.
 *
 *     struct dt_pool *pool = dt_pool_new(threads, work, context);
 *     while ((job = read_job()) != NULL) {
 *         if (dt_pool_full(pool))
 *             emit(dt_pool_next(pool));
 *         dt_pool_submit(pool, job);
 *     }
 *     while ((job = dt_pool_next(pool)) != NULL)
 *         emit(job);
 *     dt_pool_free(pool);
 *
 * One thread submits and takes jobs; work(job, context) runs on the pool's threads. With threads =
 * 1 it runs in the submitting thread.
 */
#ifndef DT_BASE_POOL_H
#define DT_BASE_POOL_H

#include <stdbool.h>

struct dt_pool;
typedef void dt_pool_work(void *job, void *context);

struct dt_pool *dt_pool_new(int threads, dt_pool_work *work, void *context);
void dt_pool_submit(struct dt_pool *pool, void *job); /* the pool must not be full */
bool dt_pool_full(const struct dt_pool *pool);
void *dt_pool_next(struct dt_pool *pool); /* waits for the oldest job; NULL if none is left */
void dt_pool_free(struct dt_pool *pool);  /* waits for jobs in flight; NULL is fine */

/* Processors this process may use. */
int dt_pool_processors(void);

#endif
