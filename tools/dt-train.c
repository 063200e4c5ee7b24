/* SPDX-License-Identifier: MIT */
/* dt-train: trains a model over shards. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/program.h"
#include "base/progress.h"
#include "base/stop.h"
#include "checkpoint/checkpoint-settings.h"
#include "checkpoint/checkpoint.h"
#include "comm/interface.h"
#include "comm/launch.h"
#include "comm/meeting-place.h"
#include "device/peaks.h"
#include "formats/adapter.h"
#include "formats/labels.h"
#include "formats/model-directory.h"
#include "formats/text-tokens.h"
#include "hash/hash.h"
#include "hub/hub.h"
#include "options/command-line.h"
#include "options/completion.h"
#include "options/options.h"
#include "shard/dataset.h"
#include "token/tokenizer.h"
#include "tokenizer-files/tokenizer-files.h"
#include "train/step-trace.h"
#include "train/training.h"

static struct {
    const char *config, *output, *resume, *init_from, *branch_from, *adapter, *reference, *reward,
        *tokenizer, *device;
    struct dt_string_list set;
    long threads, rank, world;
    bool quiet, print_config, dry_run;
} opt = {.device = "cpu"};

static void add_resumes(struct dt_buffer *words)
{
    dt_completion_add(words, "auto");
    dt_completion_add(words, "none");
}

static const struct dt_option options[] = {
    {"config", 'c', DT_OPTION_STRING, &opt.config, "FILE", "read settings from the YAML file FILE"},
    {"set", 0, DT_OPTION_LIST, &opt.set, "KEY=VALUE",
     "change one setting, such as training.max_steps=100", .words = dt_settings_add_words},
    {"output", 'o', DT_OPTION_STRING, &opt.output, "DIR",
     "write metrics.jsonl and checkpoints to DIR: required, unless checkpoint.dir is set"},
    {"tokenizer", 't', DT_OPTION_STRING, &opt.tokenizer, "FILE",
     "put this tokenizer.json into the checkpoints", .reads = true},
    {"resume", 0, DT_OPTION_STRING, &opt.resume, "WHAT",
     "auto: from the newest checkpoint in DIR, if any (the default); none; or a checkpoint",
     .words = add_resumes},
    {"init-from", 0, DT_OPTION_STRING, &opt.init_from, "DIR",
     "start from the shape and parameters of the model in DIR", .reads = true},
    {"adapter", 0, DT_OPTION_STRING, &opt.adapter, "DIR",
     "merge the low-rank adapter in DIR into that model", .reads = true, .with = "init-from"},
    {"reference", 0, DT_OPTION_STRING, &opt.reference, "DIR",
     "with training.objective=dpo or grpo, the reference model (default: that of --init-from)",
     .reads = true},
    {"reward", 0, DT_OPTION_STRING, &opt.reward, "COMMAND",
     "with training.objective=grpo, the program that reads completions and writes rewards"},
    {"branch-from", 0, DT_OPTION_STRING, &opt.branch_from, "DIR",
     "start from the settings and the whole state of the checkpoint or run DIR", .reads = true},
    {"device", 0, DT_OPTION_STRING, &opt.device, "NAME",
     "cpu (the default), or one instruction set of it: cpu-avx512, cpu-avx2, cpu-generic",
     .words = dt_device_add_names},
    {"threads", 'j', DT_OPTION_INT, &opt.threads, "N",
     "use N threads (default: at most all processors, by the time of steps)", .min = 1,
     .max = 4096},
    {"rank", 0, DT_OPTION_INT, &opt.rank, "N",
     "be rank N, from 0 on, of a run that no launcher has started", .max = DT_LAUNCH_MOST - 1,
     .with = "world"},
    {"world", 0, DT_OPTION_INT, &opt.world, "N", "of N ranks", .min = 1, .max = DT_LAUNCH_MOST,
     .with = "rank"},
    {"print-config", 0, DT_OPTION_FLAG, &opt.print_config, NULL,
     "print all settings as YAML, and stop"},
    {"dry-run", 0, DT_OPTION_FLAG, &opt.dry_run, NULL,
     "print steps and memory of the run, and stop"},
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "print only warnings and errors"},
    {NULL},
};

static const struct dt_command command = {
    "dt-train", "train a model over shards", "[DATA]", options,
    .notes = "DATA is a directory of shards, a mixture FILE.json, or text FILE.jsonl:\n"
             "required, unless data.dataset or data.stages is set.\n"
             "'dt help config' describes the settings of -c and --set.\n"};

static const volatile sig_atomic_t *stop_signal;
static char source[4096]; /* names the settings in errors */
static const char *data_path;
static struct dt_comm *world; /* all ranks of the run */
static bool over_tcp;         /* ranks meet without MPI */
static bool elastic;          /* ranks meet in dt_training_new, and may change */
static bool has_left;         /* this rank leaves an elastic run, which goes on */
static bool has_begun;        /* to train */

