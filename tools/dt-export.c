/* SPDX-License-Identifier: MIT */
/* dt-export: models for other programs, and from them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "base/program.h"
#include "eval/text-frame.h"
#include "formats/adapter-export.h"
#include "formats/adapter.h"
#include "formats/export-format.h"
#include "formats/model-card.h"
#include "formats/safetensors-export.h"
#include "gguf/gguf-tokenizer.h"
#include "hub/hub.h"
#include "io/lineage.h"
#include "options/options.h"
#include "token/tokenizer.h"
#include "tokenizer-files/tokenizer-files.h"
#include "unicode/utf8.h"

static struct {
    struct dt_string_list models;
    const char *tokenizer, *adapter, *output;
    long max_shard;
    int format, type;
    bool unmerged, verify;
} opt;
static const struct dt_export_format *format; /* of --to */

/* Help of --to and --type, made from the formats before the options are parsed. */
static char format_help[256], type_help[256];

static const struct dt_option options[] = {
    {"model", 'm', DT_OPTION_LIST, &opt.models, "MODEL",
     "directory or GGUF file of the model; given several times, their mean", .required = true,
     .reads = true},
    {"adapter", 0, DT_OPTION_STRING, &opt.adapter, "DIR",
     "merge the low-rank adapter in DIR into the model", .reads = true},
    {"unmerged", 0, DT_OPTION_FLAG, &opt.unmerged, NULL,
     "write the adapter alone, without its model"},
    {"tokenizer", 't', DT_OPTION_STRING, &opt.tokenizer, "FILE",
     "tokenizer.json to include (default: that of the first model)", .reads = true},
    {"to", 0, DT_OPTION_CHOICE, &opt.format, "FORMAT", format_help,
     .choices = dt_export_format_names},
    {"type", 0, DT_OPTION_CHOICE, &opt.type, "TYPE", type_help, .choices = dt_export_type_names},
    {"max-shard", 0, DT_OPTION_INT, &opt.max_shard, "BYTES",
     "split the weights into files of at most BYTES", .min = 1, .max = 1e15},
    {"verify", 0, DT_OPTION_FLAG, &opt.verify, NULL, "read the output back and compare logits"},
    {"output", 'o', DT_OPTION_STRING, &opt.output, "PATH", "write to PATH", .required = true,
     .writes = ""},
    {NULL},
};

static const struct dt_command command = {"dt-export", "write a model for other programs", "",
                                          options};

static void make_help(void)
{
    struct dt_buffer formats = DT_BUFFER_EMPTY, types = DT_BUFFER_EMPTY;
    for (int i = 0; dt_export_format_list[i]; i++)
        dt_buffer_printf(&formats, "%s%s, %s%s", i ? "; " : "", dt_export_format_list[i]->name,
                         dt_export_format_list[i]->help, i ? "" : " (the default)");
    for (int t = 0; t < DT_EXPORT_TYPE_COUNT; t++) {
        dt_buffer_printf(&types, "%s%s%s", t ? ", " : "", dt_export_type_names[t],
                         t ? "" : " (the default)");
        if (dt_export_format_list[0]->types >> t & 1)
            continue;
        for (int i = 1; dt_export_format_list[i]; i++)
            if (dt_export_format_list[i]->types >> t & 1)
                dt_buffer_printf(&types, " (%s)", dt_export_format_list[i]->name);
    }
    snprintf(format_help, sizeof format_help, "%s", formats.data);
    snprintf(type_help, sizeof type_help, "%s", types.data);
    dt_buffer_release(&formats);
    dt_buffer_release(&types);
}

/* A label has one row in the heads of all models. */
static int check_labels(const struct dt_labels *first, const struct dt_labels *other,
                        const char *model, struct dt_error *err)
{
    for (long i = 0; first->names && other->names && i < first->count; i++)
        if (strcmp(first->names[i], other->names[i]) != 0)
            return dt_fail(err, DT_EINVALID,
                           "%s: its label %ld is '%s', but the first model's is '%s'", model, i,
                           other->names[i], first->names[i]);
    return 0;
}

static int compare_labels(const char *model, long count, struct dt_error *err)
{
    struct dt_labels first, other;
    int rc = dt_labels_read(&first, opt.models.items[0], count, err);
    if (rc == 0) {
        rc = dt_labels_read(&other, model, count, err);
        rc = rc < 0 ? rc : check_labels(&first, &other, model, err);
        dt_labels_release(&other);
    }
    dt_labels_release(&first);
    return rc;
}

