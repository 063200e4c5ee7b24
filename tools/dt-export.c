/* SPDX-License-Identifier: MIT */
/* dt-export: models for other programs, and from them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "base/program.h"
#include "formats/gguf.h"
#include "formats/safetensors-export.h"
#include "token/tokenizer.h"
#include "unicode/utf8.h"

enum { TO_HF, TO_GGUF };
enum { F32, F16, BF16, Q8_0 };
static const char *const forms[] = {"hf", "gguf", NULL};
static const char *const types[] = {"f32", "f16", "bf16", "q8_0", NULL};

static struct {
    struct dt_string_list models;
    const char *tokenizer, *output;
    long most;
    int form, type;
    bool verify;
} opt;

static const struct dt_option options[] = {
    {"model", 'm', DT_OPTION_LIST, &opt.models, "MODEL",
     "take the model in this directory or GGUF file; of several, the mean", .required = true,
     .reads = true},
    {"tokenizer", 't', DT_OPTION_STRING, &opt.tokenizer, "FILE",
     "tokenizer.json that goes along (default: the one in the first model's directory)",
     .reads = true},
    {"to", 0, DT_OPTION_CHOICE, &opt.form, "FORM", "hf, a directory (the default), or gguf, a file",
     .choices = forms},
    {"type", 0, DT_OPTION_CHOICE, &opt.type, "TYPE",
     "f32 (the default), f16, bf16; of GGUF also q8_0", .choices = types},
    {"max-shard", 0, DT_OPTION_INT, &opt.most, "BYTES", "cut weights into files of at most BYTES",
     .min = 1, .max = 1e15},
    {"verify", 0, DT_OPTION_FLAG, &opt.verify, NULL, "read it back, and compare logits"},
    {"output", 'o', DT_OPTION_STRING, &opt.output, "PATH", "write to PATH", .required = true,
     .writes = ""},
    {NULL},
};

static const struct dt_command command = {"dt-export", "write a model for other programs", "",
                                          options};

/* Differences of logits that rounding explains, as a part of the largest logit. */
static const double tolerances[] = {[F32] = 1e-4, [F16] = 1e-2, [BF16] = 8e-2, [Q8_0] = 8e-2};

static bool is_gguf(const char *path)
{
    size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".gguf") == 0;
}

static int load(struct dt_model **model, struct dt_device *dev, const char *path,
                struct dt_error *err)
{
    return is_gguf(path) ? dt_gguf_read(model, dev, path, err)
                         : dt_model_load(model, dev, path, err);
}

/* The mean of all models: of n, the n-th moves it by 1/n. */
static int load_all(struct dt_model **mean, struct dt_device *dev, struct dt_error *err)
{
    DT_TRY(load(mean, dev, opt.models.items[0], err));
    int rc = 0;
    for (int i = 1; rc == 0 && i < opt.models.count; i++) {
        struct dt_model *next;
        float share = 1.0f / (float)(i + 1);
        rc = load(&next, dev, opt.models.items[i], err);
        if (rc == 0)
            rc = dt_model_mix(*mean, 1 - share, next, share, opt.models.items[i], err);
        dt_model_free(next);
    }
    return rc;
}

/* tokenizer.json that goes along, NULL if there is none; owned by the caller. */
static int find_tokenizer(char **path, struct dt_error *err)
{
    *path = opt.tokenizer ? dt_strdup(opt.tokenizer) : NULL;
    if (opt.tokenizer || is_gguf(opt.models.items[0]))
        return 0;
    char *theirs = dt_path_join(opt.models.items[0], DT_TOKENIZER_FILE);
    int there = dt_file_probe(theirs, err);
    *path = there > 0 ? theirs : NULL;
    if (there <= 0)
        free(theirs);
    return there < 0 ? there : 0;
}

