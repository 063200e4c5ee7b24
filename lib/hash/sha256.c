/* SPDX-License-Identifier: MIT */
#include "hash/sha256.h"

#include <errno.h>
#include <nettle/hmac.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"

#define CHUNK ((size_t)1 << 18) /* bytes read at once */

#define BLOCKS 8 /* CHUNKs that wait for the thread at most, and the one being filled */

/* A ring of blocks: [hashed, filled) are full, block `filled` is being filled. */
struct dt_sha256_thread {
    struct sha256_ctx *state;
    unsigned char *blocks[BLOCKS]; /* NULL until needed */
    size_t used;                   /* bytes of the block being filled */
    unsigned hashed, filled;
    bool started, ending;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static void *hash_blocks(void *argument)
{
    struct dt_sha256_thread *t = argument;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (t->hashed == t->filled && !t->ending)
            pthread_cond_wait(&t->changed, &t->lock);
        if (t->hashed == t->filled)
            break;
        pthread_mutex_unlock(&t->lock);
        sha256_update(t->state, CHUNK, t->blocks[t->hashed % BLOCKS]);
        pthread_mutex_lock(&t->lock);
        t->hashed++;
        pthread_cond_signal(&t->changed);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* The block being filled is full: hands it over, and waits until the next one is free. Without a
 * thread the caller hashes it. */
static void hand_over(struct dt_sha256_thread *t)
{
    if (!t->started)
        t->started = pthread_create(&t->thread, NULL, hash_blocks, t) == 0;
    if (!t->started)
        sha256_update(t->state, t->used, t->blocks[t->filled % BLOCKS]);
    pthread_mutex_lock(&t->lock);
    t->filled += t->started;
    pthread_cond_signal(&t->changed);
    while (t->filled - t->hashed == BLOCKS)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
    t->used = 0;
}

static void copy_to_blocks(struct dt_sha256_thread *t, const unsigned char *data, size_t size)
{
    while (size > 0) {
        unsigned char **block = &t->blocks[t->filled % BLOCKS];
        size_t n = size < CHUNK - t->used ? size : CHUNK - t->used;
        if (*block == NULL)
            *block = dt_alloc(CHUNK, 1);
        memcpy(*block + t->used, data, n);
        t->used += n;
        data += n;
        size -= n;
        if (t->used == CHUNK)
            hand_over(t);
    }
}

/* Ends the thread after the full blocks. */
static void join(struct dt_sha256_thread *t)
{
    pthread_mutex_lock(&t->lock);
    t->ending = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    if (t->started)
        pthread_join(t->thread, NULL);
    t->started = false;
}

void dt_sha256_init(struct dt_sha256 *s)
{
    sha256_init(&s->state);
    s->bytes = 0;
    s->thread = NULL;
}

void dt_sha256_use_thread(struct dt_sha256 *s)
{
    s->thread = dt_alloc(1, sizeof *s->thread);
    s->thread->state = &s->state;
    pthread_mutex_init(&s->thread->lock, NULL);
    pthread_cond_init(&s->thread->changed, NULL);
}

void dt_sha256_release(struct dt_sha256 *s)
{
    struct dt_sha256_thread *t = s->thread;
    s->thread = NULL;
    if (t == NULL)
        return;
    join(t);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
    for (int i = 0; i < BLOCKS; i++)
        free(t->blocks[i]);
    free(t);
}

void dt_sha256_add(struct dt_sha256 *s, const void *data, size_t size)
{
    if (s->thread)
        copy_to_blocks(s->thread, data, size);
    else
        sha256_update(&s->state, size, data);
    s->bytes += size;
}

char *dt_sha256_hex(const uint8_t hash[DT_SHA256], char text[DT_SHA256_HEX])
{
    for (size_t i = 0; i < DT_SHA256; i++)
        snprintf(text + 2 * i, 3, "%02x", hash[i]);
    return text;
}

void dt_sha256_hmac(const void *key, size_t size, const char *text, uint8_t mac[DT_SHA256])
{
    struct hmac_sha256_ctx context;
    hmac_sha256_set_key(&context, size, key);
    hmac_sha256_update(&context, strlen(text), (const uint8_t *)text);
    hmac_sha256_digest(&context, DT_SHA256, mac);
    explicit_bzero(&context, sizeof context);
}

char *dt_sha256_finish(struct dt_sha256 *s, char text[DT_SHA256_HEX])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct dt_sha256_thread *t = s->thread;
    if (t) {
        join(t);
        sha256_update(&s->state, t->used, t->used ? t->blocks[t->filled % BLOCKS] : digest);
        dt_sha256_release(s);
    }
    sha256_digest(&s->state, sizeof digest, digest);
    s->bytes = 0;
    return dt_sha256_hex(digest, text);
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
