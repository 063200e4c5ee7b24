/* SPDX-License-Identifier: MIT */
#include "track/mlflow.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "json/json-number.h"
#include "json/json.h"

/* Limits of the server for one request. */
enum { MOST_METRICS = 1000, MOST_PARAMETERS = 100, MOST_TAGS = 100, MOST_VALUE = 250 };
#define KEY_TAG    "dt.key"
#define LONGEST_ID 256

struct waiting_point {
    char *name;
    double value;
    int64_t step, timestamp;
};

struct dt_mlflow {
    const struct dt_http *http;
    void *client;
    const struct dt_mlflow_options *options;
    char *experiment_id, *run_id, *artifacts;
    struct json_object *parameters;   /* of the server; NULL before the first query */
    struct dt_last_steps has, queued; /* last steps on the server; with points[] */
    bool synchronized;                /* has matches the server */
    struct waiting_point *points;
    int count, capacity;
    struct dt_http_answer answer;
};

/* --- requests ------------------------------------------------------------------------------- */

/* The string member, or NULL. */
static const char *text_member(struct json_object *object, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(object, name, &value) &&
                   json_object_is_type(value, json_type_string)
               ? dt_json_text(value)
               : NULL;
}

/* Error of a response with a status other than 200: DT_EIO if it can be retried, else DT_EINVALID.
 */
static int judge(struct dt_mlflow *m, const char *path, struct json_object *answer,
                 struct dt_error *err)
{
    long status = m->answer.status;
    bool later = status >= 500 || status == 429 || status == 408;
    const char *message = text_member(answer, "message");
    if (status >= 300 && status < 400)
        message = "redirections are not followed: use the address to which it redirects";
    return dt_fail(err, later ? DT_EIO : DT_EINVALID, "%s%s: status %ld%s%.200s", m->options->url,
                   path, status, message ? ": " : "", message ? message : "");
}

/* Sends a JSON body, and releases it. *answer: owned by the caller; also set if the server refused.
 */
static int call(struct dt_mlflow *m, const char *method, const char *path, struct json_object *body,
                struct json_object **answer, struct dt_error *err)
{
    const char *text = dt_json_text(body);
    char *url = dt_asprintf("%s/api/2.0/mlflow/%s", m->options->url, path);
    struct dt_error no_json;
    *answer = NULL;
    int rc = m->http->request(m->client,
                              &(struct dt_http_request){.method = method,
                                                        .url = url,
                                                        .type = body ? "application/json" : NULL,
                                                        .body = text,
                                                        .size = text ? strlen(text) : 0},
                              &m->answer, err);
    if (rc == 0 &&
        dt_json_parse(m->answer.body.data, m->answer.body.size, url, answer, &no_json) < 0)
        *answer = NULL;
    if (rc == 0 && m->answer.status != 200)
        rc = judge(m, strstr(url, "/api/"), *answer, err);
    else if (rc == 0 && !json_object_is_type(*answer, json_type_object))
        rc = dt_fail(err, DT_EINVALID, "%s: the response is not MLflow's: expected a JSON object",
                     url);
    if (rc < 0)
        m->synchronized = false;
    json_object_put(body);
    free(url);
    return rc;
}

static struct json_object *object_with(const char *name, const char *text)
{
    struct json_object *o = dt_json_new_object();
    dt_json_object_add(o, name, dt_json_new_string(text));
    return o;
}

/* {"key": name, "value": text}, truncated to the server's limit. */
static struct json_object *pair(const char *name, const char *text)
{
    struct json_object *o = object_with("key", name);
    size_t size = strlen(text);
    for (size = size > MOST_VALUE ? MOST_VALUE : size; size > 0 && (text[size] & 0xC0) == 0x80;
         size--)
        ; /* not inside a UTF-8 sequence */
    dt_json_object_add(o, "value", dt_json_new_string_len(text, size));
    return o;
}

/* --- responses -------------------------------------------------------------------------------- */

/* A member that may be absent or null: then *value is NULL. */
static int optional_member(struct json_object *object, const char *name, enum json_type type,
                           const char *subject, struct json_object **value, struct dt_error *err)
{
    *value = NULL;
    if (!json_object_object_get_ex(object, name, value) || *value == NULL)
        return 0;
    return dt_json_get(object, name, type, subject, value, err);
}

