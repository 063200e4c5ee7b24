/* SPDX-License-Identifier: MIT */
#include "document/options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/program.h"
#include "document/file-names.h"
#include "io/input.h"
#include "io/lineage.h"

#define QUARANTINE "quarantine="

void dt_reading_options_check(const struct dt_reading_options *o,
                              struct dt_documents_options *documents)
{
    const char *policy = o->on_error ? o->on_error : "stop";
    const char *file = NULL;
    if (strncmp(policy, QUARANTINE, strlen(QUARANTINE)) == 0)
        file = policy + strlen(QUARANTINE);
    bool skip = file || strcmp(policy, "skip") == 0;
    if (!skip && strcmp(policy, "stop") != 0)
        dt_program_usage("--on-error takes stop, skip or quarantine=FILE, not '%s'", policy);
    if (file && (*file == '\0' || strcmp(file, "-") == 0))
        dt_program_usage("--on-error quarantine=FILE needs the name of a file");
    if (!skip && o->max_errors >= 0)
        dt_program_usage("--max-errors goes with --on-error skip or quarantine=FILE");
    documents->bad_lines = (struct dt_bad_line_policy){
        .skip = skip,
        .offered = true,
        .most = o->max_errors >= 0 ? (uint64_t)o->max_errors : UINT64_MAX,
        .quarantine = file};
    struct dt_error err;
    if (o->part && dt_document_part_parse(o->part, &documents->part, &err) < 0)
        dt_program_usage("--part: %s", err.text);
    documents->partial = o->partial;
    documents->list = o->files_from;
    documents->most = o->max_document ? (size_t)o->max_document : DT_DOCUMENT_BYTES;
}

void dt_reading_options_report(const struct dt_documents *documents)
{
    if (documents == NULL)
        return;
    const struct dt_documents_losses losses = dt_documents_losses(documents);
    if (!losses.ended)
        return;
    if (losses.skipped == 1)
        dt_program_warn("1 line skipped: %s", losses.first_skipped);
    if (losses.skipped > 1)
        dt_program_warn("%" PRIu64 " lines skipped, the first of them %s", losses.skipped,
                        losses.first_skipped);
    if (losses.files > 0)
        dt_program_warn("%" PRIu64 " file%s skipped%s%s", losses.files, dt_plural(losses.files),
                        losses.files > 1 ? ", the first of them " : ": ", losses.first_file);
    if (losses.first_partial)
        dt_program_warn("taken in part: %s", losses.first_partial);
    if (losses.undivided)
        dt_program_warn("%s: is one piece of compressed data, which is not divided: this part has "
                        "all its documents; outputs of dt named .gz or .zst can be divided",
                        losses.undivided);
    if (losses.html == 1)
        dt_program_warn("%s: is a page of HTML, read as text with its tags; dt-extract takes its "
                        "text alone",
                        losses.first_html);
    if (losses.html > 1)
        dt_program_warn("%" PRIu64 " files are pages of HTML, read as text with their tags; "
                        "dt-extract takes their text alone; the first is %s",
                        losses.html, losses.first_html);
    if (losses.missing_separator)
        dt_program_warn("separator '%s' not found: each input is one document",
                        losses.missing_separator);
}

/* --- names of files ---------------------------------------------------------------------------*/

static bool is_lineage(const char *name)
{
    size_t size = strlen(name), suffix = strlen(DT_LINEAGE_SUFFIX);
    return size >= suffix && strcmp(name + size - suffix, DT_LINEAGE_SUFFIX) == 0;
}

/* The directory before the first wildcard is the one that is misspelled most often. */
static int fail_match(const char *pattern, struct dt_error *err)
{
    struct dt_error none;
    char *directory = dt_strndup(pattern, strcspn(pattern, "*?["));
    char *slash = strrchr(directory, '/');
    if (slash && slash > directory)
        *slash = '\0';
    bool missing = slash && dt_file_probe(directory, &none) == 0;
    dt_fail(err, DT_EMISSING, "no file matches '%s'%s%s%s", pattern,
            missing ? ": the directory '" : "", missing ? directory : "",
            missing ? "' does not exist" : "");
    free(directory);
    return DT_EMISSING;
}

/* Regular files and others, but neither directories nor records of lineage, which outputs have
 * beside them. */
static int add_matches(struct dt_file_names *n, const char *pattern, struct dt_error *err)
{
    struct dt_file_names found = {.items = NULL};
    const size_t before = n->count;
    int rc = dt_file_names_match(&found, pattern, err);
    for (size_t i = 0; rc == 0 && i < found.count; i++)
        if (!dt_file_is_directory(found.items[i]) && !is_lineage(found.items[i]))
            dt_file_names_add(n, found.items[i]);
    dt_file_names_release(&found);
    return rc < 0 || n->count > before ? rc : fail_match(pattern, err);
}

static int add(struct dt_file_names *n, const char *name, struct dt_error *err)
{
    struct dt_error none;
    if (strpbrk(name, "*?[") && !strstr(name, "://") && dt_file_probe(name, &none) == 0)
        return add_matches(n, name, err);
    dt_file_names_add(n, name);
    return 0;
}

/* A list that has a NUL byte is one of names that end with them. */
static int add_list(struct dt_file_names *n, const char *path, struct dt_error *err)
{
    struct dt_buffer list = DT_BUFFER_EMPTY;
    struct dt_input *in;
    size_t size = 1;
    DT_TRY(dt_input_open_bytes(&in, path, err));
    const size_t before = n->count;
    int rc = 0;
    while (rc == 0 && size > 0) {
        dt_buffer_reserve(&list, list.size + ((size_t)1 << 16));
        rc = dt_input_read(in, list.data + list.size, (size_t)1 << 16, &size, err);
        list.size += size;
    }
    dt_buffer_add_string(&list, "");
    char end = memchr(list.data, '\0', list.size) ? '\0' : '\n';
    for (char *line = list.data, *last = list.data + list.size; rc == 0 && line < last;) {
        char *stop = memchr(line, end, (size_t)(last - line));
        stop = stop ? stop : last;
        *stop = '\0';
        if (*line)
            rc = add(n, line, err);
        line = stop + 1;
    }
    if (rc == 0 && n->count == before)
        rc = dt_fail(err, DT_EFORMAT, "%s: names no file", dt_input_name(in));
    dt_input_close(in);
    dt_buffer_release(&list);
    return rc;
}

void dt_reading_options_files(const struct dt_reading_options *o, const struct dt_command *command,
                              char ***files, int *count)
{
    static struct dt_file_names names;
    struct dt_error err;
    int rc = 0;
    names = (struct dt_file_names){.items = NULL};
    for (int i = 0; rc == 0 && i < *count; i++)
        rc = add(&names, (*files)[i], &err);
    if (rc == 0 && o->files_from)
        rc = add_list(&names, o->files_from, &err);
    if (rc < 0)
        exit(dt_program_report(&err));
    dt_options_take_inputs(command, names.items, (int)names.count);
    *files = names.items;
    *count = (int)names.count;
}
