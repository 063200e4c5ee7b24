/* SPDX-License-Identifier: MIT */
#include "track/event-file.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/program.h"
#include "encoding/protobuf.h"
#include "track/crc32c.h"

#define FILE_LIMIT   ((size_t)1 << 32)
#define FRAME        12 /* bytes before a record's data; a CRC of 4 bytes follows the data */
#define OWN_ENDING   ".dt-track"
#define SAME_START   1e-6 /* seconds */
#define SETTINGS_TAG "_hparams_/session_start_info"
#define END_TAG      "_hparams_/session_end_info"

enum { DT_FLOAT_TENSOR = 1, DT_STRING_TENSOR = 7, CLASS_TENSOR = 2 };
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_TENSOR = 8, VALUE_METADATA = 9 };

struct dt_event_file {
    FILE *file;
    char *path;
    double start;
    struct dt_last_steps last;
};

/* --- records -------------------------------------------------------------------------------- */

static uint64_t little_endian(const unsigned char *bytes, int count)
{
    uint64_t x = 0;
    for (int i = 0; i < count; i++)
        x |= (uint64_t)bytes[i] << 8 * i;
    return x;
}

static void put_little_endian(unsigned char *bytes, uint64_t x, int count)
{
    for (int i = 0; i < count; i++)
        bytes[i] = (unsigned char)(x >> 8 * i);
}

static int write_record(struct dt_event_file *f, const struct dt_buffer *event,
                        struct dt_error *err)
{
    unsigned char head[FRAME], tail[4];
    put_little_endian(head, event->size, 8);
    put_little_endian(head + 8, dt_crc32c_masked(head, 8), 4);
    put_little_endian(tail, dt_crc32c_masked(event->data, event->size), 4);
    if (fwrite(head, 1, sizeof head, f->file) != sizeof head ||
        fwrite(event->data, 1, event->size, f->file) != event->size ||
        fwrite(tail, 1, sizeof tail, f->file) != sizeof tail)
        return dt_fail_errno(err, "cannot write '%s'", f->path);
    return 0;
}

/* Size of the first record in data, frame included; 0 if it is incomplete or damaged. */
static size_t record_size(const unsigned char *data, size_t size)
{
    if (size < FRAME + 4 || little_endian(data + 8, 4) != dt_crc32c_masked(data, 8))
        return 0;
    uint64_t length = little_endian(data, 8);
    if (length > size - FRAME - 4 ||
        little_endian(data + FRAME + length, 4) != dt_crc32c_masked(data + FRAME, (size_t)length))
        return 0;
    return (size_t)length + FRAME + 4;
}

/* --- existing files -------------------------------------------------------------------------- */

static void recall_value(struct dt_event_file *f, const unsigned char *data, size_t size,
                         int64_t step)
{
    struct dt_pb_reader r = {.data = data, .size = size};
    while (dt_protobuf_next(&r))
        if (r.field == VALUE_TAG && r.bytes) {
            char *tag = dt_strndup((const char *)r.bytes, (size_t)r.number);
            dt_last_steps_set(&f->last, tag, step);
            free(tag);
        }
}

static void recall_event(struct dt_event_file *f, const unsigned char *data, size_t size)
{
    struct dt_pb_reader event = {.data = data, .size = size};
    int64_t step = 0;
    while (dt_protobuf_next(&event)) {
        if (event.field == EVENT_STEP)
            step = (int64_t)event.number;
        if (event.field != EVENT_SUMMARY || event.bytes == NULL)
            continue;
        struct dt_pb_reader summary = {.data = event.bytes, .size = (size_t)event.number};
        while (dt_protobuf_next(&summary))
            if (summary.field == 1 && summary.bytes)
                recall_value(f, summary.bytes, (size_t)summary.number, step);
    }
}

/* Reads the records, and truncates the file after the last complete one. */
static int recall(struct dt_event_file *f, struct dt_error *err)
{
    char *text;
    size_t size, place = 0, record;
    DT_TRY(dt_file_read(f->path, FILE_LIMIT, &text, &size, err));
    const unsigned char *data = (const unsigned char *)text;
    while ((record = record_size(data + place, size - place)) > 0) {
        recall_event(f, data + place + FRAME, record - FRAME - 4);
        place += record;
    }
    free(text);
    if (place < size && ftruncate(fileno(f->file), (off_t)place) < 0)
        return dt_fail_errno(err, "cannot truncate '%s'", f->path);
    return 0;
}

/* Whether the first record of an event file, the version, has this time. */
static bool begins_at(const char *path, double start)
{
    unsigned char head[256];
    FILE *file = fopen(path, "re");
    size_t size = file ? fread(head, 1, sizeof head, file) : 0, record = record_size(head, size);
    struct dt_pb_reader event = {.data = head + FRAME, .size = record ? record - FRAME - 4 : 0};
    double time = NAN;
    if (file)
        fclose(file);
    while (dt_protobuf_next(&event))
        if (event.field == EVENT_WALL_TIME && event.type == DT_PROTOBUF_FIXED64)
            memcpy(&time, &event.number, sizeof time);
    return fabs(time - start) < SAME_START;
}

