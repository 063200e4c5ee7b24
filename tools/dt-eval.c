/* SPDX-License-Identifier: MIT */
/* dt-eval: scores a model. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/program.h"
#include "base/progress.h"
#include "comm/comm.h"
#include "eval/choice.h"
#include "eval/classification.h"
#include "eval/masked.h"
#include "eval/perplexity.h"
#include "eval/translation-corpus.h"
#include "hub/hub.h"
#include "options/options.h"
#include "tasks/compare.h"
#include "tasks/history.h"
#include "tasks/library.h"
#include "tasks/measure.h"
#include "track/run-watch.h"

static struct {
    const char *adapter, *tokenizer, *split, *device, *output, *items, *documents;
    struct dt_string_list models, references, data;
    long threads, batch, resamples, seed, shots, limit, context, stride, window;
    int words; /* enum dt_translation_words_kind */
    double rate;
    bool no_end, alone, json, quiet;
} opt = {.device = "cpu", .output = "-", .batch = 16, .seed = 12345, .shots = -1, .rate = 0.15};

static const struct dt_option options[] = {
    {"model", 'm', DT_OPTION_LIST, &opt.models, "MODEL",
     "directory or GGUF file of the model to score; several are compared with the first",
     .reads = true},
    {"adapter", 0, DT_OPTION_STRING, &opt.adapter, "DIR",
     "with the low-rank adapter in DIR; of one model", .reads = true},
    {"tokenizer", 't', DT_OPTION_STRING, &opt.tokenizer, "FILE",
     "tokenizer of documents (default: the one in the model's directory)", .reads = true},
    {"split", 0, DT_OPTION_STRING, &opt.split, "NAME",
     "score split NAME of a directory of shards (default val)"},
    {"no-end", 0, DT_OPTION_FLAG, &opt.no_end, NULL, "do not predict the ends of documents"},
    {"stride", 0, DT_OPTION_INT, &opt.stride, "N",
     "overlapping windows, one every N tokens (default: rolling windows)", .min = 1, .max = 1e9},
    {"window", 0, DT_OPTION_INT, &opt.window, "N",
     "tokens of an overlapping window (default: all that the model takes)", .min = 2, .max = 1e9},
    {"mask-rate", 0, DT_OPTION_REAL, &opt.rate, "X", "mask fraction X of the tokens (default 0.15)",
     .min = 0.001, .max = 0.999, .without = "alone"},
    {"alone", 0, DT_OPTION_FLAG, &opt.alone, NULL, "mask one token at a time: pseudo-perplexity"},
    {"data", 0, DT_OPTION_LIST, &opt.data, "SPLIT=FILE",
     "read a task's split from FILE, or from a directory of files; may be given several times"},
    {"shots", 0, DT_OPTION_INT, &opt.shots, "N", "N few-shot examples (default: as the task says)",
     .min = 0, .max = 1000},
    {"limit", 0, DT_OPTION_INT, &opt.limit, "N", "take the first N documents of each task",
     .min = 1, .max = 1e9},
    {"reference", 'r', DT_OPTION_LIST, &opt.references, "FILE",
     "reference translations, one per line; may be given several times", .reads = true},
    {"words", 0, DT_OPTION_CHOICE, &opt.words, "KIND",
     "tokenization of BLEU: 13a (the default), ...", .choices = dt_translation_words_names},
    {"bootstrap", 0, DT_OPTION_INT, &opt.resamples, "N",
     "bootstrap with N resamples: confidence intervals and p-values", .min = 1, .max = 1e6},
    {"seed", 0, DT_OPTION_INT, &opt.seed, "N", "seed of resampling, masks and few-shot examples",
     .min = 0, .max = 1e15, .without = "alone"},
    {"items", 0, DT_OPTION_STRING, &opt.items, "FILE", "write the scores of each item to FILE",
     .writes = ""},
    {"documents", 0, DT_OPTION_STRING, &opt.documents, "FILE",
     "write the documents to FILE, with their perplexity in meta", .writes = ""},
    {"json", 0, DT_OPTION_FLAG, &opt.json, NULL, "print one JSON object"},
    {"output", 'o', DT_OPTION_STRING, &opt.output, "FILE", "write the result to FILE",
     .writes = ""},
    {"context", 0, DT_OPTION_INT, &opt.context, "N",
     "use a context of N tokens (default: the model's)", .min = 1, .max = 1 << 24},
    {"batch", 0, DT_OPTION_INT, &opt.batch, "N", "score N sequences at a time (default 16)",
     .min = 1, .max = 65536},
    {"device", 0, DT_OPTION_STRING, &opt.device, "NAME", "cpu (the default), cpu-avx512, ...",
     .words = dt_device_add_names},
    {"threads", 'j', DT_OPTION_INT, &opt.threads, "N", "use N threads (default: all processors)",
     .min = 1, .max = 4096},
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "show no progress"},
    {NULL},
};

