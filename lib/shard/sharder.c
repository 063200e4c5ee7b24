/* SPDX-License-Identifier: MIT */
#include "shard/sharder.h"

#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "math/rng.h"
#include "shard/rows.h"
#include "shard/shard-directory.h"

#define SPLIT_KEY 0x73706c6974ull /* "split": RNG stream */

/* A split being written; the last shard of its manifest entry is open. */
struct stream {
    double upper;    /* upper end of its range of hash values in [0, 1) */
    uint64_t begin;  /* by tail: first token, of all tokens */
    uint64_t tokens; /* written */
    struct dt_output out;
    struct dt_shard_writer *writer; /* NULL: no shard is open */
    struct dt_rows *rows;           /* NULL: a list */
};

struct dt_sharder {
    struct dt_shard_directory directory;
    const struct dt_sharder_options *options;
    struct dt_manifest manifest; /* splits [0 .. count) belong to streams */
    struct stream *streams;      /* [0] is DT_DEFAULT_SPLIT */
    int count;
    struct stream *assigned; /* dt_sharder_assign; NULL: by hash or tail */
    uint64_t documents, tokens;
    /* By tail: a temporary stream of all documents, until the number of tokens is known. */
    struct dt_output spool;
    struct dt_shard_writer *spooler;
    struct dt_threads *threads; /* of all writers */
};

int dt_split_parse(const char *text, struct dt_split *split, struct dt_error *err)
{
    const char *equals = strchr(text, '=');
    size_t n = equals ? (size_t)(equals - text) : 0;
    const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    if (n == 0 || n >= sizeof split->name || strspn(text, letters) != n ||
        dt_program_parse_real(equals + 1, &split->fraction) < 0)
        return dt_fail(err, DT_EINVALID, "'%s' is not NAME=FRACTION, as val=0.01", text);
    if (!(split->fraction > 0 && split->fraction < 1))
        return dt_fail(err, DT_EINVALID, "the fraction of '%s' is not between 0 and 1", text);
    memcpy(split->name, text, n);
    split->name[n] = '\0';
    return 0;
}

int dt_sharder_check_splits(const struct dt_split *splits, int count, struct dt_error *err)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        const char *name = splits[i].name;
        sum += splits[i].fraction;
        if (strcmp(name, DT_DEFAULT_SPLIT) == 0)
            return dt_fail(err, DT_EINVALID,
                           "split '%s' is implicit: it gets the rest, so give it no fraction",
                           name);
        for (int k = 0; k < i; k++)
            if (strcmp(name, splits[k].name) == 0)
                return dt_fail(err, DT_EINVALID, "split '%s' is given twice", name);
    }
    if (sum >= 1)
        return dt_fail(err, DT_EINVALID, "the splits leave nothing for '%s'", DT_DEFAULT_SPLIT);
    return 0;
}

/* --- the directory ---------------------------------------------------------------------------- */

static int check_append(const struct dt_sharder *s, struct dt_error *err)
{
    const struct dt_shard_info *a = &s->directory.old.info, *b = &s->manifest.info;
    DT_TRY(dt_shard_check_tokenizer(a, s->directory.path, b->tokenizer, NULL, err));
    if (a->vocab_size != b->vocab_size || a->eot != b->eot)
        return dt_fail(err, DT_EINVALID, "%s: its shards were made with another tokenizer",
                       s->directory.path);
    if (a->row != b->row || a->masked != b->masked || a->padding_id != b->padding_id)
        return dt_fail(err, DT_EINVALID, "%s: its shards have another layout or mask",
                       s->directory.path);
    return 0;
}

/* --- the shards of a split ---------------------------------------------------------------------
 */

static int open_shard(struct dt_sharder *s, struct stream *t, struct dt_error *err)
{
    struct dt_manifest_split *split = &s->manifest.splits[t - s->streams];
    char *name = dt_shard_directory_name(&s->directory, split->name, split->count);
    char *path = dt_shard_directory_stage(&s->directory, name);
    int rc = dt_output_open(&t->out, path, err);
    if (rc == 0)
        rc = dt_shard_writer_new(&t->writer, &t->out, &s->manifest.info, s->options->level, err);
    if (rc == 0) {
        dt_shard_writer_use_threads(t->writer, s->threads);
        dt_manifest_add_shard(split, name);
    }
    free(path);
    free(name);
    return rc;
}

