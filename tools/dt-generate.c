/* SPDX-License-Identifier: MIT */
/* dt-generate: continues a prompt with a model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/program.h"
#include "base/stop.h"
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
    long seed, samples, threads, logprobs, context;
    struct dt_generation how;
    bool no_eot, chat, json, quiet;
} opt = {.prompt = "",
         .device = "cpu",
         .output = "-",
         .seed = 1,
         .samples = 1,
         .logprobs = -1,
         .how = {.sampling = {.temperature = 1, .top_p = 1},
                 .repetition_penalty = 1,
                 .tokens = 256,
                 .slots = 16,
                 .beams = 1,
                 .length_penalty = 1}};

static const struct dt_option options[] = {
    {"model", 'm', DT_OPTION_STRING, &opt.model, "MODEL", "directory or GGUF file of the model",
     .required = true, .reads = true},
    {"adapter", 0, DT_OPTION_STRING, &opt.adapter, "DIR", "with the low-rank adapter in DIR",
     .reads = true},
    {"tokenizer", 't', DT_OPTION_STRING, &opt.tokenizer, "FILE",
     "use this tokenizer (default: the one in the model's directory)", .reads = true},
    {"prompt", 'p', DT_OPTION_STRING, &opt.prompt, "TEXT",
     "continue TEXT (default: start a document)", .without = "prompts"},
    {"prompts", 0, DT_OPTION_STRING, &opt.prompts, "FILE",
     "continue the prompts in FILE (JSON Lines), and write JSON Lines", .reads = true},
    {"json", 0, DT_OPTION_FLAG, &opt.json, NULL, "write JSON Lines, also with --prompt"},
    {"logprobs", 0, DT_OPTION_INT, &opt.logprobs, "N",
     "write log-probabilities of the new tokens, and of the N most probable ones", .min = 0,
     .max = 100},
    {"chat", 0, DT_OPTION_FLAG, &opt.chat, NULL,
     "answer conversations: of --prompts, of --prompt, or line by line", .without = "no-eot"},
    {"system", 0, DT_OPTION_STRING, &opt.system, "TEXT", "with --chat, begin with a system message",
     .with = "chat"},
    {"template", 0, DT_OPTION_STRING, &opt.template, "FILE",
     "with --chat, the chat template in FILE instead of the model's", .with = "chat",
     .reads = true},
    {"batch", 0, DT_OPTION_INT, &opt.how.slots, "N", "continue N prompts in a batch (default 16)",
     .min = 1, .max = 4096, .with = "prompts"},
    {"context", 0, DT_OPTION_INT, &opt.context, "N",
     "use a context of N tokens (default: the model's)", .min = 1, .max = 1 << 24},
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
    {"threads", 'j', DT_OPTION_INT, &opt.threads, "N",
     "use N threads (default: at most all processors, by the time of steps)", .min = 1,
     .max = 4096},
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "with --chat, write no '> ' before messages"},
    {NULL},
};

static const struct dt_command command = {"dt-generate", "continue a prompt with a model", "",
                                          options};

/* Whether messages of a user are read, line by line. */
static bool converses(void)
{
    return opt.chat && !opt.prompts && !dt_option_is_given(&command, "prompt");
}

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
    const struct dt_model_use use = {opt.precision == BF16 ? DT_DTYPE_BF16 : DT_DTYPE_F32,
                                     opt.context};
    DT_TRY(dt_model_load_as(&g->model, dev, use, opt.model, err));
    if (opt.adapter)
        DT_TRY(dt_model_merge_adapter(g->model, opt.adapter, err));
    DT_TRY(dt_tokenizer_load_for_model(&g->tokenizer, opt.tokenizer, opt.model, err));
    uint32_t size = dt_tokenizer_size(g->tokenizer);
    if (size > (uint32_t)g->model->config.vocab_size)
        return dt_fail(err, DT_EINVALID, "%s: has %u tokens, the model only %ld", tokenizer, size,
                       g->model->config.vocab_size);
    if (opt.tokenizer)
        dt_tokenizer_warn_of_other(g->tokenizer, tokenizer, opt.model);
    g->encoder = dt_encoder_new(g->tokenizer);
    DT_TRY(dt_text_frame_read(&g->frame, g->tokenizer, opt.model, err));
    if (opt.chat)
        DT_TRY(open_chat(g, tokenizer, err));
    opt.how.frame = &g->frame;
    opt.how.stops = opt.stops.items;
    opt.how.stop_count = opt.stops.count;
    opt.how.probabilities = (int)(opt.logprobs < (long)size ? opt.logprobs : (long)size) + 1;
    if (opt.prompts == NULL && !opt.json)
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