static const struct dt_use uses[] = {
    {"perplexity", "DATA", "model",
     "adapter tokenizer split no-end stride window items documents json output context batch "
     "device threads quiet"},
    {"choice", "DATA", "model",
     "adapter tokenizer items json output context batch device threads quiet"},
    {"tasks", "TASK ...", "model",
     "adapter tokenizer data shots limit bootstrap seed items json output context batch device "
     "threads "
     "quiet"},
    {"masked", "DATA", "model",
     "adapter tokenizer mask-rate alone seed items json output context batch device threads quiet"},
    {"labels", "DATA", "model",
     "adapter tokenizer items json output context batch device threads quiet"},
    {"watch", "RUN TASK ...", "",
     "data tokenizer shots limit seed bootstrap batch device threads quiet"},
    {"compare", "ITEMS ITEMS", "", "bootstrap json output quiet"},
    {"bleu", "FILE ...", "reference", "words bootstrap seed items json output quiet"},
    {NULL},
};

static const struct dt_command command = {"dt-eval", "score models and translations", "", options,
                                          uses};

#define LOOK_SECONDS 2   /* between looks for the next checkpoint */
#define PATIENCE     600 /* timeout of the ranks' messages, seconds */

static struct dt_comm *world; /* the ranks that score together */

static bool leads(void)
{
    return dt_comm_rank(world) == 0;
}

static int write_text(const char *path, const struct dt_buffer *text, struct dt_error *err)
{
    struct dt_output out;
    DT_TRY(dt_output_open(&out, path, err));
    int rc = dt_output_write(&out, text->data, text->size, err);
    if (rc == 0)
        rc = dt_output_commit(&out, err);
    dt_output_abandon(&out);
    return rc;
}

/* The first rank writes the item scores, if requested, and the report. Releases both. */
static int write_results(struct dt_buffer *text, struct dt_buffer *items, struct dt_error *err)
{
    int rc = opt.items && leads() ? write_text(opt.items, items, err) : 0;
    if (rc == 0 && leads())
        rc = write_text(opt.output, text, err);
    dt_buffer_release(text);
    dt_buffer_release(items);
    return rc;
}

/* Loads the models one after another on one device; measure is called with the model's index. */
typedef int measure_model(void *results, int number, struct dt_scored_model *subject, void *data,
                          struct dt_progress *progress, struct dt_error *err);

static int for_each_model(measure_model *measure, void *results, void *data, struct dt_error *err)
{
    struct dt_device *dev;
    struct dt_progress progress;
    int threads = (int)opt.threads;
    if (threads == 0 && dt_comm_size(world) > 1)
        DT_TRY(dt_comm_processors(world, &threads, err));
    DT_TRY(dt_device_open(&dev, opt.device, threads, err));
    dt_progress_init(&progress, opt.quiet || !leads());
    int rc = 0;
    for (int i = 0; rc == 0 && i < opt.models.count; i++) {
        struct dt_scored_model subject;
        rc =
            dt_scored_model_open(&subject, dev, world, (long)opt.context, opt.models.items[i], err);
        if (rc == 0 && opt.adapter)
            rc = dt_model_merge_adapter(subject.model, opt.adapter, err);
        rc = rc < 0 ? rc : measure(results, i, &subject, data, &progress, err);
        dt_progress_clear(&progress);
        dt_scored_model_release(&subject);
    }
    dt_device_close(dev);
    return rc;
}

static int measure_perplexity(void *results, int number, struct dt_scored_model *subject,
                              void *data, struct dt_progress *progress, struct dt_error *err)
{
    struct dt_perplexity *all = results;
    const struct dt_perplexity_options how = {.tokenizer = opt.tokenizer,
                                              .split = opt.split,
                                              .batch = opt.batch,
                                              .stride = opt.stride,
                                              .window = opt.window,
                                              .end = !opt.no_end,
                                              .documents = opt.documents != NULL};
    DT_TRY(dt_scored_model_need_next_token(subject, err));
    DT_TRY(dt_perplexity_measure(&all[number], subject, data, &how, progress, err));
    if (all[number].documents != all[0].documents)
        return dt_fail(err, DT_EINVALID, "%s: gave %s fewer or more documents than the first model",
                       (const char *)data, subject->directory);
    return 0;
}

