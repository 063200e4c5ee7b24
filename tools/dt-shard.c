/* SPDX-License-Identifier: MIT */
/* dt-shard: writes token streams as the shards of a data set. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/program.h"
#include "base/progress.h"
#include "hub/hub.h"
#include "options/command-line.h"
#include "options/options.h"
#include "shard/join.h"
#include "shard/sharder.h"
#include "shard/shuffle.h"
#include "shard/sources.h"

static const char *const split_by[] = {
    [DT_SPLIT_BY_DOCUMENT] = "document", [DT_SPLIT_BY_TAIL] = "tail", NULL};
static const char *const layouts[] = {[DT_SHARDER_LAYOUT_LIST] = "list",
                                      [DT_SHARDER_LAYOUT_PADDED] = "padded",
                                      [DT_SHARDER_LAYOUT_PACKED] = "packed",
                                      NULL};

static struct {
    const char *output;
    struct dt_string_list splits;
    int split_by, layout;
    long length, padding_id, loss_after, seed, memory;
    long tokens_per_shard, level, threads;
    bool shuffle, append, allow_empty, join, symbolic, quiet;
} opt = {.tokens_per_shard = 100000000,
         .level = 3,
         .padding_id = -1,
         .loss_after = -1,
         .seed = 1337,
         .memory = 256 * 1000000L};

static const struct dt_option options[] = {
    {"output", 'o', DT_OPTION_STRING, &opt.output, "DIR", "write the shards and index.json to DIR",
     .required = true},
    {"split", 0, DT_OPTION_LIST, &opt.splits, "NAME=FRACTION",
     "assign a fraction to split NAME; the rest is train"},
    {"split-by", 0, DT_OPTION_CHOICE, &opt.split_by, "document|tail",
     "split by document hash (default), or at the end of the tokens", .choices = split_by,
     .with = "split"},
    {"tokens-per-shard", 0, DT_OPTION_INT, &opt.tokens_per_shard, "N",
     "maximum tokens per shard (default: 100M)", .min = 1, .max = 1e18},
    {"layout", 0, DT_OPTION_CHOICE, &opt.layout, "list|padded|packed",
     "concatenate documents (default), pad one per row, or pack several per row",
     .choices = layouts},
    {"length", 0, DT_OPTION_INT, &opt.length, "N", "sequence length of padded and packed rows",
     .min = 1, .max = (1 << 24) - 1},
    {"padding-id", 0, DT_OPTION_INT, &opt.padding_id, "ID",
     "pad rows with ID (default: the end-of-text token, or 0)", .min = 0, .max = 0x7fffffff},
    {"loss-after", 0, DT_OPTION_INT, &opt.loss_after, "ID",
     "mask the loss of a document's tokens up to its first ID", .min = 0, .max = 0x7fffffff},
    {"shuffle", 0, DT_OPTION_FLAG, &opt.shuffle, NULL, "shuffle the documents"},
    {"seed", 0, DT_OPTION_INT, &opt.seed, "N", "seed of the shuffle (default: 1337)", .min = 0,
     .max = 1e15, .with = "shuffle"},
    {"memory", 0, DT_OPTION_INT, &opt.memory, "BYTES",
     "use temporary files beyond BYTES of documents (default: 256M)", .min = 1, .max = 1e15,
     .with = "shuffle"},
    {"append", 0, DT_OPTION_FLAG, &opt.append, NULL, "append to the shards in DIR"},
    {"allow-empty", 0, DT_OPTION_FLAG, &opt.allow_empty, NULL,
     "splits may be empty: for parts to --join"},
    {"join", 0, DT_OPTION_FLAG, &opt.join, NULL,
     "link the shards of directories into DIR, without writing them again",
     .without = "split split-by tokens-per-shard layout length padding-id loss-after shuffle "
                "append allow-empty level"},
    {"symbolic", 0, DT_OPTION_FLAG, &opt.symbolic, NULL,
     "with --join, by relative symbolic links instead of hard links", .with = "join"},
    {"level", 0, DT_OPTION_INT, &opt.level, "N", "zstd level, 0 stores (default: 3)", .min = 0,
     .max = 19},
    {"threads", 'j', DT_OPTION_INT, &opt.threads, "N", "compress on N threads (default: all)",
     .min = 1, .max = 1024},
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "show no progress"},
    {NULL}};

static const struct dt_command command = {
    "dt-shard", "write token streams as compressed, indexed shards", "[FILE|DIR ...]", options};

static char *const standard_input[] = {"-"};

/* The records of the output, and the inputs: a file is added when it was read, a directory at the
 * start, by its index.json. */
