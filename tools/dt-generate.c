/* SPDX-License-Identifier: MIT */
/* dt-generate: continues a prompt with a model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/program.h"
#include "chat/chat.h"
#include "comm/launch.h"
#include "eval/generation.h"
#include "formats/model-directory.h"
#include "hub/hub.h"
#include "io/input.h"
#include "math/rng.h"
#include "options/options.h"
#include "settings/choices.h"
#include "token/tokenizer.h"
#include "tokenizer-files/tokenizer-files.h"
#include "unicode/utf8.h"
#include "json/json-number.h"
#include "json/json.h"

enum { FP32, BF16 };
static const char *const precisions[] = {"fp32", "bf16", NULL};

static struct {
    const char *model, *adapter, *tokenizer, *prompt, *prompts, *system, *template, *device,
        *output;
    int precision;
    int arithmetic; /* enum dt_arithmetic */
    struct dt_string_list stops;
    long seed, samples, threads;
    struct dt_generation how;
    bool no_eot, chat;
} opt = {.prompt = "",
         .device = "cpu",
         .output = "-",
         .seed = 1,
         .samples = 1,
         .how = {.sampling = {.temperature = 1, .top_p = 1},
                 .repetition_penalty = 1,
                 .tokens = 256,
                 .slots = 16,
                 .beams = 1,
                 .length_penalty = 1}};

static const struct dt_option options[] = {
    {"model", 'm', DT_OPTION_STRING, &opt.model, "DIR", "use the model in DIR", .required = true,
     .reads = true},
    {"adapter", 0, DT_OPTION_STRING, &opt.adapter, "DIR", "with the low-rank adapter in DIR",
     .reads = true},
    {"tokenizer", 't', DT_OPTION_STRING, &opt.tokenizer, "FILE",
     "use this tokenizer (default: the one in the model's directory)", .reads = true},
    {"prompt", 'p', DT_OPTION_STRING, &opt.prompt, "TEXT",
     "continue TEXT (default: start a document)", .without = "prompts"},
    {"prompts", 0, DT_OPTION_STRING, &opt.prompts, "FILE",
     "continue the prompts in FILE (JSON Lines), and write JSON Lines", .reads = true},
    {"chat", 0, DT_OPTION_FLAG, &opt.chat, NULL,
     "answer conversations: of --prompts, of --prompt, or line by line", .without = "no-eot"},
    {"system", 0, DT_OPTION_STRING, &opt.system, "TEXT", "with --chat, begin with a system message",
     .with = "chat"},
    {"template", 0, DT_OPTION_STRING, &opt.template, "FILE",
     "with --chat, the chat template in FILE instead of the model's", .with = "chat",
     .reads = true},
    {"batch", 0, DT_OPTION_INT, &opt.how.slots, "N", "continue N prompts in a batch (default 16)",
     .min = 1, .max = 4096, .with = "prompts"},
    {"tokens", 'n', DT_OPTION_INT, &opt.how.tokens, "N", "generate at most N tokens (default 256)",
     .min = 1, .max = 1e9},
    {"samples", 's', DT_OPTION_INT, &opt.samples, "N",
     "generate N samples of each prompt (default 1)", .min = 1, .max = 1e9},
    {"temperature", 0, DT_OPTION_REAL, &opt.how.sampling.temperature, "X",
     "sampling temperature X (default 1); 0: greedy", .min = 0, .max = 1000},
    {"top-k", 0, DT_OPTION_INT, &opt.how.sampling.top_k, "N",
     "sample from the N most probable tokens", .min = 1, .max = 1e9},
    {"top-p", 0, DT_OPTION_REAL, &opt.how.sampling.top_p, "X",
     "nucleus sampling: from the most probable tokens of total probability X", .min = 1e-9,
     .max = 1},
    {"min-p", 0, DT_OPTION_REAL, &opt.how.sampling.min_p, "X",
     "sample from tokens at least X times as probable as the most probable one", .min = 0,
     .max = 1},
    {"repetition-penalty", 0, DT_OPTION_REAL, &opt.how.repetition_penalty, "X",
     "penalize tokens of the text so far by X (default 1: no penalty)", .min = 0.01, .max = 100},
    {"beams", 0, DT_OPTION_INT, &opt.how.beams, "N", "beam search with N beams instead of sampling",
     .min = 1, .max = 1024},
    {"length-penalty", 0, DT_OPTION_REAL, &opt.how.length_penalty, "X",
     "score a beam by log-probability / length^X (default 1)", .min = -100, .max = 100,
     .with = "beams"},
    {"stop", 0, DT_OPTION_LIST, &opt.stops, "TEXT", "end before TEXT"},
    {"seed", 0, DT_OPTION_INT, &opt.seed, "N", "seed of sampling (default 1)", .min = 0,
     .max = 1e15},
    {"no-eot", 0, DT_OPTION_FLAG, &opt.no_eot, NULL,
     "do not put the end-of-text token before the prompt"},
    {"output", 'o', DT_OPTION_STRING, &opt.output, "FILE", "write to FILE", .writes = ""},
    {"precision", 0, DT_OPTION_CHOICE, &opt.precision, "TYPE",
     "compute in fp32 (the default), or in bf16: faster, and less exact", .choices = precisions},
    {"arithmetic", 0, DT_OPTION_CHOICE, &opt.arithmetic, "KIND",
     "how to compute: fast (the default), or canonical: the same bits on every machine",
     .choices = dt_arithmetic_names, .with = "precision"},
    {"device", 0, DT_OPTION_STRING, &opt.device, "NAME", "cpu (the default), cpu-avx512, ...",
     .words = dt_device_add_names},
    {"threads", 'j', DT_OPTION_INT, &opt.threads, "N", "use N threads (default: all processors)",
     .min = 1, .max = 4096},
    {NULL},
};