/* Replaces *id by a copy. Ids are used in URLs and files, so other characters are refused. */
static int take_id(struct json_object *object, const char *name, const char *subject, char **id,
                   struct dt_error *err)
{
    const char *text;
    DT_TRY(dt_json_get_string(object, name, subject, &text, err));
    size_t size = strlen(text);
    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("-_", *c))
            size = 0;
    if (size == 0 || size > LONGEST_ID)
        return dt_fail(err, DT_EFORMAT, "%s: member \"%s\" is not an id: '%.40s'", subject, name,
                       text);
    free(*id);
    *id = dt_strdup(text);
    return 0;
}

/* Takes the run's id and artifact location. */
static int take_run(struct dt_mlflow *m, struct json_object *run, const char *subject,
                    struct dt_error *err)
{
    struct json_object *info, *location;
    char *id = NULL;
    DT_TRY(dt_json_get(run, "info", json_type_object, subject, &info, err));
    DT_TRY(optional_member(info, "artifact_uri", json_type_string, subject, &location, err));
    DT_TRY(take_id(info, "run_id", subject, &id, err));
    if (m->run_id && strcmp(id, m->run_id) != 0) {
        int rc =
            dt_fail(err, DT_EFORMAT, "%s: describes run %s instead of %s", subject, id, m->run_id);
        free(id);
        return rc;
    }
    free(m->run_id);
    free(m->artifacts);
    m->run_id = id;
    m->artifacts = location ? dt_strdup(dt_json_text(location)) : NULL;
    return 0;
}

/* A step; 0 if the member is absent. Servers other than MLflow's own write 64-bit numbers as
 * strings. The parser reads Infinity as null, so null is refused. */
static int take_step(struct json_object *metric, const char *subject, int64_t *step,
                     struct dt_error *err)
{
    struct json_object *value;
    char *end;
    *step = 0;
    if (!json_object_object_get_ex(metric, "step", &value))
        return 0;
    if (!json_object_is_type(value, json_type_string))
        return dt_json_get_int(metric, "step", subject, step, err);
    errno = 0;
    *step = strtoll(dt_json_text(value), &end, 10);
    if (errno != 0 || *end != '\0' || end == dt_json_text(value))
        return dt_fail(err, DT_EFORMAT, "%s: member \"step\" is not a whole number", subject);
    return 0;
}

/* Takes the last step of a metric. */
static int take_metric(struct dt_mlflow *m, struct json_object *metric, const char *subject,
                       struct dt_error *err)
{
    const char *name;
    int64_t step;
    DT_TRY(dt_json_get_string(metric, "key", subject, &name, err));
    DT_TRY(take_step(metric, subject, &step, err));
    if (dt_point_is_new(&m->has, name, step))
        dt_last_steps_set(&m->has, name, step);
    return 0;
}

static int take_parameter(struct dt_mlflow *m, struct json_object *parameter, const char *subject,
                          struct dt_error *err)
{
    const char *name;
    struct json_object *value;
    DT_TRY(dt_json_get_string(parameter, "key", subject, &name, err));
    DT_TRY(optional_member(parameter, "value", json_type_string, subject, &value, err));
    dt_json_object_add(m->parameters, name, dt_json_new_string(value ? dt_json_text(value) : ""));
    return 0;
}

/* Takes each item of an optional list. */
static int
take_list(struct dt_mlflow *m, struct json_object *data, const char *name, const char *subject,
          int (*take)(struct dt_mlflow *, struct json_object *, const char *, struct dt_error *),
          struct dt_error *err)
{
    struct json_object *list;
    DT_TRY(optional_member(data, name, json_type_array, subject, &list, err));
    size_t count = list ? json_object_array_length(list) : 0;
    char *item = dt_asprintf("%s: %s", subject, name);
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = take(m, json_object_array_get_idx(list, i), item, err);
    free(item);
    return rc;
}

/* Takes the server's state of the run: last step per metric, and parameters. */
static int take_data(struct dt_mlflow *m, struct json_object *run, const char *subject,
                     struct dt_error *err)
{
    struct json_object *data;
    dt_last_steps_release(&m->has);
    json_object_put(m->parameters);
    m->parameters = dt_json_new_object();
    DT_TRY(optional_member(run, "data", json_type_object, subject, &data, err));
    if (data == NULL)
        return 0;
    DT_TRY(take_list(m, data, "metrics", subject, take_metric, err));
    return take_list(m, data, "params", subject, take_parameter, err);
}