static struct dt_lineage *lineage;
static char *const *inputs;
static int input_count;

/* lineage for an input that is a file; NULL for a shard of a directory. */
static struct dt_lineage *lineage_of(const char *path)
{
    for (int i = 0; i < input_count; i++)
        if (strcmp(inputs[i], path) == 0)
            return lineage;
    return NULL;
}

static int begin_lineage(char *const *operands, int count, struct dt_error *err)
{
    lineage = dt_lineage_new();
    inputs = operands;
    input_count = count;
    if (opt.append)
        DT_TRY(dt_lineage_add_path(lineage, opt.output, err));
    for (int i = 0; i < count; i++)
        if (dt_file_is_directory(operands[i]))
            DT_TRY(dt_lineage_add_path(lineage, operands[i], err));
    return 0;
}

struct splits {
    struct dt_split *items;
    int count, capacity;
};

/* Refuses an input in the output directory: it would be removed while it is read. */
static int check_directory(const char *path, struct dt_error *err)
{
    char *slash, input[PATH_MAX], output[PATH_MAX];
    if (strcmp(path, "-") == 0 || dt_checked_errno(realpath(path, input)) == NULL ||
        dt_checked_errno(realpath(opt.output, output)) == NULL ||
        (slash = strrchr(input, '/')) == NULL)
        return 0;
    *slash = '\0';
    if (strcmp(input, output) == 0)
        return dt_fail(err, DT_EINVALID, "%s: is in '%s', the output directory: choose another one",
                       path, opt.output);
    return 0;
}

/* Checks the tokenizer of all inputs before writing, and joins their provenance. */
static int check_inputs(const struct dt_shard_info *info, const struct dt_shard_sources *sources,
                        struct dt_buffer *provenance, struct dt_error *err)
{
    struct dt_shard_reader *r;
    struct json_object *seen = dt_json_new_object();
    int rc = 0;
    dt_shard_add_provenance(provenance, seen, info->provenance);
    for (int i = 1; rc == 0 && i < sources->count; i++) {
        const char *path = sources->items[i].path;
        mode_t mode;
        rc = dt_file_look(path, &mode, err);
        if (rc == 0 || (rc == 1 && !S_ISREG(mode))) {
            rc = 0;
            continue;
        }
        rc = rc < 0 ? rc : dt_shard_reader_open(&r, path, err);
        if (rc < 0)
            break;
        rc = dt_shard_check_same(info, dt_shard_reader_info(r), path, err);
        dt_shard_add_provenance(provenance, seen, dt_shard_reader_info(r)->provenance);
        dt_shard_reader_close(r);
    }
    dt_buffer_printf(provenance, "%s\n", dt_command_line());
    json_object_put(seen);
    return rc;
}

/* The destination of documents: the sharder, or first the shuffler. */
struct target {
    struct dt_sharder *sharder;
    struct dt_shuffler *shuffler; /* NULL without --shuffle */
    struct dt_progress progress;
    uint64_t documents, tokens;
};

