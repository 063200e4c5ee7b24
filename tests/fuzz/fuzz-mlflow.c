/* SPDX-License-Identifier: MIT */
/* What an MLflow server answers: parts of the input between 0 bytes, one a request, each a digit
 * for the status and the text. After them no more answers come. Then the input as its address. */
#include <string.h>

#include "fuzz.h"
#include "track/mlflow.h"
#include "track/server.h"

struct answers {
    const char *next, *end;
};

static struct answers left;

static int open_nothing(void **state, const struct dt_http_login *login, struct dt_error *err)
{
    (void)login;
    (void)err;
    *state = &left;
    return 0;
}

static void close_nothing(void *state)
{
    (void)state;
}

static int answer(void *state, const struct dt_http_request *r, struct dt_http_answer *a,
                  struct dt_error *err)
{
    static const long statuses[] = {200, 200, 200, 200, 307, 400, 404, 429, 500, 503};
    struct answers *all = state;
    if (strncmp(r->url, "http://h/api/2.0/", 17) != 0 || strpbrk(r->url + 17, " \n\r\t#\\\"<>"))
        abort(); /* nothing that a server says may make a URL another */
    if (all->next >= all->end)
        return dt_fail(err, DT_EIO, "no answer");
    size_t size = strnlen(all->next, (size_t)(all->end - all->next));
    a->status = statuses[(unsigned char)(size ? *all->next : '0') % 10];
    dt_buffer_clear(&a->body);
    dt_buffer_add_string(&a->body, "");
    if (size > 1)
        dt_buffer_append(&a->body, all->next + 1, size - 1);
    all->next += size + 1;
    return 0;
}

static void talk(struct dt_mlflow *m)
{
    struct dt_error err;
    const struct dt_point point = {"loss", 1.5, 2, 3};
    struct json_object *settings = dt_json_new_object();
    dt_json_object_add(settings, "training.max_steps", dt_json_new_string("10"));
    dt_mlflow_add(m, &point);
    if (dt_mlflow_send(m, &err) == 0 && dt_mlflow_run_id(m) == NULL)
        abort();
    if (dt_mlflow_send_settings(m, settings, &err) == 0 &&
        dt_mlflow_send_file(m, "x", 1, "a file", &err) == 0)
        (void)!dt_mlflow_set_status(m, "FINISHED", &err);
    json_object_put(settings);
}

static void read_address(const uint8_t *data, size_t size)
{
    struct dt_server server;
    struct dt_error err;
    char *text = dt_strndup((const char *)data, size);
    if (dt_server_parse(&server, text, &err) == 0 &&
        (strstr(server.url, "://") == NULL || strpbrk(server.url, "?# \n")))
        abort();
    dt_server_release(&server);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct dt_http http = {DT_HTTP_ABI, open_nothing, close_nothing, answer};
    static const struct dt_http_login login;
    const struct dt_mlflow_options options = {
        .url = "http://h", .login = &login, .experiment = "a b", .run_name = "c", .key = "k"};
    struct dt_mlflow *m;
    struct dt_error err;
    left = (struct answers){(const char *)data, (const char *)data + size};
    if (dt_mlflow_open(&m, &http, &options, &err) < 0)
        abort();
    talk(m);
    dt_mlflow_close(m);
    read_address(data, size);
    return 0;
}
