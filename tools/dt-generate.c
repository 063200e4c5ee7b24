/* SPDX-License-Identifier: MIT */
/* dt-generate: continues a prompt with a model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/program.h"
#include "base/rng.h"
#include "model/decode.h"
#include "model/directory.h"
#include "model/sample.h"
#include "token/tokenizer.h"

static struct {
    const char *model, *tokenizer, *prompt, *device, *output;
    long tokens, seed, samples, threads;
    struct dt_sampling sampling;
    bool no_eot;
} opt = {.prompt = "",
         .device = "cpu",
         .output = "-",
         .tokens = 256,
         .seed = 1,
         .samples = 1,
         .sampling = {.temperature = 1, .top_p = 1}};

static const struct dt_option options[] = {
    {"model", 'm', DT_OPT_STRING, &opt.model, "DIR", "use the model in DIR", .required = true},
    {"tokenizer", 't', DT_OPT_STRING, &opt.tokenizer, "FILE",
     "use this tokenizer (default: the one in the model's directory)"},
    {"prompt", 'p', DT_OPT_STRING, &opt.prompt, "TEXT",
     "continue TEXT (default: begin a document)"},
    {"tokens", 'n', DT_OPT_INT, &opt.tokens, "N", "add at most N tokens (default 256)", .min = 1,
     .max = 1e9},
    {"samples", 's', DT_OPT_INT, &opt.samples, "N", "continue it N times, each its own way",
     .min = 1, .max = 1e9},
    {"temperature", 0, DT_OPT_REAL, &opt.sampling.temperature, "X",
     "divide the logits by X (default 1); 0 takes the most probable token", .min = 0, .max = 1000},
    {"top-k", 0, DT_OPT_INT, &opt.sampling.top_k, "N", "choose among the N most probable tokens",
     .min = 1, .max = 1e9},
    {"top-p", 0, DT_OPT_REAL, &opt.sampling.top_p, "X",
     "choose among the most probable tokens that reach probability X together", .min = 1e-9,
     .max = 1},
    {"seed", 0, DT_OPT_INT, &opt.seed, "N", "seed of the random choices (default 1)", .min = 0,
     .max = 1e15},
    {"no-eot", 0, DT_OPT_FLAG, &opt.no_eot, NULL,
     "do not put the end-of-text token before the prompt"},
    {"output", 'o', DT_OPT_STRING, &opt.output, "FILE", "write to FILE"},
    {"device", 0, DT_OPT_STRING, &opt.device, "NAME", "cpu (the default), cpu-avx512, ..."},
    {"threads", 'j', DT_OPT_INT, &opt.threads, "N", "use N threads (default: all processors)",
     .min = 1, .max = 4096},
    {NULL},
};

static const struct dt_command command = {"dt-generate", "continue a prompt with a model", "",
                                          options};

struct generation {
    struct dt_model *model;
    struct dt_tokenizer *tokenizer;
    struct dt_decoder *decoder;
    struct dt_sampler *sampler;
    struct dt_ids ids; /* the sequence so far: prompt and what was added */
    size_t prompt_size;
    float *logits;
    struct dt_output out;
};

static int load(struct generation *g, struct dt_device *dev, struct dt_error *err)
{
    const char *tokenizer = opt.tokenizer ? opt.tokenizer : opt.model;
    DT_TRY(dt_model_load(&g->model, dev, opt.model, err));
    DT_TRY(dt_tokenizer_load(&g->tokenizer, tokenizer, err));
    uint32_t size = dt_tokenizer_size(g->tokenizer);
    if (size > (uint32_t)g->model->config.vocab_size)
        return dt_fail(err, DT_EINVALID, "%s: has %u tokens, the model only %ld", tokenizer, size,
                       g->model->config.vocab_size);
    DT_TRY(dt_decoder_new(&g->decoder, g->model, 1, g->model->config.max_seq_len, err));
    g->sampler =
        dt_sampler_new(&opt.sampling, size); /* rows that pad the vocabulary are no tokens */
    g->logits = dt_alloc((size_t)g->model->config.vocab_size, sizeof *g->logits);
    return dt_output_open(&g->out, opt.output, err);
}

