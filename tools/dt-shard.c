/* SPDX-License-Identifier: MIT */
/* dt-shard: writes a token stream as shards of a data set. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/program.h"
#include "base/progress.h"
#include "shard/sharder.h"
#include "shard/shuffle.h"

static const char *const split_by[] = {"document", "tail", NULL};
static const char *const layouts[] = {"list", "padded", "packed", NULL};

static struct {
    const char *output;
    struct dt_string_list splits;
    int split_by, layout;
    long length, padding_id, loss_after, seed, memory;
    long tokens_per_shard, level, threads;
    bool shuffle, append;
} opt = {.tokens_per_shard = 100000000,
         .level = 3,
         .padding_id = -1,
         .loss_after = -1,
         .seed = 1337,
         .memory = 256 * 1000000L};

static const struct dt_option options[] = {
    {"output", 'o', DT_OPT_STRING, &opt.output, "DIR", "write the shards and index.json to DIR",
     .required = true},
    {"split", 0, DT_OPT_LIST, &opt.splits, "NAME=FRACTION",
     "move a part to split NAME; the rest is train"},
    {"split-by", 0, DT_OPT_CHOICE, &opt.split_by, "document|tail",
     "choose it by document hash (default), or take the last tokens", .choices = split_by},
    {"tokens-per-shard", 0, DT_OPT_INT, &opt.tokens_per_shard, "N",
     "begin a new shard before N tokens are exceeded (default 100M)", .min = 1, .max = 1e18},
    {"layout", 0, DT_OPT_CHOICE, &opt.layout, "list|padded|packed",
     "documents one behind the other (default), in a row each, or several in a row",
     .choices = layouts},
    {"length", 0, DT_OPT_INT, &opt.length, "N", "rows for sequences of N tokens", .min = 1,
     .max = (1 << 24) - 1},
    {"padding-id", 0, DT_OPT_INT, &opt.padding_id, "ID",
     "fill rows up with ID (default: the end-of-text token, or 0)", .min = 0, .max = 0x7fffffff},
    {"loss-after", 0, DT_OPT_INT, &opt.loss_after, "ID",
     "give no loss to a document's tokens up to its first ID", .min = 0, .max = 0x7fffffff},
    {"shuffle", 0, DT_OPT_FLAG, &opt.shuffle, NULL, "put the documents in random order"},
    {"seed", 0, DT_OPT_INT, &opt.seed, "N", "the order is number N (default 1337)", .min = 0,
     .max = 1e15},
    {"memory", 0, DT_OPT_INT, &opt.memory, "BYTES",
     "shuffle through files beyond BYTES of documents (default 256M)", .min = 1, .max = 1e15},
    {"append", 0, DT_OPT_FLAG, &opt.append, NULL, "add to the shards that DIR has"},
    {"level", 0, DT_OPT_INT, &opt.level, "N", "compress at zstd level N, 0 stores (default 3)",
     .min = 0, .max = 19},
    {"threads", 'j', DT_OPT_INT, &opt.threads, "N", "compress on N threads (default: all)",
     .min = 1, .max = 1024},
    {NULL}};

static const struct dt_command command = {
    "dt-shard", "cut token streams into compressed, indexed shards", "[FILE|DIR ...]", options};

static char *const standard_input[] = {"-"};

/* Appends the lines of text that lines does not hold yet. */
static void add_lines(struct dt_buffer *lines, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        char *line = dt_strndup(text, n + (text[n] == '\n'));
        if (lines->data == NULL || strstr(lines->data, line) == NULL)
            dt_buffer_add_string(lines, line);
        free(line);
        text += n + (text[n] == '\n');
    }
}

/* An input in the directory of the output would be removed while it is read. */
static int check_place(const char *path, struct dt_error *err)
{
    char *slash, input[PATH_MAX], output[PATH_MAX];
    if (strcmp(path, "-") == 0 || realpath(path, input) == NULL ||
        realpath(opt.output, output) == NULL || (slash = strrchr(input, '/')) == NULL)
        return 0;
    *slash = '\0';
    if (strcmp(input, output) == 0)
        return dt_fail(err, DT_EINVALID, "%s: lies in '%s', where the shards are to be written",
                       path, opt.output);
    return 0;
}