/* Running mean of all models: model n moves it by 1/n. */
static int load_all(struct dt_model **mean, struct dt_device *dev, struct dt_error *err)
{
    DT_TRY(dt_model_load(mean, dev, opt.models.items[0], err));
    int rc = opt.adapter ? dt_model_merge_adapter(*mean, opt.adapter, err) : 0;
    for (int i = 1; rc == 0 && i < opt.models.count; i++) {
        struct dt_model *next;
        float weight = 1.0f / (float)(i + 1);
        rc = dt_model_load(&next, dev, opt.models.items[i], err);
        if (rc == 0)
            rc = dt_model_mix(*mean, 1 - weight, next, weight, opt.models.items[i], err);
        if (rc == 0)
            rc = compare_labels(opt.models.items[i], next->config.num_labels, err);
        dt_model_free(next);
    }
    return rc;
}

/* The tokenizer to include. */
struct included {
    char *path; /* NULL: none */
    bool own;   /* the model's, with its other files */
    struct json_object *json;
    struct dt_text_frame frame;
    uint32_t eot;
};

static int check_size(const struct included *t, const struct dt_tokenizer *tokenizer,
                      const struct dt_model *m, struct dt_error *err)
{
    uint32_t size = dt_tokenizer_size(tokenizer);
    return size <= (uint32_t)m->config.vocab_size
               ? 0
               : dt_fail(err, DT_EINVALID, "%s: has %u tokens, the model only %ld", t->path, size,
                         m->config.vocab_size);
}

/* Puts the tokens around a text into the tokenizer, so that other programs begin texts as
 * dt-generate does. */
static void frame_texts(struct included *t, const struct dt_tokenizer *tokenizer)
{
    size_t size;
    if (t->frame.in_tokenizer || t->frame.frame.before_count == 0)
        return;
    uint32_t id = t->frame.frame.before[0];
    const char *bytes = dt_tokenizer_bytes(tokenizer, id, &size);
    struct dt_gguf_template around = {.before = dt_strndup(bytes, size), .before_id = id};
    dt_gguf_tokenizer_set_template(t->json, &around);
    free(around.before);
}

/* Whether the model continues texts. */
static bool continues(const struct dt_model_config *c)
{
    return !dt_model_is_masked(c) && c->num_labels == 0;
}

static int read_tokenizer(struct included *t, const struct dt_model *m, struct dt_error *err)
{
    struct dt_tokenizer *tokenizer;
    DT_TRY(dt_file_need_regular(t->path, err)); /* it is read again */
    DT_TRY(dt_tokenizer_load(&tokenizer, t->path, err));
    t->eot = dt_tokenizer_eot(tokenizer);
    int rc = check_size(t, tokenizer, m, err);
    rc = rc < 0 ? rc : dt_tokenizer_need_json(t->path, err);
    rc = rc < 0
             ? rc
             : dt_text_frame_read(&t->frame, tokenizer, t->own ? opt.models.items[0] : NULL, err);
    if (rc == 0)
        rc = dt_gguf_file_is_named(t->path) ? dt_gguf_tokenizer_load(t->path, &t->json, err)
                                            : dt_json_read(t->path, &t->json, err);
    if (rc == 0 && continues(&m->config))
        frame_texts(t, tokenizer);
    if (rc == 0 && !t->own)
        dt_tokenizer_warn_of_other(tokenizer, t->path, opt.models.items[0]);
    dt_tokenizer_free(tokenizer);
    return rc;
}

static int find_tokenizer(struct included *t, const struct dt_model *m, struct dt_error *err)
{
    *t = (struct included){.eot = DT_NO_TOKEN, .own = opt.tokenizer == NULL};
    if (opt.tokenizer)
        t->path = dt_strdup(opt.tokenizer);
    else
        DT_TRY(dt_model_find_tokenizer(opt.models.items[0], &t->path, err));
    return t->path ? read_tokenizer(t, m, err) : 0;
}

static void release_tokenizer(struct included *t)
{
    dt_text_frame_release(&t->frame);
    json_object_put(t->json);
    free(t->path);
}

/* Copies a file of the first model's directory, if it has it. Returns whether it does. */
static int copy_own(const char *name, struct dt_error *err)
{
    char *from = dt_path_join(opt.models.items[0], name), *to = dt_path_join(opt.output, name);
    int there = dt_file_is_directory(opt.models.items[0]) ? dt_file_probe(from, err) : 0;
    int rc = there > 0 ? dt_tokenizer_copy(from, to, err) : there;
    free(from);
    free(to);
    return rc < 0 ? rc : there;
}