static int encode_prompt(struct generation *g, struct dt_error *err)
{
    struct dt_encoder *encoder = dt_encoder_new(g->tokenizer);
    uint32_t eot = dt_tokenizer_eot(g->tokenizer);
    if (!opt.no_eot && eot != DT_NO_TOKEN)
        dt_ids_add(&g->ids, eot);
    dt_encode(encoder, opt.prompt, strlen(opt.prompt), &g->ids);
    dt_encoder_free(encoder);
    g->prompt_size = g->ids.count;
    if (g->ids.count == 0)
        return dt_fail(err, DT_EINVALID, "there is nothing to continue: give a prompt");
    return 0;
}

/* Feeds the decoder what it has not seen. When the context is full, its newer
 * half becomes the beginning of a fresh one. */
static void look_ahead(struct generation *g)
{
    size_t capacity = (size_t)g->model->config.max_seq_len;
    size_t from = g->ids.count - 1; /* usually one new token */
    if (dt_decoder_length(g->decoder, 0) == 0 ||
        dt_decoder_length(g->decoder, 0) == (int64_t)capacity) {
        size_t keep = g->ids.count <= capacity ? g->ids.count : (capacity + 1) / 2;
        from = g->ids.count - keep;
        dt_decoder_reset(g->decoder, 0);
    }
    dt_decoder_feed(g->decoder, 0, g->ids.data + from, (int64_t)(g->ids.count - from), g->logits);
}

static int write_token(struct generation *g, uint32_t id, struct dt_error *err)
{
    size_t size;
    const char *bytes = dt_tokenizer_bytes(g->tokenizer, id, &size);
    DT_TRY(dt_output_write(&g->out, bytes, size, err));
    return strcmp(opt.output, "-") == 0 ? dt_output_flush(&g->out, err) : 0;
}

static int generate_one(struct generation *g, long sample, struct dt_error *err)
{
    uint64_t key = dt_random_key((uint64_t)opt.seed, 'G', (uint64_t)sample);
    uint32_t eot = dt_tokenizer_eot(g->tokenizer);
    g->ids.count = g->prompt_size;
    dt_decoder_reset(g->decoder, 0);
    DT_TRY(dt_output_write(&g->out, opt.prompt, strlen(opt.prompt), err));
    for (long i = 0; i < opt.tokens; i++) {
        look_ahead(g);
        struct dt_random bits = dt_random(key, 0, (uint64_t)i);
        double uniform = dt_uniform_double(((uint64_t)bits.word[0] << 32) | bits.word[1]);
        uint32_t id = dt_sampler_choose(g->sampler, g->logits, uniform);
        if (id == eot)
            break;
        dt_ids_add(&g->ids, id);
        DT_TRY(write_token(g, id, err));
    }
    return dt_output_write(&g->out, "\n", 1, err);
}

static int generate(struct dt_device *dev, struct dt_error *err)
{
    struct generation g = {0};
    int rc = load(&g, dev, err);
    rc = rc < 0 ? rc : encode_prompt(&g, err);
    for (long sample = 0; rc == 0 && sample < opt.samples; sample++) {
        if (sample > 0)
            rc = dt_output_write(&g.out, "\n", 1, err);
        rc = rc < 0 ? rc : generate_one(&g, sample, err);
    }
    rc = rc < 0 ? rc : dt_output_commit(&g.out, err);
    dt_output_abandon(&g.out);
    free(g.logits);
    dt_sampler_free(g.sampler);
    dt_decoder_free(g.decoder);
    dt_tokenizer_free(g.tokenizer);
    dt_ids_release(&g.ids);
    dt_model_free(g.model);
    return rc;
}

int main(int argc, char **argv)
{
    struct dt_error err;
    struct dt_device *dev;
    int first = dt_parse_options(&command, argc, argv);
    if (first != argc)
        dt_usage("no operand is taken: '%s'", argv[first]);
    if (dt_device_open(&dev, opt.device, (int)opt.threads, &err) < 0)
        return dt_report(&err);
    int rc = generate(dev, &err);
    dt_device_close(dev);
    return rc < 0 ? dt_report(&err) : 0;
}