static int perplexity(char **data, int count, struct dt_error *err)
{
    struct dt_perplexity *results = dt_alloc((size_t)opt.models.count, sizeof *results);
    struct dt_buffer text = DT_BUFFER_EMPTY, items = DT_BUFFER_EMPTY;
    (void)count;
    int rc = for_each_model(measure_perplexity, results, data[0], err);
    if (rc == 0) {
        dt_perplexity_report(results, opt.models.count, opt.json, &text);
        if (opt.items)
            dt_perplexity_items(results, opt.models.count, &items);
        if (opt.documents && leads())
            rc = dt_perplexity_write_documents(&results[0], data[0], opt.documents, err);
        rc = rc == 0 ? write_results(&text, &items, err) : rc;
    }
    for (int i = 0; i < opt.models.count; i++)
        dt_perplexity_release(&results[i]);
    free(results);
    return rc;
}

static int measure_masked(void *results, int number, struct dt_scored_model *subject, void *data,
                          struct dt_progress *progress, struct dt_error *err)
{
    struct dt_masked_result *all = results;
    const struct dt_masked_options how = {opt.tokenizer, opt.batch, opt.rate, (uint64_t)opt.seed,
                                          opt.alone};
    return dt_masked_measure(&all[number], subject, data, &how, progress, err);
}

static int masked(char **data, int count, struct dt_error *err)
{
    struct dt_masked_result *results = dt_alloc((size_t)opt.models.count, sizeof *results);
    struct dt_buffer text = DT_BUFFER_EMPTY, items = DT_BUFFER_EMPTY;
    (void)count;
    int rc = for_each_model(measure_masked, results, data[0], err);
    if (rc == 0) {
        dt_masked_report(results, opt.models.count, opt.alone, opt.json, &text);
        if (opt.items)
            dt_masked_items(results, opt.models.count, &items);
        rc = write_results(&text, &items, err);
    }
    for (int i = 0; i < opt.models.count; i++)
        dt_masked_release(&results[i]);
    free(results);
    return rc;
}

static int measure_choice(void *results, int number, struct dt_scored_model *subject, void *data,
                          struct dt_progress *progress, struct dt_error *err)
{
    struct dt_choice_result *all = results;
    DT_TRY(dt_scored_model_need_next_token(subject, err));
    return dt_choice_measure(&all[number], subject, data, opt.tokenizer, opt.batch, progress, err);
}

static int choice(char **paths, int count, struct dt_error *err)
{
    struct dt_choice_result *results = dt_alloc((size_t)opt.models.count, sizeof *results);
    struct dt_buffer text = DT_BUFFER_EMPTY, items = DT_BUFFER_EMPTY;
    struct dt_choice_data data;
    (void)count;
    int rc = dt_choice_data_read(&data, paths[0], err);
    rc = rc < 0 ? rc : for_each_model(measure_choice, results, &data, err);
    if (rc == 0) {
        dt_choice_report(results, opt.models.count, opt.json, &text);
        if (opt.items)
            dt_choice_items(results, opt.models.count, &items);
        rc = write_results(&text, &items, err);
    }
    for (int i = 0; i < opt.models.count; i++)
        dt_choice_release(&results[i]);
    dt_choice_data_release(&data);
    free(results);
    return rc;
}

struct task_run {
    struct dt_task *task;
    struct dt_task_items items;
    struct dt_task_result *results; /* one per model */
};

struct task_runs {
    struct task_run *items;
    int count;
};

static int measure_tasks(void *results, int number, struct dt_scored_model *subject, void *data,
                         struct dt_progress *progress, struct dt_error *err)
{
    struct task_runs *runs = data;
    (void)results;
    DT_TRY(dt_scored_model_need_next_token(subject, err));
    DT_TRY(dt_scored_model_need_tokenizer(subject, opt.tokenizer, err));
    for (int i = 0; i < runs->count; i++) {
        struct task_run *run = &runs->items[i];
        DT_TRY(
            dt_task_measure(&run->results[number], &run->items, subject, opt.batch, progress, err));
    }
    return 0;
}

static int fetch_data(const char *name, char **path, struct dt_error *err)
{
    struct dt_options_source source;
    DT_TRY(dt_hub_fetch(name, NULL, &source, err));
    *path = dt_strdup(source.path);
    return 0;
}

static int read_task(struct task_run *run, const char *name, struct dt_error *err)
{
    const char *const outputs[] = {opt.output, opt.items};
    const struct dt_task_sources sources = {opt.data.items, opt.data.count, fetch_data, outputs,
                                            opt.items ? 2 : 1};
    bool seeded = dt_option_is_given(&command, "seed");
    const struct dt_task_ask how = {&sources, opt.shots, opt.limit,
                                    seeded ? (uint64_t)opt.seed : DT_TASK_FEWSHOT_SEED};
    char *path;
    DT_TRY(dt_task_find(name, &path, err));
    int rc = dt_task_read(&run->task, path, err);
    free(path);
    run->results = dt_alloc((size_t)opt.models.count, sizeof *run->results);
    return rc < 0 ? rc : dt_task_items_make(&run->items, run->task, &how, err);
}

