/* SPDX-License-Identifier: MIT */
#include "dedup/signature-file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/buffer.h"
#include "dedup/minhash.h"
#include "hash/hash.h"

#define HEADER_SIZE 48
#define CHECK_SIZE  ((size_t)1 << 20) /* bytes read at a time for the checksum */

static const char magic[8] = "dt-sigs\n";
#define VERSION 2 /* 1 did not compare characters of scripts without blanks, nor short texts */

/* The file's own byte order is little-endian. */
struct header {
    char magic[8];
    uint32_t version, bands, rows, words;
    uint64_t seed, reserved;
    uint64_t checksum; /* XXH64 of the fields above */
};
_Static_assert(sizeof(struct header) == HEADER_SIZE, "the header is packed");

struct run_head {
    uint64_t documents, before; /* of the run, of the runs before it; end: 0 and all documents */
};

struct key {
    uint64_t key;
    uint32_t document;
};

struct dt_signature_writer {
    struct dt_signature_settings settings;
    struct dt_output *out;
    uint64_t *hashes; /* of the texts of the run */
    struct key *keys; /* band by band, DT_SIGNATURE_RUN each */
    uint32_t documents;
    uint64_t total; /* of the runs before */
    XXH64_state_t *checksum;
};

/* --- writing ---------------------------------------------------------------------------------- */

int dt_signature_writer_open(struct dt_signature_writer **result,
                             const struct dt_signature_settings *settings, struct dt_output *out,
                             struct dt_error *err)
{
    struct header header = {.version = VERSION,
                            .bands = settings->bands,
                            .rows = settings->rows,
                            .words = settings->words,
                            .seed = settings->seed};
    memcpy(header.magic, magic, sizeof magic);
    header.checksum = dt_hash_xxh64(&header, HEADER_SIZE - 8);
    *result = NULL;
    DT_TRY(dt_output_write(out, &header, sizeof header, err));
    struct dt_signature_writer *w = dt_alloc(1, sizeof *w);
    w->settings = *settings;
    w->out = out;
    w->hashes = dt_alloc(DT_SIGNATURE_RUN, sizeof *w->hashes);
    w->keys = dt_alloc(DT_SIGNATURE_RUN * settings->bands, sizeof *w->keys);
    w->checksum = dt_checked(XXH64_createState());
    *result = w;
    return 0;
}

void dt_signature_writer_free(struct dt_signature_writer *w)
{
    if (w == NULL)
        return;
    free(w->hashes);
    free(w->keys);
    XXH64_freeState(w->checksum);
    free(w);
}

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->document > y->document) - (x->document < y->document);
}

static int put(struct dt_signature_writer *w, const void *data, size_t size, struct dt_error *err)
{
    XXH64_update(w->checksum, data, size);
    return dt_output_write(w->out, data, size, err);
}

static int put_checksum(struct dt_signature_writer *w, struct dt_error *err)
{
    uint64_t checksum = XXH64_digest(w->checksum);
    return dt_output_write(w->out, &checksum, sizeof checksum, err);
}

static int put_band(struct dt_signature_writer *w, struct key *keys, struct dt_error *err)
{
    qsort(keys, w->documents, sizeof *keys, compare_keys);
    for (uint32_t i = 0; i < w->documents; i++)
        DT_TRY(put(w, &keys[i].key, sizeof keys[i].key, err));
    for (uint32_t i = 0; i < w->documents; i++)
        DT_TRY(put(w, &keys[i].document, sizeof keys[i].document, err));
    return 0;
}

static int put_run(struct dt_signature_writer *w, struct dt_error *err)
{
    const struct run_head head = {w->documents, w->total};
    XXH64_reset(w->checksum, 0);
    DT_TRY(put(w, &head, sizeof head, err));
    DT_TRY(put(w, w->hashes, w->documents * sizeof *w->hashes, err));
    for (uint32_t band = 0; band < w->settings.bands; band++)
        DT_TRY(put_band(w, w->keys + band * DT_SIGNATURE_RUN, err));
    w->total += w->documents;
    w->documents = 0;
    return put_checksum(w, err);
}

int dt_signature_writer_add(struct dt_signature_writer *w, uint64_t text_hash, const uint64_t *keys,
                            struct dt_error *err)
{
    for (uint32_t band = 0; band < w->settings.bands; band++)
        w->keys[band * DT_SIGNATURE_RUN + w->documents] = (struct key){keys[band], w->documents};
    w->hashes[w->documents++] = text_hash;
    return w->documents == DT_SIGNATURE_RUN ? put_run(w, err) : 0;
}

int dt_signature_writer_end(struct dt_signature_writer *w, struct dt_error *err)
{
    if (w->documents > 0)
        DT_TRY(put_run(w, err));
    const struct run_head end = {0, w->total};
    XXH64_reset(w->checksum, 0);
    DT_TRY(put(w, &end, sizeof end, err));
    return put_checksum(w, err);
}

/* --- reading ---------------------------------------------------------------------------------- */