/* Whether a name ends with the text and OWN_ENDING. */
static bool ends_with(const char *name, const char *text)
{
    size_t size = strlen(name), ending = strlen(OWN_ENDING) + strlen(text);
    return size > ending && strstr(name, "tfevents") &&
           strcmp(name + size - strlen(OWN_ENDING), OWN_ENDING) == 0 &&
           strncmp(name + size - ending, text, strlen(text)) == 0;
}

/* The run's event file of an earlier call, or NULL: one with its start, or else with its mark.
 * Those of other runs may be in the directory, too. Owned by the caller. */
static char *find_own(const char *directory, double start, const char *mark)
{
    DIR *d = dt_checked_errno(opendir(directory));
    char *found = NULL, *marked = NULL;
    for (struct dirent *e; d && found == NULL && (e = readdir(d));) {
        char *path = ends_with(e->d_name, "") ? dt_path_join(directory, e->d_name) : NULL;
        if (path && begins_at(path, start))
            found = path;
        else if (path && marked == NULL && *mark && ends_with(e->d_name, mark))
            marked = path;
        else
            free(path);
    }
    if (d)
        closedir(d);
    if (found == NULL)
        return marked;
    free(marked);
    return found;
}

static int write_version(struct dt_event_file *f, struct dt_error *err)
{
    struct dt_buffer event = DT_BUFFER_EMPTY;
    dt_protobuf_double(&event, EVENT_WALL_TIME, f->start);
    dt_protobuf_string(&event, EVENT_VERSION, "brain.Event:2");
    int rc = write_record(f, &event, err);
    dt_buffer_release(&event);
    return rc;
}

