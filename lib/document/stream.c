/* SPDX-License-Identifier: MIT */
#include "document/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "io/output-codec.h"
#include "json/json.h"

#define BEGIN ",\"" DT_STREAM_MEMBER "\":\"begin\""
#define CLOSE "}\n" /* the end of every line */

/* The hash of a stream after one more text: a polynomial in the texts' hashes, so that it
 * depends on their order, at one multiplication per document. */
static uint64_t add_hash(uint64_t stream, uint64_t text)
{
    return (stream + text) * UINT64_C(0x9e3779b97f4a7c15);
}

/* --- writing ---------------------------------------------------------------------------------- */

struct dt_document_writer dt_document_writer_to(struct dt_output *out,
                                                enum dt_document_output format)
{
    return (struct dt_document_writer){.out = out,
                                       .format = format,
                                       .marked = format == DT_DOCUMENT_OUTPUT_JSONL &&
                                                 dt_output_is_pipe(out)};
}

/* The first write finds out whether the file is compressed. */
static int write_bytes(struct dt_document_writer *w, const char *data, size_t size, bool ends,
                       struct dt_error *err)
{
    if (!w->begun)
        DT_TRY(dt_output_codec_open(&w->codec, w->out, w->format == DT_DOCUMENT_OUTPUT_JSONL, err));
    w->begun = true;
    return w->codec ? dt_output_codec_write(w->codec, w->out, data, size, ends, err)
                    : dt_output_write(w->out, data, size, err);
}

void dt_document_writer_release(struct dt_document_writer *w)
{
    dt_output_codec_close(w->codec);
    w->codec = NULL;
}

int dt_document_writer_add(struct dt_document_writer *w, const struct dt_document *doc,
                           struct dt_buffer *scratch, struct dt_error *err)
{
    uint64_t hash = w->marked ? dt_hash(doc->text.data, doc->text.size) : 0;
    dt_buffer_clear(scratch);
    dt_document_write(w->format, doc, scratch);
    return dt_document_writer_add_line(w, scratch->data, scratch->size, hash, err);
}

/* Ends the previous line: now it is known not to be the last. */
static int end_line(const struct dt_document_writer *w, struct dt_error *err)
{
    if (w->documents == 0)
        return 0;
    const char *end = w->documents == 1 ? BEGIN CLOSE : CLOSE;
    return dt_output_write(w->out, end, strlen(end), err);
}

int dt_document_writer_add_line(struct dt_document_writer *w, const char *line, size_t size,
                                uint64_t text_hash, struct dt_error *err)
{
    if (!w->marked)
        return write_bytes(w, line, size, false, err);
    DT_TRY(end_line(w, err));
    w->documents++;
    w->hash = add_hash(w->hash, text_hash);
    return dt_output_write(w->out, line, size - strlen(CLOSE), err);
}