static const struct dt_command command = {"dt-generate", "continue a prompt with a model", "",
                                          options};

struct generation {
    struct dt_model *model;
    struct dt_tokenizer *tokenizer;
    struct dt_encoder *encoder;
    struct dt_text_frame frame;
    struct dt_chat *chat; /* NULL: prompts are text */
    struct dt_generator *generator;
    struct dt_output out;
};

/* An answer ends where the template ends it, too. */
static int open_chat(struct generation *g, const char *tokenizer, struct dt_error *err)
{
    DT_TRY(dt_chat_open(&g->chat, tokenizer, opt.template, g->tokenizer, err));
    dt_encoder_allow_special(g->encoder, true);
    g->frame.frame.before_count = 0; /* the template writes it */
    dt_text_frame_add_end(&g->frame, dt_chat_end(g->chat, g->tokenizer));
    return 0;
}

static int load(struct generation *g, struct dt_device *dev, struct dt_error *err)
{
    const char *tokenizer = opt.tokenizer ? opt.tokenizer : opt.model;
    DT_TRY(dt_model_load_as(&g->model, dev, opt.precision == BF16 ? DT_DTYPE_BF16 : DT_DTYPE_F32,
                            opt.model, err));
    if (opt.adapter)
        DT_TRY(dt_model_merge_adapter(g->model, opt.adapter, err));
    DT_TRY(dt_tokenizer_load(&g->tokenizer, tokenizer, err));
    uint32_t size = dt_tokenizer_size(g->tokenizer);
    if (size > (uint32_t)g->model->config.vocab_size)
        return dt_fail(err, DT_EINVALID, "%s: has %u tokens, the model only %ld", tokenizer, size,
                       g->model->config.vocab_size);
    g->encoder = dt_encoder_new(g->tokenizer);
    DT_TRY(dt_text_frame_read(&g->frame, g->tokenizer, opt.model, err));
    if (opt.chat)
        DT_TRY(open_chat(g, tokenizer, err));
    opt.how.frame = &g->frame;
    opt.how.stops = opt.stops.items;
    opt.how.stop_count = opt.stops.count;
    if (opt.prompts == NULL)
        opt.how.slots = 1;
    dt_model_arrange_for_decoding(g->model);
    DT_TRY(dt_generator_new(&g->generator, g->model, g->tokenizer, &opt.how, err));
    return dt_output_open(&g->out, opt.output, err);
}