/* NULL: this process was started alone. */
static const char *launched_rank(void)
{
    const char *rank = dt_launch_rank();
    return rank ? rank : getenv("SLURM_PROCID");
}

/* Before ranks have met, rank 0 of the launcher. */
static bool leads(void)
{
    const char *launched = launched_rank();
    return world ? dt_comm_rank(world) == 0 : launched == NULL || strcmp(launched, "0") == 0;
}

static int print_settings(const struct dt_settings *settings)
{
    struct dt_buffer yaml = DT_BUFFER_EMPTY;
    dt_config_print(dt_settings_schema, settings, &yaml);
    dt_program_print(yaml.data);
    dt_buffer_release(&yaml);
    return dt_finish_stdout();
}

#define PLACES_SHOWN 16

/* Prints the host of each rank, of at most PLACES_SHOWN ranks. */
static int print_places(struct dt_error *err)
{
    char(*places)[DT_PLACE];
    int size = dt_comm_size(world), rc = dt_comm_places(world, &places, err);
    bool shown = rc == 0 && leads() && !opt.quiet && !opt.dry_run && size > 1;
    for (int r = 0; shown && r < size && r < PLACES_SHOWN; r++)
        fprintf(stderr, "rank %-6d %s\n", r, places[r]);
    if (shown && size > PLACES_SHOWN)
        fprintf(stderr, "            and %d more\n", size - PLACES_SHOWN);
    free(places);
    return rc;
}

static struct dt_peak peak; /* of this rank's device */

#define MANY_EPOCHS 20 /* more: prints a line */

static void print_facts(const struct dt_training *trainer, const struct dt_device *dev,
                        const struct dt_settings *s)
{
    struct dt_training_facts f;
    char memory[DT_PROGRESS_BYTES], trained[48] = "", lacks[96] = "";
    dt_training_facts(trainer, &f);
    if (f.trained < f.parameters)
        snprintf(trained, sizeof trained, " (%.3f M trained)", (double)f.trained * 1e-6);
    if (f.val_tokens == 0 && s->training.eval_interval.count > 0 && !*s->data.validation)
        snprintf(lacks, sizeof lacks, " (no split '%.64s')", s->data.val_split);
    if (dt_comm_size(world) > 1)
        fprintf(stderr, "ranks       %d; threads, peak and memory are those of rank 0\n",
                dt_comm_size(world));
    if (dt_comm_links(world))
        fprintf(stderr, "exchange    %s%s\n",
                dt_comm_is_linked(world) ? "" : "through host memory: ", dt_comm_links(world));
    fprintf(stderr,
            "engine      %s, %s, %s%d threads, GEMM peak %.0f GFLOP/s of %s %s\n"
            "model       %.2f M parameters%s, %s with gradients, moments and activations\n"
            "data        %" PRIu64 " training tokens, %" PRIu64 " for validation%s\n",
            dev->engine->name, dev->isa, dev->chooses_threads ? "up to " : "", dev->threads,
            peak.speed * 1e-9, dt_dtype_names[s->training.precision], peak.origin,
            (double)f.parameters * 1e-6, trained, dt_progress_bytes((double)f.memory.total, memory),
            f.train_tokens, f.val_tokens, lacks);
    if (*f.resumed)
        fprintf(stderr, "resumed     from %s\n", f.resumed);
    if (!f.has_tokenizer)
        fprintf(stderr, "tokenizer   none (-t): dt-generate and dt-eval will need theirs\n");
    if (f.first_step >= f.max_steps)
        fprintf(stderr, "steps       all %ld were done before\n", f.max_steps);
    else
        fprintf(stderr, "steps       %ld to %ld of %" PRIu64 " tokens, %.2f epochs in all\n",
                f.first_step + 1, f.max_steps, f.tokens_per_step,
                f.tokens / (double)f.train_tokens);
    if (f.first_step < f.max_steps && f.tokens > MANY_EPOCHS * (double)f.train_tokens)
        fprintf(stderr, "repeated    training reads the data %.0f times, and may memorize it\n",
                f.tokens / (double)f.train_tokens);
}

/* Steps to record that the run does not reach. */
static void warn_of_steps(const char *setting, const char *steps, long max_steps)
{
    struct dt_error ignored;
    long first, last;
    if (dt_step_trace_read_range(steps, setting, &first, &last, &ignored) == 0 && first > max_steps)
        dt_program_warn("%s %s: the last step is %ld, so nothing is recorded", setting, steps,
                        max_steps);
}

static void warn_of_unreached(const struct dt_training *trainer, const struct dt_settings *s)
{
    struct dt_training_facts f;
    dt_training_facts(trainer, &f);
    warn_of_steps("training.trace_steps", s->training.trace_steps, f.max_steps);
    warn_of_steps("training.timeline_steps", s->training.timeline_steps, f.max_steps);
}