/* Tasks are told apart by their names in items, results and a run's history. */
static int read_tasks(struct task_runs *runs, char **names, struct dt_error *err)
{
    for (int i = 0; i < runs->count; i++) {
        DT_TRY(read_task(&runs->items[i], names[i], err));
        for (int k = 0; k < i; k++)
            if (strcmp(runs->items[k].task->name, runs->items[i].task->name) == 0)
                return dt_fail(err, DT_EINVALID, "the task '%s' is given twice",
                               runs->items[i].task->name);
    }
    return 0;
}

static void release_task(struct task_run *run)
{
    for (int i = 0; run->results && i < opt.models.count; i++)
        dt_task_result_release(&run->results[i]);
    free(run->results);
    dt_task_items_release(&run->items);
    dt_task_free(run->task);
}

static int tasks(char **names, int count, struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY, items = DT_BUFFER_EMPTY;
    struct task_runs runs = {dt_alloc((size_t)count, sizeof *runs.items), count};
    int rc = read_tasks(&runs, names, err);
    rc = rc < 0 ? rc : for_each_model(measure_tasks, NULL, &runs, err);
    for (int i = 0; rc == 0 && i < count; i++) {
        struct task_run *run = &runs.items[i];
        dt_task_report(run->results, opt.models.count, opt.json, opt.resamples, &text);
        if (opt.items)
            dt_task_items_report(run->results, opt.models.count, &items);
    }
    if (rc == 0)
        rc = write_results(&text, &items, err);
    for (int i = 0; i < count; i++)
        release_task(&runs.items[i]);
    free(runs.items);
    return rc;
}

/* Measures the tasks on a checkpoint, and adds the line of its step to the run's results. */
static int measure_checkpoint(struct task_runs *runs, const char *run, long step,
                              const char *checkpoint, struct dt_error *err)
{
    struct dt_buffer line = DT_BUFFER_EMPTY;
    opt.models = (struct dt_string_list){&checkpoint, 1};
    int rc = for_each_model(measure_tasks, NULL, runs, err);
    dt_buffer_printf(&line, "{\"step\":%ld", step);
    for (int i = 0; i < runs->count; i++) {
        struct dt_task_result *result = runs->items[i].results;
        if (rc == 0)
            dt_task_add_metrics(result, opt.resamples ? opt.resamples : 1000, &line);
        dt_task_result_release(result);
    }
    dt_buffer_add_string(&line, "}\n");
    if (rc == 0)
        rc = dt_task_history_add(run, &line, err);
    dt_buffer_release(&line);
    return rc;
}

/* Each checkpoint once, until the run has ended and none is left. */
static int follow_run(struct task_runs *runs, const char *run, struct dt_error *err)
{
    for (bool running = true;;) {
        long step;
        char *checkpoint;
        DT_TRY(dt_task_history_next(run, &step, &checkpoint, err));
        if (checkpoint == NULL && !running)
            return 0;
        if (checkpoint == NULL) {
            running = dt_run_watch_state(run, 0, "/proc/locks") == DT_RUN_RUNNING;
            sleep(running ? LOOK_SECONDS : 0);
            continue;
        }
        int rc = measure_checkpoint(runs, run, step, checkpoint, err);
        bool gone = rc < 0 && !dt_file_is_directory(checkpoint); /* the run removes old ones */
        free(checkpoint);
        if (rc < 0 && !gone)
            return rc;
    }
}

static int watch(char **operands, int count, struct dt_error *err)
{
    if (count < 2)
        dt_program_usage("watch needs a run and a task");
    if (dt_comm_size(world) > 1)
        return dt_fail(err, DT_EINVALID, "watch runs as one process");
    struct task_runs runs = {dt_alloc((size_t)count, sizeof *runs.items), count - 1};
    opt.models.count = 1; /* at a time */
    int rc = read_tasks(&runs, operands + 1, err);
    rc = rc < 0 ? rc : follow_run(&runs, operands[0], err);
    opt.models.count = 1;
    for (int i = 0; i < runs.count; i++)
        release_task(&runs.items[i]);
    free(runs.items);
    return rc;
}

