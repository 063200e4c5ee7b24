/* SPDX-License-Identifier: MIT */
/* WARC files, compressed or not, with damage skipped: as documents of texts, and each record as an
 * HTTP response. The first byte chooses the limit. */
#include <string.h>

#include "fuzz.h"
#include "warc/reader.h"
#include "warc/response.h"
#include "warc/warc.h"

static void decode(const struct dt_document *doc, size_t most)
{
    struct dt_warc_response response;
    struct dt_buffer body = DT_BUFFER_EMPTY;
    size_t size = doc->text.size;
    char *exact = malloc(size ? size : 1); /* so that AddressSanitizer sees where it ends */
    if (size > 0)
        memcpy(exact, doc->text.data, size);
    if (dt_warc_response_parse(exact, size, &response)) {
        if (response.status < 0 || response.status > 999 || response.body_size > size)
            abort();
        enum dt_warc_body rc = dt_warc_response_decode(&response, most, &body);
        if (rc == DT_WARC_BODY_DECODED && body.size > most)
            abort();
    }
    dt_buffer_release(&body);
    free(exact);
}

static void read_all(const struct dt_document_reader *reader, const char *path, size_t most)
{
    struct dt_input *in;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    struct dt_document_record record = {0};
    struct dt_error err;
    void *state;
    int rc;
    if (dt_input_open_bytes(&in, path, &err) < 0)
        return;
    if (reader->open(&state, &(struct dt_document_source){.in = in, .most = most}, &err) < 0)
        abort();
    while ((rc = reader->next(state, &doc, &record, &err)) > 0) {
        if (rc == 1 && doc.text.size > most)
            abort();
        if (rc == 1 && reader == &dt_warc_reader_records)
            decode(&doc, most);
        dt_buffer_clear(&doc.id);
        dt_buffer_clear(&doc.text);
        dt_buffer_clear(&doc.meta);
    }
    if (rc == DT_EFORMAT && reader == &dt_warc_reader_records)
        abort(); /* damage is bad, not an error */
    reader->close(state);
    dt_document_release(&doc);
    dt_input_close(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32];
    if (size == 0)
        return 0;
    size_t most = data[0] & 1 ? 40 : 100000;
    int fd = fuzz_file(data + 1, size - 1, path);
    read_all(&dt_warc_reader_records, path, most);
    lseek(fd, 0, SEEK_SET);
    read_all(&dt_warc_reader_texts, path, most);
    close(fd);
    return 0;
}
