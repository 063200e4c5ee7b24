/* SPDX-License-Identifier: MIT */
#include "dedup/pair-file.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/buffer.h"
#include "hash/hash.h"
#include "io/input.h"

static const char magic[8] = "dt-pairs";

#define VERSION 1

/* The file's own byte order is little-endian. */
struct header {
    char magic[8];
    uint64_t version;
    uint64_t task, tasks;
    uint64_t set;      /* dt_signature_set_hash */
    uint64_t checksum; /* XXH64 of the fields above */
};

struct pair {
    uint64_t a, b;
};

/* The last pair of the file: all bits of their number inverted, which is not the number of a
 * document, and the XXH64 of the other pairs. */
static struct pair end_of(uint64_t count, uint64_t checksum)
{
    return (struct pair){~count, checksum};
}

struct dt_pair_writer {
    struct dt_output *out;
    uint64_t count;
    XXH64_state_t *checksum;
};

int dt_pair_writer_open(struct dt_pair_writer **result, const struct dt_signature_set *set,
                        struct dt_signature_task task, struct dt_output *out, struct dt_error *err)
{
    struct header header = {.version = VERSION,
                            .task = task.index,
                            .tasks = task.count,
                            .set = dt_signature_set_hash(set)};
    memcpy(header.magic, magic, sizeof magic);
    header.checksum = dt_hash_xxh64(&header, sizeof header - 8);
    *result = NULL;
    DT_TRY(dt_output_write(out, &header, sizeof header, err));
    struct dt_pair_writer *w = dt_alloc(1, sizeof *w);
    w->out = out;
    w->checksum = dt_checked(XXH64_createState());
    XXH64_reset(w->checksum, 0);
    *result = w;
    return 0;
}

int dt_pair_writer_add(void *context, uint64_t a, uint64_t b, struct dt_error *err)
{
    struct dt_pair_writer *w = context;
    const struct pair pair = {a, b};
    w->count++;
    XXH64_update(w->checksum, &pair, sizeof pair);
    return dt_output_write(w->out, &pair, sizeof pair, err);
}

uint64_t dt_pair_writer_count(const struct dt_pair_writer *w)
{
    return w->count;
}

int dt_pair_writer_end(struct dt_pair_writer *w, struct dt_error *err)
{
    const struct pair end = end_of(w->count, XXH64_digest(w->checksum));
    return dt_output_write(w->out, &end, sizeof end, err);
}

void dt_pair_writer_free(struct dt_pair_writer *w)
{
    if (w == NULL)
        return;
    XXH64_freeState(w->checksum);
    free(w);
}

/* --- reading ---------------------------------------------------------------------------------- */

struct reader {
    struct dt_input *in;
    const char *path;
    uint64_t set, documents;
    const char **done; /* the file of each task, NULL until it is read */
    dt_signature_link *link;
    void *context;
    XXH64_state_t *checksum;
};

static int read_pairs(struct reader *r, struct dt_error *err)
{
    struct pair pair;
    XXH64_reset(r->checksum, 0);
    for (uint64_t count = 0;; count++) {
        DT_TRY(dt_input_read_exactly(r->in, &pair, sizeof pair, err));
        if (pair.a == ~count)
            break;
        if (pair.a >= r->documents || pair.b >= r->documents)
            return dt_fail(err, DT_EFORMAT, "%s: pair %llu is of documents that are not there",
                           r->path, (unsigned long long)count + 1);
        XXH64_update(r->checksum, &pair, sizeof pair);
        DT_TRY(r->link(r->context, pair.a, pair.b, err));
    }
    if (pair.b != XXH64_digest(r->checksum))
        return dt_fail(err, DT_EFORMAT, "%s: the checksum is wrong", r->path);
    return 0;
}

/* Records the task of the file, which no other file may have. */
static int read_header(struct reader *r, uint64_t files, struct dt_error *err)
{
    struct header h;
    DT_TRY(dt_input_read_exactly(r->in, &h, sizeof h, err));
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.version != VERSION ||
        h.checksum != dt_hash_xxh64(&h, sizeof h - 8) || h.task >= h.tasks)
        return dt_fail(err, DT_EFORMAT, "%s: is not a file of pairs, or is damaged", r->path);
    if (h.set != r->set)
        return dt_fail(err, DT_EINVALID,
                       "%s: has pairs of other files of signatures, or of another order of them",
                       r->path);
    if (h.tasks != files)
        return dt_fail(err, DT_EINVALID, "%s: is one of %llu tasks, but %llu files are given",
                       r->path, (unsigned long long)h.tasks, (unsigned long long)files);
    if (r->done[h.task])
        return dt_fail(err, DT_EINVALID, "%s: has the same task as '%s'", r->path, r->done[h.task]);
    r->done[h.task] = r->path;
    return 0;
}

static int read_file(struct reader *r, uint64_t files, struct dt_error *err)
{
    char more;
    size_t size = 0;
    int rc = dt_input_open_bytes(&r->in, r->path, err);
    if (rc == 0)
        rc = read_header(r, files, err);
    if (rc == 0)
        rc = read_pairs(r, err);
    if (rc == 0)
        rc = dt_input_read(r->in, &more, 1, &size, err);
    if (rc == 0 && size > 0)
        rc = dt_fail(err, DT_EFORMAT, "%s: something follows its end", r->path);
    dt_input_close(r->in);
    return rc;
}

int dt_pair_file_read_all(const struct dt_signature_set *set, const char *const *paths, int count,
                          dt_signature_link *link, void *context, struct dt_error *err)
{
    struct reader r = {.set = dt_signature_set_hash(set),
                       .documents = dt_signature_set_size(set).documents,
                       .link = link,
                       .context = context};
    int rc = 0;
    r.done = dt_alloc((size_t)count, sizeof *r.done);
    r.checksum = dt_checked(XXH64_createState());
    for (int i = 0; i < count && rc == 0; i++) {
        r.in = NULL;
        r.path = paths[i];
        rc = read_file(&r, (uint64_t)count, err);
    }
    XXH64_freeState(r.checksum);
    free(r.done);
    return rc;
}
