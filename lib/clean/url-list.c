/* SPDX-License-Identifier: MIT */
#include "clean/url-list.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "hash/hash.h"
#include "io/input.h"

struct dt_url_list {
    uint64_t *hashes; /* open addressing; 0 is free */
    size_t capacity;  /* a power of two */
    size_t count;
};

/* --- the set ---------------------------------------------------------------------------------- */

static size_t slot_of(const struct dt_url_list *list, uint64_t hash)
{
    size_t i = (size_t)hash & (list->capacity - 1);
    while (list->hashes[i] && list->hashes[i] != hash)
        i = (i + 1) & (list->capacity - 1);
    return i;
}

static uint64_t hash_of(const char *text, size_t size)
{
    uint64_t hash = dt_hash(text, size);
    return hash ? hash : 1;
}

static void grow(struct dt_url_list *list)
{
    struct dt_url_list larger = {.capacity = list->capacity ? 2 * list->capacity : 1024,
                                 .count = list->count};
    larger.hashes = dt_alloc(larger.capacity, sizeof *larger.hashes);
    for (size_t i = 0; i < list->capacity; i++)
        if (list->hashes[i])
            larger.hashes[slot_of(&larger, list->hashes[i])] = list->hashes[i];
    free(list->hashes);
    *list = larger;
}

static void add(struct dt_url_list *list, const char *text, size_t size)
{
    if (2 * (list->count + 1) > list->capacity)
        grow(list);
    uint64_t hash = hash_of(text, size);
    size_t i = slot_of(list, hash);
    list->count += list->hashes[i] == 0;
    list->hashes[i] = hash;
}

static bool has(const struct dt_url_list *list, const char *text, size_t size)
{
    return list->capacity > 0 && list->hashes[slot_of(list, hash_of(text, size))] != 0;
}

/* --- URLs ------------------------------------------------------------------------------------- */

/* A host name in lower case and what follows it. */
struct url {
    char host[256]; /* longer ones are cut: RFC 1035 allows 253 */
    size_t host_size;
    const char *rest; /* from / ? or # */
    size_t rest_size;
};

static bool begins(const char *text, size_t size, const char *with)
{
    return size >= strlen(with) && strncasecmp(text, with, strlen(with)) == 0;
}

/* Bytes of "scheme://" or "//", or 0. */
static size_t scheme_size(const char *text, size_t size)
{
    size_t i = 0;
    while (i < size && (isalnum((unsigned char)text[i]) || strchr("+-.", text[i] ? text[i] : ' ')))
        i++;
    if (i > 0 && (i == size || text[i++] != ':'))
        return 0;
    return size - i >= 2 && text[i] == '/' && text[i + 1] == '/' ? i + 2 : 0;
}

static void split(const char *text, size_t size, struct url *url)
{
    size_t skipped = scheme_size(text, size), end = 0;
    text += skipped;
    size -= skipped;
    while (end < size && !strchr("/?#", text[end] ? text[end] : ' '))
        end++;
    url->rest = text + end;
    url->rest_size = size - end;
    const char *at = memrchr(text, '@', end);
    const char *host = at ? at + 1 : text, *stop = text + end;
    const char *bracket = memchr(host, ']', (size_t)(stop - host)); /* of an IPv6 address */
    const char *port =
        memchr(bracket ? bracket : host, ':', (size_t)(stop - (bracket ? bracket : host)));
    stop = port ? port : stop;
    if (begins(host, (size_t)(stop - host), "www."))
        host += 4;
    while (stop > host && stop[-1] == '.')
        stop--;
    url->host_size =
        (size_t)(stop - host) < sizeof url->host ? (size_t)(stop - host) : sizeof url->host - 1;
    for (size_t i = 0; i < url->host_size; i++)
        url->host[i] = (char)tolower((unsigned char)host[i]);
}

/* The host itself, and its parent domains. */
static bool has_host(const struct dt_url_list *list, const struct url *url)
{
    for (size_t i = 0; i < url->host_size; i++)
        if ((i == 0 || url->host[i - 1] == '.') && has(list, url->host + i, url->host_size - i))
            return true;
    return false;
}