static int add_document(struct target *t, struct dt_ids *ids,
                        const struct dt_shard_document *document, struct dt_error *err)
{
    if (opt.loss_after >= 0 &&
        dt_sharder_mask_until(ids->data, ids->count, (uint32_t)opt.loss_after, err) < 0)
        return dt_fail_context(err, "document %" PRIu64, t->documents);
    if (t->shuffler)
        DT_TRY(dt_shuffler_add(t->shuffler, ids->data, document, err));
    else
        DT_TRY(dt_sharder_add(t->sharder, ids->data, document, err));
    t->documents++;
    t->tokens += document->tokens;
    if (dt_progress_due(&t->progress))
        dt_progress_show(&t->progress, "%" PRIu64 " documents, %" PRIu64 " tokens", t->documents,
                         t->tokens);
    return 0;
}

static int add_documents(struct target *t, struct dt_shard_reader *r, struct dt_error *err)
{
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_shard_document document;
    int rc;
    dt_shard_reader_mark(r);
    while ((rc = dt_shard_read(r, &ids, &document, err)) > 0) {
        rc = add_document(t, &ids, &document, err);
        if (rc < 0)
            break;
    }
    dt_ids_release(&ids);
    return rc;
}

static int add_input(struct target *t, struct dt_shard_reader *first, const char *path,
                     struct dt_error *err)
{
    struct dt_shard_reader *r;
    DT_TRY(dt_shard_reader_open_for(&r, path, lineage_of(path), err));
    int rc = dt_shard_check_same(dt_shard_reader_info(first), dt_shard_reader_info(r), path, err);
    if (rc == 0)
        rc = add_documents(t, r, err);
    dt_shard_reader_close(r);
    return rc;
}

/* Adds the inputs of a split, NULL: all. The first input is open already. */
static int add_inputs(struct target *t, struct dt_shard_reader *first,
                      const struct dt_shard_sources *sources, const char *split,
                      struct dt_error *err)
{
    for (int i = 0; i < sources->count; i++) {
        const struct dt_shard_source *source = &sources->items[i];
        if (split && strcmp(source->split, split) != 0)
            continue;
        DT_TRY(i == 0 ? add_documents(t, first, err) : add_input(t, first, source->path, err));
    }
    return 0;
}

static int add_shuffled(struct target *t, struct dt_error *err)
{
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_shard_document document;
    int rc;
    while ((rc = dt_shuffler_next(t->shuffler, &ids, &document, err)) > 0) {
        rc = dt_sharder_add(t->sharder, ids.data, &document, err);
        if (rc < 0)
            break;
    }
    dt_ids_release(&ids);
    return rc;
}

/* Sets the properties of the shards from the layout options. */
static int set_layout(struct dt_shard_info *info, struct dt_error *err)
{
    long padding = opt.padding_id >= 0 ? opt.padding_id : info->eot == UINT32_MAX ? 0 : info->eot;
    bool list = opt.layout == DT_SHARDER_LAYOUT_LIST;
    info->row = list ? 0 : (uint32_t)opt.length + 1;
    info->padding_id = list ? 0 : (uint32_t)padding;
    info->masked = info->masked || !list || opt.loss_after >= 0;
    if (!list && padding >= (long)info->vocab_size)
        return dt_fail(err, DT_EINVALID, "--padding-id %ld is outside the vocabulary of %u",
                       padding, info->vocab_size);
    return 0;
}

/* Adds the inputs of a split, NULL: all, in their order or shuffled. */
static int add_split(struct target *t, struct dt_shard_reader *first,
                     const struct dt_shard_sources *sources, const char *split,
                     struct dt_error *err)
{
    if (split)
        dt_sharder_assign(t->sharder, split);
    if (!opt.shuffle)
        return add_inputs(t, first, sources, split, err);
    DT_TRY(dt_shuffler_new(&t->shuffler, dt_sharder_staging(t->sharder), (uint64_t)opt.seed,
                           (size_t)opt.memory, err));
    int rc = add_inputs(t, first, sources, split, err);
    if (rc == 0)
        rc = add_shuffled(t, err);
    dt_shuffler_free(t->shuffler);
    t->shuffler = NULL;
    return rc;
}

