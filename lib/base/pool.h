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
 *
 * The stages of a pipeline are pools on the same threads, which take jobs of the newest pool first:
 *
 *     struct dt_threads *threads = dt_threads_new(count);
 *     struct dt_pool *parse = dt_pool_on(threads, parse_block, reader);
 *     struct dt_pool *encode = dt_pool_on(threads, encode_documents, encoder);
 */
#ifndef DT_BASE_POOL_H
#define DT_BASE_POOL_H

#include <stdbool.h>

struct dt_threads;

struct dt_threads *dt_threads_new(int count);     /* 1 or less: jobs run in the submitting thread */
int dt_threads_count(const struct dt_threads *t); /* as given, at least 1 */
void dt_threads_free(struct dt_threads *t);       /* after the pools on them; NULL is fine */

struct dt_pool;
typedef void dt_pool_work(void *job, void *context);

struct dt_pool *dt_pool_new(int threads, dt_pool_work *work, void *context);
/* A pool on threads that are borrowed. */
struct dt_pool *dt_pool_on(struct dt_threads *threads, dt_pool_work *work, void *context);
void dt_pool_submit(struct dt_pool *pool, void *job); /* the pool must not be full */
bool dt_pool_full(const struct dt_pool *pool);
void *dt_pool_next(struct dt_pool *pool); /* waits for the oldest job; NULL if none is left */
void dt_pool_free(struct dt_pool *pool);  /* waits for jobs in flight; NULL is fine */

/* Processors this process may use. */
int dt_pool_processors(void);

#endif
