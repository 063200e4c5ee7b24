/* SPDX-License-Identifier: MIT */
#include "shard/croissant.h"

#include <inttypes.h>
#include <stdlib.h>

#include "json/json.h"

/* The context of Croissant 1.0, as its specification gives it. */
static const char context[] =
    "{\"@language\":\"en\",\"@vocab\":\"https://schema.org/\","
    "\"citeAs\":\"cr:citeAs\",\"column\":\"cr:column\",\"conformsTo\":\"dct:conformsTo\","
    "\"cr\":\"http://mlcommons.org/croissant/\",\"rai\":\"http://mlcommons.org/croissant/RAI/\","
    "\"data\":{\"@id\":\"cr:data\",\"@type\":\"@json\"},"
    "\"dataType\":{\"@id\":\"cr:dataType\",\"@type\":\"@vocab\"},"
    "\"dct\":\"http://purl.org/dc/terms/\","
    "\"examples\":{\"@id\":\"cr:examples\",\"@type\":\"@json\"},\"extract\":\"cr:extract\","
    "\"field\":\"cr:field\",\"fileProperty\":\"cr:fileProperty\",\"fileObject\":\"cr:fileObject\","
    "\"fileSet\":\"cr:fileSet\",\"format\":\"cr:format\",\"includes\":\"cr:includes\","
    "\"isLiveDataset\":\"cr:isLiveDataset\",\"jsonPath\":\"cr:jsonPath\",\"key\":\"cr:key\","
    "\"md5\":\"cr:md5\",\"parentField\":\"cr:parentField\",\"path\":\"cr:path\","
    "\"recordSet\":\"cr:recordSet\",\"references\":\"cr:references\",\"regex\":\"cr:regex\","
    "\"repeated\":\"cr:repeated\",\"replace\":\"cr:replace\",\"sc\":\"https://schema.org/\","
    "\"separator\":\"cr:separator\",\"source\":\"cr:source\",\"subField\":\"cr:subField\","
    "\"transform\":\"cr:transform\"}";

static void add_text(struct json_object *object, const char *name, const char *value)
{
    dt_json_object_add(object, name, dt_json_new_string(value));
}

static int add_file(struct json_object *files, const struct dt_manifest_shard *shard,
                    const char *split, struct dt_error *err)
{
    if (*shard->sha256 == '\0')
        return dt_fail(err, DT_EINVALID,
                       "%s: index.json has no SHA-256 of it: write the shards again with dt-shard",
                       shard->file);
    struct json_object *file = dt_json_new_object();
    char *size = dt_asprintf("%" PRIu64 " B", shard->size);
    char *about = dt_asprintf("split %s: %" PRIu64 " documents, %" PRIu64 " tokens", split,
                              shard->documents, shard->tokens);
    add_text(file, "@type", "cr:FileObject");
    add_text(file, "@id", shard->file);
    add_text(file, "name", shard->file);
    add_text(file, "description", about);
    add_text(file, "contentUrl", shard->file);
    add_text(file, "contentSize", size);
    add_text(file, "encodingFormat", "application/zstd");
    add_text(file, "sha256", shard->sha256);
    dt_json_array_add(files, file);
    free(about);
    free(size);
    return 0;
}

int dt_croissant_write(const struct dt_manifest *m, const char *name, struct dt_buffer *text,
                       struct dt_error *err)
{
    struct json_object *root = dt_json_new_object(), *files = dt_json_new_array(), *terms;
    int rc = dt_json_parse(context, sizeof context - 1, "context", &terms, err);
    char *about =
        dt_asprintf("Token ids of %" PRIu64 " documents, %" PRIu64 " tokens of a "
                    "vocabulary of %u, in shards of dt. Made by:\n%s",
                    m->info.documents, m->info.tokens, m->info.vocab_size, m->info.provenance);
    if (rc == 0)
        dt_json_object_add(root, "@context", terms);
    add_text(root, "@type", "sc:Dataset");
    add_text(root, "name", name);
    add_text(root, "description", about);
    add_text(root, "conformsTo", "http://mlcommons.org/croissant/1.0");
    dt_json_object_add(root, "distribution", files);
    for (int i = 0; i < m->count; i++)
        for (int k = 0; rc == 0 && k < m->splits[i].count; k++)
            rc = add_file(files, &m->splits[i].shards[k], m->splits[i].name, err);
    if (rc == 0) {
        dt_json_add_value(text, root, DT_JSON_SPACED);
        dt_buffer_add_char(text, '\n');
    }
    free(about);
    json_object_put(root);
    return rc;
}