static void warn_of_damage(const struct dt_training *trainer)
{
    struct dt_training_facts f;
    dt_training_facts(trainer, &f);
    if (f.damaged_metrics > 0)
        dt_program_warn("%s/metrics.jsonl: removed %ld damaged line%s", opt.output,
                        f.damaged_metrics, dt_plural((uint64_t)f.damaged_metrics));
    char *copy = dt_strdup(f.damaged), *rest = copy;
    for (char *reason; *copy && (reason = strsep(&rest, "\n")) != NULL;)
        dt_program_warn("%s: the checkpoint is damaged, and passed over", reason);
    if (*copy)
        dt_program_warn("goes on from step %ld, the checkpoint before", f.first_step);
    free(copy);
    if (f.lost_lines > 0)
        dt_program_warn(
            "%s/metrics.jsonl lacks %ld of its lines up to step %ld; training continues, and a "
            "line of the file records it",
            opt.output, f.lost_lines, f.first_step);
}

static const char *const reasons[] = {
    [DT_SKIP_NOT_FINITE] = "are not finite",
    [DT_SKIP_OVERFLOW] = "overflow in fp16: the loss scale is halved",
    [DT_SKIP_SPIKE] = "are a spike",
};

#define MFU_TEXT 16

/* "54.3%", or "unknown" if the speed exceeds the peak. */
static const char *mfu_text(double mfu, char text[MFU_TEXT])
{
    snprintf(text, MFU_TEXT, isnan(mfu) ? "unknown" : "%.1f%%", 100 * mfu);
    return text;
}

static void warn_of_peak(const struct dt_step_report *r)
{
    static bool warned;
    if (!isnan(r->mfu) || warned)
        return;
    warned = true;
    dt_program_warn(
        "step %ld: faster than the GEMM peak (%s), so MFU is unknown: the machine was slower when "
        "that was measured; on an idle one 'dt-bench machine' measures and stores it",
        r->step, peak.origin);
}

#define SLOW 1.5 /* times the median of all ranks: prints a line */

/* Whether no line has named the rank yet, or with a factor of up to half; metrics.jsonl has all. */
static bool is_news(int rank, double factor)
{
    static double told[1024]; /* ranks beyond share */
    double *last = &told[rank % 1024];
    bool news = factor > SLOW && factor >= 2 * *last;
    *last = news ? factor : *last;
    return news;
}

static void show(struct dt_progress *progress, const struct dt_step_report *r, long max_steps,
                 double started, long first_step)
{
    double per_step = (dt_clock_now() - started) / (double)(r->step - first_step);
    char left[DT_CLOCK_DURATION], mfu[MFU_TEXT];
    if (dt_progress_due(progress))
        dt_progress_show(progress, "step %ld/%ld  loss %.4f  %.0f tokens/s  MFU %s  %s left",
                         r->step, max_steps, r->loss, r->tokens_per_second, mfu_text(r->mfu, mfu),
                         dt_clock_duration(per_step * (double)(max_steps - r->step), left));
    if (r->skip != DT_SKIP_NONE) {
        dt_progress_clear(progress);
        dt_program_warn("step %ld: loss %g and gradient norm %g %s; update skipped", r->step,
                        r->loss, r->gradient_norm, reasons[r->skip]);
    }
    if (r->save_error.code != DT_OK) {
        dt_progress_clear(progress);
        dt_program_warn("step %ld: %s; training continues, the last checkpoint stays", r->step,
                        r->save_error.text);
    }
    if (!opt.quiet && !r->crowded && is_news(r->slowest_rank, r->slowest_factor)) {
        dt_progress_clear(progress);
        dt_program_warn(
            "step %ld: rank %d computes %.1f times as long as others, which wait for it", r->step,
            r->slowest_rank, r->slowest_factor);
    }
    if (opt.quiet || (isnan(r->val_loss) && !(r->due & DT_DUE_VALIDATION)))
        return;
    dt_progress_clear(progress);
    char validation[40] = "", accuracy[40] = "";
    if (!isnan(r->val_loss))
        snprintf(validation, sizeof validation, "  validation %.4f", r->val_loss);
    if (!isnan(r->val_accuracy))
        snprintf(accuracy, sizeof accuracy, "  accuracy %.2f%%", 100 * r->val_accuracy);
    warn_of_peak(r);
    fprintf(stderr, "step %-7ld loss %.4f%s%s  %.0f tokens/s  MFU %s\n", r->step, r->loss,
            validation, accuracy, r->tokens_per_second, mfu_text(r->mfu, mfu));
    if (r->stopped_early)
        fprintf(stderr, "stopped     no validation since step %ld, loss %.4f, was better\n",
                r->best_step, r->best_loss);
}

