/* SPDX-License-Identifier: MIT */
#include "io/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "io/codec.h"
#include "io/frame.h"
#include "io/random-access.h"
#include "io/utf16.h"
#include "remote/remote.h"

#define RAW_SIZE   ((size_t)1 << 17)
#define PLAIN_SIZE ((size_t)1 << 18)
#define SIGNATURE  12 /* bytes to recognize a file by */

/* The bytes [from, to) of data are not yet used. */
struct window {
    unsigned char *data;
    size_t from, to;
};

/* raw holds bytes of the file, plain decoded bytes. Of UTF-16, wide holds the bytes that are then
 * converted. */
struct dt_input {
    int fd;
    char *name;
    const struct dt_codec *codec; /* NULL: not compressed */
    void *state;                  /* the codec's */
    struct dt_remote *remote;     /* which has fd; NULL: a file or a pipe */
    char *url;                    /* of it */
    bool regular;                 /* a file, not a pipe */
    bool cuttable;                /* a file, or a URL of known size */
    struct dt_random_access any;  /* any_bytes() */
    bool by_lines;                /* DT_INPUT_LINES */
    bool raw_ended, in_frame;
    bool utf16, big; /* the text is UTF-16, big-endian */
    struct window raw, wide, plain;
    uint64_t taken, total;
    uint64_t size;         /* of all the file, if cuttable */
    uint64_t left;         /* of the file to be read at most */
    uint64_t frame;        /* bytes decompressed of the current frame */
    uint64_t frame_at;     /* where it begins, after origin */
    uint64_t frames;       /* begun */
    uint64_t reached;      /* the most of taken so far, */
    uint64_t repeated;     /* and the bytes that were read again */
    uint64_t origin, stop; /* of the file: its first byte that is read; the end of the range */
    struct dt_input_cut cut;
    bool exact;             /* stop is where a frame begins, by the index of the file */
    bool past, finished;    /* a frame at or after stop began; all records were found */
    struct dt_sha256 *hash; /* of the bytes read of the file; borrowed, or NULL */
    struct dt_error damage; /* found by peeking, if its code is not 0 */
};

/* Counts and hashes bytes read, but for those that were read before. */
static void take_raw(struct dt_input *in, const unsigned char *data, size_t size)
{
    in->taken += size;
    in->left -= size;
    size_t added = in->taken > in->reached ? (size_t)(in->taken - in->reached) : 0;
    if (in->hash)
        dt_sha256_add(in->hash, data + (size - added), added);
    in->reached += added;
}

/* Reads bytes of the file. At the end of a transfer its result counts. */
static int read_bytes(struct dt_input *in, void *data, size_t room, size_t *size,
                      struct dt_error *err)
{
    ssize_t n;
    do {
        n = read(in->fd, data, in->left < room ? (size_t)in->left : room);
    } while (n < 0 && dt_file_is_to_repeat(in->fd, POLLIN));
    if (n < 0)
        return dt_fail_errno(err, "cannot read '%s'", in->name);
    if (n == 0 && in->remote && in->left > 0)
        DT_TRY(dt_remote_finish(in->remote, err));
    take_raw(in, data, (size_t)n);
    in->raw_ended = n == 0;
    *size = (size_t)n;
    return 0;
}

/* Reads bytes of the file to the end of raw, which has room. */
static int read_raw(struct dt_input *in, struct dt_error *err)
{
    size_t n;
    DT_TRY(read_bytes(in, in->raw.data + in->raw.to, RAW_SIZE - in->raw.to, &n, err));
    in->raw.to += n;
    return 0;
}

static int fill_raw(struct dt_input *in, struct dt_error *err)
{
    in->raw.from = in->raw.to = 0;
    return read_raw(in, err);
}

/* A compressed file that is empty or damaged at its start must not be read as text. */
static int check_name(const struct dt_input *in, struct dt_error *err)
{
    const char *codec = dt_file_type_codec(in->name);
    if (codec && (in->codec == NULL || strcmp(in->codec->name, codec) != 0))
        return dt_fail(err, DT_EFORMAT, "%s: is not %s data", in->name, codec);
    return 0;
}