static int close_shard(struct dt_sharder *s, struct stream *t, struct dt_error *err)
{
    struct dt_manifest_split *split = &s->manifest.splits[t - s->streams];
    struct dt_manifest_shard *shard = &split->shards[split->count - 1];
    struct dt_shard_info totals;
    if (t->rows)
        DT_TRY(dt_rows_flush(t->rows, t->writer, err));
    DT_TRY(dt_shard_writer_finish(t->writer, err));
    dt_shard_writer_totals(t->writer, &totals);
    dt_shard_writer_free(t->writer);
    t->writer = NULL;
    dt_manifest_set(shard, &totals);
    shard->size = t->out.written;
    char *path = dt_shard_directory_stage(&s->directory, shard->file);
    int rc = dt_shard_directory_commit(&s->directory, &t->out, err);
    rc = rc < 0 ? rc : dt_sha256_file(path, &shard->size, shard->sha256, err);
    free(path);
    return rc;
}

static int add_to(struct dt_sharder *s, struct stream *t, const uint32_t *ids,
                  const struct dt_shard_document *document, struct dt_error *err)
{
    struct dt_shard_info totals;
    uint64_t needed =
        t->rows ? dt_rows_needed(s->manifest.info.row, document->tokens) : document->tokens;
    if (t->writer) {
        dt_shard_writer_totals(t->writer, &totals);
        uint64_t held = totals.tokens + (t->rows ? dt_rows_open(t->rows) : 0);
        if (held > 0 && held + needed > s->options->tokens_per_shard)
            DT_TRY(close_shard(s, t, err));
    }
    if (t->writer == NULL)
        DT_TRY(open_shard(s, t, err));
    t->tokens += document->tokens;
    if (t->rows)
        return dt_rows_add(t->rows, t->writer, ids, document, err);
    return dt_shard_write(t->writer, ids, document, err);
}

/* --- splits ----------------------------------------------------------------------------------- */

static struct stream *choose(struct dt_sharder *s, uint64_t hash)
{
    double position = dt_rng_uniform_double(dt_random_key(hash, SPLIT_KEY, 0));
    for (int i = 1; i < s->count; i++)
        if (position < s->streams[i].upper)
            return &s->streams[i];
    return &s->streams[0];
}

/* The index of the stream for the token at position. */
static int find_stream(const struct dt_sharder *s, uint64_t position)
{
    int i = s->count - 1;
    while (i > 0 && s->streams[i].begin > position)
        i--;
    return i;
}

/* Adds a document whose first token is at position, split at stream boundaries. */
static int add_cut(struct dt_sharder *s, uint64_t position, const uint32_t *ids,
                   const struct dt_shard_document *document, struct dt_error *err)
{
    uint64_t done = 0;
    do {
        int i = find_stream(s, position + done);
        uint64_t end = document->tokens;
        if (i + 1 < s->count && s->streams[i + 1].begin - position < end)
            end = s->streams[i + 1].begin - position;
        struct dt_shard_document piece = {.hash = document->hash,
                                          .tokens = end - done,
                                          .bytes =
                                              dt_rows_prorate_bytes(document, end) -
                                              (done ? dt_rows_prorate_bytes(document, done) : 0)};
        DT_TRY(add_to(s, &s->streams[i], ids + done, &piece, err));
        done = end;
    } while (done < document->tokens);
    return 0;
}

static int add_spooled(struct dt_sharder *s, struct dt_shard_reader *r, struct dt_error *err)
{
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_shard_document document;
    uint64_t position = 0;
    int rc;
    while ((rc = dt_shard_read(r, &ids, &document, err)) > 0) {
        rc = add_cut(s, position, ids.data, &document, err);
        if (rc < 0)
            break;
        position += document.tokens;
    }
    dt_ids_release(&ids);
    return rc;
}

