/* SPDX-License-Identifier: MIT */
/* dt-cat: shows, checks and converts shards. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "base/program.h"
#include "foreign/convert.h"
#include "foreign/foreign.h"
#include "hash/hash.h"
#include "hub/hub.h"
#include "options/command-line.h"
#include "options/options.h"
#include "shard/croissant.h"
#include "shard/listing.h"
#include "shard/manifest.h"
#include "shard/shard.h"
#include "shard/sources.h"
#include "token/tokenizer.h"
#include "tokenizer-files/tokenizer-files.h"

static struct {
    bool info, json, verify, ids, text, lineage, croissant, loss;
    long document;
    int as, from;
    const char *tokenizer, *output, *split;
} opt = {.document = -1, .output = "-"};

#define NAME(format)     #format,
#define BAR_NAME(format) "|" #format
enum { AS_NOTHING, AS_RAW, AS_DTS }; /* from here on, the rows of DT_FOREIGN_FORMATS */
static const char *const as_names[] = {"", "raw", "dts", DT_FOREIGN_FORMATS(NAME) NULL};
static const char *const from_names[] = {"dts", DT_FOREIGN_FORMATS(NAME) NULL};

static const struct dt_option options[] = {
    {"info", 0, DT_OPTION_FLAG, &opt.info, NULL,
     "print a summary of the shards, without reading the data (default)"},
    {"json", 0, DT_OPTION_FLAG, &opt.json, NULL, "print the summary as a line of JSON per shard"},
    {"verify", 0, DT_OPTION_FLAG, &opt.verify, NULL, "read the data, and check every byte"},
    {"ids", 0, DT_OPTION_FLAG, &opt.ids, NULL, "print the ids, a line per document"},
    {"text", 0, DT_OPTION_FLAG, &opt.text, NULL, "print the text; needs -t"},
    {"loss", 0, DT_OPTION_FLAG, &opt.loss, NULL,
     "with --ids or --text, only the tokens that carry loss"},
    {"lineage", 0, DT_OPTION_FLAG, &opt.lineage, NULL, "print the commands that made the shards"},
    {"croissant", 0, DT_OPTION_FLAG, &opt.croissant, NULL,
     "print Croissant metadata of a directory of shards"},
    {"as", 0, DT_OPTION_CHOICE, &opt.as, "raw|dts" DT_FOREIGN_FORMATS(BAR_NAME),
     "write plain ids, a token stream, or the files of another program", .choices = as_names},
    {"from", 0, DT_OPTION_CHOICE, &opt.from, "dts" DT_FOREIGN_FORMATS(BAR_NAME),
     "read the files of another program; needs --as dts and -t", .choices = from_names},
    {"split", 0, DT_OPTION_STRING, &opt.split, "NAME", "only the shards of split NAME"},
    {"tokenizer", 't', DT_OPTION_STRING, &opt.tokenizer, "TOKENIZER",
     "for --text, --from and --verify: tokenizer.json, another tokenizer file, or a "
     "directory",
     .reads = true},
    {"doc", 0, DT_OPTION_INT, &opt.document, "N", "print only document N, counted from 0", .min = 0,
     .max = 1e18},
    {"output", 'o', DT_OPTION_STRING, &opt.output, "FILE", "write to FILE", .writes = ""},
    {NULL}};

static const struct dt_command command = {
    "dt-cat", "show, check and decode shards and token streams", "[SHARD ...]", options};

static char *const standard_input[] = {"-"};

/* The output. */
struct printer {
    struct dt_output out;
    struct dt_buffer line;
    struct dt_tokenizer *tokenizer;
};

/* With --lineage, adds the lineage file of a checkpoint, or of the latest of a run. Returns 1 if
 * path is one. */
#define LINEAGE_FILE "lineage.txt"

static int add_checkpoint(struct dt_shard_sources *s, const char *path, struct dt_error *err)
{
    static const char *const locations[] = {"trainer/" LINEAGE_FILE,
                                            "latest/trainer/" LINEAGE_FILE};
    for (int i = 0; opt.lineage && i < 2; i++) {
        char *file = dt_path_join(path, locations[i]);
        int exists = dt_file_probe(file, err);
        if (exists > 0)
            dt_shard_sources_add_path(s, file);
        else
            free(file);
        if (exists != 0)
            return exists;
    }
    return 0;
}