#define READ_AHEAD 256 /* prompts that are read before the first of them is answered */
#define READ_SIZE  ((size_t)64 << 10)

struct job {
    struct json_object *line;      /* owned */
    char *place;                   /* FILE:LINE, owned */
    struct dt_continuation *items; /* [samples] */
    long begun, ended;             /* samples */
};

/* Prompts that are read as they come, and answered in their order. */
struct stream {
    struct generation *g;
    struct dt_input *in; /* NULL: the bytes of --prompt alone */
    struct dt_buffer bytes;
    size_t at, searched; /* of the next line in bytes; where its end was not found yet */
    bool ended;
    uint64_t lines, prompts;
    struct job jobs[READ_AHEAD]; /* a ring */
    size_t first, count;
    int failed;            /* status of a line that could not be read, or 0 */
    struct dt_error error; /* of that line, told after the answers to those before it */
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

static void add_token(const struct generation *g, const struct dt_token_probability *token,
                      struct dt_buffer *text)
{
    struct dt_buffer bytes = DT_BUFFER_EMPTY;
    dt_tokenizer_add_token_text(g->tokenizer, token->id, &bytes);
    dt_buffer_add_string(text, "{\"token\":");
    dt_json_add_string(text, bytes.data ? bytes.data : "", bytes.size);
    dt_buffer_printf(text, ",\"id\":%u", token->id);
    dt_json_add_real(text, "logprob", token->log_probability, 9);
    dt_buffer_release(&bytes);
}

static void add_logprobs(const struct generation *g, const struct dt_continuation *item,
                         struct dt_buffer *text)
{
    size_t each = (size_t)opt.how.probabilities;
    dt_buffer_add_string(text, ",\"logprobs\":[");
    for (size_t i = 0; i < item->probability_count; i += each) {
        dt_buffer_add_string(text, i > 0 ? "," : "");
        add_token(g, &item->probabilities[i], text);
        dt_buffer_add_string(text, each > 1 ? ",\"top_logprobs\":[" : "");
        for (size_t best = 1; best < each; best++) {
            dt_buffer_add_string(text, best > 1 ? "," : "");
            add_token(g, &item->probabilities[i + best], text);
            dt_buffer_add_char(text, '}');
        }
        dt_buffer_add_string(text, each > 1 ? "]}" : "}");
    }
    dt_buffer_add_char(text, ']');
}

/* Writes the input line with the result's members added. */
static int write_item(struct generation *g, struct job *job, const struct dt_continuation *item,
                      long sample, struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY, valid = DT_BUFFER_EMPTY;
    static const char *const added[] = {"text",   "sample",          "tokens",
                                        "finish", "log_probability", "logprobs"};
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
    if (opt.logprobs >= 0)
        add_logprobs(g, item, &text);
    dt_buffer_add_string(&text, "}\n");
    dt_utf8_repair(text.data, text.size, &valid); /* text may end inside a UTF-8 sequence */
    int rc = dt_output_write(&g->out, valid.data, valid.size, err);
    dt_buffer_release(&text);
    dt_buffer_release(&valid);
    return rc;
}

static bool is_blank(const struct dt_buffer *line)
{
    return line->size == 0 || strspn(line->data, " \t\r\n") == line->size;
}

/* Takes the next line out of the bytes that were read. */
static bool take_line(struct stream *s, struct dt_buffer *line)
{
    size_t left = s->bytes.size - s->at, new = s->bytes.size - s->searched;
    const char *from = s->bytes.data + s->at;
    const char *end = new > 0 ? memchr(s->bytes.data + s->searched, '\n', new) : NULL;
    s->searched = s->bytes.size;
    if (end == NULL && (!s->ended || left == 0))
        return false;
    size_t size = end ? (size_t)(end - from) : left;
    line->size = 0;
    dt_buffer_append(line, from, size);
    s->at += end ? size + 1 : size;
    s->searched = s->at;
    s->lines++;
    return true;
}

static int read_bytes(struct stream *s, struct dt_error *err)
{
    char bytes[READ_SIZE];
    size_t size;
    if (s->bytes.size - s->at > DT_INPUT_LINE)
        return dt_fail(err, DT_EFORMAT, "%s:%llu: is longer than %zu bytes", dt_input_name(s->in),
                       (unsigned long long)s->lines + 1, DT_INPUT_LINE);
    DT_TRY(dt_input_read(s->in, bytes, sizeof bytes, &size, err));
    s->ended = size == 0;
    if (s->at > 0) {
        memmove(s->bytes.data, s->bytes.data + s->at, s->bytes.size - s->at);
        s->bytes.size -= s->at;
        s->searched -= s->at;
        s->at = 0;
    }
    dt_buffer_append(&s->bytes, bytes, size);
    return 0;
}

/* *found: whether there is a line that is not blank; without wait only of what has come. */
static int next_line(struct stream *s, bool wait, struct dt_buffer *line, bool *found,
                     struct dt_error *err)
{
    for (;;) {
        while ((*found = take_line(s, line)))
            if (!is_blank(line))
                return 0;
        if (s->ended || (!wait && !dt_input_is_ready(s->in)))
            return 0;
        DT_TRY(read_bytes(s, err));
    }
}

static int add_job(struct stream *s, const struct dt_buffer *line, struct dt_error *err)
{
    struct job *job = &s->jobs[(s->first + s->count) % READ_AHEAD];
    *job = (struct job){
        .place = s->in ? dt_asprintf("%s:%llu", dt_input_name(s->in), (unsigned long long)s->lines)
                       : dt_asprintf("the prompt")};
    int rc = read_job(s->g, job, line, s->prompts, err);
    if (rc < 0) {
        release_job(job);
        return rc;
    }
    s->prompts++;
    s->count++;
    return 0;
}

/* Reads a prompt, unless as many are waiting as may be. */
static int read_ahead(struct stream *s, bool wait, struct dt_error *err)
{
    struct dt_buffer line = DT_BUFFER_EMPTY;
    bool found = false;
    if (s->failed == 0 && s->count < READ_AHEAD) {
        int rc = next_line(s, wait, &line, &found, &s->error);
        s->failed = rc == 0 && found ? add_job(s, &line, &s->error) : rc;
    }
    dt_buffer_release(&line);
    if (s->failed < 0 && wait)
        *err = s->error;
    return wait ? s->failed : 0;
}

static struct job *newest_job(struct stream *s)
{
    return s->count > 0 ? &s->jobs[(s->first + s->count - 1) % READ_AHEAD] : NULL;
}

static int next_prompt(void *context, bool wait, struct dt_continuation **item,
                       struct dt_error *err)
{
    struct stream *s = context;
    struct job *job = newest_job(s);
    if (job == NULL || job->begun == opt.samples) {
        DT_TRY(read_ahead(s, wait, err));
        job = newest_job(s);
    }
    *item = job && job->begun < opt.samples ? &job->items[job->begun++] : NULL;
    return 0;
}

/* Writes the answers to the first prompts that are complete. */
static int write_answers(void *context, struct dt_continuation *item, struct dt_error *err)
{
    struct stream *s = context;
    for (size_t i = 0; i < s->count; i++) {
        struct job *job = &s->jobs[(s->first + i) % READ_AHEAD];
        job->ended += item >= job->items && item < job->items + opt.samples;
    }
    while (s->count > 0 && s->jobs[s->first].ended == opt.samples) {
        struct job *job = &s->jobs[s->first];
        for (long i = 0; i < opt.samples; i++)
            DT_TRY(write_item(s->g, job, &job->items[i], i, err));
        release_job(job);
        s->first = (s->first + 1) % READ_AHEAD;
        s->count--;
        if (strcmp(opt.output, "-") == 0)
            DT_TRY(dt_output_flush(&s->g->out, err));
    }
    return 0;
}

/* Answers the prompts of a stream, and releases it. */
static int serve(struct stream *s, struct dt_error *err)
{
    const struct dt_generation_feed feed = {
        .context = s, .next = next_prompt, .finish = write_answers};
    int rc = dt_generation_serve(s->g->generator, &feed, err);
    if (rc == 0 && s->prompts == 0)
        rc = dt_fail(err, DT_EFORMAT, "%s: contains no prompt", dt_input_name(s->in));
    for (; s->count > 0; s->count--)
        release_job(newest_job(s));
    dt_input_close(s->in);
    dt_buffer_release(&s->bytes);
    free(s);
    return rc;
}

static int continue_file(struct generation *g, struct dt_error *err)
{
    struct stream *s = dt_alloc(1, sizeof *s);
    s->g = g;
    int rc = dt_input_open_lines(&s->in, opt.prompts, err);
    if (rc < 0) {
        free(s);
        return rc;
    }
    return serve(s, err);
}

/* --- a conversation in a terminal -------------------------------------------------------------*/

/* text may end inside a UTF-8 sequence, as an answer that has reached its most tokens. */
static void add_message(struct json_object *messages, const char *role, const char *text,
                        size_t size)
{
    struct json_object *message = dt_json_new_object();
    struct dt_buffer valid = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&valid, "");
    dt_utf8_repair(text, size, &valid);
    dt_json_object_add(message, "role", dt_json_new_string(role));
    dt_json_object_add(message, "content", dt_json_new_string_len(valid.data, valid.size));
    dt_json_array_add(messages, message);
    dt_buffer_release(&valid);
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

/* The same; SIGINT ends the answer, which then is as far as it is written. Between answers it ends
 * the program. */
static int answer_until_interrupt(struct generation *g, struct json_object *record, uint64_t sample,
                                  struct dt_error *err)
{
    const volatile sig_atomic_t *stop = opt.how.interrupt;
    dt_stop_attend(true);
    int rc = answer(g, record, sample, err);
    if (stop && *stop != 0 && *stop != SIGINT)
        dt_stop_now(*stop);
    dt_stop_forget();
    dt_stop_attend(false);
    return rc;
}

/* A line of the standard input is a message; the conversation goes on until it ends. */
static int converse(struct generation *g, struct dt_error *err)
{
    struct dt_input *in = NULL;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    struct json_object *record = new_conversation();
    bool found = true, asks = !opt.quiet && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
    int rc = 0;
    for (uint64_t turn = 0; rc == 0 && found; turn++) {
        if (asks)
            fputs("> ", stderr);
        rc = in ? 0 : dt_input_open_lines(&in, "-", err);
        rc = rc < 0 ? rc : dt_input_read_until(in, '\n', &line, &found, err);
        if (rc < 0 || is_blank(&line))
            continue;
        add_message(json_object_object_get(record, "messages"), "user", line.data, line.size);
        rc = answer_until_interrupt(g, record, turn, err);
    }
    dt_buffer_release(&line);
    json_object_put(record);
    dt_input_close(in);
    return rc;
}

/* --prompt as a record, whose answer is one. */
static int continue_record(struct generation *g, struct dt_error *err)
{
    struct stream *s = dt_alloc(1, sizeof *s);
    struct json_object *record = opt.chat ? new_conversation() : dt_json_new_object();
    s->g = g;
    s->ended = true;
    if (opt.chat)
        add_message(json_object_object_get(record, "messages"), "user", opt.prompt,
                    strlen(opt.prompt));
    else
        dt_json_object_add(record, "prompt", dt_json_new_string(opt.prompt));
    dt_json_add_value(&s->bytes, record, DT_JSON_COMPACT);
    json_object_put(record);
    return serve(s, err);
}

static int chat(struct generation *g, struct dt_error *err)
{
    return converses() ? converse(g, err) : answer_prompt(g, err);
}

static int generate(struct dt_device *dev, struct dt_error *err)
{
    struct generation g = {0};
    int rc = load(&g, dev, err);
    bool text = !opt.prompts && !opt.chat && !opt.json;
    if (rc == 0 && opt.prompts)
        rc = continue_file(&g, err);
    else if (rc == 0 && opt.json)
        rc = continue_record(&g, err);
    else if (rc == 0 && opt.chat)
        rc = chat(&g, err);
    for (long sample = 0; rc == 0 && text && sample < opt.samples; sample++)
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
    if (opt.samples > 1 && converses())
        dt_program_usage("--samples needs --prompt or --prompts: a conversation has one answer");
    if (opt.system && opt.prompts)
        dt_program_usage("--system has no effect with --prompts: give a message of that role");
    if (opt.json && converses())
        dt_program_usage("--json needs --prompt or --prompts: a conversation is text");
    if (opt.logprobs >= 0 && !opt.json && !opt.prompts)
        dt_program_usage("--logprobs needs --json or --prompts: they are members of records");
    if (opt.logprobs >= 0 && opt.how.beams > 1)
        dt_program_usage("--logprobs has no effect with --beams above 1, which writes the "
                         "log_probability of the whole");
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
    if (converses() && strcmp(opt.output, "-") == 0) {
        opt.how.interrupt = dt_stop_watch();
        dt_stop_attend(false);
    }
    if (dt_launch_check_alone(DT_LAUNCH_ONCE, &err) < 0 ||
        dt_device_open(&dev, opt.device, (int)opt.threads, &err) < 0)
        return dt_program_report(&err);
    if (opt.arithmetic == DT_ARITHMETIC_CANONICAL)
        dt_device_set_canonical(dev);
    int rc = generate(dev, &err);
    dt_device_close(dev);
    return rc < 0 ? dt_program_report(&err) : 0;
}
