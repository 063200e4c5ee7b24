/* SPDX-License-Identifier: MIT */
/* Bloom filters and files of pairs. The fuzzer cannot guess a checksum, so those of the header are
 * mended first. */
#include <string.h>

#include "dedup/bloom.h"
#include "dedup/near-duplicates.h"
#include "dedup/pair-file.h"
#include "fuzz.h"

#define HEADER 48

static void read_filter(const char *path)
{
    struct dt_bloom *bloom;
    struct dt_error err;
    if (dt_bloom_read(&bloom, &path, 1, &err) < 0)
        return;
    struct dt_hash128 hash = {1, 2};
    if (dt_bloom_size(bloom).rate < 0 || (dt_bloom_add(bloom, hash), !dt_bloom_has(bloom, hash)))
        abort();
    dt_bloom_free(bloom);
}

/* A set of one file with two documents. */
static struct dt_signature_set *make_set(void)
{
    static const struct dt_signature_settings settings = {1, 1, 1, 1};
    static char name[64];
    char *const paths[] = {name};
    struct dt_signature_set *set;
    struct dt_signature_writer *w;
    struct dt_error err;
    struct dt_output out;
    uint64_t key = 7;
    snprintf(name, sizeof name, "%s/a.sig", fuzz_directory());
    if (dt_output_open(&out, name, &err) < 0 ||
        dt_signature_writer_open(&w, &settings, &out, &err) < 0 ||
        dt_signature_writer_add(w, 1, &key, &err) < 0 ||
        dt_signature_writer_add(w, 2, &key, &err) < 0 || dt_signature_writer_end(w, &err) < 0 ||
        dt_output_commit(&out, &err) < 0 || dt_signature_set_open(&set, paths, 1, true, &err) < 0)
        abort();
    dt_signature_writer_free(w);
    return set;
}

static void read_pairs(const struct dt_signature_set *set, const char *path)
{
    struct dt_error err;
    struct dt_near_duplicates *d = dt_near_duplicates_new(set);
    if (dt_pair_file_read_all(set, &path, 1, dt_near_duplicates_link, d, &err) == 0 &&
        dt_near_duplicates_count(d) > 1)
        abort();
    dt_near_duplicates_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dt_signature_set *set;
    char path[32];
    if (size < HEADER)
        return 0;
    if (set == NULL)
        set = make_set();
    uint8_t *copy = malloc(size);
    memcpy(copy, data, size);
    uint64_t hash = dt_signature_set_hash(set);
    bool filter = memcmp(copy, "dt-bloom", 8) == 0;
    if (!filter)
        memcpy(copy + HEADER - 16, &hash, sizeof hash);
    hash = dt_hash_xxh64(copy, HEADER - 8);
    memcpy(copy + HEADER - 8, &hash, sizeof hash);
    int fd = fuzz_file(copy, size, path);
    if (filter)
        read_filter(path);
    else
        read_pairs(set, path);
    close(fd);
    free(copy);
    return 0;
}
