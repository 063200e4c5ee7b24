/* SPDX-License-Identifier: MIT */
#include "track/track.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "hash/hash.h"
#include "track/event-file.h"
#include "track/follow.h"
#include "track/mlflow.h"
#include "json/json-number.h"
#include "json/json.h"

#define MOST_PAUSE  60.0 /* seconds between retries */
#define TEXT_LIMIT  ((size_t)1 << 20)
#define FILE_LIMIT  ((size_t)256 << 20)
#define MEMORY_FILE "track/state.json"

/* What is followed: metrics, and results of tasks. */
static const char *const followed[] = {"metrics.jsonl", "tasks.jsonl"};
enum { METRICS, FOLLOWED = sizeof followed / sizeof *followed };

/* To which they are sent. */
enum sink { EVENTS, MLFLOW, SINKS };

struct tracker {
    const struct dt_track_options *o;
    char *paths[FOLLOWED];
    struct json_object *memory;   /* contents of state.json */
    struct json_object *header;   /* the first line of the metrics, if it names the run */
    double start;                 /* Unix time of the run's start */
    char mark[DT_HASH_HEX];       /* the hash of its first step; "": none yet */
    long last_steps[SINKS];       /* of the metrics that each has read */
    struct json_object *settings; /* NULL until the first checkpoint */

    struct dt_follower files[SINKS][FOLLOWED];

    struct dt_event_file *events;

    struct dt_mlflow *mlflow;
    struct dt_mlflow_options mlflow_options;
    bool waiting; /* the client has unsent points */
    bool settings_sent;
    int files_sent;
    double pause, next; /* backoff in seconds, time of the next attempt */
    double answered;    /* time of the last response */
    bool refused;       /* permanently, for this reason: */
    struct dt_error refusal;
    struct dt_error unread; /* of the first file that could not be read; code 0: none */
};

/* --- state.json ------------------------------------------------------------------------------ */

static char *memory_path(const struct tracker *t)
{
    return dt_path_join(t->o->run, MEMORY_FILE);
}

static int save_memory(const struct tracker *t, struct dt_error *err)
{
    char *path = memory_path(t), *directory = dt_path_join(t->o->run, "track");
    int rc = dt_file_make_directories(directory, err);
    if (rc == 0)
        rc = dt_json_write(path, t->memory, err);
    free(directory);
    free(path);
    return rc;
}

/* The hash of a line: its times and speeds are those of one run. */
static void set_mark(struct tracker *t, struct json_object *line)
{
    const char *text = dt_json_text(line);
    dt_hash_hex(dt_hash(text, strlen(text)), t->mark);
}

/* Reads the current metrics: the header, the mark, and the time of the last line. */
static int scan(struct tracker *t, double *seconds, struct dt_error *err)
{
    struct dt_follower f;
    struct json_object *line;
    double time;
    bool found = true;
    int rc = 0;
    *seconds = 0;
    dt_follow(&f, t->paths[METRICS]);
    while (rc == 0 && found) {
        rc = dt_follow_next(&f, &line, &found, err);
        if (rc < 0 || !found)
            break;
        if (f.number == 1 && !json_object_object_get_ex(line, "step", NULL))
            t->header = json_object_get(line);
        else if (t->mark[0] == '\0')
            set_mark(t, line);
        if (dt_points_time(line, &time) && time != 0)
            *seconds = time;
        json_object_put(line);
    }
    dt_follow_end(&f);
    return rc;
}