/* Rank 0 shows the ranks of an elastic run that has regrouped; a rank that was left out says so. */
static void show_ranks(struct dt_progress *progress, const struct dt_training *trainer,
                       const struct dt_step_report *r)
{
    const struct dt_seat *seat = dt_training_seat(trainer);
    dt_progress_clear(progress);
    if (r->returned)
        dt_program_warn("step %ld: the run went on without this rank, which has joined it again",
                        r->step);
    if (opt.quiet || seat->rank > 0)
        return;
    const int ranks = dt_comm_size(dt_training_comm(trainer));
    dt_progress_init(progress, false); /* this process may have become rank 0 */
    fprintf(stderr, "step %-7ld %d rank%s from here on, %d left, met in %.1f s\n", r->step, ranks,
            dt_plural((uint64_t)ranks), seat->left, seat->waited);
}

/* *stopped: a rank was asked to stop. */
static int train(struct dt_training *trainer, bool *stopped, struct dt_error *err)
{
    struct dt_progress progress;
    struct dt_step_report report;
    struct dt_training_facts facts;
    int rc = 0;
    dt_training_facts(trainer, &facts);
    dt_stop_attend(true);
    has_begun = true;
    dt_progress_init(&progress, opt.quiet || !leads());
    double started = dt_clock_now();
    for (*stopped = false; !*stopped; *stopped = report.stop) {
        rc = dt_training_step(trainer, &report, err);
        world = dt_training_comm(trainer);
        if (rc >= 0 && report.regrouped)
            show_ranks(&progress, trainer, &report);
        if (rc <= 0)
            break;
        if (leads())
            show(&progress, &report, facts.max_steps, started, facts.first_step);
    }
    dt_progress_clear(&progress);
    has_left = rc >= 0 && report.leaves;
    return rc >= 0 && *stopped && !has_left ? dt_training_save(trainer, err) : rc;
}

static int open_tokenizer(struct dt_training_options *o, struct dt_error *err)
{
    struct dt_tokenizer *tokenizer;
    const char *model = opt.branch_from ? opt.branch_from : opt.init_from;
    if (opt.tokenizer == NULL && model) {
        char *theirs; /* until the program ends */
        DT_TRY(dt_model_find_tokenizer(model, &theirs, err));
        opt.tokenizer = o->tokenizer_path = theirs;
    }
    if (opt.tokenizer == NULL)
        return 0;
    DT_TRY(dt_file_need_regular(opt.tokenizer, err)); /* it is also copied */
    DT_TRY(dt_tokenizer_load(&tokenizer, opt.tokenizer, err));
    o->tokenizer = dt_tokenizer_fingerprint(tokenizer);
    dt_tokenizer_free(tokenizer);
    return dt_tokenizer_need_json(opt.tokenizer, err);
}

static void print_plan(const struct dt_training *trainer)
{
    struct dt_training_facts f;
    dt_training_facts(trainer, &f);
    const struct {
        const char *name;
        size_t bytes;
        bool optional; /* not printed if it is 0 */
    } rows[] = {{"parameters", f.memory.parameters},
                {"weights", f.memory.weights},
                {"gradients", f.memory.gradients},
                {"moments", f.memory.moments},
                {"average", f.memory.average},
                {"scratch", f.memory.scratch},
                {"activations", f.memory.activations},
                {"sampler", f.memory.sampler, true},
                {"snapshot", f.memory.snapshot},
                {"copies", f.memory.copies, true},
                {"total", f.memory.total},
                {"available", f.available},
                {"file", f.memory.file, true}};
    printf("parameters   %15" PRId64 "\n", f.parameters);
    if (f.trained < f.parameters)
        printf("trained      %15" PRId64 "\n", f.trained);
    printf("steps        %15ld\ntokens       %15.0f\ntokens/step  %15" PRIu64
           "\nepochs       %15.2f\n\nmemory                 bytes"
           "        GiB\n",
           f.max_steps, f.tokens, f.tokens_per_step, f.tokens / (double)f.train_tokens);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].bytes > 0 || !rows[i].optional)
            printf("%-11s  %15zu  %9.3f\n", rows[i].name, rows[i].bytes,
                   (double)rows[i].bytes / (1 << 30));
}

/* The record of the run, which rank 0 writes into checkpoints. */
static int begin_lineage(struct dt_lineage **lineage, const char *data,
                         const struct dt_settings *settings, struct dt_device *dev,
                         struct dt_error *err)
{
    const char *set = getenv("DT_SET");
    *lineage = NULL;
    if (!leads() || opt.dry_run)
        return 0;
    struct dt_lineage *l = *lineage = dt_lineage_new();
    if (!elastic)
        dt_lineage_set(l, "ranks", dt_json_new_int(dt_comm_size(world)));
    dt_lineage_set(l, "device", dt_json_new_string(dev->engine->name));
    dt_lineage_set(l, "isa", dt_json_new_string(dev->isa ? dev->isa : ""));
    if (set && *set)
        dt_lineage_set(l, "DT_SET", dt_json_new_string(set));
    if (opt.config)
        DT_TRY(dt_lineage_add_path(l, opt.config, err));
    if (opt.tokenizer)
        DT_TRY(dt_text_tokens_add_inputs(opt.tokenizer, l, err));
    if (opt.init_from)
        DT_TRY(dt_lineage_add_path(l, opt.init_from, err));
    if (opt.adapter)
        DT_TRY(dt_lineage_add_path(l, opt.adapter, err));
    if (opt.reference)
        DT_TRY(dt_lineage_add_path(l, opt.reference, err));
    if (opt.branch_from)
        DT_TRY(dt_lineage_add_path(l, opt.branch_from, err));
    if (*settings->distributed.replay)
        DT_TRY(dt_lineage_add_path(l, settings->distributed.replay, err));
    DT_TRY(data ? dt_dataset_add_inputs(data, l, err)
                : dt_dataset_add_stages(settings->data.stages, l, err));
    return dt_training_add_validation(settings->data.validation, l, err);
}