/* Whether lines that are answered as they come need no more bytes. */
static bool has_first_line(const struct dt_input *in, const struct window *w)
{
    return in->by_lines && w->to > w->from && memchr(w->data + w->from, '\n', w->to - w->from);
}

static int start_decoding(struct dt_input *in, struct dt_error *err)
{
    /* a pipe may deliver byte by byte */
    while (!in->raw_ended && in->raw.to < SIGNATURE && !has_first_line(in, &in->raw))
        DT_TRY(read_raw(in, err));
    size_t size = in->raw.to < SIGNATURE ? in->raw.to : SIGNATURE;
    const struct dt_file_type *what = dt_file_type_recognize((const char *)in->raw.data, size);
    if (what && what->kind == DT_FILE_COMPRESSED) {
        int rc = dt_codec_find(what->format, &in->codec, err);
        rc = rc < 0 ? rc : in->codec->open(&in->state, err);
        if (rc < 0)
            return dt_fail_context(err, "%s", in->name);
    }
    return check_name(in, err);
}

/* A byte order mark of UTF-16 is passed over, and what follows converted. */
static int start_text(struct dt_input *in, struct dt_error *err)
{
    const char *head;
    size_t size;
    DT_TRY(dt_input_peek(in, &head, &size, err));
    const struct dt_file_type *what = dt_file_type_recognize(head, size);
    if (what == NULL || what->kind != DT_FILE_UTF16)
        return 0;
    in->utf16 = true;
    in->big = strcmp(what->format, "utf-16be") == 0;
    in->wide = in->plain;
    in->wide.from += 2;
    in->plain = (struct window){.data = dt_alloc(PLAIN_SIZE, 1)};
    return 0;
}

int dt_input_refuse(const struct dt_input *in, const struct dt_file_type *what,
                    struct dt_error *err)
{
    return dt_file_type_refuse(what, in->name, in->codec ? in->codec->command : NULL, err);
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
    if (what && what->kind == DT_FILE_COMPRESSED)
        return dt_fail(err, DT_EFORMAT, "%s: holds %s in compressed data; %s once: %s FILE",
                       in->name, what->name, what->advice, what->filter);
    return 0;
}

static int start(struct dt_input *in, enum dt_input_kind kind, struct dt_error *err)
{
    if (kind == DT_INPUT_RAW)
        return 0;
    DT_TRY(start_decoding(in, err));
    if (kind != DT_INPUT_BYTES)
        DT_TRY(start_text(in, err));
    return kind == DT_INPUT_TEXT || kind == DT_INPUT_LINES ? dt_input_need_text(in, err) : 0;
}

static int open_descriptor(struct dt_input **result, int fd, struct dt_remote *remote,
                           const char *name, enum dt_input_kind kind, struct dt_sha256 *hash,
                           struct dt_error *err)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        return dt_fail(err, DT_EIO, "cannot read '%s': is a directory", name);
    }
    struct dt_input *in = dt_alloc(1, sizeof *in);
    in->fd = fd;
    in->remote = remote;
    in->name = dt_strdup(name);
    in->regular = in->cuttable = S_ISREG(st.st_mode);
    in->total = in->size = in->regular ? (uint64_t)st.st_size : 0;
    in->left = in->stop = UINT64_MAX;
    in->raw.data = dt_alloc(RAW_SIZE, 1);
    in->plain.data = dt_alloc(PLAIN_SIZE, 1);
    in->hash = hash;
    in->by_lines = kind == DT_INPUT_LINES;
    if (hash)
        dt_sha256_init(hash);
    int rc = start(in, kind, err);
    if (rc < 0)
        dt_input_close(in);
    else
        *result = in;
    return rc;
}

