/* SPDX-License-Identifier: MIT */
/* The HTTP client over libcurl, as a plug-in. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/http.h"

#define MOST_ANSWER  ((size_t)64 << 20)
#define MOST_HEADERS ((size_t)1 << 20)

struct client {
    CURL *curl;
    const struct dt_http_login *login;
};

static int open_client(void **state, const struct dt_http_login *login, struct dt_error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return dt_fail(err, DT_EIO, "cannot initialize libcurl");
    CURL *curl = curl_easy_init();
    if (curl == NULL)
        return dt_fail(err, DT_EIO, "cannot initialize libcurl");
    struct client *c = dt_alloc(1, sizeof *c);
    *c = (struct client){curl, login};
    *state = c;
    return 0;
}

static void close_client(void *state)
{
    struct client *c = state;
    curl_easy_cleanup(c->curl);
    curl_global_cleanup();
    free(c);
}

/* A request in progress. */
struct exchange {
    CURL *curl;
    const struct dt_http_request *request;
    struct dt_http_answer *answer;
    struct dt_error *err;
    bool failed; /* sink did */
};

static size_t take(char *data, size_t one, size_t size, void *context)
{
    struct exchange *x = context;
    long status = 0;
    curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status);
    if (x->request->sink && (status == 200 || status == 206)) {
        x->failed = x->request->sink(x->request->context, status, data, one * size, x->err) < 0;
        return x->failed ? 0 : size;
    }
    if (x->answer->body.size + size > MOST_ANSWER)
        return 0; /* CURLE_WRITE_ERROR */
    dt_buffer_append(&x->answer->body, data, one * size);
    return size;
}

/* Other answers may come first: 103, or that of a proxy. */
static size_t take_header(char *data, size_t one, size_t size, void *context)
{
    struct exchange *x = context;
    if (size >= 5 && memcmp(data, "HTTP/", 5) == 0)
        dt_buffer_clear(&x->answer->headers);
    if (x->answer->headers.size + size > MOST_HEADERS)
        return 0;
    dt_buffer_append(&x->answer->headers, data, one * size);
    return size;
}

/* A download takes as long as it takes, while bytes come. */
static void set_patience(CURL *curl, const struct dt_http_request *r)
{
    double patience = r->patience > 0 ? r->patience : 30;
    char range[32];
    if (r->sink) {
        curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)patience);
    } else {
        curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(1000 * patience));
    }
    if (r->from > 0) { /* CURLOPT_RESUME_FROM would refuse a server that sends the whole */
        snprintf(range, sizeof range, "%llu-", (unsigned long long)r->from);
        curl_easy_setopt(curl, CURLOPT_RANGE, range);
    }
}

static int ask_stopped(void *context, curl_off_t total, curl_off_t now, curl_off_t sent_total,
                       curl_off_t sent)
{
    const struct exchange *x = context;
    (void)total, (void)now, (void)sent_total, (void)sent;
    return x->request->stopped(x->request->context);
}

static struct curl_slist *add_login(const struct client *c, struct curl_slist *headers)
{
    const struct dt_http_login *login = c->login;
    if (login->direct)
        curl_easy_setopt(c->curl, CURLOPT_PROXY, "");
    if (login->token) {
        char *line = dt_asprintf("Authorization: Bearer %s", login->token);
        headers = curl_slist_append(headers, line);
        free(line);
    } else if (login->user) {
        curl_easy_setopt(c->curl, CURLOPT_USERNAME, login->user);
        curl_easy_setopt(c->curl, CURLOPT_PASSWORD, login->password);
    }
    return headers;
}

static struct curl_slist *prepare(const struct client *c, const struct dt_http_request *r,
                                  struct exchange *x, char *complaint)
{
    struct curl_slist *headers = NULL;
    CURL *curl = c->curl;
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
    set_patience(curl, r);
    curl_easy_setopt(curl, CURLOPT_NOBODY, (long)(strcmp(r->method, "HEAD") == 0));
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, x);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, ask_stopped);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, x);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, (long)(r->stopped == NULL));
    if (r->type) {
        char *line = dt_asprintf("Content-Type: %s", r->type);
        headers = curl_slist_append(headers, line);
        headers = curl_slist_append(headers, "Expect:");
        free(line);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, r->size > 0 ? r->body : "");
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->size);
    }
    for (const char *const *h = r->headers; h && *h; h++)
        headers = curl_slist_append(headers, *h);
    headers = add_login(c, headers);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    return headers;
}

static int request(void *state, const struct dt_http_request *r, struct dt_http_answer *answer,
                   struct dt_error *err)
{
    const struct client *c = state;
    char complaint[CURL_ERROR_SIZE] = "";
    struct exchange x = {c->curl, r, answer, err, false};

    dt_buffer_clear(&answer->body);
    dt_buffer_add_string(&answer->body, "");
    dt_buffer_clear(&answer->headers);
    dt_buffer_add_string(&answer->headers, "");
    struct curl_slist *headers = prepare(c, r, &x, complaint);
    CURLcode code = curl_easy_perform(c->curl);
    curl_slist_free_all(headers);
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &answer->status);
    if (x.failed)
        return err->code;
    if (code == CURLE_WRITE_ERROR)
        return dt_fail(err, DT_EINVALID, "%s: the response exceeds %zu bytes", r->url, MOST_ANSWER);
    if (code != CURLE_OK)
        return dt_fail(err, DT_EIO, "%s: %s", r->url,
                       *complaint ? complaint : curl_easy_strerror(code));
    return 0;
}

__attribute__((visibility("default")))
const struct dt_http dt_http = {DT_HTTP_ABI, open_client, close_client, request};
