/* SPDX-License-Identifier: MIT */
#include "hash/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"

#define CHUNK ((size_t)1 << 18) /* bytes read at once */

void dt_sha256_init(struct dt_sha256 *s)
{
    sha256_init(&s->state);
    s->bytes = 0;
}

void dt_sha256_add(struct dt_sha256 *s, const void *data, size_t size)
{
    sha256_update(&s->state, size, data);
    s->bytes += size;
}

char *dt_sha256_finish(struct dt_sha256 *s, char text[DT_SHA256_HEX])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(&s->state, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    s->bytes = 0;
    return text;
}

static int add_file(struct dt_sha256 *s, int fd, const char *path, struct dt_error *err)
{
    unsigned char *chunk = dt_alloc(CHUNK, 1);
    ssize_t n;
    while ((n = read(fd, chunk, CHUNK)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            dt_sha256_add(s, chunk, (size_t)n);
    int rc = n < 0 ? dt_fail_errno(err, "cannot read '%s'", path) : 0;
    free(chunk);
    return rc;
}

int dt_sha256_file(const char *path, uint64_t *bytes, char text[DT_SHA256_HEX],
                   struct dt_error *err)
{
    struct dt_sha256 s;
    int fd = dt_file_open(path, err);
    if (fd < 0)
        return fd;
    dt_sha256_init(&s);
    int rc = add_file(&s, fd, path, err);
    close(fd);
    *bytes = s.bytes;
    dt_sha256_finish(&s, text);
    return rc;
}
