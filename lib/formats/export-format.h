/* SPDX-License-Identifier: MIT */
/*
 * The formats that dt-export writes, and dt_model_load reads. Its option help and its refusals
 * follow from the descriptors.
 *
 * Adding a format: a file that defines its descriptor, dt_export_format_NAME, and a line
 * in DT_EXPORT_FORMATS.
 */
#ifndef DT_FORMATS_EXPORT_FORMAT_H
#define DT_FORMATS_EXPORT_FORMAT_H

#include "formats/labels.h"
#include "formats/text-tokens.h"
#include "model/model.h"
#include "json/json.h"

#define DT_EXPORT_FORMATS(X)                                                                       \
    X(hf)                                                                                          \
    X(gguf)

/* Types of weights: enumerator, name, and the largest difference of logits that rounding to the
 * type explains, relative to the largest logit. */
#define DT_EXPORT_TYPES(X)                                                                         \
    X(F32, "f32", 1e-4)                                                                            \
    X(F16, "f16", 1e-2)                                                                            \
    X(BF16, "bf16", 8e-2)                                                                          \
    X(Q8_0, "q8_0", 8e-2)

#define DT_EXPORT_TYPE_ENUMERATOR(NAME, name, tolerance) DT_EXPORT_TYPE_##NAME,
enum dt_export_type { DT_EXPORT_TYPES(DT_EXPORT_TYPE_ENUMERATOR) DT_EXPORT_TYPE_COUNT };
#undef DT_EXPORT_TYPE_ENUMERATOR

struct dt_export_request {
    const char *path; /* of the file, or of an existing directory */
    const char *name; /* of the model, in UTF-8 */
    enum dt_export_type type;
    uint64_t max_shard;            /* bytes of a file of weights; 0: unlimited */
    struct json_object *tokenizer; /* a tokenizer.json; NULL: none */
    const char *tokenizer_path;    /* for errors */
    uint32_t eot;                  /* end-of-text token, or UINT32_MAX */
    const struct dt_text_tokens *tokens;
    const struct dt_labels *labels;   /* of a classifier; NULL: it is a model of tokens */
    size_t before_count, after_count; /* tokens that the tokenizer puts around a text */
    uint32_t after;                   /* the first one after it */
};

struct dt_export_format {
    const char *name;   /* value of --to */
    const char *help;   /* what it is, for --help: "a directory" */
    const char *suffix; /* of a file's name, ".gguf"; NULL: a directory */
    unsigned types;     /* 1 << enum dt_export_type for each that it can hold */
    bool shards;        /* whether max_shard applies */
    /* Their model_types, for the message where holds returns false; NULL: all models. */
    char *(*models)(void);
    bool (*holds)(const struct dt_model_config *config);
    /* The model is on the cpu. A failure leaves no file that looks complete. */
    int (*write)(const struct dt_model *model, const struct dt_export_request *request,
                 struct dt_error *err);
};

#define DT_EXPORT_FORMAT_DECLARATION(name)                                                         \
    extern const struct dt_export_format dt_export_format_##name;
DT_EXPORT_FORMATS(DT_EXPORT_FORMAT_DECLARATION)
#undef DT_EXPORT_FORMAT_DECLARATION

/* In the order of DT_EXPORT_FORMATS, the default first; both end with NULL. */
extern const struct dt_export_format *const dt_export_format_list[];
extern const char *const dt_export_format_names[];
extern const char *const dt_export_type_names[];
extern const double dt_export_type_tolerances[];

/* The format of the file or directory at path, by its suffix. */
const struct dt_export_format *dt_export_format_of_path(const char *path);
/* "f32, f16 or bf16": the types of a format. The caller frees it. */
char *dt_export_format_types(const struct dt_export_format *format);

#endif
