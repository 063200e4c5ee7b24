/* SPDX-License-Identifier: MIT */
#include "io/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define RAW_SIZE   ((size_t)1 << 17)
#define PLAIN_SIZE ((size_t)1 << 18)
#define WINDOW_LOG 27 /* of zstd's window: what zstd(1) decompresses without --long */
#define SIGNATURE  12 /* bytes to recognize a file by */

enum coding { PLAIN, GZIP, ZSTD };

/* raw holds bytes of the file, plain the decoded bytes [from, to) not yet returned. For an
 * uncompressed file both are the same buffer. */
struct dt_input {
    int fd;
    char *name;
    enum coding coding;
    unsigned char *raw;
    size_t raw_from, raw_to;
    bool raw_ended, in_frame;
    unsigned char *plain;
    size_t from, to;
    uint64_t taken, total;
    z_stream gzip;
    ZSTD_DStream *zstd;
    struct dt_sha256 *hash; /* of the bytes read of the file; borrowed, or NULL */
};

/* Takes note of n bytes that were read to the end of raw. */
static void took(struct dt_input *in, size_t n)
{
    if (in->hash)
        dt_sha256_add(in->hash, in->raw + in->raw_to, n);
    in->raw_ended = n == 0;
    in->raw_to += n;
    in->taken += n;
}

static int fill_raw(struct dt_input *in, struct dt_error *err)
{
    in->raw_from = in->raw_to = 0;
    ssize_t n;
    do {
        n = read(in->fd, in->raw, RAW_SIZE);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return dt_fail_errno(err, "cannot read '%s'", in->name);
    took(in, (size_t)n);
    return 0;
}

static bool ends_with(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n > m && strcmp(name + n - m, ending) == 0;
}

/* A compressed file that is empty or damaged at its start must not be read as text. */
static int check_name(const struct dt_input *in, struct dt_error *err)
{
    if (in->coding != GZIP && ends_with(in->name, ".gz"))
        return dt_fail(err, DT_EFORMAT, "%s: is not gzip data", in->name);
    if (in->coding != ZSTD && ends_with(in->name, ".zst"))
        return dt_fail(err, DT_EFORMAT, "%s: is not zstd data", in->name);
    return 0;
}

static int start_decoding(struct dt_input *in, struct dt_error *err)
{
    while (!in->raw_ended && in->raw_to < SIGNATURE) { /* a pipe may deliver byte by byte */
        ssize_t n = read(in->fd, in->raw + in->raw_to, RAW_SIZE - in->raw_to);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return dt_fail_errno(err, "cannot read '%s'", in->name);
        took(in, (size_t)n);
    }
    size_t size = in->raw_to < SIGNATURE ? in->raw_to : SIGNATURE;
    const struct dt_file_type *what = dt_file_type_recognize((const char *)in->raw, size);
    if (what && what->kind == DT_FILE_GZIP) {
        in->coding = GZIP;
        if (inflateInit2(&in->gzip, 15 + 16) != Z_OK)
            return dt_fail(err, DT_ENOMEM, "cannot start zlib");
    } else if (what && what->kind == DT_FILE_ZSTD) {
        in->coding = ZSTD;
        in->zstd = dt_checked(ZSTD_createDStream());
        ZSTD_DCtx_setParameter(in->zstd, ZSTD_d_windowLogMax, WINDOW_LOG);
    }
    return check_name(in, err);
}

int dt_input_refuse(const struct dt_input *in, const struct dt_file_type *what,
                    struct dt_error *err)
{
    static const char *const commands[] = {[GZIP] = "gzip -dc", [ZSTD] = "zstd -dc"};
    return dt_file_type_refuse(what, in->name, commands[in->coding], err);
}

/* Checks the type of the decoded bytes, which may come from compressed data. */
int dt_input_need_text(struct dt_input *in, struct dt_error *err)
{
    const char *head;
    size_t size;
    DT_TRY(dt_input_peek(in, &head, &size, err));
    const struct dt_file_type *what = dt_file_type_recognize(head, size);
    if (what && what->kind == DT_FILE_BINARY)
        return dt_input_refuse(in, what, err);
    if (what && (what->kind == DT_FILE_GZIP || what->kind == DT_FILE_ZSTD))
        return dt_fail(err, DT_EFORMAT, "%s: holds %s in compressed data; %s once: %s FILE",
                       in->name, what->name, what->advice, what->filter);
    return 0;
}

int dt_input_open_hashed(struct dt_input **result, const char *path, enum dt_input_kind kind,
                         struct dt_sha256 *hash, struct dt_error *err)
{
    struct stat st;
    bool is_stdin = strcmp(path, "-") == 0;
    *result = NULL;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return dt_fail_errno(err, "cannot open '%s'", path);
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        return dt_fail(err, DT_EIO, "cannot read '%s': is a directory", is_stdin ? "stdin" : path);
    }
    struct dt_input *in = dt_alloc(1, sizeof *in);
    in->fd = fd;
    in->name = dt_strdup(is_stdin ? "stdin" : path);
    in->total = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    in->raw = dt_alloc(RAW_SIZE, 1);
    in->plain = dt_alloc(PLAIN_SIZE, 1);
    in->hash = hash;
    if (hash)
        dt_sha256_init(hash);
    int rc = kind == DT_INPUT_RAW ? 0 : start_decoding(in, err);
    if (rc == 0 && kind == DT_INPUT_TEXT)
        rc = dt_input_need_text(in, err);
    if (rc < 0) {
        dt_input_close(in);
        return rc;
    }
    *result = in;
    return 0;
}