static int train_with(struct dt_training_options *o, const struct dt_settings *settings,
                      struct dt_device *dev, bool *stopped, struct dt_error *err)
{
    struct dt_training *trainer;
    struct dt_comm *alone = world; /* of an elastic run, until its ranks meet */
    enum dt_dtype type = (enum dt_dtype)settings->training.precision;
    DT_TRY(dt_comm_agree(world, opt.dry_run ? 0 : dt_peak_find(dev, type, &peak, err), err));
    o->peak = peak.speed;
    if (*peak.doubt && leads())
        dt_program_warn("%s", peak.doubt);
    DT_TRY(dt_training_new(&trainer, o, err));
    world = dt_training_comm(trainer);
    if (opt.dry_run) {
        if (leads())
            print_plan(trainer);
        dt_training_free(trainer);
        world = alone;
        *stopped = false;
        return 0;
    }
    if (!opt.quiet && leads())
        print_facts(trainer, dev, settings);
    if (leads()) {
        warn_of_damage(trainer);
        warn_of_unreached(trainer, settings);
    }
    int rc = train(trainer, stopped, err);
    char hex[DT_HASH_HEX];
    uint64_t hash;
    if (rc >= 0 && !*stopped)
        rc = dt_training_hash(trainer, &hash, err);
    if (rc >= 0 && !*stopped && leads())
        printf("parameters %s\n", dt_hash_hex(hash, hex));
    dt_training_free(trainer);
    if (elastic)
        world = alone;
    return rc;
}

static int run(const char *data, const struct dt_settings *settings, struct dt_device *dev,
               bool *stopped, struct dt_error *err)
{
    struct dt_training_options o = {.settings = settings,
                                    .settings_path = source,
                                    .init_from = opt.init_from,
                                    .adapter = opt.adapter,
                                    .reference = opt.reference,
                                    .reward = opt.reward,
                                    .branch_from = opt.branch_from,
                                    .plan_only = opt.dry_run,
                                    .data = data,
                                    .run = opt.output,
                                    .resume = opt.resume,
                                    .tokenizer_path = opt.tokenizer,
                                    .command_line = dt_command_line(),
                                    .device = dev,
                                    .comm = elastic ? NULL : world,
                                    .elastic = elastic,
                                    .stop = stop_signal};
    DT_TRY(dt_comm_agree(world, open_tokenizer(&o, err), err));
    DT_TRY(print_places(err));
    int rc = dt_comm_agree(world, begin_lineage(&o.lineage, data, settings, dev, err), err);
    rc = rc < 0 ? rc : train_with(&o, settings, dev, stopped, err);
    dt_lineage_free(o.lineage);
    return rc;
}

/* Opens a device communicator (NCCL), if it is required or possible. */
static int link_devices(const struct dt_settings *settings, struct dt_device *dev,
                        struct dt_error *err)
{
    const char *backend = dt_comm_backend_names[settings->distributed.backend];
    bool required = strcmp(backend, "nccl") == 0;
    if (!required && (strcmp(backend, "auto") != 0 || dev->engine->links == NULL))
        return 0;
    if (dt_comm_link(world, dev, required, err) < 0)
        return dt_fail_context(err, "distributed.backend %s", backend);
    return 0;
}

static int open_and_run(const char *data, const struct dt_settings *settings, bool *stopped,
                        struct dt_error *err)
{
    struct dt_device *dev;
    int threads = (int)opt.threads;
    if (threads == 0 && dt_comm_size(world) > 1)
        DT_TRY(dt_comm_processors(world, &threads, err));
    /* With several communicators lazy loading would wait for messages in flight. */
    if (settings->distributed.pp > 1 || settings->distributed.collectives != DT_COLLECTIVES_ORDERED)
        setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    bool opened = dt_device_open(&dev, opt.device, threads, err) == 0;
    if (opened && elastic) /* the others would wait while one tries fewer */
        dev->chooses_threads = false;
    if (opened && settings->training.arithmetic == DT_ARITHMETIC_CANONICAL)
        dt_device_set_canonical(dev);
    int rc = dt_comm_agree(world, opened ? 0 : err->code, err);
    rc = rc < 0 ? rc : link_devices(settings, dev, err);
    rc = rc < 0 ? rc : run(data, settings, dev, stopped, err);
    dt_comm_unlink(world);
    if (opened)
        dt_device_close(dev);
    return rc;
}