static int write_chat_template(const struct included *t, struct dt_error *err)
{
    const char *text = t->frame.tokens.chat_template;
    if (text == NULL)
        return 0;
    char *path = dt_path_join(opt.output, DT_CHAT_TEMPLATE_FILE);
    int rc = dt_file_write(path, text, strlen(text), err);
    free(path);
    return rc;
}

/* Writes tokenizer.json, and what else transformers' AutoTokenizer and generate() read: copies of
 * the model's files if the tokenizer is the model's. */
static int write_tokenizer(const struct included *t, const struct dt_model_config *c,
                           struct dt_error *err)
{
    char *path = dt_path_join(opt.output, DT_TOKENIZER_FILE);
    bool same = t->frame.in_tokenizer || t->frame.frame.before_count == 0 || !continues(c);
    int rc = same ? dt_tokenizer_copy(t->path, path, err) : dt_json_write(path, t->json, err);
    free(path);
    DT_TRY(rc);
    const struct dt_text_tokens *tokens = &t->frame.tokens;
    int config = t->own ? copy_own(DT_TOKENIZER_CONFIG_FILE, err) : 0;
    DT_TRY(config);
    if (config == 0)
        DT_TRY(dt_tokenizer_config_write(
            opt.output, tokens->bos != DT_NO_TOKEN ? tokens->bos : t->eot,
            tokens->end_count > 0 ? tokens->ends[0] : t->eot, c->max_seq_len, err));
    int generation = t->own ? copy_own(DT_GENERATION_CONFIG_FILE, err) : 0;
    DT_TRY(generation);
    if (generation == 0 && continues(c))
        DT_TRY(dt_text_tokens_write(tokens, opt.output, err));
    if (t->own && (rc = copy_own(DT_SPECIAL_TOKENS_FILE, err)) < 0)
        return rc;
    return write_chat_template(t, err);
}

static int check_tokenizer(const char *tokenizer, struct dt_error *err)
{
    char *path = dt_path_join(opt.output, DT_TOKENIZER_FILE);
    int rc = tokenizer && dt_output_is_input(path, tokenizer)
                 ? dt_fail(err, DT_EINVALID, "'%s' is an input: name another --output", path)
                 : 0;
    free(path);
    return rc;
}

/* Removes the output directory's files, config.json first: without it a directory is not a
 * model. */
static void remove_directory(void)
{
    static const char *const names[] = {DT_CONFIG_FILE,           DT_INDEX_FILE,
                                        DT_WEIGHTS_FILE,          DT_TOKENIZER_FILE,
                                        DT_TOKENIZER_CONFIG_FILE, DT_GENERATION_CONFIG_FILE,
                                        DT_SPECIAL_TOKENS_FILE,   DT_CHAT_TEMPLATE_FILE};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = dt_path_join(opt.output, names[i]);
        remove(path);
        free(path);
    }
    rmdir(opt.output); /* unless something else is in it */
}

/* A directory has a model or an adapter, and neither is overwritten. */
static int check_directory(struct dt_error *err)
{
    char *config = dt_path_join(opt.output, DT_CONFIG_FILE);
    int model = dt_file_probe(config, err),
        adapter = model < 0 ? 0 : dt_adapter_probe(opt.output, err);
    free(config);
    if (model < 0 || adapter < 0)
        return model < 0 ? model : adapter;
    return model || adapter ? dt_fail(err, DT_EINVALID,
                                      "%s: holds %s already: remove it, or name another --output",
                                      opt.output, model ? "a model" : "an adapter")
                            : 0;
}

static int write_directory(const struct dt_model *m, const struct dt_export_request *r,
                           const struct included *t, struct dt_error *err)
{
    DT_TRY(check_directory(err));
    DT_TRY(check_tokenizer(t->path, err));
    DT_TRY(dt_file_make_directories(opt.output, err));
    int rc = t->path ? write_tokenizer(t, &m->config, err) : 0;
    rc = rc < 0 ? rc : format->write(m, r, err);
    if (rc < 0)
        remove_directory();
    return rc;
}

/* Name of the model at a path, for example run/step-00001000: the last component without suffix,
 * after that of the run for a checkpoint. Changes path. */
static const char *name_of(char *path)
{
    char *slash = strrchr(path, '/');
    const char *name = slash + 1, *suffix = dt_export_format_of_path(name)->suffix;
    if (suffix)
        path[strlen(path) - strlen(suffix)] = '\0';
    if (strncmp(name, "step-", 5) != 0)
        return name;
    *slash = '\0';
    name = dt_path_base(path);
    *slash = '/';
    return name;
}