/* Files of other programs do not store splits: refuses inputs of several splits. */
static int check_one_split(const struct dt_shard_sources *s, struct dt_error *err)
{
    const struct dt_shard_source *other = dt_shard_sources_find_other_split(s);
    if (other == NULL)
        return dt_shard_sources_check_distinct(s, err);
    return dt_fail(
        err, DT_EINVALID,
        "%s: belongs to another split than %s, and --as %s would mix them: choose one with "
        "--split",
        other->path, s->items[0].path, as_names[opt.as]);
}

/* Refuses an output that is also an input, or a file of an input of --from. */
static int check_output(const char *path, struct dt_error *err)
{
    char *parts[] = {dt_strdup(path), dt_asprintf("%s.bin", path), dt_asprintf("%s.idx", path),
                     dt_path_join(path, dt_path_base(opt.output))};
    int rc = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        bool read = i == 0 || opt.from > 0;
        if (rc == 0 && read && dt_output_is_input(opt.output, parts[i]))
            rc = dt_fail(
                err, DT_EINVALID,
                "--output: '%s' is also an input and would be overwritten: name another file",
                opt.output);
        free(parts[i]);
    }
    return rc;
}

static int find_sources(struct dt_shard_sources *s, char *const *paths, int count,
                        struct dt_error *err)
{
    for (int i = 0; i < count; i++) {
        int is_checkpoint = add_checkpoint(s, paths[i], err);
        DT_TRY(is_checkpoint);
        if (is_checkpoint)
            continue;
        if (opt.from)
            dt_shard_sources_add_path(s, dt_strdup(paths[i]));
        else
            DT_TRY(dt_shard_sources_add(s, paths[i], err));
    }
    if (opt.split)
        DT_TRY(dt_shard_sources_select(s, opt.split, err));
    for (int i = 0; i < s->count; i++) {
        DT_TRY(check_output(s->items[i].path, err));
        if (opt.as)
            DT_TRY(dt_shard_source_check(&s->items[i], err));
    }
    return opt.as && !opt.from ? check_one_split(s, err) : 0;
}

static int flush_line(struct printer *p, struct dt_error *err)
{
    int rc = dt_output_write(&p->out, p->line.data, p->line.size, err);
    dt_buffer_clear(&p->line);
    return rc;
}

/* --- documents -------------------------------------------------------------------------------- */

static void add_number(struct dt_buffer *b, uint32_t value)
{
    char digits[10];
    int n = 0;
    do
        digits[n++] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    while (n > 0)
        b->data[b->size++] = digits[--n];
}

static void add_ids(struct dt_buffer *b, const uint32_t *ids, size_t count)
{
    dt_buffer_reserve(b, b->size + 11 * count + 2);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            b->data[b->size++] = ' ';
        add_number(b, ids[i]);
    }
    dt_buffer_add_char(b, '\n');
}

/* Appends the text without its final end-of-text token, which becomes a separator line if several
 * documents are printed. */
static int add_text(struct printer *p, const uint32_t *ids, size_t count,
                    const struct dt_shard_info *info, struct dt_error *err)
{
    size_t size;
    bool ends = count > 0 && ids[count - 1] == info->eot;
    DT_TRY(dt_tokenizer_decode(p->tokenizer, ids, count - ends, &p->line, err));
    if ((ends || opt.loss) && opt.document < 0) {
        const char *separator =
            info->eot == DT_NO_TOKEN ? "" : dt_tokenizer_bytes(p->tokenizer, info->eot, &size);
        dt_buffer_add_char(&p->line, '\n');
        dt_buffer_append(&p->line, separator, *separator ? size : 0);
        dt_buffer_add_char(&p->line, '\n');
    }
    return 0;
}

