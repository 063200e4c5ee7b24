/* SPDX-License-Identifier: MIT */
/* What shards and their like are read from: the first byte chooses, the others are the
 * file. .dts in order and at any place, index.json, mixtures, and the files of MDS,
 * Megatron-LM and llm.c. */
#include "base/buffer.h"
#include "base/path.h"
#include "foreign/foreign.h"
#include "fuzz.h"
#include "shard/manifest.h"
#include "shard/mixture.h"
#include "shard/shard.h"

static void write_file(const char *name, const void *data, size_t size)
{
    struct dt_error err;
    char *path = dt_path_join(fuzz_directory(), name);
    if (dt_file_write(path, data, size, &err) < 0)
        abort();
    free(path);
}

static void read_in_order(const char *path)
{
    struct dt_shard_reader *r;
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_shard_document document;
    struct dt_error err;
    if (dt_shard_reader_open(&r, path, &err) < 0)
        return;
    dt_shard_reader_mark(r);
    while (dt_shard_read(r, &ids, &document, &err) > 0)
        for (size_t i = 0; i < ids.count; i++)
            if ((ids.data[i] & ~DT_NO_LOSS) >= dt_shard_reader_info(r)->vocab_size)
                abort();
    dt_ids_release(&ids);
    dt_shard_reader_close(r);
}

static void read_anywhere(const char *path)
{
    struct dt_shard *s;
    struct dt_shard_document document;
    struct dt_error err;
    uint32_t ids[64];
    uint64_t first;
    if (dt_shard_open(&s, path, &err) < 0)
        return;
    uint64_t tokens = dt_shard_get_info(s)->tokens, n = tokens < 64 ? tokens : 64;
    if (dt_shard_targets(s, tokens - n, n, ids, &err) == 0)
        for (uint64_t i = 0; i < n; i++)
            if ((ids[i] & ~DT_NO_LOSS) >= dt_shard_get_info(s)->vocab_size)
                abort();
    for (uint64_t i = 0; i < 3; i++)
        if (dt_shard_get_document(s, i, &first, &document, &err) < 0)
            break;
    dt_shard_close(s);
}

static void read_foreign(const char *format, const char *path)
{
    struct dt_foreign *f;
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_error err;
    if (dt_foreign_open(&f, format, path, 5, &err) == 0)
        while (dt_foreign_next(f, &ids, &err) > 0)
            continue;
    else
        f = NULL;
    dt_foreign_free(f);
    dt_ids_release(&ids);
}

static void read_lists(const uint8_t *data, size_t size)
{
    struct dt_manifest manifest = {0};
    struct dt_mixture mixture;
    struct dt_error err;
    char path[32];
    int fd = fuzz_file(data, size, path);
    if (dt_mixture_read(&mixture, path, &err) == 0 && mixture.count == 0)
        abort();
    dt_mixture_release(&mixture);
    close(fd);
    write_file("index.json", data, size);
    if (dt_manifest_read(&manifest, fuzz_directory(), &err) < 0 && err.text[0] == '\0')
        abort();
    dt_manifest_release(&manifest);
    read_foreign("mds", fuzz_directory());
}

static void read_megatron(const uint8_t *data, size_t size)
{
    char *path = dt_path_join(fuzz_directory(), "m");
    write_file("m.idx", data, size);
    write_file("m.bin", data, size);
    read_foreign("megatron", path);
    free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32];
    if (size == 0)
        return 0;
    int fd = fuzz_file(data + 1, size - 1, path);
    switch (data[0] % 4) {
    case 0:
        read_in_order(path);
        read_anywhere(path);
        break;
    case 1:
        read_foreign("llmc", path);
        break;
    case 2:
        read_lists(data + 1, size - 1);
        break;
    default:
        read_megatron(data + 1, size - 1);
    }
    close(fd);
    return 0;
}
