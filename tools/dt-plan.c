/* SPDX-License-Identifier: MIT */
/* dt-plan: predicts memory, traffic and time of a layout before it runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/program.h"
#include "options/options.h"
#include "plan/published.h"
#include "plan/report.h"

#define PUBLISHED  "share/dt/clusters/published.jsonl"
#define MOST_SPANS 1e6

static struct {
    const char *config, *cluster, *measured, *trace;
    struct dt_string_list set, machine;
    long devices, search, best, seed;
    double stragglers;
    bool json, validate, quiet;
} opt = {.cluster = "8xh100", .best = 10, .seed = 1, .stragglers = -1};

static const struct dt_option options[] = {
    {"config", 'c', DT_OPTION_STRING, &opt.config, "FILE", "read settings from FILE, as dt-train",
     .reads = true},
    {"set", 0, DT_OPTION_LIST, &opt.set, "KEY=VALUE",
     "change one setting, such as distributed.tp=8", .words = dt_settings_add_words},
    {"cluster", 0, DT_OPTION_STRING, &opt.cluster, "CLUSTER",
     "a file, or a name in share/dt/clusters (default 8xh100)", .reads = true,
     .words = dt_cluster_add_names},
    {"machine", 0, DT_OPTION_LIST, &opt.machine, "KEY=VALUE",
     "change one value of the cluster, such as cluster.nodes=64", .words = dt_cluster_add_settings},
    {"devices", 'n', DT_OPTION_INT, &opt.devices, "N", "plan for N devices (default pp * cp * tp)",
     .min = 1, .max = 131072},
    {"search", 0, DT_OPTION_INT, &opt.search, "N", "find the fastest layouts that fit on N devices",
     .min = 1, .max = 131072},
    {"best", 0, DT_OPTION_INT, &opt.best, "N", "--search: show N (default 10)", .min = 1,
     .max = 1000},
    {"measured", 0, DT_OPTION_STRING, &opt.measured, "FILE",
     "start from what dt-bench --json step measured with these settings", .reads = true},
    {"stragglers", 0, DT_OPTION_REAL, &opt.stragglers, "S",
     "standard deviation of the devices' slowdown (default: the cluster's)", .min = 0, .max = 10},
    {"seed", 0, DT_OPTION_INT, &opt.seed, "N", "seed of stragglers and failures (default 1)",
     .min = 0, .max = 1e15},
    {"trace", 0, DT_OPTION_STRING, &opt.trace, "FILE",
     "write the step's timeline as trace events; -: to stdout, instead of the plan", .writes = ""},
    {"validate", 0, DT_OPTION_FLAG, &opt.validate, NULL,
     "compare with published figures, or with those of FILE"},
    {"json", 0, DT_OPTION_FLAG, &opt.json, NULL, "print one JSON object"},
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "show no progress"},
    {NULL},
};

enum { PLAN, SEARCH, VALIDATE };

static const struct dt_use uses[] = {
    [PLAN] = {"", "", NULL,
              "config set cluster machine devices measured stragglers seed trace json "
              "quiet"},
    [SEARCH] = {"--search", "", "search",
                "config set cluster machine best measured stragglers seed json quiet"},
    [VALIDATE] = {"--validate", "[FILE]", "validate", "json"},
    {NULL},
};

static const struct dt_command command = {"dt-plan", "predict memory, traffic and time of a layout",
                                          "", options, uses};

static void print_json(struct json_object *object)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_json_add_value(&text, object, DT_JSON_INDENTED);
    dt_buffer_add_char(&text, '\n');
    dt_program_print(text.data);
    dt_buffer_release(&text);
    json_object_put(object);
}

static void print_text(struct dt_buffer *text)
{
    dt_program_print(text->data);
    dt_buffer_release(text);
}

static int search(const struct dt_plan_request *request, struct dt_error *err)
{
    struct dt_search found;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    int rc = dt_search(&found, request, opt.search, (int)opt.best, err);
    dt_progress_clear(request->simulation.progress);
    DT_TRY(rc);
    if (opt.json) {
        print_json(dt_report_search_json(&found, request));
    } else {
        dt_report_search(&text, &found, request, opt.search);
        print_text(&text);
    }
    dt_search_release(&found);
    return 0;
}

/* The trace then replaces the plan. */
static bool trace_is_stdout(void)
{
    return opt.trace && strcmp(opt.trace, "-") == 0;
}