static int open_remote(struct dt_input **in, const char *url, enum dt_input_kind kind,
                       struct dt_sha256 *hash, struct dt_error *err)
{
    struct dt_remote *remote;
    DT_TRY(dt_remote_open(&remote, url, err));
    DT_TRY(open_descriptor(in, dt_remote_descriptor(remote), remote, dt_remote_name(remote), kind,
                           hash, err));
    (*in)->url = dt_strdup(url);
    return 0;
}

int dt_input_open_hashed(struct dt_input **in, const char *path, enum dt_input_kind kind,
                         struct dt_sha256 *hash, struct dt_error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    *in = NULL;
    if (dt_remote_is_url(path))
        return open_remote(in, path, kind, hash, err);
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return dt_fail_errno(err, "cannot open '%s'", path);
    return open_descriptor(in, fd, NULL, is_stdin ? "stdin" : path, kind, hash, err);
}

int dt_input_open_lines(struct dt_input **in, const char *path, struct dt_error *err)
{
    return dt_input_open_hashed(in, path, DT_INPUT_LINES, NULL, err);
}

int dt_input_open_descriptor(struct dt_input **in, int fd, const char *name, struct dt_error *err)
{
    *in = NULL;
    return open_descriptor(in, fd, NULL, name, DT_INPUT_RAW, NULL, err);
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
    if (in->state)
        in->codec->close(in->state);
    if (in->remote)
        dt_remote_close(in->remote);
    else if (in->fd != STDIN_FILENO)
        close(in->fd);
    dt_random_access_release(&in->any);
    free(in->url);
    free(in->name);
    free(in->raw.data);
    free(in->wide.data);
    free(in->plain.data);
    free(in);
}

/* In the file, of the next byte to be decompressed. */
static uint64_t raw_position(const struct dt_input *in)
{
    return in->taken - (in->raw.to - in->raw.from);
}

/* Adds where the data is damaged to an error. */
static int damaged(struct dt_input *in, struct dt_error *err)
{
    return dt_fail_context(err, "%s: near byte %llu", in->name,
                           (unsigned long long)raw_position(in));
}

static int truncated(struct dt_input *in, const char *reason, struct dt_error *err)
{
    dt_fail(err, DT_EFORMAT, "%s", reason);
    return damaged(in, err);
}

static int decompress(struct dt_input *in, struct window *out, struct dt_error *err)
{
    struct dt_codec_data d = {.in = in->raw.data,
                              .in_at = in->raw.from,
                              .in_size = in->raw.to,
                              .out = out->data,
                              .out_at = out->to,
                              .out_size = PLAIN_SIZE,
                              .ended = in->raw_ended};
    if (!in->in_frame) {
        in->frame = 0;
        in->frame_at = raw_position(in);
        in->frames++;
    }
    int rc = in->codec->decode(in->state, &d, err);
    in->frame += d.out_at - out->to;
    in->raw.from = d.in_at;
    out->to = d.out_at;
    in->in_frame = d.in_frame;
    return rc < 0 ? damaged(in, err) : 0;
}

static int copy(struct dt_input *in, struct window *out)
{
    size_t room = PLAIN_SIZE - out->to, left = in->raw.to - in->raw.from;
    size_t n = left < room ? left : room;
    memcpy(out->data + out->to, in->raw.data + in->raw.from, n);
    in->raw.from += n;
    out->to += n;
    return 0;
}

/* Moves what is not used to the start. */
static void compact(struct window *w)
{
    if (w->from == 0)
        return;
    memmove(w->data, w->data + w->from, w->to - w->from);
    w->to -= w->from;
    w->from = 0;
}

/* Reads any bytes of the file apart from the others. */
static struct dt_random_access *any_bytes(struct dt_input *in)
{
    in->any.fd = in->fd;
    in->any.name = in->name;
    in->any.url = in->url;
    in->any.size = in->size;
    return &in->any;
}

/* Sets in->past where the first frame at or after the stop begins. The part after it looks for such
 * a frame: one that it would pass over, because it is damaged, must not be lost. */