static int open_path(struct dt_event_file *f, struct dt_error *err)
{
    f->file = fopen(f->path, "ae");
    if (f->file == NULL)
        return dt_fail_errno(err, "cannot open '%s'", f->path);
    if (flock(fileno(f->file), LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return dt_fail(err, DT_EINVALID, "another program is writing '%s'", f->path);
    DT_TRY(recall(f, err));
    fseek(f->file, 0, SEEK_END);
    return ftell(f->file) == 0 ? write_version(f, err) : 0;
}

static void release(struct dt_event_file *f)
{
    if (f->file)
        fclose(f->file);
    dt_last_steps_release(&f->last);
    free(f->path);
    free(f);
}

int dt_event_file_open(struct dt_event_file **file, const char *directory, double start,
                       const char *mark, struct dt_error *err)
{
    char host[256] = "localhost";
    DT_TRY(dt_file_make_directories(directory, err));
    struct dt_event_file *f = dt_alloc(1, sizeof *f);
    gethostname(host, sizeof host - 1);
    f->start = start;
    f->path = find_own(directory, start, mark);
    if (f->path == NULL)
        f->path = dt_asprintf("%s/events.out.tfevents.%010.0f.%s.%d.0.%s" OWN_ENDING, directory,
                              start, host, (int)getpid(), mark);
    int rc = open_path(f, err);
    if (rc < 0)
        release(f);
    else
        *file = f;
    return rc;
}

/* --- events --------------------------------------------------------------------------------- */

/* Writes an event with one value; releases the value. */
static int write_value(struct dt_event_file *f, double seconds, int64_t step,
                       struct dt_buffer *value, struct dt_error *err)
{
    struct dt_buffer summary = DT_BUFFER_EMPTY, event = DT_BUFFER_EMPTY;
    dt_protobuf_message(&summary, 1, value);
    dt_protobuf_double(&event, EVENT_WALL_TIME, f->start + seconds);
    dt_protobuf_varint(&event, EVENT_STEP, (uint64_t)step);
    dt_protobuf_message(&event, EVENT_SUMMARY, &summary);
    int rc = write_record(f, &event, err);
    dt_buffer_release(value);
    dt_buffer_release(&summary);
    dt_buffer_release(&event);
    return rc;
}

int dt_event_file_add(struct dt_event_file *f, const struct dt_point *point, struct dt_error *err)
{
    struct dt_buffer value = DT_BUFFER_EMPTY;
    if (!dt_point_is_new(&f->last, point->name, point->step) || !isfinite((float)point->value))
        return 0;
    dt_protobuf_string(&value, VALUE_TAG, point->name);
    dt_protobuf_float(&value, VALUE_SIMPLE, (float)point->value);
    DT_TRY(write_value(f, point->seconds, point->step, &value, err));
    dt_last_steps_set(&f->last, point->name, point->step);
    return 0;
}

/* Plug-in metadata of TensorBoard: plug-in name and content. */
static void add_metadata(struct dt_buffer *value, const char *plugin,
                         const struct dt_buffer *content, bool tensor)
{
    struct dt_buffer data = DT_BUFFER_EMPTY, metadata = DT_BUFFER_EMPTY;
    dt_protobuf_string(&data, 1, plugin);
    if (content)
        dt_protobuf_message(&data, 2, content);
    dt_protobuf_message(&metadata, 1, &data);
    if (tensor)
        dt_protobuf_varint(&metadata, 4, CLASS_TENSOR);
    dt_protobuf_message(value, VALUE_METADATA, &metadata);
    dt_buffer_release(&data);
    dt_buffer_release(&metadata);
}

/* A tensor of shape [1]: the float 0, or a string. */
static void add_tensor(struct dt_buffer *value, const char *text, size_t size)
{
    struct dt_buffer tensor = DT_BUFFER_EMPTY, shape = DT_BUFFER_EMPTY, dim = DT_BUFFER_EMPTY;
    dt_protobuf_varint(&dim, 1, 1);
    dt_protobuf_message(&shape, 2, &dim);
    dt_protobuf_varint(&tensor, 1, text ? DT_STRING_TENSOR : DT_FLOAT_TENSOR);
    dt_protobuf_message(&tensor, 2, &shape);
    if (text)
        dt_protobuf_bytes(&tensor, 8, text, size);
    else
        dt_protobuf_bytes(&tensor, 5, "\0\0\0\0", 4);
    dt_protobuf_message(value, VALUE_TENSOR, &tensor);
    dt_buffer_release(&dim);
    dt_buffer_release(&shape);
    dt_buffer_release(&tensor);
}

static int write_session(struct dt_event_file *f, const char *tag, int field,
                         const struct dt_buffer *session, struct dt_error *err)
{
    struct dt_buffer content = DT_BUFFER_EMPTY, value = DT_BUFFER_EMPTY;
    dt_last_steps_set(&f->last, tag, 0);
    dt_protobuf_message(&content, field, session);
    dt_protobuf_string(&value, VALUE_TAG, tag);
    add_tensor(&value, NULL, 0);
    add_metadata(&value, "hparams", &content, false);
    dt_buffer_release(&content);
    return write_value(f, 0, 0, &value, err);
}

/* Numbers and booleans keep their type; other settings are strings. */
static void add_setting(struct dt_buffer *session, const char *name, const char *text)
{
    struct dt_buffer value = DT_BUFFER_EMPTY, entry = DT_BUFFER_EMPTY;
    double x;
    bool yes = strcmp(text, "true") == 0;
    if (dt_program_parse_real(text, &x) == 0)
        dt_protobuf_double(&value, 2, x);
    else if (yes || strcmp(text, "false") == 0)
        dt_protobuf_varint(&value, 4, yes);
    else
        dt_protobuf_string(&value, 3, text);
    dt_protobuf_string(&entry, 1, name);
    dt_protobuf_message(&entry, 2, &value);
    dt_protobuf_message(session, 1, &entry);
    dt_buffer_release(&value);
    dt_buffer_release(&entry);
}

int dt_event_file_add_settings(struct dt_event_file *f, struct json_object *settings,
                               struct dt_error *err)
{
    struct dt_buffer session = DT_BUFFER_EMPTY;
    if (!dt_point_is_new(&f->last, SETTINGS_TAG, 0))
        return 0;
    json_object_object_foreach(settings, name, text)
    {
        add_setting(&session, name, dt_json_text(text));
    }
    dt_protobuf_double(&session, 5, f->start);
    int rc = write_session(f, SETTINGS_TAG, 3, &session, err);
    dt_buffer_release(&session);
    return rc;
}

int dt_event_file_add_end(struct dt_event_file *f, bool success, struct dt_error *err)
{
    struct dt_buffer session = DT_BUFFER_EMPTY;
    if (!dt_point_is_new(&f->last, END_TAG, 0))
        return 0;
    dt_protobuf_varint(&session, 1, success ? 1 : 2);
    dt_protobuf_double(&session, 2, (double)time(NULL));
    int rc = write_session(f, END_TAG, 4, &session, err);
    dt_buffer_release(&session);
    return rc;
}

int dt_event_file_add_text(struct dt_event_file *f, const char *tag, int64_t step, const char *text,
                           size_t size, struct dt_error *err)
{
    struct dt_buffer value = DT_BUFFER_EMPTY;
    if (!dt_point_is_new(&f->last, tag, step))
        return 0;
    dt_protobuf_string(&value, VALUE_TAG, tag);
    add_tensor(&value, text, size);
    add_metadata(&value, "text", NULL, true);
    DT_TRY(write_value(f, 0, step, &value, err));
    dt_last_steps_set(&f->last, tag, step);
    return 0;
}

int dt_event_file_flush(struct dt_event_file *f, struct dt_error *err)
{
    return fflush(f->file) == 0 ? 0 : dt_fail_errno(err, "cannot write '%s'", f->path);
}

const char *dt_event_file_path(const struct dt_event_file *f)
{
    return f->path;
}

int dt_event_file_close(struct dt_event_file *f, struct dt_error *err)
{
    int rc = f->file ? dt_event_file_flush(f, err) : 0;
    release(f);
    return rc;
}