static int read_at(const struct dt_signature_file *f, uint64_t offset, void *data, size_t size,
                   struct dt_error *err)
{
    char *p = data;
    while (size > 0) {
        ssize_t n = pread(f->fd, p, size, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return dt_fail_errno(err, "cannot read '%s'", f->path);
        if (n == 0)
            return dt_fail(err, DT_EFORMAT, "%s: ends too early", f->path);
        p += n;
        size -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

static int read_header(struct dt_signature_file *f, struct dt_error *err)
{
    struct header header;
    if (read_at(f, 0, header.magic, sizeof magic, err) < 0 ||
        memcmp(header.magic, magic, sizeof magic) != 0)
        return dt_fail(err, DT_EFORMAT, "%s: is not a signature file", f->path);
    DT_TRY(read_at(f, 0, &header, sizeof header, err));
    if (header.version != VERSION)
        return dt_fail(err, DT_EFORMAT,
                       "%s: version %u of signatures, expected %d; sign its documents again",
                       f->path, header.version, VERSION);
    if (header.checksum != dt_hash_xxh64(&header, HEADER_SIZE - 8) || header.bands == 0 ||
        header.bands > DT_MINHASH_BANDS)
        return dt_fail(err, DT_EFORMAT, "%s: its header is damaged", f->path);
    f->settings =
        (struct dt_signature_settings){header.bands, header.rows, header.words, header.seed};
    return 0;
}

/* Bytes of a run between head and checksum. */
static uint64_t body_size(const struct dt_signature_file *f, const struct run_head *head)
{
    return (8 + 12 * (uint64_t)f->settings.bands) * head->documents;
}

static int check_run(const struct dt_signature_file *f, uint64_t offset, uint64_t size,
                     uint64_t checksum, struct dt_error *err)
{
    XXH64_state_t *state = dt_checked(XXH64_createState());
    char *block = dt_alloc(CHECK_SIZE, 1);
    int rc = 0;
    XXH64_reset(state, 0);
    for (size_t n; rc == 0 && size > 0; size -= n, offset += n) {
        n = size < CHECK_SIZE ? (size_t)size : CHECK_SIZE;
        rc = read_at(f, offset, block, n, err);
        XXH64_update(state, block, n);
    }
    if (rc == 0 && checksum != XXH64_digest(state))
        rc = dt_fail(err, DT_EFORMAT, "%s: a checksum is wrong", f->path);
    XXH64_freeState(state);
    free(block);
    return rc;
}

static int read_runs(struct dt_signature_file *f, uint64_t size, bool check, struct dt_error *err)
{
    uint64_t checksum;
    for (uint64_t offset = HEADER_SIZE;;) {
        struct run_head head;
        DT_TRY(read_at(f, offset, &head, sizeof head, err));
        if (head.documents > DT_SIGNATURE_RUN)
            return dt_fail(err, DT_EFORMAT, "%s: a run is damaged", f->path);
        uint64_t body = head.documents ? body_size(f, &head) : 0;
        DT_TRY(read_at(f, offset + sizeof head + body, &checksum, sizeof checksum, err));
        f->checksum = (f->checksum + checksum) * UINT64_C(0x9e3779b97f4a7c15);
        if (check)
            DT_TRY(check_run(f, offset, sizeof head + body, checksum, err));
        if (head.before != f->documents)
            return dt_fail(err, DT_EFORMAT, "%s: documents are missing", f->path);
        if (head.documents == 0 && offset + sizeof head + 8 != size)
            return dt_fail(err, DT_EFORMAT, "%s: something follows its end", f->path);
        if (head.documents == 0)
            return 0;
        DT_GROW(f->runs, f->run_count, f->run_capacity);
        f->runs[f->run_count++] = (struct dt_signature_run){offset + sizeof head, head.documents};
        f->documents += head.documents;
        offset += sizeof head + body + 8;
    }
}

int dt_signature_file_open(struct dt_signature_file *f, const char *path, bool check,
                           struct dt_error *err)
{
    struct stat st;
    *f = (struct dt_signature_file){.path = dt_strdup(path)};
    f->fd = dt_file_open(path, err);
    int rc = f->fd < 0 ? f->fd : 0;
    if (rc == 0 && fstat(f->fd, &st) < 0)
        rc = dt_fail_errno(err, "cannot open '%s'", path);
    if (rc == 0)
        rc = read_header(f, err);
    if (rc == 0)
        rc = read_runs(f, (uint64_t)st.st_size, check, err);
    if (rc < 0)
        dt_signature_file_close(f);
    return rc;
}

void dt_signature_file_close(struct dt_signature_file *f)
{
    if (f->path && f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f->runs);
    *f = (struct dt_signature_file){.fd = -1};
}

int dt_signature_file_hashes(const struct dt_signature_file *f, const struct dt_signature_run *run,
                             uint64_t first, size_t count, uint64_t *hashes, struct dt_error *err)
{
    return read_at(f, run->offset + 8 * first, hashes, count * sizeof *hashes, err);
}

int dt_signature_file_keys(const struct dt_signature_file *f, const struct dt_signature_run *run,
                           uint32_t band, uint64_t first, size_t count, uint64_t *keys,
                           uint32_t *documents, struct dt_error *err)
{
    uint64_t start = run->offset + 8 * run->documents + band * run->documents * 12;
    DT_TRY(read_at(f, start + 8 * first, keys, count * sizeof *keys, err));
    DT_TRY(read_at(f, start + 8 * run->documents + 4 * first, documents, count * sizeof *documents,
                   err));
    for (size_t i = 0; i < count; i++)
        if (documents[i] >= run->documents)
            return dt_fail(err, DT_EFORMAT, "%s: a run is damaged", f->path);
    return 0;
}