static int look_for_stop(struct dt_input *in, struct dt_error *err)
{
    bool begins;
    uint64_t at = in->origin + raw_position(in);
    if (in->in_frame || in->past || at < in->stop)
        return 0;
    in->past = in->exact;
    if (in->past)
        return 0;
    compact(&in->raw);
    while (!in->raw_ended && in->raw.to < DT_FRAME_MAGIC)
        DT_TRY(read_raw(in, err));
    if (!dt_frame_magic(in->codec, in->raw.data,
                        in->raw.to)) /* zstd's skippable ones, or nothing */
        return 0;
    DT_TRY(dt_frame_check(in->codec, any_bytes(in), at, &begins, err));
    in->past = true;
    return begins ? 0
                  : dt_fail(err, DT_EFORMAT, "%s: near byte %llu: compressed data is damaged",
                            in->name, (unsigned long long)at);
}

/* Passes over zeros after a member of gzip, which fill the last block of a tape, as gzip(1) does.
 * Returns whether there are any. */
static bool skip_padding(struct dt_input *in)
{
    const size_t from = in->raw.from;
    bool between = in->codec && !in->in_frame && in->frames > 0;
    if (between && strcmp(in->codec->name, "gzip") == 0)
        while (in->raw.from < in->raw.to && in->raw.data[in->raw.from] == 0)
            in->raw.from++;
    return in->raw.from > from;
}

/* Appends decompressed bytes; none at the end of the input, or where the stop is found. */
static int fill_frames(struct dt_input *in, struct window *out, struct dt_error *err)
{
    bool was_past = in->past;
    compact(out);
    size_t before = out->to;
    while (out->to == before) {
        if (in->codec && in->stop < UINT64_MAX)
            DT_TRY(look_for_stop(in, err));
        if (in->past != was_past)
            return 0;
        if (in->raw.from == in->raw.to && !in->raw_ended)
            DT_TRY(fill_raw(in, err));
        if (skip_padding(in))
            continue;
        if (in->raw.from == in->raw.to && in->raw_ended) {
            if (in->in_frame) /* the decoder may buffer bytes */
                DT_TRY(decompress(in, out, err));
            if (out->to == before && in->in_frame)
                return truncated(in, "compressed data ends too early", err);
            return 0;
        }
        DT_TRY(in->codec ? decompress(in, out, err) : copy(in, out));
    }
    return 0;
}

static int check_begins(const struct dt_input *in, const unsigned char *data, size_t size,
                        struct dt_error *err)
{
    const char *begins = in->cut.begins;
    if (size >= strlen(begins) && memcmp(data, begins, strlen(begins)) == 0)
        return 0;
    return dt_fail(err, DT_EFORMAT,
                   "%s: cannot be divided: a part of its compressed data does not begin with '%s'; "
                   "read it without --part, or compress each record as a member",
                   in->name, begins);
}

/* Of the bytes after the stop the range has those up to the end of a record. */
static int end_range(struct dt_input *in, struct window *out, size_t before, struct dt_error *err)
{
    unsigned char *start = out->data + before, *end = start;
    if (in->cut.begins)
        DT_TRY(check_begins(in, start, out->to - before, err));
    else
        end = memchr(start, *in->cut.ends, out->to - before);
    in->finished = end != NULL;
    if (end)
        out->to = (size_t)(end - out->data) + (in->cut.begins == NULL);
    return 0;
}

/* Appends bytes of the range; none at its end. */
static int fill(struct dt_input *in, struct window *out, struct dt_error *err)
{
    size_t before = SIZE_MAX, need = in->cut.begins ? strlen(in->cut.begins) : 1;
    if (in->finished)
        return 0;
    if (!in->past)
        DT_TRY(fill_frames(in, out, err));
    if (!in->past)
        return 0;
    compact(out);
    for (size_t start = out->to; out->to - start < need && out->to != before;) {
        before = out->to;
        DT_TRY(fill_frames(in, out, err));
        if (out->to - start >= need)
            return end_range(in, out, start, err);
    }
    return 0;
}