/* Removes the ids that carry no loss. */
static void keep_learned(struct dt_ids *ids)
{
    size_t kept = 0;
    for (size_t i = 0; i < ids->count; i++)
        if (!(ids->data[i] & DT_NO_LOSS))
            ids->data[kept++] = ids->data[i];
    ids->count = kept;
}

static int print_document(struct printer *p, struct dt_ids *ids, const struct dt_shard_info *info,
                          struct dt_error *err)
{
    if (opt.loss)
        keep_learned(ids);
    if (opt.ids)
        add_ids(&p->line, ids->data, ids->count);
    else
        DT_TRY(add_text(p, ids->data, ids->count, info, err));
    return flush_line(p, err);
}

static int check_tokenizer(const struct printer *p, const struct dt_shard_info *info,
                           const char *path, struct dt_error *err)
{
    if (p->tokenizer == NULL)
        return 0;
    return dt_shard_check_tokenizer(info, path, dt_tokenizer_fingerprint(p->tokenizer),
                                    opt.tokenizer, err);
}

/* Prints all documents of a stream or, with --doc, only document *left of it; *left is -1
 * afterwards. */
static int print_stream(struct printer *p, struct dt_shard_reader *r, const char *path, long *left,
                        struct dt_error *err)
{
    const struct dt_shard_info *info = dt_shard_reader_info(r);
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_shard_document document;
    int rc = check_tokenizer(p, info, path, err);
    if (opt.loss)
        dt_shard_reader_mark(r);
    while (rc == 0 && (rc = dt_shard_read(r, &ids, &document, err)) > 0) {
        rc = 0;
        if (opt.document < 0 || *left == 0)
            rc = print_document(p, &ids, info, err);
        if (opt.document >= 0 && (*left)-- == 0)
            break;
    }
    dt_ids_release(&ids);
    return rc;
}

/* Prints a document of a shard by random access. */
static int print_one(struct printer *p, struct dt_shard *s, const char *path, uint64_t number,
                     struct dt_error *err)
{
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_shard_document document;
    uint64_t first;
    DT_TRY(check_tokenizer(p, dt_shard_get_info(s), path, err));
    DT_TRY(dt_shard_get_document(s, number, &first, &document, err));
    dt_ids_reserve(&ids, (size_t)document.tokens);
    ids.count = (size_t)document.tokens;
    int rc =
        (opt.loss ? dt_shard_targets : dt_shard_tokens)(s, first, document.tokens, ids.data, err);
    if (rc == 0)
        rc = print_document(p, &ids, dt_shard_get_info(s), err);
    dt_ids_release(&ids);
    return rc;
}

/* Prints document *left by random access, if possible: false otherwise. */
static bool try_one(struct printer *p, const char *path, long *left, int *rc, struct dt_error *err)
{
    struct dt_shard *s;
    if (strcmp(path, "-") == 0 || dt_shard_open(&s, path, err) < 0)
        return false; /* a pipe, concatenated streams, or damage that sequential reading reports */
    long documents = (long)dt_shard_get_info(s)->documents;
    *rc = *left < documents ? print_one(p, s, path, (uint64_t)*left, err) : 0;
    *left = *left < documents ? -1 : *left - documents;
    dt_shard_close(s);
    return true;
}

static int print_source(struct printer *p, const struct dt_shard_source *source, long *left,
                        struct dt_error *err)
{
    struct dt_shard_reader *r;
    int rc;
    if (opt.document >= 0 && try_one(p, source->path, left, &rc, err))
        return rc;
    DT_TRY(dt_shard_reader_open(&r, source->path, err));
    rc = print_stream(p, r, source->path, left, err);
    dt_shard_reader_close(r);
    return rc;
}

static int print_documents(struct printer *p, const struct dt_shard_sources *s,
                           struct dt_error *err)
{
    long left = opt.document;
    for (int i = 0; i < s->count && (opt.document < 0 || left >= 0); i++)
        DT_TRY(print_source(p, &s->items[i], &left, err));
    if (opt.document >= 0 && left >= 0)
        return dt_fail(err, DT_EMISSING,
                       "document %ld is out of range: there are %ld documents, counted from 0",
                       opt.document, opt.document - left);
    return 0;
}

