/* SPDX-License-Identifier: MIT */
/* Files of models: GGUF and its tokenizers, safetensors and their index, config.json. */
#include <string.h>

#include "base/buffer.h"
#include "formats/gguf.h"
#include "formats/model-directory.h"
#include "fuzz.h"
#include "gguf/gguf-tokenizer.h"

/* As much of a device as reading needs. */
static void *allocate(struct dt_device *dev, size_t bytes)
{
    (void)dev;
    return bytes > (size_t)64 << 20 ? NULL : calloc(bytes + 1, 1);
}

static void release(struct dt_device *dev, void *memory, size_t bytes)
{
    (void)dev, (void)bytes;
    free(memory);
}

static void move(struct dt_device *dev, void *to, const void *from, size_t bytes)
{
    (void)dev;
    memcpy(to, from, bytes);
}

static void copy(struct dt_device *dev, struct dt_tensor *to, const struct dt_tensor *from)
{
    (void)dev;
    memset(to->data, 0, (size_t)to->columns * dt_dtype_size(to->dtype));
    (void)from;
}

static const struct dt_ops ops = {
    .allocate = allocate, .release = release, .upload = move, .download = move, .copy = copy};

/* Looks at every element. */
static const char *check_all(const struct dt_raw_tensor *t, const void *context)
{
    bool odd = false;
    (void)context;
    for (uint64_t i = 0; i < t->count; i++)
        odd ^= dt_safetensors_raw_value(t, i) > dt_safetensors_raw_rounding(t);
    return odd ? "is odd" : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static float room[64];
    static const struct dt_named_tensor tensors[] = {
        {.name = "a", .rank = 2, .shape = {3, 2}, .data = room},
        {.name = "b", .rank = 1, .shape = {2, 1}, .data = room + 8},
    };
    static const struct dt_extra_tensor extras[] = {
        {.name = ".a", .equals = 0, .unequal = "though it must"},
        {.name = ".x", .equals = -1, .check = check_all},
        {.name = NULL}};
    char path[32];
    struct dt_error err;
    static const struct dt_engine engine = {.name = "none"};
    struct dt_device dev = {.engine = &engine, .ops = &ops, .threads = 1};
    struct dt_model *model;
    struct dt_model_config config;
    int fd = fuzz_file(data, size, path);
    struct json_object *tokenizer;
    if (dt_gguf_tokenizer_load(path, &tokenizer, &err) == 0)
        json_object_put(tokenizer);
    if (dt_gguf_read(&model, &dev, (struct dt_model_use){DT_DTYPE_F32}, path, &err) == 0)
        dt_model_free(model);
    if (dt_safetensors_read(path, tensors, 2, extras, &err) == 0 && size < 40)
        abort();
    if (dt_safetensors_read_index(path, tensors, 2, extras, &err) == 0)
        abort(); /* the files do not exist */
    if (dt_model_config_read(&config, path, &err) == 0 && config.hidden_size < 1)
        abort();
    close(fd);
    return 0;
}