/* Appends bytes of text; none at the end of the input. */
static int fill_plain(struct dt_input *in, struct dt_error *err)
{
    struct window *w = &in->wide, *out = &in->plain;
    if (!in->utf16)
        return fill(in, out, err);
    compact(out);
    bool ended = false;
    for (size_t before = out->to, taken; out->to == before && !ended; w->from += taken) {
        size_t had = w->to - w->from;
        if (had < 4) /* a character may need more */
            DT_TRY(fill(in, w, err));
        ended = had < 4 && w->to - w->from == had;
        out->to += dt_utf16_decode(in->big, w->data + w->from, w->to - w->from, ended,
                                   out->data + out->to, PLAIN_SIZE - out->to, &taken);
        if (ended && taken < had)
            return truncated(in, "UTF-16 text ends inside a character", err);
    }
    return 0;
}

/* The same; damage that peeking found is an error now. */
static int fill_or_fail(struct dt_input *in, struct dt_error *err)
{
    if (in->damage.code == 0)
        return fill_plain(in, err);
    *err = in->damage;
    return (int)err->code;
}

bool dt_input_is_ready(const struct dt_input *in)
{
    struct pollfd file = {.fd = in->fd, .events = POLLIN};
    return in->plain.from < in->plain.to || in->raw_ended || poll(&file, 1, 0) != 0;
}

int dt_input_read(struct dt_input *in, void *data, size_t capacity, size_t *size,
                  struct dt_error *err)
{
    *size = 0;
    bool empty = in->plain.from == in->plain.to;
    if (empty && capacity >= RAW_SIZE && in->codec == NULL && !in->utf16 &&
        in->raw.from == in->raw.to && !in->raw_ended)
        return read_bytes(in, data, capacity, size, err); /* without a copy */
    if (empty)
        DT_TRY(fill_or_fail(in, err));
    size_t have = in->plain.to - in->plain.from;
    *size = have < capacity ? have : capacity;
    memcpy(data, in->plain.data + in->plain.from, *size);
    in->plain.from += *size;
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
        if (in->plain.from == in->plain.to)
            DT_TRY(fill_or_fail(in, err));
        size_t have = in->plain.to - in->plain.from;
        if (have == 0)
            return 0;
        unsigned char *start = in->plain.data + in->plain.from,
                      *end = memchr(start, delimiter, have);
        size_t size = end ? (size_t)(end - start) : have;
        dt_buffer_append(line, start, size);
        *found = end && line->size <= most;
        in->plain.from += size + *found;
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
        if (in->plain.from == in->plain.to)
            DT_TRY(fill_or_fail(in, err));
        size_t have = in->plain.to - in->plain.from;
        if (have == 0)
            return 0;
        unsigned char *start = in->plain.data + in->plain.from,
                      *end = memchr(start, delimiter, have);
        *found = end != NULL;
        in->plain.from += end ? (size_t)(end - start) + 1 : have;
    }
    return 0;
}

uint64_t dt_input_unchecked(const struct dt_input *in)
{
    size_t kept = in->plain.to - in->plain.from;
    return in->codec && in->frame > kept ? in->frame - kept : 0;
}

/* Reads on to the next byte in the file at which a frame may begin. */
static int find_frame(struct dt_input *in, bool *found, struct dt_error *err)
{
    struct window *raw = &in->raw;
    for (;;) {
        raw->from += dt_frame_next(in->codec, raw->data + raw->from, raw->to - raw->from);
        *found = dt_frame_magic(in->codec, raw->data + raw->from, raw->to - raw->from);
        if (*found)
            return 0;
        if (in->raw_ended) {
            raw->from = raw->to;
            return 0;
        }
        compact(raw);
        DT_TRY(read_raw(in, err));
    }
}

