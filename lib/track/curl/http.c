/* SPDX-License-Identifier: MIT */
/* The HTTP client of dt-track over libcurl, as a plug-in. */
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "track/http.h"

#define MOST_ANSWER ((size_t)64 << 20)

static int open_client(void **state, struct dt_error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return dt_fail(err, DT_EIO, "cannot begin to use libcurl");
    *state = curl_easy_init();
    return *state ? 0 : dt_fail(err, DT_EIO, "cannot begin to use libcurl");
}

static void close_client(void *state)
{
    curl_easy_cleanup(state);
    curl_global_cleanup();
}

static size_t take(char *data, size_t one, size_t size, void *body)
{
    struct dt_buffer *b = body;
    if (b->size + size > MOST_ANSWER)
        return 0;
    dt_buffer_append(b, data, one * size);
    return size;
}

/* As MLflow's own client: a token, or a user and a password. */
static struct curl_slist *add_identity(CURL *curl, struct curl_slist *headers)
{
    const char *token = getenv("MLFLOW_TRACKING_TOKEN");
    const char *user = getenv("MLFLOW_TRACKING_USERNAME");
    const char *password = getenv("MLFLOW_TRACKING_PASSWORD");
    if (token) {
        char *line = dt_format("Authorization: Bearer %s", token);
        headers = curl_slist_append(headers, line);
        free(line);
    } else if (user && password) {
        curl_easy_setopt(curl, CURLOPT_USERNAME, user);
        curl_easy_setopt(curl, CURLOPT_PASSWORD, password);
    }
    return headers;
}

static struct curl_slist *prepare(CURL *curl, const struct dt_http_request *r,
                                  struct dt_http_answer *answer, char *complaint)
{
    struct curl_slist *headers = NULL;
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, complaint);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, r->method);
    curl_easy_setopt(curl, CURLOPT_URL, r->url);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 10L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(1000 * (r->patience > 0 ? r->patience : 30)));
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer->body);
    if (r->type) {
        char *line = dt_format("Content-Type: %s", r->type);
        headers = curl_slist_append(headers, line);
        headers = curl_slist_append(headers, "Expect:");
        free(line);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, r->size > 0 ? r->body : "");
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->size);
    }
    headers = add_identity(curl, headers);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    return headers;
}

static int request(void *state, const struct dt_http_request *r, struct dt_http_answer *answer,
                   struct dt_error *err)
{
    char complaint[CURL_ERROR_SIZE] = "";
    dt_buffer_clear(&answer->body);
    dt_buffer_add_string(&answer->body, "");
    struct curl_slist *headers = prepare(state, r, answer, complaint);
    CURLcode code = curl_easy_perform(state);
    curl_slist_free_all(headers);
    curl_easy_getinfo(state, CURLINFO_RESPONSE_CODE, &answer->status);
    if (code != CURLE_OK)
        return dt_fail(err, DT_EIO, "%s: %s", r->url,
                       *complaint ? complaint : curl_easy_strerror(code));
    return 0;
}

__attribute__((visibility("default")))
const struct dt_http dt_http = {DT_HTTP_ABI, open_client, close_client, request};
