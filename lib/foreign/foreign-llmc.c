/* SPDX-License-Identifier: MIT */
/* llm.c: a header of 256 int32, which starts with magic, version and number of ids; then the ids
 * in 2 bytes (GPT-2 files) or 4 bytes (Llama 3 files). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "foreign/foreign-internal.h"
#include "io/input.h"

#define HEADER_WORDS  256
#define MAGIC_GPT2    20240520
#define MAGIC_LLAMA   20240801
#define VERSION_GPT2  1
#define VERSION_LLAMA 7
#define CHUNK         65536

struct state {
    struct dt_output out;
    struct dt_buffer bytes;
    uint32_t token_bytes, eot;
    uint64_t count; /* ids written, or not read yet */
    struct dt_input *in;
    struct dt_ids buffered; /* ids read, from index `used` on not returned yet */
    size_t used;
};

static int create(void *state, const char *path, const struct dt_shard_info *info,
                  struct dt_error *err)
{
    struct state *s = state;
    const int32_t header[HEADER_WORDS] = {0};
    s->token_bytes = info->vocab_size <= 65536 ? 2 : 4;
    DT_TRY(dt_output_open(&s->out, path, err));
    if (s->out.temporary == NULL)
        return dt_fail(err, DT_EINVALID,
                       "the header contains the number of ids, so llmc needs a regular file as "
                       "output: -o FILE");
    return dt_output_write(&s->out, header, sizeof header, err);
}

static int add(void *state, const uint32_t *ids, size_t count, struct dt_error *err)
{
    struct state *s = state;
    s->count += count;
    if (s->count > INT32_MAX)
        return dt_fail(err, DT_EINVALID,
                       "llmc stores the number of ids in 31 bits: convert fewer tokens per file");
    dt_buffer_clear(&s->bytes);
    dt_foreign_put_ids(&s->bytes, ids, count, s->token_bytes);
    return dt_output_write(&s->out, s->bytes.data, s->bytes.size, err);
}

static int finish(void *state, struct dt_error *err)
{
    struct state *s = state;
    bool narrow = s->token_bytes == 2;
    const int32_t header[3] = {narrow ? MAGIC_GPT2 : MAGIC_LLAMA,
                               narrow ? VERSION_GPT2 : VERSION_LLAMA, (int32_t)s->count};
    DT_TRY(dt_output_flush(&s->out, err));
    if (pwrite(s->out.fd, header, sizeof header, 0) != sizeof header)
        return dt_fail_errno(err, "cannot write '%s'", s->out.path);
    return dt_output_commit(&s->out, err);
}

static int open_file(void *state, const char *path, uint32_t eot, struct dt_error *err)
{
    struct state *s = state;
    int32_t header[HEADER_WORDS];
    s->eot = eot;
    if (eot == UINT32_MAX)
        return dt_fail(err, DT_EINVALID,
                       "%s: llmc separates documents by end-of-text tokens, which the tokenizer "
                       "does not define",
                       path);
    DT_TRY(dt_input_open_raw(&s->in, path, err));
    DT_TRY(dt_input_read_exactly(s->in, header, sizeof header, err));
    if (header[0] == MAGIC_GPT2 && header[1] == VERSION_GPT2)
        s->token_bytes = 2;
    else if (header[0] == MAGIC_LLAMA && header[1] == VERSION_LLAMA)
        s->token_bytes = 4;
    else
        return dt_fail(err, DT_EFORMAT, "%s: is not an llm.c file of a known version", path);
    if (header[2] < 0)
        return dt_fail(err, DT_EFORMAT, "%s: the number of ids in the header is negative", path);
    s->count = (uint64_t)header[2];
    return 0;
}

/* Reads the next chunk of ids; s->buffered is empty at the end. */
static int fill_buffered(struct state *s, struct dt_error *err)
{
    size_t n = s->count < CHUNK ? (size_t)s->count : CHUNK, more;
    s->buffered.count = s->used = 0;
    dt_buffer_reserve(&s->bytes, n * s->token_bytes);
    DT_TRY(dt_input_read_exactly(s->in, s->bytes.data, n * s->token_bytes, err));
    s->count -= n;
    if (n > 0)
        return dt_foreign_get_ids(&s->buffered, s->bytes.data, n, s->token_bytes, err);
    char byte;
    DT_TRY(dt_input_read(s->in, &byte, 1, &more, err));
    return more == 0 ? 0 : dt_fail(err, DT_EFORMAT, "is longer than its header says");
}

static int next(void *state, struct dt_ids *ids, struct dt_error *err)
{
    struct state *s = state;
    for (;;) {
        if (s->used == s->buffered.count) {
            if (fill_buffered(s, err) < 0)
                return dt_fail_context(err, "%s", dt_input_name(s->in));
            if (s->buffered.count == 0)
                return ids->count > 0;
        }
        uint32_t id = s->buffered.data[s->used++];
        dt_ids_add(ids, id);
        if (id == s->eot)
            return 1;
    }
}

static void release(void *state)
{
    struct state *s = state;
    dt_output_abandon(&s->out);
    dt_input_close(s->in);
    dt_buffer_release(&s->bytes);
    dt_ids_release(&s->buffered);
}

const struct dt_foreign_format dt_foreign_llmc = {
    "llmc", sizeof(struct state), create, add, finish, open_file, next, release};
