/* SPDX-License-Identifier: MIT */
#include "warc/response.h"

#include <string.h>
#include <strings.h>

#include "warc/coding.h"
#include "warc/warc.h"

#define MOST_CODINGS 4 /* one after the other */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HTTP/1.1 200 OK": the status, or 0. */
static int read_status(const char *line, size_t size)
{
    const char *space = size > 5 && memcmp(line, "HTTP/", 5) == 0 ? memchr(line, ' ', size) : NULL;
    if (space == NULL)
        return 0;
    while (space < line + size && *space == ' ')
        space++;
    if (line + size - space < 3 || !is_digit(space[0]) || !is_digit(space[1]) ||
        !is_digit(space[2]))
        return 0;
    return 100 * (space[0] - '0') + 10 * (space[1] - '0') + (space[2] - '0');
}

bool dt_warc_response_parse(const char *block, size_t size, struct dt_warc_response *r)
{
    const char *end = block ? memchr(block, '\n', size) : NULL;
    *r = (struct dt_warc_response){0};
    if (end == NULL || (r->status = read_status(block, (size_t)(end - block))) == 0)
        return false;
    r->headers = end + 1;
    for (const char *line = r->headers, *stop;; line = stop + 1) {
        stop = memchr(line, '\n', size - (size_t)(line - block));
        if (stop == NULL)
            return false;
        if (stop == line || (stop == line + 1 && *line == '\r')) {
            r->headers_size = (size_t)(line - r->headers);
            r->body = stop + 1;
            r->body_size = size - (size_t)(r->body - block);
            return true;
        }
    }
}

/* --- chunks ----------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads "1f4; extension\r\n" at *at. Returns false if it is not the size of a chunk. */
static bool read_chunk_size(const char *body, size_t size, size_t *at, size_t *chunk)
{
    size_t i = *at, digits = 0;
    for (*chunk = 0; i < size && hex_digit(body[i]) >= 0; i++, digits++) {
        if (digits == 8)
            return false;
        *chunk = 16 * *chunk + (size_t)hex_digit(body[i]);
    }
    const char *end = digits ? memchr(body + i, '\n', size - i) : NULL;
    if (end == NULL || (body[i] != '\r' && body[i] != '\n' && body[i] != ';' && body[i] != ' '))
        return false;
    *at = (size_t)(end - body) + 1;
    return true;
}

/* Whether the end of the body is the beginning of the size of a chunk. */
static bool is_cut_size(const char *text, size_t size)
{
    return hex_digit(*text) >= 0 && memchr(text, '\n', size) == NULL;
}

static enum dt_warc_body join_chunks(const char *body, size_t size, struct dt_buffer *out)
{
    size_t at = 0, chunk;
    if (!read_chunk_size(body, size, &at, &chunk)) { /* stored without its chunks */
        dt_buffer_append(out, body, size);
        return DT_WARC_BODY_DECODED;
    }
    while (chunk > 0) {
        size_t left = size - at, n = chunk < left ? chunk : left;
        dt_buffer_append(out, body + at, n);
        at += n;
        at += at < size && body[at] == '\r';
        at += at < size && body[at] == '\n';
        if (n < chunk || at == size)
            return DT_WARC_BODY_CUT;
        if (!read_chunk_size(body, size, &at, &chunk))
            return is_cut_size(body + at, size - at) ? DT_WARC_BODY_CUT : DT_WARC_BODY_DAMAGED;
    }
    return DT_WARC_BODY_DECODED;
}

/* --- codings ---------------------------------------------------------------------------------- */

/* The names of a list "gzip, br", at most MOST_CODINGS of them. Returns their number, or -1. */
static int split_list(const char *list, size_t size, const char *names[], size_t sizes[])
{
    int count = 0;
    for (size_t i = 0; i < size;) {
        size_t n = 0;
        while (i < size && strchr(", \t", list[i]) && list[i])
            i++;
        while (i + n < size && !(strchr(", \t", list[i + n]) && list[i + n]))
            n++;
        if (n > 0 && count == MOST_CODINGS)
            return -1;
        if (n > 0) {
            names[count] = list + i;
            sizes[count++] = n;
        }
        i += n;
    }
    return count;
}

/* Undoes the codings of a list, the last one first. *body is replaced. */
static enum dt_warc_body undo_codings(const char *list, size_t list_size, size_t most,
                                      struct dt_buffer *body)
{
    const char *names[MOST_CODINGS];
    size_t sizes[MOST_CODINGS];
    enum dt_warc_body rc = DT_WARC_BODY_DECODED;
    int count = split_list(list, list_size, names, sizes);
    if (count < 0)
        return DT_WARC_BODY_UNKNOWN;
    while (count-- > 0) {
        struct dt_buffer decoded = DT_BUFFER_EMPTY;
        enum dt_warc_body one =
            dt_coding_decode(names[count], sizes[count], body->data, body->size, most, &decoded);
        dt_buffer_release(body);
        *body = decoded;
        if (one > DT_WARC_BODY_CUT)
            return one;
        rc = one == DT_WARC_BODY_CUT ? one : rc;
    }
    return rc;
}

/* Removes "chunked" from the end of a list of codings; some servers name it twice. */
static bool strip_chunked(const char *list, size_t *size)
{
    bool found = false;
    while (*size >= 7 && strncasecmp(list + *size - 7, "chunked", 7) == 0) {
        found = true;
        for (*size -= 7; *size > 0 && strchr(", \t", list[*size - 1]);)
            --*size;
    }
    return found;
}

/* The same of a body of which something may be cut or wrong already. */
static enum dt_warc_body undo_more(const struct dt_buffer *list, size_t most,
                                   struct dt_buffer *body, enum dt_warc_body before)
{
    if (before > DT_WARC_BODY_CUT || list->size == 0)
        return before;
    enum dt_warc_body rc = undo_codings(list->data, list->size, most, body);
    return rc != DT_WARC_BODY_DECODED ? rc : before;
}

enum dt_warc_body dt_warc_response_decode(const struct dt_warc_response *r, size_t most,
                                          struct dt_buffer *body)
{
    enum dt_warc_body rc = DT_WARC_BODY_DECODED;
    struct dt_buffer list = DT_BUFFER_EMPTY;
    dt_buffer_clear(body);
    dt_warc_field_list(r->headers, r->headers_size, "Transfer-Encoding", &list);
    if (list.size > 0 && strip_chunked(list.data, &list.size))
        rc = join_chunks(r->body, r->body_size, body);
    else
        dt_buffer_append(body, r->body, r->body_size);
    rc = undo_more(&list, most, body, rc);
    dt_buffer_clear(&list);
    dt_warc_field_list(r->headers, r->headers_size, "Content-Encoding", &list);
    rc = undo_more(&list, most, body, rc);
    dt_buffer_release(&list);
    return rc <= DT_WARC_BODY_CUT && body->size > most ? DT_WARC_BODY_TOO_LONG : rc;
}
