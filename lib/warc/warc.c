/* SPDX-License-Identifier: MIT */
#include "warc/warc.h"

#include <inttypes.h>
#include <nettle/sha1.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "io/input.h"

#define CHUNK ((size_t)1 << 16)

const char *const dt_warc_type_names[DT_WARC_TYPES] = {"response", "resource",     "conversion",
                                                       "warcinfo", "request",      "metadata",
                                                       "revisit",  "continuation", "other"};

/* ahead[at] is the byte of the file, decompressed, at `offset`. */
struct dt_warc {
    struct dt_input *in;
    size_t most;
    struct dt_buffer ahead;
    size_t at;
    uint64_t offset, number;
    bool ended;   /* all of the file is in ahead */
    bool damaged; /* the file cannot be decompressed further: */
    struct dt_error reason;
    size_t suspect; /* the last bytes ahead, which it decompressed before it failed */
};

void dt_warc_record_release(struct dt_warc_record *r)
{
    dt_buffer_release(&r->fields);
    dt_buffer_release(&r->block);
}

struct dt_warc *dt_warc_open(struct dt_input *in, size_t most)
{
    struct dt_warc *w = dt_alloc(1, sizeof *w);
    w->in = in;
    w->most = most;
    return w;
}

void dt_warc_close(struct dt_warc *w)
{
    if (w == NULL)
        return;
    dt_buffer_release(&w->ahead);
    free(w);
}

/* --- bytes ------------------------------------------------------------------------------------ */

static size_t available(const struct dt_warc *w)
{
    return w->ahead.size - w->at;
}

static const char *here(const struct dt_warc *w)
{
    return w->ahead.data + w->at;
}

static void consume(struct dt_warc *w, size_t size)
{
    w->at += size;
    w->offset += size;
}

/* Damage of the compressed data ends what can be read, as the end of the file does. */
static int note_damage(struct dt_warc *w, int rc, struct dt_error *err)
{
    if (rc != DT_EFORMAT)
        return rc;
    w->ended = w->damaged = true;
    w->reason = *err;
    uint64_t unchecked = dt_input_unchecked(w->in);
    w->suspect = unchecked < w->ahead.size ? (size_t)unchecked : w->ahead.size;
    return 0;
}

/* Reads until size bytes are ahead, or the file ends. */
static int need(struct dt_warc *w, size_t size, struct dt_error *err)
{
    if (available(w) >= size || w->ended)
        return 0;
    if (w->at > 0) {
        memmove(w->ahead.data, here(w), available(w));
        w->ahead.size -= w->at;
        w->at = 0;
    }
    while (w->ahead.size < size && !w->ended) {
        size_t n;
        dt_buffer_reserve(&w->ahead, w->ahead.size + CHUNK);
        int rc = dt_input_read(w->in, w->ahead.data + w->ahead.size, CHUNK, &n, err);
        if (rc < 0)
            return note_damage(w, rc, err);
        w->ahead.size += n;
        w->ended = n == 0;
    }
    return 0;
}

/* --- the header of a record ------------------------------------------------------------------- */

const char *dt_warc_field(const char *fields, size_t fields_size, const char *name, size_t *size)
{
    size_t n = strlen(name);
    const char *end = fields + fields_size;
    for (const char *line = fields, *stop; line < end; line = stop + 1) {
        stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        if ((size_t)(stop - line) <= n || line[n] != ':' || strncasecmp(line, name, n) != 0)
            continue;
        const char *value = line + n + 1;
        while (value < stop && strchr(" \t", *value) && *value)
            value++;
        while (stop > value && strchr(" \t\r", stop[-1]) && stop[-1])
            stop--;
        *size = (size_t)(stop - value);
        return value;
    }
    return NULL;
}

size_t dt_warc_field_list(const char *fields, size_t fields_size, const char *name,
                          struct dt_buffer *list)
{
    const char *end = fields + fields_size, *value;
    size_t count = 0, size = 0;
    for (; (value = dt_warc_field(fields, (size_t)(end - fields), name, &size)); count++) {
        dt_buffer_add_string(list, count ? ", " : "");
        dt_buffer_append(list, value, size);
        fields = memchr(value + size, '\n', (size_t)(end - value) - size);
        fields = fields ? fields + 1 : end;
    }
    return count;
}

static enum dt_warc_type type_of(const struct dt_buffer *fields)
{
    size_t size;
    const char *value = dt_warc_field(fields->data, fields->size, "WARC-Type", &size);
    for (int t = 0; value && t < DT_WARC_TYPE_OTHER; t++)
        if (size == strlen(dt_warc_type_names[t]) &&
            strncasecmp(value, dt_warc_type_names[t], size) == 0)
            return (enum dt_warc_type)t;
    return DT_WARC_TYPE_OTHER;
}