int dt_input_open(struct dt_input **in, const char *path, struct dt_error *err)
{
    return dt_input_open_hashed(in, path, DT_INPUT_TEXT, NULL, err);
}

int dt_input_open_bytes(struct dt_input **in, const char *path, struct dt_error *err)
{
    return dt_input_open_hashed(in, path, DT_INPUT_BYTES, NULL, err);
}

int dt_input_open_raw(struct dt_input **in, const char *path, struct dt_error *err)
{
    return dt_input_open_hashed(in, path, DT_INPUT_RAW, NULL, err);
}

void dt_input_close(struct dt_input *in)
{
    if (in == NULL)
        return;
    if (in->coding == GZIP)
        inflateEnd(&in->gzip);
    ZSTD_freeDStream(in->zstd);
    if (in->fd != STDIN_FILENO)
        close(in->fd);
    free(in->name);
    free(in->raw);
    free(in->plain);
    free(in);
}

static int damaged(struct dt_input *in, const char *reason, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "%s: near byte %llu: %s", in->name,
                   (unsigned long long)(in->taken - (in->raw_to - in->raw_from)), reason);
}

static int decode_gzip(struct dt_input *in, struct dt_error *err)
{
    if (!in->in_frame) { /* another member may follow the last */
        inflateReset(&in->gzip);
        in->in_frame = true;
    }
    in->gzip.next_in = in->raw + in->raw_from;
    in->gzip.avail_in = (uInt)(in->raw_to - in->raw_from);
    in->gzip.next_out = in->plain + in->to;
    in->gzip.avail_out = (uInt)(PLAIN_SIZE - in->to);
    int rc = inflate(&in->gzip, Z_NO_FLUSH);
    in->raw_from = in->raw_to - in->gzip.avail_in;
    in->to = PLAIN_SIZE - in->gzip.avail_out;
    if (rc == Z_STREAM_END)
        in->in_frame = false;
    else if (rc != Z_OK && rc != Z_BUF_ERROR)
        return damaged(in, in->gzip.msg ? in->gzip.msg : "gzip data is damaged", err);
    return 0;
}

static int decode_zstd(struct dt_input *in, struct dt_error *err)
{
    ZSTD_inBuffer src = {in->raw, in->raw_to, in->raw_from};
    ZSTD_outBuffer dst = {in->plain, PLAIN_SIZE, in->to};
    size_t rc = ZSTD_decompressStream(in->zstd, &dst, &src);
    in->raw_from = src.pos;
    in->to = dst.pos;
    if (ZSTD_getErrorCode(rc) == ZSTD_error_frameParameter_windowTooLarge)
        return dt_fail(err, DT_EFORMAT,
                       "%s: needs a window of more than 128 MiB; pipe it: zstd -dc --long=31 FILE",
                       in->name);
    if (ZSTD_isError(rc))
        return damaged(in, ZSTD_getErrorName(rc), err);
    in->in_frame = rc != 0;
    return 0;
}

static int decode_plain(struct dt_input *in)
{
    size_t room = PLAIN_SIZE - in->to, left = in->raw_to - in->raw_from;
    size_t n = left < room ? left : room;
    memcpy(in->plain + in->to, in->raw + in->raw_from, n);
    in->raw_from += n;
    in->to += n;
    return 0;
}