/* Adds the server's address to an error. */
static int judge_answer(const struct dt_mlflow *m, int rc, struct dt_error *err)
{
    return rc < 0 ? dt_fail_context(err, "%s", m->options->url) : 0;
}

/* --- experiment and run --------------------------------------------------------------------- */

/* Percent-encodes text, except unreserved characters and those of also. */
static char *escape(const char *text, const char *also)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&b, "");
    for (; *text; text++)
        if (isalnum((unsigned char)*text) || strchr("-._~", *text) || strchr(also, *text))
            dt_buffer_add_char(&b, *text);
        else
            dt_buffer_printf(&b, "%%%02X", (unsigned char)*text);
    return b.data;
}

static int find_experiment(struct dt_mlflow *m, struct dt_error *err)
{
    struct json_object *answer, *experiment;
    const char *subject = "experiments/get-by-name";
    char *name = escape(m->options->experiment, "");
    char *path = dt_asprintf("%s?experiment_name=%s", subject, name);
    int rc = call(m, "GET", path, NULL, &answer, err);
    if (rc == DT_EINVALID && m->answer.status == 404) {
        rc = 0; /* to be created */
    } else if (rc == 0) {
        rc = dt_json_get(answer, "experiment", json_type_object, subject, &experiment, err);
        if (rc == 0)
            rc = take_id(experiment, "experiment_id", subject, &m->experiment_id, err);
        rc = judge_answer(m, rc, err);
    }
    json_object_put(answer);
    free(path);
    free(name);
    return rc;
}

static int make_experiment(struct dt_mlflow *m, struct dt_error *err)
{
    struct json_object *answer;
    const char *subject = "experiments/create";
    int rc = call(m, "POST", subject, object_with("name", m->options->experiment), &answer, err);
    const char *code = text_member(answer, "error_code");
    if (rc == 0)
        rc =
            judge_answer(m, take_id(answer, "experiment_id", subject, &m->experiment_id, err), err);
    else if (code && strcmp(code, "RESOURCE_ALREADY_EXISTS") == 0)
        rc = find_experiment(m, err);
    json_object_put(answer);
    if (rc == 0 && m->experiment_id == NULL)
        rc = dt_fail(err, DT_EINVALID,
                     "%s: experiment '%s' exists, but get-by-name does not find it",
                     m->options->url, m->options->experiment);
    return rc;
}

/* Finds a run with our key, created by an earlier request whose response was lost. */
static int find_run(struct dt_mlflow *m, struct dt_error *err)
{
    struct json_object *answer, *runs, *ids = dt_json_new_array();
    struct json_object *body = dt_json_new_object();
    const char *subject = "runs/search";
    char *filter = dt_asprintf("tags.`" KEY_TAG "` = '%s'", m->options->key);
    dt_json_array_add(ids, dt_json_new_string(m->experiment_id));
    dt_json_object_add(body, "experiment_ids", ids);
    dt_json_object_add(body, "filter", dt_json_new_string(filter));
    dt_json_object_add(body, "max_results", dt_json_new_int(1));
    free(filter);
    int rc = call(m, "POST", subject, body, &answer, err);
    if (rc == 0) {
        rc = optional_member(answer, "runs", json_type_array, subject, &runs, err);
        if (rc == 0 && runs && json_object_array_length(runs) > 0)
            rc = take_run(m, json_object_array_get_idx(runs, 0), subject, err);
        rc = judge_answer(m, rc, err);
    }
    json_object_put(answer);
    return rc;
}

/* Takes the run of a response, and with_data the server's state of it. */
static int take_answer(struct dt_mlflow *m, struct json_object *answer, const char *subject,
                       bool with_data, struct dt_error *err)
{
    struct json_object *run;
    DT_TRY(dt_json_get(answer, "run", json_type_object, subject, &run, err));
    DT_TRY(take_run(m, run, subject, err));
    return with_data ? take_data(m, run, subject, err) : 0;
}