/* --- whole shards ----------------------------------------------------------------------------- */

/* The properties of a stream after reading and checking all of it. */
static int read_through(const char *path, struct dt_shard_info *info, char **provenance,
                        struct dt_error *err)
{
    struct dt_shard_reader *r;
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_shard_document document;
    int rc;
    DT_TRY(dt_shard_reader_open(&r, path, err));
    while ((rc = dt_shard_read(r, &ids, &document, err)) > 0)
        ;
    *info = *dt_shard_reader_info(r);
    *provenance = dt_strdup(info->provenance);
    dt_ids_release(&ids);
    dt_shard_reader_close(r);
    return rc;
}

/* The same from header and footer only, if the input is a single shard. */
static int read_summary(const char *path, struct dt_shard_info *info, char **provenance,
                        struct dt_error *err)
{
    struct dt_shard *s;
    if (strcmp(path, "-") == 0 || dt_shard_open(&s, path, err) < 0)
        return read_through(path, info, provenance, err);
    *info = *dt_shard_get_info(s);
    *provenance = dt_strdup(info->provenance);
    dt_shard_close(s);
    return 0;
}

static int verify_source(struct printer *p, const struct dt_shard_source *source,
                         struct dt_error *err)
{
    struct dt_shard_info info;
    char *provenance = NULL;
    int rc = dt_shard_source_check(source, err);
    if (rc == 0)
        rc = read_through(source->path, &info, &provenance, err);
    if (rc == 0)
        rc = check_tokenizer(p, &info, source->path, err);
    free(provenance);
    DT_TRY(rc);
    dt_buffer_printf(&p->line, "%s: %" PRIu64 " document%s, %" PRIu64 " token%s: whole\n",
                     source->path, info.documents, dt_plural(info.documents), info.tokens,
                     dt_plural(info.tokens));
    DT_TRY(flush_line(p, err));
    return dt_output_flush(&p->out, err); /* the next source may be damaged */
}

static int verify(struct printer *p, const struct dt_shard_sources *s, struct dt_error *err)
{
    for (int i = 0; i < s->count; i++)
        DT_TRY(verify_source(p, &s->items[i], err));
    return 0;
}

#define LINEAGE_LIMIT ((size_t)16 << 20)

static int read_lineage(const struct dt_shard_source *source, char **lines, struct dt_error *err)
{
    struct dt_shard_info info;
    size_t size;
    if (strcmp(dt_path_base(source->path), LINEAGE_FILE) == 0)
        return dt_file_read(source->path, LINEAGE_LIMIT, lines, &size, err);
    return read_summary(source->path, &info, lines, err);
}

static int print_lineage(struct printer *p, const struct dt_shard_sources *s, struct dt_error *err)
{
    char *last = NULL;
    for (int i = 0; i < s->count; i++) {
        char *provenance = NULL;
        int rc = read_lineage(&s->items[i], &provenance, err);
        if (rc == 0 && (last == NULL || strcmp(last, provenance) != 0))
            dt_buffer_printf(&p->line, "%s:\n%s", s->items[i].path, provenance);
        free(last);
        last = provenance;
        if (rc == 0)
            rc = flush_line(p, err);
        if (rc < 0) {
            free(last);
            return rc;
        }
    }
    free(last);
    return 0;
}

/* The width of the first column: the longest path that fits the terminal. */
static int path_width(const struct dt_shard_sources *s, int fd)
{
    enum { NUMBERS = 57, LEAST = 22 };
    struct winsize window;
    int width = LEAST;
    for (int i = 0; i < s->count; i++)
        width = (int)strlen(s->items[i].path) > width ? (int)strlen(s->items[i].path) : width;
    if (ioctl(fd, TIOCGWINSZ, &window) == 0 && width > window.ws_col - NUMBERS)
        width = window.ws_col - NUMBERS > LEAST ? window.ws_col - NUMBERS : LEAST;
    return width;
}

/* The size of a regular file; 0 for a pipe. */
static uint64_t file_size(const char *path)
{
    struct stat st;
    int rc = strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &st) : stat(path, &st);
    return rc == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