static int measure_labels(void *results, int number, struct dt_scored_model *subject, void *data,
                          struct dt_progress *progress, struct dt_error *err)
{
    struct dt_classification *all = results;
    DT_TRY(dt_classification_measure(&all[number], subject, data, opt.tokenizer, opt.batch,
                                     progress, err));
    if (all[number].count != all[0].count)
        return dt_fail(err, DT_EINVALID, "%s: gave %s fewer or more documents than the first model",
                       (const char *)data, subject->directory);
    return 0;
}

static int labels(char **data, int count, struct dt_error *err)
{
    struct dt_classification *results = dt_alloc((size_t)opt.models.count, sizeof *results);
    struct dt_buffer text = DT_BUFFER_EMPTY, items = DT_BUFFER_EMPTY;
    (void)count;
    int rc = for_each_model(measure_labels, results, data[0], err);
    if (rc == 0) {
        dt_classification_report(results, opt.models.count, opt.json, &text);
        if (opt.items)
            dt_classification_items(results, opt.models.count, &items);
        rc = write_results(&text, &items, err);
    }
    for (int i = 0; i < opt.models.count; i++)
        dt_classification_release(&results[i]);
    free(results);
    return rc;
}

static int compare(char **paths, int count, struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY, none = DT_BUFFER_EMPTY;
    if (count != 2)
        dt_program_usage("compare needs two files of --items");
    int rc = dt_task_compare(paths[0], paths[1], opt.json, opt.resamples, &text, err);
    if (rc == 0)
        return write_results(&text, &none, err);
    dt_buffer_release(&text);
    return rc;
}

static int bleu(char **paths, int count, struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY, items = DT_BUFFER_EMPTY;
    struct dt_translation_corpus *corpus;
    DT_TRY(dt_translation_corpus_open(&corpus, opt.references.items, opt.references.count,
                                      (enum dt_translation_words_kind)opt.words, err));
    int rc = 0;
    for (int i = 0; rc == 0 && i < count; i++)
        rc = dt_translation_corpus_add(corpus, paths[i], err);
    if (rc == 0) {
        dt_translation_corpus_report(corpus, opt.resamples, (uint64_t)opt.seed, opt.json, &text);
        if (opt.items)
            dt_translation_corpus_items(corpus, &items);
        rc = write_results(&text, &items, err);
    }
    dt_translation_corpus_free(corpus);
    return rc;
}

/* In the order of uses[]. */
static const struct mode {
    int most; /* most operands after the name */
    int (*run)(char **operands, int count, struct dt_error *err);
} modes[] = {{1, perplexity}, {1, choice},   {1000, tasks}, {1, masked},
             {1, labels},     {1000, watch}, {2, compare},  {1000, bleu}};
_Static_assert(sizeof modes / sizeof *modes + 1 == sizeof uses / sizeof *uses, "one each");

static const struct mode *mode_of(int count, char **operands)
{
    int use = dt_options_find_use(&command, count > 0 ? operands[0] : NULL);
    if (count < 2 || count - 1 > modes[use].most)
        dt_program_usage("%s needs %s", uses[use].name, uses[use].operands);
    dt_options_check_use(&command, &uses[use]);
    if (opt.adapter && opt.models.count > 1)
        dt_program_usage("--adapter is of one --model");
    if (opt.documents && opt.models.count > 1)
        dt_program_usage("--documents takes one model");
    if (modes[use].run == bleu && opt.resamples == 0 && dt_option_is_given(&command, "seed"))
        dt_program_usage("--seed requires --bootstrap");
    return &modes[use];
}

/* A launcher passes stdin to only one rank. */
static int check_input(char **data, int count, struct dt_error *err)
{
    for (int i = 0; i < count; i++)
        if (dt_comm_size(world) > 1 && strcmp(data[i], "-") == 0)
            return dt_fail(err, DT_EINVALID, "several ranks cannot read stdin: name a file");
    return 0;
}

int main(int argc, char **argv)
{
    struct dt_error err;
    if (!dt_comm_launched_first())
        dt_program_delay_usage(DT_COMM_FIRST_RANK_REPORTS);
    dt_options_set_fetch(dt_hub_fetch);
    int first = dt_options_parse(&command, argc, argv), count = argc - first - 1;
    const struct mode *mode = mode_of(argc - first, argv + first);
    if (dt_comm_open(&world, "auto", &(struct dt_opening){.patience = PATIENCE}, &err) < 0)
        return dt_program_report(&err);
    int rc = check_input(argv + first + 1, count, &err);
    rc = rc < 0 ? rc : mode->run(argv + first + 1, count, &err);
    if (rc < 0)
        return dt_comm_fail(world, &err);
    dt_comm_close(world);
    return 0;
}