/* Moves past the first byte of the frame that failed. What is not in memory is read again, at
 * most four times the file in all: damage may be made such that every byte begins a long frame. */
static int leave_frame(struct dt_input *in, struct dt_error *err)
{
    uint64_t back = raw_position(in) - (in->frame_at + 1);
    in->repeated += back;
    if (in->frame_at >= raw_position(in) || in->repeated > 4 * in->reached ||
        (back > in->raw.from && !in->regular)) {
        in->raw.from += in->raw.from < in->raw.to;
    } else if (back <= in->raw.from) {
        in->raw.from -= back;
    } else {
        uint64_t left = in->raw.to - in->raw.from;
        if (lseek(in->fd, -(off_t)(back + left), SEEK_CUR) < 0)
            return dt_fail_errno(err, "cannot read '%s'", in->name);
        in->taken -= back + left;
        in->raw.from = in->raw.to = 0;
        in->raw_ended = false;
    }
    return 0;
}

/* Reads on to the next frame that the index of the file names; not found without an index. */
static int find_listed_frame(struct dt_input *in, struct dt_codec_block *block, bool *found,
                             struct dt_error *err)
{
    struct dt_error no_index;
    uint64_t at = in->origin + raw_position(in);
    *found = in->regular && in->codec->find_block &&
             in->codec->find_block(in->fd, at, UINT64_MAX, in->cut.begins != NULL, block,
                                   &no_index) == 0 &&
             block->at < UINT64_MAX;
    while (*found && at < block->at && !in->raw_ended) {
        uint64_t have = in->raw.to - in->raw.from;
        in->raw.from += block->at - at < have ? (size_t)(block->at - at) : (size_t)have;
        if (in->raw.from == in->raw.to)
            DT_TRY(fill_raw(in, err));
        at = in->origin + raw_position(in);
    }
    return 0;
}

int dt_input_resume(struct dt_input *in, bool *found, struct dt_error *err)
{
    struct dt_codec_block block;
    bool listed;
    *found = false;
    in->damage.code = 0;
    if (in->codec == NULL)
        return 0;
    DT_TRY(leave_frame(in, err));
    DT_TRY(find_listed_frame(in, &block, &listed, err));
    *found = listed;
    if (!listed)
        DT_TRY(find_frame(in, found, err));
    in->in_frame = false;
    in->frame = 0;
    in->plain.from = in->plain.to = 0;
    in->codec->close(in->state);
    in->state = NULL;
    return listed ? in->codec->open_block(&in->state, &block, err)
                  : in->codec->open(&in->state, err);
}

int dt_input_peek(struct dt_input *in, const char **data, size_t *size, struct dt_error *err)
{
    for (size_t before = SIZE_MAX, have; (have = in->plain.to - in->plain.from) < DT_INPUT_PEEK &&
                                         have != before && !has_first_line(in, &in->plain);) {
        before = have;
        if (in->damage.code != 0)
            break;
        int rc = fill_plain(in, err);
        if (rc < 0 && (rc != DT_EFORMAT || in->codec == NULL))
            return rc;
        if (rc < 0)
            in->damage = *err;
    }
    *data = (const char *)in->plain.data + in->plain.from;
    *size = in->plain.to - in->plain.from < DT_INPUT_PEEK ? in->plain.to - in->plain.from
                                                          : DT_INPUT_PEEK;
    return 0;
}

bool dt_input_is_damaged(const struct dt_input *in)
{
    return in->damage.code != 0;
}

int dt_input_skip_rest(struct dt_input *in, struct dt_error *err)
{
    do {
        in->plain.from = in->plain.to;
        DT_TRY(fill_or_fail(in, err));
    } while (in->plain.from < in->plain.to);
    return 0;
}

int dt_input_descriptor(const struct dt_input *in)
{
    return in->regular && in->codec == NULL ? in->fd : -1;
}