static int print_info(struct printer *p, const struct dt_shard_sources *s, struct dt_error *err)
{
    struct dt_shard_info info;
    struct dt_listing listing = {.width = path_width(s, p->out.fd)};
    for (int i = 0; i < s->count; i++) {
        const char *path = s->items[i].path;
        char *provenance = NULL;
        int rc = read_summary(path, &info, &provenance, err);
        free(provenance);
        DT_TRY(rc);
        if (opt.json)
            dt_listing_json(path, &info, &p->line);
        else
            dt_listing_add(&listing, path, &info, file_size(path), &p->line);
        DT_TRY(flush_line(p, err));
    }
    if (!opt.json)
        dt_listing_finish(&listing, &p->line);
    return flush_line(p, err);
}

/* --- other formats ---------------------------------------------------------------------------- */

/* Hash and size of the text of a document, decoded from its ids. */
static int identify(void *context, const struct dt_ids *ids, struct dt_shard_document *document,
                    struct dt_error *err)
{
    struct printer *p = context;
    bool ends = ids->count > 0 && ids->data[ids->count - 1] == dt_tokenizer_eot(p->tokenizer);
    dt_buffer_clear(&p->line);
    DT_TRY(dt_tokenizer_decode(p->tokenizer, ids->data, ids->count - ends, &p->line, err));
    *document = (struct dt_shard_document){
        .hash = dt_hash(p->line.data, p->line.size), .tokens = ids->count, .bytes = p->line.size};
    return 0;
}

/* The records of the output: NULL if it has no place for them. */
static struct dt_lineage *lineage;

/* Of files in a format of another program: inside a directory, or beside each file. */
static int write_foreign_lineage(struct dt_error *err)
{
    static const char *const suffixes[] = {"", ".bin", ".idx", NULL};
    mode_t mode;
    int rc = 0;
    for (int i = 0; rc >= 0 && suffixes[i]; i++) {
        char *path = dt_asprintf("%s%s", opt.output, suffixes[i]);
        rc = dt_file_look(path, &mode, err);
        if (rc == 1 && S_ISDIR(mode) && i == 0)
            rc = dt_lineage_write_inside(lineage, path, err);
        else if (rc == 1 && S_ISREG(mode))
            rc = dt_lineage_write_beside(lineage, path, err);
        free(path);
    }
    return rc < 0 ? rc : 0;
}

static int add_source_to(struct dt_converter *c, struct printer *p, const char *path,
                         struct dt_error *err)
{
    if (opt.from == 0)
        return dt_converter_add_shard(c, path, err);
    const struct dt_shard_info info = {.vocab_size = dt_tokenizer_size(p->tokenizer),
                                       .eot = dt_tokenizer_eot(p->tokenizer),
                                       .tokenizer = dt_tokenizer_fingerprint(p->tokenizer)};
    DT_TRY(dt_lineage_add_path(lineage, path, err));
    return dt_converter_add_foreign(c, from_names[opt.from], path, &info, identify, p, err);
}

static int convert(struct printer *p, const struct dt_shard_sources *s, struct dt_error *err)
{
    struct dt_converter *c = dt_converter_new(&(struct dt_target){
        .kind = opt.as == AS_RAW   ? DT_TARGET_RAW
                : opt.as == AS_DTS ? DT_TARGET_STREAM
                                   : DT_TARGET_FOREIGN,
        .out = &p->out,
        .format = as_names[opt.as],
        .path = opt.output,
        .command_line = dt_command_line(),
        .lineage = lineage,
    });
    int rc = 0;
    for (int i = 0; rc == 0 && i < s->count; i++)
        rc = add_source_to(c, p, s->items[i].path, err);
    if (rc == 0)
        rc = dt_converter_finish(c, err);
    dt_converter_free(c);
    return rc;
}