static int refuse_model(struct dt_error *err)
{
    char *models = format->models();
    int rc = dt_fail(err, DT_EINVALID, "--to %s holds models of the families %s only", format->name,
                     models);
    free(models);
    return rc;
}

static int write_model(const struct dt_model *m, const struct included *t, struct dt_error *err)
{
    struct dt_buffer name = DT_BUFFER_EMPTY;
    if (!format->holds(&m->config))
        return refuse_model(err);
    char *path = realpath(opt.models.items[0], NULL);
    if (path == NULL)
        return dt_fail_errno(err, "cannot find '%s'", opt.models.items[0]);
    const char *raw = name_of(path);
    dt_utf8_repair(raw, strlen(raw), &name);
    struct dt_labels labels;
    int rc = dt_labels_read(&labels, opt.models.items[0], m->config.num_labels, err);
    const struct dt_export_request request = {.path = opt.output,
                                              .name = name.size ? name.data : "/",
                                              .type = (enum dt_export_type)opt.type,
                                              .max_shard = (uint64_t)opt.max_shard,
                                              .tokenizer = t->json,
                                              .tokenizer_path = t->path,
                                              .eot = t->eot,
                                              .tokens = &t->frame.tokens,
                                              .labels = &labels,
                                              .before_count = t->frame.frame.before_count,
                                              .after_count = t->frame.frame.after_count,
                                              .after = t->frame.frame.after[0]};
    if (rc == 0)
        rc =
            format->suffix ? format->write(m, &request, err) : write_directory(m, &request, t, err);
    if (rc == 0 && t->path == NULL)
        dt_program_warn("%s: written without a tokenizer, because the model comes without one; "
                        "--tokenizer FILE adds one",
                        opt.output);
    dt_labels_release(&labels);
    dt_buffer_release(&name);
    free(path);
    return rc;
}

static int verify(const struct dt_model *m, struct dt_error *err)
{
    struct dt_model *again;
    struct dt_model_difference d;
    DT_TRY(dt_model_load(&again, m->device, opt.output, err));
    int rc = dt_model_compare(&d, m, again, err);
    dt_model_free(again);
    if (rc < 0)
        return dt_fail_context(err, "%s", opt.output);
    if (!(d.largest <= dt_export_type_tolerances[opt.type] * d.range))
        return dt_fail(err, DT_EFORMAT, "%s: logits differ by %.3g, of at most %.3g", opt.output,
                       d.largest, d.range);
    printf("logits differ by %.3g at most; the largest is %.3g\n", d.largest, d.range);
    return fflush(stdout) == 0 ? 0 : dt_fail_errno(err, "cannot write to stdout");
}

/* Removes an output that did not pass --verify. */
static void remove_output(void)
{
    struct dt_error ignored;
    char *file = format->suffix ? realpath(opt.output, NULL) : NULL; /* the target of a link */
    if (format->suffix == NULL) {
        dt_model_export_remove_shards(opt.output);
        remove_directory();
    } else if (file && dt_file_need_regular(file, &ignored) == 0)
        remove(file);
    free(file);
}

/* The model card and the records, unless the directory has a README.md that is not dt's. */
static int write_inside(struct dt_lineage *l, const struct dt_model_config *config,
                        struct dt_error *err)
{
    char *card = dt_path_join(opt.output, DT_MODEL_CARD);
    int found = dt_file_probe(card, err);
    free(card);
    DT_TRY(found);
    if (!found)
        DT_TRY(dt_model_card_write(opt.output, config, dt_lineage_records(l), err));
    return dt_lineage_write_inside(l, opt.output, err);
}

/* The records of the output: beside a file, inside a directory. */
static int write_lineage(const char *tokenizer, const struct dt_model_config *config,
                         struct dt_error *err)
{
    struct dt_lineage *l = dt_lineage_new();
    mode_t mode;
    int rc = tokenizer ? dt_lineage_add_path(l, tokenizer, err) : 0;
    for (int i = 0; rc == 0 && i < opt.models.count; i++)
        rc = dt_lineage_add_path(l, opt.models.items[i], err);
    if (rc == 0 && opt.adapter)
        rc = dt_lineage_add_path(l, opt.adapter, err);
    if (rc == 0 && format->suffix == NULL)
        rc = write_inside(l, config, err);
    else if (rc == 0 && (rc = dt_file_look(opt.output, &mode, err)) == 1)
        rc = S_ISREG(mode) ? dt_lineage_write_beside(l, opt.output, err) : 0;
    dt_lineage_free(l);
    return rc;
}

/* --- an adapter alone ------------------------------------------------------------------------- */