static bool is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int check_same(const struct dt_shard_info *a, const struct dt_shard_info *b,
                      const char *path, struct dt_error *err)
{
    if (a->tokenizer != b->tokenizer || a->vocab_size != b->vocab_size || a->eot != b->eot)
        return dt_fail(err, DT_EFORMAT,
                       "%s: was made with another tokenizer than the input before it", path);
    if (a->masked != b->masked)
        return dt_fail(err, DT_EFORMAT, "%s: the input before it %s a loss mask, and this %s", path,
                       a->masked ? "has" : "has not", b->masked ? "has" : "has not");
    return 0;
}

/* Looks into the inputs behind the first before any work is done: their
 * tokenizer must be that of the first, and their history is part of ours. */
static int look_ahead(const struct dt_shard_info *info, char *const *paths, int count,
                      struct dt_buffer *provenance, struct dt_error *err)
{
    struct dt_shard_reader *r;
    add_lines(provenance, info->provenance);
    for (int i = 1; i < count; i++) {
        if (!is_regular(paths[i]))
            continue;
        DT_TRY(dt_shard_reader_open(&r, paths[i], err));
        int rc = check_same(info, dt_shard_reader_info(r), paths[i], err);
        add_lines(provenance, dt_shard_reader_info(r)->provenance);
        dt_shard_reader_close(r);
        DT_TRY(rc);
    }
    dt_buffer_printf(provenance, "%s\n", dt_command_line());
    return 0;
}

/* Where documents go: to the shards, or to a shuffler before. */
struct target {
    struct dt_sharder *sharder;
    struct dt_shuffler *shuffler; /* NULL: none */
    struct dt_progress progress;
    uint64_t documents, tokens;
};