static void report_as_rank(const struct dt_error *err)
{
    const char *launched = launched_rank();
    if (world)
        dt_program_warn("rank %d: %s", dt_comm_rank(world), err->text);
    else
        dt_program_warn("rank %s: %s", launched ? launched : "unknown", err->text);
}

#define MAY_PASS 75 /* exit status, as EX_TEMPFAIL of sysexits.h */

/* Whether the same command may succeed: a rank was lost or late, or a file failed while training.
 * Settings, data and a model that diverges fail again. */
static int status_of(const struct dt_error *err)
{
    return err->code == DT_ESTALLED || (has_begun && err->code == DT_EIO) ? MAY_PASS : 1;
}

/* A rank that is lost leaves nothing to do but to start all again. */
static void say_what_resumes(const struct dt_error *err)
{
    if (!has_begun || dt_comm_size(world) < 2 || status_of(err) != MAY_PASS)
        return;
    char *latest = dt_path_join(opt.output, "latest");
    if (access(latest, F_OK) == 0)
        dt_program_warn("the same command resumes from the newest checkpoint, %s", latest);
    free(latest);
}

/* Reports the error and ends all ranks. Rank 0 reports first: an error on which ranks have agreed
 * is printed by it alone. After a timeout each rank reports, since each knows which rank it waits
 * for. */
static int fail(const struct dt_error *err)
{
    const struct timespec start = {DT_COMM_FIRST_RANK_REPORTS, 0};
    const bool stalled = err->code == DT_ESTALLED;
    struct dt_error ignored;
    if (elastic || (over_tcp && world == NULL)) { /* the others go on, or have the same error */
        dt_program_report(err);
        return status_of(err);
    }
    if (stalled)
        report_as_rank(err);
    else if (leads())
        dt_program_report(err);
    if (leads())
        say_what_resumes(err);
    if (err->agreed && dt_comm_barrier(world, &ignored) == 0) {
        /* all ranks arrive here after rank 0 has printed */
    } else if (stalled || !leads()) {
        if (stalled || !over_tcp)
            nanosleep(&start, NULL);
        if (!stalled && !*stop_signal) /* no signal meanwhile */
            report_as_rank(err);
    }
    dt_comm_abort(world, status_of(err));
    return status_of(err);
}

/* A run among the shards of its data would go with them when they are made again. */
static void refuse_shards(const char *output)
{
    char *index = dt_asprintf("%s/index.json", output);
    if (access(index, F_OK) == 0)
        dt_program_usage("--output '%s' holds the shards of a data set: a run needs another "
                         "directory",
                         output);
    free(index);
}

/* Options that are absent come from the settings. */
static void take_operands(struct dt_settings *s, int count, char **operands)
{
    const char *resume_from = s->checkpoint.resume_from;
    bool resumes = *resume_from && strcmp(resume_from, "null") != 0;
    if (opt.output == NULL && *s->checkpoint.dir)
        opt.output = s->checkpoint.dir;
    if (opt.resume == NULL)
        opt.resume = resumes ? resume_from : "auto";
    if (opt.output == NULL && !opt.dry_run)
        dt_program_usage("option --output is required");
    if (opt.output && !opt.dry_run)
        refuse_shards(opt.output);
    if (opt.init_from && s->model.lora.rank == 0 && strcmp(opt.resume, "auto") != 0 &&
        strcmp(opt.resume, "none") != 0)
        dt_program_usage("--resume '%s' and --init-from exclude each other: a resumed run has "
                         "parameters",
                         opt.resume);
    if (opt.adapter && s->model.lora.rank > 0)
        dt_program_usage("--adapter and lora.rank above 0 exclude each other: merge the adapter "
                         "with dt-export, and train another one of the result");
    if (opt.branch_from && opt.init_from && s->model.lora.rank == 0)
        dt_program_usage("--branch-from and --init-from exclude each other");
    if (opt.branch_from && strcmp(opt.resume, "auto") != 0 && strcmp(opt.resume, "none") != 0)
        dt_program_usage("--resume '%s' and --branch-from exclude each other", opt.resume);
    if (count == 1 && *s->data.stages)
        dt_program_usage("data.stages names the data: leave '%s' out, or set data.stages= empty",
                         operands[0]);
    if (count > 1 || (count == 0 && *s->data.dataset == 0 && *s->data.stages == 0))
        dt_program_usage("one directory of shards is required");
    data_path = count == 1 ? operands[0] : *s->data.stages ? NULL : s->data.dataset;
    if (count == 1) /* recorded in checkpoints, if it fits */
        snprintf(s->data.dataset, sizeof s->data.dataset, "%s",
                 strlen(data_path) < sizeof s->data.dataset ? data_path : "");
}