/* Of one directory, whose shards have one manifest. */
static int print_croissant(struct printer *p, const struct dt_shard_sources *s,
                           struct dt_error *err)
{
    const struct dt_manifest *m = s->count > 0 ? s->items[0].manifest : NULL;
    for (int i = 0; i < s->count; i++)
        if (m == NULL || s->items[i].manifest != m)
            return dt_fail(err, DT_EINVALID,
                           "%s: --croissant takes one directory with an index.json",
                           s->items[i].path);
    char *path = realpath(s->items[0].path, NULL);
    if (path == NULL)
        return dt_fail_errno(err, "cannot find '%s'", s->items[0].path);
    *strrchr(path, '/') = '\0';
    int rc = dt_croissant_write(m, dt_path_base(path), &p->line, err);
    free(path);
    return rc < 0 ? rc : flush_line(p, err);
}

static int print(struct printer *p, const struct dt_shard_sources *s, struct dt_error *err)
{
    if (opt.croissant)
        return print_croissant(p, s, err);
    if (opt.as)
        return convert(p, s, err);
    if (opt.ids || opt.text)
        return print_documents(p, s, err);
    if (opt.verify)
        return verify(p, s, err);
    return opt.lineage ? print_lineage(p, s, err) : print_info(p, s, err);
}

static int run(char *const *paths, int count, struct dt_error *err)
{
    struct dt_shard_sources sources = {0};
    struct printer p = {0};
    int rc = 0;
    if (opt.tokenizer)
        rc = dt_tokenizer_load(&p.tokenizer, opt.tokenizer, err);
    if (rc == 0)
        rc = find_sources(&sources, paths, count, err);
    bool foreign = opt.as > AS_DTS; /* which opens its output files */
    lineage = foreign ? dt_lineage_new() : opt.as ? dt_lineage_for(opt.output) : NULL;
    if (rc == 0 && opt.tokenizer)
        rc = dt_lineage_add_path(lineage, opt.tokenizer, err);
    if (rc == 0 && !foreign)
        rc = dt_output_open(&p.out, opt.output, err);
    if (rc == 0)
        rc = print(&p, &sources, err);
    if (rc == 0)
        rc = foreign ? write_foreign_lineage(err) : dt_lineage_commit(lineage, &p.out, err);
    dt_lineage_free(lineage);
    dt_output_abandon(&p.out);
    dt_buffer_release(&p.line);
    dt_tokenizer_free(p.tokenizer);
    dt_shard_sources_release(&sources);
    return rc;
}

static void check_options(void)
{
    if (opt.info + opt.json + opt.verify + opt.ids + opt.text + opt.lineage + opt.croissant +
            (opt.as > 0) >
        1)
        dt_program_usage(
            "--info, --json, --verify, --ids, --text, --lineage, --croissant and --as exclude each "
            "other");
    if (opt.from > 0 && opt.as != AS_DTS)
        dt_program_usage("--from %s needs --as dts", from_names[opt.from]);
    if (opt.split && opt.from > 0)
        dt_program_usage("--split needs shards: files of other programs do not store splits");
    bool needed = opt.text || opt.from > 0;
    if (needed ? opt.tokenizer == NULL : opt.tokenizer && !opt.verify)
        dt_program_usage(
            "--text and --from need -t TOKENIZER; of the others only --verify takes it");
    if (opt.loss && !opt.ids && !opt.text)
        dt_program_usage("--loss needs --ids or --text");
    if (opt.document >= 0 && !opt.ids && !opt.text)
        dt_program_usage("--doc needs --ids or --text");
    if ((opt.as == AS_RAW || opt.as == AS_DTS) && dt_output_is_terminal(opt.output))
        dt_program_usage("ids cannot go to a terminal: redirect them, or name a file with -o");
}

int main(int argc, char **argv)
{
    struct dt_error err;
    dt_options_set_fetch(dt_hub_fetch);
    int first = dt_options_parse(&command, argc, argv);
    int count = argc - first;
    check_options();
    if (count == 0 && isatty(STDIN_FILENO))
        dt_program_usage("name a SHARD, or pipe a token stream in");
    int rc = run(count ? argv + first : standard_input, count ? count : 1, &err);
    return rc < 0 ? dt_program_report(&err) : 0;
}