static int write_adapter_directory(const struct dt_model *m, const char *adapter, const char *base,
                                   struct dt_error *err)
{
    DT_TRY(check_directory(err));
    DT_TRY(dt_file_make_directories(opt.output, err));
    int rc = dt_adapter_export(adapter, m, base, opt.output, err);
    if (rc < 0)
        dt_adapter_export_remove(opt.output);
    return rc;
}

static int write_adapter_file(const struct dt_model *m, const char *adapter, struct dt_error *err)
{
    struct dt_buffer name = DT_BUFFER_EMPTY;
    char *path = realpath(adapter, NULL);
    if (path == NULL)
        return dt_fail_errno(err, "cannot find '%s'", adapter);
    const char *raw = name_of(path);
    dt_utf8_repair(raw, strlen(raw), &name);
    int rc = dt_adapter_export_gguf(adapter, m, name.size ? name.data : "/", opt.output, err);
    dt_buffer_release(&name);
    free(path);
    return rc;
}

/* --model is the adapter, which names its model, or the model of --adapter. */
static int export_adapter(struct dt_device *dev, struct dt_error *err)
{
    struct dt_model *m = NULL;
    const char *adapter = opt.adapter ? opt.adapter : opt.models.items[0];
    char *base = NULL;
    int alone = opt.adapter ? 1 : dt_adapter_probe(adapter, err);
    DT_TRY(alone);
    if (!alone)
        return dt_fail(err, DT_EINVALID, "%s: has no adapter", adapter);
    if (opt.adapter == NULL)
        DT_TRY(dt_adapter_find_base(adapter, &base, err));
    const char *path = base ? base : opt.models.items[0];
    int rc = dt_model_load(&m, dev, path, err);
    if (rc == 0)
        rc = format->suffix ? write_adapter_file(m, adapter, err)
                            : write_adapter_directory(m, adapter, path, err);
    rc = rc < 0 ? rc : write_lineage(NULL, &m->config, err);
    dt_model_free(m);
    free(base);
    return rc;
}

static int export(struct dt_device *dev, struct dt_error *err)
{
    struct dt_model *m = NULL;
    struct included tokenizer = {.path = NULL};
    int rc = load_all(&m, dev, err);
    rc = rc < 0 ? rc : find_tokenizer(&tokenizer, m, err);
    if (rc == 0)
        rc = write_model(m, &tokenizer, err);
    if (rc == 0 && opt.verify && (rc = verify(m, err)) < 0)
        remove_output();
    if (rc == 0)
        rc = write_lineage(tokenizer.path, &m->config, err);
    release_tokenizer(&tokenizer);
    dt_model_free(m);
    return rc;
}

/* Refuses options that the format does not take. */
static void check_options(void)
{
    if (!(format->types >> opt.type & 1))
        dt_program_usage("--to %s does not hold %s: choose --type %s", format->name,
                         dt_export_type_names[opt.type], dt_export_format_types(format));
    if (opt.adapter && opt.models.count > 1)
        dt_program_usage("--adapter is of one --model");
    if (opt.unmerged && (opt.models.count > 1 || opt.tokenizer || opt.verify || opt.max_shard > 0 ||
                         opt.type != DT_EXPORT_TYPE_F32))
        dt_program_usage("--unmerged takes one --model, and excludes --tokenizer, --type, "
                         "--max-shard and --verify");
    if (format->suffix == NULL && strcmp(opt.output, "-") == 0)
        dt_program_usage("a directory cannot be written to stdout: name it with -o");
    if (!format->shards && opt.max_shard > 0)
        dt_program_usage("--to %s writes one file: leave out --max-shard", format->name);
    if (format->suffix && dt_output_is_terminal(opt.output))
        dt_program_usage("a model is not for a terminal: redirect it, or name a file with -o");
    if (opt.verify && format->suffix && dt_export_format_of_path(opt.output) != format)
        dt_program_usage("--verify needs an --output that ends in %s", format->suffix);
}

int main(int argc, char **argv)
{
    struct dt_error err;
    struct dt_device *dev;
    make_help();
    dt_options_set_fetch(dt_hub_fetch);
    int first = dt_options_parse(&command, argc, argv);
    if (first != argc)
        dt_program_usage("no operand is taken: '%s'", argv[first]);
    format = dt_export_format_list[opt.format];
    check_options();
    if (dt_device_open(&dev, "cpu", 0, &err) < 0)
        return dt_program_report(&err);
    int rc = opt.unmerged ? export_adapter(dev, &err) : export(dev, &err);
    dt_device_close(dev);
    return rc < 0 ? dt_program_report(&err) : 0;
}
