/* SPDX-License-Identifier: MIT */
/*
 * Megatron-LM's indexed data set. PREFIX.bin holds the ids, PREFIX.idx for S sequences and D
 * documents:
 *
 *     0   "MMIDIDX" 00 00
 *     9   u64 version, 1
 *     17  u8  type of ids
 *     18  u64 S
 *     26  u64 D + 1
 *     34  i32 length[S]      of each sequence
 *         i64 pointer[S]     byte offset of each sequence in PREFIX.bin
 *         i64 start[D + 1]   first sequence of each document; the last is S
 *
 * Written files have one sequence per document.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "foreign/foreign-internal.h"

#define HEAD        34 /* bytes before length[] */
#define TYPE_INT32  4
#define TYPE_UINT16 8

static const char magic[9] = "MMIDIDX\0";

struct state {
    struct dt_output bin, idx;
    struct dt_buffer bytes, index; /* index: PREFIX.idx, when reading */
    uint32_t *lengths;             /* of the documents written */
    size_t count, capacity;
    uint32_t width;
    int fd; /* of the .bin being read */
    bool reading;
    char *path;
    uint64_t size, sequences, documents, document; /* size: of the .bin */
    const char *sequence_lengths, *pointers, *starts;
};

static int open_output(struct dt_output *out, const char *prefix, const char *suffix,
                       struct dt_error *err)
{
    char *path = dt_asprintf("%s%s", prefix, suffix);
    int rc = dt_output_open(out, path, err);
    free(path);
    return rc;
}

static int create(void *state, const char *path, const struct dt_shard_info *info,
                  struct dt_error *err)
{
    struct state *s = state;
    if (strcmp(path, "-") == 0)
        return dt_fail(err, DT_EINVALID, "megatron writes two files: name them with -o PREFIX");
    s->width = info->vocab_size <= 65536 ? 2 : 4;
    DT_TRY(open_output(&s->bin, path, ".bin", err));
    return open_output(&s->idx, path, ".idx", err);
}

static int add(void *state, const uint32_t *ids, size_t count, struct dt_error *err)
{
    struct state *s = state;
    if (count > INT32_MAX)
        return dt_fail(err, DT_EINVALID,
                       "a document is too long for megatron, which stores its length in 31 bits");
    DT_GROW(s->lengths, s->count, s->capacity);
    s->lengths[s->count++] = (uint32_t)count;
    dt_buffer_clear(&s->bytes);
    dt_foreign_put_ids(&s->bytes, ids, count, s->width);
    return dt_output_write(&s->bin, s->bytes.data, s->bytes.size, err);
}

static int put64(struct dt_output *out, uint64_t value, struct dt_error *err)
{
    return dt_output_write(out, &value, sizeof value, err);
}

static int finish(void *state, struct dt_error *err)
{
    struct state *s = state;
    const char type = s->width == 2 ? TYPE_UINT16 : TYPE_INT32;
    uint64_t offset = 0;
    DT_TRY(dt_output_write(&s->idx, magic, sizeof magic, err));
    DT_TRY(put64(&s->idx, 1, err));
    DT_TRY(dt_output_write(&s->idx, &type, 1, err));
    DT_TRY(put64(&s->idx, s->count, err));
    DT_TRY(put64(&s->idx, s->count + 1, err));
    DT_TRY(dt_output_write(&s->idx, s->lengths, s->count * sizeof *s->lengths, err));
    for (size_t i = 0; i < s->count; i++) {
        DT_TRY(put64(&s->idx, offset, err));
        offset += (uint64_t)s->lengths[i] * s->width;
    }
    for (size_t i = 0; i <= s->count; i++)
        DT_TRY(put64(&s->idx, i, err));
    DT_TRY(dt_output_commit(&s->bin, err));
    return dt_output_commit(&s->idx, err);
}

static uint64_t get64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint32_t width_of(int type)
{
    static const uint32_t widths[] = {0, 1, 0, 0, 4, 8, 0, 0, 2};
    return type >= 0 && type < 9 ? widths[type] : 0;
}

