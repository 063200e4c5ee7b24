/* SPDX-License-Identifier: MIT */
#include "tokenizer-files/tokenizer-file.h"

#include <stdlib.h>
#include <string.h>

#include "pretokenize/byte-level.h"

const char *dt_tokenizer_component_type(struct json_object *component)
{
    struct json_object *type = json_object_is_type(component, json_type_object)
                                   ? json_object_object_get(component, "type")
                                   : NULL;
    const char *name = dt_json_text(type);
    return component == NULL ? "null" : name ? name : "(no type)";
}

bool dt_tokenizer_component_is(struct json_object *component, const char *name)
{
    return strcmp(dt_tokenizer_component_type(component), name) == 0;
}

/* Appends the name of a member, with its zero bytes. */
static void add_text(const char *name, struct dt_buffer *bytes)
{
    for (const char *zero; (zero = strstr(name, DT_JSON_ZERO)); name = zero + 2) {
        dt_buffer_append(bytes, name, (size_t)(zero - name));
        dt_buffer_add_char(bytes, '\0');
    }
    dt_buffer_add_string(bytes, name);
}

/* Adds one member of a vocabulary; added as for dt_tokenizer_add_vocabulary. */
static int add_token(struct dt_tokenizer *t, const char *spelled, struct json_object *id,
                     struct json_object *added, struct dt_buffer *bytes, struct dt_error *err)
{
    struct json_object *token;
    int64_t number = json_object_is_type(id, json_type_int) ? json_object_get_int64(id) : -1;
    if (number < 0)
        return dt_fail(err, DT_EFORMAT, "the id of token '%s' is not an integer from 0", spelled);
    if (added && json_object_object_get_ex(added, spelled, &token)) {
        int64_t other = json_object_get_int64(json_object_object_get(token, "id"));
        if (other != number)
            return dt_fail(err, DT_EFORMAT, "token '%s' has the id %lld, but %lld as added token",
                           spelled, (long long)number, (long long)other);
        return 0;
    }
    dt_buffer_clear(bytes);
    bool is_text = !t->byte_level || !dt_byte_level_decode(spelled, strlen(spelled), bytes);
    if (is_text)
        add_text(spelled, bytes);
    if (is_text && t->byte_level)
        return dt_tokenizer_add_unreachable(t, (uint64_t)number, bytes->data, bytes->size, err);
    return dt_tokenizer_add(t, (uint64_t)number, bytes->data, bytes->size, err);
}

int dt_tokenizer_add_vocabulary(struct dt_tokenizer *t, struct json_object *vocabulary,
                                struct json_object *added, const char *path, struct dt_error *err)
{
    struct dt_buffer bytes = DT_BUFFER_EMPTY;
    int rc = 0;
    json_object_object_foreach(vocabulary, spelled, id)
    {
        rc = rc < 0 ? rc : add_token(t, spelled, id, added, &bytes, err);
    }
    dt_buffer_release(&bytes);
    return rc < 0 ? dt_fail_context(err, "%s", path) : 0;
}

/* The number of bytes of text to show in a message, cut at a character. */
static int shown(const char *text, size_t size)
{
    if (size <= 64)
        return (int)size;
    for (size = 64; size > 0 && (text[size] & 0xc0) == 0x80;)
        size--;
    return (int)size;
}

/* *reachable: the merge can apply; in byte-level text a symbol outside the alphabet does not occur.
 */
static int find_symbol(const struct dt_tokenizer *t, const char *spelled, size_t size,
                       struct dt_buffer *whole, uint32_t *id, bool *reachable, const char *location,
                       struct dt_error *err)
{
    size_t before = whole->size;
    *id = DT_NO_TOKEN;
    if (!t->byte_level)
        dt_buffer_append(whole, spelled, size);
    else if (!dt_byte_level_decode(spelled, size, whole))
        return *reachable = false, 0;
    if (size > 0)
        *id = dt_tokenizer_find(t, whole->data + before, whole->size - before);
    if (*id == DT_NO_TOKEN)
        return dt_fail(err, DT_EFORMAT, "%s: merges '%.*s', which is not in the vocabulary",
                       location, shown(spelled, size), spelled);
    return 0;
}

/* The token of a merge has no prefix before its right part, whose length alone counts. */
static void remove_prefix(const struct dt_tokenizer *t, struct dt_buffer *whole, size_t middle)
{
    size_t length = t->rules.prefix ? strlen(t->rules.prefix) : 0;
    if (length == 0 || whole->size - middle < length)
        return;
    memmove(whole->data + middle, whole->data + middle + length, whole->size - middle - length);
    whole->size -= length;
}

int dt_tokenizer_add_spelled_merge(struct dt_tokenizer *t, const char *left, size_t left_size,
                                   const char *right, size_t right_size, const char *location,
                                   struct dt_error *err)
{
    struct dt_buffer whole = DT_BUFFER_EMPTY;
    struct dt_merge merge;
    bool reachable = true;
    int rc = find_symbol(t, left, left_size, &whole, &merge.left, &reachable, location, err);
    size_t middle = whole.size;
    if (rc == 0)
        rc = find_symbol(t, right, right_size, &whole, &merge.right, &reachable, location, err);
    if (rc == 0 && reachable) {
        remove_prefix(t, &whole, middle);
        merge.result = dt_tokenizer_find(t, whole.data, whole.size);
        if (merge.result == DT_NO_TOKEN)
            rc = dt_fail(err, DT_EFORMAT, "%s: makes '%.*s%.*s', which is not in the vocabulary",
                         location, shown(left, left_size), left, shown(right, right_size), right);
        else
            dt_tokenizer_add_merge(t, merge);
    }
    dt_buffer_release(&whole);
    return rc;
}

int dt_tokenizer_add_merge_line(struct dt_tokenizer *t, const char *line, size_t size,
                                const char *location, struct dt_error *err)
{
    const char *blank = memchr(line, ' ', size);
    if (blank == NULL || memchr(blank + 1, ' ', size - (size_t)(blank + 1 - line)))
        return dt_fail(err, DT_EFORMAT,
                       "%s: expected two tokens separated by one space, not '%.*s'", location,
                       shown(line, size), line);
    size_t left = (size_t)(blank - line);
    return dt_tokenizer_add_spelled_merge(t, line, left, blank + 1, size - left - 1, location, err);
}
