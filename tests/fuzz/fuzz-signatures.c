/* SPDX-License-Identifier: MIT */
/* Files of signatures, matched with themselves. The fuzzer cannot guess a checksum, so
 * those in the file are mended first, if the first byte is odd. */
#include <string.h>

#include "dedup/near-duplicates.h"
#include "fuzz.h"
#include "hash/hash.h"

#define HEADER 48

static uint64_t number_at(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static void mend(uint8_t *data, size_t size)
{
    uint64_t hash, bands;
    if (size < HEADER)
        return;
    hash = dt_hash_xxh64(data, HEADER - 8);
    memcpy(data + HEADER - 8, &hash, sizeof hash);
    bands = number_at(data + 8) >> 32;
    for (size_t at = HEADER, body; size - at >= 24; at += body + 8) {
        uint64_t documents = number_at(data + at);
        if (documents > size || bands > 256)
            return;
        body = 16 + (size_t)((8 + 12 * bands) * documents);
        if (body > size - at - 8)
            return;
        hash = dt_hash_xxh64(data + at, body);
        memcpy(data + at + body, &hash, sizeof hash);
    }
}

static void match(char *const *paths)
{
    struct dt_signature_set *set;
    struct dt_error err;
    struct dt_output out;
    if (dt_signature_set_open(&set, paths, 1, true, &err) < 0)
        return;
    struct dt_near_duplicates *d = dt_near_duplicates_new(set);
    uint32_t bands = dt_signature_set_size(set).settings.bands;
    int rc = 0;
    for (uint32_t band = 0; band < bands && rc == 0; band++)
        rc = dt_signature_set_merge(set, band, (struct dt_signature_task){band, bands},
                                    dt_near_duplicates_link, d, &err);
    if (dt_output_open(&out, "/dev/null", &err) == 0) {
        rc = dt_near_duplicates_list(d, 0, &out, &err);
        dt_output_abandon(&out);
    }
    (void)rc;
    dt_near_duplicates_free(d);
    dt_signature_set_close(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32];
    char *const paths[] = {path};
    if (size == 0)
        return 0;
    uint8_t *copy = malloc(size);
    memcpy(copy, data, size);
    if (data[0] & 1)
        mend(copy + 1, size - 1);
    int fd = fuzz_file(copy + 1, size - 1, path);
    match(paths);
    close(fd);
    free(copy);
    return 0;
}