static int add_document(struct target *t, struct dt_ids *ids,
                        const struct dt_shard_document *document, struct dt_error *err)
{
    if (opt.loss_after >= 0 &&
        dt_mask_until(ids->data, ids->count, (uint32_t)opt.loss_after, err) < 0)
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

/* Adds the inputs behind the first, which is open already. */
static int add_inputs(struct target *t, struct dt_shard_reader *first, char *const *paths,
                      int count, struct dt_error *err)
{
    struct dt_shard_info info = *dt_shard_reader_info(first);
    int rc = add_documents(t, first, err);
    for (int i = 1; rc == 0 && i < count; i++) {
        struct dt_shard_reader *r;
        rc = dt_shard_reader_open(&r, paths[i], err);
        if (rc == 0)
            rc = check_same(&info, dt_shard_reader_info(r), paths[i], err);
        if (rc == 0)
            rc = add_documents(t, r, err);
        dt_shard_reader_close(r);
    }
    return rc;
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

/* The layout asked for, in what the shards say of themselves. */
static int set_layout(struct dt_shard_info *info, struct dt_error *err)
{
    long padding = opt.padding_id >= 0 ? opt.padding_id : info->eot == UINT32_MAX ? 0 : info->eot;
    bool list = opt.layout == DT_SHARDS_LIST;
    info->row = list ? 0 : (uint32_t)opt.length + 1;
    info->padding_id = list ? 0 : (uint32_t)padding;
    info->masked = info->masked || !list || opt.loss_after >= 0;
    if (!list && padding >= (long)info->vocab_size)
        return dt_fail(err, DT_EINVALID, "--padding-id %ld: the vocabulary has %u", padding,
                       info->vocab_size);
    return 0;
}

static int shard(const struct dt_sharder_options *how, struct dt_shard_reader *first,
                 char *const *paths, int count, struct dt_error *err)
{
    struct dt_buffer provenance = DT_BUFFER_EMPTY;
    struct dt_shard_info info = *dt_shard_reader_info(first);
    struct target t = {0};
    dt_progress_init(&t.progress, false);
    int rc = look_ahead(&info, paths, count, &provenance, err);
    info.provenance = provenance.data;
    if (rc == 0)
        rc = set_layout(&info, err);
    if (rc == 0)
        rc = dt_sharder_new(&t.sharder, opt.output, &info, how, err);
    if (rc == 0 && opt.shuffle)
        rc = dt_shuffler_new(&t.shuffler, opt.output, (uint64_t)opt.seed, (size_t)opt.memory, err);
    if (rc == 0)
        rc = add_inputs(&t, first, paths, count, err);
    if (rc == 0 && opt.shuffle)
        rc = add_shuffled(&t, err);
    if (rc == 0)
        rc = dt_sharder_finish(t.sharder, err);
    dt_progress_clear(&t.progress);
    dt_shuffler_free(t.shuffler);
    dt_sharder_free(t.sharder);
    dt_buffer_release(&provenance);
    return rc;
}

/* The inputs, with the shards that a directory lists in its place. */
static int expand(char *const *operands, int count, struct dt_string_list *paths,
                  struct dt_error *err)
{
    for (int i = 0; i < count; i++) {
        struct dt_manifest m;
        if (strcmp(operands[i], "-") == 0 || !dt_is_directory(operands[i])) {
            DT_GROW(paths->items, paths->count, paths->capacity);
            paths->items[paths->count++] = dt_strdup(operands[i]);
            continue;
        }
        int rc = dt_manifest_read(&m, operands[i], err);
        for (int k = 0; rc == 0 && k < m.count; k++) {
            for (int n = 0; n < m.splits[k].count; n++) {
                DT_GROW(paths->items, paths->count, paths->capacity);
                paths->items[paths->count++] =
                    dt_path_join(operands[i], m.splits[k].shards[n].file);
            }
        }
        dt_manifest_release(&m);
        DT_TRY(rc);
    }
    return 0;
}

static int run_on(const struct dt_sharder_options *how, char *const *paths, int count,
                  struct dt_error *err)
{
    struct dt_shard_reader *first;
    if (count == 0)
        return dt_fail(err, DT_EINVALID, "the directories list no shards");
    for (int i = 0; i < count; i++)
        DT_TRY(check_place(paths[i], err));
    DT_TRY(dt_shard_reader_open(&first, paths[0], err));
    int rc = shard(how, first, paths, count, err);
    dt_shard_reader_close(first);
    return rc;
}

static int run(const struct dt_sharder_options *how, char *const *operands, int count,
               struct dt_error *err)
{
    struct dt_string_list paths = {0};
    int rc = expand(operands, count, &paths, err);
    if (rc == 0)
        rc = run_on(how, (char *const *)paths.items, paths.count, err);
    for (int i = 0; i < paths.count; i++)
        free((char *)paths.items[i]);
    free(paths.items);
    return rc;
}

static void check_options(void)
{
    if ((opt.layout == DT_SHARDS_LIST) != (opt.length == 0))
        dt_usage("--layout padded or packed and --length N go together");
    if (opt.layout == DT_SHARDS_LIST && opt.padding_id >= 0)
        dt_usage("--padding-id goes with --layout padded or packed");
    if (opt.append && opt.split_by == DT_SPLIT_BY_TAIL && opt.splits.count > 0)
        dt_usage("--append and --split-by tail exclude each other: the tail would move");
    if (strcmp(opt.output, "-") == 0)
        dt_usage("--output takes a directory; one that is called - is ./-");
}

int main(int argc, char **argv)
{
    struct dt_error err;
    int first = dt_parse_options(&command, argc, argv);
    int count = argc - first;
    if (count == 0 && isatty(STDIN_FILENO))
        dt_usage("the token stream is not typed by hand: name a FILE, or pipe dt-tokenize in");
    struct dt_split *splits = dt_alloc((size_t)opt.splits.count, sizeof *splits);
    for (int i = 0; i < opt.splits.count; i++)
        if (dt_split_parse(opt.splits.items[i], &splits[i], &err) < 0)
            dt_usage("%s", err.text);
    if (dt_splits_check(splits, opt.splits.count, &err) < 0)
        dt_usage("%s", err.text);
    check_options();
    const struct dt_sharder_options how = {
        .splits = splits,
        .count = opt.splits.count,
        .split_by = (enum dt_split_by)opt.split_by,
        .tokens_per_shard = (uint64_t)opt.tokens_per_shard,
        .level = (int)opt.level,
        .threads = opt.threads ? (int)opt.threads : dt_processors(),
        .layout = (enum dt_sharder_layout)opt.layout,
        .append = opt.append,
    };
    int rc = run(&how, count ? argv + first : standard_input, count ? count : 1, &err);
    free(splits);
    free(opt.splits.items);
    return rc < 0 ? dt_report(&err) : 0;
}