/* number: index of the prompt, from 0; sample: index of the sample. */
static int begin(struct generation *g, struct dt_continuation *item, const char *prompt,
                 size_t size, const char *place, uint64_t number, uint64_t sample,
                 struct dt_error *err)
{
    uint64_t seed = number ? dt_random_key((uint64_t)opt.seed, 'P', number) : (uint64_t)opt.seed;
    *item = (struct dt_continuation){.place = place, .key = dt_random_key(seed, 'G', sample)};
    if (!opt.no_eot && g->frame.frame.before_count > 0)
        dt_ids_append(&item->ids, g->frame.frame.before, g->frame.frame.before_count);
    dt_encoder_encode(g->encoder, prompt, size, &item->ids);
    if (item->ids.count == 0)
        return dt_fail(err, DT_EINVALID,
                       opt.chat ? "the chat template wrote nothing"
                                : "without an end-of-text token a prompt is needed: give --prompt");
    return 0;
}

/* --- one prompt, as text ----------------------------------------------------------------------*/

static int write_now(void *context, const char *text, size_t size, struct dt_error *err)
{
    struct dt_output *out = context;
    DT_TRY(dt_output_write(out, text, size, err));
    return strcmp(opt.output, "-") == 0 ? dt_output_flush(out, err) : 0;
}

static int continue_prompt(struct generation *g, long sample, struct dt_error *err)
{
    struct dt_continuation item;
    if (sample > 0)
        DT_TRY(dt_output_write(&g->out, "\n", 1, err));
    int rc =
        begin(g, &item, opt.prompt, strlen(opt.prompt), "the prompt", 0, (uint64_t)sample, err);
    rc = rc < 0 ? rc : dt_output_write(&g->out, opt.prompt, strlen(opt.prompt), err);
    rc = rc < 0 ? rc : dt_generation_run(g->generator, &item, 1, write_now, &g->out, err);
    rc = rc < 0 ? rc : dt_output_write(&g->out, "\n", 1, err);
    dt_continuation_release(&item);
    return rc;
}

/* --- many prompts, as JSON Lines --------------------------------------------------------------*/

#define READ_AHEAD 256 /* prompts per write of results */

struct job {
    struct json_object *line;      /* owned */
    char *place;                   /* FILE:LINE, owned */
    struct dt_continuation *items; /* [samples] */
};

static int read_prompt(const struct job *job, struct dt_buffer *prompt, struct dt_error *err)
{
    struct json_object *value;
    const char *name = json_object_object_get(job->line, "prompt") ? "prompt" : "context";
    if (!json_object_is_type(job->line, json_type_object) ||
        !json_object_object_get(job->line, name))
        return dt_fail(err, DT_EFORMAT, "%s: lacks the member \"prompt\"", job->place);
    DT_TRY(dt_json_get(job->line, name, json_type_string, job->place, &value, err));
    dt_buffer_append(prompt, dt_json_text(value), (size_t)json_object_get_string_len(value));
    return 0;
}

static int read_conversation(struct generation *g, const struct job *job,
                             const struct dt_buffer *line, struct dt_buffer *prompt,
                             struct dt_error *err)
{
    struct dt_conversation c;
    int rc = dt_conversation_parse(&c, line->data, line->size, job->place, err);
    rc = rc == 0 ? dt_chat_prompt(g->chat, &c, prompt, err) : rc;
    dt_conversation_release(&c);
    return rc;
}