int dt_document_writer_end(struct dt_document_writer *w, struct dt_error *err)
{
    char hash[DT_HASH_HEX];
    struct dt_buffer text = DT_BUFFER_EMPTY;
    if (!w->marked)
        return w->out ? write_bytes(w, "", 0, true, err) : 0;
    if (w->documents == 0)
        return w->may_be_empty
                   ? dt_output_write(w->out, DT_STREAM_EMPTY, strlen(DT_STREAM_EMPTY), err)
                   : 0;
    dt_buffer_printf(&text, ",\"" DT_STREAM_MEMBER "\":{\"documents\":%" PRIu64 ",\"xxh3\":\"%s\"",
                     w->documents, dt_hash_hex(w->hash, hash));
    if (w->lineage) {
        dt_buffer_add_string(&text, ",\"lineage\":");
        dt_json_add_value(&text, dt_lineage_records(w->lineage), DT_JSON_COMPACT);
    }
    dt_buffer_add_string(&text, "}" CLOSE);
    w->documents = 0;
    w->may_be_empty = false;
    int rc = dt_output_write(w->out, text.data, text.size, err);
    dt_buffer_release(&text);
    return rc;
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool parse_end(struct json_object *object, struct dt_stream_mark *mark)
{
    struct dt_error none;
    int64_t documents;
    const char *hash;
    if (!json_object_is_type(object, json_type_object) ||
        dt_json_get_int(object, "documents", "", &documents, &none) < 0 || documents < 1 ||
        dt_json_get_string(object, "xxh3", "", &hash, &none) < 0 || strlen(hash) != DT_HASH_HEX - 1)
        return false;
    mark->kind = DT_STREAM_MARK_END;
    mark->documents = (uint64_t)documents;
    memcpy(mark->xxh3, hash, DT_HASH_HEX);
    return true;
}

bool dt_stream_mark_parse(const char *json, size_t size, struct dt_stream_mark *mark)
{
    struct json_object *value = NULL;
    struct dt_error none;
    if (size == strlen("\"begin\"") && memcmp(json, "\"begin\"", size) == 0) {
        mark->kind = DT_STREAM_MARK_BEGIN;
        return true;
    }
    if (dt_json_parse(json, size, "", &value, &none) < 0)
        return false;
    bool is_end = parse_end(value, mark);
    json_object_put(value);
    mark->json = json;
    mark->size = size;
    return is_end;
}

int dt_stream_mark_lineage(const struct dt_stream_mark *mark, struct json_object **records,
                           struct dt_error *err)
{
    struct json_object *end;
    *records = NULL;
    if (mark->kind != DT_STREAM_MARK_END)
        return 0;
    DT_TRY(dt_json_parse(mark->json, mark->size, "the end record", &end, err));
    int rc = 0;
    if (json_object_object_get_ex(end, "lineage", records))
        rc = dt_lineage_check(*records, "the end record", err);
    *records = rc == 0 && *records ? json_object_get(*records) : NULL;
    json_object_put(end);
    return rc;
}

static void begin(struct dt_stream_check *check)
{
    *check = (struct dt_stream_check){.inside = true};
}

static int compare(const struct dt_stream_check *check, const struct dt_stream_mark *mark,
                   struct dt_error *err)
{
    char hash[DT_HASH_HEX];
    if (mark->documents != check->documents)
        return dt_fail(err, DT_EFORMAT,
                       "the document stream was changed on its way: its writer sent %" PRIu64
                       " document%s, and %" PRIu64 " arrived",
                       mark->documents, dt_plural(mark->documents), check->documents);
    if (!check->inside || strcmp(mark->xxh3, dt_hash_hex(check->hash, hash)) != 0)
        return dt_fail(err, DT_EFORMAT,
                       "the document stream was changed on its way: %" PRIu64
                       " document%s arrived, but not with the texts that its writer sent",
                       check->documents, dt_plural(check->documents));
    return 0;
}

int dt_stream_check_add(struct dt_stream_check *check, const struct dt_stream_mark *mark,
                        const struct dt_buffer *text, struct dt_error *err)
{
    int rc = 0;
    if (mark->kind == DT_STREAM_MARK_BEGIN && check->inside)
        rc = dt_fail(err, DT_EFORMAT,
                     "a document stream begins after %" PRIu64
                     " document%s of one without an end record",
                     check->documents, dt_plural(check->documents));
    if (mark->kind == DT_STREAM_MARK_BEGIN ||
        (mark->kind == DT_STREAM_MARK_END && mark->documents == 1 && !check->inside))
        begin(check);
    check->documents++;
    if (check->inside)
        check->hash = add_hash(check->hash, dt_hash(text->data, text->size));
    if (mark->kind == DT_STREAM_MARK_END) {
        rc = compare(check, mark, err);
        *check = (struct dt_stream_check){0};
    }
    return rc;
}

int dt_stream_check_end(struct dt_stream_check *check, struct dt_error *err)
{
    struct dt_stream_check seen = *check;
    *check = (struct dt_stream_check){0};
    if (!seen.inside)
        return 0;
    return dt_fail(err, DT_EFORMAT,
                   "the document stream ends after %" PRIu64
                   " document%s without its end record: its writer failed or was stopped, or a "
                   "program between them cut it",
                   seen.documents, dt_plural(seen.documents));
}

bool dt_stream_is_empty(const char *input, size_t size)
{
    return size == strlen(DT_STREAM_EMPTY) && memcmp(input, DT_STREAM_EMPTY, size) == 0;
}

int dt_stream_fail_absent(struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT,
                   "no byte arrived, while a document stream without documents has a mark: its "
                   "writer failed, or is another program that wrote nothing");
}