/* Assigns the spooled tokens to splits, now that their number is known. */
static int split_spool(struct dt_sharder *s, struct dt_error *err)
{
    struct dt_shard_reader *r;
    double left = 1;
    for (int i = s->count - 1; i > 0; i--) {
        left -= s->options->splits[i - 1].fraction;
        s->streams[i].begin = (uint64_t)((double)s->tokens * left);
    }
    DT_TRY(dt_shard_writer_finish(s->spooler, err));
    DT_TRY(dt_output_flush(&s->spool, err));
    DT_TRY(dt_shard_reader_open(&r, s->spool.temporary, err));
    dt_shard_reader_mark(r);
    int rc = add_spooled(s, r, err);
    dt_shard_reader_close(r);
    return rc;
}

static int open_spool(struct dt_sharder *s, struct dt_error *err)
{
    char *path = dt_shard_directory_stage(&s->directory, "spool");
    int rc = dt_output_open(&s->spool, path, err);
    free(path);
    DT_TRY(rc);
    struct dt_shard_info list = s->manifest.info;
    list.row = list.padding_id = 0;
    return dt_shard_writer_new(&s->spooler, &s->spool, &list, 0, err);
}

/* --- the sharder ------------------------------------------------------------------------------ */

static void add_streams(struct dt_sharder *s)
{
    double upper = 0;
    s->count = 1 + s->options->count;
    s->streams = dt_alloc((size_t)s->count, sizeof *s->streams);
    dt_manifest_add_split(&s->manifest, DT_DEFAULT_SPLIT);
    for (int i = 1; i < s->count; i++) {
        upper += s->options->splits[i - 1].fraction;
        s->streams[i].upper = upper;
        dt_manifest_add_split(&s->manifest, s->options->splits[i - 1].name);
    }
    for (int i = 0; i < s->count; i++)
        if (s->options->layout != DT_SHARDER_LAYOUT_LIST)
            s->streams[i].rows = dt_rows_new(s->manifest.info.row, s->manifest.info.padding_id,
                                             s->options->layout == DT_SHARDER_LAYOUT_PACKED);
}

/* Lists the old shards before the new ones of each split. */
static void keep_old_shards(struct dt_sharder *s)
{
    for (int i = 0; i < s->directory.old.count; i++) {
        const struct dt_manifest_split *from = &s->directory.old.splits[i];
        struct dt_manifest_split *to = NULL;
        for (int k = 0; k < s->manifest.count; k++)
            if (strcmp(s->manifest.splits[k].name, from->name) == 0)
                to = &s->manifest.splits[k];
        if (to == NULL)
            to = dt_manifest_add_split(&s->manifest, from->name);
        for (int k = 0; k < from->count; k++) {
            struct dt_manifest_shard *shard = dt_manifest_add_shard(to, from->shards[k].file);
            char *file = shard->file;
            *shard = from->shards[k];
            shard->file = file;
        }
    }
}

int dt_sharder_new(struct dt_sharder **result, const char *directory,
                   const struct dt_shard_info *info, const struct dt_sharder_options *options,
                   struct dt_error *err)
{
    *result = NULL;
    DT_TRY(dt_sharder_check_splits(options->splits, options->count, err));
    struct dt_sharder *s = dt_alloc(1, sizeof *s);
    s->options = options;
    s->threads = dt_threads_new(options->threads);
    s->manifest.info = *info;
    add_streams(s);
    int rc = dt_shard_directory_begin(&s->directory, directory, options->append, err);
    if (rc == 0 && options->append)
        rc = check_append(s, err);
    if (rc == 0 && options->append)
        keep_old_shards(s);
    if (rc == 0 && options->count > 0 && options->split_by == DT_SPLIT_BY_TAIL)
        rc = open_spool(s, err);
    if (rc < 0) {
        dt_sharder_free(s);
        return rc;
    }
    *result = s;
    return 0;
}

int dt_sharder_add(struct dt_sharder *s, const uint32_t *ids,
                   const struct dt_shard_document *document, struct dt_error *err)
{
    s->documents++;
    s->tokens += document->tokens;
    if (s->spooler)
        return dt_shard_write(s->spooler, ids, document, err);
    return add_to(s, s->assigned ? s->assigned : choose(s, document->hash), ids, document, err);
}

const char *dt_sharder_staging(const struct dt_sharder *s)
{
    return s->directory.staging;
}

