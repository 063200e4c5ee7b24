/* SPDX-License-Identifier: MIT */
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

static const char *const split_by[] = {"document", "tail", NULL};

static struct {
    const char *output;
    struct dt_string_list splits;
    int split_by;
    long tokens_per_shard, level, threads;
} opt = {.tokens_per_shard = 100000000, .level = 3};

static const struct dt_option options[] = {
    {"output", 'o', DT_OPT_STRING, &opt.output, "DIR", "write the shards and index.json to DIR",
     .required = true},
    {"split", 0, DT_OPT_LIST, &opt.splits, "NAME=FRACTION",
     "move a part to split NAME; the rest is train"},
    {"split-by", 0, DT_OPT_CHOICE, &opt.split_by, "document|tail",
     "choose it by document hash (default), or take the last tokens", .choices = split_by},
    {"tokens-per-shard", 0, DT_OPT_INT, &opt.tokens_per_shard, "N",
     "begin a new shard before N tokens are exceeded (default 100M)", .min = 1, .max = 1e18},
    {"level", 0, DT_OPT_INT, &opt.level, "N", "compress at zstd level N, 0 stores (default 3)",
     .min = 0, .max = 19},
    {"threads", 'j', DT_OPT_INT, &opt.threads, "N", "compress on N threads (default: all)",
     .min = 1, .max = 1024},
    {NULL}};

static const struct dt_command command = {
    "dt-shard", "cut token streams into compressed, indexed shards", "[FILE ...]", options};

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

static int add_documents(struct dt_sharder *s, struct dt_shard_reader *r,
                         struct dt_progress *progress, struct dt_error *err)
{
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_shard_document document;
    uint64_t documents = 0, tokens = 0;
    int rc;
    while ((rc = dt_shard_read(r, &ids, &document, err)) > 0) {
        rc = dt_sharder_add(s, ids.data, &document, err);
        if (rc < 0)
            break;
        documents++;
        tokens += document.tokens;
        if (dt_progress_due(progress))
            dt_progress_show(progress, "%" PRIu64 " documents, %" PRIu64 " tokens", documents,
                             tokens);
    }
    dt_ids_release(&ids);
    return rc;
}

/* Adds the inputs behind the first, which is open already and is closed here. */
static int add_inputs(struct dt_sharder *s, struct dt_shard_reader *first, char *const *paths,
                      int count, struct dt_error *err)
{
    struct dt_progress progress;
    struct dt_shard_info info = *dt_shard_reader_info(first);
    dt_progress_init(&progress, false);
    int rc = add_documents(s, first, &progress, err);
    for (int i = 1; rc == 0 && i < count; i++) {
        struct dt_shard_reader *r;
        rc = dt_shard_reader_open(&r, paths[i], err);
        if (rc == 0)
            rc = check_same(&info, dt_shard_reader_info(r), paths[i], err);
        if (rc == 0)
            rc = add_documents(s, r, &progress, err);
        dt_shard_reader_close(r);
    }
    dt_progress_clear(&progress);
    return rc;
}

static int shard(const struct dt_sharder_options *how, struct dt_shard_reader *first,
                 char *const *paths, int count, struct dt_error *err)
{
    struct dt_buffer provenance = DT_BUFFER_EMPTY;
    struct dt_shard_info info = *dt_shard_reader_info(first);
    struct dt_sharder *s = NULL;
    int rc = look_ahead(&info, paths, count, &provenance, err);
    info.provenance = provenance.data;
    if (rc == 0)
        rc = dt_sharder_new(&s, opt.output, &info, how, err);
    if (rc == 0)
        rc = add_inputs(s, first, paths, count, err);
    if (rc == 0)
        rc = dt_sharder_finish(s, err);
    dt_sharder_free(s);
    dt_buffer_release(&provenance);
    return rc;
}

static int run(const struct dt_sharder_options *how, char *const *paths, int count,
               struct dt_error *err)
{
    struct dt_shard_reader *first;
    for (int i = 0; i < count; i++)
        DT_TRY(check_place(paths[i], err));
    DT_TRY(dt_shard_reader_open(&first, paths[0], err));
    int rc = shard(how, first, paths, count, err);
    dt_shard_reader_close(first);
    return rc;
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
    if (strcmp(opt.output, "-") == 0)
        dt_usage("--output takes a directory; one that is called - is ./-");
    const struct dt_sharder_options how = {
        .splits = splits,
        .count = opt.splits.count,
        .split_by = (enum dt_split_by)opt.split_by,
        .tokens_per_shard = (uint64_t)opt.tokens_per_shard,
        .level = (int)opt.level,
        .threads = opt.threads ? (int)opt.threads : dt_processors(),
    };
    int rc = run(&how, count ? argv + first : standard_input, count ? count : 1, &err);
    free(splits);
    free(opt.splits.items);
    return rc < 0 ? dt_report(&err) : 0;
}
