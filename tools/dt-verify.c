/* SPDX-License-Identifier: MIT */
/* dt-verify: checks files and runs against what was recorded about them. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/program.h"
#include "base/stop.h"
#include "hub/hub.h"
#include "options/options.h"
#include "settings/settings.h"
#include "verify/document.h"
#include "verify/files.h"
#include "verify/replay.h"
#include "verify/report.h"
#include "verify/steps.h"

static struct {
    const char *signature, *output, *documents, *data, *init_from, *adapter, *reference, *deep,
        *device;
    struct dt_string_list inputs, set;
    long from, threads;
    bool plan, quiet;
} opt = {.output = "replay", .device = "cpu", .from = -1};

static const struct dt_option options[] = {
    {"signature", 0, DT_OPTION_STRING, &opt.signature, "KEYS",
     "also verify that a key of the file KEYS signed each manifest", .reads = true},
    {"output", 'o', DT_OPTION_STRING, &opt.output, "DIR",
     "replay in the new directory DIR (default: replay)"},
    {"input", 0, DT_OPTION_LIST, &opt.inputs, "OLD=NEW",
     "read NEW where the recorded command read OLD"},
    {"documents", 0, DT_OPTION_STRING, &opt.documents, "FILE",
     "ID is the id or url of a document in FILE", .reads = true},
    {"plan", 0, DT_OPTION_FLAG, &opt.plan, NULL, "print the makefile of a replay, and run nothing"},
    {"data", 0, DT_OPTION_STRING, &opt.data, "PATH", "where the training data of the run are now",
     .reads = true},
    {"from", 0, DT_OPTION_INT, &opt.from, "STEP",
     "recompute from the checkpoint of that step; 0: from the initial parameters", .min = 0,
     .max = 1e12},
    {"init-from", 0, DT_OPTION_STRING, &opt.init_from, "DIR",
     "the model whose parameters the run began with", .reads = true},
    {"adapter", 0, DT_OPTION_STRING, &opt.adapter, "DIR",
     "the adapter that was merged into that model", .reads = true, .with = "init-from"},
    {"reference", 0, DT_OPTION_STRING, &opt.reference, "DIR",
     "the reference model of a run with dpo", .reads = true},
    {"deep", 0, DT_OPTION_STRING, &opt.deep, "FILE",
     "also compare hashes of traced steps, of FILE or of a run", .reads = true},
    {"set", 0, DT_OPTION_LIST, &opt.set, "KEY=VALUE",
     "a setting of the layout, such as distributed.tp=2", .words = dt_settings_add_words},
    {"device", 0, DT_OPTION_STRING, &opt.device, "NAME", "cpu (the default), cpu-avx512, ...",
     .words = dt_device_add_names},
    {"threads", 'j', DT_OPTION_INT, &opt.threads, "N", "use N threads (default: all processors)",
     .min = 1, .max = 4096},
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "show no progress"},
    {NULL},
};

static int run_files(struct dt_verify_report *r, char **operands, int count, struct dt_error *err)
{
    if (count == 0)
        dt_program_usage("files needs a PATH");
    for (int i = 0; i < count; i++)
        DT_TRY(dt_verify_files(operands[i], opt.signature, r, err));
    return 0;
}

static int run_replay(struct dt_verify_report *r, char **operands, int count, struct dt_error *err)
{
    if (count != 1)
        dt_program_usage("replay needs one PATH");
    for (int i = 0; i < opt.inputs.count; i++)
        if (strchr(opt.inputs.items[i], '=') == NULL)
            dt_program_usage("--input takes OLD=NEW, not '%s'", opt.inputs.items[i]);
    char *programs = dt_program_installed_path("bin");
    int rc = dt_verify_replay(&(struct dt_verify_replay_options){.path = operands[0],
                                                                 .directory = opt.output,
                                                                 .programs = programs,
                                                                 .moved = opt.inputs.items,
                                                                 .moved_count = opt.inputs.count,
                                                                 .plan_only = opt.plan,
                                                                 .stop = dt_stop_watch()},
                              r, err);
    free(programs);
    free(opt.inputs.items);
    return rc;
}

#define PATIENCE 600 /* timeout of the ranks' messages, seconds */

