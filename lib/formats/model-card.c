/* SPDX-License-Identifier: MIT */
#include "formats/model-card.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "unicode/utf8.h"

static const char *text_of(struct json_object *object, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(object, name, &value) ? dt_json_text(value) : "";
}

static size_t length_of(struct json_object *record, const char *name, struct json_object **array)
{
    return json_object_object_get_ex(record, name, array) ? json_object_array_length(*array) : 0;
}

/* Appends text without control characters, which could end the block. */
static void add_plain(struct dt_buffer *card, const char *text)
{
    for (; *text; text++)
        dt_buffer_add_char(card, (unsigned char)*text < 0x20 ? '?' : *text);
}

/* A record as an indented block, in which nothing is markup. */
static void add_record(struct dt_buffer *card, struct json_object *record)
{
    struct json_object *list;
    dt_buffer_add_string(card, "\n    ");
    add_plain(card, text_of(record, "program"));
    dt_buffer_add_char(card, ' ');
    add_plain(card, text_of(record, "version"));
    for (size_t i = 0, n = length_of(record, "arguments", &list); i < n; i++) {
        dt_buffer_add_char(card, ' ');
        dt_json_add_value(card, json_object_array_get_idx(list, i), DT_JSON_COMPACT);
    }
    for (size_t i = 0, n = length_of(record, "inputs", &list); i < n; i++) {
        struct json_object *input = json_object_array_get_idx(list, i), *path;
        const char *hash = text_of(input, "sha256");
        if (!json_object_object_get_ex(input, "path", &path))
            continue;
        dt_buffer_add_string(card, "\n        reads ");
        dt_json_add_value(card, path, DT_JSON_COMPACT);
        dt_buffer_add_string(card, *hash ? " sha256 " : "");
        add_plain(card, hash);
    }
    dt_buffer_add_char(card, '\n');
}

/* The title: the last component of the directory's path. */
static void add_name(struct dt_buffer *card, const char *path)
{
    const char *name = dt_path_base(path);
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_utf8_repair(name, strlen(name), &text);
    dt_buffer_add_char(&text, '\0');
    add_plain(card, *text.data ? text.data : "Model");
    dt_buffer_release(&text);
}

int dt_model_card_write(const char *directory, const struct dt_model_config *config,
                        struct json_object *records, struct dt_error *err)
{
    static const char head[] = "---\nlibrary_name: transformers\npipeline_tag: ";
    static const char tags[] = "\ntags:\n- dt\n---\n\n# ";
    static const char text[] =
        "\n\nExported by dt. Add what only you know: license, language, intended use.\n\n"
        "## Lineage\n\nThe commands that led to this model, oldest first; `dt-verify replay` runs "
        "them again.\n";
    struct dt_buffer card = DT_BUFFER_EMPTY;
    char *whole = dt_checked_errno(realpath(directory, NULL));
    if (whole == NULL)
        return dt_fail_errno(err, "cannot find '%s'", directory);
    dt_buffer_add_string(&card, head);
    dt_buffer_add_string(&card, config->num_labels > 0       ? "text-classification"
                                : dt_model_is_masked(config) ? "fill-mask"
                                                             : "text-generation");
    dt_buffer_add_string(&card, tags);
    add_name(&card, whole);
    free(whole);
    dt_buffer_add_string(&card, text);
    for (size_t i = 0; i < json_object_array_length(records); i++)
        add_record(&card, json_object_array_get_idx(records, i));
    char *path = dt_path_join(directory, DT_MODEL_CARD);
    int rc = dt_file_write(path, card.data, card.size, err);
    free(path);
    dt_buffer_release(&card);
    return rc;
}