static int read_eot(const char *tokenizer, const struct dt_model *m, uint32_t *eot,
                    struct dt_error *err)
{
    struct dt_tokenizer *t;
    *eot = DT_NO_TOKEN;
    if (tokenizer == NULL)
        return 0;
    DT_TRY(dt_file_need_regular(tokenizer, err)); /* it is read again */
    DT_TRY(dt_tokenizer_load(&t, tokenizer, err));
    *eot = dt_tokenizer_eot(t);
    uint32_t size = dt_tokenizer_size(t);
    dt_tokenizer_free(t);
    if (size <= (uint32_t)m->config.vocab_size)
        return 0;
    return dt_fail(err, DT_EINVALID, "%s: has %u tokens, the model only %ld", tokenizer, size,
                   m->config.vocab_size);
}

static int copy(const char *from, const char *to, struct dt_error *err)
{
    char *data;
    size_t size;
    DT_TRY(dt_file_read(from, (size_t)1 << 30, &data, &size, err));
    int rc = dt_file_write(to, data, size, err);
    free(data);
    return rc;
}

/* The tokenizer, and what transformers' AutoTokenizer wants to know besides: as the model's
 * directory has it, if the tokenizer is from there. */
static int write_tokenizer(const char *tokenizer, uint32_t eot, long length, struct dt_error *err)
{
    char *path = dt_path_join(opt.output, DT_TOKENIZER_FILE);
    char *config = dt_path_join(opt.output, DT_TOKENIZER_CONFIG_FILE);
    char *theirs = dt_path_join(opt.models.items[0], DT_TOKENIZER_CONFIG_FILE);
    int rc = copy(tokenizer, path, err);
    int there = rc < 0 ? rc : opt.tokenizer ? 0 : dt_file_probe(theirs, err);
    rc = there < 0   ? there
         : there > 0 ? copy(theirs, config, err)
                     : dt_tokenizer_config_write(opt.output, eot, length, err);
    free(path);
    free(config);
    free(theirs);
    return rc;
}

/* A failure removes what was written. */
static int check_tokenizer(const char *tokenizer, struct dt_error *err)
{
    char *path = dt_path_join(opt.output, DT_TOKENIZER_FILE);
    int rc = tokenizer && dt_output_is_input(path, tokenizer)
                 ? dt_fail(err, DT_EINVALID, "'%s' is an input: name another --output", path)
                 : 0;
    free(path);
    return rc;
}

/* What was written in part, or is not what was meant, must not look like a model: config.json goes
 * first. */
static void remove_directory(void)
{
    static const char *const names[] = {DT_CONFIG_FILE, DT_INDEX_FILE, DT_WEIGHTS_FILE,
                                        DT_TOKENIZER_FILE, DT_TOKENIZER_CONFIG_FILE};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = dt_path_join(opt.output, names[i]);
        remove(path);
        free(path);
    }
    rmdir(opt.output); /* unless something else is in it */
}

static int write_directory(const struct dt_model *m, const char *tokenizer, uint32_t eot,
                           struct dt_error *err)
{
    static const enum dt_dtype dtypes[] = {DT_DTYPE_F32, DT_DTYPE_F16, DT_DTYPE_BF16};
    char *config = dt_path_join(opt.output, DT_CONFIG_FILE);
    int taken = dt_file_probe(config, err);
    free(config);
    DT_TRY(taken);
    if (taken)
        return dt_fail(err, DT_EINVALID, "%s: holds a model already", opt.output);
    DT_TRY(check_tokenizer(tokenizer, err));
    DT_TRY(dt_file_make_directories(opt.output, err));
    int rc = tokenizer ? write_tokenizer(tokenizer, eot, m->config.max_seq_len, err) : 0;
    rc = rc < 0 ? rc
                : dt_model_export(m, dtypes[opt.type], (uint64_t)opt.most, eot, opt.output, err);
    if (rc < 0)
        remove_directory();
    else if (tokenizer == NULL)
        dt_program_warn("%s: has no tokenizer, since %s; --tokenizer FILE adds one", opt.output,
                        is_gguf(opt.models.items[0]) ? "that of a GGUF file is not read"
                                                     : "the model has none");
    return rc;
}

/* What the model at a path is called: as its directory or file is, a checkpoint run/step-00001000.
 * The path is changed. */
