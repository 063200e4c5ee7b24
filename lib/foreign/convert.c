/* SPDX-License-Identifier: MIT */
#include "foreign/convert.h"

#include <stdlib.h>

#include "foreign/foreign.h"

struct dt_converter {
    struct dt_target target;
    struct dt_shard_writer *stream; /* one of these is open from the first document on */
    struct dt_foreign *foreign;
    struct dt_shard_info first; /* shared properties; vocab_size 0: no input yet */
    struct dt_buffer bytes;
    struct dt_ids ids;
};

struct dt_converter *dt_converter_new(const struct dt_target *target)
{
    struct dt_converter *c = dt_alloc(1, sizeof *c);
    c->target = *target;
    return c;
}

void dt_converter_free(struct dt_converter *c)
{
    if (c == NULL)
        return;
    dt_shard_writer_free(c->stream);
    dt_foreign_free(c->foreign);
    dt_buffer_release(&c->bytes);
    dt_ids_release(&c->ids);
    free(c);
}

static int put_document(struct dt_converter *c, const struct dt_shard_document *document,
                        struct dt_error *err)
{
    if (c->stream)
        return dt_shard_write(c->stream, c->ids.data, document, err);
    return dt_foreign_add(c->foreign, c->ids.data, c->ids.count, err);
}

/* Opens the output for documents of info, once. */
static int open_target(struct dt_converter *c, const struct dt_shard_info *info,
                       struct dt_error *err)
{
    struct dt_shard_info list = *info;
    const struct dt_target *t = &c->target;
    if (c->stream || c->foreign)
        return 0;
    if (t->kind == DT_TARGET_FOREIGN)
        return dt_foreign_create(&c->foreign, t->format, t->path, info, err);
    char *provenance =
        dt_asprintf("%s%s\n", info->provenance ? info->provenance : "", t->command_line);
    list.provenance = provenance;
    list.row = list.padding_id = 0;
    int rc = dt_shard_writer_new(&c->stream, t->out, &list, 0, err);
    free(provenance);
    return rc;
}

static int check_kind(struct dt_converter *c, const char *path, const struct dt_shard_info *info,
                      struct dt_error *err)
{
    struct dt_shard_info *first = &c->first;
    if (first->vocab_size == 0)
        *first = (struct dt_shard_info){.tokenizer = info->tokenizer,
                                        .vocab_size = info->vocab_size,
                                        .eot = info->eot,
                                        .masked = info->masked};
    if (info->tokenizer == first->tokenizer && info->masked == first->masked &&
        info->vocab_size == first->vocab_size && info->eot == first->eot)
        return 0;
    return dt_fail(err, DT_EFORMAT,
                   "%s: has another tokenizer or loss mask than the inputs before it", path);
}

static int add_frames(struct dt_converter *c, struct dt_shard_reader *r, struct dt_error *err)
{
    uint32_t width = dt_shard_reader_info(r)->token_bytes;
    int rc;
    while ((rc = dt_shard_read_frame(r, &c->ids, err)) > 0) {
        dt_buffer_clear(&c->bytes);
        dt_foreign_put_ids(&c->bytes, c->ids.data, c->ids.count, width);
        DT_TRY(dt_output_write(c->target.out, c->bytes.data, c->bytes.size, err));
    }
    return rc;
}

static int add_documents(struct dt_converter *c, struct dt_shard_reader *r, const char *path,
                         struct dt_error *err)
{
    const struct dt_shard_info *info = dt_shard_reader_info(r);
    struct dt_shard_document document;
    int rc;
    DT_TRY(check_kind(c, path, info, err));
    DT_TRY(open_target(c, info, err));
    if (c->target.kind == DT_TARGET_STREAM)
        dt_shard_reader_mark(r);
    while ((rc = dt_shard_read(r, &c->ids, &document, err)) > 0)
        DT_TRY(put_document(c, &document, err));
    return rc;
}

int dt_converter_add_shard(struct dt_converter *c, const char *path, struct dt_error *err)
{
    struct dt_shard_reader *r;
    DT_TRY(dt_shard_reader_open_for(&r, path, c->target.lineage, err));
    int rc = 0;
    switch (c->target.kind) {
    case DT_TARGET_RAW:
        rc = add_frames(c, r, err);
        break;
    case DT_TARGET_STREAM:
    case DT_TARGET_FOREIGN:
        rc = add_documents(c, r, path, err);
        break;
    }
    dt_shard_reader_close(r);
    return rc;
}

int dt_converter_add_foreign(struct dt_converter *c, const char *format, const char *path,
                             const struct dt_shard_info *info, dt_identify *identify, void *context,
                             struct dt_error *err)
{
    struct dt_foreign *from;
    struct dt_shard_document document;
    DT_TRY(open_target(c, info, err));
    DT_TRY(dt_foreign_open(&from, format, path, info->eot, err));
    int rc;
    while ((rc = dt_foreign_next(from, &c->ids, err)) > 0) {
        rc = identify(context, &c->ids, &document, err);
        if (rc < 0)
            dt_fail_context(err, "%s", path);
        if (rc == 0)
            rc = put_document(c, &document, err);
        if (rc < 0)
            break;
    }
    dt_foreign_free(from);
    return rc;
}

int dt_converter_finish(struct dt_converter *c, struct dt_error *err)
{
    if (c->stream)
        return dt_shard_writer_finish_with(
            c->stream, dt_output_is_pipe(c->target.out) ? c->target.lineage : NULL, err);
    return c->foreign ? dt_foreign_finish(c->foreign, err) : 0;
}
