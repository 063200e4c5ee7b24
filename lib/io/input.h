/* SPDX-License-Identifier: MIT */
/*
 * Bytes from a file, a pipe, stdin ("-") or a URL (remote/remote.h); gzip, zstd, xz, bzip2 and lz4
 * (io/codec.h) are recognised by their first bytes and decompressed on the way, and UTF-16 with a
 * byte order mark is converted to UTF-8 (io/utf16.h). A compressed input that ends too early or
 * fails its checksum is an error, never a short read; so is a file named .gz, .zst, .xz, .bz2 or
 * .lz4 that is not compressed so, and one that is not text (io/file-type.h).
 *
 * Memory does not depend on the decompressed size: a reader holds less than 1 MiB, the window of
 * zstd or xz (at most 128 MiB) and the current line.
 */
#ifndef DT_IO_INPUT_H
#define DT_IO_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "hash/sha256.h"
#include "io/file-type.h"

struct dt_input;

/* For text. *in is owned by the caller (dt_input_close). */
int dt_input_open(struct dt_input **in, const char *path, struct dt_error *err) DT_MUST_CHECK;
/* The same for any bytes. */
int dt_input_open_bytes(struct dt_input **in, const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Without decompression: for formats that dt reads frame by frame. */
int dt_input_open_raw(struct dt_input **in, const char *path, struct dt_error *err) DT_MUST_CHECK;
/* For lines of text that are answered as they come: what begins the text is taken from what has
 * come with its first line, without waiting for more. */
int dt_input_open_lines(struct dt_input **in, const char *path, struct dt_error *err) DT_MUST_CHECK;
/* The first three; text, or bytes of another type (dt_input_need_text); and lines. */
enum dt_input_kind {
    DT_INPUT_TEXT,
    DT_INPUT_BYTES,
    DT_INPUT_RAW,
    DT_INPUT_DECODED,
    DT_INPUT_LINES
};
/* The same as one of them. hash, if not NULL, is started, and gets the bytes of the file as
 * they are read; it is borrowed until dt_input_close. At the end of the input it has all. */
int dt_input_open_hashed(struct dt_input **in, const char *path, enum dt_input_kind kind,
                         struct dt_sha256 *hash, struct dt_error *err) DT_MUST_CHECK;
/* Reads an open file or pipe as it is, which dt_input_close closes; name is copied. */
int dt_input_open_descriptor(struct dt_input **in, int fd, const char *name,
                             struct dt_error *err) DT_MUST_CHECK;
void dt_input_close(struct dt_input *in); /* NULL is fine */

/* Whether the next read will not wait for another process. */
bool dt_input_is_ready(const struct dt_input *in);
/* Up to capacity bytes; *size is 0 only at the end. */
int dt_input_read(struct dt_input *in, void *data, size_t capacity, size_t *size,
                  struct dt_error *err) DT_MUST_CHECK;
/* Exactly size bytes; an input that ends before is DT_EFORMAT "ends too early". */
int dt_input_read_exactly(struct dt_input *in, void *data, size_t size,
                          struct dt_error *err) DT_MUST_CHECK;
/* Bytes up to and without delimiter, replacing the contents of line. *found is
 * false when the input ended instead; at the very end line is empty and *found
 * false. More than DT_INPUT_LINE bytes are DT_EFORMAT. */
#define DT_INPUT_LINE ((size_t)256 << 20)
int dt_input_read_until(struct dt_input *in, char delimiter, struct dt_buffer *line, bool *found,
                        struct dt_error *err) DT_MUST_CHECK;
/* The same with a limit; bytes are appended. Returns with *found false once line holds more than
 * limit bytes. */
int dt_input_add_until(struct dt_input *in, char delimiter, size_t most, struct dt_buffer *line,
                       bool *found, struct dt_error *err) DT_MUST_CHECK;
/* Discards bytes up to and including delimiter; *found is false when the input ended instead. */
int dt_input_skip_until(struct dt_input *in, char delimiter, bool *found,
                        struct dt_error *err) DT_MUST_CHECK;

/* Bytes returned of the member or frame that is being decompressed: its checksum is yet to come. */
uint64_t dt_input_unchecked(const struct dt_input *in);
/* After DT_EFORMAT of damaged compressed data: moves to the next frame (io/frame.h), which later
 * reads return. *found is false if there is none: the input is at its end. A member that was cut
 * takes the bytes of the next for its own; that one is found in files, and in pipes within the last
 * 128 KiB. */
int dt_input_resume(struct dt_input *in, bool *found, struct dt_error *err) DT_MUST_CHECK;

/* Peeks at the next bytes without consuming them: up to DT_INPUT_PEEK, fewer only at the end, or
 * before damage of compressed data, which is the error of a read that reaches it. Valid until the
 * next call. */
#define DT_INPUT_PEEK DT_FILE_TYPE_HEAD
int dt_input_peek(struct dt_input *in, const char **data, size_t *size,
                  struct dt_error *err) DT_MUST_CHECK;

bool dt_input_is_damaged(const struct dt_input *in); /* peeking ended at damage */

/* Discards what follows, so that the hash has all. */
int dt_input_skip_rest(struct dt_input *in, struct dt_error *err) DT_MUST_CHECK;
/* The descriptor of a file that another program can read from its beginning, by /dev/fd or as its
 * standard input: a regular one, not compressed. -1 for others. */
int dt_input_descriptor(const struct dt_input *in);
/* Passes over UTF-8's byte order mark, if it comes next. */
int dt_input_skip_mark(struct dt_input *in, struct dt_error *err) DT_MUST_CHECK;
/* DT_EFORMAT, as of dt_input_open(), if what comes next is not text. */
int dt_input_need_text(struct dt_input *in, struct dt_error *err) DT_MUST_CHECK;

/* dt_file_type_refuse() of what is read. */
int dt_input_refuse(const struct dt_input *in, const struct dt_file_type *what,
                    struct dt_error *err);
/* The size of a URL's object (dt_remote_measure), which is then divided as a file is. */
void dt_input_set_size(struct dt_input *in, uint64_t size);
/* Whether what is read are the bytes of a file: a regular one, not compressed. */
bool dt_input_is_plain(const struct dt_input *in);
/* From here on reads bytes first .. end - 1 of such a file; a hash starts again. */
int dt_input_limit(struct dt_input *in, uint64_t first, uint64_t end,
                   struct dt_error *err) DT_MUST_CHECK;

/* Whether what is read are frames (io/frame.h) of a regular file, whose records can be divided. */
bool dt_input_is_framed(const struct dt_input *in);
/* How records are divided where a frame begins. */
struct dt_input_cut {
    const char *ends;   /* after the next of this byte, see dt_input_limit_frames(); or NULL: */
    const char *begins; /* there, since each frame begins with these characters */
};
/* From here on reads the records of such a file that follow the first frame which begins in bytes
 * first .. end - 1, up to those that follow the first frame at or after end; a hash starts again.
 * A record that ends with cut.ends follows the frame in which the end of the one before it is, so
 * that consecutive ranges have each record once. None are left if no frame begins in the range.
 * *at is where the frame begins, or end. */
int dt_input_limit_frames(struct dt_input *in, uint64_t first, uint64_t end,
                          struct dt_input_cut cut, uint64_t *at,
                          struct dt_error *err) DT_MUST_CHECK;
/* Bytes of an input without decompression, since dt_input_limit(), that reads returned. */
uint64_t dt_input_consumed(const struct dt_input *in);
/* Frames of which something was read. */
uint64_t dt_input_frames(const struct dt_input *in);

/* The path; "stdin" for "-"; of a URL without credentials and query. */
const char *dt_input_name(const struct dt_input *in);
/* Bytes read of the underlying file, and its size (0 if unknown). */
void dt_input_position(const struct dt_input *in, uint64_t *taken, uint64_t *total);

#endif