static const char *name_of(char *path)
{
    char *slash = strrchr(path, '/');
    const char *name = slash + 1;
    if (is_gguf(name))
        path[strlen(path) - strlen(".gguf")] = '\0';
    if (strncmp(name, "step-", 5) != 0)
        return name;
    *slash = '\0';
    name = dt_path_base(path);
    *slash = '/';
    return name;
}

static int write_gguf(const struct dt_model *m, const char *tokenizer, uint32_t eot,
                      struct dt_error *err)
{
    struct dt_buffer name = DT_BUFFER_EMPTY;
    char *path = realpath(opt.models.items[0], NULL);
    if (path == NULL)
        return dt_fail_errno(err, "cannot find '%s'", opt.models.items[0]);
    const char *raw = name_of(path);
    dt_utf8_repair(raw, strlen(raw), &name);
    int rc = dt_gguf_write(m, name.size ? name.data : "/", (enum dt_gguf_type)opt.type, tokenizer,
                           eot, opt.output, err);
    dt_buffer_release(&name);
    free(path);
    return rc;
}

static int verify(const struct dt_model *m, struct dt_error *err)
{
    struct dt_model *again;
    struct dt_model_difference d;
    DT_TRY(opt.form == TO_GGUF ? dt_gguf_read(&again, m->device, opt.output, err)
                               : dt_model_load(&again, m->device, opt.output, err));
    int rc = dt_model_compare(&d, m, again, err);
    dt_model_free(again);
    if (rc < 0)
        return dt_fail_context(err, "%s", opt.output);
    if (!(d.largest <= tolerances[opt.type] * d.range))
        return dt_fail(err, DT_EFORMAT, "%s: logits differ by %.3g, of at most %.3g", opt.output,
                       d.largest, d.range);
    printf("logits differ by %.3g at most; the largest is %.3g\n", d.largest, d.range);
    return fflush(stdout) == 0 ? 0 : dt_fail_errno(err, "cannot write to stdout");
}

/* What did not pass --verify. */
static void remove_output(void)
{
    struct dt_error ignored;
    char *file = opt.form == TO_GGUF ? realpath(opt.output, NULL) : NULL; /* what a link leads to */
    if (opt.form == TO_HF) {
        dt_model_export_remove_shards(opt.output);
        remove_directory();
    } else if (file && dt_file_need_regular(file, &ignored) == 0)
        remove(file);
    free(file);
}

static int export(struct dt_device *dev, struct dt_error *err)
{
    struct dt_model *m = NULL;
    char *tokenizer;
    uint32_t eot;
    DT_TRY(find_tokenizer(&tokenizer, err));
    int rc = load_all(&m, dev, err);
    rc = rc < 0 ? rc : read_eot(tokenizer, m, &eot, err);
    if (rc == 0)
        rc = opt.form == TO_HF ? write_directory(m, tokenizer, eot, err)
                               : write_gguf(m, tokenizer, eot, err);
    if (rc == 0 && opt.verify && (rc = verify(m, err)) < 0)
        remove_output();
    free(tokenizer);
    dt_model_free(m);
    return rc;
}

int main(int argc, char **argv)
{
    struct dt_error err;
    struct dt_device *dev;
    int first = dt_program_parse_options(&command, argc, argv);
    if (first != argc)
        dt_program_usage("no operand is taken: '%s'", argv[first]);
    if (opt.form == TO_HF && opt.type == Q8_0)
        dt_program_usage("only GGUF has q8_0");
    if (opt.form == TO_HF && strcmp(opt.output, "-") == 0)
        dt_program_usage("a directory cannot be written to stdout: name it with -o");
    if (opt.form == TO_GGUF && opt.most > 0)
        dt_program_usage("a GGUF file is not cut");
    if (opt.form == TO_GGUF && dt_output_is_terminal(opt.output))
        dt_program_usage("a model is not for a terminal: redirect it, or name a file with -o");
    if (opt.form == TO_GGUF && opt.verify && !is_gguf(opt.output))
        dt_program_usage("a GGUF file's name must end in .gguf");
    if (dt_device_open(&dev, "cpu", 0, &err) < 0)
        return dt_program_report(&err);
    int rc = export(dev, &err);
    dt_device_close(dev);
    return rc < 0 ? dt_program_report(&err) : 0;
}