static int use_index(struct state *s, struct dt_error *err)
{
    const char *p = s->index.data;
    size_t size = s->index.size;
    if (size < HEAD || memcmp(p, magic, sizeof magic) != 0 || get64(p + 9) != 1)
        return dt_fail(err, DT_EFORMAT, "is not a Megatron-LM index of a known version");
    s->width = width_of(p[17]);
    if (s->width == 0)
        return dt_fail(err, DT_EFORMAT, "type %d is not an integer type of token ids", p[17]);
    s->sequences = get64(p + 18);
    uint64_t closed = get64(p + 26);
    if (closed == 0 || s->sequences > size / 12 || closed > size / 8 ||
        HEAD + 12 * s->sequences + 8 * closed > size)
        return dt_fail(err, DT_EFORMAT, "is truncated");
    s->documents = closed - 1;
    s->sequence_lengths = p + HEAD;
    s->pointers = s->sequence_lengths + 4 * s->sequences;
    s->starts = s->pointers + 8 * s->sequences;
    return 0;
}

static int open_files(void *state, const char *path, uint32_t eot, struct dt_error *err)
{
    struct state *s = state;
    struct stat st;
    (void)eot;
    char *idx = dt_asprintf("%s.idx", path);
    s->path = dt_asprintf("%s.bin", path);
    int rc = dt_file_read(idx, (size_t)1 << 40, &s->index.data, &s->index.size, err);
    if (rc == 0) {
        rc = use_index(s, err);
        if (rc < 0)
            dt_fail_context(err, "%s", idx);
    }
    free(idx);
    DT_TRY(rc);
    s->fd = dt_file_open(s->path, err);
    DT_TRY(s->fd);
    if (fstat(s->fd, &st) < 0)
        return dt_fail_errno(err, "cannot open '%s'", s->path);
    s->reading = true;
    s->size = (uint64_t)st.st_size;
    return 0;
}

static int read_sequence(struct state *s, uint64_t i, struct dt_ids *ids, struct dt_error *err)
{
    uint32_t length;
    uint64_t offset = get64(s->pointers + 8 * i);
    memcpy(&length, s->sequence_lengths + 4 * i, sizeof length);
    size_t size = (size_t)length * s->width;
    if (offset > s->size || size > s->size - offset)
        return dt_fail(err, DT_EFORMAT, "%s: sequence %llu is outside the file", s->path,
                       (unsigned long long)i);
    dt_buffer_reserve(&s->bytes, size);
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(s->fd, s->bytes.data + done, size - done, (off_t)(offset + done));
        if (n <= 0)
            return dt_fail_errno(err, "cannot read '%s'", s->path);
        done += (size_t)n;
    }
    if (dt_foreign_get_ids(ids, s->bytes.data, length, s->width, err) < 0)
        return dt_fail_context(err, "%s: sequence %llu", s->path, (unsigned long long)i);
    return 0;
}

static int next(void *state, struct dt_ids *ids, struct dt_error *err)
{
    struct state *s = state;
    if (s->document == s->documents)
        return 0;
    uint64_t first = get64(s->starts + 8 * s->document);
    uint64_t end = get64(s->starts + 8 * ++s->document);
    if (first > end || end > s->sequences)
        return dt_fail(err, DT_EFORMAT, "%s: the index entry of document %llu is out of range",
                       s->path, (unsigned long long)(s->document - 1));
    for (uint64_t i = first; i < end; i++)
        DT_TRY(read_sequence(s, i, ids, err));
    return 1;
}

static void release(void *state)
{
    struct state *s = state;
    dt_output_abandon(&s->bin);
    dt_output_abandon(&s->idx);
    dt_buffer_release(&s->bytes);
    free(s->index.data);
    free(s->lengths);
    free(s->path);
    if (s->reading)
        close(s->fd);
}

const struct dt_foreign_format dt_foreign_megatron = {
    "megatron", sizeof(struct state), create, add, finish, open_files, next, release};