/* Appends decoded bytes; none at the end of the input. */
static int fill_plain(struct dt_input *in, struct dt_error *err)
{
    if (in->from > 0) {
        memmove(in->plain, in->plain + in->from, in->to - in->from);
        in->to -= in->from;
        in->from = 0;
    }
    size_t before = in->to;
    while (in->to == before) {
        if (in->raw_from == in->raw_to && !in->raw_ended)
            DT_TRY(fill_raw(in, err));
        if (in->raw_from == in->raw_to && in->raw_ended) {
            if (in->in_frame && in->coding == ZSTD) /* the decoder may buffer bytes */
                DT_TRY(decode_zstd(in, err));
            if (in->to == before && in->in_frame)
                return damaged(in, "compressed data ends too early", err);
            return 0;
        }
        DT_TRY(in->coding == GZIP   ? decode_gzip(in, err)
               : in->coding == ZSTD ? decode_zstd(in, err)
                                    : decode_plain(in));
    }
    return 0;
}

int dt_input_read(struct dt_input *in, void *data, size_t capacity, size_t *size,
                  struct dt_error *err)
{
    *size = 0;
    if (in->from == in->to)
        DT_TRY(fill_plain(in, err));
    size_t have = in->to - in->from;
    *size = have < capacity ? have : capacity;
    memcpy(data, in->plain + in->from, *size);
    in->from += *size;
    return 0;
}

int dt_input_read_exactly(struct dt_input *in, void *data, size_t size, struct dt_error *err)
{
    for (size_t done = 0, n; done < size; done += n) {
        DT_TRY(dt_input_read(in, (char *)data + done, size - done, &n, err));
        if (n == 0)
            return dt_fail(err, DT_EFORMAT, "%s: ends too early, at byte %llu", in->name,
                           (unsigned long long)in->taken);
    }
    return 0;
}

int dt_input_add_until(struct dt_input *in, char delimiter, size_t most, struct dt_buffer *line,
                       bool *found, struct dt_error *err)
{
    *found = false;
    while (!*found && line->size <= most) {
        if (in->from == in->to)
            DT_TRY(fill_plain(in, err));
        size_t have = in->to - in->from;
        if (have == 0)
            return 0;
        unsigned char *start = in->plain + in->from, *end = memchr(start, delimiter, have);
        size_t size = end ? (size_t)(end - start) : have;
        dt_buffer_append(line, start, size);
        *found = end && line->size <= most;
        in->from += size + *found;
    }
    return 0;
}

int dt_input_read_until(struct dt_input *in, char delimiter, struct dt_buffer *line, bool *found,
                        struct dt_error *err)
{
    dt_buffer_clear(line);
    DT_TRY(dt_input_add_until(in, delimiter, DT_INPUT_LINE, line, found, err));
    if (line->size > DT_INPUT_LINE)
        return dt_fail(err, DT_EFORMAT, "%s: near byte %llu: a line of more than %zu bytes",
                       in->name, (unsigned long long)in->taken, DT_INPUT_LINE);
    return 0;
}

int dt_input_skip_until(struct dt_input *in, char delimiter, bool *found, struct dt_error *err)
{
    for (*found = false; !*found;) {
        if (in->from == in->to)
            DT_TRY(fill_plain(in, err));
        size_t have = in->to - in->from;
        if (have == 0)
            return 0;
        unsigned char *start = in->plain + in->from, *end = memchr(start, delimiter, have);
        *found = end != NULL;
        in->from += end ? (size_t)(end - start) + 1 : have;
    }
    return 0;
}

int dt_input_peek(struct dt_input *in, const char **data, size_t *size, struct dt_error *err)
{
    for (size_t before = SIZE_MAX; in->to - in->from < DT_INPUT_PEEK && in->to != before;) {
        before = in->to - in->from;
        DT_TRY(fill_plain(in, err));
    }
    *data = (const char *)in->plain + in->from;
    *size = in->to - in->from < DT_INPUT_PEEK ? in->to - in->from : DT_INPUT_PEEK;
    return 0;
}

int dt_input_skip_mark(struct dt_input *in, struct dt_error *err)
{
    const char *head;
    size_t size;
    DT_TRY(dt_input_peek(in, &head, &size, err));
    if (size >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
        in->from += 3;
    return 0;
}

const char *dt_input_name(const struct dt_input *in)
{
    return in->name;
}

void dt_input_position(const struct dt_input *in, uint64_t *taken, uint64_t *total)
{
    *taken = in->taken;
    *total = in->total;
}
