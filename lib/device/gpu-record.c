/* SPDX-License-Identifier: MIT */
#include "device/gpu-record.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "base/system.h"
#include "hash/sha256.h"

#define DRIVER_VERSION "/sys/module/nvidia/version"
#define MOST_BYTES     ((size_t)1 << 20)

const char *const dt_gpu_option_names[] = {"wgmma", "graph", NULL};

char *dt_gpu_record_path(void)
{
    return dt_path_configuration("DT_GPU_RECORDS", "gpus");
}

/* Reads the text of the file, "" if there is none; owned by the caller. */
static int read_records(const char *path, char **text, struct dt_error *err)
{
    size_t size;
    *text = NULL;
    if (!dt_file_is_regular(path)) {
        *text = dt_asprintf("%s", "");
        return 0;
    }
    return dt_file_read(path, MOST_BYTES, text, &size, err);
}

/* Takes the next line, without its end; NULL after the last. */
static char *next_line(char **rest)
{
    char *line = *rest, *end;
    if (line == NULL || *line == '\0')
        return NULL;
    end = strchr(line, '\n');
    *rest = end ? end + 1 : NULL;
    if (end)
        *end = '\0';
    return line;
}

/* Whether the words have this one. */
static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' '))
            return true;
    return false;
}

/* Cuts a line into fields; false if it does not have four. */
static bool cut(char *line, char *fields[4])
{
    int count = 0;
    for (char *at = line; at; count++) {
        if (count == 4)
            return false;
        fields[count] = at;
        at = strchr(at, '\t');
        if (at)
            *at++ = '\0';
    }
    return count == 4;
}

static bool is_like(const struct dt_gpu_record *record, char *const fields[4])
{
    return strcmp(fields[0], record->gpu) == 0 && strcmp(fields[1], record->driver) == 0 &&
           strcmp(fields[2], record->engine) == 0;
}

static int find(struct dt_gpu_record *record, struct dt_error *err)
{
    char *path = dt_gpu_record_path(), *text, *fields[4];
    int rc = read_records(path, &text, err), number = 0;
    memset(record->proven, 0, sizeof record->proven);
    char *rest = text;
    for (char *line; rc == 0 && (line = next_line(&rest)) != NULL;) {
        number++;
        if (!cut(line, fields))
            rc = dt_fail(err, DT_EFORMAT,
                         "%s:%d: a record of a GPU has four fields, separated by tabs; remove this "
                         "line, or the file",
                         path, number);
        else if (is_like(record, fields))
            for (int i = 0; i < DT_GPU_OPTIONS; i++)
                record->proven[i] = has_word(fields[3], dt_gpu_option_names[i]);
    }
    free(text), free(path);
    return rc;
}

int dt_gpu_record_store(const struct dt_gpu_record *record, struct dt_error *err)
{
    struct dt_buffer out = DT_BUFFER_EMPTY;
    char *path = dt_gpu_record_path(), *text, *fields[4];
    int rc = read_records(path, &text, err);
    char *rest = text;
    for (char *line; rc == 0 && (line = next_line(&rest)) != NULL;)
        if (cut(line, fields) && !is_like(record, fields))
            dt_buffer_printf(&out, "%s\t%s\t%s\t%s\n", fields[0], fields[1], fields[2], fields[3]);
    dt_buffer_printf(&out, "%s\t%s\t%s\t", record->gpu, record->driver, record->engine);
    for (int i = 0, words = 0; i < DT_GPU_OPTIONS; i++)
        if (record->proven[i])
            dt_buffer_printf(&out, "%s%s", words++ ? " " : "", dt_gpu_option_names[i]);
    dt_buffer_add_char(&out, '\n');
    rc = rc < 0 ? rc : dt_file_make_parent(path, err);
    rc = rc < 0 ? rc : dt_file_write(path, out.data, out.size, err);
    dt_buffer_release(&out);
    free(text), free(path);
    return rc;
}

/* The running driver's version; false if it is not known. */
static bool find_driver(char *version, size_t size)
{
    const char *given = getenv("DT_GPU_DRIVER");
    char *text = NULL;
    struct dt_error unused;
    size_t length;
    if (given == NULL && dt_file_read(DRIVER_VERSION, size, &text, &length, &unused) < 0)
        return false;
    snprintf(version, size, "%s", given ? given : text);
    version[strcspn(version, "\n")] = '\0';
    free(text);
    return true;
}

int dt_gpu_record_load(struct dt_gpu_record *record, const char *gpu, const void *symbol,
                       struct dt_error *err)
{
    char *path = dt_gpu_record_path();
    const bool exists = dt_file_is_regular(path);
    struct dt_error unused;
    uint64_t bytes;
    Dl_info place;
    free(path);
    *record = (struct dt_gpu_record){.gpu = ""};
    snprintf(record->gpu, sizeof record->gpu, "%s", gpu);
    if (!exists || !find_driver(record->driver, sizeof record->driver) ||
        dladdr(symbol, &place) == 0 || place.dli_fname == NULL ||
        dt_sha256_file(place.dli_fname, &bytes, record->engine, &unused) < 0)
        return 0;
    return find(record, err);
}
