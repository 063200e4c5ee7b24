/* SPDX-License-Identifier: MIT */
#include "formats/foreign-weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"

/* %s: the path, which is the file's or the directory's. */
#define LOADED_BY_TRANSFORMERS(how)                                                                \
    "python3 -c \"import transformers as t; d='%s'; getattr(t, "                                   \
    "t.AutoConfig.from_pretrained(d).architectures[0]).from_pretrained(d" how                      \
    ").save_pretrained(d)\""
#define LOADED_BY_TORCH                                                                            \
    "python3 -c \"import torch, safetensors.torch as s; w=torch.load('%s', map_location='cpu', "   \
    "weights_only=True); w=w.get('state_dict', w); s.save_file({k: v.clone().contiguous() for k, " \
    "v in w.items()}, 'model.safetensors')\""

/* Weights in a directory, and single files. */
static const struct {
    const char *name; /* if it begins with '.', the suffix of a single file */
    const char *what, *command;
} kinds[] = {
    {"pytorch_model.bin", "PyTorch's", LOADED_BY_TRANSFORMERS("")},
    {"pytorch_model.bin.index.json", "PyTorch's", LOADED_BY_TRANSFORMERS("")},
    {"tf_model.h5", "TensorFlow's", LOADED_BY_TRANSFORMERS(", from_tf=True")},
    {"flax_model.msgpack", "Flax's", LOADED_BY_TRANSFORMERS(", from_flax=True")},
    {".bin", "PyTorch's", LOADED_BY_TORCH},
    {".pt", "PyTorch's", LOADED_BY_TORCH},
    {".pth", "PyTorch's", LOADED_BY_TORCH},
    {".ckpt", "PyTorch's", LOADED_BY_TORCH},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static bool ends_with(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

/* The path, or a word for it where quotes in a shell would not keep it. */
static const char *quoted(const char *path)
{
    return strpbrk(path, "'\"\\$`!\n") ? "PATH" : path;
}

static int refuse(const char *path, const char *name, size_t kind, struct dt_error *err)
{
    char *command = NULL;
    const char *format = kinds[kind].command, *at = strstr(format, "%s");
    command = dt_asprintf("%.*s%s%s", (int)(at - format), format, quoted(path), at + 2);
    int rc = dt_fail(err, DT_EFORMAT, "%s: %s%sits weights are %s: convert them with: %s", path,
                     name, *name ? ": " : "", kinds[kind].what, command);
    free(command);
    return rc;
}

static int look_for(const char *path, const char *name, bool *there, char **file,
                    struct dt_error *err)
{
    *file = dt_path_join(path, name);
    int rc = dt_file_probe(*file, err);
    *there = rc > 0;
    return rc < 0 ? rc : 0;
}

int dt_foreign_weights_refuse(const char *path, struct dt_error *err)
{
    bool is_directory = dt_file_is_directory(path), there = false;
    char *file;
    for (size_t i = 0; i < KINDS; i++) {
        int rc = 0;
        if (!is_directory && *kinds[i].name == '.' && ends_with(path, kinds[i].name))
            return refuse(path, "", i, err);
        if (!is_directory || *kinds[i].name == '.')
            continue;
        rc = look_for(path, kinds[i].name, &there, &file, err);
        free(file);
        DT_TRY(rc);
        if (there)
            return refuse(path, kinds[i].name, i, err);
    }
    return 0;
}
