/* SPDX-License-Identifier: MIT */
#include "bench/write-bench.h"

#include <stdlib.h>

#include "base/clock.h"

/* Documents in memory. */
struct corpus {
    struct dt_shard_info info;
    struct dt_ids ids; /* concatenated */
    struct dt_shard_document *documents;
    size_t count, capacity;
};

static int take(struct corpus *c, struct dt_shard_reader *r, struct dt_error *err)
{
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_shard_document document;
    int rc = 1;
    while (c->ids.count < DT_WRITE_BENCH_TOKENS &&
           (rc = dt_shard_read(r, &ids, &document, err)) > 0) {
        dt_ids_append(&c->ids, ids.data, ids.count);
        DT_GROW(c->documents, c->count, c->capacity);
        c->documents[c->count++] = document;
    }
    dt_ids_release(&ids);
    return rc < 0 ? rc : 0;
}

static int read_corpus(struct corpus *c, const char *path, struct dt_error *err)
{
    struct dt_shard_reader *r;
    DT_TRY(dt_shard_reader_open(&r, path, err));
    dt_shard_reader_mark(r);
    c->info = *dt_shard_reader_info(r);
    c->info.row = c->info.padding_id = 0;
    c->info.provenance = ""; /* the reader frees its provenance */
    int rc = take(c, r, err);
    dt_shard_reader_close(r);
    return rc == 0 && c->ids.count == 0 ? dt_fail(err, DT_EFORMAT, "%s: contains no tokens", path)
                                        : rc;
}

static int write_documents(const struct corpus *c, struct dt_shard_writer *w, struct dt_error *err)
{
    const uint32_t *ids = c->ids.data;
    for (size_t i = 0; i < c->count; ids += c->documents[i++].tokens)
        DT_TRY(dt_shard_write(w, ids, &c->documents[i], err));
    return dt_shard_writer_finish(w, err);
}

static int write_once(const struct corpus *c, int level, int threads, uint64_t *bytes,
                      struct dt_error *err)
{
    struct dt_output out;
    struct dt_shard_writer *w;
    DT_TRY(dt_output_open(&out, "/dev/null", err));
    int rc = dt_shard_writer_new(&w, &out, &c->info, level, err);
    if (rc == 0) {
        struct dt_threads *pool = dt_threads_new(threads);
        dt_shard_writer_use_threads(w, pool);
        rc = write_documents(c, w, err);
        dt_shard_writer_free(w);
        dt_threads_free(pool);
    }
    *bytes = out.written;
    dt_output_abandon(&out);
    return rc;
}

static int measure(const struct corpus *c, int level, int threads, double seconds,
                   struct dt_write_speed *speed, struct dt_error *err)
{
    double begun = dt_clock_now();
    for (int pass = 0; pass < 3 || dt_clock_now() - begun < seconds; pass++) {
        double wall = dt_clock_now(), processor = dt_clock_processor_now();
        DT_TRY(write_once(c, level, threads, &speed->shard_bytes, err));
        wall = dt_clock_now() - wall;
        processor = dt_clock_processor_now() - processor;
        if (pass == 0 || wall < speed->seconds)
            speed->seconds = wall;
        if (pass == 0 || processor < speed->processor_seconds)
            speed->processor_seconds = processor;
    }
    return 0;
}

int dt_write_bench(const char *path, int level, int threads, double seconds,
                   struct dt_write_speed *speed, struct dt_error *err)
{
    struct corpus c = {.ids = DT_IDS_EMPTY};
    int rc = read_corpus(&c, path, err);
    *speed = (struct dt_write_speed){.tokens = c.ids.count, .documents = c.count};
    for (size_t i = 0; i < c.count; i++)
        speed->text_bytes += c.documents[i].bytes;
    if (rc == 0)
        rc = measure(&c, level, threads, seconds, speed, err);
    dt_ids_release(&c.ids);
    free(c.documents);
    return rc;
}