/* A timeline holds a span per forward and backward, with ZeRO-3 per layer, in memory. */
static int check_trace(const struct dt_plan_request *request, const struct dt_plan_layout *l,
                       struct dt_error *err)
{
    double runs = (double)dt_layout_chunks(l), layers = (double)request->settings->model.num_layers;
    double spans = 2 * (double)l->batches *
                   (l->zero_stage == 3 && dt_layout_dp_cp_size(l) > 1 ? layers : runs);
    if (spans <= MOST_SPANS)
        return 0;
    return dt_fail(
        err, DT_EINVALID,
        "--trace %s: %.3g spans exceed the limit of %.0f: use fewer than %ld micro-batches",
        opt.trace, spans, MOST_SPANS, l->batches);
}

static struct dt_timeline_rates rates_of(const struct dt_plan_request *request)
{
    const struct dt_cluster *c = request->cluster;
    size_t size = dt_dtype_size((enum dt_dtype)request->settings->training.precision);
    return (struct dt_timeline_rates){dt_cluster_gemm_rate(c, size),
                                      dt_cluster_attention_rate(c, size), dt_cluster_memory_rate(c),
                                      c->device.launch * 1e-6};
}

static int plan(struct dt_plan_request *request, const struct dt_plan_layout *layout,
                struct dt_error *err)
{
    struct dt_plan made;
    struct dt_timeline timeline = {0};
    struct dt_buffer text = DT_BUFFER_EMPTY;
    if (opt.trace)
        DT_TRY(check_trace(request, layout, err));
    request->simulation.timeline = opt.trace ? &timeline : NULL;
    int rc = dt_plan_make(&made, request, layout, err);
    dt_progress_clear(request->simulation.progress);
    timeline.rates = rates_of(request);
    if (rc == 0 && opt.trace)
        rc = dt_timeline_write(&timeline, opt.trace, err);
    dt_timeline_release(&timeline);
    DT_TRY(rc);
    if (trace_is_stdout())
        return 0;
    if (opt.json) {
        print_json(dt_report_plan_json(&made, request));
    } else {
        dt_report_plan(&text, &made, request);
        print_text(&text);
    }
    return 0;
}

static int run(struct dt_error *err)
{
    struct dt_settings settings;
    struct dt_cluster cluster;
    struct dt_plan_layout layout;
    struct dt_plan_request request;
    struct dt_progress progress;
    DT_TRY(dt_plan_request_read(&request, &settings, &cluster, opt.search ? NULL : &layout,
                                &(struct dt_plan_source){.config = opt.config,
                                                         .cluster = opt.cluster,
                                                         .measured = opt.measured,
                                                         .set = opt.set.items,
                                                         .machine = opt.machine.items,
                                                         .set_count = opt.set.count,
                                                         .machine_count = opt.machine.count,
                                                         .devices = opt.devices},
                                err));
    if (opt.stragglers >= 0)
        request.simulation.spread = opt.stragglers;
    request.simulation.seed = (uint64_t)opt.seed;
    DT_TRY(dt_plan_check_ranks(&cluster, opt.cluster, opt.search, err));
    dt_progress_init(&progress, opt.quiet);
    request.simulation.progress = &progress;
    return opt.search ? search(&request, err) : plan(&request, &layout, err);
}

static int validate(const char *path, struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    struct json_object *json;
    char *installed = path ? NULL : dt_program_installed_path(PUBLISHED);
    int rc = dt_published_compare(path ? path : installed, &text, &json, err);
    free(installed);
    DT_TRY(rc);
    if (opt.json) {
        print_json(json);
        dt_buffer_release(&text);
    } else {
        print_text(&text);
        json_object_put(json);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct dt_error err;
    int first = dt_options_parse(&command, argc, argv);
    dt_options_check_use(&command, &uses[opt.validate ? VALIDATE : opt.search ? SEARCH : PLAN]);
    if (argc - first > (opt.validate ? 1 : 0))
        dt_program_usage(opt.validate ? "--validate takes one file" : "dt-plan takes no operand");
    if (trace_is_stdout() && opt.json)
        dt_program_usage("--trace - replaces the plan: drop --json");
    int rc = opt.validate ? validate(first < argc ? argv[first] : NULL, &err) : run(&err);
    if (rc < 0)
        return dt_program_report(&err);
    return dt_finish_stdout();
}