static int read_job(struct generation *g, struct job *job, const struct dt_buffer *text,
                    uint64_t number, struct dt_error *err)
{
    struct dt_buffer prompt = DT_BUFFER_EMPTY;
    DT_TRY(dt_json_parse(text->data, text->size, job->place, &job->line, err));
    int rc =
        g->chat ? read_conversation(g, job, text, &prompt, err) : read_prompt(job, &prompt, err);
    job->items = dt_alloc((size_t)opt.samples, sizeof *job->items);
    for (long i = 0; rc == 0 && i < opt.samples; i++) {
        rc = begin(g, &job->items[i], prompt.data, prompt.size, job->place, number, (uint64_t)i,
                   err);
        rc = rc < 0 ? dt_fail_context(err, "%s", job->place) : 0;
    }
    dt_buffer_release(&prompt);
    return rc;
}

static void release_job(struct job *job)
{
    for (long i = 0; job->items && i < opt.samples; i++)
        dt_continuation_release(&job->items[i]);
    free(job->items);
    json_object_put(job->line);
    free(job->place);
    *job = (struct job){0};
}

/* Writes the input line with the result's members added. */
static int write_item(struct generation *g, struct job *job, const struct dt_continuation *item,
                      long sample, struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY, valid = DT_BUFFER_EMPTY;
    static const char *const added[] = {"text", "sample", "tokens", "finish", "log_probability"};
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        json_object_object_del(job->line, added[i]);
    dt_json_add_value(&text, job->line, DT_JSON_COMPACT);
    text.size--; /* without the closing brace */
    dt_buffer_add_string(&text, ",\"text\":");
    dt_json_add_string(&text, item->text.data ? item->text.data : "", item->text.size);
    if (opt.samples > 1)
        dt_buffer_printf(&text, ",\"sample\":%ld", sample);
    dt_buffer_printf(&text, ",\"tokens\":%zu,\"finish\":\"%s\"", item->added,
                     dt_generation_finish_names[item->finish]);
    if (opt.how.beams > 1)
        dt_json_add_real(&text, "log_probability", item->log_probability, 9);
    dt_buffer_add_string(&text, "}\n");
    dt_utf8_repair(text.data, text.size, &valid); /* text may end inside a UTF-8 sequence */
    int rc = dt_output_write(&g->out, valid.data, valid.size, err);
    dt_buffer_release(&text);
    dt_buffer_release(&valid);
    return rc;
}

/* Generates all samples of all jobs; writes the results in the order of the prompts. */
static int run_jobs(struct generation *g, struct job *jobs, size_t count, struct dt_error *err)
{
    size_t samples = (size_t)opt.samples;
    struct dt_continuation *all = dt_alloc(count * samples + 1, sizeof *all);
    for (size_t i = 0; i < count; i++)
        memcpy(all + i * samples, jobs[i].items, samples * sizeof *all);
    int rc = dt_generation_run(g->generator, all, count * samples, NULL, NULL, err);
    for (size_t i = 0; i < count; i++)
        memcpy(jobs[i].items, all + i * samples, samples * sizeof *all);
    free(all);
    for (size_t i = 0; i < count; i++)
        for (size_t s = 0; rc == 0 && s < samples; s++)
            rc = write_item(g, &jobs[i], &jobs[i].items[s], (long)s, err);
    return rc < 0 ? rc : dt_output_flush(&g->out, err);
}

static bool is_blank(const struct dt_buffer *line)
{
    return line->size == 0 || strspn(line->data, " \t\r\n") == line->size;
}

/* Lines and prompts read so far. */
struct progress {
    uint64_t lines, prompts;
};

/* Reads up to READ_AHEAD jobs; *count is 0 at the end. Blank lines are skipped. */
static int read_jobs(struct generation *g, struct dt_input *in, struct job *jobs, size_t *count,
                     struct progress *read, struct dt_error *err)
{
    struct dt_buffer line = DT_BUFFER_EMPTY;
    bool found = true;
    int rc = 0;
    *count = 0;
    while (rc == 0 && *count < READ_AHEAD) {
        rc = dt_input_read_until(in, '\n', &line, &found, err);
        if (rc < 0 || (!found && line.size == 0))
            break;
        read->lines++;
        if (is_blank(&line))
            continue;
        struct job *job = &jobs[(*count)++];
        job->place = dt_asprintf("%s:%llu", dt_input_name(in), (unsigned long long)read->lines);
        rc = read_job(g, job, &line, read->prompts++, err);
    }
    dt_buffer_release(&line);
    return rc;
}

