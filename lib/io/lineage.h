/* SPDX-License-Identifier: MIT */
/*
 * Lineage: a record for each command that led to an output, oldest first.
 *
 *     {"program": "dt-clean", "version": "0.2.0", "commit": "c6ed...",
 *      "unicode": "15.0.0", "arguments": ["--normalize", "nfc", "stories.jsonl"],
 *      "inputs": [{"path": "stories.jsonl", "bytes": 123, "sha256": "...", "from": ID}],
 *      "id": ID}
 *
 * "id" is the SHA-256 of the record without it, as compact JSON; "from" names the earlier record
 * whose command wrote the input. So an id covers all that went before. Arguments are those of
 * dt_command_arguments(): no output, no number of threads, no passwords; equal commands on equal
 * inputs have equal records.
 *
 *     struct dt_lineage *l = dt_lineage_new();
 *     DT_TRY(dt_lineage_add_path(l, "tokenizer.json", err));    each input
 *     ...
 *     DT_TRY(dt_lineage_write_beside(l, "clean.jsonl", err));   clean.jsonl.lineage.json
 *     dt_lineage_free(l);
 *
 * dt-lineage(5) says where each program puts the records of its outputs.
 */
#ifndef DT_IO_LINEAGE_H
#define DT_IO_LINEAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"
#include "hash/sha256.h"
#include "json/json.h"

#define DT_LINEAGE_SUFFIX ".lineage.json" /* of the file beside an output */
#define DT_LINEAGE_FILE   "lineage.json"  /* in a directory */

struct dt_lineage;

/* The lineage of the running command, without inputs. */
struct dt_lineage *dt_lineage_new(void);
/* The same for a command that writes documents or a file to output; NULL if that has no place for
 * records: neither a file that is named nor a pipe. All functions below take NULL, and then do
 * nothing but what they also do to the output. */
struct dt_lineage *dt_lineage_for(const char *output);
void dt_lineage_free(struct dt_lineage *l);

/* An input that the caller read: its size and hash, and the records of what it is, an array, whose
 * last one wrote it; NULL: none are known. upstream is borrowed. Without a hash ("" for a pipe
 * between programs) the records alone identify it. */
void dt_lineage_add_input(struct dt_lineage *l, const char *path, uint64_t bytes,
                          const char *sha256, struct json_object *upstream);
/* The same of a file that the caller read from the disk: finds its records beside it. */
int dt_lineage_add_read(struct dt_lineage *l, const char *path, struct dt_sha256 *hash,
                        struct dt_error *err) DT_MUST_CHECK;
/* The same of a part of a file, from byte first on, whose records are not looked for. */
void dt_lineage_add_range(struct dt_lineage *l, const char *path, uint64_t first,
                          struct dt_sha256 *hash);
/* Reads and adds an input: a file; or a directory, by the manifest that covers its files, or all
 * its files if it has none. A path that does not exist, which is for the program to refuse or find
 * elsewhere, is not added. */
int dt_lineage_add_path(struct dt_lineage *l, const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Files that one command merges, such as the signatures of all parts. Above DT_LINEAGE_SEPARATE
 * they are one input without records: if each part had the records of all parts, those of N parts
 * would take N squared. */
#define DT_LINEAGE_SEPARATE 256
int dt_lineage_add_files(struct dt_lineage *l, const char *const *paths, int count,
                         struct dt_error *err) DT_MUST_CHECK;
/* The command continues what is at path: adds it as an input, unless its records have this very
 * command on these inputs, since an interrupted and an uninterrupted one have the same result. */
int dt_lineage_continue(struct dt_lineage *l, const char *path, struct dt_error *err) DT_MUST_CHECK;
/* A member of the command's record beyond the arguments, which decides the output, too: takes
 * ownership of value. */
void dt_lineage_set(struct dt_lineage *l, const char *name, struct json_object *value);

/* All records, that of the command last; belongs to l. Nothing can be added afterwards. */
struct json_object *dt_lineage_records(struct dt_lineage *l);

/* Writes PATH.lineage.json, of a file that is complete: its size, its hash, the records. */
int dt_lineage_write_beside(struct dt_lineage *l, const char *path,
                            struct dt_error *err) DT_MUST_CHECK;
/* Hashes a named file while it is written, on a separate thread if threads is above 1, so that
 * dt_lineage_commit() does not read it again. Call before the first write. */
void dt_lineage_watch(struct dt_lineage *l, struct dt_output *out, int threads);
/* dt_output_commit(), and dt_lineage_write_beside() for a file that was named. */
int dt_lineage_commit(struct dt_lineage *l, struct dt_output *out,
                      struct dt_error *err) DT_MUST_CHECK;
/* Writes DIRECTORY/lineage.json: the size and hash of each other file in it, the records. */
int dt_lineage_write_inside(struct dt_lineage *l, const char *directory,
                            struct dt_error *err) DT_MUST_CHECK;

/* DT_EFORMAT unless records is an array of records, each with the id of its content, which name
 * only earlier ones. subject names their file in errors. */
int dt_lineage_check(struct json_object *records, const char *subject,
                     struct dt_error *err) DT_MUST_CHECK;
/* What identifies a directory that dt wrote whatever version wrote it: a hash as text, owned by the
 * caller. */
int dt_lineage_content(const char *path, char **content, struct dt_error *err) DT_MUST_CHECK;
/* The records of a file, a directory or a run; DT_EMISSING if it has none. *records is owned by the
 * caller (json_object_put). */
int dt_lineage_read(const char *path, struct json_object **records,
                    struct dt_error *err) DT_MUST_CHECK;
/* The same with paths and arguments as they were given: one that is not UTF-8 is recorded as a
 * shell reads it, $'caf\xe9.txt', and so is one that begins with $'. The ids are not of these. */
int dt_lineage_read_restored(const char *path, struct json_object **records,
                             struct dt_error *err) DT_MUST_CHECK;

#endif
