/* SPDX-License-Identifier: MIT */
#include "formats/tensor-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "hash/hash.h"
#include "model/finite.h"

#define READ_AT_ONCE 65536 /* elements */

static size_t bytes_of(const struct dt_named_tensor *t)
{
    return (size_t)t->shape[0] * (size_t)(t->rank == 2 ? t->shape[1] : 1) * sizeof(float);
}

/* Length and text of the header, as in the file. */
static struct dt_buffer header_of(const struct dt_named_tensor *tensors, int count)
{
    struct dt_buffer text = DT_BUFFER_EMPTY, header = DT_BUFFER_EMPTY;
    dt_safetensors_header(tensors, count, &text);
    uint64_t size = text.size; /* little-endian, as every machine dt runs on */
    dt_buffer_append(&header, &size, sizeof size);
    dt_buffer_append(&header, text.data, text.size);
    dt_buffer_release(&text);
    return header;
}

static uint64_t *places_of(const struct dt_named_tensor *tensors, int count, uint64_t from)
{
    uint64_t *places = dt_alloc((size_t)count + 1, sizeof *places);
    places[0] = from;
    for (int i = 0; i < count; i++)
        places[i + 1] = places[i] + bytes_of(&tensors[i]);
    return places;
}

/* pwrite or pread of all bytes. */
static int move_bytes(const struct dt_tensor_file *f, char *data, size_t size, uint64_t at,
                      bool writes, struct dt_error *err)
{
    while (size > 0) {
        ssize_t n =
            writes ? pwrite(f->fd, data, size, (off_t)at) : pread(f->fd, data, size, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return dt_fail_errno(err, "cannot %s '%s'", writes ? "write" : "read", f->path);
        if (n == 0)
            return dt_fail(err, DT_EFORMAT, "%s: ends too early", f->path);
        data += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return 0;
}

int dt_tensor_file_create(const char *path, const struct dt_named_tensor *tensors, int count,
                          struct dt_error *err)
{
    struct dt_tensor_file f = {.path = dt_strdup(path), .count = count};
    struct dt_buffer header = header_of(tensors, count);
    f.offsets = places_of(tensors, count, header.size);
    f.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int rc = f.fd < 0 ? dt_fail_errno(err, "cannot create '%s'", path)
                      : move_bytes(&f, header.data, header.size, 0, true, err);
    if (rc == 0 && ftruncate(f.fd, (off_t)f.offsets[count]) < 0)
        rc = dt_fail_errno(err, "cannot write '%s'", path);
    dt_buffer_release(&header);
    dt_tensor_file_close(&f);
    return rc;
}

/* Whether the file has the layout of dt_tensor_file_create. */
static bool is_plain(const struct dt_tensor_file *f, const struct dt_buffer *header)
{
    struct stat st;
    struct dt_error ignored;
    char *there = dt_alloc(header->size, 1);
    bool plain = fstat(f->fd, &st) == 0 && (uint64_t)st.st_size == f->offsets[f->count] &&
                 move_bytes(f, there, header->size, 0, false, &ignored) == 0 &&
                 memcmp(there, header->data, header->size) == 0;
    free(there);
    return plain;
}

static int read_whole(struct dt_tensor_file *f, const struct dt_named_tensor *tensors,
                      struct dt_error *err)
{
    struct dt_named_tensor *list = dt_alloc((size_t)f->count, sizeof *list);
    f->whole = dt_alloc((size_t)f->count, sizeof *f->whole);
    for (int i = 0; i < f->count; i++) {
        list[i] = tensors[i];
        list[i].data = f->whole[i] = dt_alloc(1, bytes_of(&tensors[i]));
    }
    int rc = dt_safetensors_read(f->path, list, f->count, NULL, err);
    free(list);
    return rc;
}

int dt_tensor_file_open(struct dt_tensor_file *f, const char *path,
                        const struct dt_named_tensor *tensors, int count, bool writes,
                        struct dt_error *err)
{
    struct dt_buffer header = header_of(tensors, count);
    *f = (struct dt_tensor_file){.path = dt_strdup(path), .count = count};
    f->tensors = dt_alloc((size_t)count, sizeof *f->tensors);
    memcpy(f->tensors, tensors, (size_t)count * sizeof *tensors);
    f->offsets = places_of(tensors, count, header.size);
    f->fd = writes ? open(path, O_RDWR | O_CLOEXEC) : dt_file_open(path, err);
    int rc = f->fd >= 0 ? 0 : writes ? dt_fail_errno(err, "cannot open '%s'", path) : f->fd;
    if (rc == 0 && !writes && !is_plain(f, &header))
        rc = read_whole(f, tensors, err);
    dt_buffer_release(&header);
    if (rc < 0)
        dt_tensor_file_close(f);
    return rc;
}

void dt_tensor_file_close(struct dt_tensor_file *f)
{
    for (int i = 0; f->whole && i < f->count; i++)
        free(f->whole[i]);
    free(f->whole);
    if (f->path && f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f->tensors);
    free(f->offsets);
    *f = (struct dt_tensor_file){.fd = -1};
}

/* Checks elements read, or to be written. */
static int check(const struct dt_tensor_file *f, int tensor, int64_t first, int64_t n,
                 const float *values, struct dt_error *err)
{
    return dt_finite_check_weights(values, n, DT_DTYPE_F32, f->path, f->tensors[tensor].name, first,
                                   err);
}

/* Offset of an element, and the number of elements from it on that follow each other. */
static uint64_t place_of(const struct dt_tensor_file *f, int tensor, int64_t first, int64_t *n)
{
    int before = dt_safetensors_fused_before(f->tensors, tensor);
    int64_t place = dt_safetensors_place(f->tensors, f->count, tensor, first, n);
    return f->offsets[tensor - before] + (uint64_t)place * sizeof(float);
}

int dt_tensor_file_write(const struct dt_tensor_file *f, int tensor, int64_t first, int64_t n,
                         const float *values, struct dt_error *err)
{
    DT_TRY(check(f, tensor, first, n, values, err));
    for (int64_t done = 0, some; done < n; done += some) {
        uint64_t at = place_of(f, tensor, first + done, &some);
        some = some < n - done ? some : n - done;
        DT_TRY(move_bytes(f, (char *)(uintptr_t)(values + done), (size_t)some * sizeof *values, at,
                          true, err));
    }
    return 0;
}

int dt_tensor_file_read(const struct dt_tensor_file *f, int tensor, int64_t first, int64_t n,
                        float *values, struct dt_error *err)
{
    if (f->whole) {
        memcpy(values, f->whole[tensor] + first, (size_t)n * sizeof *values);
        return 0;
    }
    for (int64_t done = 0, some; done < n; done += some) { /* checked while it is in the cache */
        uint64_t at = place_of(f, tensor, first + done, &some);
        some = some < n - done ? some : n - done;
        some = some < READ_AT_ONCE ? some : READ_AT_ONCE;
        DT_TRY(
            move_bytes(f, (char *)(values + done), (size_t)some * sizeof *values, at, false, err));
        DT_TRY(check(f, tensor, first + done, some, values + done, err));
    }
    return 0;
}

int dt_tensor_file_sync(const struct dt_tensor_file *f, struct dt_error *err)
{
    return fsync(f->fd) < 0 ? dt_fail_errno(err, "cannot write '%s'", f->path) : 0;
}

/* Of a tensor whose rows are not together in the file. */
static int hash_gathered(const struct dt_tensor_file *f, int tensor, uint64_t *hash,
                         struct dt_error *err)
{
    size_t bytes = bytes_of(&f->tensors[tensor]);
    float *values = dt_alloc(1, bytes);
    int rc = dt_tensor_file_read(f, tensor, 0, (int64_t)(bytes / sizeof *values), values, err);
    *hash = dt_hash_seeded(values, bytes, *hash);
    free(values);
    return rc;
}

int dt_tensor_file_hash(const struct dt_tensor_file *f, uint64_t *hash, struct dt_error *err)
{
    size_t size = f->offsets[f->count];
    *hash = 0;
    for (int i = 0; f->whole && i < f->count; i++)
        *hash = dt_hash_seeded(f->whole[i], f->offsets[i + 1] - f->offsets[i], *hash);
    if (f->whole)
        return 0;
    char *data = mmap(NULL, size, PROT_READ, MAP_SHARED, f->fd, 0);
    if (data == MAP_FAILED)
        return dt_fail_errno(err, "cannot read '%s'", f->path);
    int rc = 0;
    for (int i = 0; rc == 0 && i < f->count; i++)
        if (f->tensors[i].head_rows > 0)
            rc = hash_gathered(f, i, hash, err);
        else
            *hash = dt_hash_seeded(data + f->offsets[i], f->offsets[i + 1] - f->offsets[i], *hash);
    munmap(data, size);
    return rc;
}