static int continue_file(struct generation *g, struct dt_error *err)
{
    struct dt_input *in;
    struct job *jobs = dt_alloc(READ_AHEAD, sizeof *jobs);
    struct progress done = {0, 0};
    size_t count = 1;
    int rc = dt_input_open(&in, opt.prompts, err);
    while (rc == 0 && count > 0) {
        rc = read_jobs(g, in, jobs, &count, &done, err);
        rc = rc < 0 || count == 0 ? rc : run_jobs(g, jobs, count, err);
        for (size_t i = 0; i < count; i++)
            release_job(&jobs[i]);
    }
    if (rc == 0 && done.prompts == 0)
        rc = dt_fail(err, DT_EFORMAT, "%s: contains no prompt", dt_input_name(in));
    dt_input_close(in);
    free(jobs);
    return rc;
}

/* --- a conversation in a terminal -------------------------------------------------------------*/

static void add_message(struct json_object *messages, const char *role, const char *text,
                        size_t size)
{
    struct json_object *message = dt_json_new_object();
    dt_json_object_add(message, "role", dt_json_new_string(role));
    dt_json_object_add(message, "content", dt_json_new_string_len(text, size));
    dt_json_array_add(messages, message);
}

/* Writes the answer to the messages, and adds it to them. */
static int answer(struct generation *g, struct json_object *record, uint64_t sample,
                  struct dt_error *err)
{
    struct dt_buffer line = DT_BUFFER_EMPTY, prompt = DT_BUFFER_EMPTY;
    struct dt_continuation item = {0};
    struct dt_conversation c;
    struct json_object *messages = json_object_object_get(record, "messages");
    dt_json_add_value(&line, record, DT_JSON_COMPACT);
    int rc = dt_conversation_parse(&c, line.data, line.size, "the conversation", err);
    rc = rc == 0 ? dt_chat_prompt(g->chat, &c, &prompt, err) : rc;
    rc = rc == 0 ? begin(g, &item, prompt.data, prompt.size, "the conversation", 0, sample, err)
                 : rc;
    rc = rc == 0 ? dt_generation_run(g->generator, &item, 1, write_now, &g->out, err) : rc;
    rc = rc == 0 ? dt_output_write(&g->out, "\n", 1, err) : rc;
    rc = rc == 0 ? dt_output_flush(&g->out, err) : rc;
    if (rc == 0)
        add_message(messages, "assistant", item.text.data ? item.text.data : "", item.text.size);
    dt_continuation_release(&item);
    dt_conversation_release(&c);
    dt_buffer_release(&line);
    dt_buffer_release(&prompt);
    return rc;
}

static struct json_object *new_conversation(void)
{
    struct json_object *record = dt_json_new_object(), *messages = dt_json_new_array();
    dt_json_object_add(record, "messages", messages);
    if (opt.system)
        add_message(messages, "system", opt.system, strlen(opt.system));
    return record;
}

/* One question, or with samples the same one again. */
static int answer_prompt(struct generation *g, struct dt_error *err)
{
    int rc = 0;
    for (long sample = 0; rc == 0 && sample < opt.samples; sample++) {
        struct json_object *record = new_conversation();
        add_message(json_object_object_get(record, "messages"), "user", opt.prompt,
                    strlen(opt.prompt));
        rc = answer(g, record, (uint64_t)sample, err);
        json_object_put(record);
    }
    return rc;
}