void dt_sharder_assign(struct dt_sharder *s, const char *split)
{
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->manifest.splits[i].name, split) == 0)
            s->assigned = &s->streams[i];
}

/* Whether the split has old shards to append to. */
static bool has_old(const struct dt_sharder *s, int split)
{
    return s->options->append &&
           dt_manifest_find(&s->directory.old, s->manifest.splits[split].name) != NULL;
}

/* "--split val=0.05", for each split, as they were given. */
static char *splits_given(const struct dt_sharder *s)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    for (int i = 0; i < s->options->count; i++)
        dt_buffer_printf(&text, " --split %s=%.15g", s->options->splits[i].name,
                         s->options->splits[i].fraction);
    return text.data;
}

static int check_none_is_empty(const struct dt_sharder *s, struct dt_error *err)
{
    for (int i = 0; i < s->count; i++) {
        if (s->streams[i].tokens > 0 || has_old(s, i))
            continue;
        if (s->spooler)
            return dt_fail(err, DT_EINVALID,
                           "split '%s' is empty: it got none of %llu tokens; change the fractions",
                           s->manifest.splits[i].name, (unsigned long long)s->tokens);
        char *splits = splits_given(s);
        int rc = dt_fail(err, DT_EINVALID,
                         "split '%s' is empty: it got none of %llu documents; change the "
                         "fractions, or use --split-by tail%s%s",
                         s->manifest.splits[i].name, (unsigned long long)s->documents, splits,
                         s->documents == 1 ? "; a file of text is one document, of which dt-clean "
                                             "--from lines makes one of each line"
                                           : "");
        free(splits);
        return rc;
    }
    return 0;
}

/* Refuses a split without targets: its loss is undefined. */
static int check_targets(const struct dt_manifest *m, struct dt_error *err)
{
    for (int i = 0; m->info.masked && i < m->count; i++) {
        uint64_t targets = 0;
        for (int k = 0; k < m->splits[i].count; k++)
            targets += m->splits[i].shards[k].targets;
        if (targets == 0)
            return dt_fail(err, DT_EINVALID, "no token of split '%s' carries loss",
                           m->splits[i].name);
    }
    return 0;
}

int dt_sharder_finish(struct dt_sharder *s, struct dt_error *err)
{
    bool may_be_empty = s->options->allow_empty;
    if (s->tokens == 0 && !may_be_empty)
        return dt_fail(err, DT_EINVALID, "the input contains no tokens");
    if (s->spooler)
        DT_TRY(split_spool(s, err));
    if (s->assigned == NULL && !may_be_empty)
        DT_TRY(check_none_is_empty(s, err));
    for (int i = 0; i < s->count; i++)
        if (s->streams[i].writer)
            DT_TRY(close_shard(s, &s->streams[i], err));
    if (!may_be_empty) {
        dt_manifest_drop_empty(&s->manifest); /* all inputs may belong to one named split */
        DT_TRY(check_targets(&s->manifest, err));
    }
    if (s->options->lineage)
        s->manifest.lineage = json_object_get(dt_lineage_records(s->options->lineage));
    return dt_shard_directory_publish(&s->directory, &s->manifest, err);
}

void dt_sharder_free(struct dt_sharder *s)
{
    if (s == NULL)
        return;
    for (int i = 0; i < s->count; i++) {
        dt_shard_writer_free(s->streams[i].writer);
        dt_output_abandon(&s->streams[i].out);
        dt_rows_free(s->streams[i].rows);
    }
    dt_shard_writer_free(s->spooler);
    dt_output_abandon(&s->spool);
    dt_threads_free(s->threads);
    dt_shard_directory_release(&s->directory);
    dt_manifest_release(&s->manifest);
    free(s->streams);
    free(s);
}

int dt_sharder_mask_until(uint32_t *ids, size_t count, uint32_t last, struct dt_error *err)
{
    for (size_t i = 0; i < count; i++) {
        bool found = (ids[i] & ~DT_NO_LOSS) == last;
        ids[i] |= DT_NO_LOSS;
        if (found)
            return 0;
    }
    return dt_fail(err, DT_EINVALID,
                   "does not contain id %u, after which the loss starts (--loss-after)", last);
}