static int recompute(struct dt_verify_report *r, char **operands, int count, struct dt_comm *world,
                     struct dt_error *err)
{
    struct dt_device *dev;
    int threads = (int)opt.threads;
    if (threads == 0 && dt_comm_size(world) > 1)
        DT_TRY(dt_comm_processors(world, &threads, err));
    int opened = dt_device_open(&dev, opt.device, threads, err);
    DT_TRY(dt_comm_agree(world, opened, err));
    const struct dt_verify_steps_options how = {.run = operands[0],
                                                .steps = count > 1 ? operands[1] : NULL,
                                                .from = opt.from,
                                                .data = opt.data,
                                                .init_from = opt.init_from,
                                                .adapter = opt.adapter,
                                                .reference = opt.reference,
                                                .deep = opt.deep,
                                                .settings = opt.set.items,
                                                .setting_count = opt.set.count,
                                                .device = dev,
                                                .comm = world,
                                                .quiet = opt.quiet};
    int rc = dt_comm_link(world, dev, false, err);
    rc = rc < 0 ? rc : dt_verify_steps(&how, r, err);
    dt_comm_unlink(world);
    dt_device_close(dev);
    return rc;
}

/* A launcher ends the other ranks when one exits with a status other than 0: rank 0 prints before
 * any rank exits. */
static int print_before_ending(struct dt_verify_report *r, struct dt_comm *world,
                               struct dt_error *err)
{
    return dt_comm_agree(world, dt_output_flush(r->out, err), err);
}

static int run_steps(struct dt_verify_report *r, char **operands, int count, struct dt_error *err)
{
    struct dt_comm *world;
    if (count < 1 || count > 2)
        dt_program_usage("steps needs a RUN, and the range of steps if not all");
    DT_TRY(dt_comm_open(&world, "auto", &(struct dt_opening){.patience = PATIENCE}, err));
    int rc = recompute(r, operands, count, world, err);
    if (rc < 0 && dt_comm_size(world) > 1)
        return dt_comm_fail(world, err);
    rc = rc < 0 ? rc : print_before_ending(r, world, err);
    dt_comm_close(world);
    return rc;
}

static int run_document(struct dt_verify_report *r, char **operands, int count,
                        struct dt_error *err)
{
    if (count != 2)
        dt_program_usage("document needs RUN and ID");
    unsetenv("DT_SET"); /* changes settings of new runs, not those of this one */
    return dt_verify_document(
        &(struct dt_verify_document_options){
            .run = operands[0], .id = operands[1], .documents = opt.documents, .data = opt.data},
        r, err);
}

/* The modes: a row here, a function above, the mode itself in lib/verify/MODE.c. */
static const struct dt_use uses[] = {
    {"files", "PATH ...", NULL, "signature"},
    {"replay", "PATH", NULL, "output input plan"},
    {"steps", "RUN [A:B]", NULL,
     "data from init-from adapter reference deep set device threads quiet"},
    {"document", "RUN ID", NULL, "documents data"},
    {NULL},
};

static int (*const runs[])(struct dt_verify_report *r, char **operands, int count,
                           struct dt_error *err) = {run_files, run_replay, run_steps, run_document};

static const struct dt_command command = {
    "dt-verify", "check files and runs against what was recorded about them", "", options, uses};

int main(int argc, char **argv)
{
    struct dt_error err;
    struct dt_output out;
    dt_options_set_fetch(dt_hub_fetch);
    int first = dt_options_parse(&command, argc, argv);
    int use = dt_options_find_use(&command, first < argc ? argv[first] : NULL);
    dt_options_check_use(&command, &uses[use]);
    struct dt_verify_report report = {.out = &out};
    int rc = dt_output_open(&out, "-", &err);
    if (rc == 0) {
        rc = runs[use](&report, argv + first + 1, argc - first - 1, &err);
        int written = rc < 0 ? dt_output_flush(&out, &(struct dt_error){0}) : 0;
        rc = rc < 0 || written < 0 ? rc : dt_output_commit(&out, &err);
    }
    dt_output_abandon(&out);
    return rc < 0 ? dt_program_report(&err) : report.differ > 0;
}