/* The host with the path up to each of its ends, without a slash there. */
static bool has_prefix(const struct dt_url_list *list, const struct url *url)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    bool found = false;
    dt_buffer_append(&text, url->host, url->host_size);
    for (size_t i = 1; i <= url->rest_size && !found; i++) {
        dt_buffer_add_char(&text, url->rest[i - 1]);
        if (i == url->rest_size || strchr("/?#&", url->rest[i] ? url->rest[i] : ' '))
            found = url->rest[i - 1] != '/' ? has(list, text.data, text.size)
                                            : has(list, text.data, text.size - 1);
    }
    dt_buffer_release(&text);
    return found;
}

bool dt_url_list_has(const struct dt_url_list *list, const char *text, size_t size)
{
    struct url url;
    split(text, size, &url);
    return has_host(list, &url) || has_prefix(list, &url);
}

/* --- files ------------------------------------------------------------------------------------ */

/* What a host name of a URL can be: labels between points, beyond ASCII too, or [IPv6]. */
static bool is_host(const struct url *url)
{
    if (url->host_size > 2 && url->host[0] == '[')
        return url->host[url->host_size - 1] == ']';
    for (size_t i = 0; i < url->host_size; i++) {
        unsigned char c = (unsigned char)url->host[i];
        bool label = isalnum(c) || c == '-' || c == '_' || c >= 0x80;
        if (!label && (c != '.' || i == 0 || url->host[i - 1] == '.'))
            return false;
    }
    return url->host_size > 0;
}

static bool has_blank(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] <= ' ')
            return true;
    return false;
}

/* False for what no URL can match: a rule of another kind of list, a wildcard, a note. */
static bool add_entry(struct dt_url_list *list, const char *text, size_t size)
{
    struct url url;
    split(text, size, &url);
    while (url.rest_size > 0 && url.rest[url.rest_size - 1] == '/')
        url.rest_size--;
    if (!is_host(&url) || has_blank(text, size))
        return false;
    struct dt_buffer entry = DT_BUFFER_EMPTY;
    dt_buffer_append(&entry, url.host, url.host_size);
    dt_buffer_append(&entry, url.rest, url.rest_size);
    add(list, entry.data, entry.size);
    dt_buffer_release(&entry);
    return true;
}

static int read_entries(struct dt_url_list *list, struct dt_input *in, struct dt_error *err)
{
    struct dt_buffer line = DT_BUFFER_EMPTY;
    bool found = true;
    unsigned long long number = 0;
    int rc = 0;
    while (rc == 0 && found && (rc = dt_input_read_until(in, '\n', &line, &found, err)) == 0) {
        number++;
        size_t size = line.size, from = 0;
        if (number == 1 && begins(line.data, size, "\xef\xbb\xbf"))
            from = 3;
        while (from < size && isspace((unsigned char)line.data[from]))
            from++;
        while (size > from && isspace((unsigned char)line.data[size - 1]))
            size--;
        if (size > from && line.data[from] != '#' &&
            !add_entry(list, line.data + from, size - from))
            rc = dt_fail(err, DT_EFORMAT,
                         "%s:%llu: '%.*s': a host name (example.org, with its subdomains) or the "
                         "beginning of a URL (https://example.org/a) expected; remove addresses, "
                         "wildcards and notes",
                         dt_input_name(in), number, (int)(size - from < 60 ? size - from : 60),
                         line.data + from);
    }
    dt_buffer_release(&line);
    return rc;
}

int dt_url_list_read(struct dt_url_list **result, const char *path, struct dt_error *err)
{
    struct dt_url_list *list = dt_alloc(1, sizeof *list);
    struct dt_input *in = NULL;
    int rc = dt_input_open(&in, path, err);
    if (rc == 0)
        rc = read_entries(list, in, err);
    dt_input_close(in);
    if (rc == 0 && list->count == 0)
        rc = dt_fail(err, DT_EFORMAT, "%s: has no host name or URL", path);
    if (rc < 0) {
        dt_url_list_free(list);
        return rc;
    }
    *result = list;
    return 0;
}

void dt_url_list_free(struct dt_url_list *list)
{
    if (list)
        free(list->hashes);
    free(list);
}