static int add_all(struct target *t, struct dt_shard_reader *first,
                   const struct dt_shard_sources *sources, const struct dt_sharder_options *how,
                   bool keep, struct dt_error *err)
{
    if (!keep)
        return add_split(t, first, sources, NULL, err);
    DT_TRY(add_split(t, first, sources, DT_DEFAULT_SPLIT, err));
    for (int i = 0; i < how->count; i++)
        DT_TRY(add_split(t, first, sources, how->splits[i].name, err));
    return 0;
}

static int shard(const struct dt_sharder_options *how, struct dt_shard_reader *first,
                 const struct dt_shard_sources *sources, bool keep, struct dt_error *err)
{
    struct dt_buffer provenance = DT_BUFFER_EMPTY;
    struct dt_shard_info info = *dt_shard_reader_info(first);
    struct target t = {0};
    dt_progress_init(&t.progress, opt.quiet);
    int rc = check_inputs(&info, sources, &provenance, err);
    info.provenance = provenance.data;
    if (rc == 0)
        rc = set_layout(&info, err);
    if (rc == 0)
        rc = dt_sharder_new(&t.sharder, opt.output, &info, how, err);
    if (rc == 0)
        rc = add_all(&t, first, sources, how, keep, err);
    if (rc == 0)
        rc = dt_sharder_finish(t.sharder, err);
    dt_progress_clear(&t.progress);
    dt_sharder_free(t.sharder);
    dt_buffer_release(&provenance);
    return rc;
}

static int add_kept_split(struct splits *splits, const char *name, struct dt_error *err)
{
    struct dt_split split = {.fraction = 0};
    for (int i = 0; i < splits->count; i++)
        if (strcmp(splits->items[i].name, name) == 0)
            return 0;
    if (strcmp(name, DT_DEFAULT_SPLIT) == 0)
        return 0;
    if (strlen(name) >= sizeof split.name)
        return dt_fail(err, DT_EINVALID, "the name of split '%s' is too long", name);
    strcpy(split.name, name);
    DT_GROW(splits->items, splits->count, splits->capacity);
    splits->items[splits->count++] = split;
    return 0;
}

/* Adds the splits of the inputs, which are kept. */
static int keep_splits(const struct dt_shard_sources *sources, struct splits *splits,
                       struct dt_error *err)
{
    for (int i = 0; splits->count > 0 && i < sources->count; i++)
        if (strcmp(sources->items[i].split, DT_DEFAULT_SPLIT) != 0)
            return dt_fail(err, DT_EINVALID,
                           "%s: already belongs to split '%s', which --split would divide "
                           "again; remove --split to keep the splits",
                           sources->items[i].path, sources->items[i].split);
    for (int i = 0; i < sources->count; i++)
        DT_TRY(add_kept_split(splits, sources->items[i].split, err));
    return 0;
}

static int run_on(struct dt_sharder_options *how, struct splits *splits,
                  const struct dt_shard_sources *sources, struct dt_error *err)
{
    struct dt_shard_reader *first;
    bool keep;
    if (sources->count == 0)
        return dt_fail(err, DT_EINVALID, "the index.json of the inputs lists no shards");
    for (int i = 0; i < sources->count; i++) {
        DT_TRY(check_directory(sources->items[i].path, err));
        DT_TRY(dt_shard_source_check(&sources->items[i], err));
    }
    DT_TRY(dt_shard_sources_check_distinct(sources, err));
    DT_TRY(dt_shard_sources_check_splits(sources, &keep, err));
    if (keep)
        DT_TRY(keep_splits(sources, splits, err));
    how->splits = splits->items;
    how->count = splits->count;
    const char *path = sources->items[0].path;
    DT_TRY(dt_shard_reader_open_for(&first, path, lineage_of(path), err));
    int rc = shard(how, first, sources, keep, err);
    dt_shard_reader_close(first);
    return rc;
}