int dt_input_skip_mark(struct dt_input *in, struct dt_error *err)
{
    const char *head;
    size_t size;
    DT_TRY(dt_input_peek(in, &head, &size, err));
    if (size >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
        in->plain.from += 3;
    return 0;
}

void dt_input_set_size(struct dt_input *in, uint64_t size)
{
    in->cuttable = true;
    in->total = in->size = size;
}

bool dt_input_is_plain(const struct dt_input *in)
{
    return in->cuttable && in->codec == NULL && !in->utf16;
}

static int reopen(struct dt_input *in, uint64_t first, struct dt_error *err)
{
    struct dt_remote *remote;
    DT_TRY(dt_remote_open_at(&remote, in->url, first, in->size, err));
    dt_remote_close(in->remote);
    in->remote = remote;
    in->fd = dt_remote_descriptor(remote);
    return 0;
}

int dt_input_limit(struct dt_input *in, uint64_t first, uint64_t end, struct dt_error *err)
{
    if (in->remote && first < end)
        DT_TRY(reopen(in, first, err));
    if (in->remote == NULL && lseek(in->fd, (off_t)first, SEEK_SET) < 0)
        return dt_fail_errno(err, "cannot read '%s'", in->name);
    in->raw.from = in->raw.to = in->plain.from = in->plain.to = 0;
    in->raw_ended = false;
    in->taken = in->reached = 0;
    in->left = in->total = end - first;
    if (in->hash)
        dt_sha256_init(in->hash);
    return 0;
}

bool dt_input_is_framed(const struct dt_input *in)
{
    return in->cuttable && in->codec && !in->utf16;
}

/* Passes over what belongs to the range before. */
static int begin_range(struct dt_input *in, struct dt_error *err)
{
    const char *head;
    size_t size;
    bool found;
    if (in->cut.begins == NULL)
        return dt_input_skip_until(in, *in->cut.ends, &found, err);
    DT_TRY(dt_input_peek(in, &head, &size, err));
    return check_begins(in, (const unsigned char *)head, size, err);
}

/* The first frames of a range and after it by the index of the file; false without an index. */
static bool find_range(const struct dt_input *in, uint64_t first, uint64_t end, uint64_t size,
                       bool streams, struct dt_codec_block *begin, struct dt_codec_block *stop)
{
    const struct dt_codec *codec = in->codec;
    struct dt_error no_index;
    if (!in->regular || codec->find_block == NULL ||
        codec->find_block(in->fd, first, end, streams, begin, &no_index) < 0)
        return false;
    if (first == 0)
        *begin = (struct dt_codec_block){.begins_stream = true};
    return codec->find_block(in->fd, end, size, streams, stop, &no_index) == 0;
}

int dt_input_limit_frames(struct dt_input *in, uint64_t first, uint64_t end,
                          struct dt_input_cut cut, uint64_t *at, struct dt_error *err)
{
    uint64_t size = in->size;
    struct dt_codec_block begin, stop = {.at = end};
    *at = first;
    in->exact = find_range(in, first, end, size, cut.begins != NULL, &begin, &stop);
    if (in->exact)
        *at = begin.at;
    else if (first > 0)
        DT_TRY(dt_frame_find(in->codec, any_bytes(in), first, end, at, err));
    DT_TRY(dt_input_limit(in, *at, size, err));
    in->total = end - *at;
    in->codec->close(in->state);
    in->state = NULL;
    in->in_frame = false;
    in->frame = in->frames = 0;
    in->origin = *at;
    in->stop = stop.at < size ? stop.at : UINT64_MAX;
    in->cut = cut;
    in->finished = *at == end;
    DT_TRY(in->exact ? in->codec->open_block(&in->state, &begin, err)
                     : in->codec->open(&in->state, err));
    return first > 0 && !in->finished ? begin_range(in, err) : 0;
}

uint64_t dt_input_consumed(const struct dt_input *in)
{
    return raw_position(in) - (in->plain.to - in->plain.from);
}

uint64_t dt_input_frames(const struct dt_input *in)
{
    return in->frames;
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