static int damage(const struct dt_warc *w, const char *what, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "record at byte %" PRIu64 ": %s", w->offset, what);
}

/* The size of the lines up to the empty line and including it; 0 if it is not there. */
static size_t header_size(const char *text, size_t size)
{
    for (const char *p = text; (p = memchr(p, '\n', size - (size_t)(p - text))) != NULL;) {
        size_t left = size - (size_t)(++p - text);
        if (left >= 1 && p[0] == '\n')
            return (size_t)(p - text) + 1;
        if (left >= 2 && p[0] == '\r' && p[1] == '\n')
            return (size_t)(p - text) + 2;
    }
    return 0;
}

static int content_length(const struct dt_warc *w, const struct dt_buffer *fields, size_t *length,
                          struct dt_error *err)
{
    size_t size;
    const char *digits = dt_warc_field(fields->data, fields->size, "Content-Length", &size);
    if (digits == NULL)
        return damage(w, "has no Content-Length", err);
    *length = 0;
    for (size_t i = 0; i < size; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return damage(w, "its Content-Length is not a number", err);
        *length = 10 * *length + (size_t)(digits[i] - '0');
        if (*length > w->most)
            return dt_fail(err, DT_EFORMAT,
                           "record at byte %" PRIu64 ": its block has %.*s bytes, the limit is "
                           "%zu (--max-document)",
                           w->offset, (int)(size < 30 ? size : 30), digits, w->most);
    }
    return size > 0 ? 0 : damage(w, "its Content-Length is empty", err);
}

/* 0.17 and 0.18, drafts that crawlers wrote before 1.0, have its grammar; earlier ones do not. */
static bool is_version(const char *line, size_t size)
{
    return size >= 9 && (memcmp(line, "WARC/1.", 7) == 0 || memcmp(line, "WARC/0.17", 9) == 0 ||
                         memcmp(line, "WARC/0.18", 9) == 0);
}

static int read_header(struct dt_warc *w, struct dt_warc_record *r, size_t *size, size_t *length,
                       struct dt_error *err)
{
    DT_TRY(need(w, DT_WARC_FIELDS, err));
    size_t most = available(w) < DT_WARC_FIELDS ? available(w) : DT_WARC_FIELDS;
    if (!is_version(here(w), most))
        return damage(w, "expected the version line WARC/1.0 or WARC/1.1", err);
    *size = header_size(here(w), most);
    if (*size == 0)
        return damage(w,
                      most < DT_WARC_FIELDS ? "its header ends too early"
                                            : "its header has more than 65536 bytes",
                      err);
    const char *fields = (const char *)memchr(here(w), '\n', *size) + 1;
    dt_buffer_clear(&r->fields);
    dt_buffer_append(&r->fields, fields, *size - (size_t)(fields - here(w)));
    r->type = type_of(&r->fields);
    return content_length(w, &r->fields, length, err);
}

/* --- records ---------------------------------------------------------------------------------- */

static bool has_block(enum dt_warc_type type)
{
    return type == DT_WARC_TYPE_RESPONSE || type == DT_WARC_TYPE_RESOURCE ||
           type == DT_WARC_TYPE_CONVERSION;
}

/* The size of the line ends that separate records; some writers leave out carriage returns or one
 * of the lines. */
static size_t line_ends(const struct dt_warc *w)
{
    size_t n = 0;
    while (n < available(w) && n < 4 && strchr("\r\n", here(w)[n]) && here(w)[n])
        n++;
    return n;
}

static int read_record(struct dt_warc *w, struct dt_warc_record *r, struct dt_error *err)
{
    size_t size = 0, length = 0;
    DT_TRY(read_header(w, r, &size, &length, err));
    DT_TRY(need(w, size + length + 4 + 5, err));
    if (available(w) < size + length)
        return damage(w, "its block ends too early", err);
    const char *block = here(w) + size;
    dt_buffer_clear(&r->block);
    if (has_block(r->type))
        dt_buffer_append(&r->block, block, length);
    uint64_t offset = w->offset;
    size_t at = w->at;
    consume(w, size + length);
    size_t ends = line_ends(w);
    bool suspect = w->damaged && w->at > w->ahead.size - w->suspect;
    bool followed = available(w) - ends >= 5 && memcmp(here(w) + ends, "WARC/", 5) == 0;
    if (!suspect && (followed || ends == available(w))) { /* then the file has ended */
        consume(w, ends);
        return 1;
    }
    w->offset = offset;
    w->at = at;
    return damage(w, "its Content-Length does not lead to the next record", err);
}

