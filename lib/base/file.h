/* SPDX-License-Identifier: MIT */
/*
 * Atomic output files: written to a temporary file, synced, renamed.
 *
 * A struct dt_output writes to a hidden temporary file in the target's directory (".NAME.tmp-N");
 * dt_output_commit syncs it and renames it to NAME. A program that fails leaves no file that looks
 * finished. A signal that ends the program removes the temporary file; after SIGKILL or a crash the
 * next writer of NAME does. (A writer holds a flock(2) on its temporary file: one without a lock is
 * stale.) "-" stands for stdout, which cannot be made atomic but is checked to the last byte; so do
 * /dev/stdout, /dev/stderr and /dev/fd/N for open files. For a symbolic link the file that it names
 * is replaced; the new file keeps the permissions of the old one. On a terminal control characters
 * other than line feeds and tabs are escaped (base/printable.h); files and pipes get the bytes
 * unchanged.
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
#include <sys/types.h>

#include "base/error.h"

struct dt_output {
    int fd;
    char *path;      /* as given; "-" is stdout */
    char *target;    /* path with symbolic links followed */
    char *temporary; /* NULL for stdout and for anything but regular files (/dev/null) */
    char *buffer;    /* buffered bytes */
    size_t used;
    uint64_t written; /* bytes accepted, including buffered ones */
    /* Called with all bytes written to the file, in order; or NULL. */
    void (*witness)(void *context, const void *data, size_t size);
    void *context;
    bool terminal;
    char begun[4]; /* on a terminal: an incomplete character */
    size_t begun_size;
};

int dt_output_open(struct dt_output *out, const char *path, struct dt_error *err) DT_MUST_CHECK;
int dt_output_write(struct dt_output *out, const void *data, size_t size,
                    struct dt_error *err) DT_MUST_CHECK;
/* Writes buffered bytes now, for the reader of a pipe. */
int dt_output_flush(struct dt_output *out, struct dt_error *err) DT_MUST_CHECK;
/* Flushes, syncs, closes and renames. After success or failure *out is released. */
int dt_output_commit(struct dt_output *out, struct dt_error *err) DT_MUST_CHECK;
/* The same without a sync, for one of many files under names that readers refuse until
 * dt_file_sync_all has returned. */
int dt_output_commit_unsynced(struct dt_output *out, struct dt_error *err) DT_MUST_CHECK;
/* Closes and removes the temporary file. Safe on a released or all-zero *out. */
void dt_output_abandon(struct dt_output *out);

/* Whether a read or a write of the descriptor that failed by errno is to be repeated: a signal
 * interrupted it, or it would block, as of a pipe that another program has set so, and this has
 * waited. events: POLLIN or POLLOUT. */
bool dt_file_is_to_repeat(int fd, short events);

/* Opens a regular file for reading and returns its descriptor. Never blocks: a FIFO, device,
 * socket or directory is DT_EIO and is not opened. */
int dt_file_open(const char *path, struct dt_error *err) DT_MUST_CHECK;

/* Reads a whole file into memory, ended by a 0 byte that *size does not count. *data is owned by
 * the caller (free). Fails on files of more than limit bytes and on all that dt_file_open
 * refuses, except inherited descriptors: /dev/stdin, /dev/fd/N (a shell's <(command)) and
 * /proc/self/fd/N. */
int dt_file_read(const char *path, size_t limit, char **data, size_t *size,
                 struct dt_error *err) DT_MUST_CHECK;

/* A new file without a name, to be written and read; its descriptor. directory: "" is the current
 * one, NULL that of TMPDIR. */
int dt_file_open_nameless(const char *directory, struct dt_error *err) DT_MUST_CHECK;

/* DT_EIO if path exists but is not a regular file: for files that are read twice, or written to.
 * A missing file passes: opening it will fail. */
int dt_file_need_regular(const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Writes a whole file atomically. */
int dt_file_write(const char *path, const void *data, size_t size,
                  struct dt_error *err) DT_MUST_CHECK;

/* Whether another program reads the bytes as they are written: a pipe or a socket. */
bool dt_output_is_pipe(const struct dt_output *out);
/* Whether an input is written by another program as it is read; "-" is stdin. */
bool dt_file_is_pipe(const char *path);
/* Whether dt_output_open(path) would write to a terminal. */
bool dt_output_is_terminal(const char *path);

/* Whether writing to output would change or replace input: the same regular file, by whatever
 * path, links included. "-" is stdout and stdin. */
bool dt_output_is_input(const char *output, const char *input);
/* DT_EINVALID if an output is the same regular file as an input. */
int dt_output_check_inputs(const char *const *outputs, size_t output_count,
                           const char *const *inputs, size_t count,
                           struct dt_error *err) DT_MUST_CHECK;
/* Whether both paths name one file; files that do not exist yet are compared by path. */
bool dt_output_is_same(const char *a, const char *b);
/* DT_EINVALID if two inputs are the same regular file, by whatever path. "-" is stdin. */
int dt_file_check_distinct(const char *const *paths, size_t count,
                           struct dt_error *err) DT_MUST_CHECK;

bool dt_file_is_directory(const char *path);
bool dt_file_is_regular(const char *path);
/* 1 and the type and permissions of what the path names; 0 if it names nothing. DT_EIO if that
 * cannot be determined, which the two above take for "no". */
int dt_file_look(const char *path, mode_t *mode, struct dt_error *err) DT_MUST_CHECK;
/* 1 if the path exists, 0 if not. DT_EIO if that cannot be determined (no permission to search a
 * directory, a loop of links) and for a dangling link: to skip such a file would go unnoticed. */
int dt_file_probe(const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Creates a directory and its missing parents; an existing one is fine. */
int dt_file_make_directories(const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Creates the directory that holds the path. */
int dt_file_make_parent(const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Removes a directory and all it holds; an absent one is fine, a link is an error. */
int dt_file_remove_tree(const char *path, struct dt_error *err);
/* Syncs the entries of a directory. */
int dt_sync_directory(const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Whether dt_file_sync_all makes files of this directory durable and reports what failed: on ext4,
 * XFS, Btrfs, tmpfs and overlays of them, since Linux 5.8. directory: a descriptor. */
bool dt_file_can_sync_all(int directory);
/* Makes all data written to the file system of the directory durable (syncfs). Reports errors of
 * writes since the descriptor was opened. */
int dt_file_sync_all(int directory, const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Makes link point to target, atomically, whether or not link exists. */
int dt_file_replace_symlink(const char *target, const char *link,
                            struct dt_error *err) DT_MUST_CHECK;

#endif