static int make_run(struct dt_mlflow *m, struct dt_error *err)
{
    struct json_object *answer, *tags = dt_json_new_array();
    struct json_object *body = object_with("experiment_id", m->experiment_id);
    dt_json_array_add(tags, pair(KEY_TAG, m->options->key));
    if (m->options->tags) {
        json_object_object_foreach(m->options->tags, name, text)
        {
            dt_json_array_add(tags, pair(name, dt_json_text(text)));
        }
    }
    dt_json_object_add(body, "tags", tags);
    dt_json_object_add(body, "start_time", dt_json_new_int(m->options->start));
    if (m->options->run_name)
        dt_json_object_add(body, "run_name", dt_json_new_string(m->options->run_name));
    int rc = call(m, "POST", "runs/create", body, &answer, err);
    if (rc == 0)
        rc = judge_answer(m, take_answer(m, answer, "runs/create", false, err), err);
    json_object_put(answer);
    return rc;
}

/* Queries the server's state of the run. */
static int query_run(struct dt_mlflow *m, struct dt_error *err)
{
    struct json_object *answer;
    char *id = escape(m->run_id, ""), *path = dt_asprintf("runs/get?run_id=%s", id);
    int rc = call(m, "GET", path, NULL, &answer, err);
    if (rc == 0)
        rc = judge_answer(m, take_answer(m, answer, "runs/get", true, err), err);
    m->synchronized = rc == 0;
    json_object_put(answer);
    free(path);
    free(id);
    return rc;
}

/* Makes sure that experiment and run exist and the server's state is known. */
static int prepare(struct dt_mlflow *m, struct dt_error *err)
{
    if (m->synchronized)
        return 0;
    if (m->run_id == NULL && m->experiment_id == NULL)
        DT_TRY(find_experiment(m, err));
    if (m->run_id == NULL && m->experiment_id == NULL)
        DT_TRY(make_experiment(m, err));
    if (m->run_id == NULL)
        DT_TRY(find_run(m, err));
    if (m->run_id == NULL)
        DT_TRY(make_run(m, err));
    return query_run(m, err);
}

/* --- points --------------------------------------------------------------------------------- */

bool dt_mlflow_room(const struct dt_mlflow *m)
{
    return m->count < MOST_METRICS;
}

void dt_mlflow_add(struct dt_mlflow *m, const struct dt_point *point)
{
    char *name = dt_strdup(point->name);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("/_.- ", *c))
            *c = '_';
    if (!dt_point_is_new(&m->queued, name, point->step)) {
        free(name);
        return;
    }
    dt_last_steps_set(&m->queued, name, point->step);
    DT_GROW(m->points, m->count, m->capacity);
    m->points[m->count++] =
        (struct waiting_point){name, point->value, point->step,
                               m->options->start + (int64_t)(point->seconds * 1000 + 0.5)};
}

static struct json_object *metric_json(const struct waiting_point *p)
{
    struct json_object *o = object_with("key", p->name);
    dt_json_object_add(o, "value", dt_json_number(p->value));
    dt_json_object_add(o, "timestamp", dt_json_new_int(p->timestamp));
    dt_json_object_add(o, "step", dt_json_new_int(p->step));
    return o;
}

/* Sends one list by log-batch. */
static int log_batch(struct dt_mlflow *m, const char *what, struct json_object *list,
                     struct dt_error *err)
{
    struct json_object *answer, *body = object_with("run_id", m->run_id);
    dt_json_object_add(body, what, list);
    int rc = call(m, "POST", "runs/log-batch", body, &answer, err);
    json_object_put(answer);
    return rc;
}

static int send_in_parts(struct dt_mlflow *m, const char *what, struct json_object *all,
                         size_t most, struct dt_error *err)
{
    size_t count = json_object_array_length(all);
    int rc = 0;
    for (size_t from = 0; from < count && rc == 0; from += most) {
        struct json_object *part = dt_json_new_array();
        for (size_t i = from; i < count && i < from + most; i++)
            dt_json_array_add(part, json_object_get(json_object_array_get_idx(all, i)));
        rc = log_batch(m, what, part, err);
    }
    json_object_put(all);
    return rc;
}

int dt_mlflow_send(struct dt_mlflow *m, struct dt_error *err)
{
    DT_TRY(prepare(m, err));
    struct json_object *metrics = dt_json_new_array();
    for (int i = 0; i < m->count; i++)
        if (dt_point_is_new(&m->has, m->points[i].name, m->points[i].step))
            dt_json_array_add(metrics, metric_json(&m->points[i]));
    DT_TRY(send_in_parts(m, "metrics", metrics, MOST_METRICS, err));
    for (int i = 0; i < m->count; i++) {
        if (dt_point_is_new(&m->has, m->points[i].name, m->points[i].step))
            dt_last_steps_set(&m->has, m->points[i].name, m->points[i].step);
        free(m->points[i].name);
    }
    m->count = 0;
    return 0;
}