/* Start time: modification time of the file minus the training time of its last line. */
static double guess_start(const struct tracker *t, double seconds)
{
    struct stat st;
    if (stat(t->paths[METRICS], &st) < 0)
        return (double)time(NULL);
    return (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec * 1e-9 - seconds;
}

static void make_key(struct tracker *t)
{
    char host[256] = "", hex[DT_HASH_HEX];
    char *real = dt_checked_errno(realpath(t->o->run, NULL));
    gethostname(host, sizeof host - 1);
    char *facts = dt_asprintf("%s %s %.6f %d", host, real ? real : "", t->start, (int)getpid());
    dt_json_object_add(t->memory, "start", dt_json_number(t->start));
    dt_json_object_add(t->memory, "key",
                       dt_json_new_string(dt_hash_hex(dt_hash(facts, strlen(facts)), hex)));
    dt_json_object_add(t->memory, "mlflow", dt_json_new_object());
    free(facts);
    free(real);
}

/* Adds a run under its server's URL, without the password that earlier versions stored. */
static int take_known_run(struct json_object *runs, const char *url, struct json_object *id,
                          const char *path, struct dt_error *err)
{
    struct dt_server server;
    if (!json_object_is_type(id, json_type_string))
        return dt_fail(err, DT_EFORMAT, "%s: the run at '%s' is not a string", path, url);
    if (dt_server_parse(&server, url, err) < 0)
        return dt_fail_context(err, "%s", path);
    dt_json_object_add(runs, server.url, json_object_get(id));
    dt_server_release(&server);
    return 0;
}

static int take_known_runs(struct tracker *t, const char *path, struct dt_error *err)
{
    struct json_object *known, *runs = dt_json_new_object();
    int rc = dt_json_get(t->memory, "mlflow", json_type_object, path, &known, err);
    if (rc == 0) {
        json_object_object_foreach(known, url, id)
        {
            rc = rc < 0 ? rc : take_known_run(runs, url, id, path, err);
        }
    }
    if (rc < 0) {
        json_object_put(runs);
        return DT_EFORMAT;
    }
    bool same = json_object_equal(known, runs);
    dt_json_object_add(t->memory, "mlflow", runs);
    return same ? 0 : save_memory(t, err);
}

/* A damaged state.json is an error: only it knows the server's run, so the user must decide. */
static int read_memory(struct tracker *t, const char *path, struct dt_error *err)
{
    const char *key;
    struct dt_error why;
    int rc = dt_json_read(path, &t->memory, &why);
    if (rc == 0)
        rc = dt_json_get_real(t->memory, "start", path, &t->start, &why);
    if (rc == 0)
        rc = dt_json_get_string(t->memory, "key", path, &key, &why);
    if (rc == 0)
        rc = take_known_runs(t, path, &why);
    if (rc == DT_EFORMAT)
        return dt_fail(err, rc,
                       "%s; remove it to continue: event files stay complete, an MLflow "
                       "server gets a new run",
                       why.text);
    if (rc < 0)
        *err = why;
    return rc;
}

static int remember(struct tracker *t, struct dt_error *err)
{
    char *path = memory_path(t);
    double seconds;
    int rc = scan(t, &seconds, err);
    int known = rc < 0 ? rc : dt_file_probe(path, err);
    if (known > 0)
        rc = read_memory(t, path, err);
    free(path);
    DT_TRY(known);
    if (known > 0)
        return rc;
    t->memory = dt_json_new_object();
    t->start = guess_start(t, seconds);
    make_key(t);
    return save_memory(t, err);
}

static const char *remembered(const struct tracker *t, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(t->memory, name, &value) ? dt_json_text(value) : "";
}

static struct json_object *remembered_runs(const struct tracker *t)
{
    struct json_object *runs = NULL;
    json_object_object_get_ex(t->memory, "mlflow", &runs);
    return runs;
}

static int remember_run(struct tracker *t, struct dt_error *err)
{
    struct json_object *runs = remembered_runs(t);
    const char *id = dt_mlflow_run_id(t->mlflow);
    if (id == NULL || json_object_object_get_ex(runs, t->o->mlflow->url, NULL))
        return 0;
    dt_json_object_add(runs, t->o->mlflow->url, dt_json_new_string(id));
    return save_memory(t, err);
}

/* --- opening -------------------------------------------------------------------------------- */

static void pause_for(const struct tracker *t, double seconds)
{
    const struct timespec slice = {0, 20000000};
    for (double end = dt_clock_now() + seconds; dt_clock_now() < end && !*t->o->stop;)
        nanosleep(&slice, NULL);
}

static int wait_for_metrics(const struct tracker *t, struct dt_error *err)
{
    int there;
    for (double begin = dt_clock_now(); (there = dt_file_probe(t->paths[METRICS], err)) <= 0;
         pause_for(t, 0.2)) {
        DT_TRY(there);
        if (*t->o->stop)
            return dt_fail(err, DT_ESTOP, "stopped by signal %d", (int)*t->o->stop);
        if (t->o->once || dt_clock_now() - begin > t->o->patience)
            return dt_fail(err, DT_EMISSING, "no run: '%s' does not exist", t->paths[METRICS]);
    }
    return 0;
}

static const char *header_text(const struct tracker *t, const char *name)
{
    struct json_object *value;
    return t->header && json_object_object_get_ex(t->header, name, &value) ? dt_json_text(value)
                                                                           : NULL;
}

static void follow_files(struct tracker *t, enum sink sink)
{
    for (int i = 0; i < FOLLOWED; i++)
        dt_follow(&t->files[sink][i], t->paths[i]);
}

static int open_mlflow(struct tracker *t, struct dt_error *err)
{
    const struct dt_http *http;
    struct json_object *id, *runs = remembered_runs(t);
    const char *project = header_text(t, "project"), *tags = header_text(t, "tags");
    DT_TRY(dt_http_load(&http, err));
    t->mlflow_options = (struct dt_mlflow_options){
        .url = t->o->mlflow->url,
        .login = &t->o->mlflow->login,
        .experiment = t->o->experiment ? t->o->experiment
                      : project        ? project
                                       : "dt",
        .run_name = header_text(t, "run"),
        .key = remembered(t, "key"),
        .start = (int64_t)(t->start * 1000),
    };
    if (json_object_object_get_ex(runs, t->o->mlflow->url, &id))
        t->mlflow_options.run_id = dt_json_text(id);
    if (tags) {
        t->mlflow_options.tags = dt_json_new_object();
        dt_json_object_add(t->mlflow_options.tags, "tags", dt_json_new_string(tags));
    }
    follow_files(t, MLFLOW);
    t->answered = dt_clock_now();
    return dt_mlflow_open(&t->mlflow, http, &t->mlflow_options, err);
}

static int open_sinks(struct tracker *t, struct dt_error *err)
{
    DT_TRY(wait_for_metrics(t, err));
    DT_TRY(remember(t, err));
    if (t->o->tensorboard) {
        DT_TRY(dt_event_file_open(&t->events, t->o->tensorboard, t->start, t->mark, err));
        follow_files(t, EVENTS);
    }
    return t->o->mlflow ? open_mlflow(t, err) : 0;
}

/* --- sending --------------------------------------------------------------------------------- */

/* Of the next line of any of the files. *points is owned by the caller. */
static int next_points(struct tracker *t, enum sink sink, struct json_object **line,
                       struct dt_point **points, int *count, bool *found, struct dt_error *err)
{
    struct dt_follower *files = t->files[sink];
    long *last = &t->last_steps[sink];
    int i = -1;
    *found = false;
    *points = NULL;
    while (!*found && ++i < FOLLOWED)
        DT_TRY(dt_follow_next(&files[i], line, found, err));
    *count = *found ? dt_points_of(*line, points) : 0;
    if (i == METRICS && files[i].number == 1) /* also of a file that replaced one with more steps */
        *last = 0;
    if (i == METRICS && *count > 0 && (*points)[0].step > *last)
        *last = (long)(*points)[0].step;
    return 0;
}

static long last_step(const struct tracker *t)
{
    return t->last_steps[EVENTS] > t->last_steps[MLFLOW] ? t->last_steps[EVENTS]
                                                         : t->last_steps[MLFLOW];
}

static int feed_events(struct tracker *t, struct dt_error *err)
{
    struct dt_point *points;
    struct json_object *line;
    bool found = true;
    int count, rc = 0;
    while (rc == 0 && found) {
        DT_TRY(next_points(t, EVENTS, &line, &points, &count, &found, err));
        for (int i = 0; i < count && rc == 0; i++)
            rc = dt_event_file_add(t->events, &points[i], err);
        free(points);
        if (found)
            json_object_put(line);
    }
    if (rc == 0 && t->settings)
        rc = dt_event_file_add_settings(t->events, t->settings, err);
    return rc == 0 ? dt_event_file_flush(t->events, err) : rc;
}

static void say(const struct tracker *t, const char *text)
{
    if (t->o->say)
        t->o->say(text);
}

/* Handles the result of a call to the server; true if it succeeded. Backs off exponentially while
 * the server is unreachable. */
static bool was_taken(struct tracker *t, int rc, const struct dt_error *why)
{
    if (rc == 0) {
        if (t->pause > 0)
            say(t, "the server responds again");
        t->pause = 0;
        t->answered = dt_clock_now();
    } else if (rc == DT_EIO) {
        if (t->pause == 0) {
            char *text = dt_asprintf("%s; new points wait in '%s'", why->text, t->paths[METRICS]);
            say(t, text);
            free(text);
        }
        t->pause = t->pause > 0 ? fmin(2 * t->pause, MOST_PAUSE) : t->o->interval;
        t->next = dt_clock_now() + t->pause;
    } else {
        t->refused = true;
        t->refusal = *why;
    }
    return rc == 0;
}

static int fill_mlflow(struct tracker *t, struct dt_error *err)
{
    struct dt_point *points;
    struct json_object *line;
    bool found = true;
    int count;
    while (found && dt_mlflow_room(t->mlflow)) {
        DT_TRY(next_points(t, MLFLOW, &line, &points, &count, &found, err));
        for (int i = 0; i < count; i++)
            dt_mlflow_add(t->mlflow, &points[i]);
        t->waiting = t->waiting || count > 0;
        free(points);
        if (found)
            json_object_put(line);
    }
    return 0;
}

/* Sends until no point is left, or the server is unreachable. */
static int feed_mlflow(struct tracker *t, struct dt_error *err)
{
    struct dt_error why;
    while (!t->refused && dt_clock_now() >= t->next) {
        DT_TRY(fill_mlflow(t, err));
        if (t->waiting && !was_taken(t, dt_mlflow_send(t->mlflow, &why), &why))
            return 0;
        DT_TRY(remember_run(t, err));
        if (!t->waiting)
            break;
        t->waiting = false;
    }
    if (!t->refused && !t->waiting && t->settings && !t->settings_sent && dt_clock_now() >= t->next)
        t->settings_sent =
            was_taken(t, dt_mlflow_send_settings(t->mlflow, t->settings, &why), &why);
    return 0;
}

static int feed(struct tracker *t, struct dt_error *err)
{
    if (t->settings == NULL)
        t->settings = dt_run_watch_settings(t->o->run);
    if (t->events)
        DT_TRY(feed_events(t, err));
    return t->mlflow ? feed_mlflow(t, err) : 0;
}

/* --- end of the run ------------------------------------------------------------------------- */

/* Reads a file to send; false if it cannot be read, which is the error at the end, after what else
 * is sent. */
static bool read_file(struct tracker *t, const char *path, size_t limit, char **text, size_t *size)
{
    struct dt_error why;
    bool good = dt_file_read(path, limit, text, size, &why) == 0;
    if (!good && t->unread.code == 0)
        t->unread = why;
    return good;
}

static int add_texts(struct tracker *t, struct dt_error *err)
{
    for (int i = 0; i < t->o->text_count; i++) {
        char *text;
        size_t size;
        if (!read_file(t, t->o->texts[i], TEXT_LIMIT, &text, &size))
            continue;
        char *tag = dt_asprintf("samples/%s", dt_path_base(t->o->texts[i]));
        int rc = dt_event_file_add_text(t->events, tag, last_step(t), text, size, err);
        free(text);
        free(tag);
        DT_TRY(rc);
    }
    return 0;
}

/* Of the run, those that exist. */
static const char *const own_files[] = {"metrics.jsonl", "tasks.jsonl",
                                        "latest/trainer/config.yaml", "latest/trainer/lineage.txt"};
enum { OWN_FILES = sizeof own_files / sizeof *own_files };

/* The file to send after count others; NULL after the last. Owned by the caller. */
static char *file_to_send(const struct tracker *t, int count)
{
    const struct dt_track_options *o = t->o;
    if (count < OWN_FILES)
        return dt_path_join(o->run, own_files[count]);
    count -= OWN_FILES;
    if (count < o->text_count)
        return dt_strdup(o->texts[count]);
    count -= o->text_count;
    return count < o->artifact_count ? dt_strdup(o->artifacts[count]) : NULL;
}

static int send_file(struct tracker *t, const char *path, bool own, struct dt_error *err)
{
    struct dt_error ignored;
    char *data;
    size_t size;
    if (own && dt_file_probe(path, &ignored) == 0)
        return 0;
    if (!read_file(t, path, FILE_LIMIT, &data, &size))
        return 0;
    int rc = dt_mlflow_send_file(t->mlflow, data, size, dt_path_base(path), err);
    free(data);
    return rc;
}

/* Sends the existing files, each once, also across retries. */
static int send_files(struct tracker *t, struct dt_error *err)
{
    for (char *path; (path = file_to_send(t, t->files_sent)); t->files_sent++) {
        int rc = send_file(t, path, t->files_sent < OWN_FILES, err);
        free(path);
        DT_TRY(rc);
    }
    return 0;
}

static int send_end(struct tracker *t, enum dt_run_state state, struct dt_error *err)
{
    static const char *const names[] = {[DT_RUN_RUNNING] = "RUNNING",
                                        [DT_RUN_FINISHED] = "FINISHED",
                                        [DT_RUN_STOPPED] = "KILLED",
                                        [DT_RUN_BROKEN] = "FAILED"};
    if (t->settings && !t->settings_sent)
        DT_TRY(dt_mlflow_send_settings(t->mlflow, t->settings, err));
    t->settings_sent = true;
    if (state != DT_RUN_RUNNING) {
        int rc = send_files(t, err);
        if (rc == DT_EMISSING)
            say(t, err->text);
        else if (rc < 0)
            return rc;
    }
    return dt_mlflow_set_status(t->mlflow, names[state], err);
}

/* Sends the rest; retries for give_up seconds, or not at all with once. */
static int finish_mlflow(struct tracker *t, enum dt_run_state state, struct dt_error *err)
{
    struct dt_error why;
    for (bool done = false; !done && !t->refused;) {
        DT_TRY(feed_mlflow(t, err));
        if (!t->refused && !t->waiting && dt_clock_now() >= t->next)
            done = was_taken(t, send_end(t, state, &why), &why);
        if (done || t->refused)
            break;
        if (t->o->once || *t->o->stop || dt_clock_now() - t->answered > t->o->give_up)
            return dt_fail(err, DT_EIO,
                           "%s does not respond; nothing is lost: run the same command again",
                           t->o->mlflow->url);
        pause_for(t, fmax(0.05, fmin(t->next - dt_clock_now(), t->o->interval)));
    }
    if (t->refused) {
        *err = t->refusal;
        return err->code;
    }
    return remember_run(t, err);
}

static int finish(struct tracker *t, enum dt_run_state state, struct dt_error *err)
{
    if (t->events) {
        DT_TRY(add_texts(t, err));
        /* Readers keep the first end. What was stopped can be resumed, so it has none yet. */
        if (state == DT_RUN_FINISHED || state == DT_RUN_BROKEN)
            DT_TRY(dt_event_file_add_end(t->events, state == DT_RUN_FINISHED, err));
        DT_TRY(dt_event_file_flush(t->events, err));
    }
    if (t->mlflow)
        DT_TRY(finish_mlflow(t, state, err));
    if (t->unread.code != 0)
        *err = t->unread;
    return t->unread.code;
}

/* Follows the run to its end, or to a stop. The end is confirmed by a second read of the lock
 * table, because one read may miss a line of a table that changes meanwhile. */
static int follow(struct tracker *t, enum dt_run_state *state, struct dt_error *err)
{
    bool seen = false;
    for (double begin = dt_clock_now();; pause_for(t, t->o->interval)) {
        *state = dt_run_watch_state(t->o->run, last_step(t), t->o->locks);
        DT_TRY(
            feed(t, err)); /* after reading the state, so that no line before the end is missed */
        seen = seen || *state == DT_RUN_RUNNING;
        bool over = *state != DT_RUN_RUNNING &&
                    (seen || *state == DT_RUN_FINISHED || dt_clock_now() - begin > t->o->patience);
        *state = dt_run_watch_state(t->o->run, last_step(t), t->o->locks);
        if (t->o->once || *t->o->stop || (over && *state != DT_RUN_RUNNING))
            return 0;
    }
}

static void close_all(struct tracker *t)
{
    struct dt_error ignored;
    if (t->events) {
        if (dt_event_file_close(t->events, &ignored) < 0)
            say(t, ignored.text);
    }
    dt_mlflow_close(t->mlflow);
    json_object_put(t->mlflow_options.tags);
    json_object_put(t->settings);
    json_object_put(t->header);
    json_object_put(t->memory);
    for (int i = 0; i < FOLLOWED; i++) {
        for (int sink = 0; sink < SINKS; sink++)
            if (t->files[sink][i].path)
                dt_follow_end(&t->files[sink][i]);
        free(t->paths[i]);
    }
}

int dt_track(const struct dt_track_options *options, struct dt_track_report *report,
             struct dt_error *err)
{
    struct tracker t = {.o = options};
    for (int i = 0; i < FOLLOWED; i++)
        t.paths[i] = dt_path_join(options->run, followed[i]);
    *report = (struct dt_track_report){.state = DT_RUN_RUNNING};
    int rc = open_sinks(&t, err);
    if (rc == 0)
        rc = follow(&t, &report->state, err);
    if (rc == 0)
        rc = finish(&t, report->state, err);
    report->last_step = last_step(&t);
    if (rc == 0 && t.events)
        report->event_file = dt_strdup(dt_event_file_path(t.events));
    if (rc == 0 && t.mlflow && dt_mlflow_run_id(t.mlflow))
        report->mlflow_run = dt_strdup(dt_mlflow_run_id(t.mlflow));
    close_all(&t);
    return rc;
}
