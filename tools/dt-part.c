/* SPDX-License-Identifier: MIT */
/* dt-part: runs the parts of a job with a ledger, and shows the ledger. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/program.h"
#include "base/stop.h"
#include "options/options.h"
#include "parts/ledger.h"

static struct {
    const char *ledger, *stage, *part;
    struct dt_string_list outputs, stats;
    bool json;
} opt;

static const struct dt_option options[] = {
    {"ledger", 0, DT_OPTION_STRING, &opt.ledger, "DIR", "the directory of the records"},
    {"stage", 0, DT_OPTION_STRING, &opt.stage, "NAME", "the stage that COMMAND is part of"},
    {"part", 0, DT_OPTION_STRING, &opt.part, "I/N", "COMMAND is part I of N, counted from 0"},
    {"produces", 0, DT_OPTION_LIST, &opt.outputs, "PATH",
     "a file or a directory of shards that COMMAND writes"},
    {"stats", 0, DT_OPTION_LIST, &opt.stats, "FILE", "statistics that COMMAND writes"},
    {"json", 0, DT_OPTION_FLAG, &opt.json, NULL, "print the stages as JSON"},
    {NULL}};

static int run_part(char **operands, int count, struct dt_error *err)
{
    struct dt_error usage;
    struct dt_ledger_part part = {.stage = opt.stage,
                                  .command = operands,
                                  .outputs = opt.outputs.items,
                                  .output_count = opt.outputs.count,
                                  .stats = opt.stats.items,
                                  .stats_count = opt.stats.count};
    char complaint[256];
    int status;
    if (count == 0)
        dt_program_usage("run needs a COMMAND after --");
    if (dt_document_part_parse(opt.part, &part.part, &usage) < 0 ||
        dt_ledger_check_stage(opt.stage, &usage) < 0)
        dt_program_usage("%s", usage.text);
    part.stop = dt_stop_watch();
    int rc = dt_ledger_run(opt.ledger, &part, &status, complaint, err);
    free(opt.outputs.items);
    free(opt.stats.items);
    DT_TRY(rc);
    if (status != 0)
        dt_program_warn("%s %s: failed with status %d: %s", opt.stage, opt.part, status, complaint);
    return status;
}

static int list(char **operands, int count, struct dt_error *err)
{
    struct json_object *stages;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    if (count == 0)
        dt_program_usage("list needs a LEDGER");
    for (int i = 1; i < count; i++)
        if (dt_ledger_check_plan(operands[i], err) < 0)
            dt_program_usage("%s", err->text);
    DT_TRY(dt_ledger_read(&stages, operands[0], operands + 1, count - 1, err));
    if (opt.json) {
        dt_json_add_value(&text, stages, DT_JSON_SPACED);
        dt_buffer_add_char(&text, '\n');
    } else {
        dt_ledger_print(stages, &text);
    }
    dt_program_print(text.data);
    long left = dt_ledger_left(stages);
    dt_buffer_release(&text);
    json_object_put(stages);
    if (left > 0)
        dt_program_warn("%ld part%s not done", left, left == 1 ? " is" : "s are");
    return left > 0;
}

static const struct dt_use uses[] = {
    {"run", "-- COMMAND [ARG ...]", "ledger stage part", "produces stats"},
    {"list", "LEDGER [STAGE[/N] ...]", NULL, "json"},
    {NULL},
};

static int (*const runs[])(char **operands, int count, struct dt_error *err) = {run_part, list};

static const struct dt_command command = {
    "dt-part", "run the parts of a job, and show which are done", "", options, uses};

int main(int argc, char **argv)
{
    struct dt_error err;
    int first = dt_options_parse(&command, argc, argv);
    int use = dt_options_find_use(&command, first < argc ? argv[first] : NULL);
    dt_options_check_use(&command, &uses[use]);
    int rc = runs[use](argv + first + 1, argc - first - 1, &err);
    int finished = rc < 0 ? 0 : dt_finish_stdout();
    return rc < 0 ? dt_program_report(&err) : rc ? rc : finished;
}