/* The distance to the next line that begins a record, or to the end of what is ahead. */
static size_t find_record(const struct dt_warc *w, bool *found)
{
    const char *end = here(w) + available(w);
    for (const char *p = here(w); (p = memmem(p, (size_t)(end - p), "\nWARC/", 6)) != NULL; p++)
        if (is_version(p + 1, (size_t)(end - p) - 1)) {
            *found = true;
            return (size_t)(p - here(w)) + 1;
        }
    *found = false;
    return available(w);
}

/* Moves to the next record, and takes what is skipped into block. */
static int resume(struct dt_warc *w, struct dt_buffer *block, struct dt_error *err)
{
    bool found = false;
    dt_buffer_clear(block);
    while (!found) {
        DT_TRY(need(w, CHUNK, err));
        size_t skip = find_record(w, &found);
        if (!found && !w->ended)
            skip -= skip < 9 ? skip : 9; /* the beginning of what is looked for */
        size_t room = w->most - block->size;
        dt_buffer_append(block, here(w), skip < room ? skip : room);
        consume(w, skip);
        if (w->ended && !found)
            break;
    }
    return 0;
}

/* After damage of the compressed data: continues at its next part. The record that was being read
 * ends there. */
static int resume_input(struct dt_warc *w, struct dt_error *err)
{
    bool found;
    DT_TRY(dt_input_resume(w->in, &found, err));
    w->damaged = false;
    w->ended = !found;
    return 0;
}

/* Fills err with the reason, which is that of the decompressor if it ended the record. */
static int judge_damage(struct dt_warc *w, struct dt_warc_record *r, struct dt_error *err)
{
    struct dt_error reason = w->damaged ? w->reason : *err;
    DT_TRY(resume(w, &r->block, err));
    if (w->damaged)
        DT_TRY(resume_input(w, err));
    *err = reason;
    return DT_EFORMAT;
}

/* Empty lines before the first record. */
static int skip_empty_lines(struct dt_warc *w, struct dt_error *err)
{
    size_t n;
    do {
        DT_TRY(need(w, 1, err));
        n = line_ends(w);
        consume(w, n);
    } while (n > 0);
    return 0;
}

int dt_warc_next(struct dt_warc *w, struct dt_warc_record *r, struct dt_error *err)
{
    DT_TRY(w->number == 0 ? skip_empty_lines(w, err) : need(w, 1, err));
    r->number = ++w->number;
    r->offset = w->offset;
    dt_buffer_clear(&r->block);
    if (available(w) == 0)
        return w->damaged ? judge_damage(w, r, err) : 0;
    int rc = read_record(w, r, err);
    return rc == DT_EFORMAT ? judge_damage(w, r, err) : rc;
}

/* --- digests ---------------------------------------------------------------------------------- */

/* 20 bytes as base32, without padding: 32 letters. */
static void to_base32(const uint8_t digest[SHA1_DIGEST_SIZE], char text[33])
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    for (int i = 0; i < 32; i++) {
        int bit = 5 * i, byte = bit / 8;
        unsigned pair = (unsigned)digest[byte] << 8 | (byte < 19 ? digest[byte + 1] : 0U);
        text[i] = letters[pair >> (11 - bit % 8) & 31];
    }
    text[32] = '\0';
}

static void to_hex(const uint8_t digest[SHA1_DIGEST_SIZE], char text[41])
{
    static const char letters[] = "0123456789abcdef";
    for (int i = 0; i < 40; i++)
        text[i] = letters[digest[i / 2] >> (i % 2 ? 0 : 4) & 15];
    text[40] = '\0';
}

int dt_warc_check_digest(const struct dt_warc_record *r, struct dt_error *err)
{
    size_t size;
    char base32[33], hex[41];
    uint8_t digest[SHA1_DIGEST_SIZE];
    struct sha1_ctx sha1;
    const char *stated = dt_warc_field(r->fields.data, r->fields.size, "WARC-Block-Digest", &size);
    if (!has_block(r->type) || stated == NULL || size < 5 || strncasecmp(stated, "sha1:", 5) != 0)
        return 0;
    sha1_init(&sha1);
    sha1_update(&sha1, r->block.size, (const uint8_t *)r->block.data);
    sha1_digest(&sha1, sizeof digest, digest);
    to_base32(digest, base32);
    to_hex(digest, hex);
    if ((size - 5 == 32 && strncasecmp(stated + 5, base32, 32) == 0) ||
        (size - 5 == 40 && strncasecmp(stated + 5, hex, 40) == 0))
        return 0;
    return dt_fail(err, DT_EFORMAT,
                   "record at byte %" PRIu64 ": its block has the digest sha1:%s, not %.*s",
                   r->offset, base32, (int)(size < 60 ? size : 60), stated);
}
