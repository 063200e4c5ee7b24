/* SPDX-License-Identifier: MIT */
/* dt-track: sends the metrics of a run of dt-train to TensorBoard and MLflow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/path.h"
#include "base/program.h"
#include "base/stop.h"
#include "options/options.h"
#include "track/track.h"

static struct {
    const char *tensorboard, *mlflow, *experiment;
    struct dt_string_list texts, artifacts;
    double interval, patience, give_up;
    bool once, quiet, cleartext;
} opt = {.interval = 1, .patience = 60, .give_up = 600};

static const struct dt_option options[] = {
    {"tensorboard", 't', DT_OPTION_STRING, &opt.tensorboard, "DIR",
     "write a TensorBoard event file to DIR"},
    {"mlflow", 'm', DT_OPTION_STRING, &opt.mlflow, "URL",
     "log to the MLflow server at URL (default: $MLFLOW_TRACKING_URI)"},
    {"experiment", 'e', DT_OPTION_STRING, &opt.experiment, "NAME",
     "MLflow experiment (default: tracking.project of the run, or dt)"},
    {"text", 0, DT_OPTION_LIST, &opt.texts, "FILE", "send FILE, a text sample, at the end"},
    {"artifact", 0, DT_OPTION_LIST, &opt.artifacts, "FILE", "upload FILE to MLflow at the end"},
    {"interval", 0, DT_OPTION_REAL, &opt.interval, "S",
     "read the metrics every S seconds (default 1)", .min = 0.01, .max = 3600, .without = "once"},
    {"patience", 0, DT_OPTION_REAL, &opt.patience, "S",
     "wait S seconds for a run to start or resume (default 60)", .min = 0, .max = 1e9,
     .without = "once"},
    {"give-up", 0, DT_OPTION_REAL, &opt.give_up, "S",
     "after the run, retry an unreachable server for S seconds (default 600)", .min = 0, .max = 1e9,
     .without = "once"},
    {"cleartext", 0, DT_OPTION_FLAG, &opt.cleartext, NULL,
     "allow a token or password to be sent unencrypted, to an http:// server"},
    {"once", '1', DT_OPTION_FLAG, &opt.once, NULL, "send what RUN holds now, and exit"},
    {"quiet", 'q', DT_OPTION_FLAG, &opt.quiet, NULL, "print only errors"},
    {NULL},
};

enum { EVENT_FILES, SERVER };

static const struct dt_use uses[] = {
    [EVENT_FILES] = {"", "RUN", "tensorboard", "text interval patience once quiet"},
    [SERVER] =
        {"--mlflow", "RUN", NULL,
         "tensorboard mlflow experiment text artifact interval patience give-up cleartext once "
         "quiet"},
    {NULL},
};

static const struct dt_command command = {
    "dt-track", "follow a run into TensorBoard event files and an MLflow server", "", options,
    uses};

static void say(const char *text)
{
    if (!opt.quiet)
        dt_program_warn("%s", text);
}

static void print_report(const struct dt_track_report *r)
{
    static const char *const states[] = {[DT_RUN_RUNNING] = "running",
                                         [DT_RUN_FINISHED] = "finished",
                                         [DT_RUN_STOPPED] = "stopped",
                                         [DT_RUN_BROKEN] = "failed"};
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_buffer_printf(&text, "run          %s, step %ld\n", states[r->state], r->last_step);
    if (r->event_file)
        dt_buffer_printf(&text, "tensorboard  %s\n", r->event_file);
    if (r->mlflow_run)
        dt_buffer_printf(&text, "mlflow       %s\n", r->mlflow_run);
    dt_program_print(text.data);
    dt_buffer_release(&text);
}

/* The server of --mlflow or the environment; false: none. */
static bool find_server(struct dt_server *server)
{
    struct dt_error err;
    const char *url = opt.mlflow ? opt.mlflow : getenv("MLFLOW_TRACKING_URI");
    if (url == NULL || *url == '\0')
        return false;
    if (dt_server_parse(server, url, &err) < 0)
        dt_program_usage("%s", err.text);
    return true;
}

/* Servers and event files know a file by its name alone: a second one would replace the first, or
 * be left out. */
static void check_names(const struct dt_string_list *a, const struct dt_string_list *b)
{
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < (a == b ? i : b->count); k++)
            if (strcmp(dt_path_base(a->items[i]), dt_path_base(b->items[k])) == 0)
                dt_program_usage("'%s' and '%s' would be sent under one name", b->items[k],
                                 a->items[i]);
}

int main(int argc, char **argv)
{
    struct dt_error err;
    struct dt_track_report report;
    int first = dt_options_parse(&command, argc, argv);
    if (argc - first != 1)
        dt_program_usage("one RUN is needed: the output directory of dt-train");
    struct dt_server server = {.url = NULL};
    bool with_server = find_server(&server);
    if (!with_server && opt.tensorboard == NULL)
        dt_program_usage("--tensorboard DIR or --mlflow URL is needed");
    dt_options_check_use(&command, &uses[with_server ? SERVER : EVENT_FILES]);
    check_names(&opt.texts, &opt.texts);
    check_names(&opt.artifacts, &opt.artifacts);
    check_names(&opt.artifacts, &opt.texts);
    if (with_server && dt_server_log_in(&server, opt.cleartext, &err) < 0)
        return dt_program_report(&err);
    const volatile sig_atomic_t *stop = dt_stop_watch();
    const struct dt_track_options o = {.run = argv[first],
                                       .tensorboard = opt.tensorboard,
                                       .mlflow = with_server ? &server : NULL,
                                       .experiment = opt.experiment,
                                       .texts = opt.texts.items,
                                       .artifacts = opt.artifacts.items,
                                       .text_count = opt.texts.count,
                                       .artifact_count = opt.artifacts.count,
                                       .interval = opt.interval,
                                       .patience = opt.patience,
                                       .give_up = opt.give_up,
                                       .once = opt.once,
                                       .locks = "/proc/locks",
                                       .stop = stop,
                                       .say = say};
    int rc = dt_track(&o, &report, &err);
    dt_server_release(&server);
    if (rc < 0 && *stop)
        dt_stop_now(*stop);
    if (rc < 0)
        return dt_program_report(&err);
    if (!opt.quiet)
        print_report(&report);
    free(report.event_file);
    free(report.mlflow_run);
    return dt_finish_stdout();
}