static int run(struct dt_sharder_options *how, struct splits *splits, char *const *operands,
               int count, struct dt_error *err)
{
    struct dt_shard_sources sources = {0};
    int rc = 0;
    for (int i = 0; rc == 0 && i < count; i++)
        rc = dt_shard_sources_add(&sources, operands[i], err);
    if (rc == 0)
        rc = begin_lineage(operands, count, err);
    how->lineage = lineage;
    if (rc == 0)
        rc = run_on(how, splits, &sources, err);
    dt_shard_sources_release(&sources);
    dt_lineage_free(lineage);
    return rc;
}

/* Joins directories, which are the inputs of the lineage. */
static int join(char *const *operands, int count, int threads, struct dt_error *err)
{
    int rc = begin_lineage(operands, count, err);
    const struct dt_join_options how = {
        .symbolic = opt.symbolic, .threads = threads, .lineage = lineage};
    rc = rc < 0 ? rc : dt_shard_join(opt.output, operands, count, &how, err);
    dt_lineage_free(lineage);
    return rc;
}

static void check_options(void)
{
    if ((opt.layout == DT_SHARDER_LAYOUT_LIST) != (opt.length == 0))
        dt_program_usage("--layout padded or packed and --length N need each other");
    if (opt.layout == DT_SHARDER_LAYOUT_LIST && opt.padding_id >= 0)
        dt_program_usage("--padding-id needs --layout padded or packed");
    if (opt.split_by == DT_SPLIT_BY_TAIL && opt.splits.count == 0)
        dt_program_usage("--split-by tail needs a --split");
    if (opt.append && opt.split_by == DT_SPLIT_BY_TAIL && opt.splits.count > 0)
        dt_program_usage("--append excludes --split-by tail: the tail would move");
    if (strcmp(opt.output, "-") == 0)
        dt_program_usage(
            "--output needs a directory, not stdout; write ./- for a directory called -");
}

static void read_splits(struct splits *splits)
{
    struct dt_error err;
    splits->count = splits->capacity = opt.splits.count;
    splits->items = dt_alloc((size_t)opt.splits.count, sizeof *splits->items);
    for (int i = 0; i < opt.splits.count; i++)
        if (dt_split_parse(opt.splits.items[i], &splits->items[i], &err) < 0)
            dt_program_usage("%s", err.text);
    if (dt_sharder_check_splits(splits->items, splits->count, &err) < 0)
        dt_program_usage("%s", err.text);
}

int main(int argc, char **argv)
{
    struct dt_error err;
    dt_options_set_fetch(dt_hub_fetch);
    int first = dt_options_parse(&command, argc, argv);
    int count = argc - first;
    if (opt.join && count == 0)
        dt_program_usage("--join needs the DIRs of shards to join");
    if (count == 0 && isatty(STDIN_FILENO))
        dt_program_usage(
            "expected a token stream: name a FILE, or pipe the output of dt-tokenize in");
    struct splits splits = {0};
    read_splits(&splits);
    check_options();
    struct dt_sharder_options how = {
        .split_by = (enum dt_split_by)opt.split_by,
        .tokens_per_shard = (uint64_t)opt.tokens_per_shard,
        .level = (int)opt.level,
        .threads = opt.threads ? (int)opt.threads : dt_pool_processors(),
        .layout = (enum dt_sharder_layout)opt.layout,
        .append = opt.append,
        .allow_empty = opt.allow_empty,
    };
    int rc = opt.join ? join(argv + first, count, how.threads, &err)
                      : run(&how, &splits, count ? argv + first : standard_input, count ? count : 1,
                            &err);
    free(splits.items);
    free(opt.splits.items);
    return rc < 0 ? dt_program_report(&err) : 0;
}