/* The name of the settings in errors that no single line of a file has caused. */
static void name_source(void)
{
    const char *set = getenv("DT_SET");
    const char *changes = opt.set.count > 0 ? "--set" : set && *set ? "DT_SET" : NULL;
    if (opt.config && changes)
        snprintf(source, sizeof source, "%s with %s", opt.config, changes);
    else
        snprintf(source, sizeof source, "%s",
                 opt.config ? opt.config
                 : changes  ? changes
                            : "settings");
}

/* Refuses settings that exclude the backend. */
static int check_backend(const struct dt_settings *s, struct dt_error *err)
{
    const char *backend = dt_comm_backend_names[s->distributed.backend];
    const char *interface = s->distributed.interface;
    bool alone = strcmp(backend, "self") == 0;
    uint32_t address;
    if (*s->distributed.rendezvous && !over_tcp)
        return dt_fail(err, DT_EINVALID,
                       "distributed.rendezvous is for ranks numbered by RANK and WORLD_SIZE; ranks "
                       "of mpirun meet without it");
    if (*s->distributed.rendezvous && (alone || strcmp(backend, "mpi") == 0))
        return dt_fail(err, DT_EINVALID, "distributed.rendezvous excludes distributed.backend %s",
                       backend);
    if (*interface && !over_tcp)
        return dt_fail(err, DT_EINVALID,
                       "distributed.interface is for ranks that meet at distributed.rendezvous; "
                       "MPI has its own options for that");
    if (s->distributed.encrypt && strcmp(backend, "nccl") == 0)
        return dt_fail(err, DT_EINVALID,
                       "distributed.encrypt excludes distributed.backend nccl: messages over NCCL "
                       "are not encrypted");
    return *interface ? dt_interface_find(interface, &address, err) : 0;
}

/* Ranks of an elastic run meet when each has opened its inputs. Until then each is alone. */
static int meet_later(const struct dt_settings *s, struct dt_error *err)
{
    uint32_t address;
    over_tcp = true;
    if (dt_launch_rank())
        return dt_fail(err, DT_EINVALID,
                       "distributed.elastic is for ranks that no MPI has started: start them by "
                       "hand, with torchrun, or with srun without --mpi");
    if (*s->distributed.interface)
        DT_TRY(dt_interface_find(s->distributed.interface, &address, err));
    return dt_comm_open(&world, "self", NULL, err);
}

/* rc: result of reading the settings. Ranks meet even after an error, so that it is printed once.
 * Without MPI other ranks may start late or not at all, so a rank with an error waits only briefly.
 */
static int meet(const struct dt_settings *s, int rc, struct dt_error *err)
{
    const char *backend = dt_comm_backend_names[s->distributed.backend];
    bool alone = strcmp(backend, "self") == 0;
    struct dt_error failure;
    const bool chosen = strcmp(backend, "auto") == 0 || strcmp(backend, "nccl") == 0;
    bool numbered = getenv("RANK") || getenv("SLURM_PROCID") || dt_launch_rank() == NULL;
    elastic = rc == 0 && *s->distributed.elastic && !opt.dry_run;
    over_tcp = *s->distributed.rendezvous ? numbered : chosen && dt_meeting_place_is_announced();
    if (elastic)
        return meet_later(s, err);
    rc = rc < 0 ? rc : check_backend(s, err);
    char *job = rc < 0 || opt.output == NULL ? NULL : dt_path_real(opt.output);
    const struct dt_opening how = {
        .where = *s->distributed.rendezvous ? s->distributed.rendezvous : NULL,
        .interface = rc == 0 && *s->distributed.interface ? s->distributed.interface : NULL,
        .job = job,
        .remedy = "start ranks with torchrun, mpirun, or srun --mpi=pmix; or set "
                  "distributed.rendezvous, where they meet without MPI; or "
                  "distributed.backend=self, to train each separately",
        .patience =
            over_tcp && rc < 0 ? DT_COMM_FIRST_RANK_REPORTS : (double)s->distributed.timeout,
        .encrypt = rc == 0 && s->distributed.encrypt,
        .stop = stop_signal,
    };
    const char *name = over_tcp ? "tcp" : !alone ? backend : dt_launch_rank() ? "mpi" : "self";
    bool opened = dt_comm_open(&world, name, &how, &failure) == 0;
    free(job);
    if (!opened) {
        *err = rc < 0 ? *err : failure;
        return err->code;
    }
    if (rc == 0 && alone && dt_comm_size(world) > 1)
        rc = dt_fail(err, DT_EINVALID,
                     "distributed.backend self is for one rank alone, and there are %d",
                     dt_comm_size(world));
    return dt_comm_agree(world, rc, err);
}

