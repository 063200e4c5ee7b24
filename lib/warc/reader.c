/* SPDX-License-Identifier: MIT */
#include "warc/reader.h"

#include <stdlib.h>
#include <string.h>

#include "unicode/utf8.h"
#include "warc/warc.h"
#include "json/json.h"

struct reader {
    struct dt_warc *warc;
    struct dt_warc_record record;
    const char *name; /* of the input; borrowed */
};

static int open_reader(void **state, const struct dt_document_source *source, struct dt_error *err)
{
    struct reader *r = dt_alloc(1, sizeof *r);
    (void)err;
    r->warc = dt_warc_open(source->in, source->most);
    r->name = dt_input_name(source->in);
    *state = r;
    return 0;
}

static void close_reader(void *state)
{
    struct reader *r = state;
    if (r == NULL)
        return;
    dt_warc_close(r->warc);
    dt_warc_record_release(&r->record);
    free(r);
}

/* Reads a record whose block is intact; a damaged one is bad. */
static int next_record(struct reader *r, struct dt_document_record *record, struct dt_error *err)
{
    int rc = dt_warc_next(r->warc, &r->record, err);
    if (rc == 1)
        rc = dt_warc_check_digest(&r->record, err) < 0 ? DT_EFORMAT : 1;
    record->line = r->record.number;
    record->as = &r->record.block;
    return rc == DT_EFORMAT ? DT_DOCUMENT_BAD : rc;
}

static const char *field(const struct dt_warc_record *r, const char *name, size_t *size)
{
    return dt_warc_field(r->fields.data, r->fields.size, name, size);
}

/* "<urn:uuid:...>" without the brackets. */
static void take_id(const struct dt_warc_record *r, struct dt_buffer *id)
{
    size_t size;
    const char *value = field(r, "WARC-Record-ID", &size);
    if (value && size > 2 && value[0] == '<' && value[size - 1] == '>')
        dt_buffer_append(id, value + 1, size - 2);
    else if (value)
        dt_buffer_append(id, value, size);
}

static void swap(struct dt_buffer *a, struct dt_buffer *b)
{
    struct dt_buffer other = *a;
    *a = *b;
    *b = other;
}

/* --- all records ------------------------------------------------------------------------------ */

static int next_of_all(void *state, struct dt_document *doc, struct dt_document_record *record,
                       struct dt_error *err)
{
    struct reader *r = state;
    int rc = next_record(r, record, err);
    if (rc != 1)
        return rc;
    take_id(&r->record, &doc->id);
    dt_buffer_add_string(&doc->meta, dt_warc_type_names[r->record.type]);
    dt_buffer_add_char(&doc->meta, '\n');
    dt_buffer_append(&doc->meta, r->record.fields.data, r->record.fields.size);
    swap(&doc->text, &r->record.block);
    return 1;
}

const struct dt_document_reader dt_warc_reader_records = {.name = "warc",
                                                          .begins = "WARC/",
                                                          .open = open_reader,
                                                          .next = next_of_all,
                                                          .close = close_reader};

/* --- texts ------------------------------------------------------------------------------------ */

void dt_warc_reader_add_member(struct dt_buffer *json, const char *name, const char *value,
                               size_t size)
{
    struct dt_buffer repaired = DT_BUFFER_EMPTY;
    dt_utf8_repair(value, size, &repaired);
    dt_buffer_printf(json, "%s\"%s\":", json->data[json->size - 1] == '{' ? "" : ",", name);
    dt_json_add_string(json, repaired.data ? repaired.data : "", repaired.size);
    dt_buffer_release(&repaired);
}

static bool is_in_brackets(const char *value, size_t size)
{
    return size > 1 && value[0] == '<' && value[size - 1] == '>';
}

/* Some writers put addresses in <>. */
static void describe(const struct dt_warc_record *r, struct dt_buffer *meta)
{
    static const struct {
        const char *field, *member;
    } rows[] = {{"WARC-Target-URI", "url"},
                {"WARC-Date", "date"},
                {"WARC-Identified-Content-Language", "lang_hint"},
                {"WARC-Truncated", "truncated"}};
    dt_buffer_add_char(meta, '{');
    for (size_t i = 0, size; i < sizeof rows / sizeof *rows; i++) {
        const char *value = field(r, rows[i].field, &size);
        if (value && i == 0 && is_in_brackets(value, size))
            value++, size -= 2;
        if (value)
            dt_warc_reader_add_member(meta, rows[i].member, value, size);
    }
    dt_buffer_add_char(meta, '}');
}

static int next_text(void *state, struct dt_document *doc, struct dt_document_record *record,
                     struct dt_error *err)
{
    struct reader *r = state;
    int rc;
    while ((rc = next_record(r, record, err)) == 1) {
        if (r->record.type == DT_WARC_TYPE_RESPONSE || r->record.type == DT_WARC_TYPE_RESOURCE)
            return dt_fail(err, DT_EFORMAT,
                           "%s: has web pages, not texts; extract them: dt-extract %s | ...",
                           r->name, r->name);
        if (r->record.type != DT_WARC_TYPE_CONVERSION)
            continue;
        take_id(&r->record, &doc->id);
        describe(&r->record, &doc->meta);
        swap(&doc->text, &r->record.block);
        return 1;
    }
    return rc;
}

const struct dt_document_reader dt_warc_reader_texts = {.name = "warc",
                                                        .begins = "WARC/",
                                                        .open = open_reader,
                                                        .next = next_text,
                                                        .close = close_reader};