/* A line of the standard input is a message; the conversation goes on until it ends. */
static int converse(struct generation *g, struct dt_error *err)
{
    struct dt_input *in;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    struct json_object *record = new_conversation();
    bool found = true, asks = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
    int rc = dt_input_open(&in, "-", err);
    for (uint64_t turn = 0; rc == 0 && found; turn++) {
        if (asks)
            fputs("> ", stderr);
        rc = dt_input_read_until(in, '\n', &line, &found, err);
        if (rc < 0 || is_blank(&line))
            continue;
        add_message(json_object_object_get(record, "messages"), "user", line.data, line.size);
        rc = answer(g, record, turn, err);
    }
    dt_buffer_release(&line);
    json_object_put(record);
    dt_input_close(in);
    return rc;
}

static int chat(struct generation *g, struct dt_error *err)
{
    return dt_option_is_given(&command, "prompt") ? answer_prompt(g, err) : converse(g, err);
}

static int generate(struct dt_device *dev, struct dt_error *err)
{
    struct generation g = {0};
    int rc = load(&g, dev, err);
    if (rc == 0 && opt.prompts)
        rc = continue_file(&g, err);
    else if (rc == 0 && opt.chat)
        rc = chat(&g, err);
    for (long sample = 0; rc == 0 && !opt.prompts && !opt.chat && sample < opt.samples; sample++)
        rc = continue_prompt(&g, sample, err);
    rc = rc < 0 ? rc : dt_output_commit(&g.out, err);
    dt_output_abandon(&g.out);
    dt_generator_free(g.generator);
    dt_chat_free(g.chat);
    dt_text_frame_release(&g.frame);
    dt_encoder_free(g.encoder);
    dt_tokenizer_free(g.tokenizer);
    dt_model_free(g.model);
    return rc;
}

/* Refuses the options of random sampling where the next token is not sampled. */
static void check_sampling(const char *reason)
{
    static const char *const sampling[] = {"temperature", "top-k", "top-p", "min-p", "seed"};
    for (size_t i = opt.how.beams == 1; i < sizeof sampling / sizeof *sampling; i++)
        if (dt_option_is_given(&command, sampling[i]))
            dt_program_usage("--%s has no effect with %s", sampling[i], reason);
}

static void check_options(void)
{
    if (opt.how.beams > 1 && opt.samples > 1)
        dt_program_usage("--samples has no effect with --beams: a beam search is deterministic");
    if (opt.how.beams > 1)
        check_sampling("--beams above 1: a beam search does not sample");
    else if (opt.how.sampling.temperature == 0)
        check_sampling("--temperature 0, which takes the most probable token");
    if (opt.how.beams == 1 && dt_option_is_given(&command, "length-penalty"))
        dt_program_usage("--length-penalty has no effect with --beams 1");
    if (opt.chat && opt.samples > 1 && !opt.prompts && !dt_option_is_given(&command, "prompt"))
        dt_program_usage("--samples needs --prompt or --prompts: a conversation has one answer");
    if (opt.system && opt.prompts)
        dt_program_usage("--system has no effect with --prompts: give a message of that role");
    for (int i = 0; i < opt.stops.count; i++)
        if (*opt.stops.items[i] == 0)
            dt_program_usage("--stop must not be empty");
}

int main(int argc, char **argv)
{
    struct dt_error err;
    struct dt_device *dev;
    dt_options_set_fetch(dt_hub_fetch);
    int first = dt_options_parse(&command, argc, argv);
    if (first != argc)
        dt_program_usage("dt-generate takes no operand: '%s'", argv[first]);
    check_options();
    if (dt_launch_check_alone(DT_LAUNCH_ONCE, &err) < 0 ||
        dt_device_open(&dev, opt.device, (int)opt.threads, &err) < 0)
        return dt_program_report(&err);
    if (opt.arithmetic == DT_ARITHMETIC_CANONICAL)
        dt_device_set_canonical(dev);
    int rc = generate(dev, &err);
    dt_device_close(dev);
    return rc < 0 ? dt_program_report(&err) : 0;
}