/* The names of an initial classifier's labels, as data.labels. */
static int read_labels(const struct dt_model_config *config, char *names, size_t size,
                       struct dt_error *err)
{
    struct dt_labels labels;
    struct dt_buffer list = DT_BUFFER_EMPTY;
    int rc = dt_labels_read(&labels, opt.init_from, config->num_labels, err);
    for (long i = 0; rc == 0 && i < labels.count; i++) {
        char plain[32];
        snprintf(plain, sizeof plain, "LABEL_%ld", i); /* as transformers */
        const char *name = labels.names ? labels.names[i] : plain;
        if (*name == '\0' || strchr(name, ','))
            rc = dt_fail(err, DT_EINVALID,
                         "%s: label %ld is '%s', but data.labels has names without commas",
                         opt.init_from, i, name);
        dt_buffer_printf(&list, "%s%s", i > 0 ? "," : "", name);
    }
    if (rc == 0 && list.size >= size)
        rc = dt_fail(err, DT_EINVALID, "%s: the names of its labels are longer than data.labels",
                     opt.init_from);
    if (rc == 0)
        snprintf(names, size, "%s", list.data);
    dt_buffer_release(&list);
    dt_labels_release(&labels);
    return rc;
}

/* The model that the adapter of the run is of, unless --init-from says where it is now. */
static int find_base(const struct dt_settings *parent, struct dt_error *err)
{
    char *base; /* until the program ends */
    if (parent->model.lora.rank == 0 || opt.init_from)
        return 0;
    int rc = dt_adapter_find_base(opt.branch_from, &base, err);
    opt.init_from = base;
    return rc != DT_EMISSING ? rc
                             : dt_fail(err, rc,
                                       "%s: the model of its adapter is not where it was: name it "
                                       "with --init-from",
                                       opt.branch_from);
}

/* The branch's own settings are read over those of the run that it branches from. */
static int read_branch(struct dt_settings *settings, struct dt_error *err)
{
    struct dt_settings parent;
    char *checkpoint;
    DT_TRY(dt_checkpoint_find(opt.branch_from, &checkpoint, err));
    if (checkpoint)                                 /* of a run */
        opt.branch_from = dt_path_real(checkpoint); /* until the program ends */
    free(checkpoint);
    DT_TRY(dt_checkpoint_read_settings(opt.branch_from, &parent, err));
    DT_TRY(find_base(&parent, err));
    return dt_settings_read_branch(settings, &parent, opt.config, opt.set.items, opt.set.count,
                                   err);
}

/* After an error the rest is still read, so that ranks can meet and all report it. */
static int read_settings(struct dt_settings *settings, struct dt_error *err)
{
    char names[DT_SETTING_STRING_SIZE] = "";
    if (opt.branch_from)
        return read_branch(settings, err);
    struct dt_initial_model initial = {.path = opt.init_from, .labels = names};
    struct dt_error later;
    int rc = opt.init_from ? dt_model_read_config(&initial.config, opt.init_from, err) : 0;
    rc = rc < 0 || initial.config.num_labels == 0
             ? rc
             : read_labels(&initial.config, names, sizeof names, err);
    int next = dt_settings_read(settings, opt.init_from && rc == 0 ? &initial : NULL, opt.config,
                                opt.set.items, opt.set.count, rc < 0 ? &later : err);
    return rc < 0 ? rc : next;
}

int main(int argc, char **argv)
{
    struct dt_error err;
    struct dt_settings settings;
    bool stopped = false;
    if (!leads())
        dt_program_delay_usage(DT_COMM_FIRST_RANK_REPORTS);
    dt_options_set_fetch(dt_hub_fetch);
    int first = dt_options_parse(&command, argc, argv);
    int rc = read_settings(&settings, &err);
    if (rc == 0 && opt.world > 0)
        rc = dt_launch_number(opt.rank, opt.world, &err);
    if (rc == 0 && opt.print_config)
        return leads() ? print_settings(&settings) : 0;
    name_source();
    if (rc == 0)
        take_operands(&settings, argc - first, argv + first);
    signal(SIGPIPE, SIG_IGN);
    stop_signal = dt_stop_watch();
    rc = meet(&settings, rc, &err);
    if (rc == DT_ESTOP)
        dt_stop_now(*stop_signal);
    dt_stop_attend(false); /* no results to save before training: a signal ends the process */
    rc = rc < 0 ? rc : open_and_run(data_path, &settings, &stopped, &err);
    if (rc == DT_ESTOP) { /* while ranks of an elastic run met */
        dt_program_warn("stopped by a signal; the same command resumes from the newest checkpoint");
        dt_stop_now(*stop_signal);
    }
    if (rc < 0)
        return fail(&err);
    if (has_left)
        dt_program_warn("left the run by a signal; the same command joins it again");
    else if (stopped && leads())
        dt_program_warn("stopped by a signal; the same command resumes from here");
    dt_comm_close(world);
    if (stopped)
        dt_stop_now(*stop_signal ? *stop_signal : SIGTERM);
    return dt_finish_stdout();
}
