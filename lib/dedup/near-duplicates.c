/* SPDX-License-Identifier: MIT */
#include "dedup/near-duplicates.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "hash/hash.h"

struct dt_near_duplicates {
    const struct dt_signature_set *set;
    uint64_t documents;
    uint64_t *parent; /* union-find: the document, or an earlier one of its cluster */
};

struct dt_near_duplicates *dt_near_duplicates_new(const struct dt_signature_set *set)
{
    struct dt_near_duplicates *d = dt_alloc(1, sizeof *d);
    d->set = set;
    d->documents = dt_signature_set_size(set).documents;
    d->parent = dt_alloc(d->documents, sizeof *d->parent);
    for (uint64_t i = 0; i < d->documents; i++)
        d->parent[i] = i;
    return d;
}

void dt_near_duplicates_free(struct dt_near_duplicates *d)
{
    if (d == NULL)
        return;
    free(d->parent);
    free(d);
}

/* The first document of the cluster, with path compression. */
static uint64_t first_of(struct dt_near_duplicates *d, uint64_t document)
{
    while (d->parent[document] != document) {
        d->parent[document] = d->parent[d->parent[document]];
        document = d->parent[document];
    }
    return document;
}

int dt_near_duplicates_link(void *context, uint64_t a, uint64_t b, struct dt_error *err)
{
    struct dt_near_duplicates *d = context;
    (void)err;
    a = first_of(d, a);
    b = first_of(d, b);
    if (a < b)
        d->parent[b] = a;
    else
        d->parent[a] = b;
    return 0;
}

uint64_t dt_near_duplicates_count(const struct dt_near_duplicates *d)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < d->documents; i++)
        count += d->parent[i] != i;
    return count;
}

/* Appends the line of a document, the number of which in its file is `number`, from 1. */
static int add_line(const struct dt_near_duplicates *d, const struct dt_signature_file *file,
                    const struct dt_signature_run *run, uint64_t i, uint64_t number, uint64_t like,
                    struct dt_buffer *line, struct dt_error *err)
{
    char hex[DT_HASH_HEX];
    uint64_t hash;
    DT_TRY(dt_signature_file_hashes(file, run, i, 1, &hash, err));
    dt_buffer_clear(line);
    dt_buffer_printf(line, "%" PRIu64 " %s ", number, dt_hash_hex(hash, hex));
    dt_signature_set_add_name(d->set, like, line);
    dt_buffer_add_char(line, '\n');
    return 0;
}

int dt_near_duplicates_list(struct dt_near_duplicates *d, int index, struct dt_output *out,
                            struct dt_error *err)
{
    struct dt_buffer line = DT_BUFFER_EMPTY;
    uint64_t document, first, listed = 0;
    const struct dt_signature_file *file = dt_signature_set_file(d->set, index, &first);
    int rc = 0;
    document = first;
    for (size_t r = 0; r < file->run_count; r++) {
        const struct dt_signature_run *run = &file->runs[r];
        for (uint64_t i = 0; i < run->documents && rc == 0; i++, document++) {
            uint64_t like = first_of(d, document);
            if (like == document)
                continue;
            listed++;
            rc = add_line(d, file, run, i, document - first + 1, like, &line, err);
            if (rc == 0)
                rc = dt_output_write(out, line.data, line.size, err);
        }
    }
    dt_buffer_clear(&line);
    dt_buffer_printf(&line, "end %" PRIu64 " of %" PRIu64 "\n", listed, document - first);
    if (rc == 0)
        rc = dt_output_write(out, line.data, line.size, err);
    dt_buffer_release(&line);
    return rc;
}