/* --- settings, files, status ---------------------------------------------------------------- */

int dt_mlflow_send_settings(struct dt_mlflow *m, struct json_object *settings, struct dt_error *err)
{
    struct json_object *fresh = dt_json_new_array(), *changed = dt_json_new_array();
    int rc = prepare(m, err);
    json_object_object_foreach(settings, name, text)
    {
        const char *value = dt_json_text(text);
        const char *known = text_member(m->parameters, name);
        if (*value == '\0')
            continue;
        struct json_object *p = pair(name, value);
        if (known == NULL)
            dt_json_array_add(fresh, json_object_get(p));
        else if (strcmp(known, text_member(p, "value")) != 0)
            dt_json_array_add(changed, json_object_get(p));
        json_object_put(p);
    }
    if (rc == 0)
        rc = send_in_parts(m, "params", json_object_get(fresh), MOST_PARAMETERS, err);
    if (rc == 0)
        rc = send_in_parts(m, "tags", json_object_get(changed), MOST_TAGS, err);
    json_object_put(fresh);
    json_object_put(changed);
    return rc;
}

int dt_mlflow_send_file(struct dt_mlflow *m, const char *data, size_t size, const char *name,
                        struct dt_error *err)
{
    static const char proxied[] = "mlflow-artifacts:/";
    DT_TRY(prepare(m, err));
    if (m->artifacts == NULL || strncmp(m->artifacts, proxied, sizeof proxied - 1) != 0)
        return dt_fail(err, DT_EMISSING,
                       "the server stores artifacts at '%s' and accepts no uploads",
                       m->artifacts ? m->artifacts : "?");
    const char *location = m->artifacts + sizeof proxied - 1;
    char *folder = escape(location + strspn(location, "/"), "/"), *escaped = escape(name, "");
    char *url = dt_asprintf("%s/api/2.0/mlflow-artifacts/artifacts/%s/%s", m->options->url, folder,
                            escaped);
    int rc = m->http->request(m->client,
                              &(struct dt_http_request){.method = "PUT",
                                                        .url = url,
                                                        .type = "application/octet-stream",
                                                        .body = data,
                                                        .size = size,
                                                        .patience = 600},
                              &m->answer, err);
    if (rc == 0 && m->answer.status != 200)
        rc = judge(m, strstr(url, "/api/"), NULL, err);
    free(url);
    free(folder);
    free(escaped);
    return rc;
}

int dt_mlflow_set_status(struct dt_mlflow *m, const char *status, struct dt_error *err)
{
    struct json_object *answer;
    DT_TRY(prepare(m, err));
    struct json_object *body = object_with("run_id", m->run_id);
    dt_json_object_add(body, "status", dt_json_new_string(status));
    if (strcmp(status, "RUNNING") != 0)
        dt_json_object_add(body, "end_time", dt_json_new_int((int64_t)time(NULL) * 1000));
    int rc = call(m, "POST", "runs/update", body, &answer, err);
    json_object_put(answer);
    return rc;
}

const char *dt_mlflow_run_id(const struct dt_mlflow *m)
{
    return m->run_id;
}

int dt_mlflow_open(struct dt_mlflow **m, const struct dt_http *http,
                   const struct dt_mlflow_options *options, struct dt_error *err)
{
    void *client;
    DT_TRY(http->open(&client, options->login, err));
    *m = dt_alloc(1, sizeof **m);
    (*m)->http = http;
    (*m)->client = client;
    (*m)->options = options;
    (*m)->run_id = options->run_id ? dt_strdup(options->run_id) : NULL;
    return 0;
}

void dt_mlflow_close(struct dt_mlflow *m)
{
    if (m == NULL)
        return;
    for (int i = 0; i < m->count; i++)
        free(m->points[i].name);
    free(m->points);
    m->http->close(m->client);
    free(m->experiment_id);
    free(m->run_id);
    free(m->artifacts);
    json_object_put(m->parameters);
    dt_last_steps_release(&m->has);
    dt_last_steps_release(&m->queued);
    dt_buffer_release(&m->answer.body);
    free(m);
}
