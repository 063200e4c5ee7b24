/* SPDX-License-Identifier: MIT */
/*
 * Files that are either whole or absent.
 *
 * A struct dt_output is a file being made: bytes go to a hidden temporary
 * neighbour (".NAME.tmp-PID"), and only dt_output_commit, after fsync, gives
 * it its name. A program that dies half-way leaves no file that looks
 * finished, and no file at all if a signal other than SIGKILL ended it; what
 * SIGKILL left is removed by the next writer of the same file. (A writer holds a
 * flock(2) on its temporary file, so that one without is known to be stale.)
 * "-" stands for stdout, which cannot be made atomic but is checked to the
 * last byte; so do /dev/stdout, /dev/stderr and /dev/fd/N for open
 * files. A symbolic link stays one, and the file that it names is replaced; the
 * new file has the permissions of the old. On a terminal control characters other than line
 * feeds and tabs are spelled (base/printable.h); into files and pipes bytes go as they are.
 *
 *     struct dt_output out;
 *     DT_TRY(dt_output_open(&out, path, err));
 *     if (write_it(&out, err) < 0 || dt_output_commit(&out, err) < 0)
 *         dt_output_abandon(&out);
 */
#ifndef DT_BASE_FILE_H
#define DT_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct dt_output {
    int fd;
    char *path;      /* as given; "-" is stdout */
    char *target;    /* path with symbolic links followed */
    char *temporary; /* NULL for stdout and for files that are no regular file (/dev/null) */
    char *buffer;    /* bytes not yet written */
    size_t used;
    uint64_t written; /* bytes accepted so far, buffered ones included */
    bool terminal;
    char begun[4]; /* on a terminal: a character whose last bytes have not come yet */
    size_t begun_size;
};

int dt_output_open(struct dt_output *out, const char *path, struct dt_error *err) DT_MUST_CHECK;
int dt_output_write(struct dt_output *out, const void *data, size_t size,
                    struct dt_error *err) DT_MUST_CHECK;
/* Hands buffered bytes to the system now, for readers at the other end of a pipe. */
int dt_output_flush(struct dt_output *out, struct dt_error *err) DT_MUST_CHECK;
/* Flushes, syncs, closes and renames. After success or failure *out is released. */
int dt_output_commit(struct dt_output *out, struct dt_error *err) DT_MUST_CHECK;
/* Closes and removes the temporary file. Safe on a released or all-zero *out. */
void dt_output_abandon(struct dt_output *out);

/* Opens a regular file for reading and returns its descriptor. Never waits: a FIFO, which would
 * block until a writer opens it, a device, a socket or a directory is DT_EIO by name, and is not
 * opened. */
int dt_file_open(const char *path, struct dt_error *err) DT_MUST_CHECK;

/* Reads a whole file into memory, ended by a 0 byte that *size does not count.
 * *data is owned by the caller (free). Files above limit bytes are refused, and so is all that
 * dt_file_open refuses, except what the program was handed open: /dev/stdin, /dev/fd/N (a
 * shell's <(command)) and /proc/self/fd/N. */
int dt_file_read(const char *path, size_t limit, char **data, size_t *size,
                 struct dt_error *err) DT_MUST_CHECK;

/* DT_EIO for what is there but not a regular file: for files that are read twice, or written
 * to. What is absent passes; opening it tells. */
int dt_file_need_regular(const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Writes a whole file atomically. */
int dt_file_write(const char *path, const void *data, size_t size,
                  struct dt_error *err) DT_MUST_CHECK;

/* Whether another program reads the bytes as they are written: a pipe or a socket. */
bool dt_output_is_pipe(const struct dt_output *out);
/* Whether dt_output_open(path) would write to a terminal. */
bool dt_output_is_terminal(const char *path);

/* Whether writing to output would change or replace input: the same regular file, by whatever
 * path, links included. "-" is stdout and stdin. */
bool dt_output_is_input(const char *output, const char *input);
/* Whether both would write to one file; one that does not exist yet is told by its path. */
bool dt_output_is_same(const char *a, const char *b);

bool dt_file_is_directory(const char *path);
/* 1: the path names something; 0: it names nothing. DT_EIO where the system does not tell (no
 * permission to search a directory, a loop of links), and for a link to nothing: such a file is
 * not absent, and leaving it out would go unnoticed. */
int dt_file_probe(const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Creates a directory and its missing parents; an existing one is fine. */
int dt_file_make_directories(const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Removes a directory and all it holds; an absent one is fine, a link is an error. */
int dt_file_remove_tree(const char *path, struct dt_error *err);
/* Makes the entries of a directory durable. */
int dt_sync_directory(const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Makes link point to target, atomically, whether or not link exists. */
int dt_file_replace_symlink(const char *target, const char *link,
                            struct dt_error *err) DT_MUST_CHECK;

#endif
